package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/internal/owner"
	"countersign/store"
	"countersign/store/record"
)

// mostAtOpen is the size in bytes of the largest file that is examined before use. The examination of a file in the
// page cache takes about one second per GiB. A larger file is examined while the file is in use. If this examination
// finds damage, the next Open examines the file before use. Tests change mostAtOpen.
var mostAtOpen int64 = 256 << 20

// looked is the result of examining a file.
type looked struct {
	damage []store.Damage
	kept   string // path of the damaged file, if a new file was built
	torn   error  // a page that may lead to wrong rows, or in a circle; only with Options.AsIs
}

// examine examines the file of an open store. The last parameter is examination.row.
func examine(ctx context.Context, db *bbolt.DB, file io.ReaderAt, row func(in bucket, k, v []byte, state rowState)) (*examination, error) {
	m, err := metas(file, db.Info().PageSize)
	if err != nil {
		return nil, err
	}
	x := &examination{ctx: ctx, file: file, size: uint64(db.Info().PageSize), meta: m, row: row}
	return x, x.all()
}

// plain reports whether rows of an examined file have no checksums, because the file must be upgraded first.
func (x *examination) plain() bool {
	version, err := strconv.Atoi(string(x.root[string(schemaKey)]))
	return err != nil || version < checksummed || x.root[string(upgradingKey)] != nil
}

// repairs is the remedy for a file that Open can repair.
const repairs = "countersign serve repairs the file as far as possible when it starts"

// whole returns an error if the file of an open store is damaged. The next Open then repairs the file. A row with a mark
// (see the function mark) is known damage, which whole accepts.
func whole(ctx context.Context, db *bbolt.DB, file io.ReaderAt) error {
	var first *store.DamagedError
	x, err := examine(ctx, db, file, func(in bucket, k, _ []byte, state rowState) {
		if state == rowDamaged && first == nil {
			first = damagedRow(in, k, whyChecksum)
		}
	})
	switch {
	case err != nil:
		return err
	case len(x.faults) > 0 && x.plain():
		return x.faults[0].old()
	case len(x.faults) > 0:
		err = fmt.Errorf("%w: %s: %s", store.ErrDamaged, x.faults[0].bucket(), x.faults[0].why)
	case first != nil && !x.plain():
		err = first
	default:
		return nil
	}
	if x.meta.pages*x.size <= uint64(mostAtOpen) {
		return fmt.Errorf("%w. %s", err, repairs)
	}
	if slices.ContainsFunc(x.faults, func(f pageFault) bool { return f.in == bucketEnd }) {
		return fmt.Errorf("%w. Put a backup in its place", err) // a transaction could overwrite pages in use
	}
	db.NoFreelistSync = false // see open
	if noted := db.Update(demandExamination); noted != nil {
		return fmt.Errorf("%w. countersign serve repairs the file only after this was noted in it, which failed: %w", err, noted)
	}
	return fmt.Errorf("%w. %s", err, repairs)
}

// old returns the error for a damaged file of an older layout, which Open can't repair.
func (f pageFault) old() error {
	return fmt.Errorf("%w: %s. Put a backup in its place, or open it once with the version that wrote it", store.ErrDamaged, f.why)
}

// look examines the file of an open store. A file above mostAtOpen is examined only if examineKey is set, or if the
// parameter torn reports damaged pages: see outline. If the file is damaged, look builds a new file from the readable
// rows. With Options.AsIs, look only lists the damage. If a damaged file must be upgraded first, look returns an error.
func look(db *bbolt.DB, file *os.File, path string, torn bool, opts Options) (found looked, err error) {
	large := false
	err = db.View(func(tx *bbolt.Tx) error {
		large = !torn && tx.Size() > mostAtOpen && tx.Bucket(rootBucket).Get(examineKey) == nil
		return nil
	})
	if err != nil || large {
		return found, err
	}
	ctx := context.Background()
	x, err := examine(ctx, db, file, func(in bucket, k, _ []byte, state rowState) {
		if state == rowMarked || opts.AsIs && state == rowDamaged {
			found.damage = append(found.damage, damagedRow(in, k, whyChecksum).Damage)
		}
	})
	if err != nil {
		return found, err
	}
	old := x.plain()
	switch {
	case old && len(x.faults) > 0:
		return found, x.faults[0].old()
	case old || len(x.faults) == 0 && x.unknown == 0:
		if old {
			found.damage = nil
		}
		return found, nil
	case opts.AsIs:
		for _, f := range x.faults {
			found.damage = append(found.damage, store.Damage{Bucket: f.bucket(), Why: f.why})
			if f.in != bucketEnd && found.torn == nil {
				found.torn = fmt.Errorf("%w: %s: %s. %s", store.ErrDamaged, f.bucket(), f.why, repairs)
			}
		}
		return found, nil
	}
	s := newSalvage()
	again, err := examine(ctx, db, file, s.take)
	if err != nil {
		return found, err
	}
	s.faultAstray(again)
	if again.freeRead {
		s.strays(again)
	}
	s.put(again.faults)
	found.damage = s.damage
	found.kept, err = s.write(path, opts, again)
	return found, err
}

