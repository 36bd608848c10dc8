package view

import (
	"context"
	"slices"

	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// Refusals returns the features that Slack refuses in this workspace now.
func (v *Reader) Refusals(ctx context.Context) (list []settings.Refusal, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		list, _, err = settings.ReadRefusals(r)
		return err
	})
	return slices.DeleteFunc(list, func(r settings.Refusal) bool { return !r.Until.After(v.now()) }), err
}
