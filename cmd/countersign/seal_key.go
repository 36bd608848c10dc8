package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/config"
	"countersign/store"
)

// keyVariable sets where the key lies.
const keyVariable = "COUNTERSIGN_AUDIT_KEY"

// openSealKeys reads the keys that sign heads: the first one does, the others did before it. Where there is no file, a key is made.
func openSealKeys(ctx context.Context, path string, s store.Store, log *slog.Logger) ([]approvers.SealKey, error) {
	keys, err := readSealKeys(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return keys.private, err
	}
	origin, err := originOf(ctx, s)
	if err != nil {
		return nil, err
	}
	text, err := approvers.NewSealKey(rand.Reader, origin)
	if err != nil {
		return nil, couldNot("no key for signing the history could be made: %w", err)
	}
	if err := writeNew(path, text+"\n"); err != nil {
		return nil, couldNot("the key for signing the history can't be written; choose another place with %s: %w", keyVariable, err)
	}
	if keys, err = readSealKeys(path); err == nil {
		log.Info("made a key for signing the history; keep its public half elsewhere", "file", path, "key", keys.public[0])
	}
	return keys.private, err
}

// originOf is the name that the heads of a store bear, or a new one.
func originOf(ctx context.Context, s store.Store) (origin string, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		origin = "countersign-" + strings.ToLower(rand.Text()[:12])
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

// writeNew writes a file that only its owner can read, and that is not there yet.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// sealKeys is what the file of the keys holds.
type sealKeys struct {
	private []approvers.SealKey // the first one signs
	public  []string            // of each of them, and of those that were lost
}

// readSealKeys reads a file of keys, one on a line. A line may also be the public half of a key that was lost: it is trusted, and can't sign.
func readSealKeys(path string) (keys sealKeys, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	if err != nil {
		return keys, couldNot("the key for signing the history can't be read (%s): %w", keyVariable, err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		return keys, misused("%s holds the key that signs the history, and others can read it: chmod 600 %s", path, path)
	}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if approvers.CheckPublicKey(line) == nil {
			keys.public = append(keys.public, line)
			continue
		}
		key, err := approvers.ParseSealKey(line)
		if err != nil {
			return keys, misused("%s does not hold a key for signing the history (%s): put the right file there, or take it away to have a new key made: %w", path, keyVariable, err)
		}
		if len(keys.private) > 0 && key.Origin() != keys.private[0].Origin() {
			return keys, misused("%s holds keys of two installations, %s and %s: take those of the other out", path, keys.private[0].Origin(), key.Origin())
		}
		keys.private = append(keys.private, key)
		keys.public = append(keys.public, key.Public)
	}
	if len(keys.private) == 0 {
		return keys, misused("%s holds no key that can sign the history (%s): put it back, or take the file away to have a new key made", path, keyVariable)
	}
	return keys, nil
}

func auditKeyCommand() *cobra.Command {
	var renew bool
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Prints the public key that the history is sealed with",
		Long: `Prints the public keys of the file that COUNTERSIGN_AUDIT_KEY names: the one that signs the history's heads, and those that did before.
Keep the first one elsewhere, and give it to "countersign audit verify --key".

With --new a new key is made. It signs from the next start of the bot on, and the one before signs that it takes over.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, err := config.ReadEnv(config.Offline)
			if err != nil {
				return misused("the environment can't be used:\n%w", err)
			}
			if renew {
				if err := renewSealKey(env.Audit.Key); err != nil {
					return err
				}
			}
			return printSealKeys(cmd.OutOrStdout(), env.Audit.Key)
		},
	}
	cmd.Flags().BoolVar(&renew, "new", false, "make a new key, which takes over at the next start of the bot")
	return cmd
}

func printSealKeys(out io.Writer, path string) error {
	keys, err := readSealKeys(path)
	if errors.Is(err, fs.ErrNotExist) {
		return answerNo("there is no key at %s yet: the bot makes one when it starts", path)
	}
	if err != nil {
		return err
	}
	for _, k := range keys.public {
		fmt.Fprintln(out, k)
	}
	return nil
}

// renewSealKey puts a new key before those that are there. The file is replaced as a whole.
func renewSealKey(path string) error {
	keys, err := readSealKeys(path)
	if errors.Is(err, fs.ErrNotExist) {
		return answerNo("there is no key at %s yet: the bot makes one when it starts", path)
	}
	if err != nil {
		return err
	}
	before, err := os.ReadFile(path)
	if err != nil {
		return couldNot("the key can't be read: %w", err)
	}
	text, err := approvers.NewSealKey(rand.Reader, keys.private[0].Origin())
	if err != nil {
		return couldNot("no key could be made: %w", err)
	}
	return wholeFile(path, func(f *os.File) error {
		_, err := f.WriteString(text + "\n" + string(before))
		return err
	})
}
