package approvers

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Head states the journal's content at one time. The text of a head is a checkpoint as defined by
// c2sp.org/tlog-checkpoint. The lines after the third line are an extension of this project. The text is signed as a
// note (golang.org/x/mod/sumdb/note).
type Head struct {
	Origin string    // the name of the installation and of its keys
	Size   uint64    // how many leaves the head covers
	Root   tlog.Hash // root of the tree over these leaves
	Number uint64    // from 1, without gaps
	At     time.Time // to the second
	Before Sum       // hash of the whole note of the previous head; zero for the first
	Key    string    // the public key that signs from this head on; empty: the same as before
	After  string    // the public key that Key replaces; empty: Key is the first
}

// ErrHead means that a text is not a signed head.
var ErrHead = errors.New("this is not a signed head")

// Text returns the text to sign.
func (h Head) Text() string {
	lines := []string{
		h.Origin, strconv.FormatUint(h.Size, 10), h.Root.String(),
		"number " + strconv.FormatUint(h.Number, 10), "time " + h.At.UTC().Format(time.RFC3339),
	}
	if h.Before != (Sum{}) {
		lines = append(lines, "before "+h.Before.String())
	}
	if h.Key != "" {
		lines = append(lines, "key "+h.Key)
	}
	if h.After != "" {
		lines = append(lines, "after "+h.After)
	}
	return strings.Join(lines, "\n") + "\n"
}

// ParseHead parses the exact format that Text writes.
func ParseHead(text string) (h Head, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 6 || lines[len(lines)-1] != "" {
		return Head{}, ErrHead
	}
	h.Origin = lines[0]
	var errs [5]error
	h.Size, errs[0] = strconv.ParseUint(lines[1], 10, 63)
	h.Root, errs[1] = tlog.ParseHash(lines[2])
	for _, line := range lines[3 : len(lines)-1] {
		name, value, _ := strings.Cut(line, " ")
		switch name {
		case "number":
			h.Number, errs[2] = strconv.ParseUint(value, 10, 64)
		case "time":
			h.At, errs[3] = time.Parse(time.RFC3339, value)
			h.At = h.At.UTC()
		case "before":
			var b []byte
			b, errs[4] = hex.DecodeString(value)
			copy(h.Before[:], b)
		case "key":
			h.Key = value
		case "after":
			h.After = value
		}
	}
	if errors.Join(errs[:]...) != nil || h.Text() != text {
		return Head{}, ErrHead
	}
	return h, nil
}

// Sign signs the head with the given keys. More than one key is given only when a new key replaces the old key.
func (h Head) Sign(keys ...SealKey) (string, error) {
	signers := make([]note.Signer, len(keys))
	for i, k := range keys {
		signers[i] = k.signer
	}
	signed, err := note.Sign(&note.Note{Text: h.Text()}, signers...)
	return string(signed), err
}

// ReadHead parses a note without verifying its signatures.
func ReadHead(signed string) (Head, error) {
	_, err := note.Open([]byte(signed), nil)
	var unverified *note.UnverifiedNoteError
	if !errors.As(err, &unverified) {
		return Head{}, ErrHead
	}
	return ParseHead(unverified.Note.Text)
}

// OpenHead parses a note and verifies its signatures. The note must have exactly one signature of each given key, and
// no other signature.
func OpenHead(signed string, keys ...string) (Head, error) {
	verifiers := make([]note.Verifier, len(keys))
	for i, key := range keys {
		v, err := note.NewVerifier(key)
		if err != nil {
			return Head{}, fmt.Errorf("the key %q: %w", key, err)
		}
		verifiers[i] = v
	}
	n, err := note.Open([]byte(signed), note.VerifierList(verifiers...))
	if err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrHead, err)
	}
	for _, v := range verifiers {
		if !slices.ContainsFunc(n.Sigs, func(s note.Signature) bool { return s.Name == v.Name() && s.Hash == v.KeyHash() }) {
			return Head{}, fmt.Errorf("%w: %s+%08x has not signed it", ErrHead, v.Name(), v.KeyHash())
		}
	}
	whole := n.Text + "\n"
	for _, s := range n.Sigs {
		raw, err := base64.StdEncoding.DecodeString(s.Base64)
		if err != nil {
			return Head{}, ErrHead
		}
		whole += "— " + s.Name + " " + base64.StdEncoding.EncodeToString(raw) + "\n"
	}
	if whole != signed {
		return Head{}, fmt.Errorf("%w: it contains more than the signed text", ErrHead)
	}
	return ParseHead(n.Text)
}

