package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"slices"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"countersign/store"
)

// examination checks a file's pages without bbolt, because bbolt does not validate pages. examination verifies the
// position of each element on its page, the order of the keys, and the checksum of every row. It also verifies that
// every page is either used once or free. An examination detects every changed bit that has an effect.
type examination struct {
	ctx  context.Context
	file io.ReaderAt
	size uint64 // the size of a page
	meta meta
	use  []pageUse // by page number: the purpose of the page
	leaf []byte    // memory that is reused for each leaf page

	sequences [bucketEnd]uint64
	births    [bucketEnd]uint64 // the highest birth number in each bucket
	listed    [bucketEnd]bool   // the buckets in the list of buckets
	root      map[string][]byte // rows of the root bucket
	faults    []pageFault
	freeRead  bool // the list of free pages was read to its end
	unreached bool // the only fault is a page that is neither free nor in use
	unknown   int  // how many damaged rows have no mark yet
	outline   bool // leaf pages are not examined, except those of the list of buckets, and the first one of each bucket

	row func(in bucket, k, v []byte, state rowState) // called with every row; the function must copy any slice that it keeps
}

// meta is a meta page.
type meta struct{ root, freelist, pages, tx uint64 }

func (f pageFault) bucket() string {
	if f.in == 0 || f.in == bucketEnd {
		return "file"
	}
	return f.in.String()
}

// pageUse is the purpose of a page.
type pageUse byte

const (
	pageUnseen pageUse = iota
	pageReached
	pageFree
	pageOfFreelist
)

// pageFault is a fault in the pages of one bucket. If the bucket is zero, the fault concerns the whole file.
type pageFault struct {
	in  bucket
	why string
}

// rowState is the result of checking a row against its checksum.
type rowState byte

const (
	rowSound   rowState = iota
	rowMarked           // the row has a mark, which says that the row is damaged: see mark
	rowDamaged          // the row's checksum does not match
)

// mark returns the value that replaces a damaged row. The value's checksum is inverted. So a read of the row fails, and
// the next examination finds the mark.
func mark(in bucket, key, stored []byte) []byte {
	value := stored[:max(0, len(stored)-checksumSize)]
	return binary.BigEndian.AppendUint32(value[:len(value):len(value)], ^checksum(in, key, value))
}

// stateOf checks a row against its checksum.
func stateOf(in bucket, key, stored []byte) rowState {
	n := len(stored) - checksumSize
	if n < 0 {
		return rowDamaged
	}
	switch sum := checksum(in, key, stored[:n]); binary.BigEndian.Uint32(stored[n:]) {
	case sum:
		return rowSound
	case ^sum:
		return rowMarked
	}
	return rowDamaged
}

// bbolt stores the numbers of a meta page at these offsets.
const (
	metaMagic    = 16
	metaPageSize = 24
	metaRoot     = 32
	metaFreelist = 48
	metaPages    = 56
	metaTx       = 64
	metaSum      = 72
	metaEnd      = 80
	magicNumber  = 0xED0CDAED
)

// readMeta reads a meta page. If the page is damaged, ok is false.
func readMeta(page []byte) (m meta, ok bool) {
	n := func(at int) uint64 { return binary.LittleEndian.Uint64(page[at:]) }
	sum := fnv.New64a()
	_, _ = sum.Write(page[metaMagic:metaSum])
	if binary.LittleEndian.Uint32(page[metaMagic:]) != magicNumber || n(metaSum) != sum.Sum64() {
		return m, false
	}
	return meta{root: n(metaRoot), freelist: n(metaFreelist), pages: n(metaPages), tx: n(metaTx)}, true
}

// mostPages is far above the number of pages of any real file.
const mostPages = 8 * math.MaxInt32

// metas reads both meta pages and returns the current one. If the newer page is damaged, bbolt silently uses the older
// page, which undoes the last commit. If this commit recorded the start of a call, the call would run a second time. So
// metas returns an error if either page is damaged.
func metas(file io.ReaderAt, pageSize int) (meta, error) {
	var both [2]meta
	page := make([]byte, metaEnd)
	for i := range both {
		ok := false
		if _, err := file.ReadAt(page, int64(i*pageSize)); err != nil && !errors.Is(err, io.EOF) {
			return meta{}, err
		}
		if both[i], ok = readMeta(page); !ok {
			return meta{}, fmt.Errorf("%w: one of the two pages that name the last commit can't be read, so the last commit may be lost. Put a backup in its place", store.ErrDamaged)
		}
	}
	if both[0].tx > both[1].tx {
		return both[0], nil
	}
	return both[1], nil
}

