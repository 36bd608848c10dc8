package desk_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// companion has a refund previewed by a tool that only reads.
func companion(p *approvers.Policy) {
	p.Tools[3].Preview.By = approvers.Foreteller{Tool: "search_orders"}
	p.Tools[4].Preview.By = approvers.Foreteller{Argument: "dry_run", Value: json.RawMessage("true"), Within: 20 * time.Second}
}

func newForetelling(t *testing.T) *office {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", companion))
	return o
}

// preview makes a request's forecast, as the agent does.
func (o *office) preview(request string) desk.Previewing {
	o.t.Helper()
	p, ok, err := o.BeginPreview(o.ctx(), request)
	o.ok(err)
	if !ok {
		o.t.Fatalf("there is nothing to preview: %+v", o.request(request).Forecast)
	}
	return p
}

// TestPreviewByACompanion: the card is there at once, and has the preview when the companion has answered, which is called with the very bytes that would run.
func TestPreviewByACompanion(t *testing.T) {
	o := newForetelling(t)
	r := o.ask(`issue_refund {"amount":49.90, "order_id": "ORD-1"}`)
	if !r.Forecast.Making() || r.Forecast.By != "search_orders" || r.Preview != "Refund of 49.9" || len(o.surfacesOf(r.ID)) == 0 {
		t.Fatalf("%+v", r.Forecast)
	}
	if due := o.timers(store.TimerPreview)[r.ID]; due.Due.After(o.clock.Now()) {
		t.Errorf("it is due at %s", due.Due)
	}
	p := o.preview(r.ID)
	want := desk.Previewing{
		Request: r.ID, Conversation: r.Conversation, Turn: r.Turn, Asker: alice.ID, Digest: r.Digest, Key: "preview_" + r.Execution, Tool: "search_orders",
		ToolHash: "hash of search_orders", Args: r.Args, Within: approvers.DefaultWithin,
	}
	if p.Key == r.Execution || string(p.Args) != `{"amount":49.90, "order_id": "ORD-1"}` || p.Own || p.Tool != want.Tool || p.ToolHash != want.ToolHash || p.Within != want.Within || p.Asker != want.Asker || p.Key != want.Key {
		t.Errorf("%+v", p)
	}
	before := o.surfacesOf(r.ID)[0].Want
	o.ok(o.EndPreview(o.ctx(), p, "49.90 of 120.00 was paid, nothing refunded", ""))
	r = o.request(r.ID)
	if f := r.Forecast; f.State != approvers.ForecastMade || f.Text != "49.90 of 120.00 was paid, nothing refunded" || r.Preview != "Refund of 49.9" || f.Tries != 1 {
		t.Errorf("%+v", f)
	}
	if o.surfacesOf(r.ID)[0].Want == before || len(o.timers(store.TimerPreview)) != 0 {
		t.Error("it is not drawn anew, or is to be made again")
	}
	o.ok(o.EndPreview(o.ctx(), p, "something else", "")) // it comes twice
	o.approve(lead, r.ID)
	o.run(r.Execution, "refunded")
	o.wantKinds(r.ID, "proposed previewed decided approved executing executed returned")
	if facts, _ := o.lastFacts(r.ID, approvers.AuditDecided); facts["preview"] != "" {
		t.Errorf("the decision says %q", facts["preview"])
	}
	if facts, said := o.lastFacts(r.ID, approvers.AuditPreviewed); facts["by"] != "search_orders" || facts["state"] != "made" || facts["dry_run"] != "" || said != "49.90 of 120.00 was paid, nothing refunded" {
		t.Errorf("%v %q", facts, said)
	}
}

