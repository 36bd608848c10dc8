package workspaceclient

import (
	"context"
	"net/http"
	"slices"
)

// Command sends a slash command. When the app has acknowledged the command, Command returns the text in the
// acknowledgement, or "". An answer that the app sends later is among the Ephemerals or the channel's messages.
func (v Client) Command(ctx context.Context, channel, command, text string) (string, error) {
	var out struct{ Message Message }
	err := v.call(ctx, http.MethodPost, v.path("commands"), map[string]string{"channel": channel, "command": command, "text": text}, &out)
	return out.Message.Text, err
}

// Ephemerals reads the messages that only this person sees in a channel, or in one thread of it, oldest first.
func (v Client) Ephemerals(ctx context.Context, channel, thread string) ([]Message, error) {
	messages, err := v.Messages(ctx, channel, thread)
	return slices.DeleteFunc(messages, func(m Message) bool { return !m.Ephemeral }), err
}