// outline examines the pages of a file that can harm bbolt: the list of buckets, the branch pages of all buckets, and the
// list of free pages. bbolt follows a cycle of branch pages until the stack overflows, which ends the process. So
// outline runs before bbolt reads the file. outline reads about one percent of a large file. The result torn reports
// whether the pages of a bucket, or the list of free pages, are damaged.
func outline(path string, file *os.File) (torn bool, err error) {
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	valid, pageSize := validMetas(file, info.Size())
	if len(valid) == 0 {
		return false, nil // bbolt returns an error
	}
	m, err := metas(file, int(pageSize))
	if err == nil {
		torn, err = outlined(path, info.Size(), examination{ctx: context.Background(), file: file, size: uint64(pageSize), meta: m})
	}
	if now, _ := validMetas(file, info.Size()); !slices.Equal(now, valid) { // possible on systems where the function lock does nothing
		return false, berrors.ErrTimeout
	}
	return torn, err
}

func outlined(path string, size int64, x examination) (torn bool, err error) {
	if least := x.meta.pages * x.size; x.meta.pages <= mostPages && uint64(size) < least {
		return false, shorter(path, size, int64(least))
	}
	whole := x
	x.outline = true
	if err := x.all(); err != nil {
		return false, err
	}
	if len(x.root) == 0 && len(x.faults) > 0 {
		return false, fmt.Errorf("%w: %s. Put a backup in its place", store.ErrDamaged, x.faults[0].why)
	}
	if len(x.root) == 0 {
		return false, fmt.Errorf("%w: %s belongs to another program. Name another file", store.ErrForeign, path)
	}
	if x.meta.freelist == math.MaxUint64 { // bbolt reads all pages to find the free ones
		err = whole.all()
		x = whole
	}
	if err == nil && !x.freeRead && len(x.faults) > 0 {
		err = fmt.Errorf("%w: %s. Put a backup in its place", store.ErrDamaged, x.faults[len(x.faults)-1].why)
	}
	return len(x.faults) > 0, err
}

func (x *examination) fault(in bucket, format string, args ...any) {
	x.faults = append(x.faults, pageFault{in, fmt.Sprintf(format, args...)})
}

// all examines the whole file. The result is an error if a page of the list of buckets is damaged, because the file
// then can't be repaired.
func (x *examination) all() error {
	if x.meta.pages > mostPages {
		return fmt.Errorf("%w: it says that it has %d pages. Put a backup in its place", store.ErrDamaged, x.meta.pages)
	}
	if err := x.tree(); err != nil {
		return err
	}
	if len(x.faults) > 0 && x.faults[0].in == 0 {
		return fmt.Errorf("%w: its list of buckets is damaged (%s). Put a backup in its place", store.ErrDamaged, x.faults[0].why)
	}
	x.free()
	for b := range allBuckets {
		if x.births[b] > x.sequences[b] {
			x.fault(b, "it has numbered %d records, but has one with the number %d", x.sequences[b], x.births[b])
		}
	}
	return x.ctx.Err()
}

// tree examines the pages that can be reached from the root page.
func (x *examination) tree() error {
	x.use, x.root = make([]pageUse, x.meta.pages), map[string][]byte{}
	top := tree{x: x, element: x.bucketElement, nested: true}
	return top.page(x.meta.root, nil, nil, 0)
}

// faultUnlisted adds a fault if the list of buckets lacks a bucket of the current layout.
func (x *examination) faultUnlisted() {
	for b := range allBuckets {
		if !x.listed[b] {
			x.fault(0, "it lacks the bucket %s", b)
			return
		}
	}
}

