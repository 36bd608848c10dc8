package store

// Prefixes of the addresses of outbox messages. A name or an id follows. See OutboxMessage.To.
const (
	ToConversation = "conversation:"
	ToChannel      = "channel:"
	ToUser         = "user:"
	ToRole         = "role:"
	ToGroup        = "group:"
)

// Place names the place of a conversation.
func Place(team, channel, thread string) string { return team + "/" + channel + "/" + thread }