// examineKey is set in the root bucket if damage was found in a large store that was in use, or that Compact refused. If
// the key is set, the next Open examines the file.
var examineKey = []byte("examine")

// demandExamination makes the next Open examine a file of any size.
func demandExamination(tx *bbolt.Tx) error { return tx.Bucket(rootBucket).Put(examineKey, []byte("1")) }

// salvaged is a row of the damaged file.
type salvaged struct {
	stored []byte
	state  rowState
}

// salvage builds a valid store from the readable rows of a damaged store. Indexes, the times of timers and the journal
// are rebuilt from other buckets that have the same data. Under the key of a lost or damaged record, salvage writes a
// mark (see the function mark), so that reading the record fails.
type salvage struct {
	rows   map[bucket]map[string]salvaged
	set    map[bucket]map[string][]byte // rows of the new file, with checksums
	damage []store.Damage
	astray map[bucket]bucket // buckets that led to rows of another bucket, and this bucket
}

func newSalvage() *salvage {
	return &salvage{rows: map[bucket]map[string]salvaged{}, set: map[bucket]map[string][]byte{}, astray: map[bucket]bucket{}}
}

// take adds a row of the damaged file.
func (s *salvage) take(in bucket, k, v []byte, state rowState) {
	if state == rowDamaged {
		for b := range allBuckets {
			if b != in && stateOf(b, k, v) == rowSound { // the row belongs to bucket b, and a page of another bucket was replaced by its page
				s.astray[in] = b
				in, state = b, rowSound
				break
			}
		}
	}
	if state == rowDamaged && len(k) > longestKey { // the key has a part of another row, and can't get a mark
		s.aside(in, string(k), salvaged{bytes.Clone(v), state}, whyChecksum)
		return
	}
	if s.rows[in] == nil {
		s.rows[in] = map[string]salvaged{}
	}
	if had, twice := s.rows[in][string(k)]; twice && had.state == rowSound {
		return
	}
	s.rows[in][string(k)] = salvaged{bytes.Clone(v), state}
}

// faultAstray adds a fault for each bucket that led to rows of another bucket. The rows of the replaced page are missing.
func (s *salvage) faultAstray(x *examination) {
	for in, of := range s.astray {
		x.fault(in, "a page of it has rows of %s", of)
	}
}

