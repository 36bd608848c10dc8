package form

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
)

// above returns a policy in which refunds of more than 500 are critical.
func above(stages ...approvers.Stage) *approvers.Policy {
	p := bottest.Policy()
	p.Tools[2].Rules = []approvers.Rule{{Risk: approvers.Critical, Stages: stages, When: approvers.Condition{Text: "args.amount > 500", Eval: func(f approvers.Facts) (bool, error) {
		n, _ := f.Args["amount"].(json.Number)
		amount, err := n.Float64()
		if err != nil {
			amount, _ = f.Args["amount"].(float64)
		}
		return amount > 500, nil
	}}}}
	return p
}

// The button of the form says whether the change counts as an approval. If the change does not count, the form says
// why.
func TestModifyEffect(t *testing.T) {
	tool := bottest.Tool("issue_refund", bottest.RefundSchema, approvers.Unprotected)
	both := []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}}
	later := bottest.ApprovedBy(bottest.Request(bottest.RefundArgs), "U0002", "Teo", "team-lead", 0)
	later.Plan.Stages, later.Plan.Routed, later.Stage = both, false, 1
	previewed := bottest.Request(bottest.RefundArgs)
	previewed.ToolPreview = &approvers.ToolPreview{State: approvers.ToolPreviewReady, Text: "fine"}
	for name, c := range map[string]struct {
		r      approvers.Request
		policy *approvers.Policy
		who    approvers.PersonID
		amount string // the entered amount; empty: the form as it was opened
		submit string
		says   string
	}{
		"an approval":           {r: bottest.Request(bottest.RefundArgs), policy: above(), who: teo, submit: "Change and approve"},
		"a smaller amount":      {r: bottest.Request(bottest.RefundArgs), policy: above(), who: teo, amount: "10", submit: "Change and approve"},
		"above the ceiling":     {r: bottest.Request(bottest.RefundArgs), policy: above(), who: teo, amount: "700", submit: "Send to Finance Director", says: "it is critical risk, above what Team Lead may approve. It goes to Finance Director."},
		"critical, with stages": {r: bottest.Request(bottest.RefundArgs), policy: above(both...), who: teo, amount: "700", submit: "Change", says: "Your change goes to Team Lead, unless you approve it too, below."},
		"at a later stage":      {r: later, policy: stagesFor("issue_refund", both...), who: kenji, submit: "Send to Team Lead", says: "a changed call starts again with Team Lead, and you are not in that role. It goes to Team Lead."},
		"others follow":         {r: staged(both...), policy: stagesFor("issue_refund", both...), who: teo, submit: "Change and approve", says: "Then it waits for Finance Director."},
		"a long title":          {r: later, policy: titled(stagesFor("issue_refund", both...), "Team Lead of the Night Shift"), who: kenji, submit: "Change and send on", says: "It goes to Team Lead of the Night Shift."},
		"too long to show":      {r: bottest.Request(`{"order_id":"ORD-1","amount":1,"reason":"` + strings.Repeat("x", 3001) + `"}`), policy: above(), who: teo, submit: "Change without approving", says: "part of it is too long to show here. After you submit it, decide on the new card."},
		"a preview to be made":  {r: previewed, policy: above(both...), who: teo, amount: "700", submit: "Change without approving", says: "it is critical, and its new preview comes first. After you submit it, decide on the new card."},
		"earlier approvals":     {r: later, policy: stagesFor("issue_refund", both...), who: kenji, submit: "Send to Team Lead", says: "Earlier approvals are discarded."},
	} {
		t.Run(name, func(t *testing.T) {
			s := ClickTarget{Token: testToken(c.r).ButtonToken, Model: bottest.ViewModel(c.r)}
			s.Policy = c.policy
			var filled func(block string) (text string, present bool)
			if c.amount != "" {
				filled = filledIn(map[string]string{"arg.order_id": "ORD-123", "arg.amount": c.amount, "arg.currency": "0", "arg.reason": "arrived broken", control.FieldReason: "so"})
			}
			args := c.r.Args
			if filled != nil {
				args, _ = EditArgs(c.r, tool, filled)
			}
			v := Modify(c.r, testToken(c.r), tool, s.EditEffect(approvers.Identity{ID: c.who}, tool, args, false), filled)
			viewWithin(t, v)
			if v.Submit.Text != c.submit || block.Width(v.Submit.Text) > 24 {
				t.Errorf("the button says %q, want %q", v.Submit.Text, c.submit)
			}
			raw, err := json.Marshal(v)
			if err != nil || !strings.Contains(strings.Join(strings.Fields(said(v)), " "), c.says) {
				t.Errorf("the form does not say %q: %s (%v)", c.says, said(v), err)
			}
			if typed := strings.Contains(string(raw), `"block_id":"`+control.FieldTyped+`"`); typed != (c.submit == "Change") {
				t.Errorf("asks for the tool's name: %v", typed)
			}
			if c.amount != "" && (!strings.Contains(string(raw), `"initial_value":"`+c.amount+`"`) || !strings.Contains(string(raw), `"initial_value":"so"`)) {
				t.Errorf("what was entered is lost: %s", raw)
			}
			if SendsOnly(v.Submit.Text) != strings.Contains(said(v), "not an approval") {
				t.Error("the button and the form contradict each other")
			}
		})
	}
}

