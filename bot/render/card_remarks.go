package render

import (
	"slices"
	"strings"

	"countersign/approvers"
)

// remarks shows comments, and each question with its answer below it. No text can imitate another remark: each remark
// begins with one of our signs, and its text has no line breaks.
func (v View) remarks(r approvers.Request) []*RichText {
	most := maxRemarks / max(1, len(r.Remarks))
	if len(r.Remarks) <= 3 {
		most = maxRemark
	}
	var out []*RichText
	for i, m := range r.Remarks {
		said := Clip(OneLine(m.Text), most)
		switch m.Kind {
		case approvers.Comment:
			out = append(out, Say("🗨️ ").also(v.speaker(m)).Say(": ").soft(said))
		case approvers.Question:
			out = append(out, Say("❓ ").also(v.speaker(m)).Say(" asked: ").soft(said))
			if a := slices.IndexFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == i }); a >= 0 {
				answer := r.Remarks[a]
				out = append(out, Say("   💬 ").also(v.speaker(answer)).Say(": ").soft(Clip(OneLine(answer.Text), most)))
			} else if r.State == approvers.Pending {
				out = append(out, Say("   💬 Not answered yet."))
			}
		}
	}
	return out
}

// speaker names the author of a remark and their role.
func (v View) speaker(m approvers.Remark) *RichText {
	p := new(RichText).Person(m.By, m.Name)
	if m.Role != "" {
		p.Say(" (" + v.title(m.Role) + ")")
	}
	return p
}

// handedOn says on whose behalf this copy was sent, if somebody added its owner.
func (v View) handedOn(r approvers.Request) *RichText {
	for _, i := range r.Invited {
		if v.Message.To == "user:"+i.Who.User() {
			return v.handed(i)
		}
	}
	return new(RichText)
}

// handed tells an added person who added them to the stage.
func (v View) handed(i approvers.Invite) *RichText {
	if i.Away {
		return Say("↪️ You stand in for ").Person(i.By, i.ByName).Say(", who is away. You decide in your own name, as " + v.title(i.Role) + ".")
	}
	return Say("↪️ ").Person(i.By, i.ByName).Say(" handed this on to you. You decide in your own name, as " + v.title(i.Role) + ".")
}

// invited names the people who were added to the current stage.
func (v View) invited(r approvers.Request) *RichText {
	p := new(RichText)
	for i, one := range r.Invited {
		if i == 2 {
			return p.Say(" or " + Plural(len(r.Invited)-i, "other person"))
		}
		p.Say(" or ").Person(one.Who, one.Name)
	}
	return p
}

// cardFor returns the address of a card that the person can open: their own copy, or else one in a channel.
func (v View) cardFor(user string) string {
	link := ""
	for _, card := range v.Cards {
		switch {
		case card.To == "user:"+user:
			return v.permalink(card.Channel, card.TS, "")
		case strings.HasPrefix(card.To, "channel:"):
			link = v.permalink(card.Channel, card.TS, "")
		}
	}
	return link
}