// If a page is damaged, the pages below it can't be reached from the root. strays adds the rows of such pages. The
// checksum of a row shows to which bucket the row belongs. Free pages still have rows that were deleted long ago, so
// strays does not read them. If the list of free pages can't be read, some pages may be free without being known as
// free. So strays adds no rows to a bucket without damaged pages, unless the list of buckets is damaged. If strays finds
// several versions of a record, it adds the highest version. The result added is the number of added rows.
//
// If a page has other rows of a bucket without damaged pages, either a page above it was replaced by another page of the
// same bucket, or the list of free pages has lost an entry, and the rows were deleted. So strays does not add these rows.
// It adds a fault to their bucket.
func (s *salvage) strays(x *examination) (added int) {
	torn, all := map[bucket]bool{}, false
	for _, f := range x.faults {
		torn[f.in], all = true, all || f.in == 0
	}
	stray := map[bucket]map[string]uint64{} // the version of each record that was found
	missing := map[bucket]uint64{}          // a page with rows that may be missing
	for id := uint64(2); id < x.meta.pages; id++ {
		page := x.stray(id)
		if page == nil {
			continue
		}
		t := tree{x: &examination{ctx: x.ctx, size: x.size}}
		t.element = func(k, v []byte, flags uint32) error {
			if flags == leafBucket && all && len(v) > 2*pageHeader { // a small bucket
				small := tree{x: t.x, element: t.element}
				return small.elements("a small page", v[pageHeader:], uint64(len(v)-pageHeader), nil, nil, 1)
			}
			for b := range allBuckets {
				if stateOf(b, k, v) != rowSound {
					continue
				}
				if !all && !torn[b] {
					if (x.unreached || !torn[bucketEnd]) && !s.has(b, string(k)) {
						missing[b] = id
					}
					continue
				}
				var version, birth uint64
				if recordBuckets[b] {
					version, birth = numbersOf(v)
				}
				had, again := stray[b][string(k)]
				if s.has(b, string(k)) && (!again || version <= had) {
					continue
				}
				if stray[b] == nil {
					stray[b] = map[string]uint64{}
				}
				delete(s.rows[b], string(k))
				stray[b][string(k)], x.births[b] = version, max(x.births[b], birth)
				s.take(b, k, v, rowSound)
				added++
			}
			return nil
		}
		_ = t.elements("a page", page, 0, nil, nil, 1)
	}
	for b, id := range missing {
		x.fault(b, "page %d has rows of it, and is neither free nor in use", id)
	}
	return added
}

// stray reads a page of rows that was not reached, with its overflow pages. If there is no such page, stray returns nil.
func (x *examination) stray(id uint64) []byte {
	if x.use[id] != pageUnseen {
		return nil
	}
	page, err := x.read(id, 1, &x.leaf)
	if err != nil || binary.LittleEndian.Uint64(page) != id || binary.LittleEndian.Uint16(page[8:]) != pageLeaf {
		return nil
	}
	overflow := uint64(binary.LittleEndian.Uint32(page[12:]))
	if overflow >= x.meta.pages-id {
		return nil
	}
	if page, err = x.read(id, 1+overflow, &x.leaf); err != nil {
		return nil
	}
	return page
}

// value returns the value of an undamaged row, without its checksum. If there is no such row, value returns nil.
func (s *salvage) value(in bucket, k string) []byte {
	row, there := s.rows[in][k]
	if !there || row.state != rowSound {
		return nil
	}
	return valueOf(in, row.stored)
}

func (s *salvage) has(in bucket, k string) bool {
	row, there := s.rows[in][k]
	return there && row.state == rowSound
}

// sound iterates over the undamaged rows of a bucket.
func (s *salvage) sound(in bucket, yield func(k string, v []byte)) {
	for k, row := range s.rows[in] {
		if row.state == rowSound {
			yield(k, s.value(in, k))
		}
	}
}

// keep puts a row into the new file.
func (s *salvage) keep(in bucket, k string, value []byte) {
	s.stored(in, k, withChecksum(in, []byte(k), value))
}

func (s *salvage) stored(in bucket, k string, stored []byte) {
	if s.set[in] == nil {
		s.set[in] = map[string][]byte{}
	}
	s.set[in][k] = stored
}

// lost writes a mark (see the function mark) under the key of a missing or damaged row, so that reading the row fails.
func (s *salvage) lost(in bucket, k string) {
	if _, there := s.set[in][k]; there {
		return
	}
	row, there := s.rows[in][k]
	why := whyChecksum
	if !there {
		why = "it is missing, because its page is damaged"
	}
	s.stored(in, k, mark(in, []byte(k), row.stored))
	s.damage = append(s.damage, damagedRow(in, []byte(k), why).Damage)
}

// mended adds an entry to the list of damage. The entry says that rows of a bucket were rebuilt.
func (s *salvage) mended(in bucket, why string) {
	s.damage = append(s.damage, store.Damage{Bucket: in.String(), Why: why, Mended: true})
}

