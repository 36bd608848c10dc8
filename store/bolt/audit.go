package bolt

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/store"
)

func (t reader) Audit(chain string) ([]approvers.AuditRecord, error) {
	return list[approvers.AuditRecord](t.rows.scan(audit, text(nil, chain), nil))
}

func (t reader) AuditHead(chain string) (approvers.AuditRecord, error) {
	var head approvers.AuditRecord
	k, v := t.rows.last(audit, text(nil, chain))
	if k == nil {
		return head, fmt.Errorf("audit chain %q: %w", chain, store.ErrNotFound)
	}
	err := decode(v, &head)
	return head, err
}

func (t reader) AuditChains(after string, limit int) ([]string, error) {
	var chains []string
	var from []byte
	if after != "" {
		from = beyond(text(nil, after))
	}
	for len(chains) < limit {
		var key []byte
		for key = range t.rows.scan(audit, nil, from) {
			break
		}
		if key == nil {
			return chains, nil
		}
		chain, _, ok := cutText(key)
		if !ok {
			return nil, fmt.Errorf("store: the key %x of %s is damaged", key, audit)
		}
		chains = append(chains, chain)
		from = beyond(text(nil, chain))
	}
	return chains, nil
}

func (t reader) AuditPayload(chain string, seq uint64) (approvers.AuditPayload, error) {
	var p approvers.AuditPayload
	v := t.rows.get(auditPayloads, number(text(nil, chain), seq))
	if v == nil {
		return p, fmt.Errorf("payload of audit record %d of chain %q: %w", seq, chain, store.ErrNotFound)
	}
	err := decode(v, &p)
	return p, err
}

// AppendAudit refuses a record that would not verify when it is read again: an append can't be mended later.
func (t *tx) AppendAudit(a approvers.AuditRecord, payload *approvers.AuditPayload) error {
	if err := keyable("audit chain's id", a.Chain); err != nil {
		return err
	}
	head, err := t.AuditHead(a.Chain)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if a.Seq != head.Seq+1 || a.Prev != head.Hash {
		return fmt.Errorf("audit chain %q ends with record %d; record %d does not follow it: %w", a.Chain, head.Seq, a.Seq, store.ErrConflict)
	}
	linked := a.Link(head)
	for _, s := range []string{string(a.Actor), string(a.Kind), a.PayloadHash} {
		if !utf8.ValidString(s) {
			linked.Hash = "" // it would be read back as something else
		}
	}
	if linked.Hash != a.Hash {
		return fmt.Errorf("store: record %d of audit chain %q would not match its hash when it is read again", a.Seq, a.Chain)
	}
	key := number(text(nil, a.Chain), a.Seq)
	value, err := encode(t.rows.scratch.space(1024), &linked)
	if err != nil {
		return err
	}
	if err := t.rows.set(audit, key, nil, t.rows.scratch.done(value)); err != nil || payload == nil {
		return err
	}
	if payload.Chain != a.Chain || payload.Seq != a.Seq || payload.Hash() != a.PayloadHash {
		return fmt.Errorf("store: the payload given with record %d of audit chain %q is not the one that it commits to", a.Seq, a.Chain)
	}
	return put(t.rows, auditPayloads, key, payload)
}
