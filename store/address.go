package store

// The address of an outbox message (OutboxMessage.To) begins with one of these prefixes.
const (
	ToConversation = "conversation:" // followed by the conversation's id
	ToChannel      = "channel:"      // followed by the channel's name or id
	ToUser         = "user:"         // followed by the user's id
	ToRole         = "role:"         // followed by the role's name; each member of the role who can be reached and is not away gets a copy
	ToGroup        = "group:"        // followed by a user group's name; each member of the group who belongs to the stage gets a copy
)

// Place returns the value of Conversation.Place for a conversation in a channel or thread.
func Place(team, channel, thread string) string { return team + "/" + channel + "/" + thread }
