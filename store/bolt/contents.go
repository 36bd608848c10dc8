package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"

	"countersign/internal/owner"
	"countersign/store"
	"countersign/store/record"
)

// partBuckets holds the functions that copy one part of a store: see store.Contents.
type partBuckets struct {
	part store.Part
	in   []bucket // the buckets with the part's rows; a copy makes the index rows again from these rows
	each func(r *rows, fn func(store.Row) error) error
	put  func(t *tx, row store.Row) error
}

var parts = []partBuckets{
	tablePart(store.PartConversations, conversationTable, true),
	recordPart(store.PartMessages, messages, func(m *store.Message) []byte { return number(text(nil, m.Conversation), m.Seq) }),
	tablePart(store.PartTurns, turnTable, false),
	tablePart(store.PartCalls, callTable, true),
	tablePart(store.PartRequests, requestTable, false),
	tablePart(store.PartExecutions, executionTable, false),
	tablePart(store.PartElicitations, elicitationTable, true),
	{store.PartFiles, []bucket{files, fileData}, eachFile, putFile},
	{store.PartTimers, []bucket{timers, timerRef}, eachTimer, putTimer},
	tablePart(store.PartInbox, inboxTable, false),
	tablePart(store.PartOutboxMessages, outboxTable, true),
	recordPart(store.PartRenderings, renderings, func(x *store.Rendering) []byte { return number(text(nil, x.OutboxMessage), x.Post) }),
	{store.PartSettings, []bucket{settings}, eachSetting, settingPart.put},
	{store.PartPolicy, []bucket{settings}, eachPolicy, putPolicy},
	{store.PartCounters, []bucket{counters, counterTime}, eachCounter, func(t *tx, row store.Row) error { return t.AddCounter(row.Counter) }},
	tablePart(store.PartGrants, grantTable, true),
	tablePart(store.PartAbsences, absenceTable, false),
	{store.PartHeads, []bucket{auditHeads}, eachHead, putHead},
	{store.PartAudit, []bucket{audit, auditPayloads}, eachAudit, putAudit},
	{store.PartJournal, []bucket{auditJournal}, eachJournal, putJournal},
}

