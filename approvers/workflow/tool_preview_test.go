package workflow_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// companion changes the policy so that another tool, which is read-only, makes the previews of refunds. For the tool
// that closes accounts, a dry run of the tool itself makes the preview.
func companion(p *approvers.Policy) {
	p.Tools[3].Preview.By = approvers.PreviewSource{Tool: "search_orders"}
	p.Tools[4].Preview.By = approvers.PreviewSource{Argument: "dry_run", Value: json.RawMessage("true"), Within: 20 * time.Second}
}

func newPreviewHarness(t *testing.T) *harness {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", companion))
	return h
}

// preview begins an attempt to get a request's preview, as the agent does.
func (h *harness) preview(request string) workflow.PreviewCall {
	h.t.Helper()
	p, ok, err := h.Runs.BeginPreview(h.ctx(), request)
	h.ok(err)
	if !ok {
		h.t.Fatalf("there is nothing to preview: %+v", h.request(request).ToolPreview)
	}
	return p
}

// TestPreviewByACompanion checks a preview by a companion, which is a tool that makes the preview of another tool. The
// card is shown immediately, and shows the preview when the companion has answered. The bot calls the companion with
// exactly the arguments with which the requested tool would run.
func TestPreviewByACompanion(t *testing.T) {
	h := newPreviewHarness(t)
	r := h.ask(`issue_refund {"amount":49.90, "order_id": "ORD-1"}`)
	if !r.ToolPreview.Making() || r.ToolPreview.By != "search_orders" || r.Preview != "Refund of 49.9" || len(h.messagesOf(r.ID)) == 0 {
		t.Fatalf("%+v", r.ToolPreview)
	}
	if due := h.timers(store.TimerPreview)[r.ID]; due.Due.After(h.clock.Now()) {
		t.Errorf("it is due at %s", due.Due)
	}
	p := h.preview(r.ID)
	want := workflow.PreviewCall{
		Request: r.ID, Conversation: r.Conversation, Turn: r.Turn, Asker: alice.ID, Digest: r.Digest, Key: "preview_" + r.Execution, Tool: "search_orders",
		ToolHash: "hash of search_orders", Args: r.Args, Within: approvers.DefaultWithin,
	}
	if p.Key == r.Execution || string(p.Args) != `{"amount":49.90, "order_id": "ORD-1"}` || p.Own || p.Tool != want.Tool || p.ToolHash != want.ToolHash || p.Within != want.Within || p.Asker != want.Asker || p.Key != want.Key {
		t.Errorf("%+v", p)
	}
	before := h.messagesOf(r.ID)[0].Revision
	h.ok(h.Runs.EndPreview(h.ctx(), p, approvers.PreviewAnswer{Text: "49.90 of 120.00 was paid, nothing refunded"}))
	r = h.request(r.ID)
	if f := r.ToolPreview; f.State != approvers.ToolPreviewReady || f.Text != "49.90 of 120.00 was paid, nothing refunded" || r.Preview != "Refund of 49.9" || f.Tries != 1 {
		t.Errorf("%+v", f)
	}
	if h.messagesOf(r.ID)[0].Revision == before || len(h.timers(store.TimerPreview)) != 0 {
		t.Error("the card is not rendered again, or the preview is to be made again")
	}
	h.ok(h.Runs.EndPreview(h.ctx(), p, approvers.PreviewAnswer{Text: "something else"})) // the result arrives twice
	h.approve(lead, r.ID)
	h.run(r.Execution, "refunded")
	h.wantKinds(r.ID, "proposed previewed decided approved executing executed returned")
	if facts, _ := h.lastFacts(r.ID, approvers.AuditDecided); facts["preview"] != "" {
		t.Errorf("the decision says %q", facts["preview"])
	}
	if facts, said := h.lastFacts(r.ID, approvers.AuditPreviewed); facts["by"] != "search_orders" || facts["state"] != "made" || facts["dry_run"] != "" || said != "49.90 of 120.00 was paid, nothing refunded" {
		t.Errorf("%v %q", facts, said)
	}
}

