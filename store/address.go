package store

// Prefixes of the addresses of outbox messages (OutboxMessage.To).
const (
	ToConversation = "conversation:" // and its id
	ToChannel      = "channel:"      // and its name or id
	ToUser         = "user:"         // and their id
	ToRole         = "role:"         // and its name; expands into its members
	ToGroup        = "group:"        // and its name; expands into the members of a user group who belong to the stage
)

// Place names the place of a conversation.
func Place(team, channel, thread string) string { return team + "/" + channel + "/" + thread }
