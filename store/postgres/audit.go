package postgres

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/store"
)

const selectRecords = "SELECT chain, seq, sum, record FROM audit_records WHERE chain = $1 "

// scanRecord reads a record with its chain and seq. If the record is lost, can't be decoded, or does not match its
// hash, its chain or its seq, the error is a *store.DamagedError. scanRecord does not check the link to the previous
// record, because verification checks all links.
func scanRecord(found pgx.Row) (chain string, seq int64, a approvers.AuditRecord, err error) {
	var sum, bytes []byte
	if err := found.Scan(&chain, &seq, &sum, &bytes); err != nil {
		return chain, seq, a, err
	}
	x := store.Damage{Bucket: "audit", Key: fmt.Sprintf("%s %d", readText(chain), seq), ID: readText(chain), Seq: uint64(seq), Why: "it does not match its hash"}
	a, err = approvers.ParseAuditRecord(bytes)
	switch {
	case len(bytes) == 0:
		x.Why = store.WhyLost
		return chain, seq, a, &store.DamagedError{Damage: x}
	case approvers.SumOf(bytes) != sumOf(sum):
		return chain, seq, a, &store.DamagedError{Damage: x}
	case err != nil:
		x.Why = "it can't be decoded: " + err.Error()
		return chain, seq, a, &store.DamagedError{Damage: x}
	case a.Chain != x.ID || a.Seq != x.Seq:
		x.Why = fmt.Sprintf("it holds record %d of chain %s", a.Seq, a.Chain)
		return chain, seq, a, &store.DamagedError{Damage: x}
	}
	a.Hash = sumOf(sum).String()
	return chain, seq, a, nil
}

// sumOf reads a hash. A value of the wrong length becomes the zero hash, which matches no record.
func sumOf(b []byte) (s approvers.Sum) {
	if len(b) == len(s) {
		s = approvers.Sum(b)
	}
	return s
}

func (t reader) Audit(chain string) ([]approvers.AuditRecord, error) {
	if _, ok := t.run.lists.chains[chain]; !ok {
		if err := t.run.query(onRows("audit_records", chain), t.run.lookUpChain(chain)); err != nil {
			return nil, err
		}
	}
	list, torn := slices.Clone(t.run.lists.chains[chain]), t.run.lists.torn[chain]
	switch {
	case t.run.failure != nil:
		return nil, t.run.failure
	case len(torn) == 1:
		return list, torn[0]
	}
	return list, errors.Join(torn...)
}

func (t reader) AuditHead(chain string) (approvers.AuditRecord, error) {
	head, err := t.head(chain)
	if err == nil && head.Seq == 0 {
		err = fmt.Errorf("audit chain %q: %w", chain, store.ErrNotFound)
	}
	return head, err
}

func chainKey(chain string) key { return key{table: "audit_records", id: chain} }

// lookUpHead returns a query for a chain's last record. When the query runs, it stores the record in run.known.
func (t reader) lookUpHead(chain string) queryable {
	t.run.known[chainKey(chain)] = known{value: approvers.AuditRecord{}}
	return row(selectRecords+"ORDER BY seq DESC LIMIT 1", []any{text(chain)}, func(found pgx.Row) error {
		_, _, a, err := scanRecord(found)
		if damaged := t.run.note(err); damaged != nil {
			t.run.known[chainKey(chain)] = known{damaged: damaged}
			return nil //nolint:nilerr // run.known keeps the damage for the methods that need the record
		}
		t.run.known[chainKey(chain)] = known{value: a}
		return err
	})
}

// head returns a chain's last record. If the chain does not exist, the record is zero.
func (t reader) head(chain string) (head approvers.AuditRecord, err error) {
	if _, ok := t.run.known[chainKey(chain)]; !ok {
		if err := t.run.query(onRows("audit_records", chain), t.lookUpHead(chain)); err != nil {
			return head, err
		}
	}
	k := t.run.known[chainKey(chain)]
	if k.damaged != nil {
		if head, err = t.headOfJournal(k.damaged); err != nil {
			return head, err
		}
		k = known{value: head}
		t.run.known[chainKey(chain)] = k
	}
	return k.value.(approvers.AuditRecord), t.run.failure
}

