package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/config"
	"countersign/store"
)

// keyVariable is the environment variable with the path of the key file.
const keyVariable = "COUNTERSIGN_AUDIT_KEY"

// OpenKeyFile reads the keys that sign heads. The first key signs new heads. The other keys have signed earlier
// heads. If the store has no heads and there is no file, OpenKeyFile creates a key and writes the file. If the store
// has heads, the file must have the key that signed the newest head, or the public key if that key is lost. OpenKeyFile
// creates a key for a file with only public keys.
func OpenKeyFile(ctx context.Context, path string, s store.Store, log *slog.Logger) ([]approvers.SealKey, error) {
	keys, err := readWritten(ctx, path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	if err := keys.continues(ctx, path, s); err != nil {
		return nil, err
	}
	if !missing && (len(keys.Private) > 0 || len(keys.Public) == 0) {
		return keys.Private, keys.usable(path)
	}
	origin, err := originOf(ctx, s)
	if err != nil {
		return nil, err
	}
	text, err := approvers.NewSealKey(rand.Reader, origin)
	if err != nil {
		return nil, fmt.Errorf("no key for signing the history could be created: %w", err)
	}
	if missing {
		err = writeNew(path, text+"\n")
		if errors.Is(err, fs.ErrExist) { // another replica that started at the same moment has made the key
			keys, err = readWritten(ctx, path)
			return keys.Private, err
		}
	} else {
		err = writeBefore(path, text+"\n")
	}
	if err != nil {
		return nil, fmt.Errorf("the key for signing the history can't be written; choose another place with %s: %w", keyVariable, err)
	}
	if keys, err = ReadKeyFile(path); err == nil {
		log.InfoContext(ctx, "created a key for signing the history; keep a copy of the public key elsewhere", "file", path, "key", keys.Public[0])
	}
	return keys.Private, err
}

// CheckKeyFile returns an error if a bot with the key file can't continue the store's signed heads.
func CheckKeyFile(ctx context.Context, path string, s store.Store) error {
	keys, err := readLines(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return keys.continues(ctx, path, s)
}

// continues returns an error if the file does not have the key that signed the newest head of the store. A head of
// another key would look like a forgery.
func (k KeyFile) continues(ctx context.Context, path string, s store.Store) error {
	signer := ""
	err := s.View(ctx, func(r store.Reader) error {
		signer = ""
		last, err := r.LastHead()
		if err != nil || signedByOne(k.Public, last.Note) {
			return store.IgnoreNotFound(err)
		}
		signer, err = signerOf(r)
		return err
	})
	switch {
	case store.OnlyDamaged(err):
		return nil // verification reports the damage
	case err != nil || signer == "":
		return err
	}
	return keyFileErrorf("the key that signed the newest head of the history, %s, is not in the key file %s (%s). Copy the key file from the machine whose bot signed it: "+
		"all replicas need the same key file. If that key is lost, let a new key replace it: write the lost public key into the file, and start the bot: (umask 077; echo '%s' >> %s)",
		signer, path, keyVariable, signer, path)
}

// signedByOne reports whether one of the public keys signed a head. The signer of a head that introduces a key is the
// introduced key. A text that is not a head has no signer, so the result is true.
func signedByOne(public []string, note string) bool {
	head, err := approvers.ReadHead(note)
	if err != nil {
		return true
	}
	if head.Key != "" {
		return slices.Contains(public, head.Key)
	}
	return slices.ContainsFunc(public, func(k string) bool { return approvers.SignedBy(note, k) })
}

// signerOf returns the key that signs the store's newest head. Each head that is signed with a new key names the key.
func signerOf(r store.Reader) (signer string, err error) {
	for after := uint64(0); ; {
		heads, err := r.Heads(after, 1024)
		if err != nil || len(heads) == 0 {
			return signer, err
		}
		for _, h := range heads {
			if head, err := approvers.ReadHead(h.Note); err == nil && head.Key != "" {
				signer = head.Key
			}
			after = h.Number
		}
	}
}

// readWritten reads a key file. If another replica has created the file but not written it yet, readWritten waits for at
// most two seconds.
func readWritten(ctx context.Context, path string) (KeyFile, error) {
	for end := time.Now().Add(2 * time.Second); ; {
		if info, err := os.Stat(path); err != nil || info.Size() > 0 || time.Now().After(end) {
			return readLines(path)
		}
		select {
		case <-ctx.Done():
			return KeyFile{}, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// originOf returns the origin that a store's heads name, or a new origin if there are no heads.
func originOf(ctx context.Context, s store.Store) (origin string, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		origin = newOrigin()
		last, err := r.LastHead()
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if head, err := approvers.ReadHead(last.Note); err == nil {
			origin = head.Origin
		}
		return nil
	})
	return origin, err
}

// newOrigin returns the origin of a new history.
func newOrigin() string { return "countersign-" + strings.ToLower(rand.Text()[:12]) }

// writeNew writes a file that only its owner can read. writeNew fails if the file exists.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// writeBefore writes a text before the content of a file. writeBefore replaces the file atomically.
func writeBefore(path, text string) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	next := path + ".new"
	if err := errors.Join(os.RemoveAll(next), writeNew(next, text+string(before))); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// ErrKeyFile means that a key file has wrong content or a wrong mode. The operator must correct the key file.
var ErrKeyFile = errors.New("the key file can't be used")

// keyFileError is ErrKeyFile with a specific text.
type keyFileError struct{ error }

func (e keyFileError) Is(target error) bool { return target == ErrKeyFile }

func (e keyFileError) Unwrap() error { return e.error }

func keyFileErrorf(format string, args ...any) error {
	return keyFileError{fmt.Errorf(format, args...)}
}

// KeyFile is the content of a key file.
type KeyFile struct {
	Private []approvers.SealKey // the first key signs new heads
	Public  []string            // the public key of the first private key, then those of the other private keys and of lost private keys
}

// ReadKeyFile reads a file with one key per line. A line may also contain only the public key of a lost private key.
// Such a public key is trusted, but can't sign. A file without a key that can sign is an error.
func ReadKeyFile(path string) (KeyFile, error) {
	keys, err := readLines(path)
	if err == nil {
		err = keys.usable(path)
	}
	return keys, err
}

// usable returns an error if the file has no key that can sign.
func (k KeyFile) usable(path string) error {
	if len(k.Private) == 0 {
		return keyFileErrorf("%s holds no key that can sign the history (%s): put the key back; or, if it is lost, remove the file, and start the bot", path, keyVariable)
	}
	return nil
}

// readLines is like ReadKeyFile, but the file may lack a key that can sign.
func readLines(path string) (keys KeyFile, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	if err != nil {
		return keys, fmt.Errorf("the key for signing the history can't be read (%s): %w", keyVariable, err)
	}
	if info, err := os.Stat(path); err == nil && config.Exposed(info) {
		return keys, keyFileErrorf("%s holds the key that signs the history, and other users can read the file: chmod 600 %s", path, path)
	}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if approvers.CheckPublicKey(line) == nil {
			keys.Public = append(keys.Public, line)
			continue
		}
		key, err := approvers.ParseSealKey(line)
		if err != nil {
			return keys, keyFileErrorf("%s does not hold a key for signing the history (%s): put the right file there; or, if it is lost, remove the file, and start the bot: %w", path, keyVariable, err)
		}
		if len(keys.Private) > 0 && key.Origin() != keys.Private[0].Origin() {
			return keys, keyFileErrorf("%s holds keys of two installations, %s and %s: remove the keys of the installation that this file does not belong to", path, keys.Private[0].Origin(), key.Origin())
		}
		keys.Private = append(keys.Private, key)
		keys.Public = append(keys.Public, key.Public)
	}
	if len(keys.Private) == 0 {
		return keys, nil
	}
	signs := keys.Private[0].Public // the file may have a lost public key above the private key
	keys.Public = append([]string{signs}, slices.DeleteFunc(keys.Public, func(k string) bool { return k == signs })...)
	return keys, nil
}

// RenewedKeyFile creates a new key. RenewedKeyFile returns the content of the key file with the new key in the first
// line. If there is no file, the content has only the new key. The caller writes the file.
func RenewedKeyFile(path string) (string, error) {
	origin, before := newOrigin(), []byte(nil)
	keys, err := ReadKeyFile(path)
	if err == nil {
		origin = keys.Private[0].Origin()
		before, err = os.ReadFile(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	text, err := approvers.NewSealKey(rand.Reader, origin)
	if err != nil {
		return "", fmt.Errorf("no key could be made: %w", err)
	}
	return text + "\n" + string(before), nil
}
