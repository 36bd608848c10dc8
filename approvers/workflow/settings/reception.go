package settings

import (
	"encoding/json"
	"errors"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Reception records up to which time everything that people wrote was received, and which gap is being read.
type Reception struct {
	Until time.Time `json:"until"`          // everything written before this time was received, or read after a gap
	Open  time.Time `json:"open"`           // the last time at which Slack could deliver. Over HTTP, it can be later than Until, which is then the time of Slack's last request
	Gap   *Gap      `json:"gap,omitempty"`  // what is being read; nil: nothing
	Since time.Time `json:"since,omitzero"` // the first start of this store, or the first since it was restored: what was written before is never read; zero: unknown
}

// Gap is a gap whose messages are being read.
type Gap struct {
	approvers.Gap
	Received time.Time `json:"received"`        // everything written before this time was received; not later than From
	Quiet    bool      `json:"quiet,omitempty"` // nothing came, perhaps because nobody wrote
	Done     string    `json:"done,omitempty"`  // the channels up to this id are read, in the order of their ids
}

// RereadMargin is how long before a gap the reading of messages begins: Slack may have given up a delivery just before,
// and the clocks of Slack and of this machine differ.
const RereadMargin = 10 * time.Minute

// MostReread is how far back messages are read.
const MostReread = 24 * time.Hour

// Oldest returns the time from which messages are read, which is never before since. cut reports whether MostReread
// leaves out a part of the gap.
func (g Gap) Oldest(since time.Time) (at time.Time, cut bool) {
	if at = g.Received.Add(-RereadMargin); at.Before(since) {
		at = since
	}
	if first := g.To.Add(-MostReread); at.Before(first) {
		return first, true
	}
	return at, false
}

// Joined returns the gap of a channel that the bot has joined: it is unknown how long the bot was not a member.
func (r Reception) Joined(now time.Time) Gap {
	return Gap{Gap: approvers.Gap{From: now, To: now}, Received: now.Add(-MostReread)}
}

// ReadReception reads the reception.
func ReadReception(r store.Reader) (out Reception, s store.Setting, err error) {
	s, err = r.Setting(store.SettingReception)
	if errors.Is(err, store.ErrNotFound) {
		return out, store.Setting{Key: store.SettingReception}, nil
	}
	if err != nil {
		return out, s, err
	}
	return out, s, json.Unmarshal(s.Value, &out)
}
