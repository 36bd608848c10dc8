package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// These constants describe the format of bbolt's pages, which has not changed since bbolt's first version. Numbers are
// in the byte order of the machine, and all supported machines are little-endian.
const (
	pageHeader  = 16 // bytes: id uint64, flags uint16, count uint16, overflow uint32
	pageElement = 16
	pageBranch  = 0x01
	pageLeaf    = 0x02
	leafBucket  = 0x01 // the value is a bucket: root uint64, sequence uint64, and an inline page if root is 0
	maxDepth    = 64   // far deeper than any real file
)

// walkPages visits all pages that a transaction can reach. walkPages checks that each page lies within the file, is
// reached once, and contains all its elements. bbolt's own check does not verify these properties.
func walkPages(ctx context.Context, f *os.File, btx *bbolt.Tx) error {
	w := &pageWalk{ctx: ctx, file: f, size: uint64(btx.DB().Info().PageSize), pages: uint64(btx.Size()) / uint64(btx.DB().Info().PageSize), seen: map[uint64]bool{}}
	return w.page(uint64(btx.Cursor().Bucket().Root()), 0)
}

type pageWalk struct {
	ctx   context.Context
	file  *os.File
	size  uint64 // the size of a page, in bytes
	pages uint64 // the number of pages in the file
	seen  map[uint64]bool
}

// page checks a page and the pages below this page in the tree.
func (w *pageWalk) page(id uint64, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	switch {
	case id < 2 || id >= w.pages:
		return fmt.Errorf("page %d is not in the file", id)
	case w.seen[id]:
		return fmt.Errorf("page %d occurs twice", id)
	case depth > maxDepth:
		return fmt.Errorf("page %d is nested too deep", id)
	}
	head := make([]byte, pageHeader)
	if err := w.read(head, id); err != nil {
		return err
	}
	overflow := uint64(binary.LittleEndian.Uint32(head[12:]))
	if stored := binary.LittleEndian.Uint64(head); stored != id || overflow >= w.pages-id {
		return fmt.Errorf("page %d says that it is page %d, followed by %d overflow pages", id, stored, overflow)
	}
	for i := range overflow + 1 {
		w.seen[id+i] = true
	}
	body := make([]byte, (overflow+1)*w.size)
	if err := w.read(body, id); err != nil {
		return err
	}
	return w.elements(fmt.Sprintf("page %d", id), body, depth)
}

func (w *pageWalk) read(into []byte, id uint64) error {
	_, err := w.file.ReadAt(into, int64(id*w.size))
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("page %d is not whole", id)
	}
	return err
}

// elements checks the elements of a page, or of the inline page of a small bucket.
func (w *pageWalk) elements(name string, page []byte, depth int) error {
	flags, count := binary.LittleEndian.Uint16(page[8:]), uint64(binary.LittleEndian.Uint16(page[10:]))
	if flags != pageBranch && flags != pageLeaf || pageHeader+count*pageElement > uint64(len(page)) || flags == pageBranch && count == 0 {
		return fmt.Errorf("%s is of kind %#x with %d elements", name, flags, count)
	}
	for i := range count {
		at := pageHeader + i*pageElement
		e := page[at : at+pageElement]
		n := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(e[i:])) }
		if flags == pageBranch {
			if at+n(0)+n(4) > uint64(len(page)) {
				return fmt.Errorf("element %d of %s lies outside of it", i, name)
			}
			if err := w.page(binary.LittleEndian.Uint64(e[8:]), depth+1); err != nil {
				return err
			}
			continue
		}
		from, end := at+n(4)+n(8), at+n(4)+n(8)+n(12)
		if end > uint64(len(page)) || n(0) > leafBucket {
			return fmt.Errorf("element %d of %s lies outside of it", i, name)
		}
		if n(0) == leafBucket {
			if err := w.bucket(fmt.Sprintf("bucket %q", page[at+n(4):from]), page[from:end], depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket checks a bucket: its root page, or the inline page of a small bucket.
func (w *pageWalk) bucket(name string, value []byte, depth int) error {
	if len(value) < pageHeader {
		return fmt.Errorf("%s is not whole", name)
	}
	if root := binary.LittleEndian.Uint64(value); root > 0 {
		return w.page(root, depth+1)
	}
	if len(value) < 2*pageHeader || depth > maxDepth {
		return fmt.Errorf("%s is not whole", name)
	}
	return w.elements(name, value[pageHeader:], depth+1)
}
