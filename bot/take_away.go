package bot

import (
	"context"
	"fmt"

	"countersign/approvers/desk"
)

// takeAway deletes the message of a surface whose time is over. Where Slack does not let it be deleted, it says that it is over.
func (b *Bot) takeAway(ctx context.Context, me self, sight desk.Sight, d drawing) error {
	s := sight.Surface
	if s.TS == "" {
		at, err := b.spot(ctx, sight)
		if err != nil {
			return err
		}
		sent, err := b.lost(ctx, me, s, at)
		if err != nil {
			return err
		}
		s.Channel, s.TS = at.channel, sent[0]
	}
	if s.TS == "" {
		return b.Desk.Gone(ctx, s)
	}
	_, _, err := b.api.DeleteMessageContext(ctx, s.Channel, s.TS)
	switch code := errorCode(err); {
	case err == nil, vanished[code], gone[code]:
	case code == "":
		return fmt.Errorf("chat.delete: %w", slow(err))
	default:
		b.Log.Info("a message can't be deleted, so it says that it is over", "surface", string(s.Kind), "cause", code)
		if err := b.update(ctx, s, d); err != nil && !vanished[errorCode(err)] && !stale[errorCode(err)] {
			return err
		}
	}
	return b.Desk.Gone(ctx, s)
}
