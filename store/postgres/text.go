package postgres

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"countersign/store"
)

// PostgreSQL's type text can't store the byte 00. In a column, the byte 00 is stored as 01 01, and the byte 01 is
// stored as 01 02. With this encoding, columns sort like the original texts.
var (
	escaper   = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")
	unescaper = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")
)

// text returns a text in the form in which a column stores it. U+FFFD replaces invalid UTF-8, as in the record's JSON.
func text[S ~string](s S) string {
	t := string(s)
	if !utf8.ValidString(t) {
		t = string([]rune(t))
	}
	if strings.IndexByte(t, 0) < 0 && strings.IndexByte(t, 1) < 0 {
		return t
	}
	return escaper.Replace(t)
}

// readText returns the original text of a column.
func readText(s string) string {
	if strings.IndexByte(s, 1) < 0 {
		return s
	}
	return unescaper.Replace(s)
}

// maxKey is the maximum length of an id in bytes. An index row has at most two ids, and must fit in a third of a page.
const maxKey = 1200

// keyable returns an error if a string can't be an id.
func keyable(what, s string) error { return store.CheckKey(what, s, maxKey) }

// moment returns a time in UTC with the precision of every backend: microseconds.
func moment(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// orNull returns nil for the zero time.
func orNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return moment(t)
}

// number converts a number to a signed integer, because PostgreSQL has no unsigned integers.
func number(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
