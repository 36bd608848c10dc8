package auditcmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/config"
	"countersign/store"
	"countersign/store/bolt"
)

// TrustedKeys has the public keys with which signed heads are verified.
type TrustedKeys struct {
	Keys []string `json:"keys,omitempty"`
	Own  bool     `json:"own,omitempty"` // true: the keys come from the key file, and not from the operator
}

// verifyOptions has the keys and the heads with which the history is verified.
type verifyOptions struct {
	TrustedKeys
	Heads  []headText `json:"heads,omitempty"`  // the files with heads, concatenated in the input
	Beside bool       `json:"beside,omitempty"` // true: the heads come from the bot's own file, and not from the operator
}

// headText describes a file of signed heads outside the store.
type headText struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

func verifyCommand() *cobra.Command {
	var keys, files []string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Checks the whole history; exits 1 when anything was changed, removed or replaced",
		Long: `Verifies every record's hash, the links of every chain, what people wrote and were shown, the journal over all chains, and every signed head.
What is missing must have been erased or pruned by a record that says so. docs/audit.md tells what each part finds.

Somebody who can write to the store and has the key can replace everything in it. Heads that are kept elsewhere reveal that:

  --heads FILE   the store must have every one of these heads. FILE is a copy of the heads' file, or a log, or text with the messages
                 of the channel; it may be given several times. Without it the file beside the store is used, which may be lost with the store
  --key KEY      the public key that you trust, as "countersign audit key" printed it when all was well. Without it the keys in the
                 key file are used`,
		Example: `  countersign audit verify
  countersign audit verify --key countersign-… --heads /mnt/kept/heads`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := verifyOptions{TrustedKeys: TrustedKeys{Keys: keys}}
			if err := o.Trust(); err != nil {
				return err
			}
			if len(files) == 0 {
				files = o.ownHeadsFile()
			}
			in, err := o.open(files)
			if err != nil {
				return err
			}
			return errors.Join(verifyTask.Do(cmd.Context(), o, in.Reader, cmd.OutOrStdout()), in.Close()) // the task does not close the input
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "the public key that you trust")
	cmd.Flags().StringArrayVar(&files, "heads", nil, "a file with heads that were kept elsewhere")
	cli.PathFlags(cmd.Flags(), "heads")
	return cmd
}

var verifyTask = task.Task[verifyOptions]{Name: "audit verify", Reads: true, Long: true, WhileHeld: true, Run: func(ctx context.Context, w task.Env, o verifyOptions) error {
	kept, err := o.read(w.In)
	if err != nil {
		return err
	}
	return Verify(ctx, w.Out, w.Store, audit.VerifyOptions{Keys: o.Keys, Own: o.Own, Kept: kept, Beside: o.Beside})
}}

// Verify verifies the history, and prints the report.
func Verify(ctx context.Context, out io.Writer, s store.Store, o audit.VerifyOptions) error {
	o.Guard = bolt.Guard
	report, err := audit.Verify(ctx, s, o)
	if err != nil {
		return err
	}
	report.Write(out)
	if n := report.Faults(); n > 0 {
		return cli.AnswerNo("the history has changed: %s", cli.Count(n, "fault"))
	}
	return nil
}

// Trust validates the keys that the operator gave. If the operator gave no keys, Trust uses the keys of the key file.
func (o *TrustedKeys) Trust() error {
	for _, key := range o.Keys {
		if err := approvers.CheckPublicKey(key); err != nil {
			return cli.Misused("--key %s is not a public key: write it as \"countersign audit key\" prints it (%w)", key, err)
		}
	}
	if len(o.Keys) > 0 {
		return nil
	}
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return cli.Misused("the environment can't be used:\n%w", err)
	}
	return o.TrustFile(env.Audit.Key)
}

// TrustFile uses the keys of a key file, if the file exists.
func (o *TrustedKeys) TrustFile(path string) error {
	keys, err := audit.ReadKeyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	o.Keys, o.Own = keys.Public, true
	return KeyError(err)
}

// ownHeadsFile returns the path of the bot's own file of signed heads, if the file exists and is not empty.
// Verification against this file proves less than verification against a file on another machine.
func (o *verifyOptions) ownHeadsFile() []string {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return nil // the method Trust has already reported the error
	}
	if info, err := os.Stat(env.Audit.Heads); err != nil || info.Size() == 0 {
		return nil
	}
	o.Beside = true
	return []string{env.Audit.Heads}
}

// open opens several files of signed heads as one input.
func (o *verifyOptions) open(files []string) (*textFiles, error) {
	var all textFiles
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return nil, errors.Join(cli.Misused("--heads %s can't be read: %w", path, err), all.Close())
		}
		all.files = append(all.files, f)
		text, size, err := whatThereIs(f)
		if err != nil {
			return nil, errors.Join(cli.CouldNot("--heads %s can't be read: %w", path, err), all.Close())
		}
		o.Heads = append(o.Heads, headText{Name: path, Size: size})
		all.readers = append(all.readers, text)
	}
	all.Reader = io.MultiReader(all.readers...)
	return &all, nil
}

// whatThereIs returns a reader of a file's current content, and the size of this content. The reader ignores data that
// is appended later. whatThereIs reads a pipe to its end, because only the end tells the size of a pipe's content.
func whatThereIs(f *os.File) (io.Reader, int64, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if info.Mode().IsRegular() {
		return io.LimitReader(f, info.Size()), info.Size(), nil
	}
	text, err := io.ReadAll(f)
	return bytes.NewReader(text), int64(len(text)), err
}

// textFiles reads several files one after the other.
type textFiles struct {
	io.Reader
	readers []io.Reader
	files   []*os.File
}

func (j *textFiles) Close() error {
	var errs []error
	for _, f := range j.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// read parses the signed heads of these files.
func (o verifyOptions) read(in io.Reader) (all audit.KeptHeads, err error) {
	for _, h := range o.Heads {
		text, err := io.ReadAll(io.LimitReader(in, h.Size))
		if err != nil || int64(len(text)) < h.Size {
			return all, cli.CouldNot("%s can't be read: %w", h.Name, errors.Join(err, io.ErrUnexpectedEOF))
		}
		if err := all.Add(h.Name, string(text)); err != nil {
			return all, cli.Misused("--heads %s: %w", h.Name, err)
		}
	}
	return all, nil
}
