package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/bot/render/home"
	"countersign/store"
)

// looks opens a person's Home tab and waits until the tab shows the given texts. A text that begins with "-" must not
// be on the tab.
func (h *harness) looks(user string, words ...string) posted {
	h.t.Helper()
	h.call("GET", "/people/"+user+"/home", nil)
	return h.atHome(user, words...)
}

// atHome is like looks, but does not open the tab.
func (h *harness) atHome(user string, words ...string) posted {
	h.t.Helper()
	var raw string
	defer func() {
		if h.t.Failed() {
			h.t.Log(raw)
		}
	}()
	h.until(fmt.Sprintf("%s's Home tab shows %q", user, words), func() bool {
		modal, _ := h.call("GET", "/people/"+user+"/home?quiet=true", nil)["view"].(map[string]any)
		b, err := json.Marshal(modal["blocks"])
		if err != nil || modal == nil {
			return false
		}
		raw = string(b)
		for _, word := range words {
			if unwanted, no := strings.CutPrefix(word, "-"); strings.Contains(raw, unwanted) == no {
				return false
			}
		}
		return true
	})
	return posted{raw: raw}
}

// clicksHome presses a button on a person's Home tab. The parameter where is the prefix of the block id of the button's
// row.
func (h *harness) clicksHome(user, where, action string) {
	h.t.Helper()
	modal, _ := h.call("GET", "/people/"+user+"/home?quiet=true", nil)["view"].(map[string]any)
	blocks, _ := modal["blocks"].([]any)
	for _, b := range blocks {
		raw, _ := json.Marshal(b)
		id, _ := b.(map[string]any)["block_id"].(string)
		if strings.HasPrefix(id, where) && strings.Contains(string(raw), `"action_id":"`+action+`"`) {
			if out := h.call("POST", "/people/"+user+"/actions", map[string]any{"view_id": "home", "block_id": id, "action_id": action}); out["ok"] != true {
				h.t.Fatalf("%s could not click %s: %v", user, action, out)
			}
			return
		}
	}
	h.t.Fatalf("%s has no button %s at %q", user, action, where)
}

// A Home tab lists the requests that wait for a person. The person can decide them from the tab, in the form that shows
// all arguments. The decision is recorded with the rendering that the person saw, and the Home tab is updated.
func TestHomeApproves(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.looks("teo", "Nothing waits for you", "While you are away")
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r := h.asked("C0002", card)
	shown := h.atHome("teo", "Waits for you: 1", "Refund for order ORD-123", "amount:   49.990", `"See the card"`)
	if strings.Contains(shown.raw, `"action_id":"approve"`) {
		t.Error("it can be approved without opening the arguments")
	}
	h.looks("sam", "You asked for: 1", "Refund for order ORD-123")
	h.looks("ingrid", "Nothing waits for you")
	h.clicksHome("teo", r.ID, control.ActArguments)
	form := h.opened("teo", control.ActArguments)
	if out := h.submits("teo", form, nil); out["ok"] != true {
		t.Fatal(out)
	}
	h.finds("teo", "#support-approvals", "", "Approved by", "It ran")
	h.finds("sam", "#support", root, "results: executed")
	h.atHome("teo", "Nothing waits for you", "Decided lately", `"Approved"`, "-"+control.ActReject)
	h.atHome("sam", "-You asked for")
	h.wantShown(r.ID)
}

// If a new policy changes a stage in a way that a Home tab does not show, the bot sends the tab again. The buttons of
// the new version work.
func TestHomeOfAnotherStage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	r := h.asked("C0002", h.finds("teo", "#support-approvals", "", "Waits for Team Lead"))
	h.looks("teo", "Waits for you: 1")
	h.isShownAgain(store.OutboxHome, store.HomeRef("U0002"), func() { h.escalatesAfter(time.Hour) })
	h.clicksHome("teo", r.ID, control.ActReject)
	if out := h.submits("teo", h.opened("teo", control.ActReject), map[string]any{control.FieldReason: "not this one"}); out["ok"] != true {
		t.Fatal(out)
	}
	h.finds("teo", "#support-approvals", "", "Rejected by", "not this one")
}