// TestDryRun checks a preview by a dry run of the requested tool. In a dry run, the bot sets one argument, and every
// other byte of the arguments is unchanged. The dry run is recorded before the tool is called.
func TestDryRun(t *testing.T) {
	h := newPreviewHarness(t)
	r := h.ask(`cancel_account { "user_id":"U-1" }`)
	p := h.preview(r.ID)
	if string(p.Args) != `{ "user_id":"U-1" ,"dry_run":true}` || p.Tool != "cancel_account" || p.Within != 20*time.Second || p.Own {
		t.Errorf("%+v with %s", p, p.Args)
	}
	h.wantKinds(r.ID, "proposed previewed")
	if facts, _ := h.lastFacts(r.ID, approvers.AuditPreviewed); facts["dry_run"] != "true" || facts["state"] != "asked" {
		t.Errorf("%v", facts)
	}
	click := h.clickOn(fin1, approvers.Approve, r.ID)
	click.Typed = true
	_, err := h.Requests.Decide(h.ctx(), click)
	wantDenied(t, err, approvers.DeniedPreview)
	h.ok(h.Runs.EndPreview(h.ctx(), p, approvers.PreviewAnswer{Fault: "cancel_account: it did not answer within 20s"}))
	if r = h.request(r.ID); r.ToolPreview.State != approvers.ToolPreviewFailed || !r.ToolPreview.Dry || string(r.Args) != `{ "user_id":"U-1" }` {
		t.Errorf("%+v %s", r.ToolPreview, r.Args)
	}
	h.clock.pass(time.Second)
	click = h.clickOn(fin1, approvers.Approve, r.ID)
	click.Typed = true
	if _, err := h.Requests.Decide(h.ctx(), click); err != nil {
		t.Errorf("with a preview that failed: %v", err)
	}
}

// TestPreviewOfTheToolItself checks a Go tool with its own preview function. The function is not called if the policy
// has a preview template for the tool, or has preview: false.
func TestPreviewOfTheToolItself(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*approvers.ToolPolicy)
		asked  bool
	}{
		{"always", func(*approvers.ToolPolicy) {}, true},
		{"preview: true", func(t *approvers.ToolPolicy) { t.WithPreview = true }, true},
		{"preview: false", func(t *approvers.ToolPolicy) { t.NoPreview = true }, false},
		{"a template", func(t *approvers.ToolPolicy) {
			t.Preview.Render = func(map[string]any) (string, error) { return "Discount", nil }
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			h.tools.change("apply_discount", func(t *workflow.Tool) { t.Previews = true })
			h.policy.Store(policy("policy-1", func(p *approvers.Policy) { c.change(&p.Tools[2]) }))
			r := h.ask(`apply_discount {"percent":5}`)
			if (r.ToolPreview != nil) != c.asked {
				t.Fatalf("%+v", r.ToolPreview)
			}
			if !c.asked {
				return
			}
			p := h.preview(r.ID)
			h.ok(h.Runs.EndPreview(h.ctx(), p, approvers.PreviewAnswer{Text: "5% off, which is $6"}))
			if r = h.request(r.ID); !p.Own || string(p.Args) != `{"percent":5}` || r.Preview != "5% off, which is $6" || h.call(r.Call).Preview != r.Preview {
				t.Errorf("%+v, %q", p, r.Preview)
			}
		})
	}
}

