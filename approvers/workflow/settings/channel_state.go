package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/store"
)

// ChannelState is the state of a channel. The setting's key is store.SettingChannelState and the channel's id in Slack,
// or its #name if the id is not known or the policy names the channel so. A channel is lost if the bot can't write in
// the channel: the bot was removed, or the channel was archived or deleted. When a channel is lost, its open messages
// move to direct messages immediately. The bot tries later messages in the channel first. So messages appear in the
// channel when the bot is added to it, even if Slack does not report that the bot was added.
type ChannelState struct {
	Lost  bool      `json:"lost"`
	Since time.Time `json:"since"`
	Cause string    `json:"cause"`
	Told  bool      `json:"told"` // the operator was told of the loss
	// Shared means that the bot can write in the channel, but people of other organisations can read it. The bot then
	// removes open cards from the channel. Messages in people's conversations stay.
	Shared bool     `json:"shared,omitempty"`
	Names  []string `json:"names,omitempty"` // other names under which the channel was recorded as lost
	Left   []string `json:"left,omitempty"`  // the ids of outbox messages whose old Slack messages are still in the channel
}

// ReadChannelState reads the state of the channel with an id or #name.
func ReadChannelState(r store.Reader, name string) (p ChannelState, s store.Setting, err error) {
	s, err = r.Setting(store.SettingChannelState + name)
	if errors.Is(err, store.ErrNotFound) {
		return p, store.Setting{Key: store.SettingChannelState + name}, nil
	}
	if err != nil {
		return p, s, err
	}
	if err := json.Unmarshal(s.Value, &p); err != nil {
		return p, s, fmt.Errorf("state of the channel %s: %w", name, err)
	}
	return p, s, nil
}
