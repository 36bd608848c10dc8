package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/slackapi"
	"countersign/store"
)

// withinLimits checks a message against Slack's size limits, as the size guard does before sending.
func withinLimits(t *testing.T, m block.Message) {
	t.Helper()
	if m.Text == "" || len(m.Blocks) == 0 {
		t.Error("the message has no text, or no blocks")
	}
	fits(t, map[string]any{"text": m.Text, "blocks": m.Blocks})
}

func viewWithin(t *testing.T, v any) {
	t.Helper()
	fits(t, map[string]any{"view": v})
}

func fits(t *testing.T, call map[string]any) {
	t.Helper()
	raw, err := json.Marshal(call)
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(raw) {
		t.Error("not valid UTF-8")
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	for _, m := range slackapi.CheckSizes(fields) {
		t.Errorf("Slack would refuse this (%s): %s %s", m.Code, m.At, m.Reason)
	}
}

// largestPause is a pause with the longest texts.
var largestPause = settings.Pause{On: true, By: "operator:" + approvers.PersonID(strings.Repeat("𝕏", 200)), At: bottest.Noon, Reason: strings.Repeat("𝕏", 5000), Round: 1}

// Cards with everything at maximum size, in four-byte characters, are within Slack's limits.
func TestLargestCard(t *testing.T) {
	big := func(n int) string { return strings.Repeat("𝕏", n) }
	r := bottest.Request(`{"body":"` + big(argument.MaxCardArgs-20) + `"}`)
	r.Preview, r.Facts.Quote, r.PreviewFault, r.Tool = big(9000), big(9000), big(5000), big(500)
	r.Facts.AskerName, r.Plan.Known = big(500), false
	r.Facts.MessageEdit = &approvers.MessageEdit{At: bottest.Noon, Text: big(9000)}
	for range 30 {
		r.Plan.Why = append(r.Plan.Why, big(200))
		r.Plan.Stages = append(r.Plan.Stages, approvers.Stage{Approver: big(100), Quorum: 9})
	}
	for i := range 40 {
		r = bottest.ApprovedBy(r, fmt.Sprintf("U%04d", i), big(100), big(100), 0)
	}
	r.Plan.Stages[0].Or, r.Plan.Stages[0].Group, r.Plan.Stages[0].Rejects = []string{big(100), big(101), big(102), big(103)}, big(100), 9
	for i := range 20 {
		r.Invited = append(r.Invited, approvers.Invite{Who: "operator:" + approvers.PersonID(big(100)), By: "operator:x", ByName: big(200), Role: big(200)})
		r.Decisions = append(r.Decisions, approvers.Decision{Kind: approvers.Reject, By: "operator:" + approvers.PersonID(big(100)), Role: big(100), Reason: big(3000), Digest: r.Digest, Fallen: i > 3})
	}
	for i := range approvers.MaxRemarks {
		m := approvers.Remark{Kind: approvers.Question, By: "operator:x", Name: big(200), Role: big(200), Text: big(3000)}
		if i%2 == 1 {
			m.Kind, m.To = approvers.Answer, i-1
		}
		r.Remarks = append(r.Remarks, m)
	}
	r.Edits = []approvers.Edit{{By: "operator:" + approvers.PersonID(big(200)), Name: big(200), Role: big(200), At: bottest.Noon, Reason: big(3000), Before: json.RawMessage(`{"body":"` + big(argument.MaxDiff/2-100) + `"}`), After: r.Args}}
	for _, kind := range []store.OutboxKind{store.OutboxCard, store.OutboxEscalation} {
		s := bottest.ViewModel(r)
		s.Message.Kind, s.Conversation.Name, s.Pause = kind, big(300), largestPause
		if kind == store.OutboxEscalation {
			s.Message.To, s.Request.Invited[0].Who = "user:U0004", kenji
		}
		s.Request.Joined = []string{big(100), big(100)}
		drawn(t, s)
		over := bottest.Closed(r, approvers.Consumed, "", "", big(5000))
		over.ClosedBy, over.ClosedName, over.ClosedRole = "operator:x", big(200), big(200)
		s.Request = &over
		s.Execution.State, s.Execution.Result = approvers.ExecutionSucceeded, big(90000)
		drawn(t, s)
	}
}

func TestLargestStep(t *testing.T) {
	big := func(n int) string { return strings.Repeat("界", n) }
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	s.Message.Kind = store.OutboxStep
	s.Text, s.Pause = big(50000), largestPause
	for i := range 128 {
		r := bottest.Request(bottest.RefundArgs)
		r.ID = fmt.Sprint("req_", i)
		r.Plan.Stages = []approvers.Stage{{Approver: big(200), Quorum: 3}, {Approver: "team-lead", Quorum: 1}}
		r.Joined = []string{big(200), big(200), big(200)}
		s.Calls = append(s.Calls, view.Call{Call: store.Call{Tool: big(200), Preview: big(5000), Args: `{"x":"` + big(500) + `"}`}, Request: &r})
	}
	drawn(t, s)
	again := s
	again.Message.Kind = store.OutboxMessageEdit
	again.MessageEdit = &store.Message{AuthorName: big(500), MessageEdit: &approvers.MessageEdit{At: bottest.Noon, Text: big(9000)}}
	drawn(t, again)
	for i := range s.Calls {
		s.Calls[i].Call.Outcome, s.Calls[i].Call.Result = approvers.OutcomeError, big(20000)
	}
	drawn(t, s)
}

// A very long answer begins in one message. The whole answer is in a file, or in as many messages as it needs.
func TestLongAnswersAreWhole(t *testing.T) {
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	s.Message.Kind = store.OutboxAnswer
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "Paragraph %d %s\n\n- item %d\n\n", i, strings.Repeat("words ", 30), i)
	}
	fmt.Fprintf(&b, "```\n%s\n```\n", strings.Repeat("code line\n", 3000))
	s.Text = b.String()
	begins := drawn(t, s)
	if len(begins.Messages) != 1 || !strings.Contains(string(encode(t, begins)), "The full answer follows in this thread.") {
		t.Fatalf("%d messages; %s", len(begins.Messages), encode(t, begins))
	}
	s.Message.Kind = store.OutboxFile // as posted if Slack accepts no files
	d := drawn(t, s)
	if len(d.Messages) < 3 {
		t.Fatalf("%d messages", len(d.Messages))
	}
	all := string(encode(t, begins)) + string(encode(t, d))
	for i := range 400 {
		for _, want := range []string{fmt.Sprintf("Paragraph %d ", i), fmt.Sprintf(`"item %d"`, i)} {
			if !strings.Contains(all, want) {
				t.Fatalf("%q is lost", want)
			}
		}
	}
	if n := strings.Count(all, "code line"); n < 3000 {
		t.Errorf("%d of 3000 lines of code are there", n)
	}
}

