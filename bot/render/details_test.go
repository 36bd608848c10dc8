package render

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/argument"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/render/wording"
	"countersign/store"
)

// detailsFor draws the details of a request for a person who clicked on its card.
func detailsFor(r approvers.Request, f control.FormToken, user string) slack.ModalViewRequest {
	return detailsOn(bottest.ViewModel(r), f, user)
}

func detailsOn(s view.Model, f control.FormToken, user string) slack.ModalViewRequest {
	shown := store.Rendering{Shows: []store.Shown{{Request: s.Request.ID, Digest: s.Request.Digest, Whole: argument.FitsCard(argument.OfRequest(*s.Request))}}}
	about := form.About{WorkspaceURL: bottest.WorkspaceURL, Tool: wording.ToolDescription{Text: "Pays money back to a customer.", Claims: bottest.EveryClaim().Words()}}
	return form.Details(form.ClickTarget{Token: f.ButtonToken, Shown: shown, Model: s, About: about}, f, approvers.Identity{ID: approvers.Who("T0001", user)})
}

// Details… shows everything that the card leaves out, and a button for each action of the person.
func TestDetails(t *testing.T) {
	refund := bottest.Request(bottest.RefundArgs)
	granting := bottest.ViewModel(refund)
	granting.Policy = bottest.GrantingPolicy()
	ran := bottest.ViewModel(bottest.ApprovedBy(bottest.Closed(refund, approvers.Consumed, "U0002", "team-lead", ""), "U0002", "Teo", "team-lead", 0))
	ran.Execution.State, ran.Execution.FinishedAt, ran.Execution.Result = approvers.ExecutionSucceeded, bottest.Noon, `{"refund_id":"RF-9","amount":49.99}`
	erased := ran
	erasedRequest := ran.Request.Erase()
	erased.Request = &erasedRequest
	masked := bottest.Request(bottest.SecretArgs)
	masked.Secrets = []string{"card.number", "pin", "note"}
	bundled := bottest.Request(bottest.RefundArgs)
	bundled.Bundle = "bundle_1"
	preview := withToolPreview(approvers.ToolPreview{State: approvers.ToolPreviewReady, Text: `{"message":"Jane Doe paid $129.97","paid":129.97}`})
	for name, c := range map[string]struct {
		s       view.Model
		user    string
		buttons string
		submit  bool
		says    []string
	}{
		"details_pending":  {bottest.ViewModel(refund), "U0002", "ask comment hand_on", true, []string{"Pays money back", "Declared by the tool's server, not verified: not read-only, destructive", refund.Digest, "policy-1", "hard or impossible to undo", "Reject… rejects the call"}},
		"details_stranger": {bottest.ViewModel(refund), "U0100", "", false, []string{"Why people are asked"}},
		"details_grants":   {granting, "U0002", "ask comment hand_on allow_more", true, []string{"Allow more… approves this"}},
		"details_agreed":   {bottest.ViewModel(manyRoles()), "U0002", "ask comment hand_on take_back", false, []string{"approved at stage 1", "no photo", "Take back… revokes the approval"}},
		"details_remarks":  {bottest.ViewModel(discussed()), "U0002", "ask comment hand_on", true, []string{"third one this week", "is there a photo?"}},
		"details_masked":   {bottest.ViewModel(masked), "U0002", "ask comment hand_on reveal modify", false, []string{"3 values are hidden"}},
		"details_bundled":  {bottest.ViewModel(bundled), "U0002", "reject modify apart", true, []string{"Open separately gives it a card of its own"}},
		"details_ran":      {ran, "U0002", "", false, []string{"RF-9", "The tool's result:"}},
		"details_erased":   {erased, "U0002", "", false, []string{"(erased)"}},
		"details_preview":  {bottest.ViewModel(preview), "U0002", "ask comment hand_on", true, []string{"paid:    129.97"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := detailsOn(c.s, testToken(*c.s.Request), c.user)
			viewWithin(t, m)
			bottest.Golden(t, name, m)
			var got []string
			for _, b := range m.Blocks.BlockSet {
				if row, ok := b.(*slack.ActionBlock); ok {
					for _, e := range row.Elements.ElementSet {
						got = append(got, e.(*slack.ButtonBlockElement).ActionID)
					}
				}
			}
			if strings.Join(got, " ") != c.buttons || (m.Submit != nil) != c.submit {
				t.Errorf("buttons %v and submit %v; want %s and %v", got, m.Submit != nil, c.buttons, c.submit)
			}
			said := textOf(m.Blocks.BlockSet)
			if i := slices.IndexFunc(c.says, func(words string) bool { return !strings.Contains(said, words) }); i >= 0 {
				t.Errorf("it lacks %q:\n%s", c.says[i], said)
			}
		})
	}
}

// textOf returns the texts of rich text blocks and small print.
func textOf(blocks []slack.Block) string {
	var b strings.Builder
	for _, block := range blocks {
		switch block := block.(type) {
		case *slack.RichTextBlock:
			for _, e := range block.Elements {
				var parts []slack.RichTextSectionElement
				switch e := e.(type) {
				case *slack.RichTextSection:
					parts = e.Elements
				case *slack.RichTextQuote:
					parts = e.Elements
				case *slack.RichTextPreformatted:
					parts = e.Elements
				}
				for _, part := range parts {
					if text, ok := part.(*slack.RichTextSectionTextElement); ok {
						b.WriteString(text.Text)
					}
				}
				b.WriteString("\n")
			}
		case *slack.ContextBlock:
			for _, e := range block.ContextElements.Elements {
				if text, ok := e.(*slack.TextBlockObject); ok {
					b.WriteString(text.Text + "\n")
				}
			}
		}
	}
	return b.String()
}

// On the card of an earlier stage, neither Details… nor another form offers a decision.
func TestFormsOfAnEarlierStage(t *testing.T) {
	r := bottest.Request(bottest.RefundArgs)
	who := approvers.Identity{ID: teo, Name: "Teo"}
	for stage, denied := range map[string]bool{"": false, approvers.StageDigest(r): false, "another": true} {
		s := allowSeen(r)
		s.Shown.Shows[0].Stage = stage
		d := form.Precheck(r, s, who)
		if (d != nil) != denied || denied && d.Code != approvers.DeniedStage {
			t.Errorf("stage %q: %v", stage, d)
		}
		for name, m := range map[string]slack.ModalViewRequest{
			"details": form.Details(s, testToken(r), who),
			"allow":   form.People[control.ActAllow](s, who),
		} {
			if (m.Submit == nil) != denied {
				t.Errorf("stage %q: %s can be submitted: %t", stage, name, m.Submit != nil)
			}
		}
		if raw, err := json.Marshal(form.Details(s, testToken(r), who)); err != nil || strings.Contains(string(raw), "Look at the card again") != denied {
			t.Errorf("stage %q: the details are %s, %v", stage, raw, err)
		}
	}
}
