package postgres

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/store"
)

// Journal lists the entries of the journal. The entries with a leaf come first. The entries that no head covers yet
// follow, in the order of their positions.
func (t reader) Journal(from uint64, limit int) (out []approvers.JournalEntry, err error) {
	if limit <= 0 {
		return nil, nil
	}
	sealed, err := t.sealed()
	if err != nil {
		return nil, err
	}
	scan := func(found pgx.Rows) error {
		var chain string
		var seq int64
		var sum []byte
		err := found.Scan(&chain, &seq, &sum, &t.run.journal.after)
		out = append(out, approvers.JournalEntry{Leaf: from + uint64(len(out)), Chain: readText(chain), Seq: uint64(seq), Sum: sumOf(sum)})
		return err
	}
	const selects = "SELECT chain, seq, sum, position FROM audit_journal WHERE "
	if from < sealed {
		err := t.run.query(onJournal, rows(limited(selects+"leaf >= $1 ORDER BY leaf", limit), []any{number(from)}, scan))
		if err != nil {
			return nil, err
		}
	}
	if len(out) >= limit {
		return out[:limit], nil
	}
	before := len(out)
	next := from + uint64(before) // the first entry that no head covers
	unsealed, arg := "leaf IS NULL ORDER BY position OFFSET $1", number(next-sealed)
	if last := t.run.journal; last.next == next && next > sealed {
		unsealed, arg = "leaf IS NULL AND position > $1 ORDER BY position", last.after
	}
	if err := t.run.query(onJournal, rows(limited(selects+unsealed, limit-len(out)), []any{arg}, scan)); err != nil {
		return nil, err
	}
	t.run.journal.next = 0
	own := slices.ContainsFunc(t.run.pending, onJournal) // pending entries have positions that are valid only for this read
	if len(out) > before && len(out) <= limit && !own {
		t.run.journal.next = from + uint64(len(out))
	}
	return out[:min(limit, len(out))], nil
}

// sealed returns the number of entries that the last head covers.
func (t reader) sealed() (uint64, error) {
	last, err := t.LastHead()
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	return last.Size, err
}

func (t reader) AuditRow(chain string, seq uint64) (x approvers.AuditRow, err error) {
	sealed, err := t.sealed()
	if err != nil {
		return x, err
	}
	var sum []byte
	var leaf, rank *int64
	err = t.run.query(on("audit_records", "audit_journal", "audit_heads"), row(`
SELECT r.sum, r.record, j.leaf, CASE WHEN j.leaf IS NULL THEN (SELECT count(*) FROM audit_journal u WHERE u.leaf IS NULL AND u.position < j.position) END
FROM audit_records r
LEFT JOIN LATERAL (SELECT position, leaf FROM audit_journal WHERE chain = r.chain AND seq = r.seq ORDER BY position DESC LIMIT 1) j ON true
WHERE r.chain = $1 AND r.seq = $2`, []any{text(chain), number(seq)}, func(found pgx.Row) error {
		return found.Scan(&sum, &x.Record, &leaf, &rank)
	}))
	switch {
	case err != nil:
		return x, err
	case sum == nil:
		return x, fmt.Errorf("audit record %d of chain %q: %w", seq, chain, store.ErrNotFound)
	case leaf != nil:
		x.Leaf = uint64(*leaf)
	case rank != nil:
		x.Leaf = sealed + uint64(*rank)
	}
	x.Chain, x.Seq, x.Sum = chain, seq, sumOf(sum)
	if x.Lost() && leaf == nil && rank == nil {
		x.Leaf = approvers.NoLeaf
	}
	return x, nil
}

// auditPage is the number of rows that EachAuditRow reads with one query.
const auditPage = 500