// If a chain's last record is damaged, headOfJournal reads the record's seq and hash from the journal. These two values
// are enough to append the next record. All other fields of the returned record are zero.
func (t reader) headOfJournal(damaged *store.DamagedError) (head approvers.AuditRecord, err error) {
	var seq int64
	var sum []byte
	err = t.run.query(onRows("audit_journal", damaged.ID), row("SELECT seq, sum FROM audit_journal WHERE chain = $1 ORDER BY position DESC LIMIT 1", []any{text(damaged.ID)}, func(found pgx.Row) error {
		return found.Scan(&seq, &sum)
	}))
	if err != nil {
		return head, err
	}
	if uint64(seq) != damaged.Seq || len(sum) != len(approvers.Sum{}) {
		return head, damaged
	}
	return approvers.AuditRecord{Chain: damaged.ID, Seq: damaged.Seq, Hash: sumOf(sum).String()}, nil
}

func (t reader) AuditChains(after string, limit int) (chains []string, err error) {
	if limit <= 0 {
		return nil, nil
	}
	// The query searches the index once for each chain, instead of reading every record.
	err = t.run.query(on("audit_records"), rows(`
WITH RECURSIVE chains AS (
    (SELECT chain FROM audit_records WHERE chain > $1 ORDER BY chain LIMIT 1)
    UNION ALL
    SELECT (SELECT r.chain FROM audit_records r WHERE r.chain > c.chain ORDER BY r.chain LIMIT 1) FROM chains c WHERE c.chain IS NOT NULL
)
SELECT chain FROM chains WHERE chain IS NOT NULL LIMIT $2`, []any{text(after), limit}, func(found pgx.Rows) error {
		var chain string
		err := found.Scan(&chain)
		chains = append(chains, readText(chain))
		return err
	}))
	return chains, err
}

func (t reader) AuditPayload(chain string, seq uint64) (p approvers.AuditPayload, err error) {
	var body, record []byte
	err = t.run.query(on("audit_payloads", "audit_records"), row("SELECT p.payload, r.record FROM audit_payloads p LEFT JOIN audit_records r USING (chain, seq) WHERE p.chain = $1 AND p.seq = $2",
		[]any{text(chain), number(seq)}, func(found pgx.Row) error { return found.Scan(&body, &record) }))
	switch {
	case err != nil:
		return p, err
	case body == nil:
		return p, fmt.Errorf("payload of audit record %d of chain %q: %w", seq, chain, store.ErrNotFound)
	}
	p, err = payloadOf(chain, seq, body, record)
	_ = t.run.note(err)
	return p, err
}

// payloadOf reads a payload. If the payload does not match its record, the error is a *store.DamagedError.
func payloadOf(chain string, seq uint64, body, record []byte) (p approvers.AuditPayload, err error) {
	x := store.Damage{Bucket: "audit_payloads", Key: fmt.Sprintf("%s %d", chain, seq), ID: chain, Seq: seq, Why: "it does not match the hash in its record"}
	if a, err := approvers.ParseAuditRecord(record); err != nil || !approvers.SumOf(body).Is(a.PayloadHash) {
		return p, &store.DamagedError{Damage: x}
	}
	if p, err = approvers.ParseAuditPayload(chain, seq, body); err != nil {
		x.Why = "it can't be decoded: " + err.Error()
		return p, &store.DamagedError{Damage: x}
	}
	return p, nil
}

