package workflow

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// newID makes an id that says what it names. It begins with the time in milliseconds, so that what is written together
// lies together in the store, and ends with 80 random bits, so that nobody can guess it.
func newID(kind string, now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	rand.Read(b[6:]) // never fails: crypto/rand
	return kind + "_" + sortable.EncodeToString(b[:])
}

// sortable writes bytes so that texts sort as they do.
var sortable = base32.HexEncoding.WithPadding(base32.NoPadding)

func (t *tx) newID(kind string) string { return newID(kind, t.now) }
