package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"countersign/approvers"
	"countersign/store"
)

// auditFilter picks records of the history. What is left empty picks all.
type auditFilter struct {
	Chain string    // a request, or what else a chain is named after
	Tool  string    // of chains about this tool
	Actor string    // whoever did it: U0002, T0001/U0002, operator:LOGIN, or bot
	Kinds []string  // decided, executing, …
	Since time.Time // at or after it
	Until time.Time // before it
}

// filterFlags are the flags that say what is wanted, before they are read.
type filterFlags struct {
	request, tool, actor, since, until string
	kinds                              []string
}

func (f *filterFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.request, "request", "", "only this request's records (or this execution's, where nobody was asked)")
	flags.StringVar(&f.tool, "tool", "", "only what is about this tool")
	flags.StringVar(&f.actor, "actor", "", "only what this person did: a Slack user id, operator:LOGIN, or bot")
	flags.StringSliceVar(&f.kinds, "kind", nil, "only records of these kinds, such as decided,executing; docs/audit.md lists them")
	flags.StringVar(&f.since, "since", "", "only from this time on: 2026-11-01, 2026-11-01T08:00:00Z, or 24h for the last 24 hours")
	flags.StringVar(&f.until, "until", "", "only before this time")
}

// read checks the flags. now is what "24h" counts from.
func (f filterFlags) read(now time.Time) (auditFilter, error) {
	out := auditFilter{Chain: f.request, Tool: f.tool, Actor: f.actor, Kinds: f.kinds}
	for _, k := range f.kinds {
		if !slices.Contains(approvers.AuditKinds, approvers.AuditKind(k)) {
			return out, misused("--kind %s: there is no such kind of record; the kinds are %s", k, joined(approvers.AuditKinds))
		}
	}
	var err error
	if out.Since, err = timeFlag("since", f.since, now); err != nil {
		return out, err
	}
	if out.Until, err = timeFlag("until", f.until, now); err != nil {
		return out, err
	}
	if !out.Until.IsZero() && !out.Since.Before(out.Until) {
		return out, misused("--since %s is not before --until %s, so nothing can be found", f.since, f.until)
	}
	return out, nil
}

func joined(kinds []approvers.AuditKind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, ", ")
}

// timeFlag reads a time: a day, a moment, or how long ago.
func timeFlag(name, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, misused("--%s %s: write a day (2026-11-01), a moment (2026-11-01T08:00:00Z), or how long ago (24h)", name, text)
}

// takes reports whether a record is wanted, its chain being.
func (f auditFilter) takes(r approvers.AuditRecord) bool {
	switch {
	case len(f.Kinds) > 0 && !slices.Contains(f.Kinds, string(r.Kind)),
		!f.Since.IsZero() && r.At.Before(f.Since),
		!f.Until.IsZero() && !r.At.Before(f.Until):
		return false
	case f.Actor == "bot":
		return r.Actor == ""
	}
	return f.Actor == "" || f.Actor == string(r.Actor) || f.Actor == r.Actor.User()
}

// about reports whether a chain is about a tool.
func about(tool string, chain []approvers.AuditRecord) bool {
	return slices.ContainsFunc(chain, func(r approvers.AuditRecord) bool { return r.Facts["tool"] == tool })
}

// records reads what the filter picks, in order of time.
func (f auditFilter) records(ctx context.Context, s store.Store) ([]approvers.AuditRecord, error) {
	var all []approvers.AuditRecord
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
	var err error
	if f.Chain == "" {
		if err = eachChain(ctx, s, take); err != nil {
			err = couldNot("the history can't be read: %w", err)
		}
	} else {
		var chain []approvers.AuditRecord
		if chain, err = oneChain(ctx, s, f.Chain); err == nil {
			err = take(chain)
		}
	}
	slices.SortStableFunc(all, func(a, b approvers.AuditRecord) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Chain, b.Chain), cmp.Compare(a.Seq, b.Seq))
	})
	return all, err
}

// oneChain reads a chain that has to be there.
func oneChain(ctx context.Context, s store.Store, id string) (chain []approvers.AuditRecord, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		chain, err = r.Audit(id)
		return err
	})
	switch {
	case err != nil:
		return nil, couldNot("the history can't be read: %w", err)
	case len(chain) == 0:
		return nil, answerNo("the history has no request %s; \"countersign audit list\" shows what it has", id)
	}
	return chain, nil
}

// payloadOf reads what a record commits to; false where it is not there.
func payloadOf(r store.Reader, a approvers.AuditRecord) (approvers.AuditPayload, bool, error) {
	p, err := r.AuditPayload(a.Chain, a.Seq)
	if errors.Is(err, store.ErrNotFound) {
		return p, false, nil
	}
	return p, err == nil, err
}
