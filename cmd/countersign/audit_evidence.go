package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/cmd/countersign/evidence"
	"countersign/store"
)

// evidenceOptions say what the page is about, and whose signature is trusted on it.
type evidenceOptions struct {
	Requests []string `json:"requests"`
	Keys     []string `json:"keys,omitempty"`
	Own      bool     `json:"own,omitempty"` // the keys are those of the key's file
}

func auditEvidenceCommand() *cobra.Command {
	var file string
	var keys []string
	cmd := &cobra.Command{
		Use:   "evidence REQUEST…",
		Short: "A page for an auditor: a request's whole story, with each version of its card",
		Long: `Writes one HTML page that loads nothing and can be printed: who asked for what, what each approver was shown when they decided, what ran, and what
came of it, with what was verified for it: also that a signed head covers each of its records. "countersign audit list" has the ids of the requests.
It exits 1 when something of that does not hold; the page is written all the same, and says what.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, requests []string) error {
			trusted := verifyOptions{Keys: keys}
			if err := trusted.trust(); err != nil {
				return err
			}
			o := evidenceOptions{Requests: requests, Keys: trusted.Keys, Own: trusted.Own}
			var fault error
			err := toFile(cmd, file, func(out io.Writer) error {
				page := &spoken{w: out}
				err := auditEvidenceTask.do(cmd.Context(), o, nil, page)
				if page.n > 0 && exitCode(err) == exitNo { // the page is whole, and what it shows is not
					fault, err = err, nil
				}
				return err
			})
			return errors.Join(err, fault)
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "the public key that you trust; without it those of the key's file are")
	fileFlag(cmd, &file)
	return cmd
}

var auditEvidenceTask = task[evidenceOptions]{"audit evidence", true, func(ctx context.Context, w workplace, o evidenceOptions) error {
	return writeEvidence(ctx, w.out, w.store, w.who, o)
}}

// writeEvidence writes the page that tells the whole story of each of the requests.
func writeEvidence(ctx context.Context, out io.Writer, s store.Store, who approvers.PersonID, o evidenceOptions) error {
	page := evidence.Page{MadeAt: time.Now(), MadeBy: who.Login()}
	for _, chain := range o.Requests {
		records, err := oneChain(ctx, s, chain)
		if err != nil {
			return err
		}
		told, err := story(ctx, s, records, o)
		if err != nil {
			return couldNot("the story of %s can't be told: %w", chain, err)
		}
		page.Stories = append(page.Stories, told)
	}
	if err := evidence.Write(out, page); err != nil {
		return couldNot("%w", err)
	}
	if n := page.Faults(); n > 0 {
		return answerNo("the page is written, and what it tells is not what it was: %s, marked on it", count(n, "fault"))
	}
	return nil
}

// story gathers what a chain's records commit to, under which signed head they stand, and who the people in it are.
func story(ctx context.Context, s store.Store, chain []approvers.AuditRecord, o evidenceOptions) (evidence.Story, error) {
	out := evidence.Story{Chain: chain[0].Chain}
	err := s.View(ctx, func(r store.Reader) (err error) {
		if out.Names, err = peopleOf(r, out.Chain); err != nil {
			return err
		}
		if out.Seal, err = sealOf(r, chain, o); err != nil {
			return err
		}
		out.Entries = nil
		for _, a := range chain {
			p, there, err := payloadOf(r, a)
			if err != nil {
				return err
			}
			out.Entries = append(out.Entries, evidence.Entry{AuditRecord: a, Payload: p.Body, State: payloadState(chain, a, p, there)})
		}
		return nil
	})
	return out, err
}

// payloadState says what became of what a record commits to.
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

// peopleOf are the names of those who had to do with a chain, as Slack had them then. What was erased names nobody.
func peopleOf(r store.Reader, chain string) (map[approvers.PersonID]string, error) {
	names := map[approvers.PersonID]string{}
	note := func(id approvers.PersonID, name string) {
		if id != "" && name != "" {
			names[id] = strings.Map(printable, name)
		}
	}
	req, err := r.Request(chain)
	if errors.Is(err, store.ErrNotFound) {
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
	return names, nil
}
