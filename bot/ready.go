package bot

import "context"

// Ready returns nil if the bot can receive from Slack, and Slack answers.
func (b *Bot) Ready(context.Context) error {
	if err := b.api.Available(); err != nil {
		return err
	}
	return b.transport.Ready()
}

// Arriving returns an error if, as far as the bot can know, nothing of Slack's arrives although the bot is ready.
func (b *Bot) Arriving() error { return b.transport.Arriving() }

// Worth reports whether calls to Slack may succeed now: Slack answers, or it is time to test whether it does.
func (b *Bot) Worth() bool { return b.api.Worth() }
