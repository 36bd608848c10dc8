package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// buttonOn is the value of a button as it was posted.
func (w *workbench) buttonOn(channel string, p posted, action string) mark {
	w.t.Helper()
	var m mark
	w.until("the card is recorded", func() bool {
		s, shown, err := w.desk.Showing(context.Background(), channel, p.TS)
		if err != nil || s.State != store.SurfaceShown {
			return false
		}
		_, rest, found := strings.Cut(string(shown.Body), `"action_id":"`+action+`","value":"`)
		if !found {
			return false
		}
		value, _, _ := strings.Cut(rest, `"`)
		m, err = readMark(value)
		return err == nil
	})
	return m
}

// click is a click as Slack would deliver it.
type click struct {
	user, team, channel, ts, action, value string
}

func (w *workbench) delivers(name string, c click) {
	w.t.Helper()
	raw, err := json.Marshal(map[string]any{
		"type": "block_actions", "trigger_id": "x." + name, "user": map[string]string{"id": c.user}, "team": map[string]string{"id": c.team},
		"container": map[string]string{"channel_id": c.channel, "message_ts": c.ts}, "actions": []any{map[string]string{"action_id": c.action, "value": c.value}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.bot.receive(context.Background(), store.InboxInteraction, raw, time.Now()); err != nil {
		w.t.Fatal(err)
	}
}

// denials are the codes of a request's denials, by the action.
func (w *workbench) denials(request string) (codes []string) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(r store.Reader) error {
		records, err := r.Audit(request)
		for _, a := range records {
			if a.Kind == approvers.AuditDenied {
				codes = append(codes, a.Facts["code"]+" "+string(a.Actor)+" "+a.Facts["channel"]+" "+a.Facts["message"])
			}
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return codes
}

// What is no button of the bot's as it was posted decides nothing, whoever clicks it: each is refused in its own words, and recorded with every request
// that it names.
func TestForgedClicks(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.finds("sam", "#support", root, "Waits for")
	other := w.says("sam", "#support", `@bot call issue_refund {"order_id":"ORD-9","amount":5}`)
	card2 := w.finds("teo", "#support-approvals", "", "ORD-9")
	step := w.finds("sam", "#support", other, "Waits for")
	w.quiet()
	m, m2 := w.buttonOn("C0002", card, actApprove), w.buttonOn("C0002", card2, actApprove)
	asked := w.buttonOn("C0001", step, actWithdraw)
	with := func(change func(*mark)) string {
		forged := m
		change(&forged)
		return forged.String()
	}
	good := click{"U0002", "T0001", "C0002", card.TS, actApprove, m.String()}
	for name, c := range map[string]struct {
		change func(*click)
		words  string
		code   approvers.Code
		named  []string // requests that have a record of it
	}{
		"another print":            {func(c *click) { c.value = with(func(m *mark) { m.Print = "0000000000000000" }) }, "being drawn anew", approvers.DeniedUnrecorded, []string{m.Ref}},
		"a later version":          {func(c *click) { c.value = with(func(m *mark) { m.Post += 7 }) }, "being drawn anew", approvers.DeniedUnrecorded, []string{m.Ref}},
		"another request":          {func(c *click) { c.value = with(func(m *mark) { m.Ref = m2.Ref }) }, "nothing that I put there", approvers.DeniedForged, []string{m.Ref, m2.Ref}},
		"another surface":          {func(c *click) { c.value = with(func(m *mark) { m.Surface, m.Post = m2.Surface, m2.Post }) }, "nothing that I put there", approvers.DeniedForged, []string{m.Ref, m2.Ref}},
		"the asker's surface":      {func(c *click) { c.value = with(func(m *mark) { m.Surface, m.Post = asked.Surface, asked.Post }) }, "nothing that I put there", approvers.DeniedForged, []string{m.Ref}},
		"no such surface":          {func(c *click) { c.value = with(func(m *mark) { m.Surface = "s_none" }) }, "don't know this request any more", approvers.DeniedNotFound, []string{m.Ref}},
		"no such request":          {func(c *click) { c.value = with(func(m *mark) { m.Ref = "req_none" }) }, "nothing that I put there", approvers.DeniedForged, []string{m.Ref}},
		"no mark at all":           {func(c *click) { c.value = "approve everything" }, "nothing that I put there", "", nil},
		"another button":           {func(c *click) { c.action = actTyped }, "nothing that I put there", approvers.DeniedForged, []string{m.Ref}},
		"a button of another card": {func(c *click) { c.action, c.value = actApprove, asked.String() }, "nothing that I put there", approvers.DeniedForged, []string{m2.Ref}},
		"another message":          {func(c *click) { c.ts = "1.1" }, "is a copy", approvers.DeniedCopied, []string{m.Ref}},
		"another channel":          {func(c *click) { c.channel = "C0001" }, "is a copy", approvers.DeniedCopied, []string{m.Ref}},
		"the other card's message": {func(c *click) { c.ts = card2.TS }, "is a copy", approvers.DeniedCopied, []string{m.Ref}},
		"another workspace":        {func(c *click) { c.team = "T0999" }, "another workspace", approvers.DeniedWorkspace, []string{m.Ref}},
		"no workspace":             {func(c *click) { c.team = "" }, "another workspace", approvers.DeniedWorkspace, []string{m.Ref}},
	} {
		t.Run(name, func(t *testing.T) {
			before := map[string]int{m.Ref: len(w.denials(m.Ref)), m2.Ref: len(w.denials(m2.Ref))}
			seen := len(w.sees("teo", "U0BOT", "")) + len(w.sees("teo", "#support-approvals", "")) + len(w.sees("teo", "#support", ""))
			forged := good
			c.change(&forged)
			w.delivers(name, forged)
			w.until("he is told", func() bool {
				return seen < len(w.sees("teo", "U0BOT", ""))+len(w.sees("teo", "#support-approvals", ""))+len(w.sees("teo", "#support", ""))
			})
			place := map[bool]string{true: "#support", false: "#support-approvals"}[forged.channel == "C0001"]
			if all := w.sees("teo", place, ""); !strings.Contains(all[len(all)-1].Text, c.words) {
				t.Errorf("he is told %q", all[len(all)-1].Text)
			}
			for request, n := range before {
				now := w.denials(request)[n:]
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
		if r, err := w.desk.Request(context.Background(), id); err != nil || r.State != approvers.Pending || len(r.Decisions) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if strings.Contains(w.log.String(), "panicked") {
		t.Error(w.log.String())
	}
	w.delivers("good", good)
	w.finds("sam", "#support", root, "results: executed")
	w.delivers("late", good) // on what is resolved
	w.finds("teo", "#support-approvals", "", "Too late: <@U0002>")
	if codes := w.denials(m.Ref); !strings.HasPrefix(codes[len(codes)-1], string(approvers.DeniedResolved)) {
		t.Errorf("the last record says %q", codes[len(codes)-1])
	}
}

// Forms that were made up, or come from elsewhere, decide nothing either.
func TestForgedForms(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.quiet()
	m := w.buttonOn("C0002", card, actReject)
	r, err := w.desk.Request(context.Background(), m.Ref)
	if err != nil {
		t.Fatal(err)
	}
	good := formMark{mark: m, Execution: r.Execution}
	forged, elsewhere := good, good
	forged.Print = "0000000000000000"
	elsewhere.Ref = "req_none"
	for name, c := range map[string]struct{ team, callback, metadata, words string }{
		"no mark":           {"T0001", actReject, "reject everything", "nothing that I put there"},
		"another print":     {"T0001", actReject, forged.String(), "being drawn anew"},
		"no such request":   {"T0001", actReject, elsewhere.String(), "nothing that I put there"},
		"another workspace": {"T0999", actReject, good.String(), "another workspace"},
	} {
		raw, err := json.Marshal(map[string]any{
			"type": "view_submission", "trigger_id": "y." + name, "user": map[string]string{"id": "U0002"}, "team": map[string]string{"id": c.team},
			"view": map[string]any{"id": "V1", "callback_id": c.callback, "private_metadata": c.metadata, "state": map[string]any{"values": map[string]any{
				fieldReason: map[string]any{fieldReason: map[string]string{"type": "plain_text_input", "value": "no"}}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		seen := len(w.sees("teo", "U0BOT", ""))
		if _, err := w.bot.receive(context.Background(), store.InboxInteraction, raw, time.Now()); err != nil {
			t.Fatal(err)
		}
		w.until(name+": he is told", func() bool { return len(w.sees("teo", "U0BOT", "")) > seen })
		if all := w.sees("teo", "U0BOT", ""); !strings.Contains(all[len(all)-1].Text, c.words) {
			t.Errorf("%s: he is told %q", name, all[len(all)-1].Text)
		}
	}
	if r, err = w.desk.Request(context.Background(), m.Ref); err != nil || r.State != approvers.Pending || len(r.Decisions) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if strings.Contains(w.log.String(), "panicked") {
		t.Error(w.log.String())
	}
}
