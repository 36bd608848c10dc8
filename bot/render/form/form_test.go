package form

import (
	"encoding/json"
	"testing"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/bot/slackapi"
)

var teo, kenji = approvers.Who("T0001", "U0002"), approvers.Who("T0001", "U0004")

func testToken(r approvers.Request) control.FormToken {
	return control.FormToken{ButtonToken: control.ButtonToken{Ref: r.ID, Message: "s_1", Post: 3, Print: "0123456789abcdef"}, Execution: r.Execution}
}

func modifyForm(r approvers.Request, tool workflow.Tool) slack.ModalViewRequest {
	s := ClickTarget{Token: testToken(r).ButtonToken, Model: bottest.ViewModel(r)}
	return Modify(r, testToken(r), tool, s.EditEffect(approvers.Identity{ID: teo, Name: "Teo"}, tool, r.Args, false), nil)
}

// viewWithin checks a form against Slack's size limits, as the size guard does before sending.
func viewWithin(t *testing.T, v slack.ModalViewRequest) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"view": v})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	for _, m := range slackapi.CheckSizes(fields) {
		t.Errorf("Slack would refuse this (%s): %s %s", m.Code, m.At, m.Reason)
	}
}
