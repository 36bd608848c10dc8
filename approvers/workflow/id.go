package workflow

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// newID returns an id that begins with the kind of its record. Then follow the time in milliseconds, so that records
// written together are stored together, and 80 random bits, so that ids can't be guessed.
func newID(kind string, now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	rand.Read(b[6:]) // crypto/rand never fails
	return kind + "_" + sortable.EncodeToString(b[:])
}

// sortable is an encoding whose texts sort like the encoded bytes.
var sortable = base32.HexEncoding.WithPadding(base32.NoPadding)

func (t *tx) newID(kind string) string { return newID(kind, t.now) }