// bucketElement examines a bucket, which is an element of the top page.
func (x *examination) bucketElement(k, v []byte, flags uint32) error {
	var in bucket
	for b := range allBuckets {
		if bucketNames[b] == string(k) {
			in = b
		}
	}
	isRoot := bytes.Equal(k, rootBucket)
	foreign := in == 0 && !isRoot && !bytes.Equal(k, runsBucket)
	if x.outline && foreign {
		return nil // the file may belong to another program, or to a newer version
	}
	if flags != leafBucket || foreign || len(v) < pageHeader {
		x.fault(0, "there is a bucket %s, which no store has", shownKey(k))
		for b := range allBuckets { // a damaged pointer may lead to a page of rows instead of the list of buckets
			if flags == 0 && stateOf(b, k, v) == rowSound {
				return x.rowElement(b, false, k, v, flags)
			}
		}
		return nil
	}
	x.listed[in] = true
	root, sequence := binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])
	below := tree{x: x, in: in, element: func(k, v []byte, flags uint32) error { return x.rowElement(in, isRoot, k, v, flags) }}
	if !isRoot {
		x.sequences[in] = sequence
	}
	if root != 0 {
		if len(v) > pageHeader {
			x.fault(in, "its entry in the list of buckets is damaged")
		}
		return below.page(root, nil, nil, 1)
	}
	inline := v[pageHeader:]
	if len(inline) < pageHeader || binary.LittleEndian.Uint64(inline) != 0 || binary.LittleEndian.Uint32(inline[12:]) != 0 {
		x.fault(in, "its entry in the list of buckets is damaged")
		return nil
	}
	return below.elements("its small page", inline, uint64(len(inline)), nil, nil, 1)
}

// rowElement examines one row.
func (x *examination) rowElement(in bucket, isRoot bool, k, v []byte, flags uint32) error {
	if flags != 0 {
		x.fault(in, "the row %s is marked as a bucket", shownKey(k))
	}
	if isRoot {
		x.root[string(k)] = bytes.Clone(v)
		return nil
	}
	if in == 0 {
		return nil
	}
	state := stateOf(in, k, v)
	if state == rowDamaged {
		x.unknown++
	}
	if state == rowSound && len(indexesOf[in]) > 0 {
		_, birth := numbersOf(v)
		x.births[in] = max(x.births[in], birth)
	}
	if x.row != nil {
		x.row(in, k, v, state)
	}
	return nil
}

// tree is one tree of pages in the file: the tree of a bucket, or the tree of the list of buckets.
type tree struct {
	x       *examination
	in      bucket
	element func(k, v []byte, flags uint32) error
	nested  bool   // the function in the field element may read other pages
	last    []byte // the previous key
	leaves  int    // the depth of the leaf pages, which is the same for all of them; 0: not known yet
}

// page examines a page and the pages below it in the tree. All keys must be at or above low, and below high. A limit
// that is nil does not apply.
func (t *tree) page(id uint64, low, high []byte, depth int) error {
	x := t.x
	if err := x.ctx.Err(); err != nil {
		return err
	}
	switch {
	case id < 2 || id >= x.meta.pages:
		x.fault(t.in, "page %d is not in the file", id)
		return nil
	case x.use[id] != pageUnseen:
		x.fault(t.in, "page %d occurs twice", id)
		return nil
	case depth > maxDepth:
		x.fault(t.in, "page %d is nested too deep", id)
		return nil
	case x.outline && t.leaves > 0 && depth == t.leaves:
		x.use[id] = pageReached
		return nil
	}
	body, err := x.read(id, 1, &x.leaf)
	if err != nil {
		return err
	}
	x.use[id] = pageReached
	overflow := uint64(binary.LittleEndian.Uint32(body[12:]))
	if stored := binary.LittleEndian.Uint64(body); stored != id || overflow >= x.meta.pages-id {
		x.fault(t.in, "page %d says that it is page %d, followed by %d overflow pages", id, stored, overflow)
		if overflow = 0; binary.LittleEndian.Uint16(body[8:]) == pageBranch {
			return nil // the page may belong to another bucket, so the pages that it names are not examined
		}
	}
	for i := range overflow {
		if x.use[id+1+i] != pageUnseen {
			x.fault(t.in, "page %d occurs twice", id+1+i)
			overflow = i
			break
		}
		x.use[id+1+i] = pageReached
	}
	if overflow > 0 {
		if body, err = x.read(id, 1+overflow, &x.leaf); err != nil {
			return err
		}
	}
	if t.nested || binary.LittleEndian.Uint16(body[8:]) == pageBranch {
		body = bytes.Clone(body) // copied, because the pages below use the same memory
	}
	return t.elements(fmt.Sprintf("page %d", id), body, 0, low, high, depth)
}

