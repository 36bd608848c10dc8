package desk_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// show records that Slack shows a surface as it is now.
func (o *office) show(s store.Surface) store.Surface {
	o.t.Helper()
	s.Channel, s.TS = "C-"+s.To, "ts-"+s.ID
	o.ok(o.Shown(o.ctx(), s, o.posted(s)))
	return o.surface(s.ID)
}

func (o *office) posted(s store.Surface) desk.Posted {
	o.t.Helper()
	p := desk.Posted{Body: fmt.Appendf(nil, `{"text":"%s %d"}`, s.Kind, s.Want)}
	if sight, err := o.See(o.ctx(), s.ID); err != nil {
		o.t.Fatal(err)
	} else if sight.Request != nil && sight.Execution != nil {
		p.Shows = []store.Shown{{Request: sight.Request.ID, Digest: sight.Execution.Digest, Whole: true}}
	} else if s.Kind == store.SurfaceBundle {
		p.Shows = putUp(sight)
	}
	return p
}

func (o *office) surface(id string) store.Surface {
	o.t.Helper()
	return view(o, func(r store.Reader) (store.Surface, error) { return r.Surface(id) })
}

// only is the one surface of a kind.
func (o *office) only(ref string, kind store.SurfaceKind) store.Surface {
	o.t.Helper()
	var found []store.Surface
	for _, s := range o.surfacesOf(ref) {
		if s.Kind == kind {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		o.t.Fatalf("%d surfaces of kind %s; want 1", len(found), kind)
	}
	return found[0]
}

// wanted are the addresses of the surfaces that Slack does not show as it should.
func (o *office) wanted(ref string) string {
	o.t.Helper()
	var out []string
	for _, s := range o.surfacesOf(ref) {
		if s.State == store.SurfaceWanted {
			out = append(out, string(s.Kind)+" "+s.To)
		}
	}
	return strings.Join(out, ", ")
}

func TestSurfacesFollowTheState(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	card := o.show(o.only(r.ID, store.SurfaceCard))
	if card.State != store.SurfaceShown || card.Posts != 1 || len(o.timers(store.ShowTimers...)) != 1 { // the step is left
		t.Errorf("%s after it was shown %d times; %d more to show", card.State, card.Posts, len(o.timers(store.ShowTimers...)))
	}
	step := o.only(r.Turn, store.SurfaceStep)
	if step.State != store.SurfaceWanted || step.Want < 2 {
		t.Error("the asker's thread is not to link to the card")
	}
	o.show(step)
	o.approve(support, r.ID)
	if got := o.wanted(r.ID); got != "card channel:#support-approvals" {
		t.Errorf("after the approval, to be shown: %s", got)
	}
	if got := o.wanted(r.Turn); !contains(got, "step conversation:") {
		t.Errorf("after the approval, to be shown in the thread: %s", got)
	}
	card = o.show(o.only(r.ID, store.SurfaceCard))
	o.run(r.Execution, "ok")
	if got := o.wanted(r.ID); got != "card channel:#support-approvals" {
		t.Errorf("after the run, to be shown: %s", got)
	}
	card = o.show(o.surface(card.ID))
	if card.Posts != 3 {
		t.Errorf("%d versions were posted", card.Posts)
	}
	o.wantKinds(r.ID, "proposed shown decided approved shown executing executed returned shown")

	found, shown, err := o.Showing(o.ctx(), card.Channel, card.TS)
	o.ok(err)
	if found.ID != card.ID || shown.Post != 3 || shown.Hash != card.Hash ||
		shown.Of(r.ID) != (store.Shown{Request: r.ID, Digest: r.Digest, Whole: true, Since: o.clock.Now()}) {
		t.Errorf("the message shows %s, version %d, %s", found.ID, shown.Post, shown.Hash)
	}
	first, err := o.Rendering(o.ctx(), card.ID, 1)
	o.ok(err)
	if first.Hash == shown.Hash || len(first.Body) == 0 {
		t.Error("the first version was not kept")
	}
	if _, _, err := o.Showing(o.ctx(), "C1", "no such"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a message that shows nothing of ours: %v", err)
	}
}

// TestAChangeDuringTheShowing is not lost: what was rendered before it counts as the older version.
func TestAChangeDuringTheShowing(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	read := o.only(r.ID, store.SurfaceCard)
	o.approve(support, r.ID) // while Slack is being told
	after := o.show(read)
	if after.State != store.SurfaceWanted || after.Shown != read.Want || after.Want == read.Want || after.TS == "" {
		t.Errorf("%s, shown %d of %d", after.State, after.Shown, after.Want)
	}
	if _, ok := o.timers(store.ShowTimers...)[read.ID]; !ok {
		t.Error("the change will never be shown")
	}
	if after = o.show(after); after.State != store.SurfaceShown {
		t.Errorf("%s after the second showing", after.State)
	}
}

// A change of a message is under way while its place counts as lost, and Slack takes it: what changed meanwhile is shown, too.
func TestAShowingInAPlaceThatIsLost(t *testing.T) {
	for name, still := range map[string]bool{"something new": false, "nothing new": true} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			r := o.ask(`issue_refund {"amount":1}`)
			read := o.show(o.only(r.ID, store.SurfaceCard))
			o.approve(lead, r.ID) // the card shows it
			o.ok(o.Unreachable(o.ctx(), read.ID, "not_in_channel", "C1"))
			if still {
				o.ok(o.StillShown(o.ctx(), read))
			} else {
				o.ok(o.Shown(o.ctx(), read, o.posted(read)))
			}
			_, due := o.timers(read.Rank.Timer())[read.ID]
			if s := o.surface(read.ID); s.State != store.SurfaceWanted || !due {
				t.Errorf("it is %s, to be shown: %t", s.State, due)
			}
		})
	}
}