// said returns the texts of a form.
func said(v slack.ModalViewRequest) string {
	var b strings.Builder
	for _, block := range v.Blocks.BlockSet {
		text, ok := block.(*slack.RichTextBlock)
		if !ok {
			continue
		}
		for _, e := range text.Elements {
			section, ok := e.(*slack.RichTextSection)
			if !ok {
				continue
			}
			for _, part := range section.Elements {
				if text, ok := part.(*slack.RichTextSectionTextElement); ok {
					b.WriteString(text.Text)
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// stagesFor returns the policy with the given stages for a tool.
func stagesFor(tool string, stages ...approvers.Stage) *approvers.Policy {
	p := bottest.Policy()
	for i := range p.Tools {
		if p.Tools[i].Name == tool {
			p.Tools[i].Stages = stages
		}
	}
	return p
}

func titled(p *approvers.Policy, lead string) *approvers.Policy {
	p.Approvers[1].Title = lead
	return p
}

func staged(stages ...approvers.Stage) approvers.Request {
	r := bottest.Request(bottest.RefundArgs)
	r.Plan.Stages, r.Plan.Routed = stages, false
	return r
}

// A form that warns of invisible characters has the same metadata as a form without a warning. The six parts are those
// that earlier versions of the bot read. The digest of the arguments is in the ID of the block with the warning.
func TestWarningKeepsMetadata(t *testing.T) {
	r, tool := bottest.Request(bottest.RefundArgs), bottest.Tool("issue_refund", bottest.RefundSchema, approvers.Unprotected)
	for reason, warns := range map[string]bool{"plain": false, "with \u200b": true} {
		filled := filledIn(map[string]string{"arg.order_id": "ORD-123", "arg.amount": "49.990", "arg.currency": "0", "arg.reason": reason})
		args, faults := EditArgs(r, tool, filled)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		v := Modify(r, testToken(r), tool, ShownEffect(submitApprove, filled), filled)
		viewWithin(t, v)
		if parts := strings.Split(v.PrivateMetadata, " "); len(parts) != 6 || v.PrivateMetadata != modifyForm(r, tool).PrivateMetadata {
			t.Errorf("%q: the metadata is %q", reason, v.PrivateMetadata)
		}
		var ids []string
		for _, b := range v.Blocks.BlockSet {
			ids = append(ids, b.ID())
		}
		if got := control.WarnedDigest(ids); (got == approvers.Digest(r.Execution, r.Tool, r.ToolHash, args)) != warns || (got != "") != warns {
			t.Errorf("%q: the form warned of %q", reason, got)
		}
		if v.Submit.Text != submitApprove {
			t.Errorf("%q: the button says %q", reason, v.Submit.Text)
		}
	}
}

// A form may be shown again with the same effect as before. The form then still asks for the tool's name, and still
// says that the change is not an approval.
func TestShownEffect(t *testing.T) {
	r, tool := bottest.Request(bottest.RefundArgs), bottest.Tool("issue_refund", bottest.RefundSchema, approvers.Unprotected)
	values := map[string]string{"arg.order_id": "ORD-123\u200b", "arg.amount": "49.990", "arg.currency": "0", "arg.reason": "arrived broken"}
	if v := Modify(r, testToken(r), tool, ShownEffect("Send to Finance Director", filledIn(values)), filledIn(values)); !strings.Contains(said(v), "Your change is not an approval.") || v.Submit.Text != "Send to Finance Director" {
		t.Errorf("the form says %s", said(v))
	}
	values[control.FieldTyped] = ""
	v := Modify(r, testToken(r), tool, ShownEffect(submitEither, filledIn(values)), filledIn(values))
	if raw, err := json.Marshal(v); err != nil || !strings.Contains(string(raw), `"block_id":"`+control.FieldTyped+`"`) {
		t.Errorf("the form does not ask for the tool's name: %s (%v)", raw, err)
	}
}