// SignedBy reports whether a key has signed a note.
func SignedBy(signed, key string) bool {
	v, err := note.NewVerifier(key)
	if err != nil {
		return false
	}
	_, err = note.Open([]byte(signed), note.VerifierList(v))
	return err == nil
}

// HeadChain verifies heads one after the other. HeadChain verifies the heads' numbers, links and signatures.
type HeadChain struct {
	// Named lists the public keys that the operator trusts. If Named is empty, the first head's own key is trusted.
	Named []string

	key  string   // the current signing key
	keys []string // all signing keys
	last Head
	sum  Sum // hash of the last note
}

// Key returns the public key that signed the last head.
func (c *HeadChain) Key() string { return c.key }

// Keys returns all public keys that signed heads.
func (c *HeadChain) Keys() []string { return slices.Clone(c.keys) }

// Last returns the last head.
func (c *HeadChain) Last() Head { return c.last }

// Next verifies the next stored head, including the number and the size that are stored with the head. Next returns the
// faults that it finds. After a fault, the caller can call Next with the following heads.
func (c *HeadChain) Next(number, size uint64, signed string) (Head, []error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("head %d: %w", number, fmt.Errorf(format, args...)))
	}
	h, err := ReadHead(signed)
	if err != nil {
		fault("it can't be read: %w", err)
		c.last.Number, c.sum = number, SumOf([]byte(signed))
		return Head{}, faults
	}
	switch {
	case h.Number != number || number != c.last.Number+1:
		fault("it says that it is head %d, and comes after head %d: a head is missing or out of order", h.Number, c.last.Number)
	case number == 1 && h.Before != Sum{}, number > 1 && h.Before != c.sum:
		fault("it does not follow head %d: one of the two was replaced", c.last.Number)
	case h.Size != size || h.Size <= c.last.Size:
		fault("it covers %d records, its row says %d, and the head before it covers %d", h.Size, size, c.last.Size)
	case c.last.Origin != "" && h.Origin != c.last.Origin:
		fault("it belongs to another installation: %s instead of %s", h.Origin, c.last.Origin)
	}
	if err := c.signed(h, signed); err != nil {
		fault("%w", err)
	}
	c.last, c.sum = h, SumOf([]byte(signed))
	return h, faults
}

// signed verifies that all required keys have signed this head.
func (c *HeadChain) signed(h Head, signed string) error {
	before := c.key
	if h.Key != "" {
		c.key = h.Key // even an untrusted key, so that the remaining heads are verified too
		c.keys = append(c.keys, h.Key)
	}
	switch {
	case c.key == "":
		return fmt.Errorf("its key is unknown: the head that introduced the key is missing")
	case h.Key == "":
		_, err := OpenHead(signed, c.key)
		return err
	case h.After != before:
		return fmt.Errorf("it replaces the key %q, but the key so far was %q", h.After, before)
	case before == "": // the first key
		if len(c.Named) > 0 && !slices.Contains(c.Named, h.Key) {
			return fmt.Errorf("it is signed by the key %s, which is not trusted", h.Key)
		}
		_, err := OpenHead(signed, h.Key)
		return err
	}
	if _, err := OpenHead(signed, h.Key, before); err == nil {
		return nil // the old key signed the change to the new one
	}
	if _, err := OpenHead(signed, h.Key); err != nil {
		return err
	}
	if !slices.Contains(c.Named, before) || !slices.Contains(c.Named, h.Key) {
		return fmt.Errorf("the key %s replaces %s, which did not sign the change. If the old key was lost, name both with --key", h.Key, before)
	}
	return nil
}

// KeptHead is a copy of a head outside of the store.
type KeptHead struct {
	Line int // the line of the text in which the copy begins
	Note string
	Cut  bool // the copy may be incomplete, because no empty line follows it
}

// Of reports whether k is a copy of the note. If k was cut, Of reports whether k is the beginning of the note.
func (k KeptHead) Of(note string) bool {
	return k.Note == note || k.Cut && strings.HasPrefix(note, strings.TrimRight(k.Note, "\n"))
}

// inLine precedes a head that is written as one word.
const inLine = "countersign-head:"

// InLine encodes a note as one word, for logs and messages.
func InLine(signed string) string { return inLine + base64.StdEncoding.EncodeToString([]byte(signed)) }

