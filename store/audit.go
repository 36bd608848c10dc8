package store

import (
	"fmt"
	"unicode/utf8"

	"countersign/approvers"
)

// Head is a signed statement about the journal at one moment. The journal has one entry for each audit record: see
// Reader.Journal.
type Head struct {
	Number uint64 // from 1, without gaps
	Size   uint64 // number of journal entries (leaves) that the head covers; greater than in the previous head
	Note   string // the signed text and its signatures

	Damaged bool // the row is damaged, so Size and Note may be wrong
}

// Follows returns ErrConflict if the head does not continue the last head.
func (h Head) Follows(last Head) error {
	if h.Number != last.Number+1 || h.Size <= last.Size {
		return fmt.Errorf("the last signed head is number %d over %d records; number %d over %d does not follow it: %w", last.Number, last.Size, h.Number, h.Size, ErrConflict)
	}
	return nil
}

// EncodeAudit returns the bytes of a record, their hash, and the bytes of the record's payload, if there is one. The
// parameter last is the last record of the chain. If a does not follow last, the error is ErrConflict. EncodeAudit
// also refuses a record that would later fail verification, because an appended record can't be corrected.
func EncodeAudit(last, a approvers.AuditRecord, payload *approvers.AuditPayload) (record []byte, sum approvers.Sum, body []byte, err error) {
	if a.Seq != last.Seq+1 || a.Prev != last.Hash {
		return nil, sum, nil, fmt.Errorf("audit chain %q ends with record %d; record %d does not follow it: %w", a.Chain, last.Seq, a.Seq, ErrConflict)
	}
	record = a.Bytes()
	sum = approvers.SumOf(record)
	readable := true
	for _, s := range []string{string(a.Actor), string(a.Kind), a.PayloadHash} {
		readable = readable && utf8.ValidString(s) // a text column in a database can't store other bytes
	}
	if !readable || !sum.Is(a.Hash) {
		return nil, sum, nil, fmt.Errorf("store: record %d of audit chain %q would not match its hash when it is read again", a.Seq, a.Chain)
	}
	if payload == nil {
		return record, sum, nil, nil
	}
	body = payload.Bytes()
	if payload.Chain != a.Chain || payload.Seq != a.Seq || !approvers.SumOf(body).Is(a.PayloadHash) {
		return nil, sum, nil, fmt.Errorf("store: the payload of record %d of audit chain %q does not match the record's hash", a.Seq, a.Chain)
	}
	return record, sum, body, nil
}
