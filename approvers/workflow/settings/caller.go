package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"countersign/store"
)

// Caller is the setting with the stored facts about one caller.
type Caller struct {
	Pending []string `json:"pending,omitempty"`  // the ids of its requests that wait for people
	HangUps []HangUp `json:"hang_ups,omitempty"` // the latest ones, the oldest first
}

// HangUp is the end of a connection by a caller with a held call.
type HangUp struct {
	At    time.Time     `json:"at"`
	After time.Duration `json:"after"` // how long the call was held
}

// Parameters for learning a client's time limit from its hang-ups.
const (
	shortestPatience = 3 * time.Second    // an earlier hang-up is an interruption, and not a client's time limit
	hangUpsApart     = 5 * time.Second    // hang-ups at one moment have one cause, such as the end of the client's process
	keepHangUps      = 7 * 24 * time.Hour // so that a client whose limit was raised is held longer again
	mostHangUps      = 8
)

// WithHangUp returns the caller with one more hang-up. If nothing can be learned from this hang-up, changed is false.
func (c Caller) WithHangUp(h HangUp) (after Caller, changed bool) {
	if h.After < shortestPatience || len(c.HangUps) > 0 && h.At.Sub(c.HangUps[len(c.HangUps)-1].At) < hangUpsApart {
		return c, false
	}
	c.HangUps = append(slices.Clone(c.HangUps), h)
	c.HangUps = c.HangUps[max(0, len(c.HangUps)-mostHangUps):]
	return c, true
}

// Patience returns how long a call can be held before the caller would hang up. If this is unknown, it returns 0. Two
// hang-ups after the same time show a time limit. A person may have caused a single hang-up. The result is 80 % of the
// shortest limit.
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

// ReadPatience reads only the knowledge from a caller's hang-ups. The list of its requests may be long.
func ReadPatience(r store.Reader, name string) (c Caller, err error) {
	var of struct {
		HangUps []HangUp `json:"hang_ups"`
	}
	_, err = readJSON(r, store.SettingCaller+name, &of)
	return Caller{HangUps: of.HangUps}, err
}

// ReadCaller reads the stored data about a caller, or the zero value.
func ReadCaller(r store.Reader, name string) (c Caller, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingCaller+name, &c)
	return c, s, err
}

// With returns the caller with a request added or removed. changed is false if the list of requests stays the same.
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

// Webhook records how the deliveries to a caller's webhook went.
type Webhook struct {
	Target   string    `json:"target"`             // the webhook that this is about; see approvers.Webhook
	Failures int       `json:"failures,omitempty"` // since the last success
	Since    time.Time `json:"since,omitzero"`     // the first of these failures
	Next     time.Time `json:"next,omitzero"`      // nothing is sent before this time
	Off      time.Time `json:"off,omitzero"`       // nothing is sent any more since then; zero: the webhook works
	Why      string    `json:"why,omitempty"`      // the last failure
}

// ReadWebhook reads how the deliveries to a caller's webhook went. If the record is about an earlier webhook of the
// caller, ReadWebhook ignores it.
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
	Since  time.Time `json:"since"` // when a process that signs with it last started
}

// ReadReceiptKeys reads the keys, or none.
func ReadReceiptKeys(r store.Reader) (k ReceiptKeys, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingReceiptKeys, &k)
	return k, s, err
}

// mostReceiptKeys is the maximum number of kept keys, and keepReceiptKeys is how long a key is kept. The latest key is
// always kept.
const (
	mostReceiptKeys = 64
	keepReceiptKeys = 90 * 24 * time.Hour
)

// With returns the keys and one more key. With drops keys that have been unused for a long time.
func (k ReceiptKeys) With(key ReceiptKey) ReceiptKeys {
	kept := slices.DeleteFunc(slices.Clone(k.Keys), func(o ReceiptKey) bool { return o.ID == key.ID || key.Since.Sub(o.Since) > keepReceiptKeys })
	kept = append(kept, key)
	return ReceiptKeys{kept[max(0, len(kept)-mostReceiptKeys):]}
}

// readJSON reads a setting's value into to. If there is no such setting, to stays unchanged.
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
