// Package books checks what must be true of a store at any moment between two transactions, whatever happened before:
// everything that has to be done has its timer, no timer is left for what is over, every chain verifies, nothing that
// waits is hidden from everybody. It is for tests: it reads everything.
package invariants

import (
	"errors"
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// most bounds how many records of a kind are read.
const most = 10_000

// Faults says where the books do not add up; nil: nowhere. turns are those whose calls and messages are looked through.
func Faults(r store.Reader, turns []string) error {
	faults := []error{chains(r), timersNameSomething(r), requestsHaveTimers(r), CardQueues(r), grantsAddUp(r)}
	for _, id := range turns {
		turn, err := r.Turn(id)
		if err != nil {
			return err
		}
		faults = append(faults, turnIsWhole(r, turn))
	}
	return errors.Join(faults...)
}

// chains verifies every audit chain with its payloads.
func chains(r store.Reader) error {
	ids, err := r.AuditChains("", most)
	if err != nil {
		return err
	}
	var faults []error
	for _, id := range ids {
		records, err := r.Audit(id)
		if err != nil {
			return err
		}
		faults = append(faults, approvers.VerifyChain(records))
		if id != approvers.InstallationChain && records[0].Kind != firstRecord(id) {
			faults = append(faults, fmt.Errorf("chain %s begins with %s", id, records[0].Kind))
		}
		erased, err := erasedOf(records)
		faults = append(faults, err)
		for _, a := range records {
			if a.PayloadHash == "" {
				continue
			}
			p, err := r.AuditPayload(id, a.Seq)
			if errors.Is(err, store.ErrNotFound) && erased[a.Seq] {
				continue
			}
			if err != nil {
				return err
			}
			if p.Hash() != a.PayloadHash || len(p.Salt) != 16 {
				faults = append(faults, fmt.Errorf("chain %s, record %d: its payload is another", id, a.Seq))
			}
		}
	}
	return errors.Join(faults...)
}

// erasedOf are the records whose payloads a record of their chain says were erased.
func erasedOf(records []approvers.AuditRecord) (map[uint64]bool, error) {
	erased := map[uint64]bool{}
	for _, a := range records {
		if a.Kind != approvers.AuditErased {
			continue
		}
		e, err := approvers.ErasureOf(a)
		if err != nil {
			return erased, err
		}
		for _, seq := range e.Seqs {
			erased[seq] = true
		}
	}
	return erased, nil
}

// firstRecord is what a chain begins with that is about one thing.
func firstRecord(chain string) approvers.AuditKind {
	switch {
	case strings.HasPrefix(chain, "absence:"):
		return approvers.AuditAway
	case strings.HasPrefix(chain, "grant:"):
		return approvers.AuditGranted
	}
	return approvers.AuditProposed
}
