package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/config"
)

// verifyOptions say what the history is held against.
type verifyOptions struct {
	Keys   []string   `json:"keys,omitempty"`   // the public keys that are trusted
	Own    bool       `json:"own,omitempty"`    // they are those of the key's file, and not named by the operator
	Heads  []headText `json:"heads,omitempty"`  // the texts with heads that follow one another in the input
	Beside bool       `json:"beside,omitempty"` // they are of the file in which the bot keeps them, and not named by the operator
}

// headText is a file with heads that are kept elsewhere.
type headText struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

func auditVerifyCommand() *cobra.Command {
	var keys, files []string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Checks the whole history; exits 1 when anything was changed, removed or put in its place",
		Long: `Verifies every record's hash, the links of every chain, what people wrote and were shown, the journal over all chains, and every signed head.
What is missing must have been erased or pruned by a record that says so. docs/audit.md tells what each part finds.

Who can write to the store and has the key can replace everything in the store. That is found with heads that are kept elsewhere:

  --heads FILE   the store must have every one of these heads. FILE is a copy of the heads' file, or a log, or text with the messages
                 of the channel; it may be given several times. Without it the file beside the store is taken, which goes when the store goes
  --key KEY      the public key that you trust, as "countersign audit key" printed it when all was well. Without it those of the key's
                 file are taken`,
		Example: `  countersign audit verify
  countersign audit verify --key countersign-… --heads /mnt/kept/heads`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := verifyOptions{Keys: keys}
			if err := o.trust(); err != nil {
				return err
			}
			if len(files) == 0 {
				files = o.beside()
			}
			in, err := o.open(files)
			if err != nil {
				return err
			}
			return errors.Join(auditVerifyTask.do(cmd.Context(), o, in.Reader, cmd.OutOrStdout()), in.Close()) // who reads it must not close it
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "the public key that you trust")
	cmd.Flags().StringArrayVar(&files, "heads", nil, "a file with heads that were kept elsewhere")
	return cmd
}

var auditVerifyTask = task[verifyOptions]{"audit verify", true, func(ctx context.Context, w workplace, o verifyOptions) error {
	kept, err := o.read(w.in)
	if err != nil {
		return err
	}
	return verifyAudit(ctx, w.out, w.store, o, kept)
}}

// trust checks the keys that the operator named, or takes those of the key's file.
func (o *verifyOptions) trust() error {
	for _, key := range o.Keys {
		if err := approvers.CheckPublicKey(key); err != nil {
			return misused("--key %s is not a public key: write it as \"countersign audit key\" prints it (%w)", key, err)
		}
	}
	if len(o.Keys) > 0 {
		return nil
	}
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return misused("the environment can't be used:\n%w", err)
	}
	keys, err := readSealKeys(env.Audit.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	o.Keys, o.Own = keys.public, true
	return err
}

// beside is the file in which the bot itself keeps the heads, where there is one: less than one elsewhere, and more than none.
func (o *verifyOptions) beside() []string {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return nil // trust has said so
	}
	if info, err := os.Stat(env.Audit.Heads); err != nil || info.Size() == 0 {
		return nil
	}
	o.Beside = true
	return []string{env.Audit.Heads}
}

// open opens files with heads as one input.
func (o *verifyOptions) open(files []string) (*textFiles, error) {
	var all textFiles
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return nil, errors.Join(misused("--heads %s can't be read: %w", path, err), all.Close())
		}
		all.files = append(all.files, f)
		text, size, err := whatThereIs(f)
		if err != nil {
			return nil, errors.Join(couldNot("--heads %s can't be read: %w", path, err), all.Close())
		}
		o.Heads = append(o.Heads, headText{Name: path, Size: size})
		all.readers = append(all.readers, text)
	}
	all.Reader = io.MultiReader(all.readers...)
	return &all, nil
}

// whatThereIs is what there is to read of a file now, and how much that is: what is added meanwhile is not looked at. A pipe does not tell before its end.
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

// textFiles are files that are read one after the other.
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

// keptHead is a head that is kept elsewhere, with the place where.
type keptHead struct {
	approvers.KeptHead
	approvers.Head
	place string
}

// keptHeads are all that are kept elsewhere.
type keptHeads struct {
	heads  []keptHead
	faults []error // what is there and is no head
}

// read reads the heads that are kept elsewhere.
func (o verifyOptions) read(in io.Reader) (all keptHeads, err error) {
	for _, h := range o.Heads {
		text, err := io.ReadAll(io.LimitReader(in, h.Size))
		if err != nil || int64(len(text)) < h.Size {
			return all, couldNot("%s can't be read: %w", h.Name, errors.Join(err, io.ErrUnexpectedEOF))
		}
		kept, faults := approvers.KeptHeads(string(text))
		if len(kept) == 0 {
			return all, misused("--heads %s: %w", h.Name, errors.Join(faults...))
		}
		for _, f := range faults {
			all.faults = append(all.faults, fmt.Errorf("%s: %w", h.Name, f))
		}
		for _, k := range kept {
			head, err := approvers.ReadHead(k.Note)
			if err != nil {
				return all, err
			}
			all.heads = append(all.heads, keptHead{KeptHead: k, Head: head, place: fmt.Sprintf("%s:%d", h.Name, k.Line)})
		}
	}
	slices.SortStableFunc(all.heads, func(a, b keptHead) int { return cmp.Compare(a.Number, b.Number) })
	return all, nil
}
