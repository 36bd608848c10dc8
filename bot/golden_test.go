package bot

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

// golden compares what is sent to Slack with the file of that name.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(bytes.ReplaceAll(bytes.ReplaceAll(bytes.ReplaceAll(got, []byte(`\u003c`), []byte("<")), []byte(`\u003e`), []byte(">")), []byte(`\u0026`), []byte("&")), '\n')
	path := filepath.Join("testdata", name+".json")
	if *updateGolden {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs from what was agreed on (-want +got):\n%s", path, diff)
	}
}

const home = "https://acme.slack.example/"

func drawn(t *testing.T, s desk.Sight) drawing {
	t.Helper()
	d, body, err := draw(scene{Sight: s, url: home, about: about{description: "Pays money back to a customer."}})
	if err != nil {
		t.Fatal(err)
	}
	if len(body) == 0 {
		t.Fatal("nothing to keep")
	}
	for _, m := range d.messages {
		withinLimits(t, m)
	}
	inflated(t, s)
	return d
}

func TestCards(t *testing.T) {
	refund := testRequest(refundArgs)
	staged := testRequest(`{"user_id":"C-77","confirm":true}`)
	staged.Tool, staged.Preview, staged.Plan.Risk, staged.Plan.Routed = "cancel_account", "", approvers.Critical, false
	staged.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	staged.Plan.Why = []string{"cancel_account is critical risk", "the policy names the stages: Team Lead, then 2 × Finance Director"}
	staged = approvedBy(approvedBy(staged, "U0002", "Teo", "team-lead", 0), "U0003", "Ingrid", "finance-director", 1)
	staged.Stage, staged.EscalateAt = 1, time.Time{}

	edited := testRequest(refundArgs)
	edited.Args = json.RawMessage(`{ "order_id": "ORD-123", "amount": 39.99, "currency": "USD", "reason": "arrived broken", "note": "goodwill" }`)
	edited.Edits = []approvers.Edit{{By: approvers.Who("T0001", "U0002"), Name: "Teo", Role: "team-lead", At: noon.Add(time.Minute), Before: json.RawMessage(refundArgs), After: edited.Args, Reason: "shipping is not refunded"}}
	edited = approvedBy(edited, "U0001", "Ada", "support-agent", 0)
	edited.Decisions[0].Fallen, edited.Decisions[0].Digest = true, "of the call before the edit"

	escalated := testRequest(refundArgs)
	escalated.Joined = []string{"finance-director"}
	lead := sightOf(escalated)
	lead.Surface.Kind, lead.Surface.To, lead.Surface.Role = store.SurfaceEscalation, "user:U0003", "finance-director"

	rewritten := testRequest(refundArgs)
	rewritten.Facts.Reworded = &approvers.Reworded{At: noon.Add(5 * time.Minute), Edit: "1772453100.000100", Text: "<!channel> *approved* by <@U0003>: refund ORD-124 \u202e"}
	removed := testRequest(refundArgs)
	removed.Facts.Reworded = &approvers.Reworded{At: noon.Add(5 * time.Minute), Deleted: true}

	hostile := testRequest(`{"to":"ann@p` + "а" + `ypal.example","note":"ok\u202egpj.exe\u200b","body":"Dear Ann,\nthanks\n\"amount\": 1` + strings.Repeat(" ", 60) + `x","<!channel>":"*bold* <@U0003> ` + "`tick`" + `"}`)
	hostile.Preview = "Pay <!channel> *now* \u202eevil"
	hostile.Facts.Quote = "<!here> approve this :tada: `now` \u2066hidden\u2069"
	hostile.PreviewFault = "amount is <missing>"
	hostile.Plan.Known = false

	long := testRequest(`{"order_id":"ORD-123","body":"` + strings.Repeat("日本語のとても長い文章。", 400) + `"}`)

	ran := approvedBy(closed(refund, approvers.Consumed, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)
	done := sightOf(ran)
	done.Execution.State, done.Execution.FinishedAt, done.Execution.Result = approvers.ExecutionSucceeded, noon.Add(5*time.Minute), `{"refund_id":"RF-9","amount":49.99}`
	failed := sightOf(ran)
	failed.Execution.State, failed.Execution.FinishedAt, failed.Execution.Result = approvers.ExecutionFailed, noon.Add(5*time.Minute), "the payment provider said no"
	unrun := sightOf(ran)
	unrun.Execution.State, unrun.Execution.Unrun, unrun.Execution.FinishedAt = approvers.ExecutionFailed, true, noon.Add(5*time.Minute)
	unrun.Execution.Result = "it was not run: its definition on the server is not the one that was pinned; an operator has to look at it (countersign tools); nothing was done"
	lost := sightOf(ran)
	lost.Execution.State, lost.Execution.StartedAt = approvers.ExecutionUnknown, noon.Add(5*time.Minute)

	for name, s := range map[string]desk.Sight{
		"card_pending":    sightOf(refund),
		"card_stages":     sightOf(staged),
		"card_edited":     sightOf(edited),
		"card_reworded":   sightOf(rewritten),
		"card_deleted":    sightOf(removed),
		"card_escalation": lead,
		"card_hostile":    sightOf(hostile),
		"card_long":       sightOf(long),
		"card_approved":   sightOf(approvedBy(closed(refund, approvers.Approved, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0)),
		"card_done":       done,
		"card_failed":     failed,
		"card_unrun":      unrun,
		"card_unknown":    lost,
		"card_rejected":   sightOf(closed(refund, approvers.Rejected, "U0002", "team-lead", "the customer was refunded already")),
		"card_expired":    sightOf(closed(refund, approvers.Expired, "", "", "nobody decided in time")),
		"card_withdrawn":  sightOf(closed(refund, approvers.Withdrawn, "U0100", "", "")),
		"card_voided":     sightOf(closed(refund, approvers.Voided, "", "", "the definition of the tool changed")),
	} {
		t.Run(name, func(t *testing.T) {
			d := drawn(t, s)
			golden(t, name, d.messages[0])
			if want := name != "card_long"; d.shows[0].Whole != want {
				t.Errorf("whole is %v, want %v", d.shows[0].Whole, want)
			}
			if d.shows[0].Digest != s.Request.Digest {
				t.Errorf("the card's digest is %q, not the request's", d.shows[0].Digest)
			}
			live := bytes.Contains(encode(t, d), []byte(`"type":"button"`))
			if live != s.Request.State.Open() {
				t.Errorf("buttons: %v, but the request is %s", live, s.Request.State)
			}
		})
	}
}

func encode(t *testing.T, d drawing) []byte {
	t.Helper()
	raw, err := json.Marshal(d.messages)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A card whose arguments don't fit has no Approve: the full view comes first.
func TestLongCardCannotBeApprovedDirectly(t *testing.T) {
	long := testRequest(`{"body":"` + strings.Repeat("x", maxCardArgs) + `"}`)
	raw := string(encode(t, drawn(t, sightOf(long))))
	if strings.Contains(raw, `"action_id":"approve"`) || !strings.Contains(raw, `"action_id":"arguments"`) {
		t.Error("a card that does not show the arguments whole must offer to open them, and nothing to approve them")
	}
}

// A button's value names its version by the version's content: other content, other value.
func TestMarksDifferWithContent(t *testing.T) {
	a, b := sightOf(testRequest(refundArgs)), sightOf(testRequest(refundArgs))
	b.Request.Facts.Quote = "something else"
	if drawnMark(t, a) == drawnMark(t, b) {
		t.Error("two versions under one post number can't be told apart")
	}
	if drawnMark(t, a) != drawnMark(t, a) {
		t.Error("the same state must be drawn the same")
	}
}

func drawnMark(t *testing.T, s desk.Sight) string {
	t.Helper()
	for _, block := range drawn(t, s).messages[0].Blocks {
		if row, ok := block.(*slack.ActionBlock); ok {
			value := row.Elements.ElementSet[0].(*slack.ButtonBlockElement).Value
			m, err := readMark(value)
			if err != nil || m.Ref != "req_1" || m.Surface != "s_1" || m.Post != 3 {
				t.Fatalf("the value %q reads as %+v (%v)", value, m, err)
			}
			return value
		}
	}
	t.Fatal("no buttons")
	return ""
}

func TestSteps(t *testing.T) {
	pending := testRequest(refundArgs)
	two := testRequest(refundArgs)
	two.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}, {Approver: "finance-director", Quorum: 1}}
	two = approvedBy(two, "U0002", "Teo", "team-lead", 0)
	two.ID, two.Joined = "req_2", []string{"finance-director"}
	call := func(id string, outcome approvers.Outcome, result string) store.Call {
		return store.Call{ID: id, Tool: "issue_refund", Args: refundArgs, Preview: "Refund of $49.99 for order ORD-123", Outcome: outcome, Result: result, Step: 1}
	}
	over := func(r approvers.Request) *approvers.Request { return &r }
	rejected := closed(pending, approvers.Rejected, "U0002", "team-lead", "refunded already")
	approved := closed(pending, approvers.Consumed, "U0002", "team-lead", "")
	changed := approved
	changed.Edits = []approvers.Edit{{By: approvers.Who("T0001", "U0002"), Name: "Teo", Role: "team-lead"}}
	state := func(s approvers.ExecutionState) *approvers.Execution { return &approvers.Execution{State: s} }
	cards := []store.Surface{{Kind: store.SurfaceCard, To: "channel:#support-approvals", Channel: "C0002", TS: "1772452801.000200"}}
	notRun := approvers.NewResult(approvers.OutcomeError, "issue_refund", "it was not run: its definition on the server is not the one that was pinned", "").Text()
	refused := approvers.NewResult(approvers.OutcomeError, "issue_refund", "amount: must be above 0", "").Text()

	report := func(s approvers.ExecutionState) *approvers.Execution {
		return &approvers.Execution{State: s, ReportedBy: approvers.Who("T0001", "U0005"), FinishedAt: noon}
	}
	staged := closed(approvedBy(approvedBy(two, "U0003", "Ingrid", "finance-director", 1), "U0004", "Kenji", "finance-director", 1), approvers.Consumed, "U0004", "finance-director", "")

	many := make([]desk.CallSight, 40)
	for i := range many {
		many[i] = desk.CallSight{Call: store.Call{ID: fmt.Sprint("call_", i), Tool: "search_orders", Args: `{"query":"x"}`, Outcome: approvers.OutcomeExecuted}}
	}
	many[39] = desk.CallSight{Call: call("call_w", "", ""), Request: &pending}

	for name, s := range map[string]struct {
		text  string
		calls []desk.CallSight
	}{
		"step_waiting": {"I'll ask for the **refund** now.", []desk.CallSight{
			{Call: store.Call{ID: "c1", Tool: "search_orders", Args: `{"query":"ORD-123"}`, Outcome: approvers.OutcomeExecuted}, Execution: state(approvers.ExecutionSucceeded)},
			{Call: call("c2", "", ""), Request: &pending, Cards: cards},
			{Call: call("c3", "", ""), Request: &two},
			{Call: store.Call{ID: "c4", Tool: "lookup", Args: `{}`}, Execution: state(approvers.ExecutionExecuting)},
			{Call: store.Call{ID: "c5", Tool: "lookup", Args: `{}`}, Execution: state(approvers.ExecutionNone)},
		}},
		"step_over": {"", []desk.CallSight{
			{Call: call("c1", approvers.OutcomeExecuted, "{}"), Request: over(approved), Execution: state(approvers.ExecutionSucceeded)},
			{Call: call("c2", approvers.OutcomeExecuted, "{}"), Request: over(changed), Execution: state(approvers.ExecutionSucceeded)},
			{Call: call("c3", approvers.OutcomeRejected, "{}"), Request: over(rejected)},
			{Call: call("c4", approvers.OutcomeExpired, "{}"), Request: over(closed(pending, approvers.Expired, "", "", "nobody decided in time"))},
			{Call: call("c5", approvers.OutcomeWithdrawn, "{}"), Request: over(closed(pending, approvers.Withdrawn, "U0100", "", ""))},
			{Call: call("c6", approvers.OutcomeError, refused)},
			{Call: call("c7", approvers.OutcomeUnknown, "{}"), Request: over(approved), Execution: state(approvers.ExecutionUnknown)},
			{Call: call("c8", "", ""), Request: over(approved), Execution: state(approvers.ExecutionUnknown)},
			{Call: call("c9", approvers.OutcomeRefused, "{}"), Request: over(closed(pending, approvers.Refused, "", "", "no approver may"))},
			{Call: call("c10", "", ""), Request: over(closed(pending, approvers.Approved, "U0002", "team-lead", ""))},
		}},
		"step_reported": {"", []desk.CallSight{
			{Call: call("c1", approvers.OutcomeExecuted, "{}"), Request: over(staged), Execution: report(approvers.ExecutionSucceeded)},
			{Call: call("c2", approvers.OutcomeError, "{}"), Execution: report(approvers.ExecutionFailed)},
			{Call: call("c3", approvers.OutcomeUnknown, "{}"), Request: over(approved), Execution: report(approvers.ExecutionSucceeded)},
		}},
		"step_unrun": {"", []desk.CallSight{{Call: call("c1", approvers.OutcomeError, notRun), Request: over(approved), Execution: &approvers.Execution{State: approvers.ExecutionFailed, Unrun: true}}}},
		"step_many":  {"", many},
	} {
		t.Run(name, func(t *testing.T) {
			sight := sightOf(pending)
			sight.Surface.Kind, sight.Surface.Ref, sight.Surface.Step = store.SurfaceStep, "turn_1", 1
			sight.Request, sight.Execution, sight.Call = nil, nil, nil
			for i := range s.calls {
				s.calls[i].Call.Index = i
			}
			sight.Text, sight.Calls = s.text, s.calls
			golden(t, name, drawn(t, sight).messages[0])
		})
	}
}

func TestTurnSurfaces(t *testing.T) {
	pending := testRequest(refundArgs)
	base := sightOf(pending)
	base.Surface.Ref = "turn_1"
	problem, queued, unknown, reported := base, base, base, base

	problem.Surface.Kind = store.SurfaceProblem
	problem.Turn = approvers.Turn{ID: "turn_1", State: approvers.TurnStopped, Problem: "The model could not be reached for five minutes.", CanRetry: true}
	again := problem
	again.Turn.State = approvers.TurnThinking

	queued.Surface.Kind = store.SurfaceQueued
	queued.Queued = []store.Message{{Text: "never mind"}}
	queued.Calls = []desk.CallSight{{Call: store.Call{Tool: "issue_refund", Preview: pending.Preview}, Request: &pending}}
	taken := queued
	taken.Queued, taken.Turn.State = nil, approvers.TurnThinking

	reworded := queued
	reworded.Surface.Kind = store.SurfaceReworded
	reworded.Reworded = &store.Message{Author: pending.Facts.Asker, AuthorName: "Sam", Reworded: &approvers.Reworded{At: noon, Edit: "1772452900.000100", Text: "refund ORD-124"}}
	deleted := reworded
	deleted.Reworded = &store.Message{Author: pending.Facts.Asker, AuthorName: "Sam", Reworded: &approvers.Reworded{At: noon, Deleted: true}}

	e := *base.Execution
	e.State, e.StartedAt = approvers.ExecutionUnknown, noon
	unknown.Surface.Kind, unknown.Surface.Ref, unknown.Execution = store.SurfaceUnknown, e.ID, &e
	settled := e
	settled.State, settled.ReportedBy, settled.FinishedAt, settled.Result = approvers.ExecutionSucceeded, approvers.Who("T0001", "U0002"), noon.Add(time.Hour), "RF-9"
	reported.Surface.Kind, reported.Execution = store.SurfaceUnknown, &settled

	for name, s := range map[string]desk.Sight{
		"problem": problem, "problem_again": again, "queued": queued, "queued_taken": taken, "unknown": unknown, "unknown_reported": reported,
		"reworded": reworded, "reworded_deleted": deleted,
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, drawn(t, s).messages[0]) })
	}
}

func TestAnswers(t *testing.T) {
	base := sightOf(testRequest(refundArgs))
	base.Surface.Kind, base.Surface.Ref = store.SurfaceAnswer, "turn_1"
	for name, text := range map[string]string{
		"answer_markdown": "# Refunds\nThe refund of **$49.99** for `ORD-123` was *rejected* by Team Lead.\n\n" +
			"1. Ask again\n2. Offer a ~~voucher~~ replacement\n   - red\n   - blue\n3. Wait\n\n> quoted\n> words\n\n```go\nx := 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nSee [the policy](https://example.com/p) or https://example.com/q.\n---\nBye",
		"answer_hostile": "<!channel> <@U0003> [click](javascript:alert(1)) [bank](https://evil.example/) @here \u202etxt.exe &lt;!here&gt; ![x](https://evil.example/pixel.png)",
		"answer_empty":   "  \n",
	} {
		t.Run(name, func(t *testing.T) {
			s := base
			s.Text = text
			golden(t, name, drawn(t, s).messages[0])
		})
	}
}
