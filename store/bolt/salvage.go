package bolt

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/store"
	"countersign/store/record"
)

// Salvage writes the rows that can be read from a damaged file into a new store, and lists the missing records. Salvage
// leaves out readable rows that are useless in the new store, or that would not verify there: see drop, wanted and
// closeHeads. Salvage does not change the damaged file. The damaged file must not be open in any process. Open repairs
// a file with little damage. Salvage can also read a file that is cut short, or that has lost its list of buckets or
// both meta pages.
//
// If another record names a missing record, the new store has a mark (see the function mark) under the key of the
// missing record. The workflow then closes the records that depend on the missing record (see store.SetAside). A row
// with an empty record takes the place of a missing audit record: see approvers.AuditRow.Lost. The last parameter lists
// further rows that Salvage treats as damaged.
func Salvage(ctx context.Context, path, to string, also []Missing) (lost []store.Damage, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, sentence(path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, sentence(path, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is not a regular file", store.ErrForeign, path)
	}
	if err := lockShared(file); err != nil {
		return nil, fmt.Errorf("%w: %s is held by %s. Stop it first", store.ErrLocked, path, holder(path))
	}
	defer unlock(file)
	s := newSalvage()
	x, err := s.read(ctx, file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", store.ErrForeign, path, err)
	}
	for _, m := range also {
		s.missing(m)
	}
	s.put(x.faults)
	s.closeHistory()
	s.drop()
	s.relations()
	s.wanted()
	if err := s.create(to, x); err != nil {
		return nil, err
	}
	for _, d := range s.damage {
		if !d.Mended {
			d.Why = strings.TrimSuffix(d.Why, ", so it was set aside")
			lost = append(lost, d)
		}
	}
	return lost, nil
}

// Missing is an unreadable record. Owner is the id of the record to which the unreadable record belongs (see
// store.SetAside).
type Missing struct {
	store.Damage
	Owner string
}

// Gather creates a store at a path from rows of another backend. Rows may be missing, so Gather does not check the
// store, unlike Fill. The caller runs Salvage next.
func Gather(ctx context.Context, path string, fill func(store.Filling) error) error {
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	f := newFilling(s, store.Mark{})
	if err = fill(f); err == nil {
		err = f.flush(ctx)
	}
	if err == nil {
		err = f.complete(ctx)
	}
	return errors.Join(err, s.Close())
}

// holes reads a file in which pages may be missing or unreadable. holes returns zeros for missing and unreadable pages.
type holes struct{ file io.ReaderAt }

func (h holes) ReadAt(b []byte, at int64) (int, error) {
	clear(b)
	if n, err := h.file.ReadAt(b, at); err != nil {
		clear(b[n:])
		if !errors.Is(err, io.EOF) {
			clear(b)
		}
	}
	return len(b), nil
}

// read takes the rows from all pages of the last commit that it can find.
func (s *salvage) read(ctx context.Context, file io.ReaderAt, size int64) (*examination, error) {
	in := holes{file}
	valid, pageSize := validMetas(in, size)
	x := &examination{ctx: ctx, file: in, size: uint64(pageSize)}
	pages := uint64(size+pageSize-1) / uint64(pageSize)
	if pages > mostPages {
		return nil, fmt.Errorf("it has %d pages", pages)
	}
	for i := range valid {
		valid[i].pages = pages
	}
	if len(valid) > 0 {
		x.meta = valid[0]
		if err := x.tree(); err != nil {
			return nil, err
		}
		x.faultUnlisted()
		x.free()
	}
	// If both meta pages are readable, the list of free pages tells which pages are used, even if nothing else is
	// readable.
	freelist := !slices.ContainsFunc(x.faults, func(f pageFault) bool { return f.in == bucketEnd })
	root := !slices.ContainsFunc(x.faults, func(f pageFault) bool { return f.in == 0 })
	if len(valid) < 2 || !root && !freelist {
		newest, err := lastRoot(ctx, in, uint64(pageSize), pages, valid)
		if err != nil {
			return nil, err
		}
		x.meta = newest
		s.damage = append(s.damage, store.Damage{Bucket: "file", Why: "the pages that name the last commit are damaged, so the newest changes may be missing, and some rows may be outdated versions"})
	}
	again := &examination{ctx: ctx, file: in, size: uint64(pageSize), meta: x.meta, row: s.take}
	if err := again.tree(); err != nil {
		return nil, err
	}
	again.faultUnlisted()
	s.faultAstray(again)
	again.free()
	if schemaOf := string(again.root[string(schemaKey)]); schemaOf != "" && schemaOf != fmt.Sprint(schema) || again.root[string(upgradingKey)] != nil {
		return nil, fmt.Errorf("it was written by another version of the program, with the format %q: open it once with that version", schemaOf)
	}
	if added := s.strays(again); added > 0 && !freelist && len(s.damage) == 0 {
		s.damage = append(s.damage, store.Damage{Bucket: "file", Why: "the list of free pages is damaged, and rows were found on pages that nothing refers to: some of them may be outdated versions"})
	}
	rows := 0
	for _, of := range s.rows {
		rows += len(of)
	}
	if rows == 0 {
		return nil, errors.New("no row of a store can be read in it")
	}
	for _, f := range again.faults {
		if f.in == 0 { // the method strays has searched every page for rows of all buckets
			s.damage = append(s.damage, store.Damage{Bucket: "file", Why: "the list of buckets is damaged (" + f.why + "). Rows of small buckets, which are on the same page, may be lost"})
			again.faults = append(again.faults, pageFault{settings, f.why})
			break
		}
	}
	again.faults = slices.DeleteFunc(again.faults, func(f pageFault) bool { return f.in == 0 })
	return again, nil
}

// validMetas returns the readable meta pages, newest first, and the size of the file's pages in bytes.
func validMetas(file io.ReaderAt, size int64) (valid []meta, pageSize int64) {
	page := make([]byte, metaEnd)
	read := func(at int64) (m meta, says int64, ok bool) {
		_, _ = file.ReadAt(page, at) // zero if it can't be read
		m, ok = readMeta(page)
		return m, int64(binary.LittleEndian.Uint32(page[metaPageSize:])), ok
	}
	pageSize = int64(os.Getpagesize())
	first, says, ok := read(0)
	if ok && says >= 512 && says <= 1<<16 {
		pageSize, valid = says, append(valid, first)
	}
	sizes := []int64{pageSize}
	if len(valid) == 0 {
		sizes = append(sizes, 512, 1<<10, 1<<11, 1<<12, 1<<13, 1<<14, 1<<15, 1<<16)
	}
	for _, at := range sizes {
		if second, says, ok := read(at); ok && says == at && at < size {
			pageSize, valid = at, append(valid, second)
			break
		}
	}
	slices.SortFunc(valid, func(a, b meta) int {
		if a.tx > b.tx {
			return -1
		}
		return 1
	})
	return valid, pageSize
}

// lastRoot finds the root page of the newest commit whose pages can be read. The newest commit has the highest birth
// numbers and versions, because these numbers only increase.
func lastRoot(ctx context.Context, file io.ReaderAt, pageSize, pages uint64, valid []meta) (best meta, err error) {
	type rank struct {
		sequences uint64 // sum of the birth numbers of all buckets; the root page itself has these numbers
		faults    int
		versions  uint64 // sum of the versions of all records
	}
	var highest rank
	for id := uint64(2); id < pages; id++ {
		known := slices.IndexFunc(valid, func(m meta) bool { return m.root == id })
		if known < 0 && !isRootPage(file, pageSize, id) {
			continue
		}
		m := meta{root: id, freelist: math.MaxUint64, pages: pages}
		if known >= 0 {
			m = valid[known]
		}
		x, has := &examination{ctx: ctx, file: file, size: pageSize, meta: m}, rank{}
		x.row = func(in bucket, _, v []byte, state rowState) {
			if state == rowSound && in == auditJournal {
				has.versions++
			}
			if state == rowSound && recordBuckets[in] {
				version, _ := numbersOf(v)
				has.versions += version
			}
		}
		if err := x.tree(); err != nil {
			return best, err
		}
		for _, n := range x.sequences {
			has.sequences += n
		}
		has.faults = len(x.faults)
		if best.root == 0 || cmp.Or(cmp.Compare(has.sequences, highest.sequences), cmp.Compare(highest.faults, has.faults), cmp.Compare(has.versions, highest.versions)) > 0 {
			best, highest = m, has
		}
	}
	if best.root == 0 { // without a root page, only the method strays finds rows
		best = meta{root: pages, freelist: math.MaxUint64, pages: pages}
	}
	return best, nil
}

// isRootPage reports whether a page looks like the first page of the list of buckets.
func isRootPage(file io.ReaderAt, pageSize, id uint64) bool {
	page := make([]byte, pageSize)
	_, _ = file.ReadAt(page, int64(id*pageSize)) // zero if it can't be read
	flags, first := binary.LittleEndian.Uint16(page[8:]), page[pageHeader:]
	n := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(first[i:])) }
	from, size := n(4), n(8)
	switch {
	case binary.LittleEndian.Uint64(page) != id, flags != pageBranch && flags != pageLeaf, flags == pageLeaf && n(0) != leafBucket:
		return false
	case flags == pageBranch:
		from, size = n(0), n(4)
	}
	return from+size <= uint64(len(first)) && string(first[from:from+size]) == slices.Min(slices.Collect(bucketList))
}