// TestPreviewThatCantBeMade checks calls for which no preview can be made. The card immediately shows the reason, and
// no tool is called.
func TestPreviewThatCantBeMade(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*harness, *approvers.Policy)
		args   string
		says   string
	}{
		{"an unknown companion", func(_ *harness, p *approvers.Policy) { p.Tools[3].Preview.By.Tool = "look" }, `{"amount":1}`, "there is no tool look that could be asked"},
		{"one that people answer", func(h *harness, _ *approvers.Policy) { h.tools.asks("search_orders") }, `{"amount":1}`, "there is no tool search_orders"},
		{"one that acts", func(h *harness, _ *approvers.Policy) { h.tools.effect("search_orders", approvers.Idempotent) }, `{"amount":1}`, "search_orders is not declared to only read"},
		{"one that is gated", func(_ *harness, p *approvers.Policy) { p.Tools[0].Confirm, p.Tools[0].Risk = true, approvers.Medium }, `{"amount":1}`, "the policy does not let search_orders run without asking"},
		{"one that a rule gates", func(_ *harness, p *approvers.Policy) {
			p.Tools[0].Rules = []approvers.Rule{{When: approvers.Condition{Eval: func(approvers.Facts) (bool, error) { return true, nil }}, Confirm: true}}
		}, `{"amount":1}`, "the policy does not let search_orders run without asking"},
		{"one that is blocked", func(h *harness, _ *approvers.Policy) {
			h.tools.change("search_orders", func(t *workflow.Tool) { t.Blocked = "its definition is not pinned" })
		}, `{"amount":1}`, "search_orders can't be called: its definition is not pinned"},
		{"other arguments", func(h *harness, _ *approvers.Policy) {
			h.tools.change("search_orders", func(t *workflow.Tool) {
				t.Check = func(json.RawMessage) error { return errors.New("amount: is not known") }
			})
		}, `{"amount":1}`, "search_orders does not take these arguments: amount: is not known"},
		{"no such argument", func(h *harness, p *approvers.Policy) {
			p.Tools[3].Preview.By = approvers.PreviewSource{Argument: "nonsense", Value: json.RawMessage("true")}
		}, `{"amount":1}`, "issue_refund does not take these arguments: unknown name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			h.policy.Store(policy("policy-1", companion, func(p *approvers.Policy) { c.change(h, p) }))
			r := h.ask("issue_refund " + c.args)
			_, ok, err := h.Runs.BeginPreview(h.ctx(), r.ID)
			h.ok(err)
			if f := h.request(r.ID).ToolPreview; ok || f.State != approvers.ToolPreviewFailed || !strings.Contains(f.Fault, c.says) || len(h.timers(store.TimerPreview)) != 0 {
				t.Errorf("%v: %+v", ok, f)
			}
			h.approve(lead, r.ID)
		})
	}
}

// TestPreviewOfAnEdit checks that changed arguments get a new preview. A late result of the earlier preview changes
// nothing.
func TestPreviewOfAnEdit(t *testing.T) {
	h := newPreviewHarness(t)
	r := h.ask(`issue_refund {"amount":49.90}`)
	late := h.preview(r.ID)
	_, err := h.Requests.Decide(h.ctx(), h.edit(lead, r.ID, `{"amount":600}`))
	h.ok(err)
	r = h.request(r.ID)
	if !r.ToolPreview.Making() || r.ToolPreview.Digest != r.Digest || r.ToolPreview.Tries != 0 || r.State != approvers.Pending {
		t.Fatalf("%+v", r.ToolPreview)
	}
	if due := h.timers(store.TimerPreview)[r.ID]; due.Due.After(h.clock.Now()) {
		t.Error("the preview of the edit is not due immediately")
	}
	h.ok(h.Runs.EndPreview(h.ctx(), late, approvers.PreviewAnswer{Text: "about the earlier ones"}))
	if f := h.request(r.ID).ToolPreview; !f.Making() {
		t.Errorf("%+v", f)
	}
	p := h.preview(r.ID)
	h.ok(h.Runs.EndPreview(h.ctx(), p, approvers.PreviewAnswer{Text: "600 of 120 that was paid"}))
	if f := h.request(r.ID).ToolPreview; string(p.Args) != `{"amount":600}` || f.Text != "600 of 120 that was paid" {
		t.Errorf("%s, %+v", p.Args, f)
	}
}

// TestDecidedBeforeThePreview checks a request that is decided before its preview is made. The decision records that
// the preview was missing. No other preview is made, and a late preview changes nothing.
func TestDecidedBeforeThePreview(t *testing.T) {
	h := newPreviewHarness(t)
	r := h.ask(`issue_refund {"amount":49.90}`)
	p := h.preview(r.ID)
	if out := h.approve(lead, r.ID); !out.Decisions[0].WithoutToolPreview || out.State != approvers.Approved {
		t.Errorf("%+v", out.Decisions)
	}
	if facts, _ := h.lastFacts(r.ID, approvers.AuditDecided); facts["preview"] != "not there yet" {
		t.Errorf("the record says %q", facts["preview"])
	}
	h.ok(h.Runs.EndPreview(h.ctx(), p, approvers.PreviewAnswer{Text: "too late"}))
	h.ok(h.Runs.PutBackPreview(h.ctx(), p))
	if f := h.request(r.ID).ToolPreview; !f.Making() || len(h.timers(store.TimerPreview)) != 0 {
		t.Errorf("%+v, %v", f, h.timers(store.TimerPreview))
	}
	if _, ok, err := h.Runs.BeginPreview(h.ctx(), r.ID); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	h.run(r.Execution, "refunded")
}

