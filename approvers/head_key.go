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
	Public string // the published form: name, hash and key
	signer note.Signer
}

// ErrSealKey means that a text is not a private signing key.
var ErrSealKey = errors.New("this is not a private key for signing heads")

// NewSealKey generates a key from random. The text is secret; it is all that has to be stored.
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