func (t *tx) AppendAudit(a approvers.AuditRecord, payload *approvers.AuditPayload) error {
	if err := keyable("audit chain's id", a.Chain); err != nil {
		return err
	}
	head, err := t.head(a.Chain)
	if err != nil {
		return err
	}
	record, sum, body, err := store.EncodeAudit(head, a, payload)
	if err != nil {
		return err
	}
	chain, seq := text(a.Chain), number(a.Seq)
	t.run.always(key{"audit_records", a.Chain, seq}, "INSERT INTO audit_records (chain, seq, at, kind, actor, sum, record) VALUES ($1, $2, $3, $4, $5, $6, $7)",
		chain, seq, moment(a.At), text(a.Kind), text(a.Actor), sum[:], record)
	t.run.always(key{"audit_journal", a.Chain, seq}, "INSERT INTO audit_journal (chain, seq, sum) VALUES ($1, $2, $3)", chain, seq, sum[:])
	t.run.known[chainKey(a.Chain)] = known{value: a}
	if list, ok := t.run.lists.chains[a.Chain]; ok {
		t.run.lists.chains[a.Chain] = append(list, a)
	}
	if payload != nil {
		if t.run.careful {
			// A payload whose record was deleted by hand would prevent every later append to the chain. The key makes
			// this statement run before the insert.
			t.run.always(key{"audit_payloads", a.Chain, -seq}, "SELECT erase_payloads($1, ARRAY[$2::bigint])", chain, seq)
		}
		t.run.always(key{"audit_payloads", a.Chain, seq}, "INSERT INTO audit_payloads (chain, seq, payload) VALUES ($1, $2, $3)",
			chain, seq, body)
	}
	return nil
}

func (t *tx) ErasePayloads(chain string, only ...uint64) (seqs []uint64, err error) {
	var numbers []int64 // nil: all payloads of the chain
	for _, n := range only {
		numbers = append(numbers, number(n))
	}
	err = t.run.change(rows("SELECT erase_payloads($1, $2)", []any{text(chain), numbers}, func(found pgx.Rows) error {
		var seq int64
		err := found.Scan(&seq)
		seqs = append(seqs, uint64(seq))
		return err
	}))
	slices.Sort(seqs)
	return seqs, err
}

func (t *tx) PruneChain(chain string) (records int, err error) {
	err = t.run.change(row("SELECT prune_chain($1)", []any{text(chain)}, func(found pgx.Row) error { return found.Scan(&records) }))
	return records, err
}

// onJournal is for a read that depends on pending writes to the journal and the heads. The read depends on a pending
// head, because a head gives leaf numbers to the journal entries that it covers.
var onJournal = on("audit_journal", "audit_heads")

func (t reader) LastHead() (store.Head, error) {
	heads, err := t.heads("ORDER BY number DESC LIMIT 1")
	if err != nil {
		return store.Head{}, err
	}
	if len(heads) == 0 {
		return store.Head{}, fmt.Errorf("signed head: %w", store.ErrNotFound)
	}
	return heads[0], nil
}

func (t reader) Heads(after uint64, limit int) ([]store.Head, error) {
	if limit <= 0 || after >= math.MaxInt64 {
		return nil, nil
	}
	heads, err := t.heads(limited("WHERE number > $1 ORDER BY number", limit), number(after))
	return heads[:min(limit, len(heads))], err
}

func (t reader) heads(where string, args ...any) (out []store.Head, err error) {
	err = t.run.query(onJournal, rows("SELECT number, size, note FROM audit_heads "+where, args, func(found pgx.Rows) error {
		var number, size int64
		var note []byte
		err := found.Scan(&number, &size, &note)
		out = append(out, store.Head{Number: uint64(number), Size: uint64(size), Note: string(note)})
		return err
	}))
	return out, err
}

// PutHead stores a head, and gives a leaf number to each entry that this head covers and no earlier head covers.
func (t *tx) PutHead(h store.Head) error {
	last, err := t.LastHead()
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if n := t.run.newest; n != nil && (last.Number < n.Number || last.Number == n.Number && last.Note != n.Note) {
		return t.run.store.rewound(*n)
	}
	if err := h.Follows(last); err != nil {
		return err
	}
	want, there := number(h.Size-last.Size), int64(0)
	const unsealed = "SELECT count(*) FROM (SELECT FROM audit_journal WHERE leaf IS NULL ORDER BY position LIMIT $1) x"
	if err := t.run.query(onJournal, row(unsealed, []any{want}, func(found pgx.Row) error { return found.Scan(&there) })); err != nil {
		return err
	}
	if there < want {
		return fmt.Errorf("store: head %d covers %d records, but there are fewer", h.Number, h.Size)
	}
	t.run.always(key{"audit_heads", "", number(h.Number)}, "SELECT append_head($1, $2, $3)", number(h.Number), number(h.Size), []byte(h.Note))
	t.run.head = &h
	return nil
}
