package bot

import (
	"context"
	"encoding/json"
	"fmt"

	"countersign/store"
)

// command is a slash command as Slack delivers it.
type command struct {
	Command string `json:"command"`
	User    string `json:"user_id"`
	Channel string `json:"channel_id"`
}

// commanded answers a slash command. The bot has none: whoever types one is told how to talk to it.
func (b *Bot) commanded(ctx context.Context, row store.Inbox) error {
	var c command
	if err := json.Unmarshal(row.Payload, &c); err != nil || c.User == "" {
		return fmt.Errorf("%w: a slash command without its person", errPayload)
	}
	if err := b.Desk.Done(ctx, row.ID, "slash commands are not used"); err != nil {
		return err
	}
	b.tell(ctx, whisper{user: c.User, channel: c.Channel},
		say("I don't have slash commands. Mention me in a channel where I answer, or write to me in a direct message, and say what you need in your own words."))
	return nil
}
