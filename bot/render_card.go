package bot

import (
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/store"
)

// card draws a request for those who decide it. It answers an approver's eight questions in order: what will happen and can it be
// undone, to what exactly, who asked in which words, why it comes here, who else must agree, what happens otherwise,
// is anything hidden, and what can be done.
func (s scene) card() drawing {
	r := *s.Request
	p := new(page)
	text := argumentText(r.Args)
	whole := fitsCard(text)
	p.headline(whatHappens(r.Preview, r.Tool))
	p.para(s.standing(r)...)
	s.risk(p, r)
	s.arguments(p, text, whole)
	p.para(s.warnings(r, whole)...)
	s.edits(p, r)
	s.asked(p, r)
	if r.State == approvers.Pending {
		p.para(s.why(r)...)
	}
	p.para(s.progress(r)...)
	if r.State == approvers.Pending {
		p.para(s.otherwise(r))
		s.choices(p, r, whole)
	} else {
		s.aftermath(p, r)
	}
	return drawing{messages: []message{p.message()}, digest: r.Digest, whole: whole}
}

// standing is the first line: what is wanted of whom, or how it ended.
func (s scene) standing(r approvers.Request) []*prose {
	if r.State == approvers.Pending {
		line := say("✋ Waits for ").strong(s.title(r.Plan.Stages[r.Stage].Approver))
		if s.Surface.Kind == store.SurfaceEscalation && len(r.Joined) > 0 {
			line = say("⏫ Nobody has decided yet, so this comes to you as ").strong(s.title(r.Joined[len(r.Joined)-1])).
				say(". It waits for ").strong(s.title(r.Plan.Stages[r.Stage].Approver)).say("; you may decide too")
		}
		return []*prose{line.say(".")}
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
	if r.ClosedBy != "" {
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
	if s.about != "" {
		tool.say(" · " + s.about)
	}
	p.para(say(sign+" ").strong(words), tool)
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
	for _, f := range findings(wordsIn(r.Args)) {
		out = append(out, say("⚠️ ").strong(f))
	}
	if r.PreviewFault != "" {
		out = append(out, say("⚠️ ").strong("The preview could not be made: ").say(clip(oneLine(r.PreviewFault), maxNote)))
	}
	if !r.Plan.Known {
		out = append(out, say("⚠️ ").strong("The policy does not know this tool."))
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
	diff, ok := changes(before, r.Args)
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
	p.quoted(clip(visible(r.Facts.Quote), maxQuote))
}

// why says why it comes to this role, in the policy's own words.
func (s scene) why(r approvers.Request) []*prose {
	line := say("🧭 Why it comes here: ")
	total := 0
	for i, w := range r.Plan.Why {
		w = oneLine(w)
		if total += width(w); total > maxWhy {
			line.say(fmt.Sprintf("; and %d more reasons", len(r.Plan.Why)-i))
			break
		}
		if i > 0 {
			line.say("; ")
		}
		line.say(w)
	}
	return []*prose{line.say(".")}
}

// progress says who must agree and who did.
func (s scene) progress(r approvers.Request) []*prose {
	var out []*prose
	if r.State == approvers.Pending {
		out = append(out, s.stages(r))
	}
	told := 0
	for i, d := range r.Decisions {
		if d.Kind == approvers.Reject {
			continue // the ending says it
		}
		if r.State != approvers.Pending && len(r.Decisions) == 1 && d.By == r.ClosedBy && !d.Fallen {
			continue // likewise
		}
		if told++; told > maxPeopleTold {
			out = append(out, say("… and "+plural(len(r.Decisions)-i, "more decision")))
			break
		}
		out = append(out, s.decision(d))
	}
	return out
}

// stages says at which stage a request is, and what follows.
func (s scene) stages(r approvers.Request) *prose {
	all := r.Plan.Stages
	st := all[r.Stage]
	line := say("👥 ").strong(fmt.Sprintf("Stage %d of %d", r.Stage+1, len(all))).say(" · " + s.title(st.Approver)).say(s.joined(r))
	line.say(fmt.Sprintf(" · %d of %d agreed", r.At(r.Stage), st.Quorum))
	for i, next := range all[r.Stage+1:] {
		if i == maxStagesTold {
			line.say(", then " + plural(len(all)-r.Stage-1-i, "more stage"))
			break
		}
		line.say(", then " + s.title(next.Approver))
		if next.Quorum > 1 {
			line.say(fmt.Sprintf(" (%d people)", next.Quorum))
		}
	}
	return line
}

// joined names the roles that escalation added to the stage.
func (s scene) joined(r approvers.Request) string {
	out := ""
	for i, j := range r.Joined {
		if i == 2 {
			return out + " or " + plural(len(r.Joined)-i, "other role")
		}
		out += " or " + s.title(j)
	}
	return out
}

// decision says what one person did.
func (s scene) decision(d approvers.Decision) *prose {
	sign, did := "✔️ ", "approved"
	if d.Kind == approvers.Modify {
		did = "changed and approved"
	}
	if d.Fallen {
		sign = "✖️ "
		if d.Kind == approvers.Modify {
			did = "changed it, and may not approve it as changed"
		}
	}
	line := say(sign).person(d.By, d.Name).say(fmt.Sprintf(" (%s) %s at stage %d, ", s.title(d.Role), did, d.Stage+1)).at(d.At, clock)
	if d.Fallen && d.Kind != approvers.Modify {
		line.say("; no longer counts, because it was changed afterwards")
	}
	return line
}

// otherwise says what happens if nobody does anything, and when.
func (s scene) otherwise(r approvers.Request) *prose {
	line := say("⏳ If nobody decides by ").at(r.ExpiresAt, dayTime).say(", it is rejected and will not run.")
	if !r.EscalateAt.IsZero() {
		line.say(" At ").at(r.EscalateAt, clock).say(" " + s.lead(r) + " is told.")
	}
	return line
}

// lead names who is told next, by asking what an escalation at that time would do.
func (s scene) lead(r approvers.Request) string {
	_, role, ok := r.Escalate(approvers.Deciding{Policy: s.Policy, Now: r.EscalateAt})
	if !ok {
		return "the next approver up"
	}
	return s.title(role.Name)
}

// choices are the buttons. What can't be shown whole here can't be approved here.
func (s scene) choices(p *page, r approvers.Request, whole bool) {
	value := s.mark(r.ID)
	what := inFull(r.Preview, r.Tool, r.Args)
	_, risk := riskWords(r.Plan.Risk, r.Effect)
	var row []slack.BlockElement
	switch {
	case whole && r.Plan.Risk >= approvers.Critical:
		row = append(row, button(actTyped, "Approve…", value, slack.StylePrimary))
	case whole:
		ask := confirm("Approve this?", clip(what, maxConfirm-width(risk)-3)+"\n\n"+risk+".", "Approve", "Not yet", slack.StylePrimary)
		row = append(row, button(actApprove, "Approve", value, slack.StylePrimary).WithConfirm(ask))
	default:
		row = append(row, button(actArguments, "Open all arguments", value, slack.StylePrimary))
	}
	row = append(row, button(actReject, "Reject…", value, slack.StyleDanger), button(actModify, "Modify…", value, slack.StyleDefault))
	p.buttons("", row...)
	note := "Modify… changes the arguments before approving."
	if !r.Plan.SelfOK {
		note += " Those who asked for it can't decide."
	}
	p.small(note)
}

// aftermath says what came of it, and what the agent was told.
func (s scene) aftermath(p *page, r approvers.Request) {
	switch {
	case r.State == approvers.Approved:
		p.para(say("▶️ It is about to run, with exactly these arguments."))
	case r.State == approvers.Consumed && s.Execution != nil:
		s.ran(p, *s.Execution)
	case r.State == approvers.Rejected:
		p.para(say("It was not run. The agent was told that ").say(s.title(r.ClosedRole)).say(" rejected it and why, and to offer an alternative."))
	case r.State == approvers.Expired:
		p.para(say("It was not run. The agent was told so, and that it may be asked for again."))
	case r.State == approvers.Withdrawn:
		p.para(say("It was not run. The agent goes on with what is wanted now."))
	default:
		p.para(say("It was not run. The agent was told so."))
	}
}

// ran says how a run went.
func (s scene) ran(p *page, e approvers.Execution) {
	switch e.State {
	case approvers.ExecutionNone, approvers.ExecutionExecuting:
		p.para(say("▶️ It is running."))
	case approvers.ExecutionSucceeded:
		line := say("🏁 ").strong("It ran").say(", ").at(e.FinishedAt, dayTime)
		if e.ReportedBy != "" {
			line = say("🏁 ").person(e.ReportedBy, "").say(" reported that ").strong("it happened").say(", ").at(e.FinishedAt, dayTime)
		}
		p.para(line.say(". The agent was told the result:"))
		p.exact(clip(resultText(e.Result), maxResult))
	case approvers.ExecutionFailed:
		line := say("⚠️ ").strong("The tool reported an error").say(", ").at(e.FinishedAt, dayTime)
		if e.ReportedBy != "" {
			line = say("⚠️ ").person(e.ReportedBy, "").say(" reported that ").strong("it did not happen").say(", ").at(e.FinishedAt, dayTime)
		}
		p.para(line.say(". The agent was told:"))
		p.exact(clip(resultText(e.Result), maxResult))
	case approvers.ExecutionUnknown:
		p.para(say("❓ ").strong("It is unknown whether it happened").say(": the bot stopped while it ran. It is not run again by itself; somebody has to check."))
	}
}

// resultText lays out a tool's answer.
func resultText(s string) string {
	if s == "" {
		return "(an empty answer)"
	}
	if len(spans([]byte(s))) > 0 {
		return argumentText([]byte(s))
	}
	return visible(s)
}
