package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/render"
	"countersign/store"
)

// buttonOn returns the value of a posted button.
func (h *harness) buttonOn(channel string, p posted, action string) render.ButtonToken {
	h.t.Helper()
	var m render.ButtonToken
	h.until("the card is recorded", func() bool {
		s, shown, err := h.workflow.Delivery(context.Background(), channel, p.TS)
		if err != nil || s.State != store.OutboxShown {
			return false
		}
		_, rest, found := strings.Cut(string(shown.Body), `"action_id":"`+action+`","value":"`)
		if !found {
			return false
		}
		value, _, _ := strings.Cut(rest, `"`)
		m, err = render.ParseButtonToken(value)
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
	if _, err := h.bot.receive(context.Background(), store.InboxInteraction, raw, time.Now()); err != nil {
		h.t.Fatal(err)
	}
}

// denials returns the codes of a request's denials, by action.
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

// A button that the bot did not post in this form decides nothing. Each forgery is refused with its own text, and
// recorded with every request that it names.
func TestForgedClicks(t *testing.T) {
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.finds("sam", "#support", root, "Waits for")
	other := h.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-9","amount":5}`)
	card2 := h.finds("teo", "#support-approvals", "", "ORD-9")
	step := h.finds("sam", "#support", other, "Waits for")
	h.quiet()
	m, m2 := h.buttonOn("C0002", card, render.ActApprove), h.buttonOn("C0002", card2, render.ActApprove)
	asked := h.buttonOn("C0001", step, render.ActWithdraw)
	with := func(change func(*render.ButtonToken)) string {
		forged := m
		change(&forged)
		return forged.String()
	}
	good := click{"U0002", "T0001", "C0002", card.TS, render.ActApprove, m.String()}
	for name, c := range map[string]struct {
		change func(*click)
		words  string
		code   approvers.Code
		named  []string // requests with a record of it
	}{
		"another print":   {func(c *click) { c.value = with(func(m *render.ButtonToken) { m.Print = "0000000000000000" }) }, "being drawn anew", approvers.DeniedUnrecorded, []string{m.Ref}},
		"a later version": {func(c *click) { c.value = with(func(m *render.ButtonToken) { m.Post += 7 }) }, "being drawn anew", approvers.DeniedUnrecorded, []string{m.Ref}},
		"another request": {func(c *click) { c.value = with(func(m *render.ButtonToken) { m.Ref = m2.Ref }) }, "nothing that I put there", approvers.DeniedForged, []string{m.Ref, m2.Ref}},
		"another surface": {func(c *click) {
			c.value = with(func(m *render.ButtonToken) { m.Message, m.Post = m2.Message, m2.Post })
		}, "nothing that I put there", approvers.DeniedForged, []string{m.Ref, m2.Ref}},
		"the asker's surface": {func(c *click) {
			c.value = with(func(m *render.ButtonToken) { m.Message, m.Post = asked.Message, asked.Post })
		}, "nothing that I put there", approvers.DeniedForged, []string{m.Ref}},
		"no such surface":          {func(c *click) { c.value = with(func(m *render.ButtonToken) { m.Message = "s_none" }) }, "don't know this request any more", approvers.DeniedNotFound, []string{m.Ref}},
		"no such request":          {func(c *click) { c.value = with(func(m *render.ButtonToken) { m.Ref = "req_none" }) }, "nothing that I put there", approvers.DeniedForged, []string{m.Ref}},
		"no mark at all":           {func(c *click) { c.value = "approve everything" }, "nothing that I put there", "", nil},
		"another button":           {func(c *click) { c.action = render.ActTyped }, "nothing that I put there", approvers.DeniedForged, []string{m.Ref}},
		"a button of another card": {func(c *click) { c.action, c.value = render.ActApprove, asked.String() }, "nothing that I put there", approvers.DeniedForged, []string{m2.Ref}},
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
				t.Errorf("he is told %q", all[len(all)-1].Text)
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
		if r, err := h.workflow.Request(context.Background(), id); err != nil || r.State != approvers.Pending || len(r.Decisions) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if strings.Contains(h.log.String(), "panicked") {
		t.Error(h.log.String())
	}
	h.delivers("good", good)
	h.finds("sam", "#support", root, "results: executed")
	h.delivers("late", good) // on a decided request
	h.finds("teo", "#support-approvals", "", "Too late: <@U0002>")
	if codes := h.denials(m.Ref); !strings.HasPrefix(codes[len(codes)-1], string(approvers.DeniedResolved)) {
		t.Errorf("the last record says %q", codes[len(codes)-1])
	}
}

// Forged forms, and forms from elsewhere, decide nothing either.
func TestForgedForms(t *testing.T) {
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	m := h.buttonOn("C0002", card, render.ActReject)
	r, err := h.workflow.Request(context.Background(), m.Ref)
	if err != nil {
		t.Fatal(err)
	}
	good := render.FormToken{ButtonToken: m, Execution: r.Execution}
	forged, elsewhere := good, good
	forged.Print = "0000000000000000"
	elsewhere.Ref = "req_none"
	for name, c := range map[string]struct{ team, callback, metadata, words string }{
		"no mark":           {"T0001", render.ActReject, "reject everything", "nothing that I put there"},
		"another print":     {"T0001", render.ActReject, forged.String(), "being drawn anew"},
		"no such request":   {"T0001", render.ActReject, elsewhere.String(), "nothing that I put there"},
		"another workspace": {"T0999", render.ActReject, good.String(), "another workspace"},
	} {
		raw, err := json.Marshal(map[string]any{
			"type": "view_submission", "trigger_id": "y." + name, "user": map[string]string{"id": "U0002"}, "team": map[string]string{"id": c.team},
			"view": map[string]any{"id": "V1", "callback_id": c.callback, "private_metadata": c.metadata, "state": map[string]any{"values": map[string]any{
				render.FieldReason: map[string]any{render.FieldReason: map[string]string{"type": "plain_text_input", "value": "no"}}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		seen := len(h.sees("teo", "U0BOT", ""))
		if _, err := h.bot.receive(context.Background(), store.InboxInteraction, raw, time.Now()); err != nil {
			t.Fatal(err)
		}
		h.until(name+": he is told", func() bool { return len(h.sees("teo", "U0BOT", "")) > seen })
		if all := h.sees("teo", "U0BOT", ""); !strings.Contains(all[len(all)-1].Text, c.words) {
			t.Errorf("%s: he is told %q", name, all[len(all)-1].Text)
		}
	}
	if r, err = h.workflow.Request(context.Background(), m.Ref); err != nil || r.State != approvers.Pending || len(r.Decisions) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if strings.Contains(h.log.String(), "panicked") {
		t.Error(h.log.String())
	}
}
