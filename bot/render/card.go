package render

import (
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// card draws a request for its approvers. It answers eight questions in order: what will happen and can it be undone,
// to what exactly, who asked in which words, why it comes here, who else must agree, what happens otherwise, is
// anything hidden, and what can be done.
func (v View) card() Rendered {
	r := *v.Request
	p := new(BlockBuilder)
	text := argumentsOf(r)
	whole := fitsCard(text)
	p.headline(whatHappens(r.Preview, r.Tool))
	p.Para(v.standing(r)...)
	p.Para(v.earlier(r))
	if r.State == approvers.Pending {
		p.Para(v.pausedHere())
	}
	v.risk(p, r)
	v.arguments(p, text, whole)
	p.Para(v.warnings(r, whole)...)
	v.toolPreview(p, r)
	v.edits(p, r)
	v.asked(p, r)
	if r.State == approvers.Pending {
		p.Para(v.why(r)...)
	}
	p.Para(v.progress(r)...)
	p.Para(v.remarks(r)...)
	if r.State == approvers.Pending {
		p.Para(v.otherwise(r)...)
	} else {
		v.aftermath(p, r)
	}
	v.moves(p, r, whole)
	return Rendered{Messages: []Message{p.Message()}, Shows: []store.Shown{{Request: r.ID, Digest: r.Digest, Whole: whole}}}
}

// standing returns the first lines: who has to decide, or how the request ended.
func (v View) standing(r approvers.Request) []*RichText {
	if r.State == approvers.Pending {
		waits := v.stageTitle(r.CurrentStage())
		line := Say("✋ Waits for ").Strong(waits)
		if v.Message.Kind == store.OutboxEscalation {
			line = Say("⏫ Nobody has decided yet, so this comes to you as ").Strong(v.title(v.Message.Role)).
				Say(". It waits for ").Strong(waits).Say("; you may decide too")
		}
		for i, c := range v.Mentions {
			line.Say(map[bool]string{true: ": ", false: " "}[i == 0])
			c.in(line)
		}
		return []*RichText{v.handedOn(r), line.Say(".")}
	}
	return []*RichText{Say(endSign[r.State] + " ").also(v.ending(r))}
}

// endSign maps final states to the sign shown before them.
var endSign = map[approvers.State]string{
	approvers.Approved: "✅", approvers.Consumed: "✅", approvers.Rejected: "⛔", approvers.Expired: "⌛",
	approvers.Withdrawn: "↩️", approvers.Revoked: "↩️", approvers.Voided: "🚫", approvers.Refused: "🚫",
}

// ending says how a request ended: by whom, in which role, when, and why.
func (v View) ending(r approvers.Request) *RichText {
	verb := map[approvers.State]string{
		approvers.Approved: "Approved", approvers.Consumed: "Approved", approvers.Rejected: "Rejected", approvers.Expired: "Expired",
		approvers.Withdrawn: "Withdrawn", approvers.Revoked: "Approval taken back", approvers.Voided: "Voided", approvers.Refused: "Refused by the policy",
	}[r.State]
	p := new(RichText).Strong(verb)
	if d, broken := r.BrokenBy(); broken && (r.State == approvers.Approved || r.State == approvers.Consumed) {
		return p.Say(" at the command line by ").Person(d.By, d.Name).Say(" (break glass), ").At(d.At, DayTime).Say(". Reason: ").soft(Clip(OneLine(d.Reason), maxReason))
	}
	if r.State == approvers.Approved || r.State == approvers.Consumed {
		return p.Say(" by ").also(v.agreed(r)).Say(", ").At(r.ClosedAt, DayTime).Say(".")
	}
	if r.ClosedBy != "" {
		if r.ClosedBy.Login() != "" {
			p.Say(" at the command line")
		}
		p.Say(" by ").Person(r.ClosedBy, r.ClosedName)
		if r.ClosedRole != "" {
			p.Say(" (" + v.title(r.ClosedRole) + ")")
		}
	}
	if len(r.Plan.Stages) > 1 && (r.State == approvers.Rejected || r.State == approvers.Expired) {
		p.Say(fmt.Sprintf(" at stage %d of %d", r.Stage+1, len(r.Plan.Stages)))
	}
	p.Say(", ").At(r.ClosedAt, DayTime).Say(".")
	if r.Reason != "" {
		p.Say(" Reason: ").soft(Clip(OneLine(r.Reason), maxReason))
	}
	return p
}

func (v View) risk(p *BlockBuilder, r approvers.Request) {
	sign, words := riskWords(r.Plan.Risk, r.Effect)
	tool := Say("Tool: ").Code(Name(r.Tool))
	if v.Tool.description != "" {
		tool.Say(" · " + v.Tool.description)
	}
	lines := []*RichText{Say(sign + " ").Strong(words), tool}
	if len(v.Tool.claims) > 0 {
		lines = append(lines, new(RichText).soft("Its source says, and nobody vouches for it, that it "+strings.Join(v.Tool.claims, ", ")+"."))
	}
	p.Para(lines...)
}

// arguments shows the exact arguments. If they are too long, it shows the beginning and how much is missing.
func (v View) arguments(p *BlockBuilder, text string, whole bool) {
	if whole {
		p.exact(text)
		return
	}
	start, missing := head(text, MaxCardArgs/3, maxCardLines/3)
	p.exact(start)
	p.Para(Say("✂️ ").Strong(fmt.Sprintf("Cut here: %d more characters.", missing)).
		Say(" The arguments are too long to show whole here."))
}

// warnings says whether anything is hidden, cut, masked, or written to look like something else.
func (v View) warnings(r approvers.Request, whole bool) []*RichText {
	var out []*RichText
	for _, f := range doubts(r) {
		out = append(out, Say("⚠️ ").Strong(f))
	}
	if r.PreviewFault != "" {
		out = append(out, Say("⚠️ ").Strong("The preview could not be made: ").Say(Clip(OneLine(r.PreviewFault), MaxNote)))
	}
	if !r.Plan.Known {
		out = append(out, Say("⚠️ ").Strong("The policy does not know this tool."))
	}
	if note := maskedNote(r); !note.empty() && r.State == approvers.Pending {
		out = append(out, note)
	}
	if len(out) == 0 && whole && r.State == approvers.Pending {
		out = append(out, new(RichText).soft("These are all arguments, exactly as they will be sent: nothing is hidden, cut or masked."))
	}
	return out
}

// edits shows the changes that approvers made.
func (v View) edits(p *BlockBuilder, r approvers.Request) {
	if len(r.Edits) == 0 {
		return
	}
	e := r.Edits[len(r.Edits)-1]
	line := Say("✏️ ").Strong("Changed").Say(" by ").Person(e.By, e.Name).Say(" ("+v.title(e.Role)+"), ").At(e.At, DayTime)
	if n := len(r.Edits) - 1; n == 1 {
		line.Say(", after an earlier change")
	} else if n > 1 {
		line.Say(fmt.Sprintf(", after %d earlier changes", n))
	}
	if e.Reason != "" {
		line.Say(": ").soft(Clip(OneLine(e.Reason), MaxNote))
	}
	p.Para(line)
	before := r.Edits[0].Before
	diff, ok := changes(before, r.Args, r.Secrets)
	if !ok {
		p.Para(Say("What was changed is too long to show side by side. The arguments above are the changed ones."))
		return
	}
	if diff != "" {
		p.exact(diff)
	}
}

// asked says who asked, where, and in which words.
func (v View) asked(p *BlockBuilder, r approvers.Request) {
	line := Say("💬 Asked by ").Person(r.Facts.Asker, r.Facts.AskerName)
	if n := len(r.Facts.Requesters) - 1; n == 1 {
		line.Say(" and 1 other person")
	} else if n > 1 {
		line.Say(fmt.Sprintf(" and %d other people", n))
	}
	switch {
	case v.Conversation.DM:
		line.Say(" in a direct message to the bot, which only they can open")
	case v.Conversation.Name != "":
		line.Say(" in ").Strong("#" + Name(v.Conversation.Name))
	}
	if link := v.permalink(v.Conversation.Channel, r.Facts.MessageTS, v.Conversation.Thread); link != "" && !v.Conversation.DM {
		line.Say(" · ").link(link, "See the conversation")
	}
	p.Para(line)
	p.quoted(Clip(Visible(maskSecrets(r.Facts.Quote, r.Args, r.Secrets)), maxQuote))
	since(p, r)
}

// why gives the policy's reasons for asking this role.
func (v View) why(r approvers.Request) []*RichText {
	return []*RichText{Say("🧭 Why it comes here: " + inWords(r.Plan.Why) + ".")}
}

// inWords joins the policy's reasons into one sentence.
func inWords(why []string) string {
	line := ""
	total := 0
	for i, w := range why {
		w = OneLine(w)
		if total += Width(w); total > maxWhy {
			return line + fmt.Sprintf("; and %d more reasons", len(why)-i)
		}
		if i > 0 {
			line += "; "
		}
		line += w
	}
	return line
}
