package bolt

import (
	"errors"
	"fmt"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

func (t reader) Audit(chain string) ([]approvers.AuditRecord, error) {
	var out []approvers.AuditRecord
	var damaged []error
	for k, v := range t.rows.each(audit, text(nil, chain), nil, false, func(_ []byte, d *store.DamagedError) {
		t.rows.note(d)
		damaged = append(damaged, d)
	}) {
		a, err := recordOf(k, v)
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		out = append(out, a)
	}
	if len(damaged) == 1 {
		return out, damaged[0]
	}
	return out, errors.Join(damaged...)
}

func (t reader) AuditHead(chain string) (approvers.AuditRecord, error) {
	head, err := t.head(chain)
	if err == nil && head.Seq == 0 {
		err = fmt.Errorf("audit chain %q: %w", chain, store.ErrNotFound)
	}
	return head, err
}

// head returns a chain's last record. If the chain does not exist, the record is zero.
func (t reader) head(chain string) (head approvers.AuditRecord, err error) {
	what := recordID{audit, chain}
	if k, ok := t.rows.known[what]; ok {
		return *k.record.(*approvers.AuditRecord), nil
	}
	k, v, damaged := t.rows.highest(audit, text(nil, chain))
	switch {
	case damaged != nil:
		if head, err = t.headOfJournal(k, damaged); err != nil {
			return head, err
		}
	case k != nil && auditRow(k, v).Lost():
		x := auditRow(k, v)
		head = approvers.AuditRecord{Chain: x.Chain, Seq: x.Seq, Hash: x.Sum.String()}
	case k != nil:
		if head, err = recordOf(k, v); err != nil {
			return head, err
		}
	}
	t.rows.know(what, known{record: &head})
	return head, nil
}

// headOfJournal returns the position and the hash of a chain's damaged last record. headOfJournal reads them from the
// journal. The position and the hash are enough to append the next record. Verification of the chain reports the
// damage.
func (t reader) headOfJournal(key []byte, damaged error) (approvers.AuditRecord, error) {
	chain, seq, _ := auditKey(key)
	for _, v := range t.rows.asStored(auditJournal, nil) {
		if e := entryOf(nil, v.value); v.sound && e.Chain == chain && e.Seq == seq {
			return approvers.AuditRecord{Chain: chain, Seq: seq, Hash: e.Sum.String()}, nil
		}
	}
	return approvers.AuditRecord{}, damaged
}

// recordOf reads a record with its stored hash. recordOf does not check the hash. Verification checks every hash.
func recordOf(k, v []byte) (approvers.AuditRecord, error) {
	x := auditRow(k, v)
	if x.Lost() {
		return approvers.AuditRecord{}, damagedRow(audit, k, store.WhyLost)
	}
	a, err := approvers.ParseAuditRecord(x.Record)
	if err != nil {
		return a, damagedRow(audit, k, err.Error())
	}
	a.Hash = x.Sum.String()
	return a, nil
}

func (t reader) AuditChains(after string, limit int) ([]string, error) {
	var chains []string
	var from []byte
	if after != "" {
		from = beyond(text(nil, after))
	}
	for len(chains) < limit {
		chain := ""
		for k := range t.rows.asStored(audit, from) { // asStored also returns damaged records, because they belong to the chain; verification reports an invalid key
			if name, _, ok := auditKey(k); ok {
				chain = name
				break
			}
		}
		if chain == "" {
			return chains, nil
		}
		chains = append(chains, chain)
		from = beyond(text(nil, chain))
	}
	return chains, nil
}

func (t reader) AuditPayload(chain string, seq uint64) (approvers.AuditPayload, error) {
	key := number(text(nil, chain), seq)
	v, err := t.rows.fetch(auditPayloads, key)
	if err != nil {
		return approvers.AuditPayload{}, err
	}
	if v == nil {
		return approvers.AuditPayload{}, fmt.Errorf("payload of audit record %d of chain %q: %w", seq, chain, store.ErrNotFound)
	}
	p, err := approvers.ParseAuditPayload(chain, seq, v)
	if err != nil {
		return p, damagedRow(auditPayloads, key, "it can't be parsed")
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
	leaf, err := t.rows.journal(a.Chain, a.Seq, sum)
	if err != nil {
		return err
	}
	key := number(text(nil, a.Chain), a.Seq)
	value := number(t.rows.scratch.space(auditHeader+len(record)), leaf)
	value = append(append(value, sum[:]...), record...)
	if err := t.rows.set(audit, key, nil, t.rows.scratch.done(value)); err != nil {
		return err
	}
	t.rows.know(recordID{audit, a.Chain}, known{record: &a})
	if payload == nil {
		return nil
	}
	return t.rows.set(auditPayloads, key, t.rows.get(auditPayloads, key), body)
}

func (t *tx) ErasePayloads(chain string, only ...uint64) ([]uint64, error) {
	var seqs []uint64
	var keys [][]byte
	for _, k := range t.rows.keys(auditPayloads, text(nil, chain), noLimit) {
		_, seq, ok := auditKey(k)
		if !ok || len(only) > 0 && !slices.Contains(only, seq) {
			continue
		}
		seqs, keys = append(seqs, seq), append(keys, k)
	}
	return seqs, t.rows.discardAll(auditPayloads, keys)
}

func (t *tx) PruneChain(chain string) (int, error) {
	if _, err := t.ErasePayloads(chain); err != nil {
		return 0, err
	}
	keys := t.rows.keys(audit, text(nil, chain), noLimit)
	delete(t.rows.known, recordID{audit, chain})
	return len(keys), t.rows.discardAll(audit, keys)
}
