package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"countersign/internal/visible"
	"countersign/store"
)

// Unread lists the damaged rows of the history that a reader left out. A function that read all other rows returns
// Unread as its error.
type Unread struct{ Rows []store.Damage }

// Add adds the damaged rows that err lists. Add returns err if err has another cause.
func (u *Unread) Add(err error) error {
	rows, ok := damagedRows(err)
	if !ok {
		return err
	}
	u.Rows = append(u.Rows, rows...)
	return nil
}

// Take adds the rows that an *Unread error of EachChain lists. Take returns any other error unchanged.
func (u *Unread) Take(err error) error {
	var left *Unread
	if !errors.As(err, &left) {
		return err
	}
	u.Rows = append(u.Rows, left.Rows...)
	return nil
}

// Err returns u as an error. If no row was left out, Err returns nil.
func (u Unread) Err() error {
	if len(u.Rows) == 0 {
		return nil
	}
	return &u
}

func (u *Unread) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the history is damaged, and the part that can't be read was left out: %s", count(len(u.Rows), "row"))
	for _, x := range u.Rows {
		b.WriteString("\n" + lost(x))
	}
	return b.String()
}

// Unwrap makes errors.Is match store.ErrDamaged.
func (u *Unread) Unwrap() error { return store.ErrDamaged }

// seqs returns the sequence numbers of the records that were left out.
func (u Unread) seqs() (seqs []uint64) {
	for _, x := range u.Rows {
		if x.Bucket == "audit" {
			seqs = append(seqs, x.Seq)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(seqs)))
}

// The function describes a damaged row on one line.
func lost(x store.Damage) string {
	switch {
	case x.Bucket == "audit" && x.ID != "":
		return visible.Line(fmt.Sprintf("chain %s: record %d is damaged: %s", x.ID, x.Seq, x.Why))
	case x.Bucket == "audit_payloads" && x.ID != "":
		return visible.Line(fmt.Sprintf("chain %s: the payload of record %d is damaged: %s", x.ID, x.Seq, x.Why))
	}
	return visible.Line(x.String())
}

// damagedRows returns the damaged rows of an error. If any of the joined errors has another cause, ok is false.
func damagedRows(err error) (rows []store.Damage, ok bool) {
	if all, joined := err.(interface{ Unwrap() []error }); joined { //nolint:errorlint // each error is examined
		for _, e := range all.Unwrap() {
			more, ok := damagedRows(e)
			if !ok {
				return nil, false
			}
			rows = append(rows, more...)
		}
		return rows, len(rows) > 0
	}
	var row *store.DamagedError
	if !errors.As(err, &row) {
		return nil, false
	}
	return []store.Damage{row.Damage}, true
}
