package workspaceclient

import (
	"context"
	"net/http"
	"slices"
)

// Command sends a slash command. When the app has acknowledged the command, Command returns the text in the
// acknowledgement, or "". If the app answers later, Ephemerals or Messages returns the answer.
func (v Client) Command(ctx context.Context, channel, command, text string) (string, error) {
	var out struct{ Message Message }
	err := v.call(ctx, http.MethodPost, v.path("commands"), map[string]string{"channel": channel, "command": command, "text": text}, &out)
	return out.Message.Text, err
}

// Ephemerals reads the messages in a channel that only this person sees, oldest first. If thread is not empty,
// Ephemerals reads the messages of this thread.
func (v Client) Ephemerals(ctx context.Context, channel, thread string) ([]Message, error) {
	messages, err := v.Messages(ctx, channel, thread)
	return slices.DeleteFunc(messages, func(m Message) bool { return !m.Ephemeral }), err
}
