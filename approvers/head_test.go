package approvers_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"countersign/approvers"
)

func sealKey(t *testing.T) approvers.SealKey {
	t.Helper()
	text, err := approvers.NewSealKey(rand.Reader, "countersign-test")
	if err != nil {
		t.Fatal(err)
	}
	key, err := approvers.ParseSealKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// heads is a chain of signed heads. Each added head covers seven leaves more than the previous head.
type heads struct {
	*testing.T
	last approvers.Head
	note string
	all  []string
}

func (h *heads) add(change func(*approvers.Head), keys ...approvers.SealKey) {
	h.Helper()
	next := approvers.Head{
		Origin: "countersign-test", Size: h.last.Size + 7, Root: tlog.Hash{byte(h.last.Number)}, Number: h.last.Number + 1,
		At: time.Date(2026, 5, 4, 12, 0, int(h.last.Number), 0, time.UTC),
	}
	if h.note != "" {
		next.Before = approvers.SumOf([]byte(h.note))
	}
	if change != nil {
		change(&next)
	}
	signed, err := next.Sign(keys...)
	if err != nil {
		h.Fatal(err)
	}
	h.last, h.note, h.all = next, signed, append(h.all, signed)
}

func takes(key approvers.SealKey, after string) func(*approvers.Head) {
	return func(h *approvers.Head) { h.Key, h.After = key.Public, after }
}

// verify checks the heads as a chain and returns the findings.
func (h *heads) verify(named ...string) (found []string) {
	h.Helper()
	c := approvers.HeadChain{Named: named}
	for i, signed := range h.all {
		read, err := approvers.ReadHead(signed)
		size := uint64(i+1) * 7
		if err == nil {
			size = read.Size
		}
		_, faults := c.Next(uint64(i)+1, size, signed)
		for _, f := range faults {
			found = append(found, f.Error())
		}
	}
	return found
}

func (h *heads) want(what string, found []string, texts ...string) {
	h.Helper()
	if len(found) != len(texts) {
		h.Errorf("%s: found %q, want %q", what, found, texts)
		return
	}
	for i := range texts {
		if !strings.Contains(found[i], texts[i]) {
			h.Errorf("%s: found %q, want %q", what, found[i], texts[i])
		}
	}
}

func TestHeadsFollowEachOther(t *testing.T) {
	key, other := sealKey(t), sealKey(t)
	whole := func() *heads {
		h := &heads{T: t}
		h.add(takes(key, ""), key)
		for range 4 {
			h.add(nil, key)
		}
		return h
	}
	h := whole()
	h.want("nothing was done", h.verify())
	h.want("its key is named", h.verify(key.Public))
	h.want("another key is named", h.verify(other.Public), "head 1: it is signed by the key")

	h.all = append(h.all[:2], h.all[3:]...)
	h.want("one is gone", h.verify(), "head 3: it says that it is head 4", "head 4: it says that it is head 5")
	h = whole()
	h.all[1], h.all[2] = h.all[2], h.all[1]
	if len(h.verify()) == 0 {
		t.Error("two changed places: not found")
	}
	h = whole()
	h.all = h.all[1:]
	if found := h.verify(); !strings.Contains(strings.Join(found, "\n"), "its key is unknown") {
		t.Errorf("the first is gone: %q", found)
	}

	forged := &heads{T: t}
	forged.add(takes(key, ""), key)
	forged.add(func(h *approvers.Head) { h.Root[7]++ }, other)
	forged.add(nil, key)
	forged.want("one is signed by somebody else", forged.verify(), "head 2: this is not a signed head")
	for what, change := range map[string]func(*approvers.Head){
		"another root":   func(h *approvers.Head) { h.Root[7]++ },
		"another time":   func(h *approvers.Head) { h.At = h.At.Add(time.Second) },
		"a smaller size": func(h *approvers.Head) { h.Size = 7 },
		"another origin": func(h *approvers.Head) { h.Origin = "countersign-other" },
	} {
		h := whole()
		replaced := &heads{T: t, last: approvers.Head{Size: 7, Number: 1}, note: h.all[0]}
		replaced.add(change, key)
		h.all[1] = replaced.all[0]
		if found := h.verify(); len(found) == 0 {
			t.Errorf("a head with %s, signed with the key itself: not found", what)
		}
	}
}

func TestKeysTakeOver(t *testing.T) {
	one, two, thief := sealKey(t), sealKey(t), sealKey(t)
	grow := func(change func(*approvers.Head), keys ...approvers.SealKey) *heads {
		h := &heads{T: t}
		h.add(takes(one, ""), one)
		h.add(nil, one)
		h.add(change, keys...)
		h.add(nil, keys[0])
		return h
	}
	h := grow(takes(two, one.Public), two, one)
	h.want("the old key signed it", h.verify())
	h.want("the old key signed it, and is named", h.verify(one.Public))
	h.want("the new one alone is named", h.verify(two.Public), "which is not trusted")

	h = grow(takes(two, one.Public), two)
	h.want("the old key was lost", h.verify(), "head 3: the key "+two.Public+" replaces")
	h.want("the old key was lost, and is named", h.verify(one.Public), "head 3: the key "+two.Public+" replaces")
	h.want("the old key was lost, and both are named", h.verify(two.Public, one.Public))

	h = grow(takes(thief, one.Public), thief)
	if found := h.verify(one.Public, two.Public); len(found) == 0 {
		t.Error("a third key took over: not found")
	}
	h = grow(takes(two, thief.Public), two, one)
	h.want("another key is said to be the old one", h.verify(one.Public, two.Public, thief.Public), "head 3: it replaces the key")
	h = grow(takes(two, one.Public), one)
	if found := h.verify(one.Public, two.Public); len(found) == 0 {
		t.Error("the new key has not signed it: not found")
	}
	h = grow(nil, two)
	if found := h.verify(one.Public, two.Public); len(found) == 0 {
		t.Error("a key took over without a word: not found")
	}
}

// A change of any byte of a signed head is detected.
func TestEveryByteOfAHeadIsSigned(t *testing.T) {
	key, old := sealKey(t), sealKey(t)
	h := &heads{T: t}
	h.add(takes(old, ""), old)
	h.add(takes(key, old.Public), key, old)
	h.add(nil, key)
	tried := 0
	for n, keys := range [][]string{{old.Public}, {key.Public, old.Public}, {key.Public}} {
		signed := h.all[n]
		if _, err := approvers.OpenHead(signed, keys...); err != nil {
			t.Fatal(err)
		}
		for i := range len(signed) {
			for bit := range 8 {
				flipped := []byte(signed)
				flipped[i] ^= 1 << bit
				if _, err := approvers.OpenHead(string(flipped), keys...); err == nil {
					t.Errorf("head %d, byte %d, bit %d: not found in\n%s", n+1, i, bit, flipped)
				}
				tried++
			}
		}
		for _, more := range []string{"\n", "— x AAAAAAA=\n", signed[strings.LastIndex(signed, "— "):]} {
			if _, err := approvers.OpenHead(signed+more, keys...); err == nil {
				t.Errorf("head %d with %q more: not found", n+1, more)
			}
		}
	}
	if tried < 8*600 {
		t.Errorf("only %d bits were flipped", tried)
	}
}

func FuzzReadHead(f *testing.F) {
	text := approvers.Head{Origin: "o", Size: 1, Number: 1, At: time.Unix(0, 0), Before: approvers.Sum{1}, Key: "k", After: "l"}.Text()
	f.Add(text + "\n— o AAAAAAAAAA==\n")
	f.Add(text)
	f.Add("")
	f.Fuzz(func(t *testing.T, signed string) {
		h, err := approvers.ReadHead(signed)
		if err == nil && !strings.HasPrefix(signed, h.Text()) {
			t.Errorf("%q was read as %q", signed, h.Text())
		}
	})
}

func TestSealKeys(t *testing.T) {
	text, err := approvers.NewSealKey(rand.Reader, "countersign-abc")
	if err != nil {
		t.Fatal(err)
	}
	key, err := approvers.ParseSealKey(text)
	if err != nil || key.Origin() != "countersign-abc" || approvers.CheckPublicKey(key.Public) != nil {
		t.Errorf("%+v, %v", key, err)
	}
	for _, wrong := range []string{"", key.Public, text[:len(text)-4], strings.Replace(text, "abc", "abd", 1), "PRIVATE+KEY+a+b+c"} {
		if _, err := approvers.ParseSealKey(wrong); err == nil {
			t.Errorf("%q was taken for a key", wrong)
		}
		if wrong != key.Public && approvers.CheckPublicKey(wrong) == nil {
			t.Errorf("%q was taken for a public key", wrong)
		}
	}
}
