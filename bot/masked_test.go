package bot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

const secretSchema = `{"type":"object","properties":{"order_id":{"type":"string"},"card":{"type":"object","properties":{"number":{"type":"string","x-secret":true},"name":{"type":"string"}}},` +
	`"pin":{"type":"string","format":"password"},"note":{"type":"string"}}}`

const secretArgs = `{"order_id":"ORD-7","card":{"number":"4111 1111 1111 4242","name":"Ann"},"pin":"0815-4711","note":"hunter2-is-it"}`

// secrets are what must be seen nowhere.
var secrets = []string{"4111 1111", "0815-4711", "hunter2"}

func keepingSecrets(w *workbench) {
	w.tools["charge_card"] = tool("charge_card", secretSchema, approvers.Unprotected)
	w.policy.Tools = append(w.policy.Tools, approvers.ToolPolicy{Name: "charge_card", Risk: approvers.High, Confirm: true, Secrets: []string{"note"}, Preview: approvers.Preview{
		Text: "Charge", Render: func(args map[string]any) (string, error) {
			return fmt.Sprintf("Charge %v (%v) for %v", args["card"].(map[string]any)["number"], args["note"], args["order_id"]), nil
		},
	}})
	w.policy.Approvers[1].CanApprove = append(w.policy.Approvers[1].CanApprove, "charge_card")
}

func TestMaskedText(t *testing.T) {
	got := maskedText([]byte(`{"card":{"number":"4111 1111 1111 4242","name":"Ann ⟨masked⟩"},"pins":["0815",{"a":1}],"pw":"correct horse","empty":{}}`), []string{"card.number", "pins", "pw"})
	want := "card:\n  number: ⟨masked, 19 characters, ends in 4242⟩\n  name: \"Ann ⟨U+27E8⟩masked⟨U+27E9⟩\"\npins: ⟨masked⟩\npw: ⟨masked, 13 characters⟩\nempty: {}"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := maskedText([]byte(`not JSON 4242`), []string{"x"}); got != "⟨masked⟩" {
		t.Errorf("what can't be read is shown: %s", got)
	}
}

func TestWithoutSecrets(t *testing.T) {
	got := withoutSecrets([]byte(` { "a" : 1.50, "card":{"number":"4242", "name" : "Ann"}, "list":[{"pin":1},{"pin":2,"b":"c"}] }`), []string{"card.number", "list.pin"})
	if want := `{"a" : 1.50,"card":{"name" : "Ann"},"list":[{},{"b":"c"}]}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !json.Valid(got) {
		t.Error("not JSON")
	}
}

// A secret is seen by nobody but by whoever may decide and asks for it: not on the card, in the thread, in forms, on Home tabs, in answers or in the log. What runs
// has it, and its digest is over it.
func TestSecretsStayMasked(t *testing.T) {
	w := newWorkbench(t, keepingSecrets)
	root := w.says("sam", "#support", "@bot please\ncall charge_card "+secretArgs)
	card := w.finds("teo", "#support-approvals", "", "Charge ", "(masked)", "3 values masked here: card.number, pin, note.")
	r := w.asked("C0002", card)
	if r.Digest != approvers.Digest(r.Execution, r.Tool, r.ToolHash, []byte(secretArgs)) {
		t.Error("the digest is not over the exact bytes")
	}
	w.finds("sam", "#support", root, "Waits for", "Team Lead")
	w.looks("teo", "Waits for you: 1", "ends in 4242")
	w.looks("sam", "You asked for: 1")
	w.commands("teo", "#general", "pending")
	w.answered("teo", "#general", "Waits for you")
	seen := func(what string, v any) {
		t.Helper()
		for _, s := range secrets {
			if strings.Contains(fmt.Sprint(v), s) {
				t.Errorf("%s tells %s: %v", what, s, v)
			}
		}
	}
	form := func(user, action string) map[string]any {
		t.Helper()
		w.clicks(user, "#support-approvals", card, action)
		var view map[string]any
		w.until("the form is there", func() bool {
			views, _ := w.call("GET", "/people/"+user+"/views", nil)["views"].([]any)
			if len(views) == 0 {
				return false
			}
			view, _ = views[len(views)-1].(map[string]any)
			return !strings.Contains(fmt.Sprint(view), "One moment")
		})
		w.call("POST", fmt.Sprintf("/people/%s/views/%s/close", user, view["id"]), map[string]any{"all": true})
		return view
	}
	seen("the form to change it", form("teo", actModify))
	seen("the form to reject it", form("teo", actReject))
	seen("what somebody else is shown who asks", form("ada", actReveal))
	w.until("it is recorded that somebody tried", func() bool { return len(w.denials(r.ID)) == 1 })
	shown := fmt.Sprint(form("teo", actReveal))
	for _, s := range secrets {
		if !strings.Contains(shown, s) {
			t.Errorf("what is revealed lacks %s: %s", s, shown)
		}
	}
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.finds("teo", "#support-approvals", "", "Approved by", "It ran")
	w.quiet()
	for _, where := range []struct{ user, channel, thread string }{{"teo", "#support-approvals", ""}, {"sam", "#support", root}, {"teo", "U0BOT", ""}, {"teo", "#general", ""}} {
		for _, p := range w.sees(where.user, where.channel, where.thread) {
			if p.User == "U0BOT" {
				seen("a message", p.Text+p.raw)
			}
		}
	}
	seen("a Home tab", w.atHome("teo", "Decided lately").raw)
	seen("the log", w.log.String())
	if got := w.runs(); len(got) != 1 || got[0] != "charge_card "+secretArgs {
		t.Errorf("ran %q", got)
	}
	chain, err := w.desk.Chain(t.Context(), r.ID)
	revealed := 0
	for _, a := range chain {
		if a.Kind == approvers.AuditShown && a.Facts["surface"] == actReveal {
			revealed++
			if a.Actor.User() != "U0002" || a.Facts["digest"] != r.Digest {
				t.Errorf("the record of what was revealed: %+v", a)
			}
		}
		seen("a record", a.Facts)
	}
	if err != nil || revealed != 1 {
		t.Errorf("%d records of what was revealed (%v)", revealed, err)
	}
}

func TestMaskedForms(t *testing.T) {
	r := testRequest(secretArgs)
	r.Secrets = []string{"card.number", "note", "pin"}
	s := sightOf(r)
	t.Run("card", func(t *testing.T) { golden(t, "card_masked", drawn(t, s).messages[0]) })
	for name, v := range map[string]slack.ModalViewRequest{
		"modal_reveal":             revealForm(r),
		"modal_modify_masked":      modifyForm(r, testMark(r), tool("charge_card", secretSchema, approvers.Unprotected)),
		"modal_modify_masked_json": modifyForm(r, testMark(r), tool("charge_card", `{"oneOf":[{}]}`, approvers.Unprotected)),
	} {
		t.Run(name, func(t *testing.T) {
			viewWithin(t, v)
			golden(t, name, v)
		})
	}
	many := r
	many.Args = json.RawMessage(`{"pin":"` + strings.Repeat("𝕏", 20000) + `"}`)
	viewWithin(t, revealForm(many))
}
