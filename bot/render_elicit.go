package bot

import (
	"net/url"

	"github.com/slack-go/slack"

	"countersign/approvers"
)

// elicitation draws what a tool asks the person who asked, in the middle of its run. The words are its source's, and nobody vouches for them.
func (s scene) elicitation() *page {
	p := new(page)
	q := *s.Elicitation
	line := say("❓ ")
	if q.State == approvers.ElicitationOpen {
		line.person(q.Asked, "").say(", ")
	}
	line.strong(name(q.Tool)).say(" wants to know something before it goes on")
	if q.From != "" {
		line.say(", for ").soft("“" + name(q.From) + "”")
	}
	p.para(line.say(". In its own words, for which nobody vouches:"))
	p.quoted(clip(Visible(hush(q.Text, []byte(s.Call.Args), s.Call.Secrets)), maxElicited))
	if q.URL != "" {
		p.para(say("It asks you to visit a page on ").strong(hostOf(q.URL)).say(". The whole address:"))
		p.exact(Visible(q.URL))
	}
	if q.State != approvers.ElicitationOpen {
		p.para(s.elicited(q))
		return p
	}
	if q.URL != "" {
		p.buttons("", linkButton("Open", q.URL), button(actVisited, "I have done it", s.mark(q.ID), slack.StyleDefault), button(actNoAnswer, "Decline", s.mark(q.ID), slack.StyleDefault))
	} else {
		p.buttons("", button(actFillIn, "Answer…", s.mark(q.ID), slack.StyleDefault), button(actNoAnswer, "Decline", s.mark(q.ID), slack.StyleDefault))
	}
	p.para(say("Only you can answer, until ").at(q.ExpiresAt, clock).say(". What you fill in goes to the tool and is not shown here; it approves nothing. Never give passwords or keys."))
	return p
}

// elicited says what became of a question.
func (s scene) elicited(q approvers.Elicitation) *prose {
	switch q.State {
	case approvers.ElicitationAccepted:
		return say("💬 ").person(q.Asked, q.Name).say(" answered, ").at(q.ClosedAt, clock).say(".")
	case approvers.ElicitationDeclined:
		return say("🚫 ").person(q.Asked, q.Name).say(" declined to answer, ").at(q.ClosedAt, clock).say(". The tool was told so.")
	case approvers.ElicitationExpired:
		return say("⌛ Nobody answered in time. The tool was told so.")
	}
	return say("✖️ Not to be answered any more: ").say(clip(oneLine(q.Why), maxNote)).say(".")
}

// hostOf is the host of an address as people should read it.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an address that can't be read"
	}
	return short(Visible(u.Host), maxHeader)
}

// elicitForm is the form of what a tool asks. For somebody else than the person who was asked, and once it has ended, it says why there is none.
func (b *Bot) elicitForm(s seen, who approvers.Identity) slack.ModalViewRequest {
	q := *s.Elicitation
	if d := q.Answerable(who, s.Now); d != nil {
		return refusal(actFillIn, denied(d, nil, s.Policy))
	}
	p := new(page)
	p.para(new(prose).strong(name(q.Tool)).say(" asks, in the words of its source, for which nobody vouches:"))
	p.quoted(clip(Visible(hush(q.Text, []byte(s.Call.Args), s.Call.Secrets)), maxElicited))
	defaults := defaultsOf(q.Schema)
	fields := fieldsOf(q.Schema, defaults, nil)
	if fields == nil {
		p.para(say("⚠️ ").strong("This form can't be shown in Slack.").say(" Close this and choose Decline; the tool is told so."))
		return modal(formTitles[actFillIn], p)
	}
	for _, one := range fields {
		p.blocks = append(p.blocks, one.block())
	}
	p.small("It goes to the tool as you fill it in. It approves nothing. Never give passwords or keys.")
	return submittable(modal(formTitles[actFillIn], p), actFillIn, "Send", formMark{mark: s.mark, Execution: q.Execution})
}

// filledIn are the values of a form that a tool asked for, or what is wrong with them, by block.
func (b *Bot) filledIn(q approvers.Elicitation, v view) (values []byte, faults map[string]string) {
	faults = map[string]string{}
	defaults := defaultsOf(q.Schema)
	fields := fieldsOf(q.Schema, defaults, nil)
	if fields == nil {
		return nil, map[string]string{fieldRaw: "This form can't be shown in Slack."}
	}
	values = editFields(fields, defaults, v, faults)
	if len(faults) > 0 {
		return nil, faults
	}
	if err := b.Desk.Admits(q.Schema, values); err != nil {
		place(faults, fields, err)
		return nil, faults
	}
	return values, nil
}
