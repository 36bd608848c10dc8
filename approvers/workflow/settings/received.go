package settings

import (
	"encoding/json"
	"errors"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Received records up to which time the bot has received all messages. A gap is a period in which Slack could not
// deliver messages. After a gap, Received also records which messages of the gap the bot has read.
type Received struct {
	Until time.Time `json:"until"`          // the bot has all messages that were written before this time: it received them, or read them after a gap
	Open  time.Time `json:"open"`           // the last time at which Slack could deliver messages. It can be later than Until: over HTTP, Until is the time of Slack's last request
	Gap   *Gap      `json:"gap,omitempty"`  // the gap whose messages are being read; nil: there is none
	Since time.Time `json:"since,omitzero"` // the first start with this store, or the first start after a restore: the bot never reads older messages; zero: unknown
}

// Gap is a gap whose messages the bot is reading.
type Gap struct {
	approvers.Gap
	Received time.Time `json:"received"`        // the bot received all messages that were written before this time; not later than From
	Quiet    bool      `json:"quiet,omitempty"` // Slack could deliver but sent nothing, perhaps because nobody wrote
	Done     string    `json:"done,omitempty"`  // the id of the channel that was read last; the channels are read in the order of their ids
}

// When the bot reads the messages of a gap, it begins RereadMargin before the gap. Slack may have dropped a delivery
// just before the gap, and the clocks of Slack and of this machine may differ.
const RereadMargin = 10 * time.Minute

// MostReread is the maximum age of the messages that the bot reads after a gap.
const MostReread = 24 * time.Hour

// Oldest returns the time of the first message that the bot must read after a gap. The result is never earlier than the
// parameter since. If the bot skips the first part of the gap because of MostReread, cut is true.
func (g Gap) Oldest(since time.Time) (at time.Time, cut bool) {
	if at = g.Received.Add(-RereadMargin); at.Before(since) {
		at = since
	}
	if first := g.To.Add(-MostReread); at.Before(first) {
		return first, true
	}
	return at, false
}

// Joined returns a Gap for a channel that the bot has joined. The bot then reads the channel's messages of this period.
// The gap has the maximum length, because the time since the bot was last a member is unknown.
func (r Received) Joined(now time.Time) Gap {
	return Gap{Gap: approvers.Gap{From: now, To: now}, Received: now.Add(-MostReread)}
}

// ReadReceived reads the stored Received.
func ReadReceived(r store.Reader) (out Received, s store.Setting, err error) {
	s, err = r.Setting(store.SettingReceived)
	if errors.Is(err, store.ErrNotFound) {
		return out, store.Setting{Key: store.SettingReceived}, nil
	}
	if err != nil {
		return out, s, err
	}
	return out, s, json.Unmarshal(s.Value, &out)
}
