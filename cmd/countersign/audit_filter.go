package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
)

// filterFlags are the flags of a filter before parsing.
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

// read parses the flags. Durations such as "24h" count back from now.
func (f filterFlags) read(now time.Time) (audit.Filter, error) {
	out := audit.Filter{Chain: f.request, Tool: f.tool, Actor: f.actor, Kinds: f.kinds}
	for _, k := range f.kinds {
		if !slices.Contains(approvers.AuditKinds, approvers.AuditKind(k)) {
			return out, cli.Misused("--kind %s: there is no such kind of record; the kinds are %s", k, joined(approvers.AuditKinds))
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
		return out, cli.Misused("--since %s is not before --until %s, so nothing can be found", f.since, f.until)
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

// timeFlag parses a time: a day, a point in time, or a duration before now.
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
	return time.Time{}, cli.Misused("--%s %s: write a day (2026-11-01), a moment (2026-11-01T08:00:00Z), or how long ago (24h)", name, text)
}
