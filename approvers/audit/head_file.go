package audit

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

// HeadFile is the path of a file. Each head is appended to this file, followed by an empty line.
type HeadFile string

func (f HeadFile) String() string { return string(f) }

// errAhead means that the file has heads that the store lacks.
var errAhead = errors.New("the file ends with a head that the store does not have: the store is older than its signed heads, or it is another store. " +
	"Nothing is added to the file. Look with: countersign audit verify")

// aheadError wraps errAhead, and names the newest head that the store lacks.
type aheadError struct {
	file   HeadFile
	number uint64         // number of the newest missing head
	head   approvers.Head // the newest missing head; zero: the file has only its beginning
	hash   approvers.Sum  // hash of the newest missing head's text in the file
	last   uint64         // the number of the store's last head; 0: the store has no heads
}

func (e *aheadError) Error() string { return fmt.Sprintf("%v (%s)", errAhead, e.file) }

func (e *aheadError) Unwrap() error { return errAhead }

// tail is how many bytes are read from the end of the file. A head is smaller than 1 KiB.
const tail = 16 << 10

// fileHead is a head at the end of the file. If the file has only the head's beginning, only the number is set.
type fileHead struct {
	approvers.KeptHead
	number uint64
	head   approvers.Head
}

// heads reads the heads at the end of the file, in file order. Text after the last whole head counts as the beginning
// of another head that was not completely written.
func (f HeadFile) heads() (all []fileHead, err error) {
	text, err := f.end()
	if err != nil {
		return nil, err
	}
	kept, _ := approvers.KeptHeads(text)
	highest, rest := uint64(0), text
	for _, k := range kept {
		head, err := approvers.ReadHead(k.Note)
		if err != nil {
			return nil, err
		}
		all = append(all, fileHead{k, head.Number, head})
		highest = max(highest, head.Number)
		note := strings.TrimRight(k.Note, "\n")
		rest = text[strings.LastIndex(text, note)+len(note):]
	}
	if strings.TrimSpace(rest) != "" {
		begun := approvers.KeptHead{Note: strings.TrimLeft(rest, "\n"), Cut: true}
		all = append(all, fileHead{KeptHead: begun, number: highest + 1})
	}
	return all, nil
}

// newestHead returns the highest number of a head in the file. If the file has no heads, newestHead returns 0.
func (f HeadFile) newestHead() (number uint64, err error) {
	all, err := f.heads()
	for _, h := range all {
		number = max(number, h.number)
	}
	return number, err
}

// Last returns the highest number of a whole head in the file. If the end of the file has heads that the store lacks,
// Last returns an aheadError with the newest missing head. A damaged head in the store counts as present: the store
// had this head.
func (f HeadFile) Last(ctx context.Context, s store.Store) (last uint64, err error) {
	all, err := f.heads()
	if err != nil {
		return 0, err
	}
	var lacks *fileHead
	var own store.Head
	err = s.View(ctx, func(r store.Reader) error {
		last, lacks = 0, nil
		for i, h := range all {
			heads, err := r.Heads(h.number-1, 1)
			if err != nil {
				return err
			}
			if len(heads) == 0 || heads[0].Number != h.number || !heads[0].Damaged && !h.Of(heads[0].Note) {
				if lacks == nil || h.number > lacks.number {
					lacks = &all[i]
				}
			}
			if h.head.Number > 0 {
				last = max(last, h.number)
			}
		}
		own, err = r.LastHead()
		if errors.Is(err, store.ErrNotFound) || store.OnlyDamaged(err) {
			return nil
		}
		return err
	})
	if err == nil && lacks != nil {
		err = &aheadError{file: f, number: lacks.number, head: lacks.head, hash: approvers.SumOf([]byte(lacks.Note)), last: own.Number}
	}
	return last, err
}

// end returns the end of the file, beginning with a whole head. If the file is missing or empty, the function returns
// "".
func (f HeadFile) end() (string, error) {
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
	if from > 0 { // the text may begin within a head, so the function skips to the end of this head
		_, text, _ = strings.Cut(text, "\n— ")
		_, text, _ = strings.Cut(text, "\n\n")
	}
	return text, nil
}

// Keep appends a head, unless the file has this head or a newer one.
func (f HeadFile) Keep(h store.Head) error {
	newest, err := f.newestHead()
	if err != nil || newest >= h.Number {
		return err
	}
	return f.Ship(context.Background(), []store.Head{h})
}

// Ship appends heads. If the last head in the file was not completely written, Ship first ends this head with an empty
// line.
func (f HeadFile) Ship(_ context.Context, heads []store.Head) error {
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
