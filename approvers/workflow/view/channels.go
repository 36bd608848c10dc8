package view

import (
	"context"
	"time"

	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// LostChannel is a channel that the policy names, and in which the bot can't write.
type LostChannel struct {
	Name  string // as the policy names it
	Since time.Time
	Cause string
}

// LostChannels returns the channels of the policy in which the bot can't write.
func (v *Reader) LostChannels(ctx context.Context) (lost []LostChannel, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		lost = nil
		for _, name := range v.Policy().Channels() {
			state, _, err := settings.ReadChannelState(r, name)
			if err != nil {
				return err
			}
			if state.Lost && !state.Shared {
				lost = append(lost, LostChannel{name, state.Since, state.Cause})
			}
		}
		return nil
	})
	return lost, err
}
