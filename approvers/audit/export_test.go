package audit

import (
	"strings"
	"testing"

	"countersign/approvers"
)

// Texts of people can't create a formula, another field or another line in an export.
func TestExportIsInert(t *testing.T) {
	for in, want := range map[string]string{"=cmd()": "'=cmd()", "+1": "'+1", "-1": "'-1", "@x": "'@x", "plain": "plain", "": ""} {
		if got := Inert(in); got != want {
			t.Errorf("Inert(%q) = %q, want %q", in, got, want)
		}
	}
	var b strings.Builder
	x := exported{AuditRecord: approvers.AuditRecord{Chain: "req_1", Seq: 1, Kind: approvers.AuditClosed, Actor: "T1/U=1", Facts: map[string]string{"state": "a|b\\c\nact=approve"}}}
	if err := (cefExport{&b}).write(x); err != nil {
		t.Fatal(err)
	}
	if line := b.String(); strings.Count(line, "\n") != 1 || strings.Contains(line, " act=") || !strings.Contains(line, `suser=T1/U\=1`) || !strings.Contains(line, `outcome=a|b\\c\nact\=approve`) {
		t.Errorf("%q", line)
	}
}
