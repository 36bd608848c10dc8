package desk

import (
	"context"
	"errors"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// Refuse records that somebody clicked what can't be taken for a button of the bot's as it is: a version that was replaced, a copy, a value that was made
// up. named are the requests, or whatever else, that it names or that the message shows; each of them that exists gets a record, and nothing else changes. anew is a
// surface that is to be drawn again, so that the next click is on what is recorded; empty: none.
func (d *Desk) Refuse(ctx context.Context, c Click, denied *approvers.Denied, anew string, named ...string) error {
	err := d.update(ctx, "refuse", func(t *tx) error {
		if err := t.settle(c.Inbox, string(denied.Code)); err != nil {
			return err
		}
		if anew != "" {
			s, err := t.Surface(anew)
			if err != nil {
				return err
			}
			s.Hash = "" // whatever Slack is believed to show
			if err := t.changed(s); err != nil {
				return err
			}
		}
		slices.Sort(named)
		for _, id := range slices.Compact(named) {
			if id == "" {
				continue
			}
			_, err := t.Request(id)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if err := t.auditDenied(id, "click", c, denied); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, ErrHandled) {
		return nil
	}
	return err
}