// TestDryRun: the tool itself is called, with one argument set and every other byte as it is, and that is recorded before.
func TestDryRun(t *testing.T) {
	o := newForetelling(t)
	r := o.ask(`cancel_account { "user_id":"U-1" }`)
	p := o.preview(r.ID)
	if string(p.Args) != `{ "user_id":"U-1" ,"dry_run":true}` || p.Tool != "cancel_account" || p.Within != 20*time.Second || p.Own {
		t.Errorf("%+v with %s", p, p.Args)
	}
	o.wantKinds(r.ID, "proposed previewed")
	if facts, _ := o.lastFacts(r.ID, approvers.AuditPreviewed); facts["dry_run"] != "true" || facts["state"] != "asked" {
		t.Errorf("%v", facts)
	}
	click := o.clickOn(fin1, approvers.Approve, r.ID)
	click.Typed = true
	_, err := o.Decide(o.ctx(), click)
	wantDenied(t, err, approvers.DeniedPreview)
	o.ok(o.EndPreview(o.ctx(), p, "", "cancel_account: it did not answer within 20s"))
	if r = o.request(r.ID); r.Forecast.State != approvers.ForecastFailed || !r.Forecast.Dry || string(r.Args) != `{ "user_id":"U-1" }` {
		t.Errorf("%+v %s", r.Forecast, r.Args)
	}
	o.clock.pass(time.Second)
	click = o.clickOn(fin1, approvers.Approve, r.ID)
	click.Typed = true
	if _, err := o.Decide(o.ctx(), click); err != nil {
		t.Errorf("with a preview that failed: %v", err)
	}
}

// TestPreviewOfTheToolItself: a Go tool's own function is asked where the policy has no template, and where it does not forbid it.
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
			o := newOffice(t)
			o.tools.change("apply_discount", func(t *desk.Tool) { t.Previews = true })
			o.policy.Store(policy("policy-1", func(p *approvers.Policy) { c.change(&p.Tools[2]) }))
			r := o.ask(`apply_discount {"percent":5}`)
			if (r.Forecast != nil) != c.asked {
				t.Fatalf("%+v", r.Forecast)
			}
			if !c.asked {
				return
			}
			p := o.preview(r.ID)
			o.ok(o.EndPreview(o.ctx(), p, "5% off, which is $6", ""))
			if r = o.request(r.ID); !p.Own || string(p.Args) != `{"percent":5}` || r.Preview != "5% off, which is $6" || o.call(r.Call).Preview != r.Preview {
				t.Errorf("%+v, %q", p, r.Preview)
			}
		})
	}
}

// TestPreviewThatCantBeMade: the card says why, at once, and nothing is called.
func TestPreviewThatCantBeMade(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*office, *approvers.Policy)
		args   string
		says   string
	}{
		{"an unknown companion", func(_ *office, p *approvers.Policy) { p.Tools[3].Preview.By.Tool = "look" }, `{"amount":1}`, "there is no tool look that could be asked"},
		{"one that people answer", func(o *office, _ *approvers.Policy) { o.tools.asks("search_orders") }, `{"amount":1}`, "there is no tool search_orders"},
		{"one that acts", func(o *office, _ *approvers.Policy) { o.tools.effect("search_orders", approvers.Idempotent) }, `{"amount":1}`, "search_orders is not declared to only read"},
		{"one that is gated", func(_ *office, p *approvers.Policy) { p.Tools[0].Confirm, p.Tools[0].Risk = true, approvers.Medium }, `{"amount":1}`, "the policy does not let search_orders run without asking"},
		{"one that a rule gates", func(_ *office, p *approvers.Policy) {
			p.Tools[0].Rules = []approvers.Rule{{When: approvers.Condition{Eval: func(approvers.Facts) (bool, error) { return true, nil }}, Confirm: true}}
		}, `{"amount":1}`, "the policy does not let search_orders run without asking"},
		{"one that is blocked", func(o *office, _ *approvers.Policy) {
			o.tools.change("search_orders", func(t *desk.Tool) { t.Blocked = "its definition is not pinned" })
		}, `{"amount":1}`, "search_orders can't be called: its definition is not pinned"},
		{"other arguments", func(o *office, _ *approvers.Policy) {
			o.tools.change("search_orders", func(t *desk.Tool) {
				t.Check = func(json.RawMessage) error { return errors.New("amount: is not known") }
			})
		}, `{"amount":1}`, "search_orders does not take these arguments: amount: is not known"},
		{"no such argument", func(o *office, p *approvers.Policy) {
			p.Tools[3].Preview.By = approvers.Foreteller{Argument: "nonsense", Value: json.RawMessage("true")}
		}, `{"amount":1}`, "issue_refund does not take these arguments: unknown name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOffice(t)
			o.policy.Store(policy("policy-1", companion, func(p *approvers.Policy) { c.change(o, p) }))
			r := o.ask("issue_refund " + c.args)
			_, ok, err := o.BeginPreview(o.ctx(), r.ID)
			o.ok(err)
			if f := o.request(r.ID).Forecast; ok || f.State != approvers.ForecastFailed || !strings.Contains(f.Fault, c.says) || len(o.timers(store.TimerPreview)) != 0 {
				t.Errorf("%v: %+v", ok, f)
			}
			o.approve(lead, r.ID)
		})
	}
}

