package approvers_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

// TestEveryEndTeaches checks the results of requests that end without a run. A result must tell the model what
// happened and what to do next.
func TestEveryEndTeaches(t *testing.T) {
	p := example()
	for _, state := range []approvers.State{
		approvers.Rejected, approvers.Expired, approvers.Withdrawn, approvers.Revoked, approvers.Voided, approvers.Refused,
	} {
		r := open(t, p, "issue_refund", small)
		r.State, r.ClosedBy, r.ClosedName, r.ClosedRole, r.Reason = state, onLead.ID, "Nora Quill", "team-lead", "above the limit"
		var got approvers.Result
		text := r.ClosedResult(p).Text()
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if string(got.Status) != string(state) || got.Tool != "issue_refund" || got.Reason != "above the limit" || got.DecidedBy != "Team Lead" || got.Guidance == "" {
			t.Errorf("%s: %s", state, text)
		}
		if strings.Contains(text, "Nora") || strings.Contains(text, string(onLead.ID)) {
			t.Errorf("%s: the model is told which person decided: %s", state, text)
		}
	}
}

func TestRunResult(t *testing.T) {
	p := example()
	done := func(state approvers.ExecutionState, result string) approvers.Execution {
		return approvers.Execution{ID: "exec_1", Tool: "issue_refund", State: state, Result: result, Args: json.RawMessage(`{"amount":20}`)}
	}
	edited := &approvers.Request{Edits: []approvers.Edit{
		{Role: "finance-director", By: onFin1.ID, Name: "Fin", After: json.RawMessage(`{"amount":30}`), Reason: "no shipping"},
		{Role: "team-lead", By: onLead.ID, Name: "Nora", After: json.RawMessage(`{"amount":20}`)},
	}}
	tests := []struct {
		name    string
		e       approvers.Execution
		r       *approvers.Request
		outcome approvers.Outcome
		want    []string
	}{
		{"the tool's own words", done(approvers.ExecutionSucceeded, "refunded"), nil, approvers.OutcomeExecuted, []string{"refunded"}},
		{"asked, not edited", done(approvers.ExecutionSucceeded, `{"ok":true}`), &approvers.Request{}, approvers.OutcomeExecuted, []string{`{"ok":true}`}},
		{"edited, JSON", done(approvers.ExecutionSucceeded, `{"ok":true}`), edited, approvers.OutcomeExecuted,
			[]string{`"modified":{"by":"Finance Director and Team Lead","args":{"amount":20},"why":"no shipping"}`, `"result":{"ok":true}`}},
		{"edited, plain words", done(approvers.ExecutionSucceeded, `refunded "20"`), edited, approvers.OutcomeExecuted, []string{`"result":"refunded \"20\""`}},
		{"edited, no words", done(approvers.ExecutionSucceeded, ""), edited, approvers.OutcomeExecuted, []string{`"result":""`}},
		{"the tool said no", done(approvers.ExecutionFailed, "card expired"), edited, approvers.OutcomeError, []string{`"status":"error"`, "card expired", `"args":{"amount":20}`}},
		{"a person's report on an edited call", reportedBy(done(approvers.ExecutionSucceeded, "seen in the bank")), edited, approvers.OutcomeExecuted, []string{"seen in the bank", `"args":{"amount":20}`}},
		{"unknown, of an edited call", done(approvers.ExecutionUnknown, ""), edited, approvers.OutcomeUnknown, []string{`"status":"unknown"`, `"args":{"amount":20}`}},
		{"unknown", done(approvers.ExecutionUnknown, ""), nil, approvers.OutcomeUnknown, []string{`"status":"unknown"`, "Do not call it again"}},
	}
	for _, tt := range tests {
		outcome, text := approvers.RunResult(p, tt.e, tt.r)
		if outcome != tt.outcome {
			t.Errorf("%s: %s; want %s", tt.name, outcome, tt.outcome)
		}
		for _, part := range tt.want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %s lacks %s", tt.name, text, part)
			}
		}
	}
}

func reportedBy(e approvers.Execution) approvers.Execution {
	e.ReportedBy = onLead.ID
	return e
}

// If a call was edited and then rejected or expired, the model is told about the edit. Without this information, the
// model would relate the reason to its own arguments.
func TestAnEndAfterAnEditTellsOfTheEdit(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", large)
	r, _, denied := r.Modify(deciding(p, start), actionBy(r, onLead, start), edited(p, r, "exec_2", `{"amount":901}`))
	if denied != nil || r.State != approvers.Pending {
		t.Fatalf("%s, %v", r.State, denied)
	}
	rejected, _, denied := r.Reject(deciding(p, start), actionBy(r, onFin1, start))
	if denied != nil {
		t.Fatal(denied)
	}
	expired, _, _ := r.Expire(deciding(p, start.Add(time.Hour)))
	for _, r := range []approvers.Request{rejected, expired} {
		text := r.ClosedResult(p).Text()
		for _, part := range []string{`"modified":{"by":"Team Lead","args":{"amount":901},"why":"because"}`, "this is about the changed call"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %s lacks %s", r.State, text, part)
			}
		}
	}
	if text := open(t, p, "issue_refund", small).ClosedResult(p).Text(); strings.Contains(text, "modified") {
		t.Errorf("told of an edit that did not happen: %s", text)
	}
}

func TestRisk(t *testing.T) {
	order := []string{"low", "medium", "high", "critical"}
	var last approvers.Risk
	for _, name := range order {
		r, err := approvers.ParseRisk(name)
		if err != nil || r <= last || r.String() != name || !r.Valid() {
			t.Errorf("%s: %v after %v, %v", name, r, last, err)
		}
		last = r
		text, err := r.MarshalText()
		var back approvers.Risk
		if err != nil || back.UnmarshalText(text) != nil || back != r {
			t.Errorf("%s comes back as %v, %v", name, back, err)
		}
	}
	for _, name := range []string{"", "High", "severe", "5"} {
		if _, err := approvers.ParseRisk(name); err == nil {
			t.Errorf("%q is taken as a risk level", name)
		}
	}
	if _, err := approvers.Risk(9).MarshalText(); err == nil || approvers.Risk(9).Valid() {
		t.Error("a risk out of range is written")
	}
}

func TestLimit(t *testing.T) {
	l := approvers.Limit{Count: 5, Per: time.Hour}
	if l.Reached(4) || !l.Reached(5) || (approvers.Limit{}).Reached(1000) {
		t.Errorf("4 of 5: %t, 5 of 5: %t, no limit: %t", l.Reached(4), l.Reached(5), (approvers.Limit{}).Reached(1000))
	}
	for want, l := range map[string]approvers.Limit{
		"5/h": l, "1/min": {Count: 1, Per: time.Minute}, "2/d": {Count: 2, Per: 24 * time.Hour}, "3/1h30m0s": {Count: 3, Per: 90 * time.Minute},
	} {
		if l.String() != want {
			t.Errorf("%s; want %s", l, want)
		}
	}
}
