package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/store"
	"countersign/store/record"
)

// partTables holds the functions that copy one part of a store: see store.Contents.
type partTables struct {
	part   store.Part
	tables []string // the tables with the part's rows
	each   func(c *contents, fn func(store.Row) error) error
	put    func(f *filling, row store.Row) error
}

var parts = []partTables{
	tablePart(store.PartConversations, conversationTable, "born"),
	recordPart(store.PartMessages, "messages", []string{"conversation", "seq"}, func(m *store.Message) (string, int64) { return text(m.Conversation), number(m.Seq) }),
	tablePart(store.PartTurns, turnTable, "id"),
	tablePart(store.PartCalls, callTable, "born"),
	tablePart(store.PartRequests, requestTable, "id"),
	tablePart(store.PartExecutions, executionTable, "id"),
	tablePart(store.PartElicitations, elicitationTable, "born"),
	{store.PartFiles, []string{"files"}, eachFile, putFile},
	{store.PartTimers, []string{"timers"}, eachTimer, putTimer},
	tablePart(store.PartInbox, inboxTable, "id"),
	tablePart(store.PartOutboxMessages, outboxTable, "born"),
	recordPart(store.PartRenderings, "renderings", []string{"message", "post"}, func(x *store.Rendering) (string, int64) { return text(x.OutboxMessage), number(x.Post) }),
	tablePart(store.PartSettings, settingTable, "id"),
	{store.PartPolicy, []string{policyTable.in}, eachPolicy, putPolicy},
	{store.PartCounters, []string{"counters"}, eachCounter, putCounter},
	tablePart(store.PartGrants, grantTable, "born"),
	tablePart(store.PartAbsences, absenceTable, "id"),
	{store.PartHeads, []string{"audit_heads"}, eachHead, putHead},
	{store.PartAudit, []string{"audit_records", "audit_payloads"}, eachAudit, putAudit},
	{store.PartJournal, []string{"audit_journal"}, eachJournal, putJournal},
}

// contents reads every row in one transaction. contents streams the rows, so it can read tables that do not fit in
// memory.
type contents struct {
	reader
	ctx  context.Context
	lost func(x store.Damage, owner string) // called with each damaged row, which is then left out; if lost is nil, a damaged row is an error
}

// readable handles the error of reading a row. If the row is damaged and the field lost is set, readable calls lost and
// returns nil, so the row is left out. In all other cases, readable returns err.
func (c *contents) readable(err error, x store.Damage, owner string) error {
	var damaged *store.DamagedError
	if c.lost == nil || !errors.As(err, &damaged) {
		return err
	}
	x.Why = damaged.Why
	c.lost(x, readText(owner))
	return nil
}

// patiently is a statement that removes the time limits of a transaction, and allows the transaction to read whole
// tables.
const patiently = "SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true), set_config('enable_seqscan', 'on', true)"

func (c *contents) begin() error {
	if err := c.run.knowsAll(); err != nil {
		return err
	}
	if err := c.run.query(nil, func(b *pgx.Batch) { b.Queue(patiently) }); err != nil {
		return explain(err)
	}
	return nil
}

// knowsAll returns store.ErrNewer if the tables are newer than the program. Even if the program can use such tables, it
// would not check or copy their new parts.
func (r *run) knowsAll() error {
	target, err := r.store.config.newest()
	if err != nil {
		return err
	}
	var version int64
	err = r.query(nil, row("SELECT max(version_id) FROM "+versionTable+" WHERE is_applied", nil, func(found pgx.Row) error { return found.Scan(&version) }))
	if err != nil {
		return explain(err)
	}
	if version > target {
		return fmt.Errorf("%w: the tables in %s have version %d. This program knows those of version %d, so it can't check or copy everything. Use the newer program",
			store.ErrNewer, r.store.config.name(), version, target)
	}
	return nil
}

// stream calls scan for each row of a query.
func (c *contents) stream(sql string, scan func(pgx.Rows) error) error {
	found, err := c.run.conn.Query(c.ctx, sql)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := scan(found); err != nil {
			return err
		}
	}
	return found.Err()
}

