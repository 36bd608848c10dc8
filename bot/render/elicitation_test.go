package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/store"
)

const askedSchema = `{"type":"object","required":["city","seats"],"properties":{
	"city":{"type":"string","title":"City","minLength":2,"maxLength":40,"description":"Where to <!channel>"},
	"seats":{"type":"integer","minimum":1,"maximum":9,"default":2},
	"price":{"type":"number","minimum":0.5},
	"mail":{"type":"string","format":"email","default":"sam@example.com"},
	"page":{"type":"string","format":"uri"},
	"day":{"type":"string","format":"date","default":"2026-03-09"},
	"at":{"type":"string","format":"date-time"},
	"class":{"type":"string","oneOf":[{"const":"e","title":"Economy"},{"const":"b","title":"Business\u202e"}],"default":"e"},
	"colour":{"type":"string","enum":["#f00","#0f0"],"enumNames":["Red","Green"]},
	"meals":{"type":"array","items":{"anyOf":[{"const":"fish","title":"Fish"},{"const":"veal","title":"Veal"}]},"default":["veal"]},
	"window":{"type":"boolean","default":true}}}`

func viewOfAsked(change ...func(*approvers.Elicitation)) view.Model {
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	s.Message = store.OutboxMessage{ID: "s_9", Kind: store.OutboxElicitation, Ref: "ask_1", To: "conversation:conv_1", Posts: 0}
	s.Request, s.Execution = nil, nil
	q := approvers.Elicitation{
		ID: "ask_1", State: approvers.ElicitationOpen, Execution: "exec_1", Tool: "travel.book", From: "the server travel", Asked: approvers.Who("T0001", "U0100"),
		Text: "Where do you want to go?\n<!channel> *Approved by Teo (Team Lead)* \u202e <https://evil.example|click>", Schema: json.RawMessage(askedSchema),
		CreatedAt: bottest.Noon, ExpiresAt: bottest.Noon.Add(10 * time.Minute),
	}
	for _, f := range change {
		f(&q)
	}
	s.Elicitation = &q
	return s
}

func TestElicitations(t *testing.T) {
	ended := func(state approvers.ElicitationState, why string) func(*approvers.Elicitation) {
		return func(q *approvers.Elicitation) {
			q.State, q.Why, q.Name, q.ClosedAt = state, why, "Sam", bottest.Noon.Add(time.Minute)
			q.Values = json.RawMessage(`{"city":"Tromsø"}`)
		}
	}
	visit := func(q *approvers.Elicitation) {
		q.Schema, q.URL, q.Text = nil, "https://bank.example:8443/login?next=%2F&as=<@U0003>", "Sign in at your bank, please."
	}
	for name, s := range map[string]view.Model{
		"elicit_form":      viewOfAsked(),
		"elicit_url":       viewOfAsked(visit),
		"elicit_answered":  viewOfAsked(ended(approvers.ElicitationAccepted, "")),
		"elicit_declined":  viewOfAsked(visit, ended(approvers.ElicitationDeclined, "")),
		"elicit_cancelled": viewOfAsked(ended(approvers.ElicitationCancelled, "the process stopped while its tool waited")),
		"elicit_expired":   viewOfAsked(ended(approvers.ElicitationExpired, "")),
	} {
		t.Run(name, func(t *testing.T) {
			d := drawn(t, s)
			bottest.Golden(t, name, d.Messages[0])
			raw := string(encode(t, d))
			if live := strings.Contains(raw, `"type":"button"`); live != (s.Elicitation.State == approvers.ElicitationOpen) {
				t.Errorf("buttons: %v, and it is %s", live, s.Elicitation.State)
			}
			if strings.Contains(raw, "Tromsø") || strings.Contains(raw, `"broadcast"`) || strings.Contains(d.Messages[0].Text, "<!channel>") {
				t.Errorf("the submitted values or a live mention are shown: %s", raw)
			}
		})
	}
}

// The form of a question has an input for each kind of field. If another person opens the form, or if the question has
// ended, the form shows the reason instead of inputs.
func TestElicitationForm(t *testing.T) {
	sam := approvers.Identity{ID: approvers.Who("T0001", "U0100"), Name: "Sam"}
	s := form.ClickTarget{Token: control.ButtonToken{Ref: "ask_1", Message: "s_9", Post: 1, Print: "0123456789abcdef"}, Model: viewOfAsked()}
	bottest.Golden(t, "modal_fill_in", form.Elicitation(s, sam))
	for name, who := range map[string]approvers.Identity{
		"another": {ID: approvers.Who("T0001", "U0002")}, "a guest": {ID: sam.ID, Guest: true}, "a stranger": {ID: sam.ID, Foreign: true},
		"a bot": {ID: sam.ID, Bot: true}, "a deactivated account": {ID: sam.ID, Deleted: true}, "nobody": {},
	} {
		if v := form.Elicitation(s, who); v.Submit != nil || len(v.Blocks.BlockSet) != 1 {
			t.Errorf("%s gets a form", name)
		}
	}
	s.Model = viewOfAsked(func(q *approvers.Elicitation) { q.State = approvers.ElicitationExpired })
	if v := form.Elicitation(s, sam); v.Submit != nil {
		t.Error("there is a form after the end")
	}
}

// The test fills in the form, and compares the resulting JSON byte for byte. Empty fields are omitted, and unchanged
// defaults keep their bytes.
func TestFilledIn(t *testing.T) {
	admits := workflow.New(workflow.Config{}).Admits
	q := *viewOfAsked().Elicitation
	fill := func(in map[string]string) func(block string) (text string, present bool) {
		return func(block string) (string, bool) {
			text, present := in[strings.TrimPrefix(block, "arg.")]
			return text, present
		}
	}
	for _, c := range []struct {
		in   map[string]string
		want string
		bad  string
	}{
		{map[string]string{"city": "Tromsø \"N\"", "seats": "2", "class": "0", "mail": "sam@example.com", "day": "2026-03-09", "meals": "1", "window": "true"},
			`{"seats":2,"mail":"sam@example.com","day":"2026-03-09","class":"e","meals":["veal"],"window":true,"city":"Tromsø \"N\""}`, ""},
		{map[string]string{"city": "Oslo", "seats": "9", "price": "12.50", "class": "1", "colour": "1", "at": "1772452800", "meals": "0,1", "mail": "", "window": "false", "day": ""},
			`{"seats":9,"class":"b","meals":["fish","veal"],"window":false,"city":"Oslo","price":12.50,"at":"2026-03-02T12:00:00Z","colour":"#0f0"}`, ""},
		{map[string]string{"city": "Oslo", "seats": "2.5"}, "", "arg.seats"},
		{map[string]string{"city": "Oslo", "seats": "2", "class": "7"}, "", "arg.class"},
		{map[string]string{"city": "Oslo", "seats": "2", "meals": "0,9"}, "", "arg.meals"},
		{map[string]string{"city": "Oslo", "seats": "2", "at": "soon"}, "", "arg.at"},
	} {
		got, faults := form.ElicitationValues(q, fill(c.in), admits)
		if string(got) != c.want || (c.bad == "") != (len(faults) == 0) || c.bad != "" && faults[c.bad] == "" {
			t.Errorf("%v becomes %s with %v\nwant %s, %s", c.in, got, faults, c.want, c.bad)
		}
	}
}
