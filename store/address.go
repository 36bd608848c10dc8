package store

// The address of an outbox message (OutboxMessage.To) begins with one of these prefixes.
const (
	ToConversation = "conversation:" // followed by its id
	ToChannel      = "channel:"      // followed by its name or id
	ToUser         = "user:"         // followed by the user's id
	ToRole         = "role:"         // followed by its name; expands into its members
	ToGroup        = "group:"        // followed by its name; expands into the members of a user group who belong to the stage
)

// Place returns the value of Conversation.Place for a conversation in a channel or thread.
func Place(team, channel, thread string) string { return team + "/" + channel + "/" + thread }
