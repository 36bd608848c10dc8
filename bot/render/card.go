package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/slackapi"
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
			why := "Nobody has decided yet"
			if r.Unreached.Added(r, v.Message.Role) {
				why = "I could not show this to " + waits + ", because " + refusedCard(r.Unreached.Cause)
			}
			line = Say("⏫ " + why + ", so this comes to you as ").Strong(v.title(v.Message.Role)).
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

// moves adds the buttons: the decisions, and below them the other actions. A copy for one person offers the actions
// still open to that person. A card in a channel looks the same to everybody; a person without permission gets an
// explanation on a click.
func (v View) moves(p *BlockBuilder, r approvers.Request, whole bool) {
	value := v.token(r.ID)
	ask := button(ActAsk, "Ask…", value, slack.StyleDefault)
	comment := button(ActComment, "Comment…", value, slack.StyleDefault)
	handOn := button(ActHandOn, "Hand on…", value, slack.StyleDefault)
	takeBack := button(ActTakeBack, "Take back…", value, slack.StyleDefault)
	switch {
	case r.State == approvers.Approved:
		p.buttons("", takeBack)
	case r.State != approvers.Pending:
	case v.hadTheirSay(r):
		p.Para(Say("☑️ You have agreed. Others are still needed."))
		p.buttons("", comment, takeBack)
	case len(r.Standing()) > 0 && !v.ownCopy():
		v.choices(p, r, whole)
		p.buttons("", append([]slack.BlockElement{ask, comment, handOn, takeBack}, v.reveal(r)...)...)
	default:
		v.choices(p, r, whole)
		p.buttons("", append(v.andMore(r, whole, ask, comment, handOn), v.reveal(r)...)...)
	}
	if r.State == approvers.Pending {
		p.Small(v.hint(r))
	}
}

func (v View) ownCopy() bool { return strings.HasPrefix(v.Message.To, store.ToUser) }

// hadTheirSay reports whether the owner of this copy has already approved. Each person counts once.
func (v View) hadTheirSay(r approvers.Request) bool {
	user, own := strings.CutPrefix(v.Message.To, store.ToUser)
	return own && slices.ContainsFunc(r.Standing(), func(d approvers.Decision) bool { return d.By.User() == user })
}

// choices adds the decision buttons of a card.
func (v View) choices(p *BlockBuilder, r approvers.Request, whole bool) {
	p.Para(v.wantsTyping(r))
	p.buttons("", v.decisions(r, whole, slack.StylePrimary)...)
}

// decisions returns the decision buttons. A call that is not shown whole can't be approved here.
func (v View) decisions(r approvers.Request, whole bool, style slack.Style) []slack.BlockElement {
	value := v.token(r.ID)
	what := inFull(r.Preview, r.Tool, r.Args, r.Secrets)
	_, risk := riskWords(r.Plan.Risk, r.Effect)
	var row []slack.BlockElement
	switch {
	case whole && r.WantsTyping():
		row = append(row, button(ActTyped, "Approve…", value, style))
	case whole:
		rest := "\n\n" + risk + "."
		if doubt := twice(r); doubt != "" {
			rest += "\n\n" + doubt
		}
		ask := confirm("Approve this?", Clip(what, slackapi.MaxConfirm-Width(rest))+rest, "Approve", "Not yet", slack.StylePrimary)
		row = append(row, button(ActApprove, "Approve", value, style).WithConfirm(ask))
	default:
		row = append(row, button(ActArguments, "Open all arguments", value, style))
	}
	if whole && toolPreviewCut(r) {
		row = append(row, button(ActArguments, "Open whole preview", value, slack.StyleDefault))
	}
	return append(row, button(ActReject, "Reject…", value, slack.StyleDanger), button(ActModify, "Modify…", value, slack.StyleDefault))
}

// hint explains what the button labels can't.
func (v View) hint(r approvers.Request) string {
	if v.hadTheirSay(r) {
		return "Take back… ends the request for good, with a reason."
	}
	note := "Modify… changes the arguments before approving. Ask… writes to the requester's thread, Comment… only here."
	if v.allowsMore(r) {
		note += " Allow more… approves this and lets calls like it run without asking, for a while."
	}
	if !r.Plan.SelfOK {
		note += " Those who asked for it can't decide."
	}
	return note
}

// cardQueue says how many requests wait behind the open cards of a place, and names the oldest.
func (v View) cardQueue() Rendered {
	p := new(BlockBuilder)
	if v.CardQueue == nil {
		p.Para(Say("Nobody waits in line here any more."))
		d := Single(p)
		d.Expired = true
		return d
	}
	wait := "requests wait"
	if v.CardQueue.Waiting == 1 {
		wait = "request waits"
	}
	p.Para(Say("📚 ").Strong(fmt.Sprintf("%d more %s behind these.", v.CardQueue.Waiting, wait)).
		Say(fmt.Sprintf(" %s here already; when one is decided, the next in line gets its card. The deadlines stay as they are.", openCards(v.CardQueue.Open))))
	var oldest []*RichText
	for _, r := range v.CardQueue.First {
		oldest = append(oldest, v.isQueued(r))
	}
	if n := v.CardQueue.Waiting - len(oldest); n > 0 {
		oldest = append(oldest, Say(fmt.Sprintf("… and %d more", n)))
	}
	p.Para(oldest...)
	p.Small("They came faster than the policy lets cards be put before you, so approving one of them asks you to type one of its values.")
	return Single(p)
}

func openCards(n int) string {
	if n == 1 {
		return "1 undecided card is"
	}
	return fmt.Sprintf("%d undecided cards are", n)
}

func (v View) isQueued(r approvers.Request) *RichText {
	return Say("• ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxCallText)).Say(", asked for by ").Person(r.Facts.Asker, r.Facts.AskerName).
		Say("; expires ").At(r.ExpiresAt, DayTime)
}

// Mention is a person or user group that a card mentions.
type Mention struct{ User, Group string }

func (c Mention) in(p *RichText) {
	if c.Group != "" {
		p.group(c.Group)
		return
	}
	p.Person(approvers.PersonID(c.User), "")
}

// MentioningRequest returns the request for which a card mentions people, if it waits. For a bundle it is the first
// request that is decided there.
func MentioningRequest(s view.Model) (approvers.Request, bool) {
	if s.Message.Kind == store.OutboxCard {
		return *s.Request, s.Request.State == approvers.Pending
	}
	if s.Message.Kind == store.OutboxBundle {
		if open := (View{Model: s}).Undecided(); len(open) > 0 {
			return open[0], true
		}
	}
	return approvers.Request{}, false
}

// MaxMentions is the maximum number of mentions on a card. For a larger role the policy can name a user group.
const MaxMentions = 8
