package settings

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Pause records whether everything is paused. During a pause, the bot runs no tools and calls no model. The pause
// survives a restart. During a pause, people can still decide requests, and requests still expire.
type Pause struct {
	On     bool               `json:"on"`
	By     approvers.PersonID `json:"by"` // the person who paused or resumed last
	At     time.Time          `json:"at"`
	Reason string             `json:"reason,omitempty"`
	Round  int                `json:"round,omitempty"` // increases with each change
}

// Ref returns the Ref of the outbox messages about the pause that began in the round p.Round.
func (p Pause) Ref() string { return store.SettingPause + "/" + strconv.Itoa(p.Round) }

// ReadPause reads the pause. If the record of the pause is damaged, everything counts as paused. A person must then end
// the pause.
func ReadPause(r store.Reader) (p Pause, s store.Setting, err error) {
	s, err = r.Setting(store.SettingPause)
	if errors.Is(err, store.ErrNotFound) {
		return p, store.Setting{Key: store.SettingPause}, nil
	}
	if errors.Is(err, store.ErrDamaged) {
		return Pause{On: true, By: approvers.Operator(damagedPause), Reason: "the record of whether everything is paused is damaged"}, store.Setting{Key: store.SettingPause}, nil
	}
	if err != nil {
		return p, s, err
	}
	return p, s, json.Unmarshal(s.Value, &p)
}

// Damaged reports whether the record of the pause can't be read.
func (p Pause) Damaged() bool { return p.By == approvers.Operator(damagedPause) }

// damagedPause is the operator's name in a Pause that ReadPause returns for a damaged record.
const damagedPause = "nobody"
