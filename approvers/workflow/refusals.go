package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"countersign/approvers/workflow/settings"
)

// maxRefusals limits how many of Slack's refusals are remembered.
const maxRefusals = 50

// Refused remembers something that Slack refuses in this workspace. It replaces an earlier refusal of the same thing,
// and drops refusals of things that may be tried again.
func (w *Outbox) Refused(ctx context.Context, refusal settings.Refusal) error {
	return w.update(ctx, "refused", func(t *tx) error {
		list, s, err := settings.ReadRefusals(t)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(r settings.Refusal) bool { return r.What == refusal.What || !r.Until.After(t.now) })
		if len(list) >= maxRefusals {
			list = list[1:]
		}
		if s.Value, err = json.Marshal(append(list, refusal)); err != nil {
			return fmt.Errorf("refusals: %w", err)
		}
		return t.PutSetting(s)
	})
}