// put selects the rows of the new file.
func (s *salvage) put(faults []pageFault) {
	for in, rows := range s.rows {
		if isIndex[in] || in == timers || in == timerRef || in == counterTime {
			continue // rebuilt
		}
		for k, row := range rows {
			if row.state == rowSound {
				s.stored(in, k, row.stored)
			}
		}
	}
	for in, indexes := range indexesOf {
		s.records(in, indexes)
	}
	s.timers()
	s.tallies()
	s.files()
	s.messages()
	s.history()
	s.rest()
	torn := map[bucket]bool{}
	for _, f := range faults {
		if f.in == bucketEnd {
			s.damage = append(s.damage, store.Damage{Bucket: "file", Why: f.why + ": it was rebuilt", Mended: true})
			continue
		}
		if !torn[f.in] {
			torn[f.in] = true
			s.damage = append(s.damage, store.Damage{Bucket: f.in.String(), Why: f.why + s.afterFault(f.in), Mended: derived[f.in]})
		}
	}
	if torn[settings] && s.set[settings][string(store.SettingPause)] == nil {
		s.lost(settings, string(store.SettingPause)) // the pause may be among the lost settings, so nothing may run until a person decides
	}
}

// derived has the buckets whose rows can all be rebuilt from other buckets, and the buckets whose keys are all named in
// other buckets.
var derived = map[bucket]bool{
	conversations: true, turns: true, calls: true, requests: true, executions: true, elicitations: true, inbox: true, outboxMessages: true,
	timers: true, timerRef: true, counterTime: true, counters: true, auditJournal: true, files: true, fileData: true,
}

// isIndex has the index buckets of records.
var isIndex = map[bucket]bool{}

// afterFault returns the end of a message about a damaged page. The text says what happened to the rows of the page's
// bucket.
func (s *salvage) afterFault(in bucket) string {
	if derived[in] || isIndex[in] {
		return ". Each of its rows was read or rebuilt, or is listed as missing"
	}
	return ". Rows of it that no other row refers to may be lost"
}

// The method "records" rebuilds the indexes of a bucket from the bucket's undamaged records. It marks damaged and missing
// records as lost, or sets damaged rows aside.
func (s *salvage) records(in bucket, indexes []bucket) {
	want := map[bucket]map[string]bool{}
	for _, index := range indexes {
		want[index] = map[string]bool{}
	}
	s.sound(in, func(id string, v []byte) {
		h, _, err := cutHeader(v)
		if err != nil {
			return
		}
		for _, row := range h.index {
			if want[row.in] == nil {
				continue
			}
			want[row.in][string(row.key)] = true
			if !s.has(row.in, string(row.key)) {
				s.mended(row.in, fmt.Sprintf("its row %s was missing or damaged, and was rebuilt", shownKey(row.key)))
			}
			s.keep(row.in, string(row.key), []byte(id))
		}
	})
	for _, index := range indexes {
		s.sound(index, func(k string, id []byte) {
			if want[index][k] || s.has(in, string(id)) {
				return
			}
			s.keep(index, k, bytes.Clone(id)) // the index row stays, so that a reader of the index finds the damaged record
			s.lost(in, string(id))
		})
	}
	for k, row := range s.rows[in] {
		if row.state == rowSound || s.set[in][k] != nil {
			continue
		}
		if len(indexes) == 0 || in == grants || row.state == rowMarked {
			s.lost(in, k)
			continue
		}
		s.aside(in, k, row, "its key belongs to no record")
	}
}

// aside moves a row with a damaged key to the bucket set_aside.
func (s *salvage) aside(in bucket, k string, row salvaged, why string) {
	key := append(text(nil, in.String()), k...)
	if len(key) > longestKey {
		key = binary.BigEndian.AppendUint32(key[:longestKey], checksum(in, []byte(k), nil))
	}
	s.keep(setAside, string(key), row.stored)
	s.damage = append(s.damage, store.Damage{Bucket: in.String(), Key: shownKey([]byte(k)), Why: why + ", so it was set aside", Mended: derived[in] || isIndex[in]})
}

