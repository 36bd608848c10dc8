package render

import (
	"net/url"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/slackapi"
	"countersign/store"
)

// elicitation draws a question that a tool asks the requester during a run. The text comes from the tool server, and no
// person has verified the text.
func elicitation(m version, q approvers.Elicitation, c store.Call) *BlockBuilder {
	p := new(BlockBuilder)
	line := Say("❓ ")
	if q.State == approvers.ElicitationOpen {
		line.Person(q.Asked, "").Say(", ")
	}
	line.Strong(Name(q.Tool))
	if q.From != "" {
		line.Say(" (").soft(Name(q.From)).Say(")")
	}
	p.Para(line.Say(" needs an answer before it can continue. Its own words, not verified:"))
	p.quote(Clip(Visible(maskSecrets(q.Text, []byte(c.Args), c.Secrets)), maxElicited))
	if q.URL != "" {
		p.Para(Say("It asks you to open a page on ").Strong(hostOf(q.URL)).Say(". The whole address:"))
		p.preformatted(Visible(q.URL))
	}
	if q.State != approvers.ElicitationOpen {
		p.Para(elicited(q))
		return p
	}
	decline := button(ActNoAnswer, "Decline", m.token(q.ID), slack.StyleDefault)
	if q.URL != "" {
		p.buttons("", linkButton("Open", q.URL), button(ActVisited, "I have done it", m.token(q.ID), slack.StyleDefault), decline)
	} else {
		p.buttons("", button(ActFillIn, "Answer…", m.token(q.ID), slack.StyleDefault), decline)
	}
	p.Para(Say("Only you can answer, by ").At(q.ExpiresAt, clock).Say(". Your answer goes to the tool and is not shown here. It is not an approval. Never enter passwords or keys."))
	return p
}

// elicited describes how a question ended.
func elicited(q approvers.Elicitation) *RichText {
	switch q.State {
	case approvers.ElicitationAccepted:
		return Say("💬 ").Person(q.Asked, q.Name).Say(" answered, ").At(q.ClosedAt, clock).Say(".")
	case approvers.ElicitationDeclined:
		return Say("🚫 ").Person(q.Asked, q.Name).Say(" declined to answer, ").At(q.ClosedAt, clock).Say(". The tool was told.")
	case approvers.ElicitationExpired:
		return Say("⌛ Nobody answered in time. The tool was told.")
	}
	return Say("✖️ No answer is needed any more: ").Say(Clip(OneLine(q.Why), MaxNote)).Say(".")
}

// hostOf returns the host of an address in readable form.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an address that can't be read"
	}
	return shorten(Visible(u.Host), slackapi.MaxHeader)
}