// TestPreviewAfterACrash checks a preview that a crash of the process interrupted. The preview is immediately tried
// again, because a preview has no effects. After three crashes, the card says that no preview can be made.
func TestPreviewAfterACrash(t *testing.T) {
	h := newPreviewHarness(t)
	r := h.ask(`issue_refund {"amount":49.90}`)
	for try := range approvers.ToolPreviewTries {
		h.preview(r.ID)
		if due := h.timers(store.TimerPreview)[r.ID]; !due.Due.After(h.clock.Now()) {
			t.Fatal("a second attempt is due while the first is under way")
		}
		h.reopen()
		if due := h.timers(store.TimerPreview)[r.ID]; due.Due.After(h.clock.Now()) {
			t.Fatalf("after crash %d it is due at %s", try+1, due.Due)
		}
	}
	_, ok, err := h.Runs.BeginPreview(h.ctx(), r.ID)
	h.ok(err)
	if f := h.request(r.ID).ToolPreview; ok || f.State != approvers.ToolPreviewFailed || !strings.Contains(f.Fault, "begun 3 times") {
		t.Errorf("%v, %+v", ok, f)
	}
}

// TestPreviewWhilePaused checks that no tool makes a preview during a pause. A preview that the pause interrupted is
// made after the pause, and the interrupted attempt does not count as a try.
func TestPreviewWhilePaused(t *testing.T) {
	h := newPreviewHarness(t)
	r := h.ask(`issue_refund {"amount":49.90}`)
	p := h.preview(r.ID)
	h.ok(h.Pauses.Pause(h.ctx(), approvers.Operator("root"), "an incident"))
	h.ok(h.Runs.PutBackPreview(h.ctx(), p))
	_, _, err := h.Runs.BeginPreview(h.ctx(), r.ID)
	wantPaused(t, err)
	if f := h.request(r.ID).ToolPreview; f.Tries != 0 || !f.Making() {
		t.Errorf("%+v", f)
	}
	h.ok(h.Pauses.Resume(h.ctx(), approvers.Operator("root"), ""))
	h.ok(h.Runs.EndPreview(h.ctx(), h.preview(r.ID), approvers.PreviewAnswer{Text: "fine"}))
	if f := h.request(r.ID).ToolPreview; f.State != approvers.ToolPreviewReady {
		t.Errorf("%+v", f)
	}
}

// TestPreviewMasksSecrets checks a preview of a call with a masked value. The companion, which makes the preview, gets
// the real value. People see the preview without this value.
func TestPreviewMasksSecrets(t *testing.T) {
	h := newPreviewHarness(t)
	h.policy.Store(policy("policy-1", companion, func(p *approvers.Policy) { p.Tools[3].Secrets = []string{"iban"} }))
	r := h.ask(`issue_refund {"amount":1,"iban":"DE89 3704"}`)
	p := h.preview(r.ID)
	if !contains(string(p.Args), "DE89 3704") {
		t.Errorf("the companion gets %s", p.Args)
	}
	h.ok(h.Runs.EndPreview(h.ctx(), p, approvers.PreviewAnswer{Text: "To DE89 3704 of Ana"}))
	if f := h.request(r.ID).ToolPreview; f.Text != "To (masked) of Ana" {
		t.Errorf("%q", f.Text)
	}
	if _, said := h.lastFacts(r.ID, approvers.AuditPreviewed); contains(said, "DE89") {
		t.Errorf("the record has %q", said)
	}
}

// TestPreviewOfAPolicyThatChanged checks that the current policy determines which tool makes the preview, if any.
func TestPreviewOfAPolicyThatChanged(t *testing.T) {
	h := newPreviewHarness(t)
	r := h.ask(`issue_refund {"amount":49.90}`)
	h.policy.Store(policy("policy-2"))
	_, ok, err := h.Runs.BeginPreview(h.ctx(), r.ID)
	h.ok(err)
	if f := h.request(r.ID).ToolPreview; ok || f != nil || len(h.timers(store.TimerPreview)) != 0 {
		t.Errorf("%v, %+v", ok, f)
	}
}

