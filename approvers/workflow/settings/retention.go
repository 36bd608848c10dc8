package settings

import (
	"time"

	"countersign/store"
)

// Retention is the setting with the time of the last round of retention. The time may be behind the clock: see
// retention.Round.
type Retention struct {
	At time.Time `json:"at"`
}

// ReadRetention reads the time of the last round of retention, or the zero value.
func ReadRetention(r store.Reader) (at Retention, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingRetention, &at)
	return at, s, err
}
