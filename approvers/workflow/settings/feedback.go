package settings

import (
	"encoding/json"
	"errors"

	"countersign/store"
)

// Feedback counts people's ratings of an agent's answers. If a person rates an answer several times, only the latest
// rating counts.
type Feedback struct {
	Good int `json:"good"`
	Poor int `json:"poor"`
}

// ReadFeedback reads the feedback on an agent's answers.
func ReadFeedback(r store.Reader, agent string) (out Feedback, s store.Setting, err error) {
	s, err = r.Setting(store.SettingFeedback + agent)
	if errors.Is(err, store.ErrNotFound) {
		return out, store.Setting{Key: store.SettingFeedback + agent}, nil
	}
	if err != nil {
		return out, s, err
	}
	return out, s, json.Unmarshal(s.Value, &out)
}
