package home

import (
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// The list of what waits for a person names the client that asks. A client is not mentioned as if it were a person.
func TestDecideLineNamesTheClient(t *testing.T) {
	r := approvers.Request{Tool: "deploy", Facts: approvers.AskFacts{Asker: "caller:ci", AskerName: "CI bot", Caller: &approvers.Caller{Name: "ci", Title: "CI bot"}}}
	line := (&WaitingList{Policy: &approvers.Policy{}}).DecideLine(view.PendingItem{Request: &r}, store.Conversation{}, nil).Mrkdwn()
	if !strings.Contains(line, "asked for by CI bot") || strings.Contains(line, "<@") {
		t.Errorf("the line is %s", line)
	}
}
