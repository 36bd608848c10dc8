package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"countersign/store"
)

// Caller counts the requests of one caller that wait for people.
type Caller struct {
	Pending []string `json:"pending,omitempty"` // their ids
}

// ReadCaller reads what is stored about a caller, or the zero value.
func ReadCaller(r store.Reader, name string) (c Caller, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingCaller+name, &c)
	return c, s, err
}

// With returns the caller with a request added or removed. changed is false if that changes nothing.
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

// Webhook says how the deliveries to a caller's webhook went.
type Webhook struct {
	Target   string    `json:"target"`             // the webhook that this is about; see approvers.Webhook
	Failures int       `json:"failures,omitempty"` // since the last success
	Since    time.Time `json:"since,omitzero"`     // the first of these failures
	Next     time.Time `json:"next,omitzero"`      // nothing is sent before that
	Off      time.Time `json:"off,omitzero"`       // nothing is sent any more since then; zero: the webhook works
	Why      string    `json:"why,omitempty"`      // the last failure
}

// ReadWebhook reads how the deliveries to a caller's webhook went. What is known about another webhook of the caller is
// ignored.
func ReadWebhook(r store.Reader, client, target string) (w Webhook, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingWebhook+client, &w)
	if w.Target != target {
		w = Webhook{Target: target}
	}
	return w, s, err
}

// ReceiptKeys are the public keys that verify receipts. Each replica has a key of its own.
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

// mostReceiptKeys limits the keys that are kept, and keepReceiptKeys says for how long. The latest key is always kept.
const (
	mostReceiptKeys = 64
	keepReceiptKeys = 90 * 24 * time.Hour
)

// With returns the keys with one added. Keys that have not been used for a long time are left out.
func (k ReceiptKeys) With(key ReceiptKey) ReceiptKeys {
	kept := slices.DeleteFunc(slices.Clone(k.Keys), func(o ReceiptKey) bool { return o.ID == key.ID || key.Since.Sub(o.Since) > keepReceiptKeys })
	kept = append(kept, key)
	return ReceiptKeys{kept[max(0, len(kept)-mostReceiptKeys):]}
}

// readJSON reads a setting's value into to, which stays unchanged if there is no such setting.
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
