package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// headFile is a file that each head is added to, with an empty line after each.
type headFile string

func (f headFile) String() string { return string(f) }

// errAhead says that a file holds heads that the store does not have.
var errAhead = errors.New("it ends with a head that the store does not have, so the store is older than what was signed, or another one. " +
	"If you put a backup back, move the file away and keep it; otherwise look with: countersign audit verify --heads")

// tail is how much of the file's end is looked at; a head has less than 1 KiB.
const tail = 16 << 10

// last reads the last head of the file, which the store must have.
func (f headFile) last(ctx context.Context, s store.Store) (uint64, error) {
	text, err := f.end()
	if err != nil || text == "" {
		return 0, err
	}
	last := approvers.KeptHead{Note: text, Cut: true} // where somebody stopped while writing the first one
	number := uint64(1)
	if kept, _ := approvers.KeptHeads(text); len(kept) > 0 {
		last = kept[len(kept)-1]
		head, err := approvers.ReadHead(last.Note)
		if err != nil {
			return 0, err
		}
		number = head.Number
	}
	err = s.View(ctx, func(r store.Reader) error {
		heads, err := r.Heads(number-1, 1)
		if err == nil && (len(heads) == 0 || !last.Of(heads[0].Note)) {
			err = fmt.Errorf("%w %s", errAhead, f)
		}
		return err
	})
	if last.Cut {
		number--
	}
	return number, err
}

// end reads the end of the file, beginning with a whole head; "" if there is no file, or nothing in it.
func (f headFile) end() (string, error) {
	file, err := os.Open(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	from := max(0, info.Size()-tail)
	raw, err := io.ReadAll(io.NewSectionReader(file, from, info.Size()-from))
	if err != nil {
		return "", err
	}
	text := string(raw)
	if from > 0 { // it begins in the middle of a head: on with the one after its signatures
		_, text, _ = strings.Cut(text, "\n— ")
		_, text, _ = strings.Cut(text, "\n\n")
	}
	return text, nil
}

// bring adds heads. What somebody who stopped has only begun is ended before.
func (f headFile) bring(_ context.Context, heads []store.Head) error {
	before, err := f.end()
	if err != nil {
		return err
	}
	var b strings.Builder
	if before != "" && !strings.HasSuffix(before, "\n\n") {
		b.WriteString("\n\n")
	}
	for _, h := range heads {
		b.WriteString(h.Note)
		b.WriteByte('\n')
	}
	file, err := os.OpenFile(string(f), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(b.String())
	return errors.Join(err, file.Sync(), file.Close())
}
