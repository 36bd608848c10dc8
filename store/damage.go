package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Damage describes a row, or a part of the file, whose bytes are not as the store wrote them.
type Damage struct {
	Bucket string // the bucket of the row
	Key    string // the row's key in readable form; empty: the damage does not concern a single row
	ID     string // the record's id, if the key is an id; for a message, the conversation; for an audit record, the chain
	Seq    uint64 // for a message or an audit record: its Seq
	Why    string
	Mended bool // the row was rebuilt from other stored data
}

// WhyLost is the value of Damage.Why for an audit record that was already lost when the store was salvaged. Reading
// this record fails, but the store does not list the record as damage.
const WhyLost = "it was lost before the store was salvaged"

func (d Damage) String() string {
	if d.Key == "" {
		return fmt.Sprintf("%s: %s", d.Bucket, d.Why)
	}
	return fmt.Sprintf("%s, row %s: %s", d.Bucket, d.Key, d.Why)
}

// DamagedError is an ErrDamaged that concerns only one row. All other rows are readable.
type DamagedError struct{ Damage }

func (e *DamagedError) Error() string { return "store: a row is damaged: " + e.String() }

// Unwrap returns ErrDamaged.
func (e *DamagedError) Unwrap() error { return ErrDamaged }

// Inspected is a backend that detects damage.
type Inspected interface {
	// Damage lists the known damage that is not resolved yet.
	Damage() []Damage
	// Inspect reads everything in the store, and adds the damage that it finds to the list of known damage. Inspect
	// pauses often, so it does not slow down other callers of the store.
	Inspect(ctx context.Context) error
	// OnDamage registers fn. The backend calls fn with each damage, including damage that was found before the
	// registration. fn must not use the store.
	OnDamage(fn func(Damage))
}

// mostDamages is the maximum length of the list of known damage. Further damage is ignored, because such a store
// should be replaced.
const mostDamages = 1000

// Damages is the list of a backend's known damage. Damages lists each damage once, and calls the registered functions
// once for each damage. The zero value is ready for use.
type Damages struct {
	mu    sync.Mutex
	known []Damage
	tell  []func(Damage)
}

// Found records damage.
func (d *Damages) Found(x Damage) {
	d.mu.Lock()
	if len(d.known) == mostDamages || slices.ContainsFunc(d.known, func(k Damage) bool {
		return k.Bucket == x.Bucket && k.Key == x.Key && (k.Key != "" || k.Why == x.Why)
	}) {
		d.mu.Unlock()
		return
	}
	d.known = append(d.known, x)
	tell := slices.Clone(d.tell)
	d.mu.Unlock()
	for _, fn := range tell {
		fn(x)
	}
}

// Over removes the damage of a row from the list. The caller has resolved this damage.
func (d *Damages) Over(bucket, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = slices.DeleteFunc(d.known, func(k Damage) bool { return k.Bucket == bucket && k.Key == key })
}

// Damage lists the known damage that is not resolved yet.
func (d *Damages) Damage() []Damage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.known)
}

// OnDamage registers fn, and calls fn with each known damage. Damages also calls fn with each damage that is found
// later.
func (d *Damages) OnDamage(fn func(Damage)) {
	d.mu.Lock()
	known := slices.Clone(d.known)
	d.tell = append(d.tell, fn)
	d.mu.Unlock()
	for _, x := range known {
		fn(x)
	}
}

// DamageOf lists the known damage of a store: first the damage that remains, then the rows that were rebuilt from other
// stored data. If the backend does not detect damage, both lists are empty.
func DamageOf(s Store) (damaged, mended []Damage) {
	in, ok := s.(Inspected)
	if !ok {
		return nil, nil
	}
	for _, x := range in.Damage() {
		if x.Mended {
			mended = append(mended, x)
		} else {
			damaged = append(damaged, x)
		}
	}
	return damaged, mended
}

// SetAside is a transaction that can remove a damaged record from normal use.
type SetAside interface {
	// SetAside moves the damaged record with the id to a place that no method of Reader reads, and removes its index
	// rows. A new record with the same id can then be written. SetAside does not change an undamaged or missing
	// record. done reports whether the record was moved. The first result lists the owners of the record, which
	// SetAside reads from the index rows. For example, the owner of a turn is its conversation, and the owner of a
	// call is its turn.
	SetAside(bucket, id string) (of []string, done bool, err error)
	// EraseSetAside deletes damaged records that SetAside, or the repair of a store, moved before the given time. A
	// backend may not know when a record was moved. Such a backend counts from the first call of EraseSetAside that
	// finds the record. now is the time of the call. Each call handles up to limit records. done reports whether no
	// record is left to handle.
	EraseSetAside(now, before time.Time, limit int) (erased int, done bool, err error)
}