// TestNoPreviewWhereNobodyIsAsked checks that a call without approval has no preview, because it has no card.
func TestNoPreviewWhereNobodyIsAsked(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Tools[1].Preview.By.Tool = "search_orders" }))
	turn := h.say(alice, "please").Turn
	c := h.propose(turn, `update_address {}`)[0]
	if len(h.timers(store.TimerPreview)) != 0 {
		t.Error("a preview is made of it")
	}
	h.run(c.Execution, "updated")
}

// TestPreviewAgain checks that the request for another run of a call with an unknown outcome gets a new preview.
func TestPreviewAgain(t *testing.T) {
	h := newPreviewHarness(t)
	r := h.ask(`issue_refund {"amount":49.90}`)
	h.ok(h.Runs.EndPreview(h.ctx(), h.preview(r.ID), approvers.PreviewAnswer{Text: "fine"}))
	h.approve(lead, r.ID)
	if _, run, err := h.Runs.Claim(h.ctx(), r.Execution); !run || err != nil {
		t.Fatal(run, err)
	}
	h.ok(h.Runs.MarkUnknown(h.ctx(), r.Execution))
	click := workflow.Click{Inbox: h.id("Ev"), At: h.clock.Now(), Who: lead, Execution: r.Execution}
	h.receive(click)
	h.ok(h.Runs.RetryUnknown(h.ctx(), click))
	again := h.request(h.call(r.Call).Request)
	if again.ID == r.ID || !again.ToolPreview.Making() || again.ToolPreview.Digest != again.Digest {
		t.Errorf("%+v", again.ToolPreview)
	}
	h.ok(h.Runs.EndPreview(h.ctx(), h.preview(again.ID), approvers.PreviewAnswer{Text: "it is refunded already"}))
}

// TestPreviewRefusesWhen checks the policy's condition on a preview. If the preview meets the condition, the card says
// that the call would fail. A condition that can't be evaluated counts as met.
func TestPreviewRefusesWhen(t *testing.T) {
	for text, want := range map[string]string{
		`{"left": 50}`: "", `{"left": 10, "message": "Only 10 is left"}`: "Only 10 is left", `{"left": 10}`: "by the policy's condition preview.left < args.amount",
		`{"left": "much"}`: "the policy's condition on it can't be evaluated (preview.left < args.amount)", "words": "the policy's condition on it can't be evaluated (preview.left < args.amount)",
	} {
		t.Run(text, func(t *testing.T) {
			h := newHarness(t)
			h.policy.Store(policy("policy-1", companion, func(p *approvers.Policy) {
				p.Tools[3].Preview.No = approvers.Condition{Text: "preview.left < args.amount", Eval: func(f approvers.Facts) (bool, error) {
					said, ok := f.Preview.(map[string]any)
					left, isNumber := said["left"].(float64)
					amount, _ := f.Args["amount"].(float64)
					if !ok || !isNumber {
						return false, errors.New("no number")
					}
					return left < amount, nil
				}}
			}))
			r := h.ask(`issue_refund {"amount":49.90, "order_id": "ORD-1"}`)
			h.ok(h.Runs.EndPreview(h.ctx(), h.preview(r.ID), approvers.PreviewAnswer{Text: text}))
			r = h.request(r.ID)
			if r.ToolPreview.No != want || r.ToolPreview.Text != text {
				t.Errorf("%q, want %q", r.ToolPreview.No, want)
			}
			if facts, _ := h.lastFacts(r.ID, approvers.AuditPreviewed); (facts["says"] == "no") != (want != "") {
				t.Errorf("the record says %q", facts["says"])
			}
		})
	}
}

// TestMadePreview checks a call for which the policy has no preview template. The preview sentence is then made from
// the tool's title and the arguments.
func TestMadePreview(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Tools[3].Preview = approvers.Preview{} }))
	r := h.ask(`issue_refund {"amount":49.90, "order_id": "ORD-1"}`)
	if want := "Issue refund: ORD-1, amount 49.90"; r.Preview != want || !r.MadePreview {
		t.Errorf("%q, want %q", r.Preview, want)
	}
	if c := h.call(r.Call); c.Preview != r.Preview {
		t.Errorf("the call's preview is %q", c.Preview)
	}
}
