package bolt

import (
	"errors"

	"countersign/store"
)

// damages holds the known damage of a file.
type damages struct{ store.Damages }

// When the damage of a row is resolved, over forgets it.
func (d *damages) over(in bucket, key []byte) { d.Over(in.String(), shownKey(key)) }

// If an error says that a page is unreadable, failed records this. Errors about single rows are ignored.
func (d *damages) failed(err error) {
	var row *store.DamagedError
	if errors.Is(err, store.ErrDamaged) && !errors.As(err, &row) {
		d.Found(store.Damage{Bucket: "file", Why: "a page of it can't be read: " + err.Error()})
	}
}

// Damage lists the known damage that is not resolved yet.
func (s *Store) Damage() []store.Damage { return s.damage.Damage() }

// OnDamage registers a function. The function is called with each damage, including damage that was found earlier. fn
// must not use the store.
func (s *Store) OnDamage(fn func(store.Damage)) { s.damage.OnDamage(fn) }