// TestPreviewOfAnEdit: changed arguments get a preview of their own, and what is said of the earlier ones comes too late.
func TestPreviewOfAnEdit(t *testing.T) {
	o := newForetelling(t)
	r := o.ask(`issue_refund {"amount":49.90}`)
	late := o.preview(r.ID)
	_, err := o.Decide(o.ctx(), o.edit(lead, r.ID, `{"amount":600}`))
	o.ok(err)
	r = o.request(r.ID)
	if !r.Forecast.Making() || r.Forecast.Digest != r.Digest || r.Forecast.Tries != 0 || r.State != approvers.Pending {
		t.Fatalf("%+v", r.Forecast)
	}
	if due := o.timers(store.TimerPreview)[r.ID]; due.Due.After(o.clock.Now()) {
		t.Error("it is not begun at once")
	}
	o.ok(o.EndPreview(o.ctx(), late, "about the earlier ones", ""))
	if f := o.request(r.ID).Forecast; !f.Making() {
		t.Errorf("%+v", f)
	}
	p := o.preview(r.ID)
	o.ok(o.EndPreview(o.ctx(), p, "600 of 120 that was paid", ""))
	if f := o.request(r.ID).Forecast; string(p.Args) != `{"amount":600}` || f.Text != "600 of 120 that was paid" {
		t.Errorf("%s, %+v", p.Args, f)
	}
}

// TestDecidedBeforeThePreview: the decision says so, nothing is previewed any more, and what still comes changes nothing.
func TestDecidedBeforeThePreview(t *testing.T) {
	o := newForetelling(t)
	r := o.ask(`issue_refund {"amount":49.90}`)
	p := o.preview(r.ID)
	if out := o.approve(lead, r.ID); !out.Decisions[0].Unforetold || out.State != approvers.Approved {
		t.Errorf("%+v", out.Decisions)
	}
	if facts, _ := o.lastFacts(r.ID, approvers.AuditDecided); facts["preview"] != "not there yet" {
		t.Errorf("the record says %q", facts["preview"])
	}
	o.ok(o.EndPreview(o.ctx(), p, "too late", ""))
	o.ok(o.PutBackPreview(o.ctx(), p))
	if f := o.request(r.ID).Forecast; !f.Making() || len(o.timers(store.TimerPreview)) != 0 {
		t.Errorf("%+v, %v", f, o.timers(store.TimerPreview))
	}
	if _, ok, err := o.BeginPreview(o.ctx(), r.ID); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	o.run(r.Execution, "refunded")
}

// TestPreviewAfterACrash: it only reads, so it is begun again at once; after three times that a process stopped it counts as impossible.
func TestPreviewAfterACrash(t *testing.T) {
	o := newForetelling(t)
	r := o.ask(`issue_refund {"amount":49.90}`)
	for try := range approvers.ForecastTries {
		o.preview(r.ID)
		if due := o.timers(store.TimerPreview)[r.ID]; !due.Due.After(o.clock.Now()) {
			t.Fatal("two would make it at a time")
		}
		o.reopen()
		if due := o.timers(store.TimerPreview)[r.ID]; due.Due.After(o.clock.Now()) {
			t.Fatalf("after crash %d it is due at %s", try+1, due.Due)
		}
	}
	_, ok, err := o.BeginPreview(o.ctx(), r.ID)
	o.ok(err)
	if f := o.request(r.ID).Forecast; ok || f.State != approvers.ForecastFailed || !strings.Contains(f.Fault, "begun 3 times") {
		t.Errorf("%v, %+v", ok, f)
	}
}