// bucketList iterates over the names of the buckets.
func bucketList(yield func(string) bool) {
	for b := range allBuckets {
		if !yield(bucketNames[b]) {
			return
		}
	}
}

// missing writes a mark (see the function mark) for an unreadable row of another backend.
func (s *salvage) missing(m Missing) {
	for in := range allBuckets {
		if in.String() != m.Bucket && (in != outboxMessages || m.Bucket != "outbox_messages") {
			continue
		}
		key := m.ID
		if !recordBuckets[in] {
			key = string(number(text(nil, m.ID), m.Seq))
		}
		if s.rows[in] == nil {
			s.rows[in] = map[string]salvaged{}
		}
		switch {
		case m.ID == "":
			s.damage = append(s.damage, m.Damage)
		case recordBuckets[in]:
			s.refer(in, key, m.Owner, m.Why)
		case in == messages:
			s.rows[in][key] = salvaged{nil, rowMarked}
		default:
			s.damage = append(s.damage, m.Damage)
		}
		return
	}
	s.damage = append(s.damage, m.Damage)
}

func (s *salvage) marked(in bucket, k string) bool {
	v, there := s.set[in][k]
	return there && stateOf(in, []byte(k), v) == rowMarked
}

// sounds iterates over the rows of the new store that are not marked as damaged, in order of their keys. The values
// have no checksums.
func (s *salvage) sounds(in bucket, yield func(k string, v []byte)) {
	keys := make([]string, 0, len(s.set[in]))
	for k, v := range s.set[in] {
		if stateOf(in, []byte(k), v) == rowSound {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		if v, there := s.set[in][k]; there {
			yield(k, valueOf(in, v))
		}
	}
}

// unlist removes the entries about single rows of a bucket from the list of damage.
func (s *salvage) unlist(in bucket) {
	s.damage = slices.DeleteFunc(s.damage, func(d store.Damage) bool { return d.Bucket == in.String() && d.Key != "" && !d.Mended })
}

// closeHistory closes the gaps of the journal, and writes a row with an empty record for every lost audit record. The
// journal entries after the first gap get new numbers. Heads with signatures over the old numbers are dropped, because
// the signatures would not verify.
func (s *salvage) closeHistory() {
	for _, in := range []bucket{audit, auditPayloads, auditJournal, auditHeads} {
		s.unlist(in)
	}
	cut := s.closeJournal()
	entries := map[string]approvers.JournalEntry{} // by the key of the record
	s.sounds(auditJournal, func(k string, v []byte) {
		e := entryOf([]byte(k), v)
		entries[string(number(text(nil, e.Chain), e.Seq))] = e
	})
	lost := func(in bucket, chain string, seq uint64, why string) {
		s.damage = append(s.damage, store.Damage{Bucket: in.String(), Key: fmt.Sprintf("%s %d", chain, seq), ID: chain, Seq: seq, Why: why})
	}
	last := map[string]uint64{} // the last record of each chain
	erased := map[string][]uint64{}
	chains := map[string][]approvers.AuditRecord{}
	s.sounds(audit, func(k string, v []byte) {
		x := auditRow([]byte(k), v)
		last[x.Chain] = max(last[x.Chain], x.Seq)
		a, err := approvers.ParseAuditRecord(x.Record)
		if err != nil {
			return
		}
		chains[x.Chain] = append(chains[x.Chain], a)
		if a.Kind == approvers.AuditErased {
			if e, err := approvers.ErasureOf(a); err == nil {
				erased[x.Chain] = append(erased[x.Chain], e.Seqs...)
			}
		}
	})
	s.sounds(auditPayloads, func(k string, _ []byte) { // a payload without a record shows that the record is lost
		if chain, seq, ok := auditKey([]byte(k)); ok {
			last[chain] = max(last[chain], seq)
		}
	})
	for k := range s.set[audit] {
		if chain, seq, ok := auditKey([]byte(k)); ok && entries[k].Chain != "" && s.marked(audit, k) {
			last[chain] = max(last[chain], seq)
		}
	}
	for k := range s.set[audit] {
		if s.marked(audit, k) {
			delete(s.set[audit], k)
		}
	}
	s.cutChains(chains, last)
	for chain, end := range last {
		prev := "" // the hash that the following record names
		for seq := end; seq > 0; seq-- {
			k := number(text(nil, chain), seq)
			if v, there := s.set[audit][string(k)]; there {
				a, err := approvers.ParseAuditRecord(auditRow(k, valueOf(audit, v)).Record)
				prev = a.Prev
				if _, text := s.set[auditPayloads][string(k)]; err == nil && a.PayloadHash != "" && (!text || s.marked(auditPayloads, string(k))) && !slices.Contains(erased[chain], seq) {
					lost(auditPayloads, chain, seq, "it can't be read")
				}
				continue
			}
			x := approvers.AuditRow{Leaf: approvers.NoLeaf}
			if e, there := entries[string(k)]; there {
				x.Leaf, x.Sum = e.Leaf, e.Sum
			} else {
				x.Sum = sumNamed(prev)
			}
			prev = ""
			s.keep(audit, string(k), append(number(nil, x.Leaf), x.Sum[:]...))
			lost(audit, chain, seq, "it can't be read")
		}
	}
	for k := range s.set[auditPayloads] {
		if _, there := s.set[audit][k]; !there || s.marked(auditPayloads, k) {
			delete(s.set[auditPayloads], k)
		}
	}
	s.closeHeads(cut)
}

// cutChains finds chains that have lost records which no other row of the history names. A chain has lost its last
// records if its records do not have the state of its stored request or execution. A chain without any record is either
// lost or pruned. For each chain that has lost records, cutChains increases the number of the last record. If every page
// with records can be read, no record is lost in this way, and cutChains does nothing.
func (s *salvage) cutChains(chains map[string][]approvers.AuditRecord, last map[string]uint64) {
	if !slices.ContainsFunc(s.damage, func(d store.Damage) bool { return d.Bucket == audit.String() && d.Key == "" }) {
		return
	}
	differs := func(chain string, why func([]approvers.AuditRecord) string) {
		records := chains[chain]
		if len(records) > 0 && last[chain] == uint64(len(records)) && why(records) != "" {
			last[chain]++
		}
	}
	begun := map[string]bool{} // chains that have, or had, a first record
	eachRecord(s, requests, func(r *approvers.Request) {
		differs(r.ID, func(records []approvers.AuditRecord) string {
			if why := r.Unrecorded(records); why != "" || !s.there(executions, r.Execution) {
				return why
			}
			return soundRecord[approvers.Execution](s, executions, r.Execution).Unrecorded(records)
		})
	})
	eachRecord(s, executions, func(e *approvers.Execution) {
		begun[e.Chain()] = true
		if e.Request == "" {
			differs(e.ID, e.Unrecorded)
		}
	})
	eachRecord(s, calls, func(c *store.Call) { begun[cmp.Or(c.Request, c.Execution, c.ID)] = true })
	for k := range s.set[requests] { // includes marks: the workflow rebuilds a lost request, and adds a record to its chain
		begun[k] = true
	}
	for _, a := range chains[approvers.InstallationChain] {
		if a.Kind == approvers.AuditPruned {
			delete(begun, a.Facts["chain"])
		}
	}
	for chain := range begun {
		if last[chain] == 0 {
			last[chain] = 1
		}
	}
}

// sumNamed reads a hash in hex. If the text is not a hash, sumNamed returns zero.
func sumNamed(name string) (sum approvers.Sum) {
	b, err := hex.DecodeString(name)
	if err == nil && len(b) == len(sum) {
		sum = approvers.Sum(b)
	}
	return sum
}

// closeJournal numbers the journal without gaps. The result cut is the number of entries before the first gap.
func (s *salvage) closeJournal() (cut uint64) {
	type one struct {
		k string
		v []byte
	}
	var all []one
	s.sounds(auditJournal, func(k string, v []byte) { all = append(all, one{k, v}) })
	for cut = 0; cut < uint64(len(all)) && leafOf([]byte(all[cut].k)) == cut; cut++ {
	}
	marks := 0
	for k := range s.set[auditJournal] {
		if s.marked(auditJournal, k) {
			marks++
			delete(s.set[auditJournal], k)
		}
	}
	if cut == uint64(len(all)) {
		return cut
	}
	s.damage = append(s.damage, store.Damage{Bucket: auditJournal.String(), Why: fmt.Sprintf(
		"%d entries are lost, and nothing shows to which records they belonged. The entries after number %d get new numbers, and no signed head covers them until the bot seals again", max(marks, 1), cut)})
	for leaf := cut; leaf < uint64(len(all)); leaf++ {
		delete(s.set[auditJournal], all[leaf].k)
	}
	for leaf := cut; leaf < uint64(len(all)); leaf++ {
		was, v := all[leaf].k, all[leaf].v
		e := entryOf([]byte(was), v)
		s.keep(auditJournal, string(number(nil, leaf)), v)
		place := number(text(nil, e.Chain), e.Seq)
		stored, there := s.set[audit][string(place)]
		if there && stateOf(audit, place, stored) == rowSound {
			if x := auditRow(place, valueOf(audit, stored)); x.Leaf == leafOf([]byte(was)) {
				s.keep(audit, string(place), append(append(number(nil, leaf), x.Sum[:]...), x.Record...))
			}
		}
	}
	return cut
}

// closeHeads keeps the heads before the first faulty head. A head is faulty if it is missing, or does not cover more
// entries than the head before it. A head is also faulty if it covers entries after the journal's first gap.
func (s *salvage) closeHeads(cut uint64) {
	next, size, left := uint64(1), uint64(0), 0
	for k := range s.set[auditHeads] {
		if s.marked(auditHeads, k) {
			delete(s.set[auditHeads], k)
			left++
		}
	}
	s.sounds(auditHeads, func(k string, v []byte) {
		if h := headOf([]byte(k), v); h.Number == next && h.Size > size && h.Size <= cut {
			next, size = h.Number+1, h.Size
			return
		}
		delete(s.set[auditHeads], k)
		left++
	})
	if left > 0 {
		s.damage = append(s.damage, store.Damage{Bucket: auditHeads.String(), Why: fmt.Sprintf(
			"the signed heads from number %d on can't be read, or cover lost records. Keep the file of signed heads and its copies: they prove what was there", next)})
	}
}

// drop removes rows that have no use in the new store: incomplete files, marked counters, marked renderings, and the
// bucket set_aside.
func (s *salvage) drop() {
	for _, pair := range [][2]bucket{{files, fileData}, {fileData, files}} {
		for k := range s.set[pair[0]] {
			if _, both := s.set[pair[1]][k]; both && !s.marked(pair[0], k) && !s.marked(pair[1], k) {
				continue
			}
			for _, in := range pair {
				why := "the other half of the file can't be read, so nothing of the file is kept"
				if v, there := s.set[in][k]; there && stateOf(in, []byte(k), v) == rowSound {
					s.damage = append(s.damage, damagedRow(in, []byte(k), why).Damage)
				}
				delete(s.set[in], k)
			}
		}
	}
	for k := range s.set[counters] {
		if key, at, id, ok := cutCounter([]byte(k)); s.marked(counters, k) {
			delete(s.set[counters], k)
			if ok {
				delete(s.set[counterTime], string(counterTimeKey(at, key, id)))
			}
		}
	}
	for k := range s.set[renderings] {
		if s.marked(renderings, k) {
			delete(s.set[renderings], k)
		}
	}
	delete(s.set, setAside)
}

// refer writes a mark (see the function mark) for a missing record that another record names.
func (s *salvage) refer(in bucket, id, owner, why string) {
	if id == "" {
		return
	}
	if _, there := s.set[in][id]; !there {
		s.stored(in, id, mark(in, []byte(id), nil))
		d := damagedRow(in, []byte(id), why).Damage
		s.damage = append(s.damage, d)
	}
	index, has := belongs[in]
	if !has || owner == "" || !s.marked(in, id) {
		return
	}
	for _, of := range s.set[index] {
		if string(of[:max(0, len(of)-checksumSize)]) == id {
			return
		}
	}
	s.keep(index, string(text(text(nil, owner), id)), []byte(id))
}

// relations writes a mark (see the function mark) for each missing record that another record names. The workflow then
// closes the records that depend on the missing record.
func (s *salvage) relations() {
	const why = "it is missing, and other records name it"
	eachRecord(s, executions, func(e *approvers.Execution) {
		s.refer(calls, e.Call, e.Turn, why)
		s.refer(turns, e.Turn, e.Conversation, why)
		s.refer(requests, e.Request, e.Conversation, why)
		s.refer(conversations, e.Conversation, "", why)
	})
	eachRecord(s, requests, func(r *approvers.Request) {
		s.refer(calls, r.Call, r.Turn, why)
		s.refer(turns, r.Turn, r.Conversation, why)
		s.refer(executions, r.Execution, r.Conversation, why)
		s.refer(conversations, r.Conversation, "", why)
	})
	eachRecord(s, calls, func(c *store.Call) {
		s.refer(turns, c.Turn, c.Conversation, why)
		s.refer(executions, c.Execution, c.Conversation, why)
		s.refer(requests, c.Request, c.Conversation, why)
		s.refer(conversations, c.Conversation, "", why)
	})
	eachRecord(s, elicitations, func(q *approvers.Elicitation) { s.refer(executions, q.Execution, "", why) })
	eachRecord(s, turns, func(t *approvers.Turn) { s.refer(conversations, t.Conversation, "", why) })
	eachRecord(s, conversations, func(c *store.Conversation) { s.refer(turns, c.Turn, c.ID, why) })
	for k := range s.set[messages] {
		if conversation, _, ok := cutText([]byte(k)); ok {
			s.refer(conversations, conversation, "", why)
		}
	}
	for k := range s.set[conversations] { // a conversation belongs to its place; if the place is also lost, the conversation gets an invented place
		if s.marked(conversations, k) {
			s.refer(conversations, k, "//"+k, why)
		}
	}
}

// eachRecord calls fn with each undamaged record of a bucket.
func eachRecord[T any](s *salvage, in bucket, fn func(*T)) {
	s.sounds(in, func(_ string, v []byte) {
		var rec T
		if _, js, err := cutHeader(v); err == nil && record.Decode(js, &rec) == nil {
			fn(&rec)
		}
	})
}

// wanted removes the timers of missing records. wanted also sets a missing timer if a record would wait for ever
// without this timer.
func (s *salvage) wanted() {
	has := map[string]bool{}
	var gone []store.Timer
	s.sounds(timers, func(k string, v []byte) {
		var t store.Timer
		if record.Decode(v, &t) != nil {
			return
		}
		if _, there := s.set[timerOf[t.Kind]][t.Ref]; timerOf[t.Kind] != 0 && !there {
			gone = append(gone, t)
			return
		}
		has[string(timerKindRef(t.Kind, t.Ref))] = true
	})
	for _, t := range gone {
		due := moment(nil, t.Due)
		delete(s.set[timers], string(timerKey(t.Kind, due, t.Ref)))
		delete(s.set[timerRef], string(timerKindRef(t.Kind, t.Ref)))
		why := fmt.Sprintf("it is for a row of %s that does not exist", timerOf[t.Kind])
		s.damage = append(s.damage, store.Damage{Bucket: timers.String(), Key: fmt.Sprintf("%s %s", t.Kind, t.Ref), Why: why})
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	want := func(t store.Timer) {
		if has[string(timerKindRef(t.Kind, t.Ref))] {
			return
		}
		if t.Due.IsZero() {
			t.Due = now
		}
		due := moment(nil, t.Due)
		if js, err := record.Append(nil, &t); err == nil {
			s.keep(timers, string(timerKey(t.Kind, due, t.Ref)), js)
			s.keep(timerRef, string(timerKindRef(t.Kind, t.Ref)), due)
			s.mended(timers, fmt.Sprintf("the timer %s of %q was missing, and was set again", t.Kind, t.Ref))
		}
	}
	eachRecord(s, conversations, func(c *store.Conversation) {
		if c.Caller == nil || !s.there(calls, c.Caller.Request) {
			return
		}
		want(store.Timer{Kind: store.TimerWebhook, Ref: c.Caller.Request, Lane: c.Caller.Caller.Name}) // the handler clears the timer if there is nothing to deliver
	})
	open := map[string]bool{} // executions of calls without a result
	eachRecord(s, calls, func(c *store.Call) {
		open[c.Execution] = open[c.Execution] || c.Outcome == ""
		if c.ModelQuestion != nil && c.Outcome == "" {
			want(store.Timer{Kind: store.TimerModelQuestion, Ref: c.ID})
		}
	})
	eachRecord(s, turns, func(t *approvers.Turn) {
		if !t.Ended() { // a waiting turn gets the timer, too, so that the workflow finds the turn even if other records are lost
			want(store.Timer{Kind: store.TimerThink, Ref: t.ID, Affinity: store.ToConversation + t.Conversation})
		}
	})
	eachRecord(s, executions, func(e *approvers.Execution) {
		switch {
		case e.State == approvers.ExecutionExecuting, e.State == approvers.ExecutionNone && e.Request == "" && open[e.ID],
			e.State == approvers.ExecutionUnknown && open[e.ID]:
			want(store.LostTimer(*e))
		}
	})
	eachRecord(s, requests, func(r *approvers.Request) {
		if r.State.Open() {
			want(store.Timer{Kind: store.TimerExpire, Ref: r.ID})
		}
	})
	eachRecord(s, grants, func(g *approvers.Grant) {
		if g.State.Open() {
			want(store.Timer{Kind: store.TimerGrant, Ref: g.ID})
		}
	})
	eachRecord(s, inbox, func(i *store.Inbox) {
		if i.HandledAt.IsZero() {
			want(store.Timer{Kind: store.TimerInbox, Ref: i.ID, Due: i.ReceivedAt})
		}
	})
	eachRecord(s, outboxMessages, func(m *store.OutboxMessage) {
		if m.State == store.OutboxWanted {
			want(store.Timer{Kind: m.Rank.Timer(), Ref: m.ID, Lane: m.To})
		}
	})
}

func (s *salvage) there(in bucket, k string) bool {
	_, there := s.set[in][k]
	return there
}

// timerOf maps a kind of timer to the bucket of the record that the timer's Ref names.
var timerOf = map[store.TimerKind]bucket{
	store.TimerInbox: inbox, store.TimerThink: turns, store.TimerRun: executions, store.TimerExpire: requests, store.TimerEscalate: requests, store.TimerRemind: requests,
	store.TimerAvailability: requests, store.TimerPreview: requests, store.TimerAway: absences, store.TimerModelQuestion: calls, store.TimerElicit: elicitations,
	store.TimerLeave: executions, store.TimerOutcome: executions, store.TimerWebhook: calls,
	store.TimerGrant: grants, store.TimerHome: outboxMessages, store.TimerRepost: outboxMessages, store.TimerLeftover: outboxMessages,
	store.TimerShowFirst: outboxMessages, store.TimerShow: outboxMessages, store.TimerShowAnswer: outboxMessages, store.TimerShowLast: outboxMessages,
}

// create writes the new store.
func (s *salvage) create(path string, x *examination) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
		return err
	}
	opts := Options{OpenFile: os.OpenFile}
	if err := fill(path, opts); err != nil {
		return sentence(path, err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Nanosecond, NoSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return sentence(path, err)
	}
	return errors.Join(s.fillIn(db, x), db.Close())
}
