package bolt

import (
	"errors"
	"slices"
	"sync"

	"countersign/store"
)

// mostDamages limits how many damaged rows are remembered. A file with more should be replaced.
const mostDamages = 1000

// damages remembers each damage once, and the functions to call for each.
type damages struct {
	mu    sync.Mutex
	known []store.Damage
	more  int // number of damages that are not remembered
	tell  []func(store.Damage)
}

// found records damage.
func (d *damages) found(x store.Damage) {
	d.mu.Lock()
	if slices.ContainsFunc(d.known, func(k store.Damage) bool {
		return k.Bucket == x.Bucket && k.Key == x.Key && (k.Key != "" || k.Why == x.Why)
	}) {
		d.mu.Unlock()
		return
	}
	if len(d.known) == mostDamages {
		d.more++
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

// over forgets the damage of a row once it is resolved.
func (d *damages) over(in bucket, key []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = slices.DeleteFunc(d.known, func(k store.Damage) bool { return k.Bucket == in.String() && k.Key == shownKey(key) })
}

// failed records that a page can't be read, if an error says so. Errors about single rows are ignored.
func (d *damages) failed(err error) {
	var row *store.DamagedError
	if errors.Is(err, store.ErrDamaged) && !errors.As(err, &row) {
		d.found(store.Damage{Bucket: "file", Why: "a page of it can't be read: " + err.Error()})
	}
}

// Damage lists known, unresolved damage.
func (s *Store) Damage() []store.Damage {
	s.damage.mu.Lock()
	defer s.damage.mu.Unlock()
	return slices.Clone(s.damage.known)
}

// OnDamage registers a function that is called with all damage, found earlier or later. fn must not use the store.
func (s *Store) OnDamage(fn func(store.Damage)) {
	s.damage.mu.Lock()
	known := slices.Clone(s.damage.known)
	s.damage.tell = append(s.damage.tell, fn)
	s.damage.mu.Unlock()
	for _, x := range known {
		fn(x)
	}
}