// TestATransactionIsOneChange however many things change in it: the request and the run here.
func TestATransactionIsOneChange(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	o.approve(support, r.ID)
	before := o.only(r.ID, store.SurfaceCard).Want
	if _, run, err := o.Claim(o.ctx(), r.Execution); err != nil || !run {
		t.Fatalf("run: %t, %v", run, err)
	}
	if now := o.only(r.ID, store.SurfaceCard).Want; now != before+1 {
		t.Errorf("version %d after version %d", now, before)
	}
}

func TestExpand(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`cancel_account {}`)
	role := o.only(r.ID, store.SurfaceCard)
	if role.To != "role:finance-director" {
		t.Fatalf("the card goes to %s", role.To)
	}
	o.ok(o.Expand(o.ctx(), role.ID, []string{"U0003", "U0004"}))
	o.ok(o.Expand(o.ctx(), role.ID, []string{"U0003", "U0004"})) // again, after a crash
	if got := o.wanted(r.ID); got != "card user:U0003, card user:U0004" {
		t.Errorf("to be shown: %s", got)
	}
	for _, s := range o.surfacesOf(r.ID) {
		if s.State == store.SurfaceWanted {
			o.show(s)
		}
	}
	o.approve(fin1, r.ID)
	if got := o.wanted(r.ID); got != "card user:U0003, card user:U0004" {
		t.Errorf("after the approval, to be shown: %s; every copy follows", got)
	}
}

func TestUnreachablePlacesAreReplaced(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	card := o.only(r.ID, store.SurfaceCard)
	for range 2 { // again, after a crash
		o.ok(o.Unreachable(o.ctx(), card.ID, "not_in_channel", ""))
		if got := o.wanted(r.ID); got != "card role:support-agent" {
			t.Errorf("to be shown: %s; want each member told", got)
		}
	}
	if s := o.surface(card.ID); s.State != store.SurfaceUnreachable || s.LastError != "not_in_channel" {
		t.Errorf("%s: %s", s.State, s.LastError)
	}
	role := o.surfacesOf(r.ID)[1]
	o.ok(o.Expand(o.ctx(), role.ID, nil)) // nobody can be written to
	if got := o.wanted(r.ID); got != "" {
		t.Errorf("to be shown: %s", got)
	}
	o.approve(support, r.ID)
	if got := o.wanted(r.ID); got != "" {
		t.Errorf("what Slack refused for good is to be shown again: %s", got)
	}

	step := o.only(r.Turn, store.SurfaceStep)
	o.ok(o.Unreachable(o.ctx(), step.ID, "channel_not_found", ""))
	if got := o.wanted(r.Turn); got != "step user:U0100" {
		t.Errorf("to be shown: %s; want the requester told", got)
	}
	o.run(r.Execution, "ok")
	if got := o.wanted(r.Turn); got != "step user:U0100" {
		t.Errorf("after the run, to be shown: %s", got)
	}
	o.ok(o.Unreachable(o.ctx(), "s_none", "x", ""))
}

// TestTheQuestionAboutARunFindsAnotherPlace: it names the execution wherever it is asked, and can be rendered there.
func TestTheQuestionAboutARunFindsAnotherPlace(t *testing.T) {
	o := newOffice(t)
	o.policy.Store(policy("policy-1", func(p *approvers.Policy) { p.Approvers[1].Cards = "#leads" }))
	r := o.ask(`issue_refund {"amount":1}`)
	o.ok(o.Unreachable(o.ctx(), o.only(r.ID, store.SurfaceCard).ID, "not_in_channel", "")) // the card went to the role already
	o.approve(lead, r.ID)
	_, _, err := o.Claim(o.ctx(), r.Execution)
	o.ok(err)
	o.ok(o.Lose(o.ctx(), r.Execution))
	for _, s := range o.surfacesOf(r.Execution) {
		o.ok(o.Unreachable(o.ctx(), s.ID, "channel_not_found", ""))
	}
	if got := o.wanted(r.Execution); got != "unknown role:team-lead, unknown user:U0100" && got != "unknown user:U0100, unknown role:team-lead" {
		t.Errorf("to be asked: %q; want the leads and the requester", got)
	}
	for _, s := range o.surfacesOf(r.Execution) {
		if sight, err := o.See(o.ctx(), s.ID); err != nil || sight.Execution == nil {
			t.Errorf("%s to %s can't be rendered: %v", s.Kind, s.To, err)
		}
	}
	for _, s := range o.surfacesOf(r.ID) {
		if s.Kind == store.SurfaceUnknown {
			t.Error("a question about a run names its request")
		}
	}
	o.ok(o.Report(o.ctx(), desk.Click{Execution: r.Execution, Who: lead}, desk.Happened))
	o.answer(r.Turn)
}

