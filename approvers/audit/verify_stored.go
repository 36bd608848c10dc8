package audit

import (
	"errors"
	"fmt"
	"slices"

	"countersign/approvers"
	"countersign/internal/visible"
	"countersign/store"
)

// differs describes the difference between a chain and its stored request or current execution. If the chain agrees
// with both, or if nothing is stored, differs returns "".
func differs(r store.Reader, chain []approvers.AuditRecord) (string, error) {
	id := chain[0].Chain
	run := id
	req, err := r.Request(id)
	switch {
	case errors.Is(err, store.ErrDamaged):
		return fmt.Sprintf("the record of request %s is damaged", id), nil
	case err == nil:
		if why := req.Unrecorded(chain); why != "" {
			return fmt.Sprintf("request %s: %s", id, why), nil
		}
		run = req.Execution
	case !errors.Is(err, store.ErrNotFound):
		return "", err
	}
	e, err := r.Execution(run)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", nil
	case errors.Is(err, store.ErrDamaged):
		return fmt.Sprintf("the record of execution %s is damaged", run), nil
	case err != nil:
		return "", err
	}
	records, err := recordsOf(r, e, chain)
	if errors.Is(err, store.ErrDamaged) {
		return "", nil // allRows reports the damaged record
	}
	if err != nil {
		return "", err
	}
	why := e.Unrecorded(records)
	if why == "" {
		why, err = otherResult(r, e, records)
	}
	if why == "" || err != nil {
		return "", err
	}
	return fmt.Sprintf("execution %s: %s", run, why), nil
}

// otherResult compares the result of an execution with the text of the record about its end. An execution whose result
// was erased has none. A person's report replaces the result.
func otherResult(r store.Reader, e approvers.Execution, records []approvers.AuditRecord) (string, error) {
	if e.Result == "" || e.ReportedBy != "" {
		return "", nil
	}
	for _, a := range slices.Backward(records) {
		if a.Kind != approvers.AuditExecuted || a.Facts["execution"] != e.ID {
			continue
		}
		p, there, err := payloadOf(r, a)
		if _, damaged := damagedRows(err); damaged {
			return "", nil // allRows reports the damaged text
		}
		// In a stored execution, JSON has replaced each invalid byte.
		if err == nil && there && string([]rune(string(p.Body))) != e.Result {
			return "its result is not the one that was recorded", nil
		}
		return "", err
	}
	return "", nil
}

// recordsOf returns the records of an execution. The caller passes one chain of the execution. An execution has two
// chains if its call was allowed to run without approval, but people were asked when the run was due. The two chains
// are the execution's own chain and the request's chain.
func recordsOf(r store.Reader, e approvers.Execution, chain []approvers.AuditRecord) ([]approvers.AuditRecord, error) {
	if e.Request == "" || e.Request == chain[0].Chain {
		return chain, nil
	}
	more, err := r.Audit(e.Request)
	return slices.Concat(chain, more), err
}

// stored compares each stored request with its chain. stored also compares the request's current execution, and each
// execution with a chain of its own.
func (v *verification) stored() error {
	for after := ""; ; {
		chains, err := v.r.AuditChains(after, rowBatch)
		if err != nil || len(chains) == 0 {
			return err
		}
		for _, id := range chains {
			if err := v.ctx.Err(); err != nil {
				return err
			}
			if err := v.storedOf(id); err != nil {
				return err
			}
		}
		after = chains[len(chains)-1]
	}
}

// storedOf compares a chain with the chain's stored request and stored execution. storedOf skips a chain that is
// damaged or fails verification, because allRows reports such a chain.
func (v *verification) storedOf(id string) error {
	stored := false
	_, err := v.r.Request(id)
	stored = stored || !errors.Is(err, store.ErrNotFound)
	if !stored {
		_, err = v.r.Execution(id)
		stored = !errors.Is(err, store.ErrNotFound)
	}
	if !stored {
		return nil
	}
	chain, err := v.r.Audit(id)
	if errors.Is(err, store.ErrDamaged) {
		return nil
	}
	if err != nil || approvers.VerifyChain(chain) != nil {
		return err
	}
	why, err := differs(v.r, chain)
	if why != "" && v.prunings[id] == nil { // early versions pruned chains that could still get records
		v.fault("%s", visible.Line(why))
	}
	return err
}