// EachRow calls fn with every row of the store.
func (s *Store) EachRow(ctx context.Context, fn func(store.Row) error) error {
	return s.View(ctx, func(r store.Reader) error {
		for _, p := range parts {
			err := p.each(r.(*reader).rows, func(row store.Row) error {
				row.Part = p.part
				return errors.Join(ctx.Err(), fn(row))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// tablePart copies guarded records, in the order of their ids or of their creation.
func tablePart[T any](part store.Part, t *table[T], byBirth bool) partBuckets {
	return partBuckets{part, []bucket{t.in}, func(r *rows, fn func(store.Row) error) error {
		type one struct {
			birth uint64
			id    string
		}
		var all []one
		for id, v := range r.scan(t.in, nil, nil) {
			h, js, err := cutHeader(v)
			switch {
			case err != nil:
				err = damagedRow(t.in, id, err.Error())
			case byBirth:
				all = append(all, one{h.birth, string(id)})
			default:
				err = fn(store.Row{Record: js})
			}
			if err != nil {
				return err
			}
		}
		slices.SortStableFunc(all, func(a, b one) int { // the sort is stable, so records with equal births stay in the order of their ids
			switch {
			case a.birth < b.birth:
				return -1
			case a.birth > b.birth:
				return 1
			}
			return 0
		})
		for _, x := range all {
			_, js, err := cutHeader(r.get(t.in, []byte(x.id)))
			if err == nil {
				err = fn(store.Row{Record: js})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, func(x *tx, row store.Row) error { return t.putCopy(x.rows, row.Record) }}
}

// putCopy adds a record of another store. The bytes and the version of the record do not change.
func (t *table[T]) putCopy(r *rows, js []byte) error {
	var rec T
	if err := record.Decode(js, &rec); err != nil {
		return err
	}
	id, version := t.id(&rec)
	if err := keyable(t.name+"'s id", id); err != nil {
		return err
	}
	if r.get(t.in, []byte(id)) != nil {
		return fmt.Errorf("%s %q comes twice: %w", t.name, id, store.ErrConflict)
	}
	h := header{version: *version}
	if t.indexes != nil {
		var err error
		if h.birth, err = r.birth(t.in); err != nil {
			return err
		}
		h.index = t.index(&rec, h.birth)
	}
	if err := r.setRecord(t.in, []byte(id), nil, append(h.append(nil), js...), t.isClosed(&rec)); err != nil {
		return err
	}
	return reindex(r, []byte(id), header{}, h)
}

// recordPart copies records without a version.
func recordPart[T any](part store.Part, in bucket, key func(*T) []byte) partBuckets {
	return partBuckets{part, []bucket{in}, func(r *rows, fn func(store.Row) error) error {
		for _, js := range r.scan(in, nil, nil) {
			if err := fn(store.Row{Record: js}); err != nil {
				return err
			}
		}
		return nil
	}, func(t *tx, row store.Row) error {
		var rec T
		if err := record.Decode(row.Record, &rec); err != nil {
			return err
		}
		return t.rows.set(in, key(&rec), nil, row.Record)
	}}
}

var settingPart = tablePart(store.PartSettings, settingTable, false)

// eachSetting calls fn with every setting, except the settings that hold the policy in force. In a copy, the policy is
// a separate part.
func eachSetting(r *rows, fn func(store.Row) error) error {
	return settingPart.each(r, func(row store.Row) error {
		var s store.Setting
		if err := record.Decode(row.Record, &s); err != nil {
			return err
		}
		if s.Key == policyKey || s.Key == contentKey {
			return nil
		}
		return fn(row)
	})
}

func eachPolicy(r *rows, fn func(store.Row) error) error {
	s, err := settingTable.read(r, policyKey)
	if err != nil {
		return store.IgnoreNotFound(err)
	}
	content, err := settingTable.read(r, contentKey)
	if store.IgnoreNotFound(err) != nil {
		return err
	}
	return fn(store.Row{Record: s.Value, Data: append([]byte{}, content.Value...)})
}

func putPolicy(t *tx, row store.Row) error {
	var p store.Policy
	if err := record.Decode(row.Record, &p); err != nil {
		return err
	}
	for key, value := range map[string][]byte{policyKey: row.Record, contentKey: row.Data} {
		js, err := record.Append(nil, &store.Setting{Key: key, Version: p.Version, Value: value})
		if err != nil {
			return err
		}
		if err := settingTable.putCopy(t.rows, js); err != nil {
			return err
		}
	}
	return nil
}

func eachFile(r *rows, fn func(store.Row) error) error {
	for k, js := range r.scan(files, nil, nil) {
		if err := fn(store.Row{Record: js, Data: r.get(fileData, k)}); err != nil {
			return err
		}
	}
	return nil
}

func putFile(t *tx, row store.Row) error {
	var f store.File
	if err := record.Decode(row.Record, &f); err != nil {
		return err
	}
	if err := f.Holds(row.Data); err != nil {
		return err
	}
	key := fileKey(f.Execution, f.Index)
	return errors.Join(t.rows.set(fileData, key, nil, row.Data), t.rows.set(files, key, nil, row.Record))
}

func eachTimer(r *rows, fn func(store.Row) error) error {
	for _, js := range r.scan(timers, nil, nil) {
		var timer store.Timer
		if err := record.Decode(js, &timer); err != nil {
			return err
		}
		js, err := record.Append(nil, &timer) // encoded again, because not every backend stores a timer's JSON
		if err == nil {
			err = fn(store.Row{Record: js})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func putTimer(t *tx, row store.Row) error {
	var timer store.Timer
	if err := record.Decode(row.Record, &timer); err != nil {
		return err
	}
	return t.SetTimer(timer)
}

func eachCounter(r *rows, fn func(store.Row) error) error {
	for k, n := range r.scan(counters, nil, nil) {
		key, at, id, ok := cutCounter(k)
		if !ok || len(n) != 8 {
			return damagedRow(counters, k, "it is not a counter")
		}
		if err := fn(store.Row{Counter: store.Counter{Key: key, At: readMoment(at), ID: id, N: int(binary.BigEndian.Uint64(n))}}); err != nil {
			return err
		}
	}
	return nil
}

func eachHead(r *rows, fn func(store.Row) error) error {
	for k, v := range r.scan(auditHeads, nil, nil) {
		if err := fn(store.Row{Head: headOf(k, v)}); err != nil {
			return err
		}
	}
	return nil
}

func putHead(t *tx, row store.Row) error {
	return t.rows.set(auditHeads, number(nil, row.Head.Number), nil, append(number(nil, row.Head.Size), row.Head.Note...))
}

func eachAudit(r *rows, fn func(store.Row) error) error {
	for k, v := range r.scan(audit, nil, nil) {
		x := auditRow(k, v)
		x.Payload = r.get(auditPayloads, k)
		if err := fn(store.Row{Audit: x}); err != nil {
			return err
		}
	}
	return nil
}

func putAudit(t *tx, row store.Row) error {
	x := row.Audit
	key := number(text(nil, x.Chain), x.Seq)
	value := append(append(number(nil, x.Leaf), x.Sum[:]...), x.Record...)
	if err := t.rows.set(audit, key, nil, value); err != nil || x.Payload == nil {
		return err
	}
	return t.rows.set(auditPayloads, key, nil, x.Payload)
}

func eachJournal(r *rows, fn func(store.Row) error) error {
	for k, v := range r.scan(auditJournal, nil, nil) {
		if err := fn(store.Row{Entry: entryOf(k, v)}); err != nil {
			return err
		}
	}
	return nil
}

func putJournal(t *tx, row store.Row) error {
	e := row.Entry
	return t.rows.set(auditJournal, number(nil, e.Leaf), nil, append(number(text(nil, e.Chain), e.Seq), e.Sum[:]...))
}

// filling is a new store whose rows are being written.
type filling struct {
	*Store
	*store.Position
	batch  []store.Row
	room   int
	marked bool // the root bucket has the key copyingKey
}

func newFilling(s *Store, from store.Mark) *filling {
	return &filling{Store: s, Position: store.StartAt(from), room: fillRoom, marked: from.Rows > 0}
}

// fillRoom is the number of bytes of rows that one transaction writes.
const fillRoom = 1 << 20

// copyingKey is a key in the root bucket of an incomplete copy. The value of the key is the progress of the copy: a
// store.Mark.
var copyingKey = []byte("copying")

// Put adds a row. Put collects rows, and writes many rows in one transaction.
func (f *filling) Put(ctx context.Context, row store.Row) error {
	if write, err := f.Next(row); err != nil || !write {
		return err
	}
	f.batch = append(f.batch, row.Clone())
	if f.room -= row.Size(); f.room > 0 {
		return nil
	}
	return f.flush(ctx)
}

func (f *filling) flush(ctx context.Context) error {
	if err := f.End(); err != nil {
		return err
	}
	f.room = fillRoom
	if len(f.batch) == 0 {
		return nil
	}
	err := f.Update(ctx, func(t store.Tx) error {
		for _, row := range f.batch {
			p := slices.IndexFunc(parts, func(p partBuckets) bool { return p.part == row.Part })
			if p < 0 {
				return fmt.Errorf("store: this program does not know the part %q", row.Part)
			}
			if err := parts[p].put(t.(*tx), row); err != nil {
				return fmt.Errorf("%s: %w", row.Part, err)
			}
		}
		return t.(*tx).rows.tx.Bucket(rootBucket).Put(copyingKey, []byte(f.Mark().String()))
	})
	f.batch, f.marked = nil, true
	return err
}

// complete removes copyingKey, so the copy counts as complete.
func (f *filling) complete(ctx context.Context) error {
	return f.Update(ctx, func(t store.Tx) error {
		r := t.(*tx).rows
		r.written = true
		return r.tx.Bucket(rootBucket).Delete(copyingKey)
	})
}

// EachRow writes the collected rows, and then calls fn with every row of the copy.
func (f *filling) EachRow(ctx context.Context, fn func(store.Row) error) error {
	if err := f.flush(ctx); err != nil {
		return err
	}
	return f.Store.EachRow(ctx, fn)
}

// fillSuffix is the end of the name of an incomplete copy.
const fillSuffix = ".copying"

// Fill creates a new store at a path, and calls fill to write its rows. The file appears at the path only when the store
// is complete, checked and durable. If Fill is interrupted, the incomplete file stays in the same directory. The next
// Fill of the same path continues the incomplete file. If anew is true, Fill discards an incomplete file instead. Fill
// never replaces a file at the path. If there is such a file, Fill returns fs.ErrExist. Fill also never deletes another
// file that has the name of the incomplete file. If root runs Fill, the new file belongs to the owner of the file like.
// If like is empty, or there is no such file, the new file belongs to the owner of its directory.
func Fill(ctx context.Context, path, like string, anew bool, fill func(store.Filling) error) error {
	temp := path + fillSuffix
	if there, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		if left, err := os.Lstat(temp); err == nil && os.SameFile(left, there) { // an interrupted Fill has put the complete file at path, but has not removed the name temp
			err = os.Remove(temp)
			if err != nil {
				return sentence(temp, err)
			}
		}
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	f, err := begun(temp, anew)
	if err != nil {
		return err
	}
	if err = owner.Inherit(f.identity.file, like, filepath.Dir(path)); err == nil {
		err = fill(f)
	}
	if err == nil {
		err = f.flush(ctx)
	}
	if err == nil {
		err = f.Check(ctx)
	}
	if err == nil {
		err = f.complete(ctx)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		if !f.marked {
			err = errors.Join(err, removeIfThere(temp))
		}
		return err
	}
	whole, err := os.Stat(temp)
	if err != nil {
		return sentence(temp, err)
	}
	if err := publish(temp, path); err != nil {
		return sentence(path, err)
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, whole) {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	return errors.Join(removeIfThere(temp), syncDir(filepath.Dir(path)))
}

// begun opens an incomplete copy, or begins a new copy.
func begun(temp string, anew bool) (*filling, error) {
	release, err := hold(temp) // fails if another process is filling the copy
	if err == nil {
		err = release()
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(temp); err == nil {
		if f, err := left(temp, anew); f != nil || err != nil {
			return f, err
		}
	}
	if err := removeIfThere(temp); err != nil {
		return nil, sentence(temp, err)
	}
	s, err := Open(temp, Options{})
	if err != nil {
		return nil, err
	}
	return newFilling(s, store.Mark{}), nil
}

// left opens an incomplete copy. The result is nil if the copy is damaged or the parameter anew is true, so the copy must
// begin again. If the file is not an incomplete copy, left returns an error, because nobody may delete the file.
func left(temp string, anew bool) (*filling, error) {
	s, err := Open(temp, Options{ReadOnly: true, incomplete: true}) // an upgrade would change a file that is not an incomplete copy
	if err != nil {
		return nil, fmt.Errorf("store: %s is in the way of the new store: %w", temp, within{err})
	}
	var at []byte
	empty := s.torn == nil // the copy was stopped before its first rows
	err = Guard(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			at = bytes.Clone(tx.Bucket(rootBucket).Get(copyingKey))
			for in := range allBuckets {
				if !empty {
					break
				}
				k, _ := tx.Bucket([]byte(bucketNames[in])).Cursor().First()
				empty = k == nil
			}
			return nil
		})
	})
	if err == nil && at == nil && !empty {
		err = fmt.Errorf("%w: %s is in the way of the new store, and is not an incomplete copy: move it away", store.ErrForeign, temp)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	mark, err := store.ParseMark(string(at))
	if discard := err != nil || len(s.Damage()) > 0 || anew; discard {
		return nil, s.Close()
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	if s, err = Open(temp, Options{AsIs: true, incomplete: true}); err != nil {
		return nil, err
	}
	return newFilling(s, mark), nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
