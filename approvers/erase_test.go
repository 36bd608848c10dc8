package approvers_test

import (
	"testing"

	"countersign/approvers"
)

// Erase removes texts that Slack or a tool's source wrote.
func TestEraseTextsOfOthers(t *testing.T) {
	r := approvers.Request{Unreached: &approvers.Unreached{Cause: "invalid_blocks: Roswell", Before: true}}
	if e := r.Erase(); e.Unreached.Cause != "" || !e.Unreached.Before || r.Unreached.Cause == "" {
		t.Errorf("left %+v of %+v", e.Unreached, r.Unreached)
	}
	if q := (approvers.Elicitation{ID: "elicit_1", From: "Roswell"}).Erase(); q.From != "" || q.ID == "" {
		t.Errorf("left %+v", q)
	}
}
