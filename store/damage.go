package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Damage is a row, or a part of the file, whose contents have changed since they were written.
type Damage struct {
	Bucket string // the bucket it is in
	Key    string // the row's key in readable form; empty: the damage is not in a single row
	ID     string // the record's id, if the key is one; for a message, its conversation; for an audit record, its chain
	Seq    uint64 // for a message or an audit record
	Why    string
	Mended bool // the row was rebuilt from other stored data
}

// WhyLost is the reason for a record of the history that was lost before the store was salvaged. Reading such a record
// is an error, but the record does not count as damage of the store.
const WhyLost = "it was lost before the store was salvaged"

func (d Damage) String() string {
	if d.Key == "" {
		return fmt.Sprintf("%s: %s", d.Bucket, d.Why)
	}
	return fmt.Sprintf("%s, row %s: %s", d.Bucket, d.Key, d.Why)
}

// DamagedError is an ErrDamaged about one row. All other rows stay readable.
type DamagedError struct{ Damage }

func (e *DamagedError) Error() string { return "store: a row is damaged: " + e.String() }

// Unwrap returns ErrDamaged.
func (e *DamagedError) Unwrap() error { return ErrDamaged }

// Inspected is a backend that detects damage.
type Inspected interface {
	// Damage lists the known damage that is not resolved yet.
	Damage() []Damage
	// Inspect reads everything in the store, and records the damage that it finds. Inspect works slowly, so it does not
	// slow down other callers of the store.
	Inspect(ctx context.Context) error
	// OnDamage registers a function. The function is called with each damage, including damage that was found earlier.
	// fn must not use the store.
	OnDamage(fn func(Damage))
}

// mostDamages limits how many damaged rows are remembered. A store with more damaged rows should be replaced.
const mostDamages = 1000

// Damages collects a backend's known damage. Damages remembers each damage once, and calls the registered functions
// with the damage. The zero value is ready for use.
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

// When the damage of a row is resolved, Over forgets it.
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

// OnDamage registers a function. The function is called with each damage, including damage that was found earlier.
func (d *Damages) OnDamage(fn func(Damage)) {
	d.mu.Lock()
	known := slices.Clone(d.known)
	d.tell = append(d.tell, fn)
	d.mu.Unlock()
	for _, x := range known {
		fn(x)
	}
}

// DamageOf lists the damaged rows of a store, and the rows that were repaired since the store was opened. If the
// backend does not detect damage, both lists are empty.
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

// SetAside is the part of a transaction that takes a damaged row out of normal use. Only backends that store rows
// themselves implement SetAside.
type SetAside interface {
	// SetAside moves the damaged record with an id and its index rows to a place that the program never reads. After
	// that, the record can be written again. SetAside does not change an undamaged or missing record. done reports
	// whether the record was moved. of lists the keys under which indexes listed the record. Such a key is the
	// conversation of a turn, an execution or a request, the turn of a call, or the place of a conversation.
	SetAside(bucket, id string) (of []string, done bool, err error)
}
