package bolt

import (
	"encoding/binary"
	"strings"
	"time"
	"unicode/utf8"

	"go.etcd.io/bbolt"

	"countersign/store"
)

// text appends a text part; see the package documentation for the encoding. U+FFFD replaces invalid UTF-8, as in the
// record's JSON.
func text(k []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	if k == nil {
		k = make([]byte, 0, len(s)+40) // room for the parts that follow
	}
	for {
		i := strings.IndexByte(s, 0)
		if i < 0 {
			break
		}
		k = append(k, s[:i]...)
		k = append(k, 0, 0xff)
		s = s[i+1:]
	}
	k = append(k, s...)
	return append(k, 0, 1)
}

// cutText reads a text part from the front of a key. If the function text could not have written this part, ok is
// false.
func cutText(k []byte) (s string, rest []byte, ok bool) {
	var b strings.Builder
	for i := 0; i+1 < len(k); i++ {
		switch {
		case k[i] != 0:
			b.WriteByte(k[i])
		case k[i+1] == 1:
			return b.String(), k[i+2:], utf8.ValidString(b.String())
		case k[i+1] == 0xff:
			b.WriteByte(0)
			i++
		default:
			return "", nil, false
		}
	}
	return "", nil, false
}

func number(k []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(k, n) }

// signed appends a number that may be negative.
func signed(k []byte, n int64) []byte { return number(k, uint64(n)^(1<<63)) }

func moment(k []byte, t time.Time) []byte { return signed(k, t.UnixMicro()) }

func readMoment(k []byte) time.Time {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(k) ^ 1<<63)).UTC()
}

// beyond returns the smallest key above all keys that start with the prefix. The prefix must end with a text part.
func beyond(prefix []byte) []byte {
	k := append([]byte(nil), prefix...)
	k[len(k)-1]++ // changes the byte 01 that ends the text to 02
	return k
}

// keyable returns an error if a string is not allowed in a key.
func keyable(what, s string) error { return store.CheckKey(what, s, maxKeyPart) }

// maxKeyPart is the maximum length of a part of a key. The limit keeps a key of several fully escaped parts below
// bbolt's limit.
const maxKeyPart = bbolt.MaxKeySize / 16

// longestKey is the length of the longest possible key: three fully escaped parts, and numbers.
const longestKey = 6*maxKeyPart + 64
