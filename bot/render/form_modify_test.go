package render

import (
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
)

func testToken(r approvers.Request) control.FormToken {
	return control.FormToken{ButtonToken: control.ButtonToken{Ref: r.ID, Message: "s_1", Post: 3, Print: "0123456789abcdef"}, Execution: r.Execution}
}

// modifyForm returns the form that Teo, a member of Team Lead, opens.
func modifyForm(r approvers.Request, tool workflow.Tool) slack.ModalViewRequest {
	s := form.ClickTarget{Token: testToken(r).ButtonToken, Model: bottest.ViewModel(r)}
	return form.Modify(r, testToken(r), tool, s.EditEffect(approvers.Identity{ID: teo, Name: "Teo"}, tool, r.Args, false), nil)
}

func TestModals(t *testing.T) {
	r := bottest.Request(`{ "order_id": "ORD-123", "amount": 49.990, "currency": "USD", "reason": "line one\nline two", "notify": true, "count": 3, "day": "2026-03-02", "mail": "ann@example.com", "link": "https://x.example/", "lines": [{"sku":"A"}], "extra": 1e3, "odd\u202e": "x\u200b" }`)
	long := bottest.Request(`{"body":"` + strings.Repeat("word ", 6000) + `"}`)
	critical := bottest.Request(`{"user_id":"C-77","n":{}}`)
	critical.Plan.Risk = approvers.Critical
	s := form.ClickTarget{Token: testToken(r).ButtonToken, Model: bottest.ViewModel(r)}
	unknown := s
	unknown.Execution.State = approvers.ExecutionUnknown
	next := testToken(long)
	next.Page = 1
	last := next
	last.Page = 99
	for name, v := range map[string]slack.ModalViewRequest{
		"modal_loading":        form.LoadingView("interaction:abc", control.ActReject),
		"modal_refused":        form.SlackRefusedModal("Reject", "invalid_blocks"),
		"modal_reject":         form.Reject(r, testToken(r), s),
		"modal_modify":         modifyForm(r, bottest.Tool("issue_refund", bottest.RefundSchema, approvers.Unprotected)),
		"modal_modify_json":    modifyForm(r, bottest.Tool("issue_refund", `{"oneOf":[{}]}`, approvers.Unprotected)),
		"modal_modify_toolong": modifyForm(long, bottest.Tool("issue_refund", `{"oneOf":[{}]}`, approvers.Unprotected)),
		"modal_arguments_1":    detailsFor(long, testToken(long), "U0002"),
		"modal_arguments_2":    detailsFor(long, next, "U0002"),
		"modal_arguments_last": detailsFor(long, last, "U0002"),
		"modal_arguments_read": detailsFor(long, last, "U0100"),
		"modal_typed":          form.Typed(critical, testToken(critical)),
		"modal_happened":       form.Report(unknown),
		"modal_refusal":        form.TextModal(control.ActModify, form.DeniedText(&approvers.Denied{Code: approvers.DeniedSelf, Role: "Team Lead"}, &r, bottest.Policy())),
	} {
		t.Run(name, func(t *testing.T) {
			viewWithin(t, v)
			bottest.Golden(t, name, v)
			if f, err := control.ParseFormToken(v.PrivateMetadata); v.Submit != nil && (err != nil || f.Message != "s_1") {
				t.Errorf("metadata %q reads as %+v (%v)", v.PrivateMetadata, f, err)
			}
		})
	}
}
