package bolt

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Keys sort by their first parts, then by their second parts. A key shows where a part ends, so ("a", "bc") and ("ab",
// "c") give different keys.
func TestKeysSortLikeTheirParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 2, 'a', 'b', 0xff, 0x10ffff}), 0, 4, -1)
		a1, a2 := part.Draw(t, "a1"), part.Draw(t, "a2")
		b1, b2 := part.Draw(t, "b1"), part.Draw(t, "b2")
		a, b := text(text(nil, a1), a2), text(text(nil, b1), b2)
		want := strings.Compare(a1, b1)
		if want == 0 {
			want = strings.Compare(a2, b2)
		}
		if got := bytes.Compare(a, b); got != want {
			t.Fatalf("%q %q against %q %q: the keys compare as %d, want %d", a1, a2, b1, b2, got, want)
		}
		if bytes.HasPrefix(b, text(nil, a1)) != (a1 == b1) {
			t.Fatalf("%q %q is taken for a key that begins with %q", b1, b2, a1)
		}
		if bytes.Compare(b, beyond(text(nil, a1))) < 0 != (b1 <= a1) {
			t.Fatalf("%q %q lies on the wrong side of all that begins with %q", b1, b2, a1)
		}
		got1, rest, ok1 := cutText(a)
		got2, rest, ok2 := cutText(rest)
		if got1 != a1 || got2 != a2 || !ok1 || !ok2 || len(rest) > 0 {
			t.Fatalf("%q %q reads back as %q %q", a1, a2, got1, got2)
		}
	})
}

// cutText refuses a damaged key, unless the function text could have written the key. If cutText accepted any other
// key, a reader that continues after the key could get back to an earlier key.
func TestDamagedKeysAreNotRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := number(text(nil, rapid.SampledFrom([]string{"req_1", "a\x00b", "é"}).Draw(t, "name")), 7)
		at := rapid.IntRange(0, len(k)-1).Draw(t, "at")
		k[at] = rapid.Byte().Draw(t, "byte")
		if name, rest, ok := cutText(k); ok && !bytes.Equal(append(text(nil, name), rest...), k) {
			t.Fatalf("%q is read as %q, which has another key", k, name)
		}
	})
}

func TestMomentsSort(t *testing.T) {
	times := []time.Time{
		{}, time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC), time.Unix(0, 0), time.Unix(0, 1000), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for i := range times[1:] {
		if bytes.Compare(moment(nil, times[i]), moment(nil, times[i+1])) >= 0 {
			t.Errorf("%v does not sort before %v", times[i], times[i+1])
		}
	}
}

// cutHeader does not panic. If cutHeader accepts bytes, the header can be written and read again without a change.
func FuzzHeader(f *testing.F) {
	f.Add([]byte{})
	f.Add(header{version: 3, birth: 1 << 40, index: []row{{outboxRef, []byte("key")}, {outboxSlackMessage, nil}}}.append(nil))
	f.Add([]byte{1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, rest, err := cutHeader(b)
		if err != nil {
			return
		}
		again, rest2, err := cutHeader(h.append(nil))
		if err != nil || len(rest2) > 0 || again.version != h.version || again.birth != h.birth || len(again.index) != len(h.index) || len(rest) > len(b) {
			t.Fatalf("%x reads as %+v and then as %+v (%v)", b, h, again, err)
		}
	})
}
