package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"countersign/store"
)

// Caller is the setting that stores data about one caller: another agent that calls tools through Countersign.
type Caller struct {
	Pending []string `json:"pending,omitempty"`  // the ids of the caller's requests that wait for people
	HangUps []HangUp `json:"hang_ups,omitempty"` // the caller's latest hang-ups, oldest first
}

// HangUp records that a caller closed its connection while the connection waited for a call. The connection was open,
// because the bot answers a call only after people have decided.
type HangUp struct {
	At    time.Time     `json:"at"`
	After time.Duration `json:"after"` // how long the client had waited
}

// A client that waits too long for a response closes the connection. This is a hang-up. The bot estimates the client's
// time limit from the client's hang-ups. These constants control the estimate.
const (
	shortestPatience = 3 * time.Second    // a hang-up after a shorter wait says nothing about the time limit
	hangUpsApart     = 5 * time.Second    // hang-ups within this time have the same cause, and count once
	keepHangUps      = 7 * 24 * time.Hour // older hang-ups are dropped, because the time limit may have changed since
	mostHangUps      = 8
)

// WithHangUp returns the caller with one more hang-up. If the hang-up does not help to estimate the client's time
// limit, WithHangUp ignores it, and changed is false.
func (c Caller) WithHangUp(h HangUp) (after Caller, changed bool) {
	if h.After < shortestPatience || len(c.HangUps) > 0 && h.At.Sub(c.HangUps[len(c.HangUps)-1].At) < hangUpsApart {
		return c, false
	}
	c.HangUps = append(slices.Clone(c.HangUps), h)
	c.HangUps = c.HangUps[max(0, len(c.HangUps)-mostHangUps):]
	return c, true
}

// Patience returns how long the bot may delay the response to a caller before the caller hangs up. If the caller's time
// limit is unknown, Patience returns 0. Two hang-ups after about the same time show a time limit. A single hang-up
// shows no limit, because a person may have caused it. The result is 80 % of the shortest limit.
func (c Caller) Patience(now time.Time) time.Duration {
	shortest := time.Duration(0)
	for i, a := range c.HangUps {
		for _, b := range c.HangUps[:i] {
			same := (a.After - b.After).Abs() <= max(a.After/20, 250*time.Millisecond)
			if least := min(a.After, b.After); same && now.Sub(b.At) < keepHangUps && (shortest == 0 || least < shortest) {
				shortest = least
			}
		}
	}
	return shortest * 4 / 5
}

// ReadPatience reads only the hang-ups of a caller. The list of the caller's requests may be long, so ReadPatience does
// not read the list.
func ReadPatience(r store.Reader, name string) (c Caller, err error) {
	var of struct {
		HangUps []HangUp `json:"hang_ups"`
	}
	_, err = readJSON(r, store.SettingCaller+name, &of)
	return Caller{HangUps: of.HangUps}, err
}

// ReadCaller reads the stored data about a caller. If the store has no data about the caller, ReadCaller returns the
// zero value.
func ReadCaller(r store.Reader, name string) (c Caller, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingCaller+name, &c)
	return c, s, err
}

// With adds a request to the list of pending requests, or removes the request. With also reports whether the list has
// changed.
func (c Caller) With(request string, pending bool) (after Caller, changed bool) {
	i := slices.Index(c.Pending, request)
	switch {
	case pending && i < 0:
		c.Pending = append(slices.Clone(c.Pending), request)
	case !pending && i >= 0:
		c.Pending = slices.Delete(slices.Clone(c.Pending), i, i+1)
	default:
		return c, false
	}
	return c, true
}

// Webhook records the failures of deliveries to a caller's webhook.
type Webhook struct {
	Target   string    `json:"target"`             // identifies the webhook; see approvers.Webhook
	Failures int       `json:"failures,omitempty"` // how many deliveries failed since the last success
	Since    time.Time `json:"since,omitzero"`     // when the first of these failures happened
	Next     time.Time `json:"next,omitzero"`      // the bot sends nothing before this time
	Off      time.Time `json:"off,omitzero"`       // when the webhook was switched off; zero: the webhook is on
	Why      string    `json:"why,omitempty"`      // why the last delivery failed
}

// ReadWebhook reads the failures of deliveries to a caller's webhook. If the stored record is about an earlier webhook
// of the caller, ReadWebhook returns an empty record.
func ReadWebhook(r store.Reader, client, target string) (w Webhook, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingWebhook+client, &w)
	if w.Target != target {
		w = Webhook{Target: target}
	}
	return w, s, err
}

// ReceiptKeys holds the public keys that verify receipts. Each replica has a key of its own.
type ReceiptKeys struct {
	Keys []ReceiptKey `json:"keys"`
}

// ReceiptKey is an Ed25519 key.
type ReceiptKey struct {
	ID     string    `json:"id"`
	Public []byte    `json:"public"`
	Since  time.Time `json:"since"` // when a process that signs with this key last started
}

// ReadReceiptKeys reads the stored receipt keys.
func ReadReceiptKeys(r store.Reader) (k ReceiptKeys, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingReceiptKeys, &k)
	return k, s, err
}

// mostReceiptKeys is the maximum number of receipt keys in the store. keepReceiptKeys is how long a key is kept. The
// latest key is always kept.
const (
	mostReceiptKeys = 64
	keepReceiptKeys = 90 * 24 * time.Hour
)

// With adds a key, and drops keys that have been unused for longer than keepReceiptKeys.
func (k ReceiptKeys) With(key ReceiptKey) ReceiptKeys {
	kept := slices.DeleteFunc(slices.Clone(k.Keys), func(o ReceiptKey) bool { return o.ID == key.ID || key.Since.Sub(o.Since) > keepReceiptKeys })
	kept = append(kept, key)
	return ReceiptKeys{kept[max(0, len(kept)-mostReceiptKeys):]}
}

// readJSON decodes the value of a setting into the variable *to. If the store has no setting with this key, the
// variable stays unchanged.
func readJSON(r store.Reader, key string, to any) (store.Setting, error) {
	s, err := r.Setting(key)
	if errors.Is(err, store.ErrNotFound) {
		return store.Setting{Key: key}, nil
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(s.Value, to); err != nil {
		return s, fmt.Errorf("setting %s: %w", key, err)
	}
	return s, nil
}
