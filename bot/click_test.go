package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/retention"
	"countersign/approvers/workflow/settings"
	"countersign/bot/render/control"
	"countersign/store"
)

// buttonOn returns the value of a posted button.
func (h *harness) buttonOn(channel string, p posted, action string) control.ButtonToken {
	h.t.Helper()
	var m control.ButtonToken
	h.until("the card is recorded", func() bool {
		s, shown, err := h.workflow.Views.Delivery(context.Background(), channel, p.TS)
		if err != nil || s.State != store.OutboxShown {
			return false
		}
		_, rest, found := strings.Cut(string(shown.Body), `"action_id":"`+action+`","value":"`)
		if !found {
			return false
		}
		value, _, _ := strings.Cut(rest, `"`)
		m, err = control.ParseButtonToken(value)
		return err == nil
	})
	return m
}

// click is a click in Slack's format.
type click struct {
	user, team, channel, ts, action, value string
}

func (h *harness) delivers(name string, c click) {
	h.t.Helper()
	raw, err := json.Marshal(map[string]any{
		"type": "block_actions", "trigger_id": "x." + name, "user": map[string]string{"id": c.user}, "team": map[string]string{"id": c.team},
		"container": map[string]string{"channel_id": c.channel, "message_ts": c.ts}, "actions": []any{map[string]string{"action_id": c.action, "value": c.value}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.receive(store.InboxInteraction, raw); err != nil {
		h.t.Fatal(err)
	}
}

// denials lists a request's denials. Each entry has the code, the person, the channel, and the ts of the message.
func (h *harness) denials(request string) (codes []string) {
	h.t.Helper()
	err := h.store.View(context.Background(), func(r store.Reader) error {
		records, err := r.Audit(request)
		for _, a := range records {
			if a.Kind == approvers.AuditDenied {
				codes = append(codes, a.Facts["code"]+" "+string(a.Actor)+" "+a.Facts["channel"]+" "+a.Facts["message"])
			}
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return codes
}

// A click on a button that the bot did not post decides nothing. Each forgery is refused with its own text, and is
// recorded for every request that it names.
func TestForgedClicks(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.finds("sam", "#support", root, "Waits for")
	other := h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-9","amount":5}`)
	card2 := h.finds("teo", "#support-approvals", "", "ORD-9")
	step := h.finds("sam", "#support", other, "Waits for")
	h.quiet()
	m, m2 := h.buttonOn("C0002", card, control.ActApprove), h.buttonOn("C0002", card2, control.ActApprove)
	asked := h.buttonOn("C0001", step, control.ActWithdraw)
	with := func(change func(*control.ButtonToken)) string {
		forged := m
		change(&forged)
		return forged.String()
	}
	good := click{"U0002", "T0001", "C0002", card.TS, control.ActApprove, m.String()}
	for name, c := range map[string]struct {
		change func(*click)
		words  string
		code   approvers.Code
		named  []string // requests whose history records the click
	}{
		"another print":   {func(c *click) { c.value = with(func(m *control.ButtonToken) { m.Print = "0000000000000000" }) }, "the message changed while you clicked", approvers.DeniedUnrecorded, []string{m.Ref}},
		"a later version": {func(c *click) { c.value = with(func(m *control.ButtonToken) { m.Post += 7 }) }, "the message changed while you clicked", approvers.DeniedUnrecorded, []string{m.Ref}},
		"another request": {func(c *click) { c.value = with(func(m *control.ButtonToken) { m.Ref = m2.Ref }) }, "I did not make the button that you clicked", approvers.DeniedForged, []string{m.Ref, m2.Ref}},
		"another outbox message": {func(c *click) {
			c.value = with(func(m *control.ButtonToken) { m.Message, m.Post = m2.Message, m2.Post })
		}, "I did not make the button that you clicked", approvers.DeniedForged, []string{m.Ref, m2.Ref}},
		"the asker's outbox message": {func(c *click) {
			c.value = with(func(m *control.ButtonToken) { m.Message, m.Post = asked.Message, asked.Post })
		}, "I did not make the button that you clicked", approvers.DeniedForged, []string{m.Ref}},
		"no such outbox message":   {func(c *click) { c.value = with(func(m *control.ButtonToken) { m.Message = "s_none" }) }, "don't know this request any more", approvers.DeniedNotFound, []string{m.Ref}},
		"no such request":          {func(c *click) { c.value = with(func(m *control.ButtonToken) { m.Ref = "req_none" }) }, "I did not make the button that you clicked", approvers.DeniedForged, []string{m.Ref}},
		"no token at all":          {func(c *click) { c.value = "approve everything" }, "I did not make the button that you clicked", "", nil},
		"another button":           {func(c *click) { c.action = control.ActTyped }, "I did not make the button that you clicked", approvers.DeniedForged, []string{m.Ref}},
		"a button of another card": {func(c *click) { c.action, c.value = control.ActApprove, asked.String() }, "I did not make the button that you clicked", approvers.DeniedForged, []string{m2.Ref}},
		"another message":          {func(c *click) { c.ts = "1.1" }, "is a copy", approvers.DeniedCopied, []string{m.Ref}},
		"another channel":          {func(c *click) { c.channel = "C0001" }, "is a copy", approvers.DeniedCopied, []string{m.Ref}},
		"the other card's message": {func(c *click) { c.ts = card2.TS }, "is a copy", approvers.DeniedCopied, []string{m.Ref}},
		"another workspace":        {func(c *click) { c.team = "T0999" }, "another workspace", approvers.DeniedWorkspace, []string{m.Ref}},
		"no workspace":             {func(c *click) { c.team = "" }, "another workspace", approvers.DeniedWorkspace, []string{m.Ref}},
	} {
		t.Run(name, func(t *testing.T) {
			before := map[string]int{m.Ref: len(h.denials(m.Ref)), m2.Ref: len(h.denials(m2.Ref))}
			seen := len(h.sees("teo", "U0BOT", "")) + len(h.sees("teo", "#support-approvals", "")) + len(h.sees("teo", "#support", ""))
			forged := good
			c.change(&forged)
			h.delivers(name, forged)
			h.until("he is told", func() bool {
				return seen < len(h.sees("teo", "U0BOT", ""))+len(h.sees("teo", "#support-approvals", ""))+len(h.sees("teo", "#support", ""))
			})
			place := map[bool]string{true: "#support", false: "#support-approvals"}[forged.channel == "C0001"]
			if all := h.sees("teo", place, ""); !strings.Contains(all[len(all)-1].Text, c.words) {
				t.Errorf("the person is told %q", all[len(all)-1].Text)
			}
			for request, n := range before {
				now := h.denials(request)[n:]
				want := 0
				for _, id := range c.named {
					if id == request {
						want++
					}
				}
				if len(now) != want {
					t.Errorf("%d records of it, %q; want %d", len(now), now, want)
				}
				for _, record := range now {
					if record != fmt.Sprintf("%s T0001/U0002 %s %s", c.code, forged.channel, forged.ts) {
						t.Errorf("the record says %q", record)
					}
				}
			}
		})
	}
	for _, id := range []string{m.Ref, m2.Ref} {
		if r, err := h.workflow.Views.Request(context.Background(), id); err != nil || r.State != approvers.Pending || len(r.Decisions) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if strings.Contains(h.log.String(), "panicked") {
		t.Error(h.log.String())
	}
	h.delivers("good", good)
	h.finds("sam", "#support", root, "results: executed")
	h.delivers("late", good) // a click on a decided request
	h.finds("teo", "#support-approvals", "", "Too late: <@U0002>")
	if codes := h.denials(m.Ref); !strings.HasPrefix(codes[len(codes)-1], string(approvers.DeniedResolved)) {
		t.Errorf("the last record says %q", codes[len(codes)-1])
	}
}

// A forged form decides nothing. A form from another workspace also decides nothing.
func TestForgedForms(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	m := h.buttonOn("C0002", card, control.ActReject)
	r, err := h.workflow.Views.Request(context.Background(), m.Ref)
	if err != nil {
		t.Fatal(err)
	}
	good := control.FormToken{ButtonToken: m, Execution: r.Execution}
	forged, elsewhere := good, good
	forged.Print = "0000000000000000"
	elsewhere.Ref = "req_none"
	for name, c := range map[string]struct{ team, callback, metadata, words string }{
		"no token":          {"T0001", control.ActReject, "reject everything", "I did not make the button that you clicked"},
		"another print":     {"T0001", control.ActReject, forged.String(), "the message changed while you clicked"},
		"no such request":   {"T0001", control.ActReject, elsewhere.String(), "I did not make the button that you clicked"},
		"another workspace": {"T0999", control.ActReject, good.String(), "another workspace"},
	} {
		raw, err := json.Marshal(map[string]any{
			"type": "view_submission", "trigger_id": "y." + name, "user": map[string]string{"id": "U0002"}, "team": map[string]string{"id": c.team},
			"view": map[string]any{"id": "V1", "callback_id": c.callback, "private_metadata": c.metadata, "state": map[string]any{"values": map[string]any{
				control.FieldReason: map[string]any{control.FieldReason: map[string]string{"type": "plain_text_input", "value": "no"}}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		seen := len(h.sees("teo", "U0BOT", ""))
		if _, err := h.receive(store.InboxInteraction, raw); err != nil {
			t.Fatal(err)
		}
		h.until(name+": he is told", func() bool { return len(h.sees("teo", "U0BOT", "")) > seen })
		if all := h.sees("teo", "U0BOT", ""); !strings.Contains(all[len(all)-1].Text, c.words) {
			t.Errorf("%s: the person is told %q", name, all[len(all)-1].Text)
		}
	}
	if r, err = h.workflow.Views.Request(context.Background(), m.Ref); err != nil || r.State != approvers.Pending || len(r.Decisions) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if strings.Contains(h.log.String(), "panicked") {
		t.Error(h.log.String())
	}
}

// Slack may show a version that the bot never recorded. This happens if the bot stops before it records the version,
// and the state changes before the bot redraws the message. A click on that version decides nothing, because the bot
// does not know the content of the version. Such a click is not a forgery. The person is told that the click did not
// count. The message is redrawn, and the next click counts.
func TestClickOnWhatWasNeverRecorded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	m := h.buttonOn("C0002", card, control.ActApprove)
	message, _, err := h.workflow.Views.Delivery(context.Background(), "C0002", card.TS)
	if err != nil {
		t.Fatal(err)
	}
	unrecorded := m
	unrecorded.Print = "feedfacefeedface"
	h.delivers("on the unrecorded", click{"U0002", "T0001", "C0002", card.TS, control.ActApprove, unrecorded.String()})
	h.finds("teo", "#support-approvals", "", "Please look at it again and click once more")
	h.until("it is drawn again", func() bool {
		s, _, err := h.workflow.Views.Delivery(context.Background(), "C0002", card.TS)
		return err == nil && s.Posts > message.Posts
	})
	if r, err := h.workflow.Views.Request(context.Background(), m.Ref); err != nil || r.State != approvers.Pending || len(r.Decisions) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	h.quiet()
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	h.quiet()
	s, shown, err := h.workflow.Views.Delivery(context.Background(), "C0002", card.TS)
	if err != nil {
		t.Fatal(err)
	}
	unrecorded.Post = shown.Post // the recorded version has no button for the decided request
	h.delivers("once it is decided", click{"U0002", "T0001", "C0002", card.TS, control.ActApprove, unrecorded.String()})
	h.until("it is recorded", func() bool { return len(h.denials(m.Ref)) == 2 })
	for _, d := range h.denials(m.Ref) {
		if want := string(approvers.DeniedUnrecorded) + " T0001/U0002 C0002 " + card.TS; d != want {
			t.Errorf("recorded %q, want %q", d, want)
		}
	}
	h.until("it is drawn again once more", func() bool {
		now, _, err := h.workflow.Views.Delivery(context.Background(), "C0002", card.TS)
		return err == nil && now.Posts > s.Posts
	})
	h.delivers("on a copy", click{"U0002", "T0001", "C0002", "1.000001", control.ActApprove, unrecorded.String()})
	h.finds("teo", "#support-approvals", "", "the message that you clicked is a copy")
	unrecorded.Ref = "req_none" // this subject was never on the outbox message, so the click is a forgery
	h.delivers("about something else", click{"U0002", "T0001", "C0002", card.TS, control.ActApprove, unrecorded.String()})
	h.finds("teo", "#support-approvals", "", "I did not make the button that you clicked")
}

// After an erasure, the first click on Details… opens the form, and is not recorded as a refused attempt. A click on
// another button of the erased version is refused.
func TestDetailsAfterErasure(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	h.clicks("teo", "#support-approvals", h.finds("teo", "#support-approvals", "", "Waits for Team Lead"), control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	h.quiet()
	card := h.finds("ada", "#support-approvals", "", "Approved")
	m := h.buttonOn("C0002", card, control.ActArguments)
	if _, err := retention.Erase(context.Background(), h.workflow, m.Ref, approvers.Operator("root"), "asked to"); err != nil {
		t.Fatal(err)
	}
	h.clicks("ada", "#support-approvals", card, control.ActArguments)
	if said := fmt.Sprint(h.opened("ada", control.ActArguments)); !strings.Contains(said, "(erased)") || !strings.Contains(said, "Its texts were erased.") {
		t.Errorf("Details… says %s", said)
	}
	h.quiet()
	if denied := h.denials(m.Ref); len(denied) > 0 {
		t.Errorf("recorded as refused: %v", denied)
	}
	h.delivers("a decision on the erased version", click{"U0002", "T0001", "C0002", card.TS, control.ActApprove, m.String()})
	h.until("it is recorded", func() bool { return len(h.denials(m.Ref)) == 1 })
	h.finds("teo", "#support-approvals", "", "The texts of this call were erased")
	if denied := h.denials(m.Ref); !strings.HasPrefix(denied[0], string(approvers.DeniedNotFound)) {
		t.Errorf("recorded as %v", denied)
	}
}

// After retention, the form of Details… says that the texts were erased.
func TestDetailsAfterRetention(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	h.quiet()
	h.stop()
	retain(t, h.path, approvers.Retention{Conversations: time.Hour}, 2*time.Hour)
	h.start()
	h.clicks("teo", "#support-approvals", h.finds("teo", "#support-approvals", "", "Approved"), control.ActArguments)
	h.until("the form says so", func() bool {
		return strings.Contains(fmt.Sprint(h.call("GET", "/people/teo/views", nil)["views"]), "The texts of this call were erased")
	})
}

// If the risk is high or critical, the bot looks up the person in Slack at each click. For a lower risk, Slack's answer
// from the last minute is sufficient, unless the policy has changed or arguments are edited.
func TestWhenSlackIsAskedAnew(t *testing.T) {
	t.Parallel()
	s := newAttackHarness(t)
	var asked atomic.Int32
	s.tap.answering("users.info", func(url.Values) string { asked.Add(1); return "" })
	times := func(what string, p payload, want bool) {
		t.Helper()
		if _, err := s.bot.users.User(t.Context(), p["user"].(payload)["id"].(string), false); err != nil { // fills the cache
			t.Fatal(err)
		}
		s.quiet()
		before := asked.Load()
		s.send(p)
		s.quiet()
		if again := asked.Load() > before; again != want {
			t.Errorf("%s: asked again: %t, want %t", what, again, want)
		}
	}
	outsider := "U0004" // the bot refuses this person, so the request stays unchanged
	times("medium risk", s.address().press(outsider, control.ActApprove), false)
	times("high risk", s.refund().press(outsider, control.ActApprove), true)
	address := s.address()
	times("a change", address.form(outsider, control.ActModify, s.filled(address, 0), map[string]string{"arg.order_id": `"ORD-1"`}), true)
	s.changes(func(p *approvers.Policy) { p.Caps.Approver = 500 })
	times("medium risk, by another policy", address.press(outsider, control.ActApprove), true)
}

// People rate an answer with the buttons below it. A second click changes the rating. Guests are told that their
// ratings do not count.
func TestRatingAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", "@bot hello")
	answer := h.finds("sam", "#support", root, "results:")
	rate := func(user, begins string) {
		t.Helper()
		_, rest, ok := strings.Cut(answer.raw, `"value":"`+begins)
		value, _, _ := strings.Cut(rest, `"`)
		if !ok {
			t.Fatalf("no button %s in %s", begins, answer.raw)
		}
		out := h.call("POST", "/people/"+user+"/actions", map[string]any{"channel": "#support", "ts": answer.TS, "action_id": control.ActFeedback, "value": begins + value})
		if out["ok"] != true {
			t.Fatalf("%s could not rate it: %v", user, out)
		}
	}
	want := func(good, poor int) {
		t.Helper()
		h.until("the ratings are as they should be", func() bool {
			got, err := h.workflow.Views.Feedback(t.Context())
			return err == nil && got["support"] == settings.Feedback{Good: good, Poor: poor}
		})
	}
	rate("sam", control.FeedbackGood)
	want(1, 0)
	rate("sam", control.FeedbackPoor)
	want(0, 1)
	h.finds("sam", "#support", root, "Noted, thank you. If something should be done differently")
	rate("ada", control.FeedbackPoor)
	want(0, 2)
	rate("gus", control.FeedbackGood)
	h.finds("gus", "#support", root, "Only those who may ask the agent can rate its answers.")
	want(0, 2)
	h.stop()
	h.start()
	rate("sam", control.FeedbackGood)
	want(1, 1)
}
