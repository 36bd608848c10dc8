package settings

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Pause records whether everything is paused: while it is, no tool runs and no model is called. The pause survives a
// restart. People may decide meanwhile, and deadlines pass as usual: a request that nobody decides is rejected, paused
// or not.
type Pause struct {
	On     bool               `json:"on"`
	By     approvers.PersonID `json:"by"` // who changed it last
	At     time.Time          `json:"at"`
	Reason string             `json:"reason,omitempty"`
	Round  int                `json:"round,omitempty"` // increases with each change
}

// Ref returns the reference of the messages about a pause: the round in which it began.
func (p Pause) Ref() string { return store.SettingPause + "/" + strconv.Itoa(p.Round) }

// ReadPause reads the pause. If its record is damaged, everything is paused: nothing runs until a person decides.
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

// Damaged reports whether the record of the pause is unreadable.
func (p Pause) Damaged() bool { return p.By == approvers.Operator(damagedPause) }

// damagedPause names the operator of a pause whose record is damaged.
const damagedPause = "nobody"