// If at least one of a timer's two rows is readable, timers writes both rows. Rows of different ages may give a timer
// several due times. Then timers keeps the time in the timer's row of timer_ref. If this row is unreadable, or gives
// none of these times, timers keeps the earliest time.
func (s *salvage) timers() {
	for k, row := range s.rows[timers] {
		var t store.Timer
		if row.state != rowSound || record.Decode(s.value(timers, k), &t) != nil {
			continue
		}
		ref, due := string(timerKindRef(t.Kind, t.Ref)), string(moment(nil, t.Due))
		named := string(s.value(timerRef, ref))
		if kept, twice := s.set[timerRef][ref]; twice {
			other := string(valueOf(timerRef, kept))
			if other == named || due != named && other < due {
				continue
			}
			delete(s.set[timers], string(timerKey(t.Kind, []byte(other), t.Ref)))
		}
		s.keep(timers, k, s.value(timers, k))
		if !s.has(timerRef, ref) {
			s.mended(timerRef, fmt.Sprintf("the row of %s %q was missing or damaged, and was rebuilt", t.Kind, t.Ref))
		}
		s.keep(timerRef, ref, []byte(due))
	}
	s.sound(timerRef, func(k string, due []byte) {
		if s.set[timerRef][k] != nil {
			return
		}
		kind, rest, ok := cutText([]byte(k))
		ref, _, ok2 := cutText(rest)
		if !ok || !ok2 || len(due) != 8 {
			return
		}
		t := store.Timer{Kind: store.TimerKind(kind), Ref: ref, Due: readMoment(due)}
		t.Lane, t.Affinity = s.laneOf(t)
		v, err := record.Append(nil, &t)
		if err != nil {
			return
		}
		s.keep(timerRef, k, due)
		s.keep(timers, string(timerKey(t.Kind, due, ref)), v)
		s.mended(timers, fmt.Sprintf("the timer %s of %q was missing or damaged, and was rebuilt", kind, ref))
	})
}

// laneOf returns the Lane and the Affinity of a timer (see store.Timer). laneOf reads them from the record to which the
// timer's Ref refers.
func (s *salvage) laneOf(t store.Timer) (lane, affinity string) {
	conversation := ""
	switch {
	case timerOf[t.Kind] == outboxMessages:
		return soundRecord[store.OutboxMessage](s, outboxMessages, t.Ref).To, ""
	case t.Kind == store.TimerWebhook:
		call := soundRecord[store.Call](s, calls, t.Ref)
		if c := soundRecord[store.Conversation](s, conversations, call.Conversation).Caller; c != nil {
			lane = c.Caller.Name
		}
		return lane, ""
	case t.Kind == store.TimerThink:
		conversation = soundRecord[approvers.Turn](s, turns, t.Ref).Conversation
	case t.Kind == store.TimerRun:
		conversation = soundRecord[approvers.Execution](s, executions, t.Ref).Conversation
	}
	if conversation != "" {
		affinity = store.ToConversation + conversation
	}
	return "", affinity
}

// soundRecord reads a record. If the record is missing or damaged, soundRecord returns the zero value.
func soundRecord[T any](s *salvage, in bucket, id string) (rec T) {
	if _, js, err := cutHeader(s.value(in, id)); err == nil && record.Decode(js, &rec) != nil {
		return *new(T)
	}
	return rec
}

func (s *salvage) tallies() {
	s.sound(counters, func(k string, _ []byte) {
		if key, at, id, ok := cutCounter([]byte(k)); ok {
			byTime := string(counterTimeKey(at, key, id))
			if !s.has(counterTime, byTime) {
				s.mended(counterTime, "a row of it was missing or damaged, and was rebuilt")
			}
			s.keep(counterTime, byTime, []byte{})
		}
	})
	s.sound(counterTime, func(k string, v []byte) {
		at, key, id, ok := cutCounterTime([]byte(k))
		if ok && !s.has(counters, string(counterKey(key, at, id))) {
			s.keep(counterTime, k, v)
			s.lost(counters, string(counterKey(key, at, id)))
		}
	})
}

func (s *salvage) files() {
	for _, pair := range [][2]bucket{{files, fileData}, {fileData, files}} {
		s.sound(pair[0], func(k string, _ []byte) {
			if !s.has(pair[1], k) {
				s.lost(pair[1], k)
			}
		})
	}
}

// messages marks missing messages. A gap in the numbers of a conversation's messages shows that a message is missing.
func (s *salvage) messages() {
	s.sound(conversations, func(id string, v []byte) {
		var c store.Conversation
		_, js, err := cutHeader(v)
		if err != nil || record.Decode(js, &c) != nil {
			return
		}
		for seq := uint64(1); seq <= c.Messages; seq++ {
			if k := string(number(text(nil, id), seq)); !s.has(messages, k) {
				s.lost(messages, k)
			}
		}
	})
}

