package thread

import (
	"net/url"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
	"countersign/store"
)

// Elicitation draws a question that a tool asks the requester during a run. The text comes from the tool server, and no
// person has verified the text.
func Elicitation(m wording.Version, q approvers.Elicitation, c store.Call) *block.Builder {
	p := new(block.Builder)
	line := block.Say("❓ ")
	if q.State == approvers.ElicitationOpen {
		line.Person(q.Asked, "").Say(", ")
	}
	line.Strong(block.Name(q.Tool))
	if q.From != "" {
		line.Say(" (").Soft(block.Name(q.From)).Say(")")
	}
	p.Para(line.Say(" needs an answer before it can continue. Its own words, not verified:"))
	p.Quote(block.Clip(block.Visible(argument.MaskSecrets(q.Text, []byte(c.Args), c.Secrets)), block.MaxElicited))
	if q.URL != "" {
		p.Para(block.Say("It asks you to open a page on ").Strong(hostOf(q.URL)).Say(". The full URL:"))
		p.Preformatted(block.Visible(q.URL))
	}
	if q.State != approvers.ElicitationOpen {
		p.Para(elicited(q))
		return p
	}
	decline := block.Button(control.ActNoAnswer, "Decline", m.Token(q.ID), slack.StyleDefault)
	if q.URL != "" {
		p.Buttons("", block.LinkButton("Open", q.URL), block.Button(control.ActVisited, "I have done it", m.Token(q.ID), slack.StyleDefault), decline)
	} else {
		p.Buttons("", block.Button(control.ActFillIn, "Answer…", m.Token(q.ID), slack.StyleDefault), decline)
	}
	p.Para(block.Say("Only you can answer, by ").At(q.ExpiresAt, block.Clock).Say(". Your answer goes to the tool and is not shown here. It is not an approval. Never enter passwords or keys."))
	return p
}

// elicited describes how a question ended.
func elicited(q approvers.Elicitation) *block.RichText {
	switch q.State {
	case approvers.ElicitationAccepted:
		return block.Say("💬 ").Person(q.Asked, q.Name).Say(" answered, ").At(q.ClosedAt, block.Clock).Say(".")
	case approvers.ElicitationDeclined:
		return block.Say("🚫 ").Person(q.Asked, q.Name).Say(" declined to answer, ").At(q.ClosedAt, block.Clock).Say(". The tool was told.")
	case approvers.ElicitationExpired:
		return block.Say("⌛ Nobody answered in time. The tool was told.")
	}
	return block.Say("✖️ No answer is needed any more: ").Say(block.Clip(block.OneLine(q.Why), block.MaxNote)).Say(".")
}

// hostOf returns the host of an address in readable form.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "a host that can't be read"
	}
	return block.Shorten(block.Visible(u.Host), slackapi.MaxHeader)
}