// escalatesAfter puts a policy into force that changes the stage of refunds. Neither a card nor a Home tab shows the
// change.
func (h *harness) escalatesAfter(d time.Duration) {
	h.t.Helper()
	p := bottest.Policy()
	p.Hash = "escalates after " + d.String()
	p.Tools[toolIndex(p, "issue_refund")].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1, EscalateAfter: d}}
	h.setPolicy(p)
	if err := h.workflow.Requests.Reevaluate(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

// isShownAgain calls do, and then waits until the store has a new version of an outbox message.
func (h *harness) isShownAgain(kind store.OutboxKind, ref string, do func()) {
	h.t.Helper()
	posts := func() (n uint64) {
		err := h.store.View(context.Background(), func(r store.Reader) error {
			list, err := r.OutboxMessagesOf(ref)
			for _, s := range list {
				if s.Kind == kind {
					n = s.Posts
				}
			}
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
		return n
	}
	var before uint64
	h.until("the message is recorded", func() bool { before = posts(); return before > 0 })
	do()
	h.until("the message is sent again", func() bool { return posts() > before })
}

// wantShown checks that a rendering with the same digest was recorded before each decision about a request.
func (h *harness) wantShown(request string) {
	h.t.Helper()
	err := h.store.View(context.Background(), func(r store.Reader) error {
		records, err := r.Audit(request)
		shown, decided := map[string]string{}, 0
		for _, a := range records {
			switch a.Kind {
			case approvers.AuditShown:
				shown[a.Facts["rendering"]] = a.Facts["digest"]
			case approvers.AuditDecided:
				decided++
				if shown[a.Facts["rendering"]] != a.Facts["shown"] {
					h.t.Errorf("%s decided on rendering %s, which is not recorded as shown: %v", a.Actor, a.Facts["rendering"], shown)
				}
			}
		}
		if decided == 0 {
			h.t.Error("nobody decided")
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// On a Home tab, people can reject a call as on a card. The bot refuses the same people on a Home tab as on a card.
func TestHomeRejects(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r := h.asked("C0002", card)
	h.looks("teo", "Waits for you: 1")
	h.setPolicy(without(h.policy, "U0002"))
	h.clicksHome("teo", r.ID, control.ActReject)
	h.until("teo is told why he can't", func() bool {
		return strings.Contains(fmt.Sprint(h.call("GET", "/people/teo/views", nil)), "you are not a member of that role")
	})
	h.call("POST", fmt.Sprintf("/people/teo/views/%s/close", h.opened("teo", "")["id"]), map[string]any{"all": true})
	h.setPolicy(bottest.Policy())
	h.looks("teo", "Waits for you: 1")
	h.clicksHome("teo", r.ID, control.ActReject)
	form := h.opened("teo", control.ActReject)
	if out := h.submits("teo", form, map[string]any{control.FieldReason: "refunded already"}); out["ok"] != true {
		t.Fatal(out)
	}
	h.finds("teo", "#support-approvals", "", "Rejected by", "refunded already")
	h.atHome("teo", "Nothing waits for you", "refunded already", "-"+control.ActReject)
	h.wantShown(r.ID)
}

// without returns a copy of a policy in which no role has the given member.
func without(p *approvers.Policy, user string) *approvers.Policy {
	out := *p
	out.Approvers = nil
	for _, role := range p.Approvers {
		members := role.Members
		role.Members = nil
		for _, m := range members {
			if m.Value != user {
				role.Members = append(role.Members, m)
			}
		}
		out.Approvers = append(out.Approvers, role)
	}
	return &out
}

// A button of a person's Home tab has no effect for another person, or on another message.
func TestHomeIsOnePersons(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r := h.asked("C0002", card)
	shown := h.looks("teo", "Waits for you: 1")
	_, rest, _ := strings.Cut(shown.raw, `"action_id":"`+control.ActReject+`"`)
	_, rest, _ = strings.Cut(rest, `"value":"`)
	value, _, _ := strings.Cut(rest, `"`)
	for name, c := range map[string]click{
		"somebody else": {user: "U0003", team: "T0001", action: control.ActReject, value: value},
		"elsewhere":     {user: "U0002", team: "T0001", channel: "C0002", ts: card.TS, action: control.ActReject, value: value},
		"no such":       {user: "U0002", team: "T0001", action: control.ActApprove, value: value},
	} {
		h.delivers(name, c)
	}
	h.until("all three are refused", func() bool { return len(h.denials(r.ID)) == 3 })
	h.quiet()
	if got, err := h.workflow.Views.Request(context.Background(), r.ID); err != nil || got.State != approvers.Pending {
		t.Errorf("%v %v", got.State, err)
	}
}

// A person records an absence with a stand-in on their Home tab, and ends the absence on the tab.
func TestHomeAway(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.looks("teo", "While you are away")
	h.clicksHome("teo", "away", control.ActAway)
	form := h.opened("teo", control.ActAway)
	now := time.Now().Unix()
	if out := h.submits("teo", form, map[string]any{control.FieldFrom: now, control.FieldUntil: now - 60}); !strings.Contains(fmt.Sprint(out), "The absence has to end after it begins") {
		t.Fatal(out)
	}
	if out := h.submits("teo", form, map[string]any{control.FieldFrom: now, control.FieldUntil: now + 86400, control.FieldColleague: "U0002"}); !strings.Contains(fmt.Sprint(out), "They can't stand in") {
		t.Fatal(out)
	}
	if out := h.submits("teo", form, map[string]any{control.FieldFrom: now, control.FieldUntil: now + 86400, control.FieldColleague: "U0003"}); out["ok"] != true {
		t.Fatal(out)
	}
	h.atHome("teo", "You are away from", "stands in for you")
	h.looks("ingrid", "You stand in for")
	h.finds("ingrid", "U0BOT", "", "has named you to stand in", "Team Lead: you can decide all of it")
	h.clicksHome("teo", "away", control.ActBack)
	h.atHome("teo", "While you are away")
	h.atHome("ingrid", "-You stand in for")
}

// Slack does not say in time who the chosen stand-in is. The form is accepted, and the stand-in is checked later.
func TestHomeAwayWithoutLookUp(t *testing.T) {
	for name, answer := range map[string]func(stop chan struct{}) string{
		"slow":    func(stop chan struct{}) string { <-stop; return "" },
		"failing": func(chan struct{}) string { return `{"ok":false,"error":"internal_error"}` },
		"limited": func(chan struct{}) string { return `{"ok":false,"error":"ratelimited"}` },
		"refused": func(chan struct{}) string { return `{"ok":false,"error":"access_denied"}` },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tap := new(recordingTransport)
			h := newHarness(t, func(h *harness) { h.http = &http.Client{Timeout: 10 * time.Second, Transport: tap} })
			h.looks("teo", "While you are away")
			h.clicksHome("teo", "away", control.ActAway)
			form := h.opened("teo", control.ActAway)
			stop := make(chan struct{})
			t.Cleanup(sync.OnceFunc(func() { close(stop) }))
			tap.answering("users.info", func(form url.Values) string {
				if form.Get("user") == "U0003" {
					return answer(stop)
				}
				return ""
			})
			now := time.Now().Unix()
			if out := h.submits("teo", form, map[string]any{control.FieldFrom: now, control.FieldUntil: now + 86400, control.FieldColleague: "U0003"}); out["ok"] != true {
				t.Errorf("the form was not accepted: %v", out)
			}
			if strings.Contains(h.log.String(), "could not be stored") {
				t.Error("the log says that a delivery could not be stored")
			}
			tap.answering("users.info", nil)
			h.atHome("teo", "You are away from", "stands in for you")
		})
	}
}

// A person revokes their own grant on their Home tab.
func TestHomeGrants(t *testing.T) {
	t.Parallel()
	h := newHarness(t, granting)
	h.allowsMore(map[string]any{control.FieldUses: "2", control.FieldWithin: "1h0m0s", "arg.amount": "25.5"})
	h.looks("teo", "May run without asking: 1", "2 of 2 left.")
	h.clicksHome("teo", "grant", control.ActRevoke)
	h.finds("teo", "U0BOT", "", "Revoked by <@U0002>")
	h.atHome("teo", "-May run without asking")
}

// A Home tab that a person has not opened for a while shows no requests. When the person opens the tab, the requests
// appear.
func TestHomeRests(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.looks("teo", "Waits for you: 1")
	var timers []store.Timer
	err := h.store.View(context.Background(), func(r store.Reader) (err error) {
		timers, err = r.Timers(store.TimerHome, 10)
		return err
	})
	if err != nil || len(timers) != 1 {
		t.Fatal(timers, err)
	}
	if err := h.workflow.Homes.Idle(context.Background(), timers[0]); err != nil {
		t.Fatal(err)
	}
	h.atHome("teo", "is not up to date", "-"+control.ActReject)
	h.clicksHome("teo", "", control.ActHome+"_refresh")
	h.atHome("teo", "Waits for you: 1", control.ActReject)
}

// The bot draws each page of a Home tab with a thousand rows quickly.
func TestHomeWithThousand(t *testing.T) {
	t.Parallel()
	const waiting = 1000
	h := newHarness(t, func(h *harness) { h.once = true })
	err := h.store.Update(context.Background(), func(tx store.Tx) error {
		for i := range waiting {
			r := bottest.Request(bottest.RefundArgs)
			r.ID, r.Call, r.Turn, r.Conversation, r.Execution = fmt.Sprintf("req_%04d", i), fmt.Sprint("call_", i), fmt.Sprint("turn_", i), fmt.Sprint("conv_", i), fmt.Sprint("exec_", i)
			r.CreatedAt = time.Now().Add(time.Duration(i) * time.Millisecond)
			r.ExpiresAt = time.Now().Add(time.Hour)
			for _, err := range []error{
				tx.PutRequest(r), tx.PutCall(store.Call{ID: r.Call, Turn: r.Turn, Conversation: r.Conversation, Request: r.ID}),
				tx.PutTurn(approvers.Turn{ID: r.Turn, Conversation: r.Conversation}), tx.PutConversation(store.Conversation{ID: r.Conversation, Channel: "C0001", Name: "support"}),
			} {
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h.looks("teo", "Waits for you: 1000", "Page 1 of 125") // fills the caches of Slack's answers
	var best time.Duration
	for page := 2; page < 7; page++ {
		began := time.Now()
		h.clicksHome("teo", home.PartWaiting, control.ActHome+"_next")
		h.atHome("teo", fmt.Sprintf("Page %d of 125", page))
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
	}
	began := time.Now()
	who, all, _, err := h.bot.Display.homes.pending.readFor(context.Background(), "U0002", h.policy)
	theirs, _ := selectPending(all, who, h.policy)
	read := time.Since(began)
	if err != nil || len(theirs) != waiting {
		t.Fatal(len(theirs), err)
	}
	t.Logf("rows=%d read=%.1fms click_to_page=%.1fms (the best of five)", waiting, read.Seconds()*1e3, best.Seconds()*1e3)
	if best > 3*time.Second {
		t.Errorf("a page took %s", best)
	}
}

// In an enterprise, the policy may name the owner of a client by the user id in the workspace. The client's requests are
// the owner's own requests. Requests from a conversation name people only by their ids in the enterprise.
func TestOwnRequestsByLocalID(t *testing.T) {
	owner := approvers.Identity{ID: "E0001/W9", Local: "U0100"}
	for name, caller := range map[string]*approvers.Caller{"a client's": {Name: "ci"}, "a conversation's": nil} {
		r := &approvers.Request{Facts: approvers.AskFacts{Caller: caller, Requesters: []approvers.PersonID{"T0001/U0100"}}}
		_, own := selectPending([]view.PendingItem{{Request: r}}, owner, bottest.Policy())
		if (len(own) == 1) != (caller != nil) || concerns(*r, owner, bottest.Policy()) != (caller != nil) {
			t.Errorf("%s request: %d items are the owner's own", name, len(own))
		}
	}
}