// read reads pages into reusable memory.
func (x *examination) read(id, pages uint64, memory *[]byte) ([]byte, error) {
	n := int(pages * x.size)
	if cap(*memory) < n {
		*memory = make([]byte, n)
	}
	b := (*memory)[:n]
	got, err := x.file.ReadAt(b, int64(id*x.size))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	clear(b[got:])
	return b, nil
}

// elements examines the contents of a page. The parameter size is the expected length in bytes. If size is 0, the
// parameter page has one or more whole pages of the file, and the elements must need exactly that many pages.
func (t *tree) elements(name string, page []byte, size uint64, low, high []byte, depth int) error { //nolint:cyclop // one check for each way in which a page can be damaged
	flags, count := binary.LittleEndian.Uint16(page[8:]), uint64(binary.LittleEndian.Uint16(page[10:]))
	if flags != pageBranch && flags != pageLeaf || count == 0 && size == 0 && depth > 0 || flags == pageBranch && size > 0 {
		t.x.fault(t.in, "%s is of kind %#x with %d elements", name, flags, count)
		return nil
	}
	if flags == pageLeaf && !t.nested {
		t.leaves = depth
	}
	data := pageHeader + count*pageElement // where the next data must start
	faults := len(t.x.faults)
	var keys [][]byte
	var below []uint64
	for i := range count {
		at := pageHeader + i*pageElement
		if at+pageElement > uint64(len(page)) {
			t.x.fault(t.in, "element %d of %s lies outside of it", i, name)
			break
		}
		n := func(i uint64) uint64 { return uint64(binary.LittleEndian.Uint32(page[at+i:])) }
		from, key, value := at+n(4), n(8), n(12)
		if flags == pageBranch {
			from, key, value = at+n(0), n(4), 0
		}
		end := from + key + value
		if from != data || key == 0 {
			t.x.faultOnce(faults, t.in, "element %d of %s is not at its place", i, name)
		}
		data = end
		if key == 0 || end > uint64(len(page)) {
			t.x.faultOnce(faults, t.in, "element %d of %s lies outside of it", i, name)
			continue
		}
		k := page[from : from+key]
		if t.last != nil && bytes.Compare(k, t.last) < 0 || t.last != nil && bytes.Equal(k, t.last) && flags == pageLeaf ||
			low != nil && bytes.Compare(k, low) < 0 || high != nil && bytes.Compare(k, high) >= 0 {
			t.x.faultOnce(faults, t.in, "the keys of %s are out of order", name)
		}
		if flags == pageBranch {
			keys, below = append(keys, k), append(below, binary.LittleEndian.Uint64(page[at+8:]))
			continue
		}
		t.last = append(t.last[:0], k...)
		if err := t.element(k, page[from+key:end], uint32(n(0))); err != nil {
			return err
		}
	}
	if want := size; want > 0 && data != want || want == 0 && (data+t.x.size-1)/t.x.size != uint64(len(page))/t.x.size {
		t.x.faultOnce(faults, t.in, "the length of %s does not match its contents", name)
	}
	for i, id := range below {
		to := high
		if i+1 < len(keys) {
			to = keys[i+1]
		}
		from := keys[i]
		if i == 0 && low == nil {
			from = nil
		}
		if err := t.page(id, from, to, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// faultOnce records a fault of a page only if this page has no recorded fault yet. The parameter since is the number of
// faults before the page was examined.
func (x *examination) faultOnce(since int, in bucket, format string, args ...any) {
	if len(x.faults) == since {
		x.fault(in, format, args...)
	}
}

// These constants describe the page with the list of free pages.
const (
	pageFreelist  = 0x10
	manyFreePages = 0xFFFF
)

// free verifies that the list of free pages has every unused page and no used page. A used page in this list would be
// overwritten. After a fault, free continues with the rest of the list, because the list shows which unreached pages
// have only deleted rows.
func (x *examination) free() {
	if x.meta.freelist == math.MaxUint64 {
		return // the file has no list of free pages
	}
	before := len(x.faults)
	wrong := func(format string, args ...any) {
		x.faultOnce(before, bucketEnd, "the list of free pages: "+format, args...)
	}
	id := x.meta.freelist
	if id < 2 || id >= x.meta.pages {
		wrong("it can't be on page %d", id)
		return
	}
	head, err := x.read(id, 1, &x.leaf)
	if err != nil {
		wrong("%v", err)
		return
	}
	overflow := uint64(binary.LittleEndian.Uint32(head[12:]))
	if binary.LittleEndian.Uint64(head) != id || binary.LittleEndian.Uint16(head[8:]) != pageFreelist || overflow >= x.meta.pages-id {
		wrong("page %d is of another kind", id)
		return
	}
	page, err := x.read(id, 1+overflow, &x.leaf)
	if err != nil {
		wrong("%v", err)
		return
	}
	count, at := uint64(binary.LittleEndian.Uint16(page[10:])), uint64(pageHeader)
	if count == manyFreePages {
		count, at = binary.LittleEndian.Uint64(page[at:]), at+8
	}
	if count > uint64(len(page))/8 || at+8*count > uint64(len(page)) {
		wrong("it can't hold %d pages", count)
		return
	}
	for i := range overflow + 1 {
		if x.use[id+i] != pageUnseen {
			wrong("page %d is in use", id+i)
			continue
		}
		x.use[id+i] = pageOfFreelist
	}
	for i := range count {
		n := binary.LittleEndian.Uint64(page[at+8*i:])
		if n < 2 || n >= x.meta.pages || x.use[n] != pageUnseen {
			wrong("it names page %d, which is not free", n)
			continue
		}
		x.use[n] = pageFree
	}
	x.freeRead = true
	if len(x.faults) > 0 || x.outline {
		return // a damaged page may point to a page that was not reached, so this page may be in use
	}
	for n := uint64(2); n < x.meta.pages; n++ {
		if x.use[n] == pageUnseen {
			wrong("page %d is neither free nor in use", n)
			x.unreached = true
			return
		}
	}
}

// An inspection pauses for inspectPause after each inspectStep bytes. During the pause, the store's callers can use the
// disk and the processor.
const (
	inspectPause = 2 * time.Millisecond
	inspectStep  = 1 << 20
)

// Inspect examines the whole file while the store is in use, and adds the damage that it finds to the list of known
// damage. Until Inspect returns, the store does not reuse freed space. The next Open repairs damaged pages.
func (s *Store) Inspect(ctx context.Context) error {
	if err := s.writer.broken(); err != nil {
		return err
	}
	btx, err := s.begin()
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return store.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("store: begin an inspection: %w", within{err})
	}
	defer func() { _ = btx.Rollback() }() // rolling back a read transaction can't fail
	size := s.db.Info().PageSize
	x := &examination{
		ctx: ctx, file: &paced{ctx: ctx, from: s.identity.file}, size: uint64(size),
		meta: meta{root: uint64(btx.Cursor().Bucket().Root()), freelist: math.MaxUint64, pages: uint64(btx.Size()) / uint64(size)},
	}
	x.row = func(in bucket, k, _ []byte, state rowState) {
		if state != rowSound {
			s.damage.Found(damagedRow(in, k, whyChecksum).Damage)
		}
	}
	err = Guard(x.all)
	remedy := "Start the program again: it repairs the file as far as possible"
	if s.readOnly && s.torn == nil && btx.Size() > mostAtOpen {
		remedy = "countersign serve finds this a minute after its start, and repairs the file as far as possible when it starts again"
	}
	for _, f := range x.faults {
		s.damage.Found(store.Damage{Bucket: f.bucket(), Why: f.why + ". " + remedy})
	}
	if errors.Is(err, store.ErrDamaged) {
		s.damage.failed(err)
		err = nil
	}
	if err != nil || s.readOnly || s.torn != nil || len(x.faults) == 0 && x.unknown == 0 {
		return err
	}
	return s.Update(ctx, func(t store.Tx) error {
		r := t.(*tx).rows
		r.written = true
		return demandExamination(r.tx)
	})
}

// paced is a reader that pauses after each inspectStep bytes.
type paced struct {
	ctx  context.Context
	from io.ReaderAt
	n    int
}

func (p *paced) ReadAt(b []byte, at int64) (int, error) {
	if p.n += len(b); p.n >= inspectStep {
		p.n = 0
		select {
		case <-p.ctx.Done():
		case <-time.After(inspectPause):
		}
	}
	return p.from.ReadAt(b, at)
}
