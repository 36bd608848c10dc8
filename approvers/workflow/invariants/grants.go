package invariants

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// grantsAddUp compares every grant with its audit chain, and with the executions that ran under the grant. Each use of
// a grant must be one run. A grant must not have more uses than it allows. When a grant has ended, retention may have
// erased some of its runs.
func grantsAddUp(r store.Reader) error {
	chains, err := r.AuditChains(approvers.GrantChain(""), most)
	if err != nil {
		return err
	}
	var faults []error
	for _, chain := range chains {
		id, ours := strings.CutPrefix(chain, approvers.GrantChain(""))
		if !ours {
			break
		}
		faults = append(faults, grantAddsUp(r, chain, id))
	}
	return errors.Join(faults...)
}

func grantAddsUp(r store.Reader, chain, id string) error {
	records, err := r.Audit(chain)
	if err != nil {
		return err
	}
	g, err := r.Grant(id)
	if errors.Is(err, store.ErrNotFound) {
		return grantErased(r, id, records)
	}
	if err != nil {
		return err
	}
	uses := map[string]bool{}
	for _, a := range records {
		if a.Facts["what"] != "used" {
			continue
		}
		e, err := r.Execution(a.Facts["execution"])
		if errors.Is(err, store.ErrNotFound) && !g.State.Open() {
			uses[a.Facts["execution"]] = true
			continue
		}
		if err != nil {
			return err
		}
		if e.Grant != id || strconv.Itoa(e.GrantUse) != a.Facts["use"] || e.State == approvers.ExecutionNone || e.Request != "" {
			return fmt.Errorf("grant %s: its history names execution %s (state %s, use %d of grant %q, request %q), which does not fit", id, e.ID, e.State, e.GrantUse, e.Grant, e.Request)
		}
		uses[e.ID] = true
	}
	if g.State != approvers.GrantOffered && g.By != "" && len(uses) != g.Uses-g.Left || g.Left < 0 || len(uses) > g.Uses {
		return fmt.Errorf("grant %s is %s: its history has %d runs, and %d of %d uses are left", id, g.State, len(uses), g.Left, g.Uses)
	}
	_, err = r.Timer(store.TimerGrant, id)
	if g.State.Open() != (err == nil) {
		return fmt.Errorf("grant %s is %s, which does not agree with its timer: %w", id, g.State, err)
	}
	return nil
}

// grantErased checks the audit chain of a grant that retention has erased. The texts of the chain must be erased, and
// the store must have no run under the grant.
func grantErased(r store.Reader, id string, records []approvers.AuditRecord) error {
	for _, a := range records {
		if _, err := r.Execution(a.Facts["execution"]); a.Facts["what"] == "used" && !errors.Is(err, store.ErrNotFound) {
			return errors.Join(err, fmt.Errorf("grant %s is missing, and execution %s ran under it", id, a.Facts["execution"]))
		}
		if _, err := r.AuditPayload(a.Chain, a.Seq); !errors.Is(err, store.ErrNotFound) {
			return errors.Join(err, fmt.Errorf("grant %s is missing, and its record %d has a text", id, a.Seq))
		}
	}
	if messages, err := r.OutboxMessagesOf(id); len(messages) > 0 || err != nil {
		return errors.Join(err, fmt.Errorf("grant %s is missing, and has %d messages", id, len(messages)))
	}
	return nil
}
