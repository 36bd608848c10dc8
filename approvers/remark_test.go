package approvers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"countersign/approvers"
)

// says returns a person's action with a text.
func says(r approvers.Request, who approvers.Identity, text string) approvers.Action {
	m := actionBy(r, who, start)
	m.Reason = text
	return m
}

func TestQuestionAndAnswer(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", small)
	asked, _, denied := r.Say(deciding(p, start.Add(time.Minute)), says(r, onLead, "why so much?"), approvers.Question)
	if denied != nil || len(r.Remarks) != 0 {
		t.Fatalf("%v; the request that it came from has %d remarks", denied, len(r.Remarks))
	}
	want := approvers.Remark{Kind: approvers.Question, By: onLead.ID, Name: onLead.Name, Role: "team-lead", Text: "why so much?", At: start.Add(time.Minute)}
	if len(asked.Remarks) != 1 || asked.Remarks[0] != want || asked.Answered(0) {
		t.Fatalf("%+v", asked.Remarks)
	}
	if !asked.ExpiresAt.Equal(r.ExpiresAt) || !asked.EscalateAt.Equal(r.EscalateAt) || asked.State != approvers.Pending || len(asked.Decisions) != 0 {
		t.Error("a question stopped a clock, or decided something")
	}
	answered, _, denied := asked.Reply(deciding(p, start.Add(2*time.Minute)), says(asked, asker, "shipping is in it"), 0)
	if denied != nil || !answered.Answered(0) || answered.Remarks[1].Kind != approvers.Answer || answered.Remarks[1].Role != "" {
		t.Fatalf("%+v, %v", answered.Remarks, denied)
	}
	_, _, denied = answered.Reply(deciding(p, start), says(answered, asker, "and more"), 0)
	wantDenied(t, denied, approvers.DeniedNothing)
}

func TestWhoMaySay(t *testing.T) {
	p := example()
	r := open(t, p, "issue_refund", large)
	asked, _, denied := r.Say(deciding(p, start), says(r, onLead, "why?"), approvers.Question)
	if denied != nil {
		t.Fatal(denied)
	}
	second := mustApprove(t, p, asked, onLead, start) // the Team Lead has agreed; the directors decide now
	late := says(asked, onLead, "still there?")
	late.At = r.ExpiresAt.Add(time.Microsecond)
	gone := asker
	gone.Deleted = true
	deactivated := onLead
	deactivated.Deleted = true
	over, _, _ := asked.Withdraw(deciding(p, start), asker, false, "")
	tests := []struct {
		name string
		do   func() *approvers.Denied
		code approvers.Code // empty: the person may
	}{
		{"an approver comments", say(p, asked, says(asked, onLead, "looks fine"), approvers.Comment), ""},
		{"an approver of an earlier stage comments", say(p, second, says(second, onLead, "I know the customer"), approvers.Comment), ""},
		{"and asks", say(p, second, says(second, onLead, "one more thing"), approvers.Question), ""},
		{"not once they are deactivated", say(p, second, says(second, deactivated, "one more thing"), approvers.Question), approvers.DeniedDeactivated},
		{"a later stage's people wait their turn", say(p, asked, says(asked, onFin1, "hm"), approvers.Comment), approvers.DeniedNotMember},
		{"a requester does not comment", say(p, asked, says(asked, asker, "please!"), approvers.Comment), approvers.DeniedSelf},
		{"nobody else", say(p, asked, says(asked, bystander, "hello"), approvers.Question), approvers.DeniedNotMember},
		{"without words", say(p, asked, says(asked, onLead, ""), approvers.Comment), approvers.DeniedNoReason},
		{"an answer is no remark of an approver's", say(p, asked, says(asked, onLead, "because"), approvers.Answer), approvers.DeniedNothing},
		{"after the deadline", say(p, asked, late, approvers.Question), approvers.DeniedLate},
		{"once it is over", say(p, over, says(over, onLead, "why?"), approvers.Question), approvers.DeniedResolved},
		{"a requester answers", reply(p, asked, says(asked, asker, "because"), 0), ""},
		{"at the second stage too", reply(p, second, says(second, asker, "because"), 0), ""},
		{"somebody else does not", reply(p, asked, says(asked, onFin1, "because"), 0), approvers.DeniedNotRequester},
		{"nor somebody whom Slack does not know", reply(p, asked, says(asked, approvers.Identity{}, "because"), 0), approvers.DeniedUnidentified},
		{"nor a deactivated requester", reply(p, asked, says(asked, gone, "because"), 0), approvers.DeniedUnidentified},
		{"without words", reply(p, asked, says(asked, asker, ""), 0), approvers.DeniedNoReason},
		{"no such question", reply(p, asked, says(asked, asker, "because"), 1), approvers.DeniedNothing},
		{"nor before the first", reply(p, asked, says(asked, asker, "because"), -1), approvers.DeniedNothing},
		{"once it is over", reply(p, over, says(over, asker, "because"), 0), approvers.DeniedResolved},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			denied := tt.do()
			if tt.code == "" && denied != nil {
				t.Fatal(denied)
			}
			if tt.code != "" {
				wantDenied(t, denied, tt.code)
			}
		})
	}
}

func say(p *approvers.Policy, r approvers.Request, m approvers.Action, kind approvers.RemarkKind) func() *approvers.Denied {
	return func() *approvers.Denied { _, _, d := r.Say(deciding(p, start), m, kind); return d }
}

func reply(p *approvers.Policy, r approvers.Request, m approvers.Action, question int) func() *approvers.Denied {
	return func() *approvers.Denied { _, _, d := r.Reply(deciding(p, start), m, question); return d }
}

// A card holds a limited number of remarks, but every question on the card can be answered.
func TestTheLastPlacesAreKeptForAnswers(t *testing.T) {
	p := example()
	for comments := range approvers.MaxRemarks + 1 {
		t.Run(fmt.Sprint(comments), func(t *testing.T) {
			r := open(t, p, "issue_refund", small)
			var denied *approvers.Denied
			for i := range comments {
				if r, _, denied = r.Say(deciding(p, start), says(r, onLead, fmt.Sprint("comment ", i)), approvers.Comment); denied != nil {
					t.Fatal(denied)
				}
			}
			for denied == nil { // as many questions as fit
				r, _, denied = r.Say(deciding(p, start), says(r, onLead, "and?"), approvers.Question)
			}
			wantDenied(t, denied, approvers.DeniedFull)
			for i := range r.Remarks {
				if r.Remarks[i].Kind != approvers.Question {
					continue
				}
				if r, _, denied = r.Reply(deciding(p, start), says(r, asker, "so"), i); denied != nil {
					t.Fatalf("question %d can't be answered: %v", i, denied)
				}
			}
			if len(r.Remarks) > approvers.MaxRemarks || len(r.Remarks) < approvers.MaxRemarks-1 {
				t.Errorf("%d remarks; at most %d fit", len(r.Remarks), approvers.MaxRemarks)
			}
			if slices.ContainsFunc(r.Remarks, func(m approvers.Remark) bool { return m.Text == "" }) {
				t.Error("a remark without a text was accepted")
			}
		})
	}
}
