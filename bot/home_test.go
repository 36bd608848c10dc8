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

// looks opens a person's Home tab and waits until it shows some words, and does not show others, which begin with a "-".
func (w *workbench) looks(user string, words ...string) posted {
	w.t.Helper()
	w.call("GET", "/people/"+user+"/home", nil)
	return w.atHome(user, words...)
}

// atHome is looks without opening it anew.
func (w *workbench) atHome(user string, words ...string) posted {
	w.t.Helper()
	var raw string
	defer func() {
		if w.t.Failed() {
			w.t.Log(raw)
		}
	}()
	w.until(fmt.Sprintf("%s's Home tab shows %q", user, words), func() bool {
		view, _ := w.call("GET", "/people/"+user+"/home?quiet=true", nil)["view"].(map[string]any)
		b, err := json.Marshal(view["blocks"])
		if err != nil || view == nil {
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

// clicksHome presses a button on somebody's Home tab; where is the beginning of its block's id.
func (w *workbench) clicksHome(user, where, action string) {
	w.t.Helper()
	view, _ := w.call("GET", "/people/"+user+"/home?quiet=true", nil)["view"].(map[string]any)
	blocks, _ := view["blocks"].([]any)
	for _, b := range blocks {
		raw, _ := json.Marshal(b)
		id, _ := b.(map[string]any)["block_id"].(string)
		if strings.HasPrefix(id, where) && strings.Contains(string(raw), `"action_id":"`+action+`"`) {
			if out := w.call("POST", "/people/"+user+"/actions", map[string]any{"view_id": "home", "block_id": id, "action_id": action}); out["ok"] != true {
				w.t.Fatalf("%s could not click %s: %v", user, action, out)
			}
			return
		}
	}
	w.t.Fatalf("%s has no button %s at %q", user, action, where)
}

// What waits for somebody stands on their Home tab, and can be decided from there: in the form that shows all arguments. What was shown is recorded with the
// decision, and the Home tab follows.
func TestHomeApproves(t *testing.T) {
	w := newWorkbench(t)
	w.looks("teo", "Nothing waits for you", "You are here")
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r := w.asked("C0002", card)
	shown := w.atHome("teo", "Waits for you: 1", "Refund for order ORD-123", "amount: 49.990", `"Open"`)
	if strings.Contains(shown.raw, `"action_id":"approve"`) {
		t.Error("it can be approved without looking at it")
	}
	w.looks("sam", "You asked for: 1", "Refund for order ORD-123")
	w.looks("ingrid", "Nothing waits for you")
	w.clicksHome("teo", r.ID, actArguments)
	form := w.opened("teo", actArguments)
	if out := w.submits("teo", form, nil); out["ok"] != true {
		t.Fatal(out)
	}
	w.finds("teo", "#support-approvals", "", "Approved by", "It ran")
	w.finds("sam", "#support", root, "results: executed")
	w.atHome("teo", "Nothing waits for you", "Decided lately", `"Approved"`, "-"+actReject)
	w.atHome("sam", "-You asked for")
	w.wantShown(r.ID)
}

// wantShown holds each decision about a request against what was recorded before it as shown, with the same digest.
func (w *workbench) wantShown(request string) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(r store.Reader) error {
		records, err := r.Audit(request)
		shown, decided := map[string]string{}, 0
		for _, a := range records {
			switch a.Kind {
			case approvers.AuditShown:
				shown[a.Facts["rendering"]] = a.Facts["digest"]
			case approvers.AuditDecided:
				decided++
				if shown[a.Facts["rendering"]] != a.Facts["shown"] {
					w.t.Errorf("%s decided on the rendering %s, which is not recorded as shown: %v", a.Actor, a.Facts["rendering"], shown)
				}
			}
		}
		if decided == 0 {
			w.t.Error("nobody decided")
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// Rejecting and changing from a Home tab is the same as from a card; those who may not are refused there as well.
func TestHomeRejects(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r := w.asked("C0002", card)
	w.looks("teo", "Waits for you: 1")
	w.decree(without(w.policy, "U0002"))
	w.clicksHome("teo", r.ID, actReject)
	w.until("teo is told why he can't", func() bool {
		return strings.Contains(fmt.Sprint(w.call("GET", "/people/teo/views", nil)), "you are not a member of that role")
	})
	w.call("POST", fmt.Sprintf("/people/teo/views/%s/close", w.opened("teo", "")["id"]), map[string]any{"all": true})
	w.decree(testPolicy())
	w.looks("teo", "Waits for you: 1")
	w.clicksHome("teo", r.ID, actReject)
	form := w.opened("teo", actReject)
	if out := w.submits("teo", form, map[string]any{fieldReason: "refunded already"}); out["ok"] != true {
		t.Fatal(out)
	}
	w.finds("teo", "#support-approvals", "", "Rejected by", "refunded already")
	w.atHome("teo", "Nothing waits for you", "refunded already", "-"+actReject)
	w.wantShown(r.ID)
}

// without is a policy whose roles have one member less.
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

// A button of one person's Home tab does nothing for anybody else, nor where it never stood.
func TestHomeIsOnePersons(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	r := w.asked("C0002", card)
	shown := w.looks("teo", "Waits for you: 1")
	_, rest, _ := strings.Cut(shown.raw, `"action_id":"`+actReject+`"`)
	_, rest, _ = strings.Cut(rest, `"value":"`)
	value, _, _ := strings.Cut(rest, `"`)
	for name, c := range map[string]click{
		"somebody else": {user: "U0003", team: "T0001", action: actReject, value: value},
		"elsewhere":     {user: "U0002", team: "T0001", channel: "C0002", ts: card.TS, action: actReject, value: value},
		"no such":       {user: "U0002", team: "T0001", action: actApprove, value: value},
	} {
		w.delivers(name, c)
	}
	w.until("all three are refused", func() bool { return len(w.denials(r.ID)) == 3 })
	w.quiet()
	if got, err := w.desk.Request(context.Background(), r.ID); err != nil || got.State != approvers.Pending {
		t.Errorf("%v %v", got.State, err)
	}
}

// Somebody says on their Home tab that they are away, and who stands in, and that they are back.
func TestHomeAway(t *testing.T) {
	w := newWorkbench(t)
	w.looks("teo", "You are here")
	w.clicksHome("teo", "away", actAway)
	form := w.opened("teo", actAway)
	now := time.Now().Unix()
	if out := w.submits("teo", form, map[string]any{fieldFrom: now, fieldUntil: now - 60}); !strings.Contains(fmt.Sprint(out), "The time has to end after it begins") {
		t.Fatal(out)
	}
	if out := w.submits("teo", form, map[string]any{fieldFrom: now, fieldUntil: now + 86400, fieldColleague: "U0002"}); !strings.Contains(fmt.Sprint(out), "They can't stand in") {
		t.Fatal(out)
	}
	if out := w.submits("teo", form, map[string]any{fieldFrom: now, fieldUntil: now + 86400, fieldColleague: "U0003"}); out["ok"] != true {
		t.Fatal(out)
	}
	w.atHome("teo", "You are away from", "stands in for you")
	w.looks("ingrid", "You stand in for")
	w.finds("ingrid", "U0BOT", "", "has named you to stand in", "Team Lead: you can decide all of it")
	w.clicksHome("teo", "away", actBack)
	w.atHome("teo", "You are here")
	w.atHome("ingrid", "-You stand in for")
}

// Whoever gave a grant takes it back on their Home tab.
func TestHomeGrants(t *testing.T) {
	w := newWorkbench(t, granting)
	w.allowsMore(map[string]any{fieldUses: "2", fieldWithin: "1h0m0s", "arg.amount": "25.5"})
	w.looks("teo", "May run without asking: 1", "2 of 2 left.")
	w.clicksHome("teo", "grant", actRevoke)
	w.finds("teo", "U0BOT", "", "Taken back by <@U0002>")
	w.atHome("teo", "-May run without asking")
}

// What nobody has looked at for a while has no buttons, until somebody looks again.
func TestHomeRests(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", refundCall)
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.looks("teo", "Waits for you: 1")
	var timers []store.Timer
	err := w.store.View(context.Background(), func(r store.Reader) (err error) {
		timers, err = r.Timers(store.TimerHome, 10)
		return err
	})
	if err != nil || len(timers) != 1 {
		t.Fatal(timers, err)
	}
	if err := w.desk.RestHome(context.Background(), timers[0]); err != nil {
		t.Fatal(err)
	}
	w.atHome("teo", "not kept up to date", "-"+actReject)
	w.clicksHome("teo", "", actHome+"_show_what_is_current")
	w.atHome("teo", "Waits for you: 1", actReject)
}
