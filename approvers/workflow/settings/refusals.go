package settings

import (
	"encoding/json"
	"errors"
	"time"

	"countersign/store"
)

// Refusal is a feature that Slack refuses in this workspace: a kind of block, or a method. Before Until, the bot does
// not try the feature again.
type Refusal struct {
	What  string    `json:"what"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Cause string    `json:"cause"`
}

// ReadRefusals reads the refusals, including refusals whose Until has passed.
func ReadRefusals(r store.Reader) (list []Refusal, s store.Setting, err error) {
	s, err = r.Setting(store.SettingRefusals)
	if errors.Is(err, store.ErrNotFound) {
		return nil, store.Setting{Key: store.SettingRefusals}, nil
	}
	if err != nil {
		return nil, s, err
	}
	return list, s, json.Unmarshal(s.Value, &list)
}
