package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
)

// The test draws twelve states that people meet in practice. People who test the messages see only pictures of these
// states. These test readers are asked what will happen, to whom, how much, who asked, and who has to decide. The
// readers are also asked what happens if nobody decides, when this happens, what is hidden, and whether the call can be
// undone.
func TestReaders(t *testing.T) {
	ask := func(tool, args, preview, quote string) approvers.Request {
		r := bottest.Request(args)
		r.Tool, r.Preview, r.Facts.Quote = tool, preview, quote
		return r
	}
	args := strings.Replace(bottest.RefundArgs, "49.990", "49.99", 1)
	refund := bottest.Request(args)

	cancel := ask("cancel_account", `{"user_id":"USR-456","reason":"asked by phone"}`, "Cancel the account of Jane Doe (USR-456)", "close Jane Doe's account, she asked by phone")
	cancel.ID, cancel.Plan.Risk, cancel.Plan.Routed, cancel.EscalateAt = "req_2", approvers.Critical, false, time.Time{}
	cancel.Plan.Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	cancel.Plan.Why = []string{"cancel_account is critical risk", "the policy names the stages: Team Lead, then 2 × Finance Director"}
	agreed := bottest.ApprovedBy(bottest.ApprovedBy(cancel, "U0002", "Teo", "team-lead", 0), "U0003", "Ingrid", "finance-director", 1)
	agreed.Stage = 1

	escalated := ask("issue_refund", `{"order_id":"ORD-129","amount":600,"currency":"USD","reason":"lost by the carrier"}`, "Refund of $600.00 for order ORD-129", "please refund ORD-129, the carrier lost it")
	escalated.Plan.Stages, escalated.Plan.Routed = []approvers.Stage{{Approver: "support-agent", Quorum: 1}, {Approver: "team-lead", Quorum: 1}}, false
	escalated = bottest.ApprovedBy(escalated, "U0001", "Ada", "support-agent", 0)
	escalated.Stage, escalated.Joined, escalated.EscalateAt = 1, []string{"finance-director"}, time.Time{}

	edited := refund
	edited.Args, edited.Preview = json.RawMessage(strings.Replace(args, "49.99", "39.99", 1)), "Refund of $39.99 for order ORD-123"
	edited.Edits = []approvers.Edit{{By: teo, Name: "Teo", Role: "team-lead", At: bottest.Noon.Add(3 * time.Minute), Before: refund.Args, After: edited.Args, Reason: "shipping is not refunded"}}
	edited.Plan.Stages, edited.EscalateAt = []approvers.Stage{{Approver: "finance-director", Quorum: 1}}, time.Time{}

	answered := refund
	answered.Remarks = []approvers.Remark{
		{Kind: approvers.Question, By: teo, Name: "Teo", Role: "team-lead", Text: "is there a photo of the damage?", At: bottest.Noon.Add(time.Minute)},
		{Kind: approvers.Answer, To: 0, By: sam, Name: "Sam", Text: "yes, in ticket 8812: the screen is cracked", At: bottest.Noon.Add(4 * time.Minute)},
	}

	refused := refund
	refused.ToolPreview = &approvers.ToolPreview{State: approvers.ToolPreviewReady, By: "preview_refund", Digest: refund.Digest, No: "$0.00 of ORD-123 can still be refunded", Text: `{"message":"$0.00 of ORD-123 can still be refunded","refundable":0}`}

	masked := ask("issue_refund", `{"order_id":"ORD-7","amount":20,"currency":"USD","card":{"number":"4111 1111 1111 4242","name":"Ann Lee"},"pin":"0815-4711"}`, "Refund of $20.00 for order ORD-7", "refund 20 dollars of ORD-7 to Ann's new card")
	masked.Secrets = []string{"card.number", "pin"}

	email := ask("send_email", `{"to":"jane@example.com","subject":"Your order ORD-123","body":"Dear Jane,`+strings.Repeat(` we are sorry that your order arrived broken. We refund it today, and the money is on your card within five days.`, 30)+`"}`,
		"E-mail jane@example.com: Your order ORD-123", "write to Jane that we are sorry, and what happens next")
	email.ID, email.Plan.Why = "req_3", []string{"send_email is high risk"}
	note := ask("send_email", `{"to":"bob@example.com","subject":"Your refunds","body":"Dear Bob,\nthey are on their way."}`, "E-mail bob@example.com: Your refunds", "")
	note.Plan.Why = email.Plan.Why
	bundle := bundleOf(refundOf("ORD-123", "49.99"), refundOf("ORD-124", "20.00"), note)
	for _, c := range bundle.Calls {
		c.Request.Facts.Quote = "refund ORD-123 and ORD-124, both arrived broken, and tell Bob"
	}

	own := func(r approvers.Request) view.Model { // Teo's copy
		s := bottest.ViewModel(r)
		s.Message.To = "user:U0002"
		return s
	}
	for name, s := range map[string]view.Model{
		"reader_01_pending":   own(refund),
		"reader_02_stages":    own(agreed),
		"reader_03_escalated": own(escalated),
		"reader_04_edited":    own(edited),
		"reader_05_answered":  own(answered),
		"reader_06_refused":   own(refused),
		"reader_07_masked":    own(masked),
		"reader_08_cut":       own(email),
		"reader_09_bundle":    bundle,
		"reader_10_unknown":   unknownView(func(s *view.Model) { s.Execution.Args = refund.Args }),
		"reader_11_rejected":  bottest.ViewModel(bottest.Closed(refund, approvers.Rejected, "U0002", "team-lead", "the customer was refunded already")),
	} {
		t.Run(name, func(t *testing.T) { bottest.Golden(t, name, drawn(t, s).Messages[0]) })
	}
	home, homeTab := tabOf(approvers.Identity{ID: teo, Name: "Teo"}, refund, cancel, email)
	t.Run("reader_12_home", func(t *testing.T) { bottest.Golden(t, "reader_12_home", homeDrawn(t, home, homeTab)) })
}