// history rebuilds the journal from the records. If the journal names a missing record, history writes a mark (see the
// function mark) under the record's key. Records of pruned chains get no mark, because pruning has deleted these
// records.
func (s *salvage) history() {
	s.misplaced()
	first, pruned := map[string]uint64{}, map[string]bool{} // first leaf of each existing chain
	s.sound(audit, func(k string, v []byte) {
		x := auditRow([]byte(k), v)
		if x.Chain == approvers.InstallationChain {
			if a, err := approvers.ParseAuditRecord(x.Record); err == nil && a.Kind == approvers.AuditPruned {
				pruned[a.Facts["chain"]] = true
			}
		}
		leaf := string(number(nil, x.Leaf))
		if !s.has(auditJournal, leaf) {
			s.keep(auditJournal, leaf, append(number(text(nil, x.Chain), x.Seq), x.Sum[:]...))
			s.mended(auditJournal, fmt.Sprintf("leaf %d was missing or damaged, and was rebuilt from its record", x.Leaf))
		}
		if before, there := first[x.Chain]; !there || x.Leaf < before {
			first[x.Chain] = x.Leaf
		}
	})
	last := uint64(0)
	for k := range s.set[auditJournal] {
		last = max(last, leafOf([]byte(k)))
	}
	for leaf := uint64(0); leaf < last; leaf++ { // marks each missing entry of a pruned chain: such entries can't be rebuilt, because the chain has no records
		if s.set[auditJournal][string(number(nil, leaf))] == nil {
			s.lost(auditJournal, string(number(nil, leaf)))
		}
	}
	s.sound(auditJournal, func(k string, v []byte) {
		e := entryOf([]byte(k), v)
		place := string(number(text(nil, e.Chain), e.Seq))
		if s.has(audit, place) {
			return
		}
		_, lies := s.rows[audit][place]
		if begun, there := first[e.Chain]; lies || !there && !pruned[e.Chain] || there && begun <= e.Leaf || there && e.Seq < s.firstSeq(e.Chain) {
			s.lost(audit, place)
		}
	})
}

// misplaced restores intact audit records whose keys or checksums are damaged. Each record contains its own position,
// and the journal confirms the position.
func (s *salvage) misplaced() {
	for k, row := range s.rows[audit] {
		if row.state != rowDamaged || len(row.stored) < checksumSize {
			continue
		}
		value := valueOf(audit, row.stored)
		x := auditRow([]byte(k), value)
		a, err := approvers.ParseAuditRecord(x.Record)
		if err != nil || approvers.SumOf(x.Record) != x.Sum {
			continue
		}
		place := string(number(text(nil, a.Chain), a.Seq))
		leaf := string(number(nil, x.Leaf))
		e := entryOf([]byte(leaf), s.value(auditJournal, leaf))
		if e.Chain != a.Chain || e.Seq != a.Seq || e.Sum != x.Sum || s.has(audit, place) {
			continue
		}
		if place != k {
			delete(s.rows[audit], k)
		}
		s.take(audit, []byte(place), withChecksum(audit, []byte(place), value), rowSound)
		s.keep(audit, place, value)
		s.mended(audit, fmt.Sprintf("record %d of chain %s is whole, but was under a damaged key", a.Seq, a.Chain))
	}
}

// firstSeq returns the Seq of the first existing record of a chain.
func (s *salvage) firstSeq(chain string) (first uint64) {
	s.sound(audit, func(k string, _ []byte) {
		if of, seq, ok := auditKey([]byte(k)); ok && of == chain && (first == 0 || seq < first) {
			first = seq
		}
	})
	return first
}

