package bolt

import (
	"errors"

	"countersign/store"
)

// damages holds the known damage of a file.
type damages struct{ store.Damages }

// over removes the resolved damage of a row from the list.
func (d *damages) over(in bucket, key []byte) { d.Over(in.String(), shownKey(key)) }

// failed records the damage if an error reports an unreadable page. failed ignores errors about single rows.
func (d *damages) failed(err error) {
	var row *store.DamagedError
	if errors.Is(err, store.ErrDamaged) && !errors.As(err, &row) {
		d.Found(store.Damage{Bucket: "file", Why: "a page of it can't be read: " + err.Error()})
	}
}

// Damage lists the known damage that is not resolved yet.
func (s *Store) Damage() []store.Damage { return s.damage.Damage() }

// OnDamage registers fn. The store calls fn with each damage, including damage that was found before the registration.
// fn must not use the store.
func (s *Store) OnDamage(fn func(store.Damage)) { s.damage.OnDamage(fn) }
