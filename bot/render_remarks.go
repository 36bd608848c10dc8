package bot

import (
	"slices"
	"strings"

	"countersign/approvers"
)

// remarks shows what was said: comments, and each question with its answer below it. No text of a remark can look like another remark,
// because each begins a line with a sign of ours, and the texts have no lines.
func (s scene) remarks(r approvers.Request) []*prose {
	most := maxRemarks / max(1, len(r.Remarks))
	if len(r.Remarks) <= 3 {
		most = maxRemark
	}
	var out []*prose
	for i, m := range r.Remarks {
		said := clip(oneLine(m.Text), most)
		switch m.Kind {
		case approvers.Comment:
			out = append(out, say("🗨️ ").also(s.speaker(m)).say(": ").soft(said))
		case approvers.Question:
			out = append(out, say("❓ ").also(s.speaker(m)).say(" asked: ").soft(said))
			if a := slices.IndexFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == i }); a >= 0 {
				answer := r.Remarks[a]
				out = append(out, say("   💬 ").also(s.speaker(answer)).say(": ").soft(clip(oneLine(answer.Text), most)))
			} else if r.State == approvers.Pending {
				out = append(out, say("   💬 Not answered yet."))
			}
		}
	}
	return out
}

// speaker names who made a remark, and in which role.
func (s scene) speaker(m approvers.Remark) *prose {
	p := new(prose).person(m.By, m.Name)
	if m.Role != "" {
		p.say(" (" + s.title(m.Role) + ")")
	}
	return p
}

// handedOn says on whose behalf this copy came, where that is so.
func (s scene) handedOn(r approvers.Request) *prose {
	for _, i := range r.Invited {
		if s.Surface.To == "user:"+i.Who.User() {
			return s.handed(i)
		}
	}
	return new(prose)
}

// handed says who added a person to the stage, to that person.
func (s scene) handed(i approvers.Invite) *prose {
	if i.Away {
		return say("↪️ You stand in for ").person(i.By, i.ByName).say(", who is away. You decide in your own name, as " + s.title(i.Role) + ".")
	}
	return say("↪️ ").person(i.By, i.ByName).say(" handed this on to you. You decide in your own name, as " + s.title(i.Role) + ".")
}

// invited names who was added to the current stage.
func (s scene) invited(r approvers.Request) *prose {
	p := new(prose)
	for i, one := range r.Invited {
		if i == 2 {
			return p.say(" or " + plural(len(r.Invited)-i, "other person"))
		}
		p.say(" or ").person(one.Who, one.Name)
	}
	return p
}

// cardFor is the address of the card that a person can open: their own copy, or else one in a channel.
func (s scene) cardFor(user string) string {
	link := ""
	for _, card := range s.Cards {
		switch {
		case card.To == "user:"+user:
			return s.permalink(card.Channel, card.TS, "")
		case strings.HasPrefix(card.To, "channel:"):
			link = s.permalink(card.Channel, card.TS, "")
		}
	}
	return link
}
