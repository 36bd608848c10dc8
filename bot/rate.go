package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// rated records what somebody thought of an answer, and tells them that it counts.
func (b *Bot) rated(ctx context.Context, w whisper, s seen, c desk.Click) error {
	turn, good := strings.CutPrefix(s.mark.Ref, rateGood)
	turn, poor := strings.CutPrefix(turn, ratePoor)
	if good == poor {
		return fmt.Errorf("%w: no opinion in it", errPayload)
	}
	c.Turn = turn
	err := b.Desk.Rate(ctx, c, good)
	var d *approvers.Denied
	switch {
	case errors.As(err, &d) && (d.Code == approvers.DeniedGuest || d.Code == approvers.DeniedForeign || d.Code == approvers.DeniedBot):
		b.tell(ctx, w, say("Only those who may ask the agent can rate its answers. Nothing was changed."))
		return nil
	case err != nil:
		return b.answerClick(ctx, w, nil, s.Policy, err)
	case poor:
		b.tell(ctx, w, say("Noted, thank you. If something should be done differently, write it here: the agent reads it, and whoever runs it sees how its answers are rated."))
	default:
		b.tell(ctx, w, say("Noted, thank you."))
	}
	return nil
}
