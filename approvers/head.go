package approvers

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Head is a statement of the journal's content at one time. Its text is a checkpoint as c2sp.org/tlog-checkpoint
// defines it; the lines after the third are our own extension. It is signed as a note of golang.org/x/mod/sumdb/note.
type Head struct {
	Origin string    // names the installation, and its keys
	Size   uint64    // how many leaves it covers
	Root   tlog.Hash // over them
	Number uint64    // from 1, without gaps
	At     time.Time // to the second
	Before Sum       // hash of the whole note of the previous head; zero for the first
	Key    string    // the public key that signs from this head on; empty: the previous one
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

// Sign signs the head with one key, or with several when a new key takes over.
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

// OpenHead parses a note that exactly the given keys signed. Every byte of it is covered by the signatures.
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

// SignedBy reports whether a key is among those that signed a note.
func SignedBy(signed, key string) bool {
	v, err := note.NewVerifier(key)
	if err != nil {
		return false
	}
	_, err = note.Open([]byte(signed), note.VerifierList(v))
	return err == nil
}