// EachRow calls fn with every row of the store.
func (s *Store) EachRow(ctx context.Context, fn func(store.Row) error) error {
	return s.View(ctx, func(r store.Reader) error {
		c := &contents{reader: r.(reader), ctx: ctx}
		if err := c.begin(); err != nil {
			return err
		}
		return c.eachRow(fn)
	})
}

// EachReadable is EachRow for a damaged store. EachReadable does not pass damaged rows to fn. For each damaged row,
// EachReadable calls lost with the damage and the id of the row's owner, if the owner is known.
func (s *Store) EachReadable(ctx context.Context, fn func(store.Row) error, lost func(x store.Damage, owner string)) error {
	return s.View(ctx, func(r store.Reader) error {
		c := &contents{reader: r.(reader), ctx: ctx, lost: lost}
		if err := c.begin(); err != nil {
			return err
		}
		return c.eachRow(fn)
	})
}

func (c *contents) eachRow(fn func(store.Row) error) error {
	for _, p := range parts {
		err := p.each(c, func(row store.Row) error {
			row.Part = p.part
			return errors.Join(c.ctx.Err(), fn(row))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tablePart copies guarded records in the order of a column.
func tablePart[T any](part store.Part, t *table[T], order string) partTables {
	tables := []string{t.in}
	if part == store.PartRequests {
		tables = append(tables, "request_people")
	}
	return partTables{part, tables, func(c *contents, fn func(store.Row) error) error {
		owner := "''"
		if column, ok := belongs[t.in]; ok {
			owner = column
		}
		selects := fmt.Sprintf("SELECT id, checksum, record, %s FROM %s ORDER BY %s", owner, t.in, order)
		return c.stream(selects, func(found pgx.Rows) error {
			var id, owner string
			var sum, js []byte
			if err := found.Scan(&id, &sum, &js, &owner); err != nil {
				return err
			}
			x := store.Damage{Bucket: t.in, Key: readText(id), ID: readText(id)}
			rec, err := decodeRow[T](x, id, sum, js)
			if name, _ := t.id(&rec); err == nil && c.lost != nil && text(name) != id {
				x.Why = "it is the record of " + name
				err = &store.DamagedError{Damage: x}
			}
			if err != nil {
				return c.readable(err, x, owner)
			}
			return fn(store.Row{Record: js})
		})
	}, func(f *filling, row store.Row) error {
		rec, err := t.decode(row.Record)
		if err != nil {
			return err
		}
		id, version := t.id(&rec)
		if err := keyable(t.name+"'s id", id); err != nil {
			return err
		}
		if q, ok := any(&rec).(*approvers.Request); ok {
			people := slices.Clone(q.People())
			slices.Sort(people)
			for _, p := range slices.Compact(people) {
				f.add("request_people", []string{"person", "created_at", "request"}, text(p), moment(q.CreatedAt), text(q.ID))
			}
		}
		f.add(t.in, append([]string{"id", "version", "record", "checksum"}, t.columns...),
			append([]any{text(id), number(*version), row.Record, rowSum(t.in, text(id), row.Record)}, t.values(&rec)...)...)
		return nil
	}}
}

// recordPart copies records without a version, in the order of their keys. A key consists of an id and a number.
func recordPart[T any](part store.Part, in string, columns []string, key func(*T) (id string, n int64)) partTables {
	return partTables{part, []string{in}, func(c *contents, fn func(store.Row) error) error {
		order := strings.Join(columns, ", ")
		return c.stream(fmt.Sprintf("SELECT record, checksum, %s FROM %s ORDER BY %s", order, in, order), func(found pgx.Rows) error {
			var row store.Row
			var sum []byte
			var id string
			var n int64
			if err := found.Scan(&row.Record, &sum, &id, &n); err != nil {
				return err
			}
			x := store.Damage{Bucket: in, Key: fmt.Sprintf("%s %d", readText(id), n), ID: readText(id), Seq: uint64(n)}
			if _, err := decodeRow[T](x, numbered(id, n), sum, row.Record); err != nil {
				return c.readable(err, x, "")
			}
			return fn(row)
		})
	}, func(f *filling, row store.Row) error {
		var rec T
		if err := record.Decode(row.Record, &rec); err != nil {
			return err
		}
		id, n := key(&rec)
		f.add(in, append(slices.Clone(columns), "record", "checksum"), id, n, row.Record, rowSum(in, numbered(id, n), row.Record))
		return nil
	}}
}

func eachFile(c *contents, fn func(store.Row) error) error {
	return c.stream("SELECT record, checksum, data, execution, index FROM files ORDER BY execution, index", func(found pgx.Rows) error {
		var row store.Row
		var sum []byte
		var id string
		var n int64
		if err := found.Scan(&row.Record, &sum, &row.Data, &id, &n); err != nil {
			return err
		}
		x := store.Damage{Bucket: "files", Key: fmt.Sprintf("%s %d", readText(id), n), ID: readText(id), Seq: uint64(n)}
		rec, err := decodeRow[store.File](x, numbered(id, n), sum, row.Record)
		if wrong := rec.Holds(row.Data); err == nil && c.lost != nil && wrong != nil {
			x.Why = wrong.Error()
			err = &store.DamagedError{Damage: x}
		}
		if err != nil {
			return c.readable(err, x, "")
		}
		return fn(row)
	})
}

func putFile(f *filling, row store.Row) error {
	var rec store.File
	if err := record.Decode(row.Record, &rec); err != nil {
		return err
	}
	if err := rec.Holds(row.Data); err != nil {
		return err
	}
	id, n := text(rec.Execution), int64(rec.Index)
	f.add("files", []string{"execution", "index", "record", "checksum", "data"}, id, n, row.Record, rowSum("files", numbered(id, n), row.Record), bytea(row.Data))
	return nil
}

func eachPolicy(c *contents, fn func(store.Row) error) error {
	return c.stream("SELECT id, checksum, record, content FROM policies ORDER BY id", func(found pgx.Rows) error {
		var row store.Row
		var sum []byte
		var id string
		if err := found.Scan(&id, &sum, &row.Record, &row.Data); err != nil {
			return err
		}
		name := readText(id)
		x := store.Damage{Bucket: policyTable.in, Key: name, ID: name}
		if _, err := decodeRow[store.Policy](x, id, sum, row.Record); err != nil {
			return c.readable(err, x, "")
		}
		return fn(row)
	})
}

func putPolicy(f *filling, row store.Row) error {
	p, err := policyTable.decode(row.Record)
	if err != nil {
		return err
	}
	f.add(policyTable.in, []string{"id", "version", "record", "checksum", "load", "content"},
		policyID, number(p.Version), row.Record, rowSum(policyTable.in, policyID, row.Record), text(p.Load), bytea(row.Data))
	return nil
}

// bytea returns an empty slice instead of nil, because the columns must not be null.
func bytea(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func eachTimer(c *contents, fn func(store.Row) error) error {
	return c.stream(selectTimers+"ORDER BY kind || '', due, ref", func(found pgx.Rows) error {
		timer, err := scanTimer(found)
		if err != nil {
			return err
		}
		js, err := record.Append(nil, &timer)
		if err != nil {
			return err
		}
		return fn(store.Row{Record: js})
	})
}

func putTimer(f *filling, row store.Row) error {
	var t store.Timer
	if err := record.Decode(row.Record, &t); err != nil {
		return err
	}
	f.add("timers", []string{"kind", "ref", "due", "lane", "affinity", "tries", "put_off"},
		text(t.Kind), text(t.Ref), moment(t.Due), text(t.Lane), text(t.Affinity), int64(t.Tries), orNull(t.PutOff))
	return nil
}

func eachCounter(c *contents, fn func(store.Row) error) error {
	return c.stream("SELECT key, at, id, n FROM counters ORDER BY key, at, id", func(found pgx.Rows) error {
		var x store.Counter
		var n int64
		if err := found.Scan(&x.Key, &x.At, &x.ID, &n); err != nil {
			return err
		}
		x.Key, x.At, x.ID, x.N = readText(x.Key), x.At.UTC(), readText(x.ID), int(n)
		return fn(store.Row{Counter: x})
	})
}

func putCounter(f *filling, row store.Row) error {
	x := row.Counter
	f.add("counters", []string{"key", "at", "id", "n"}, text(x.Key), moment(x.At), text(x.ID), int64(x.N))
	return nil
}

func eachHead(c *contents, fn func(store.Row) error) error {
	return c.stream("SELECT number, size, note FROM audit_heads ORDER BY number", func(found pgx.Rows) error {
		var number, size int64
		var note []byte
		if err := found.Scan(&number, &size, &note); err != nil {
			return err
		}
		return fn(store.Row{Head: store.Head{Number: uint64(number), Size: uint64(size), Note: string(note)}})
	})
}

func putHead(f *filling, row store.Row) error {
	f.add("audit_heads", []string{"number", "size", "note"}, number(row.Head.Number), number(row.Head.Size), []byte(row.Head.Note))
	return nil
}

func eachAudit(c *contents, fn func(store.Row) error) error {
	type place struct {
		chain string
		seq   uint64
	}
	leaves := map[place]uint64{} // the leaves that the journal has for each record
	if c.lost != nil {
		err := eachJournal(c, func(row store.Row) error {
			leaves[place{row.Entry.Chain, row.Entry.Seq}] = row.Entry.Leaf
			return nil
		})
		if err != nil {
			return err
		}
	}
	return c.EachAuditRow(func(x approvers.AuditRow) error {
		if c.lost == nil || x.Lost() {
			return fn(store.Row{Audit: x})
		}
		d := store.Damage{Bucket: "audit", Key: fmt.Sprintf("%s %d", x.Chain, x.Seq), ID: x.Chain, Seq: x.Seq, Why: "it does not match its hash, or the journal does not name it"}
		leaf, there := leaves[place{x.Chain, x.Seq}]
		a, err := approvers.ParseAuditRecord(x.Record)
		if err != nil || approvers.SumOf(x.Record) != x.Sum || a.Chain != x.Chain || a.Seq != x.Seq || !there {
			c.lost(d, "")
			return nil //nolint:nilerr // lost has reported the row, which is left out
		}
		x.Leaf = leaf
		if x.Payload != nil && !approvers.SumOf(x.Payload).Is(a.PayloadHash) {
			d.Bucket, d.Why, x.Payload = "audit_payloads", "it does not match the hash in its record", nil
			c.lost(d, "")
		}
		return fn(store.Row{Audit: x})
	})
}

func putAudit(f *filling, row store.Row) error {
	x := row.Audit
	a := approvers.AuditRecord{Kind: "lost"}
	if !x.Lost() {
		var err error
		if a, err = approvers.ParseAuditRecord(x.Record); err != nil {
			return fmt.Errorf("%w: record %d of chain %q: %w", store.ErrDamaged, x.Seq, x.Chain, err)
		}
	}
	chain, seq := text(x.Chain), number(x.Seq)
	f.add("audit_records", []string{"chain", "seq", "at", "kind", "actor", "sum", "record"}, chain, seq, moment(a.At), text(a.Kind), text(a.Actor), x.Sum[:], x.Record)
	if x.Payload != nil {
		f.add("audit_payloads", []string{"chain", "seq", "payload"}, chain, seq, x.Payload)
	}
	return nil
}

func eachJournal(c *contents, fn func(store.Row) error) error {
	sealed, err := c.sealed()
	if err != nil {
		return err
	}
	leaf := uint64(0)
	return c.stream("SELECT chain, seq, sum, leaf FROM audit_journal ORDER BY leaf NULLS LAST, position", func(found pgx.Rows) error {
		var chain string
		var seq int64
		var sum []byte
		var number *int64
		if err := found.Scan(&chain, &seq, &sum, &number); err != nil {
			return err
		}
		switch { // in an undamaged journal, the leaf is always the next number
		case number != nil:
			leaf = uint64(*number)
		case leaf < sealed:
			leaf = sealed
		}
		leaf++
		return fn(store.Row{Entry: approvers.JournalEntry{Leaf: leaf - 1, Chain: readText(chain), Seq: uint64(seq), Sum: sumOf(sum)}})
	})
}

// putJournal writes a journal entry. If a head covers the entry, putJournal also writes the entry's leaf. The heads
// were copied before the journal.
func putJournal(f *filling, row store.Row) error {
	var leaf any
	if row.Entry.Leaf < f.sealed {
		leaf = number(row.Entry.Leaf)
	}
	f.add("audit_journal", []string{"leaf", "chain", "seq", "sum"}, leaf, text(row.Entry.Chain), number(row.Entry.Seq), row.Entry.Sum[:])
	return nil
}

// filling is a database whose rows are being written.
type filling struct {
	*store.Position
	store   *Store
	ctx     context.Context
	batches []*batch // batches of rows that were not sent yet
	room    int
	sealed  uint64 // number of journal entries that the heads cover
}

// batch holds rows of one table.
type batch struct {
	table   string
	columns []string
	rows    [][]any
}

// fillRoom is the number of bytes of rows that one transaction writes.
const fillRoom = 1 << 20

// copying is the prefix of the value in the column origin.place while the database is an incomplete copy. The
// progress of the copy (store.Mark) follows. An older program treats the database as restored from a dump, and does
// not start to work.
const copying = "copying "

func (f *filling) add(table string, columns []string, values ...any) {
	i := slices.IndexFunc(f.batches, func(b *batch) bool { return b.table == table })
	if i < 0 {
		i = len(f.batches)
		f.batches = append(f.batches, &batch{table: table, columns: columns})
	}
	f.batches[i].rows = append(f.batches[i].rows, values)
}

// Put adds a row. Put collects rows, and sends many rows of a table together in one COPY.
func (f *filling) Put(_ context.Context, row store.Row) error {
	if row.Part == store.PartHeads {
		f.sealed = row.Head.Size
	}
	if write, err := f.Next(row); err != nil || !write {
		return err
	}
	p := slices.IndexFunc(parts, func(p partTables) bool { return p.part == row.Part })
	if p < 0 {
		return fmt.Errorf("store: this program does not know the part %q", row.Part)
	}
	row = row.Clone()
	if err := parts[p].put(f, row); err != nil {
		return fmt.Errorf("%s: %w", row.Part, err)
	}
	if f.room -= row.Size(); f.room > 0 {
		return nil
	}
	return f.flush()
}

// flush writes the collected rows and the progress of the copy in one transaction.
func (f *filling) flush() error {
	if err := f.End(); err != nil {
		return err
	}
	f.room = fillRoom
	if len(f.batches) == 0 {
		return nil
	}
	err := f.within(func(r *run) error {
		ctx, cancel := context.WithTimeout(f.ctx, patience)
		defer cancel()
		for _, b := range f.batches {
			if _, err := r.conn.CopyFrom(ctx, pgx.Identifier{b.table}, b.columns, pgx.CopyFromRows(b.rows)); err != nil {
				return fmt.Errorf("write to %s: %w", b.table, lossOf(r, err))
			}
		}
		_, err := r.exec("INSERT INTO origin (place) VALUES ($1) ON CONFLICT (one) DO UPDATE SET place = excluded.place", copying+f.Mark().String())
		return err
	})
	f.batches = nil
	return err
}

// EachRow writes the collected rows, and then calls fn with every row of the copy.
func (f *filling) EachRow(ctx context.Context, fn func(store.Row) error) error {
	if err := f.flush(); err != nil {
		return err
	}
	if err := f.within(analyze); err != nil {
		return err
	}
	return f.store.EachRow(ctx, fn)
}

// analyze makes the server update its statistics after rows were written. Without these statistics, the server assumes
// that large tables are small, and reads a whole table for each page of rows. If the role does not own the tables,
// analyze does nothing.
func analyze(r *run) error {
	return r.query(nil, func(b *pgx.Batch) { b.Queue("ANALYZE " + strings.Join(partTableNames(), ", ")) })
}

// partTableNames lists the tables that are copied.
func partTableNames() (tables []string) {
	for _, p := range parts {
		tables = append(tables, p.tables...)
	}
	return tables
}

// within runs fn in a transaction. The transaction sees its own writes. The caller ensures that no other process uses
// the database.
func (f *filling) within(fn func(r *run) error) error {
	conn, err := f.store.acquire(f.ctx)
	if err != nil {
		return err
	}
	r := newRun(context.WithoutCancel(f.ctx), f.store, conn, "begin isolation level repeatable read")
	defer func() {
		if !r.ended {
			r.rollback()
		}
		r.conn.Release()
	}()
	c := contents{reader: reader{r}, ctx: f.ctx}
	if err := c.begin(); err != nil {
		return err
	}
	if err := fn(r); code(err) != "" || isLost(err) {
		return explain(err)
	} else if err != nil {
		return err
	}
	if out, err := r.commit(); err != nil || out != done {
		return fmt.Errorf("a part of the copy is not committed; run the command again: %w", explain(err))
	}
	return nil
}

// lossOf returns the error of a statement. If the connection is closed, lossOf wraps the error in lostError.
func lossOf(r *run, err error) error {
	if r.conn.Conn().IsClosed() {
		return lostError{err}
	}
	return err
}

// ErrNotEmpty says that a database has rows, so no copy can be written into the database.
var ErrNotEmpty = errors.New("store: the database is not empty")

// Fill fills an empty database, and calls fill to write the rows. Until the copy is complete and checked, Open refuses
// the database. After an interrupted copy, the next Fill continues with the missing rows. If anew is set, Fill deletes
// the incomplete copy first. If the database has other rows, the error is ErrNotEmpty. The caller must hold the
// database: see Hold.
func (s *Store) Fill(ctx context.Context, anew bool, fill func(store.Filling) error) error {
	if !s.enter() {
		return store.ErrClosed
	}
	defer s.running.Done()
	f := &filling{store: s, ctx: ctx, room: fillRoom}
	var from store.Mark
	err := f.within(func(r *run) (err error) {
		from, err = begun(r, anew)
		return err
	})
	if err != nil {
		return err
	}
	f.Position = store.StartAt(from)
	if err := fill(f); err != nil {
		return err
	}
	if err := f.flush(); err != nil {
		return err
	}
	return f.within(func(r *run) error {
		if err := analyze(r); err != nil {
			return err
		}
		if err := check(ctx, reader{r}); err != nil {
			return err
		}
		_, err := r.exec(settle)
		return err
	})
}

// begun returns the progress of an interrupted copy. If anew is set, begun deletes the copy. Without an interrupted
// copy, the database must be empty.
func begun(r *run, anew bool) (store.Mark, error) {
	mark, is, err := interrupted(r)
	switch {
	case err != nil:
		return store.Mark{}, err
	case !is:
		return store.Mark{}, mustBeEmpty(r)
	case !anew:
		return mark, nil
	}
	if _, err := r.exec("TRUNCATE " + strings.Join(partTableNames(), ", ")); err != nil {
		return store.Mark{}, err
	}
	_, err = r.exec(settle)
	return store.Mark{}, err
}

// interrupted reads the progress of an interrupted copy. If there is no interrupted copy, the second result is false.
func interrupted(r *run) (mark store.Mark, is bool, err error) {
	place := ""
	if err := r.query(nil, row("SELECT place FROM origin", nil, func(found pgx.Row) error { return found.Scan(&place) })); err != nil {
		return mark, false, err
	}
	at, is := strings.CutPrefix(place, copying)
	if is {
		mark, err = store.ParseMark(at)
	}
	return mark, is, err
}

// mustBeEmpty returns ErrNotEmpty if a table has rows.
func mustBeEmpty(r *run) error {
	for _, p := range parts {
		for _, table := range p.tables {
			there := false
			err := r.query(nil, row("SELECT EXISTS (SELECT FROM "+table+")", nil, func(found pgx.Row) error { return found.Scan(&there) }))
			if err != nil {
				return err
			}
			if there {
				return fmt.Errorf("%w: the schema %s of %s has %s. Name another database, or another schema with search_path in the address", ErrNotEmpty, r.store.config.schema, r.store.config.name(), p.part)
			}
		}
	}
	return nil
}
