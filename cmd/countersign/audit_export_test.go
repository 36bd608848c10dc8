package main

import (
	"encoding/csv"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
)

// The filters pick what they say, and each combination of them what all of them pick.
func TestAuditFilter(t *testing.T) {
	db := played(t, builtIn)
	all, _, err := audit.Filter{}.Records(t.Context(), db)
	if err != nil || len(all) < 20 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	refund := all[slices.IndexFunc(all, func(r approvers.AuditRecord) bool { return r.Facts["tool"] == "issue_refund" })]
	middle := all[len(all)/2].At
	tests := map[string]struct {
		filter audit.Filter
		want   func(approvers.AuditRecord) bool
	}{
		"request": {audit.Filter{Chain: refund.Chain}, func(r approvers.AuditRecord) bool { return r.Chain == refund.Chain }},
		"tool":    {audit.Filter{Tool: "issue_refund"}, func(r approvers.AuditRecord) bool { return r.Chain == refund.Chain }},
		"actor":   {audit.Filter{Actor: "U0002"}, func(r approvers.AuditRecord) bool { return r.Actor == "T0001/U0002" }},
		"whole":   {audit.Filter{Actor: "T0001/U0003"}, func(r approvers.AuditRecord) bool { return r.Actor == "T0001/U0003" }},
		"bot":     {audit.Filter{Actor: "bot"}, func(r approvers.AuditRecord) bool { return r.Actor == "" }},
		"kind": {audit.Filter{Kinds: []string{"decided", "executing"}}, func(r approvers.AuditRecord) bool {
			return r.Kind == approvers.AuditDecided || r.Kind == approvers.AuditExecuting
		}},
		"since": {audit.Filter{Since: middle}, func(r approvers.AuditRecord) bool { return !r.At.Before(middle) }},
		"until": {audit.Filter{Until: middle}, func(r approvers.AuditRecord) bool { return r.At.Before(middle) }},
		"two":   {audit.Filter{Tool: "issue_refund", Kinds: []string{"decided"}}, func(r approvers.AuditRecord) bool { return r.Chain == refund.Chain && r.Kind == approvers.AuditDecided }},
	}
	for name, tt := range tests {
		got, _, err := tt.filter.Records(t.Context(), db)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := slices.DeleteFunc(slices.Clone(all), func(r approvers.AuditRecord) bool { return !tt.want(r) })
		if len(want) == 0 || len(want) == len(all) || !slices.EqualFunc(got, want, func(a, b approvers.AuditRecord) bool { return a.Hash == b.Hash }) {
			t.Errorf("%s: %d records of %d, want %d", name, len(got), len(all), len(want))
		}
	}
}

func TestFilterFlags(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	got, err := filterFlags{since: "24h", until: "2026-11-21T11:00:00Z", kinds: []string{"decided"}}.read(now)
	if err != nil || !got.Since.Equal(now.Add(-24*time.Hour)) || !got.Until.Equal(now.Add(-time.Hour)) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, f := range map[string]filterFlags{
		"kind": {kinds: []string{"decide"}}, "since": {since: "yesterday"}, "a negative time": {until: "-3h"}, "nothing between": {since: "1h", until: "2h"},
	} {
		if _, err := f.read(now); cli.Code(err) != cli.ExitUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each format has every record, and gives back what went in; texts come only where they are asked for.
func TestExport(t *testing.T) {
	db := played(t, builtIn)
	all, _, err := audit.Filter{}.Records(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	export := func(format string, payloads bool) string {
		var b strings.Builder
		if err := audit.Export(t.Context(), &b, db, audit.ExportOptions{Format: format, Payloads: payloads}); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		return b.String()
	}
	for _, format := range audit.ExportFormats() {
		if bare := export(format, false); strings.Contains(bare, "arrived broken") || strings.Contains(bare, "49.99") {
			t.Errorf("%s shows what people wrote, unasked", format)
		}
		if full := export(format, true); !strings.Contains(full, "49.99") {
			t.Errorf("%s lacks the texts that were asked for", format)
		}
	}
	lines := strings.Split(strings.TrimSpace(export("jsonl", true)), "\n")
	var read []approvers.AuditRecord
	for _, line := range lines {
		var x struct {
			approvers.AuditRecord
			Payload string `json:"payload"`
			Salt    []byte `json:"payload_salt"`
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if p := (approvers.AuditPayload{Salt: x.Salt, Body: []byte(x.Payload)}); x.PayloadHash != "" && p.Hash() != x.PayloadHash {
			t.Errorf("record %d of %s: its payload does not match its hash any more", x.Seq, x.Chain)
		}
		read = append(read, x.AuditRecord)
	}
	byChain := map[string][]approvers.AuditRecord{}
	for _, r := range read {
		byChain[r.Chain] = append(byChain[r.Chain], r)
	}
	for chain, records := range byChain {
		if err := approvers.VerifyChain(records); err != nil {
			t.Errorf("the exported chain %s does not verify: %v", chain, err)
		}
	}
	table := export("csv", true)
	if head, _, _ := strings.Cut(table, "\n"); !strings.HasSuffix(head, "\r") {
		t.Errorf("RFC 4180 ends lines with CRLF; this is %q", head)
	}
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil || len(rows) != len(all)+1 {
		t.Errorf("csv: %d rows for %d records, %v", len(rows), len(all), err)
	}
	cef := strings.Split(strings.TrimSpace(export("cef", true)), "\n")
	shape := regexp.MustCompile(`^CEF:0\|Countersign\|countersign\|1\|[a-z]+\|[a-z]+\|\d+\|rt=\d+ externalId=\S+ `)
	for _, line := range cef {
		if !shape.MatchString(line) {
			t.Errorf("not CEF: %.200s", line)
		}
	}
	if len(lines) != len(all) || len(cef) != len(all) {
		t.Errorf("%d lines of JSON and %d of CEF for %d records", len(lines), len(cef), len(all))
	}
}