// TestPreviewWhilePaused: nothing is asked of any tool, and what was under way is begun again afterwards without having used up a try.
func TestPreviewWhilePaused(t *testing.T) {
	o := newForetelling(t)
	r := o.ask(`issue_refund {"amount":49.90}`)
	p := o.preview(r.ID)
	o.ok(o.Pause(o.ctx(), approvers.Operator("root"), "an incident"))
	o.ok(o.PutBackPreview(o.ctx(), p))
	_, _, err := o.BeginPreview(o.ctx(), r.ID)
	wantPaused(t, err)
	if f := o.request(r.ID).Forecast; f.Tries != 0 || !f.Making() {
		t.Errorf("%+v", f)
	}
	o.ok(o.Resume(o.ctx(), approvers.Operator("root"), ""))
	o.ok(o.EndPreview(o.ctx(), o.preview(r.ID), "fine", ""))
	if f := o.request(r.ID).Forecast; f.State != approvers.ForecastMade {
		t.Errorf("%+v", f)
	}
}

// TestPreviewMasksSecrets: the companion gets the real value, and people don't get it from there.
func TestPreviewMasksSecrets(t *testing.T) {
	o := newForetelling(t)
	o.policy.Store(policy("policy-1", companion, func(p *approvers.Policy) { p.Tools[3].Secrets = []string{"iban"} }))
	r := o.ask(`issue_refund {"amount":1,"iban":"DE89 3704"}`)
	p := o.preview(r.ID)
	if !contains(string(p.Args), "DE89 3704") {
		t.Errorf("the companion gets %s", p.Args)
	}
	o.ok(o.EndPreview(o.ctx(), p, "To DE89 3704 of Ana", ""))
	if f := o.request(r.ID).Forecast; f.Text != "To (masked) of Ana" {
		t.Errorf("%q", f.Text)
	}
	if _, said := o.lastFacts(r.ID, approvers.AuditPreviewed); contains(said, "DE89") {
		t.Errorf("the record has %q", said)
	}
}

// TestPreviewOfAPolicyThatChanged: the policy in force says who is asked, or that nobody is.
func TestPreviewOfAPolicyThatChanged(t *testing.T) {
	o := newForetelling(t)
	r := o.ask(`issue_refund {"amount":49.90}`)
	o.policy.Store(policy("policy-2"))
	_, ok, err := o.BeginPreview(o.ctx(), r.ID)
	o.ok(err)
	if f := o.request(r.ID).Forecast; ok || f != nil || len(o.timers(store.TimerPreview)) != 0 {
		t.Errorf("%v, %+v", ok, f)
	}
}

// TestNoPreviewWhereNobodyIsAsked: a call that runs by itself has no card to show one on.
func TestNoPreviewWhereNobodyIsAsked(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Tools[1].Preview.By.Tool = "search_orders" }))
	turn := o.say(alice, "please").Turn
	c := o.propose(turn, `update_address {}`)[0]
	if len(o.timers(store.TimerPreview)) != 0 {
		t.Error("a preview is made of it")
	}
	o.run(c.Execution, "updated")
}

// TestPreviewAgain: a call that is asked for once more, because nobody knows whether it happened, gets a preview anew.
func TestPreviewAgain(t *testing.T) {
	o := newForetelling(t)
	r := o.ask(`issue_refund {"amount":49.90}`)
	o.ok(o.EndPreview(o.ctx(), o.preview(r.ID), "fine", ""))
	o.approve(lead, r.ID)
	if _, run, err := o.Claim(o.ctx(), r.Execution); !run || err != nil {
		t.Fatal(run, err)
	}
	o.ok(o.Lose(o.ctx(), r.Execution))
	click := desk.Click{Inbox: o.id("Ev"), At: o.clock.Now(), Who: lead, Execution: r.Execution}
	o.receive(click)
	o.ok(o.AskAgain(o.ctx(), click))
	again := o.request(o.call(r.Call).Request)
	if again.ID == r.ID || !again.Forecast.Making() || again.Forecast.Digest != again.Digest {
		t.Errorf("%+v", again.Forecast)
	}
	o.ok(o.EndPreview(o.ctx(), o.preview(again.ID), "it is refunded already", ""))
}