// TestEverySurfaceCanBeSeen renders nothing, but reads what each kind needs.
func TestEverySurfaceCanBeSeen(t *testing.T) {
	o := newOffice(t)
	turn := o.say(alice, "one").Turn
	cs := o.propose(turn, `search_orders {}`, `apply_discount {}`)
	o.say(bob, "two")
	o.clock.pass(escalateAfter)
	o.due()
	o.approve(support, cs[1].Request)
	_, _, err := o.Claim(o.ctx(), cs[1].Execution)
	o.ok(err)
	o.ok(o.Lose(o.ctx(), cs[1].Execution))
	o.run(cs[0].Execution, "found")
	o.ok(o.Report(o.ctx(), desk.Click{Execution: cs[1].Execution, Who: alice}, desk.DidNot))
	o.answer(turn)
	next := view(o, func(r store.Reader) (store.Conversation, error) { return r.Conversation(o.turn(turn).Conversation) }).Turn
	o.turns = append(o.turns, next)
	b := o.begin(next)
	o.ok(o.Stop(o.ctx(), next, b.Turn.Step, "The model can't be reached.", true))

	seen := map[store.SurfaceKind]bool{}
	for _, ref := range []string{turn, next, cs[1].Request, cs[1].Execution} {
		for _, s := range o.surfacesOf(ref) {
			sight, err := o.See(o.ctx(), s.ID)
			o.ok(err)
			seen[s.Kind] = true
			if sight.Conversation.Channel != "C0001" || sight.Policy == nil || sight.Turn.ID == "" {
				t.Errorf("%s: seen without its place", s.Kind)
			}
			switch s.Kind {
			case store.SurfaceCard, store.SurfaceEscalation, store.SurfaceUnknown:
				if sight.Request == nil || sight.Execution == nil || sight.Call == nil {
					t.Errorf("%s: request %v, execution %v, call %v", s.Kind, sight.Request, sight.Execution, sight.Call)
				}
			case store.SurfaceStep:
				if len(sight.Calls) != 2 || sight.Text != "Let me see." || sight.Calls[1].Request == nil || sight.Calls[0].Execution == nil {
					t.Errorf("step with %d calls, %q", len(sight.Calls), sight.Text)
				}
			case store.SurfaceAnswer:
				if sight.Text != "Done." {
					t.Errorf("answer %q", sight.Text)
				}
			case store.SurfaceProblem:
				if sight.Turn.Problem == "" || !sight.Turn.CanRetry {
					t.Errorf("problem %q", sight.Turn.Problem)
				}
			}
		}
	}
	for _, kind := range []store.SurfaceKind{
		store.SurfaceCard, store.SurfaceEscalation, store.SurfaceStep, store.SurfaceAnswer, store.SurfaceProblem, store.SurfaceQueued, store.SurfaceUnknown,
	} {
		if !seen[kind] {
			t.Errorf("no surface of kind %s came up", kind)
		}
	}
}

// TestStillShown: what looks the same is not sent again, and leaves no version and no record.
func TestStillShown(t *testing.T) {
	o := newOffice(t)
	r := o.ask(`apply_discount {}`)
	card := o.only(r.ID, store.SurfaceCard)
	p := o.posted(card)
	card.Channel, card.TS = "C0002", "300.1"
	o.ok(o.Shown(o.ctx(), card, p))
	kinds := o.kinds(r.ID)
	o.ok(o.StillShown(o.ctx(), o.surface(card.ID)))
	after := o.surface(card.ID)
	if !desk.Same(after, p.Body) || desk.Same(after, []byte("{}")) || after.Posts != 1 || after.State != store.SurfaceShown || o.kinds(r.ID) != kinds {
		t.Errorf("%+v, records %q", after, o.kinds(r.ID))
	}
	if _, due := o.timers(store.ShowTimers...)[card.ID]; due {
		t.Error("it is due to be shown again")
	}
	o.approve(support, r.ID) // a change meanwhile is shown
	o.ok(o.StillShown(o.ctx(), after))
	if s := o.surface(card.ID); s.State != store.SurfaceWanted || o.timers(store.ShowTimers...)[card.ID].Ref == "" {
		t.Errorf("a change meanwhile: %s", s.State)
	}
}