// Reminders at maximum size are readable.
func TestLargestReminder(t *testing.T) {
	big := func(n int) string { return strings.Repeat("𝕏", n) }
	r := bottest.Request(bottest.RefundArgs)
	r.Preview, r.Facts.AskerName, r.Facts.Asker = big(9000), big(500), "operator:x"
	r.Plan.Stages[0].Approver, r.Joined = big(500), []string{big(500), big(500), big(500)}
	s := bottest.ViewModel(r)
	s.Message.Kind, s.Message.Note, s.Message.To = store.OutboxNotice, store.NoteReminder, "user:U0002"
	drawn(t, s)
	over := bottest.Closed(r, approvers.Rejected, "", "", big(5000))
	over.ClosedBy, over.ClosedName, over.ClosedRole = "operator:x", big(200), big(200)
	s.Request = &over
	drawn(t, s)
}

func TestLargestStandIn(t *testing.T) {
	big := func(n int) string { return strings.Repeat("𝕏", n) }
	a := approvers.Absence{Who: "operator:x", Version: 1, Name: big(500), From: bottest.Noon, Until: bottest.Noon.Add(time.Hour), Delegate: "T0001/U0002"}
	for range 100 {
		c := approvers.Cover{Role: big(500)}
		for range 100 {
			c.Lacks = append(c.Lacks, big(200))
		}
		a.Covers = append(a.Covers, c)
	}
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	s.Message = store.OutboxMessage{ID: "s_1", Kind: store.OutboxStandIn, Ref: "operator:x", Step: 1, To: "user:U0002"}
	s.Request, s.Execution, s.Absence = nil, nil, &a
	drawn(t, s)
}
