package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Filter selects records of the history. An empty field does not restrict the selection.
type Filter struct {
	Chain string    // a request's id, or the name of another chain
	Tool  string    // records of chains about this tool
	Actor string    // who acted, or asked for the call: U0002, T0001/U0002, operator:LOGIN, caller:NAME, or bot
	Kinds []string  // decided, executing, …
	Since time.Time // records from this time on
	Until time.Time // records before this time
}

// takes reports whether the filter selects a record. The caller checks the record's chain.
func (f Filter) takes(r approvers.AuditRecord) bool {
	switch {
	case len(f.Kinds) > 0 && !slices.Contains(f.Kinds, string(r.Kind)),
		!f.Since.IsZero() && r.At.Before(f.Since),
		!f.Until.IsZero() && !r.At.Before(f.Until):
		return false
	case f.Actor == "bot":
		return r.Actor == ""
	}
	return f.Actor == "" || f.isActor(r.Actor) || f.isActor(approvers.PersonID(r.Facts["asker"])) ||
		slices.ContainsFunc(strings.Split(r.Facts["requesters"], ","), func(who string) bool { return f.isActor(approvers.PersonID(who)) })
}

func (f Filter) isActor(who approvers.PersonID) bool {
	return f.Actor == string(who) || f.Actor == who.User()
}

// The function reports whether a chain is about a tool.
func about(tool string, chain []approvers.AuditRecord) bool {
	return slices.ContainsFunc(chain, func(r approvers.AuditRecord) bool { return r.Facts["tool"] == tool })
}

// Records reads the selected records in order of time. Records leaves out damaged records, because the filter can't
// read them.
func (f Filter) Records(ctx context.Context, s store.Store) (all []approvers.AuditRecord, left Unread, err error) {
	take := func(chain []approvers.AuditRecord) error {
		if f.Tool != "" && !about(f.Tool, chain) {
			return nil
		}
		for _, r := range chain {
			if f.takes(r) {
				all = append(all, r)
			}
		}
		return nil
	}
	if f.Chain == "" {
		if err = left.Take(EachChain(ctx, s, take)); err != nil {
			err = fmt.Errorf("the history can't be read: %w", err)
		}
	} else {
		var chain []approvers.AuditRecord
		if chain, left, err = oneChain(ctx, s, f.Chain); err == nil {
			err = take(chain)
		}
	}
	slices.SortStableFunc(all, func(a, b approvers.AuditRecord) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Chain, b.Chain), cmp.Compare(a.Seq, b.Seq))
	})
	return all, left, err
}

// ErrUnknownChain means that the history has no chain with the given name.
var ErrUnknownChain = errors.New("the history has no request")

// oneChain reads a chain without its damaged records. If there is no such chain, oneChain returns ErrUnknownChain.
func oneChain(ctx context.Context, s store.Store, id string) (chain []approvers.AuditRecord, left Unread, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		left = Unread{}
		chain, err = r.Audit(id)
		return left.Add(err)
	})
	switch {
	case err != nil:
		return nil, left, fmt.Errorf("the history can't be read: %w", err)
	case len(chain) == 0 && len(left.Rows) == 0:
		return nil, left, fmt.Errorf("%w %s; \"countersign audit list\" shows what it has", ErrUnknownChain, id)
	}
	return chain, left, nil
}

// payloadOf reads the payload of a record. If the record has no payload, payloadOf returns false.
func payloadOf(r store.Reader, a approvers.AuditRecord) (approvers.AuditPayload, bool, error) {
	p, err := r.AuditPayload(a.Chain, a.Seq)
	if errors.Is(err, store.ErrNotFound) {
		return p, false, nil
	}
	return p, err == nil, err
}