// rest handles the remaining damaged rows. Under a plausible key, rest writes a mark (see the function mark). rest
// moves any other row, and each damaged row of a timer or an index, to the bucket set_aside.
func (s *salvage) rest() {
	for _, in := range []bucket{messages, renderings, audit, auditPayloads, auditJournal, auditHeads, counters, files, fileData} {
		known := s.names(in)
		for k, row := range s.rows[in] {
			switch {
			case row.state == rowSound || s.set[in][k] != nil:
			case row.state == rowMarked || known([]byte(k)):
				s.lost(in, k)
			default:
				s.aside(in, k, row, whyChecksum+", and no other row confirms its key")
			}
		}
	}
	for _, in := range []bucket{timers, timerRef, counterTime} {
		for k, row := range s.rows[in] {
			if row.state != rowSound {
				s.aside(in, k, row, whyChecksum)
			}
		}
	}
	for index := range isIndex {
		for k, row := range s.rows[index] {
			if row.state != rowSound && s.set[index][k] == nil {
				s.aside(index, k, row, whyChecksum)
			}
		}
	}
	for k, row := range s.rows[setAside] {
		if row.state != rowSound {
			s.lost(setAside, k)
		}
	}
}

// names returns a function that reports whether the key of a damaged row is plausible. An implausible key must not get
// a mark. For example, a wrong key at the end of the journal would block every later record.
func (s *salvage) names(in bucket) func(k []byte) bool {
	names, last := map[string]bool{}, uint64(0)
	note := func(of bucket) {
		s.sound(of, func(k string, v []byte) {
			if name, _, ok := cutText([]byte(k)); ok {
				names[name] = true
			}
			if len(k) == 8 {
				last = max(last, leafOf([]byte(k)))
			}
		})
	}
	note(in)
	ids := map[bucket]bucket{messages: conversations, renderings: outboxMessages, files: executions, fileData: executions}[in]
	if ids != 0 {
		s.sound(ids, func(id string, _ []byte) { names[id] = true })
	}
	if in == auditPayloads {
		note(audit)
	}
	return func(k []byte) bool {
		if in == auditJournal || in == auditHeads {
			return len(k) == 8 && leafOf(k) <= last
		}
		if in == counters {
			key, at, id, ok := cutCounter(k)
			return ok && s.set[counterTime][string(counterTimeKey(at, key, id))] != nil
		}
		name, rest, ok := cutText(k)
		return ok && len(rest) == 8 && names[name]
	}
}

// write writes the new file, and replaces the damaged file. The damaged file is kept beside the new file.
func (s *salvage) write(path string, opts Options, x *examination) (kept string, err error) {
	path = target(path)
	if err := removeLeft(path); err != nil {
		return "", err
	}
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, filepath.Base(path)+mendSuffix+"*") // mode 0600
	if err != nil {
		return "", err
	}
	defer os.Remove(temp.Name())
	if err := errors.Join(owner.Inherit(temp, path, dir), temp.Close()); err != nil {
		return "", err
	}
	if err := fill(temp.Name(), opts); err != nil {
		return "", err
	}
	whole, err := bbolt.Open(temp.Name(), 0o600, &bbolt.Options{Timeout: time.Nanosecond, NoSync: true, FreelistType: bbolt.FreelistMapType, OpenFile: opts.OpenFile})
	if err != nil {
		return "", err
	}
	err = s.fillIn(whole, x)
	if err := errors.Join(err, whole.Close()); err != nil {
		return "", err
	}
	if kept, err = exchange(temp.Name(), path, ".damaged-"); err != nil {
		return "", err
	}
	return kept, syncDir(dir)
}

// mendSuffix is part of the name of a file that is being rebuilt.
const mendSuffix = ".mended-"

// fillIn writes all rows. Each of its transactions fits in memory.
func (s *salvage) fillIn(db *bbolt.DB, x *examination) error {
	left := map[bucket][]string{}
	for in := range allBuckets {
		left[in] = slices.Sorted(maps.Keys(s.set[in]))
	}
	for done := false; !done; {
		err := db.Update(func(tx *bbolt.Tx) error {
			room := upgradeMargin
			for in := range allBuckets {
				b := tx.Bucket([]byte(bucketNames[in]))
				b.FillPercent = filled
				if err := b.SetSequence(max(x.sequences[in], x.births[in])); err != nil {
					return err
				}
				for ; room > 0 && len(left[in]) > 0; left[in] = left[in][1:] {
					k, v := left[in][0], s.set[in][left[in][0]]
					if err := b.Put([]byte(k), v); err != nil {
						return fmt.Errorf("write to %s: %w", in, err)
					}
					room -= len(k) + len(v)
				}
			}
			done = room > 0
			return nil
		})
		if err != nil {
			return err
		}
	}
	return db.Sync()
}
