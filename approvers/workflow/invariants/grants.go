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
// a grant must be one run. A grant must not have more uses than it allows.
func grantsAddUp(r store.Reader) error {
	chains, err := r.AuditChains("grant:", most)
	if err != nil {
		return err
	}
	var faults []error
	for _, chain := range chains {
		id, ours := strings.CutPrefix(chain, "grant:")
		if !ours {
			break
		}
		faults = append(faults, grantAddsUp(r, chain, id))
	}
	return errors.Join(faults...)
}

func grantAddsUp(r store.Reader, chain, id string) error {
	g, err := r.Grant(id)
	if err != nil {
		return err
	}
	records, err := r.Audit(chain)
	if err != nil {
		return err
	}
	uses := map[string]bool{}
	for _, a := range records {
		if a.Facts["what"] != "used" {
			continue
		}
		e, err := r.Execution(a.Facts["execution"])
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