// EachAuditRow reads the records in pages. For each page, EachAuditRow reads the payloads in the same range of keys,
// including payloads without a record.
func (t reader) EachAuditRow(fn func(approvers.AuditRow) error) error {
	leaves, err := t.unsealed()
	if err != nil {
		return err
	}
	chain, seq := "", int64(0) // the last row of the previous page
	for {
		var page, beside []approvers.AuditRow
		err := t.run.query(on("audit_records", "audit_journal", "audit_heads"), rows(`
SELECT r.chain, r.seq, r.sum, r.record, j.position, j.leaf
FROM (`+limited("SELECT chain, seq, sum, record FROM audit_records WHERE (chain, seq) > ($1, $2) ORDER BY chain, seq", auditPage)+`) r
LEFT JOIN LATERAL (SELECT position, leaf FROM audit_journal WHERE chain = r.chain AND seq = r.seq ORDER BY position DESC LIMIT 1) j ON true
ORDER BY r.chain, r.seq`, []any{chain, seq}, func(found pgx.Rows) error {
			var x approvers.AuditRow
			var sum []byte
			var number int64
			var position, leaf *int64
			err := found.Scan(&x.Chain, &number, &sum, &x.Record, &position, &leaf)
			x.Seq, x.Sum = uint64(number), sumOf(sum)
			switch {
			case leaf != nil:
				x.Leaf = uint64(*leaf)
			case position != nil:
				x.Leaf = leaves[*position]
			case x.Lost():
				x.Leaf = approvers.NoLeaf
			}
			page = append(page, x)
			return err
		}))
		if err != nil {
			return err
		}
		if len(page) < auditPage {
			beside, err = t.payloads(chain, seq, nil)
		} else {
			beside, err = t.payloads(chain, seq, &page[len(page)-1])
		}
		if err != nil {
			return err
		}
		for _, x := range merge(page, beside) {
			x.Chain = readText(x.Chain)
			if err := fn(x); err != nil {
				return err
			}
		}
		if len(page) < auditPage {
			return nil
		}
		last := page[len(page)-1]
		chain, seq = last.Chain, int64(last.Seq)
	}
}

// payloads reads the payloads after the given chain and seq, up to the record last. If last is nil, payloads reads all
// later payloads. Each query has a limit. Without a limit, the server might assume that a query returns a large part of
// the table, and would not use the index.
func (t reader) payloads(chain string, seq int64, last *approvers.AuditRow) (out []approvers.AuditRow, err error) {
	until, upTo := "", []any(nil)
	if last != nil {
		until, upTo = " AND (chain, seq) <= ($3, $4)", []any{last.Chain, int64(last.Seq)}
	}
	page := limited("SELECT chain, seq, payload FROM audit_payloads WHERE (chain, seq) > ($1, $2)"+until+" ORDER BY chain, seq", auditPage)
	for n := auditPage; n == auditPage; {
		n = 0
		err := t.run.query(on("audit_payloads"), rows(page, append([]any{chain, seq}, upTo...), func(found pgx.Rows) error {
			var x approvers.AuditRow
			err := found.Scan(&chain, &seq, &x.Payload)
			x.Chain, x.Seq = chain, uint64(seq)
			out = append(out, x)
			n++
			return err
		}))
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// merge adds payloads to their records. Both lists are in order of chain and seq. A payload without a record gets a row
// of its own.
func merge(records, payloads []approvers.AuditRow) []approvers.AuditRow {
	out := make([]approvers.AuditRow, 0, len(records))
	for _, x := range records {
		for len(payloads) > 0 && (payloads[0].Chain < x.Chain || payloads[0].Chain == x.Chain && payloads[0].Seq < x.Seq) {
			out = append(out, payloads[0])
			payloads = payloads[1:]
		}
		if len(payloads) > 0 && payloads[0].Chain == x.Chain && payloads[0].Seq == x.Seq {
			x.Payload = payloads[0].Payload
			payloads = payloads[1:]
		}
		out = append(out, x)
	}
	return append(out, payloads...)
}

// unsealed finds the entries that no head covers yet. It returns a map from the position of each entry to the leaf that
// the entry would get.
func (t reader) unsealed() (map[int64]uint64, error) {
	next, err := t.sealed()
	if err != nil {
		return nil, err
	}
	leaves := map[int64]uint64{}
	err = t.run.query(onJournal, rows("SELECT position FROM audit_journal WHERE leaf IS NULL ORDER BY position", nil, func(found pgx.Rows) error {
		var position int64
		err := found.Scan(&position)
		leaves[position] = next
		next++
		return err
	}))
	return leaves, err
}