// KeptHeads parses heads that are kept outside the store. The text has one of two forms. In the first form, the text
// consists of notes, each followed by an empty line. In the second form, the text consists of lines that contain words
// written by InLine. In the first form, any other text is a fault. In the second form, KeptHeads ignores all other
// text. An incomplete note is no fault if it is at the end of the text (in the first form), or just before a complete copy
// of the same note. KeptHeads leaves out such a note. A text without heads is a fault.
func KeptHeads(text string) (kept []KeptHead, faults []error) {
	all := keptNotes(text)
	if strings.Contains(text, inLine) {
		all = keptWords(text)
	}
	for i, k := range all {
		if i+1 < len(all) && k.Note != "" && k.Note != all[i+1].Note && strings.HasPrefix(all[i+1].Note, strings.TrimRight(k.Note, "\n")) {
			continue // the copy is incomplete, and a complete copy of the same note follows
		}
		if _, err := ReadHead(k.Note); err != nil {
			if !k.Cut {
				faults = append(faults, fmt.Errorf("line %d: %w", k.Line, err))
			}
			continue
		}
		kept = append(kept, k)
	}
	if len(kept) == 0 && len(faults) == 0 {
		faults = append(faults, errors.New("there is no head in it"))
	}
	return kept, faults
}

// keptNotes splits a text at its empty lines, and joins each signed text with its signatures.
func keptNotes(text string) (all []KeptHead) {
	line := 1
	blocks := strings.Split(text, "\n\n")
	for i, block := range blocks {
		at := line + strings.Count(block, "\n") - strings.Count(strings.TrimLeft(block, "\n"), "\n")
		line += strings.Count(block, "\n") + 2
		if block = strings.Trim(block, "\n"); block == "" {
			continue
		}
		last := len(all) - 1
		if strings.HasPrefix(block, "—") && last >= 0 && !strings.Contains(all[last].Note, "\n\n") {
			all[last].Note += "\n" + block + "\n"
		} else {
			all = append(all, KeptHead{Line: at, Note: block + "\n"})
		}
		all[len(all)-1].Cut = i == len(blocks)-1
	}
	return all
}

// keptWords finds the words that InLine wrote. In Slack's JSON export, each / in such a word is written as \/. If a text
// mentions only the beginning of such words, keptWords ignores it. For a word that was cut, keptWords returns the part of
// the note that can be decoded.
func keptWords(text string) (all []KeptHead) {
	for i, line := range strings.Split(strings.ReplaceAll(text, `\/`, "/"), "\n") {
		for rest := line; ; {
			_, after, found := strings.Cut(rest, inLine)
			if !found {
				break
			}
			word := after
			if end := strings.IndexFunc(after, func(r rune) bool { return !isBase64(r) }); end >= 0 {
				word = after[:end]
			}
			if rest = after; word == "" {
				continue
			}
			note, err := base64.StdEncoding.DecodeString(word[:len(word)/4*4])
			if err != nil {
				note = nil
			}
			all = append(all, KeptHead{Line: i + 1, Note: string(note)})
		}
	}
	return all
}

func isBase64(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '/' || r == '='
}

// SealKey is a private Ed25519 key that signs heads.
type SealKey struct {
	Public string // the public key in its published form: name, hash and key
	signer note.Signer
}

// ErrSealKey means that a text is not a private signing key.
var ErrSealKey = errors.New("this is not a private key for signing heads")

// NewSealKey generates a key from random. The text is secret. The key can be restored from the text alone.
func NewSealKey(random io.Reader, origin string) (text string, err error) {
	text, _, err = note.GenerateKey(random, origin)
	return text, err
}

// ParseSealKey parses the text of NewSealKey.
func ParseSealKey(text string) (SealKey, error) {
	signer, err := note.NewSigner(text)
	if err != nil {
		return SealKey{}, ErrSealKey
	}
	parts := strings.SplitN(text, "+", 5) // PRIVATE, KEY, name, hash, base64
	raw, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(raw) != 1+ed25519.SeedSize {
		return SealKey{}, ErrSealKey
	}
	public := ed25519.NewKeyFromSeed(raw[1:]).Public().(ed25519.PublicKey)
	key, err := note.NewEd25519VerifierKey(signer.Name(), public)
	return SealKey{Public: key, signer: signer}, err
}

// Origin returns the name of the installation that the key belongs to.
func (k SealKey) Origin() string { return k.signer.Name() }

// CheckPublicKey returns an error if a text is not a public key.
func CheckPublicKey(key string) error {
	_, err := note.NewVerifier(key)
	return err
}
