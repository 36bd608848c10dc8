package settings

import (
	"encoding/json"
	"errors"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Reception records two facts: the time up to which the bot received all messages, and the gap whose messages it is
// reading.
type Reception struct {
	Until time.Time `json:"until"`          // everything written before this time was received, or read after a gap
	Open  time.Time `json:"open"`           // the last time at which Slack could deliver. Over HTTP it can be later than Until, because Until is then the time of Slack's last request
	Gap   *Gap      `json:"gap,omitempty"`  // the gap whose messages are being read; nil: there is none
	Since time.Time `json:"since,omitzero"` // the first start with this store, or the first after a restore; messages from before are never read; zero: unknown
}

// Gap is a gap whose messages are being read.
type Gap struct {
	approvers.Gap
	Received time.Time `json:"received"`        // everything written before this time was received; not later than From
	Quiet    bool      `json:"quiet,omitempty"` // Slack could deliver but sent nothing, perhaps because nobody wrote
	Done     string    `json:"done,omitempty"`  // all channels with an id up to this one have been read
}

// RereadMargin is how long before a gap the reading begins. Slack may have dropped a delivery just before the gap, and
// the clocks of Slack and this machine may differ.
const RereadMargin = 10 * time.Minute

// MostReread limits how far back messages are read.
const MostReread = 24 * time.Hour

// Oldest returns the time from which messages are read. This time is never before since. cut is true if a part of the
// gap is not read because of MostReread.
func (g Gap) Oldest(since time.Time) (at time.Time, cut bool) {
	if at = g.Received.Add(-RereadMargin); at.Before(since) {
		at = since
	}
	if first := g.To.Add(-MostReread); at.Before(first) {
		return first, true
	}
	return at, false
}

// Joined returns the gap to read in a channel that the bot has joined. The gap is as long as possible, because nobody
// knows how long the bot was not a member.
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
