package bot

import (
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// card draws a request for those who decide it. It answers an approver's eight questions in order: what will happen and can it be
// undone, to what exactly, who asked in which words, why it comes here, who else must agree, what happens otherwise,
// is anything hidden, and what can be done.
func (s scene) card() drawing {
	r := *s.Request
	p := new(page)
	text := argumentsOf(r)
	whole := fitsCard(text)
	p.headline(whatHappens(r.Preview, r.Tool))
	p.para(s.standing(r)...)
	p.para(s.earlier(r))
	if r.State == approvers.Pending {
		p.para(s.pausedHere())
	}
	s.risk(p, r)
	s.arguments(p, text, whole)
	p.para(s.warnings(r, whole)...)
	s.forecast(p, r)
	s.edits(p, r)
	s.asked(p, r)
	if r.State == approvers.Pending {
		p.para(s.why(r)...)
	}
	p.para(s.progress(r)...)
	p.para(s.remarks(r)...)
	if r.State == approvers.Pending {
		p.para(s.otherwise(r)...)
	} else {
		s.aftermath(p, r)
	}
	s.moves(p, r, whole)
	return drawing{messages: []message{p.message()}, shows: []store.Shown{{Request: r.ID, Digest: r.Digest, Whole: whole}}}
}

// standing is the first line: what is wanted of whom, or how it ended.
func (s scene) standing(r approvers.Request) []*prose {
	if r.State == approvers.Pending {
		waits := s.stageTitle(r.Plan.Stages[r.Stage])
		line := say("✋ Waits for ").strong(waits)
		if s.Surface.Kind == store.SurfaceEscalation {
			line = say("⏫ Nobody has decided yet, so this comes to you as ").strong(s.title(s.Surface.Role)).
				say(". It waits for ").strong(waits).say("; you may decide too")
		}
		for i, c := range s.calls {
			line.say(map[bool]string{true: ": ", false: " "}[i == 0])
			c.in(line)
		}
		return []*prose{s.handedOn(r), line.say(".")}
	}
	return []*prose{say(endSign[r.State] + " ").also(s.ending(r))}
}

// endSign stands before how a request ended.
var endSign = map[approvers.State]string{
	approvers.Approved: "✅", approvers.Consumed: "✅", approvers.Rejected: "⛔", approvers.Expired: "⌛",
	approvers.Withdrawn: "↩️", approvers.Revoked: "↩️", approvers.Voided: "🚫", approvers.Refused: "🚫",
}

// ending says how a request ended: who, in which role, when, and why.
func (s scene) ending(r approvers.Request) *prose {
	verb := map[approvers.State]string{
		approvers.Approved: "Approved", approvers.Consumed: "Approved", approvers.Rejected: "Rejected", approvers.Expired: "Expired",
		approvers.Withdrawn: "Withdrawn", approvers.Revoked: "Approval taken back", approvers.Voided: "Voided", approvers.Refused: "Refused by the policy",
	}[r.State]
	p := new(prose).strong(verb)
	if d, broken := r.BrokenBy(); broken && (r.State == approvers.Approved || r.State == approvers.Consumed) {
		return p.say(" at the command line by ").person(d.By, d.Name).say(" (break glass), ").at(d.At, dayTime).say(". Reason: ").soft(clip(oneLine(d.Reason), maxReason))
	}
	if r.State == approvers.Approved || r.State == approvers.Consumed {
		return p.say(" by ").also(s.agreed(r)).say(", ").at(r.ClosedAt, dayTime).say(".")
	}
	if r.ClosedBy != "" {
		if r.ClosedBy.Login() != "" {
			p.say(" at the command line")
		}
		p.say(" by ").person(r.ClosedBy, r.ClosedName)
		if r.ClosedRole != "" {
			p.say(" (" + s.title(r.ClosedRole) + ")")
		}
	}
	if len(r.Plan.Stages) > 1 && (r.State == approvers.Rejected || r.State == approvers.Expired) {
		p.say(fmt.Sprintf(" at stage %d of %d", r.Stage+1, len(r.Plan.Stages)))
	}
	p.say(", ").at(r.ClosedAt, dayTime).say(".")
	if r.Reason != "" {
		p.say(" Reason: ").soft(clip(oneLine(r.Reason), maxReason))
	}
	return p
}

func (s scene) risk(p *page, r approvers.Request) {
	sign, words := riskWords(r.Plan.Risk, r.Effect)
	tool := say("Tool: ").code(name(r.Tool))
	if s.about.description != "" {
		tool.say(" · " + s.about.description)
	}
	lines := []*prose{say(sign + " ").strong(words), tool}
	if len(s.about.claims) > 0 {
		lines = append(lines, new(prose).soft("Its source says, and nobody vouches for it, that it "+strings.Join(s.about.claims, ", ")+"."))
	}
	p.para(lines...)
}

// arguments shows the exact arguments, or their beginning with how much is missing.
func (s scene) arguments(p *page, text string, whole bool) {
	if whole {
		p.exact(text)
		return
	}
	start, missing := head(text, maxCardArgs/3, maxCardLines/3)
	p.exact(start)
	p.para(say("✂️ ").strong(fmt.Sprintf("Cut here: %d more characters.", missing)).
		say(" The arguments are too long to show whole here."))
}

// warnings answer whether anything is hidden, cut, masked, or written to look like something else.
func (s scene) warnings(r approvers.Request, whole bool) []*prose {
	var out []*prose
	for _, f := range doubts(r) {
		out = append(out, say("⚠️ ").strong(f))
	}
	if r.PreviewFault != "" {
		out = append(out, say("⚠️ ").strong("The preview could not be made: ").say(clip(oneLine(r.PreviewFault), maxNote)))
	}
	if !r.Plan.Known {
		out = append(out, say("⚠️ ").strong("The policy does not know this tool."))
	}
	if note := maskedNote(r); !note.empty() && r.State == approvers.Pending {
		out = append(out, note)
	}
	if len(out) == 0 && whole && r.State == approvers.Pending {
		out = append(out, new(prose).soft("These are all arguments, exactly as they will be sent: nothing is hidden, cut or masked."))
	}
	return out
}

// edits shows what approvers changed.
func (s scene) edits(p *page, r approvers.Request) {
	if len(r.Edits) == 0 {
		return
	}
	e := r.Edits[len(r.Edits)-1]
	line := say("✏️ ").strong("Changed").say(" by ").person(e.By, e.Name).say(" ("+s.title(e.Role)+"), ").at(e.At, dayTime)
	if n := len(r.Edits) - 1; n == 1 {
		line.say(", after an earlier change")
	} else if n > 1 {
		line.say(fmt.Sprintf(", after %d earlier changes", n))
	}
	if e.Reason != "" {
		line.say(": ").soft(clip(oneLine(e.Reason), maxNote))
	}
	p.para(line)
	before := r.Edits[0].Before
	diff, ok := changes(before, r.Args, r.Secrets)
	if !ok {
		p.para(say("What was changed is too long to show side by side. The arguments above are the changed ones."))
		return
	}
	if diff != "" {
		p.exact(diff)
	}
}

// asked says who asked, where, and in which words.
func (s scene) asked(p *page, r approvers.Request) {
	line := say("💬 Asked by ").person(r.Facts.Asker, r.Facts.AskerName)
	if n := len(r.Facts.Requesters) - 1; n == 1 {
		line.say(" and 1 other person")
	} else if n > 1 {
		line.say(fmt.Sprintf(" and %d other people", n))
	}
	switch {
	case s.Conversation.DM:
		line.say(" in a direct message to the bot, which only they can open")
	case s.Conversation.Name != "":
		line.say(" in ").strong("#" + name(s.Conversation.Name))
	}
	if link := s.permalink(s.Conversation.Channel, r.Facts.MessageTS, s.Conversation.Thread); link != "" && !s.Conversation.DM {
		line.say(" · ").link(link, "See the conversation")
	}
	p.para(line)
	p.quoted(clip(Visible(hush(r.Facts.Quote, r.Args, r.Secrets)), maxQuote))
	since(p, r)
}

// why says why it comes to this role, in the policy's own words.
func (s scene) why(r approvers.Request) []*prose {
	return []*prose{say("🧭 Why it comes here: " + inWords(r.Plan.Why) + ".")}
}

// inWords is the policy's reasons as one sentence.
func inWords(why []string) string {
	line := ""
	total := 0
	for i, w := range why {
		w = oneLine(w)
		if total += width(w); total > maxWhy {
			return line + fmt.Sprintf("; and %d more reasons", len(why)-i)
		}
		if i > 0 {
			line += "; "
		}
		line += w
	}
	return line
}
