// Package invariants checks conditions that a store must meet after each transaction. For example, all pending work has
// a timer, and work that has ended has no timer. Every audit chain is valid. Every pending request has a card or waits
// in a card queue. The package is only for tests, because it reads the whole store.
package invariants

import (
	"errors"
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// most is the maximum number of records of a kind that are read.
const most = 10_000

// Faults checks all invariants. The error lists the violated invariants. turns are the turns whose calls and messages
// are checked.
func Faults(r store.Reader, turns []string) error {
	faults := []error{chains(r), timersNameSomething(r), requestsHaveTimers(r), CardQueues(r), grantsAddUp(r), maskedValuesWereSeen(r)}
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
			faults = append(faults, fmt.Errorf("chain %s begins with a record of the kind %s", id, records[0].Kind))
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
				faults = append(faults, fmt.Errorf("chain %s, record %d: its payload does not match", id, a.Seq))
			}
		}
	}
	return errors.Join(faults...)
}

// erasedOf returns which records of an audit chain have erased payloads, according to the records about erasures in the
// chain.
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

// firstRecord returns the kind that the first record of an audit chain must have. The installation's audit chain may
// begin with any kind.
func firstRecord(chain string) approvers.AuditKind {
	switch {
	case strings.HasPrefix(chain, approvers.AbsenceChain("")):
		return approvers.AuditAway
	case strings.HasPrefix(chain, approvers.GrantChain("")):
		return approvers.AuditGranted
	}
	return approvers.AuditProposed
}
