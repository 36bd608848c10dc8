package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"countersign/approvers"
	"countersign/approvers/audit/evidence"
	"countersign/store"
)

// EvidenceOptions selects the requests of the page, and the trusted keys.
type EvidenceOptions struct {
	Requests []string `json:"requests"`
	Keys     []string `json:"keys,omitempty"`
	Own      bool     `json:"own,omitempty"` // the keys come from the key file
}

// WriteEvidence writes one HTML page with the whole story of each request. WriteEvidence returns the number of faults
// that the page reports. The page is written even if there are faults.
func WriteEvidence(ctx context.Context, out io.Writer, s store.Store, who approvers.PersonID, o EvidenceOptions) (faults int, err error) {
	page := evidence.Page{MadeAt: time.Now(), MadeBy: who.Login()}
	for _, chain := range o.Requests {
		records, left, err := oneChain(ctx, s, chain)
		if err != nil {
			return 0, err
		}
		if len(records) == 0 {
			return 0, left.Err()
		}
		told, err := story(ctx, s, records, left.seqs(), o)
		if err != nil {
			return 0, fmt.Errorf("the history of %s can't be written: %w", chain, err)
		}
		page.Stories = append(page.Stories, told)
	}
	if err := evidence.Write(out, page); err != nil {
		return 0, err
	}
	return page.Faults(), nil
}

// story collects the records and payloads of a chain, the signed head that covers the records, and the names of the
// people.
func story(ctx context.Context, s store.Store, chain []approvers.AuditRecord, damaged []uint64, o EvidenceOptions) (evidence.Story, error) {
	out := evidence.Story{Chain: chain[0].Chain, Damaged: damaged}
	err := s.View(ctx, func(r store.Reader) (err error) {
		if out.Names, err = peopleOf(r, out.Chain); err != nil {
			return err
		}
		if out.Words, err = wordsOf(r, out.Chain); err != nil {
			return err
		}
		if out.Seal, err = sealOf(r, chain, o); err != nil {
			return err
		}
		if len(damaged) == 0 { // otherwise the chain's content is not fully known
			if out.Differs, err = differs(r, chain); err != nil {
				return err
			}
		}
		out.Entries = nil
		for _, a := range chain {
			p, there, err := payloadOf(r, a)
			if _, damaged := damagedRows(err); damaged {
				there, err = true, nil // the payload exists, but is damaged
			}
			if err != nil {
				return err
			}
			out.Entries = append(out.Entries, evidence.Entry{AuditRecord: a, Payload: p.Body, State: payloadState(chain, a, p, there)})
		}
		return nil
	})
	return out, err
}

// payloadState compares a payload with the hash in its record. If the payload is missing, payloadState looks for a
// record of an erasure.
func payloadState(chain []approvers.AuditRecord, a approvers.AuditRecord, p approvers.AuditPayload, there bool) evidence.PayloadState {
	switch {
	case a.PayloadHash == "":
		return evidence.NoPayload
	case there && p.Hash() == a.PayloadHash:
		return evidence.Whole
	case there:
		return evidence.Changed
	}
	for _, later := range chain {
		if later.Kind != approvers.AuditErased {
			continue
		}
		if e, err := approvers.ErasureOf(later); err == nil && slices.Contains(e.Seqs, a.Seq) {
			return evidence.Erased
		}
	}
	return evidence.Missing
}

// peopleOf returns the names of a request's people. A name is the name that the person had in Slack when the request
// recorded it. peopleOf returns no names if the request was removed or is damaged.
func peopleOf(r store.Reader, chain string) (map[approvers.PersonID]string, error) {
	names := map[approvers.PersonID]string{}
	note := func(id approvers.PersonID, name string) {
		if id != "" && name != "" {
			names[id] = strings.Map(printable, name)
		}
	}
	req, err := r.Request(chain)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) {
		return names, nil
	}
	if err != nil {
		return nil, err
	}
	note(req.Facts.Asker, req.Facts.AskerName)
	note(req.ClosedBy, req.ClosedName)
	for _, d := range req.Decisions {
		note(d.By, d.Name)
	}
	for _, e := range req.Edits {
		note(e.By, e.Name)
	}
	for _, m := range req.Remarks {
		note(m.By, m.Name)
	}
	for _, i := range append(req.Invited, req.Handed...) {
		note(i.Who, i.Name)
	}
	for _, call := range req.Calls {
		for _, d := range call.Deactivated {
			note(d.Who, d.Name)
		}
	}
	return names, nil
}

// wordsOf returns the message that led to a request, with secret values masked.
func wordsOf(r store.Reader, chain string) (string, error) {
	req, err := r.Request(chain)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) {
		return "", nil
	}
	return approvers.MaskText(req.Facts.Quote, req.Args, req.Secrets), err
}

// printable returns -1 for characters that can't be printed, because such characters could move the terminal's cursor.
// strings.Map then removes them.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return -1
}
