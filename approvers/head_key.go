package approvers

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// SealKey is an Ed25519 key that signs heads.
type SealKey struct {
	Public string // as others are told it: name, hash and key
	signer note.Signer
}

// ErrSealKey says that a text is not a key that can sign.
var ErrSealKey = errors.New("this is not a private key for signing heads")

// NewSealKey makes a key from the randomness. The text is secret, and all that has to be kept.
func NewSealKey(random io.Reader, origin string) (text string, err error) {
	text, _, err = note.GenerateKey(random, origin)
	return text, err
}

// ParseSealKey reads what NewSealKey made.
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

// Origin names the installation that the key belongs to.
func (k SealKey) Origin() string { return k.signer.Name() }

// CheckPublicKey says whether a text is a public key.
func CheckPublicKey(key string) error {
	_, err := note.NewVerifier(key)
	return err
}
