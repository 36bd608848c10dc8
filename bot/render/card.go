package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/slackapi"
	"countersign/store"
)

// card draws a request for its approvers. A pending card begins with the warnings, the effect of the call, and its
// arguments. Then the card says who asked, and in which words. At the end, the card says for whom the request waits,
// and what happens if nobody decides. The card leaves out facts that are the normal case. Details… shows everything.
// The card of a decided request has two lines.
func (v View) card() Rendered {
	r := *v.Request
	p := new(BlockBuilder)
	whole := fitsCard(v.argumentTable(r))
	if r.State == approvers.Pending {
		v.pending(p, r, whole)
	} else {
		v.decidedCard(p, r)
	}
	return Rendered{Messages: []Message{p.Message()}, Shows: []store.Shown{{Request: r.ID, Digest: r.Digest, Whole: whole}}}
}

func (v View) pending(p *BlockBuilder, r approvers.Request, whole bool) {
	p.Para(v.banners(r)...)
	p.headline(whatHappens(r.Preview, r.Tool))
	p.Para(riskLine(r))
	v.arguments(p, v.argumentTable(r), whole, " Details… shows all of them, and there it can be approved.")
	v.argumentChanges(p, r)
	if note := maskedNote(r); !note.empty() {
		if v.mustReveal(r) {
			them := "them"
			if len(SecretsIn(r.Args, r.Secrets)) == 1 {
				them = "it"
			}
			note.Strong(" Reveal " + them + " first, then you can approve.")
		}
		p.Para(note)
	}
	p.Para(v.toolPreviewLine(r, MaxNote))
	v.requester(p, r, maxQuote)
	p.Para(v.waitsLine(r)...)
	p.Para(v.remarks(r)...)
	p.Para(v.ifNobodyActs(r)...)
	v.actionButtons(p, r, whole)
}

// banners returns the warnings that stand above everything else on a card. Normally there are no such warnings.
func (v View) banners(r approvers.Request) []*RichText {
	out := v.setbacks(r)
	for _, f := range doubts(r) {
		out = append(out, Say("⚠️ ").Strong(f))
	}
	return out
}

// setbacks returns the warnings about a request that do not concern its arguments.
func (v View) setbacks(r approvers.Request) []*RichText {
	out := []*RichText{v.earlierRunWarning(r)}
	if r.State != approvers.Pending {
		return out
	}
	out = append(out, v.pausedHere())
	if no := previewSaysNo(r); no != "" {
		out = append(out, Say("⛔ ").Strong(no))
	}
	for _, warning := range unknownTool(r) {
		out = append(out, Say("⚠️ ").Strong(warning))
	}
	if fault := previewFault(r); fault != "" {
		out = append(out, Say("⚠️ ").Strong("The preview could not be made: ").Say(Clip(OneLine(fault), MaxNote)))
	}
	return out
}

// riskLine describes in a few words the risk of a request, according to the policy.
func riskLine(r approvers.Request) *RichText {
	sign, words := riskWords(r.Plan.Risk, r.Effect)
	return Say(sign + " ").Strong(words)
}

// decidedCard draws the subject of a request, who asked, who decided, and how the request ended.
func (v View) decidedCard(p *BlockBuilder, r approvers.Request) {
	what := Say(endSign[r.State] + " ").Strong(whatHappens(r.Preview, r.Tool))
	if r.Facts.Asker != "" {
		what.Say(", asked by ").Person(r.Facts.Asker, r.Facts.AskerName)
	}
	p.Para(what, v.ending(r).add(v.aftermath(r)))
	value := v.token(r.ID)
	row := []slack.BlockElement{button(ActArguments, "Details…", value, slack.StyleDefault)}
	if r.State == approvers.Approved {
		row = append(row, button(ActTakeBack, "Take back…", value, slack.StyleDefault))
	}
	p.buttons("", row...)
}

// endSign maps final states to the sign shown before them.
var endSign = map[approvers.State]string{
	approvers.Approved: "✅", approvers.Consumed: "✅", approvers.Rejected: "⛔", approvers.Expired: "⌛",
	approvers.Withdrawn: "↩️", approvers.Revoked: "↩️", approvers.Voided: "🚫", approvers.Refused: "🚫",
}

// ending describes how a request ended: by whom, in which role, when, and why.
func (v View) ending(r approvers.Request) *RichText {
	verb := map[approvers.State]string{
		approvers.Approved: "Approved", approvers.Consumed: "Approved", approvers.Rejected: "Rejected", approvers.Expired: "Expired",
		approvers.Withdrawn: "Withdrawn", approvers.Revoked: "Approval taken back", approvers.Voided: "Voided", approvers.Refused: "Refused by the policy",
	}[r.State]
	p := new(RichText).Strong(verb)
	if d, broken := r.BrokenBy(); broken && (r.State == approvers.Approved || r.State == approvers.Consumed) {
		return p.Say(" at the command line by ").Person(d.By, d.Name).Say(" (break glass), ").At(d.At, DayTime).reason(d.Reason, maxReason)
	}
	if r.State == approvers.Approved || r.State == approvers.Consumed {
		p.Say(" by ").add(v.countedApprovals(r))
		if len(r.Edits) > 0 {
			p.Say(" with changes")
		}
		return p.Say(", ").At(r.ClosedAt, DayTime).Say(".")
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
	p.Say(", ").At(r.ClosedAt, DayTime)
	return p.reason(r.Reason, maxReason)
}

// arguments shows the exact arguments. If the arguments are too long, it shows their beginning and how much is missing.
// The function then adds readsAll, which says where to read all arguments.
func (v View) arguments(p *BlockBuilder, text string, whole bool, readsAll string) {
	if whole {
		p.preformatted(text)
		return
	}
	start, missing := head(text, maxCutArgs, maxCutLines)
	p.preformatted(start)
	p.Para(Say("✂️ ").Strong(fmt.Sprintf("Cut here: %d more characters.", missing)).Say(readsAll))
}

// argumentTable lays out the arguments of a request for its approvers. The most informative arguments come first. If an
// approver changed an argument, its earlier value is shown before the current one.
func (v View) argumentTable(r approvers.Request) string {
	l := layout{secrets: r.Secrets, first: firstArguments(r, v.Policy, v.Tool)}
	l.was = currentValues(r)
	if len(r.Edits) > 0 {
		maps.Copy(l.was, changedFrom(r.Edits[0].Before, r.Args, r.Secrets))
	}
	return l.of(r.Args)
}

// firstArguments returns the most informative arguments of a call: the arguments in the policy's sentence, and the
// arguments that the tool requires.
func firstArguments(r approvers.Request, p *approvers.Policy, tool ToolDescription) []string {
	var names []string
	if p != nil {
		t, _ := p.Tool(r.Tool, r.Agent)
		for _, action := range templateActions.FindAllString(t.Preview.Text, -1) {
			for _, m := range templateFields.FindAllStringSubmatch(action, -1) {
				names = append(names, m[1])
			}
		}
	}
	return append(names, tool.required...)
}

var (
	templateActions = regexp.MustCompile(`\{\{.*?\}\}`)
	templateFields  = regexp.MustCompile(`\.([A-Za-z_]\w*)`)
)

// argumentChanges names the person who changed the arguments. The function also shows the changes that the table of
// arguments leaves out. The table shows an earlier value only if it takes one short line.
func (v View) argumentChanges(p *BlockBuilder, r approvers.Request) {
	if len(r.Edits) == 0 {
		return
	}
	e := r.Edits[len(r.Edits)-1]
	line := Say("✏️ ").Strong("Changed").Say(" by ").Person(e.By, e.Name).Say(" ("+v.title(e.Role)+"), ").At(e.At, clock)
	if e.Reason != "" {
		line.Say(": ").soft(Clip(OneLine(e.Reason), MaxNote))
	}
	p.Para(line)
	before := r.Edits[0].Before
	diff, ok := longChanges(before, r.Args, r.Secrets)
	if !ok {
		p.Para(Say("Before it was too long to show here: Details… has it."))
		return
	}
	p.preformatted(diff)
}

// requester draws who asked, where, and in which words. The parameter most is the maximum length of the quotation, in
// characters.
func (v View) requester(p *BlockBuilder, r approvers.Request, most int) {
	said := maskSecrets(r.Facts.Quote, r.Args, r.Secrets)
	if most < maxQuote {
		said = OneLine(said)
	} else {
		said = Visible(said)
	}
	if r.Facts.Caller != nil {
		askedByCaller(p, r, said, most)
		return
	}
	line := Say("💬 ").Person(r.Facts.Asker, r.Facts.AskerName)
	if n := len(r.Facts.Requesters) - 1; n == 1 {
		line.Say(" and 1 other person")
	} else if n > 1 {
		line.Say(fmt.Sprintf(" and %d other people", n))
	}
	switch {
	case v.Conversation.DM:
		line.Say(" in a direct message")
	case v.Conversation.Name != "":
		line.Say(" in ").link(v.permalink(v.Conversation.Channel, r.Facts.MessageTS, v.Conversation.Thread), "#"+Name(v.Conversation.Name))
	}
	p.Para(line.Say(":"))
	p.quote(Clip(said, most))
	messageChange(p, r)
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

// actionButtons adds the buttons of a pending card. A copy for one person has only the buttons that this person can use
// now. A card in a channel looks the same to everybody. A person without permission gets an explanation when they
// click.
func (v View) actionButtons(p *BlockBuilder, r approvers.Request, whole bool) {
	value := v.token(r.ID)
	details := button(ActArguments, "Details…", value, slack.StyleDefault)
	if v.hadTheirSay(r) {
		p.Para(haveAgreed(v, r))
		p.buttons("", button(ActTakeBack, "Take back…", value, slack.StyleDefault), details)
		return
	}
	if hasPassedOn(v, r) {
		p.Para(stillNeeded(v, r, "☑️ You changed it, which needs approval."))
		p.buttons("", details)
		return
	}
	p.Para(v.wantsTyping(r))
	row := v.decisions(r, whole, slack.StylePrimary)
	if whole {
		row = append(row, details)
	}
	p.buttons("", row...)
}

// For a person who has approved, haveAgreed says which approvals are missing.
func haveAgreed(v View, r approvers.Request) *RichText {
	return stillNeeded(v, r, "☑️ You have agreed.")
}

// stillNeeded describes what a person did, and which approvals are missing.
func stillNeeded(v View, r approvers.Request, did string) *RichText {
	st := r.CurrentStage()
	line := Say(did + " Still needed: ")
	switch n := st.Quorum - r.At(r.Stage); {
	case n > 1:
		line.Say(fmt.Sprintf("%d people of ", n))
	case st.Quorum > 1:
		line.Say("one more of ")
	}
	return line.Strong(v.stageTitle(st) + v.escalatedRoles(r)).Say(".")
}

func (v View) ownCopy() bool { return strings.HasPrefix(v.Message.To, store.ToUser) }

// hadTheirSay reports whether the owner of this copy has already approved. The owner can't approve again, because each
// person's approval counts only once.
func (v View) hadTheirSay(r approvers.Request) bool {
	user, own := strings.CutPrefix(v.Message.To, store.ToUser)
	return own && slices.ContainsFunc(r.ValidApprovals(), func(d approvers.Decision) bool { return d.By.User() == user })
}

// hasPassedOn reports whether the owner of this copy changed the arguments in a role outside the current stage.
func hasPassedOn(v View, r approvers.Request) bool {
	user, own := strings.CutPrefix(v.Message.To, store.ToUser)
	if !own {
		return false
	}
	asked := append(r.CurrentStage().Roles(), r.Joined...)
	return slices.ContainsFunc(r.Edits, func(e approvers.Edit) bool { return e.By.User() == user && !slices.Contains(asked, e.Role) })
}

// decisions returns the decision buttons. A call that is not shown whole can't be approved here.
func (v View) decisions(r approvers.Request, whole bool, style slack.Style) []slack.BlockElement {
	value := v.token(r.ID)
	var row []slack.BlockElement
	masked := v.mustReveal(r)
	if previewSaysNo(r) != "" {
		style = slack.StyleDefault
	}
	if masked {
		row = append(row, button(ActReveal, "Reveal…", value, slack.StylePrimary))
		style = slack.StyleDefault
	}
	switch {
	case masked && v.ownCopy(): // once the values are revealed, this copy has the button
	case whole && r.WantsTyping():
		row = append(row, button(ActTyped, "Approve…", value, style))
	case whole:
		row = append(row, button(ActApprove, "Approve", value, style).WithConfirm(askApprove(r)))
	default:
		row = append(row, button(ActArguments, "Details…", value, style))
	}
	row = append(row, button(ActReject, "Reject…", value, slack.StyleDanger))
	if masked || r.Bundled() || !r.Facts.Editable() { // the button is in Details…, or there is none
		return row
	}
	return append(row, button(ActModify, "Modify…", value, slack.StyleDefault))
}

// askApprove returns the confirmation dialog of an approval. The dialog repeats the effect of the call and the
// warnings.
func askApprove(r approvers.Request) *slack.ConfirmationBlockObject {
	_, risk := riskWords(r.Plan.Risk, r.Effect)
	rest := "\n\n" + risk + "."
	for _, doubt := range []string{previewSaysNo(r), twiceWarning(r)} {
		if doubt != "" {
			rest += "\n\n" + Clip(doubt, maxCallAsk)
		}
	}
	what := inFull(r.Preview, r.Tool, r.Args, r.Secrets)
	return confirm("Approve this?", Clip(what, slackapi.MaxConfirm-Width(rest))+rest, "Approve", "Not yet", slack.StylePrimary)
}

// cardQueue draws how many requests wait until the open cards at an address are decided, and names the oldest of these
// requests.
func (v View) cardQueue() Rendered {
	p := new(BlockBuilder)
	if v.CardQueue == nil {
		p.Para(Say("No requests are queued here any more."))
		d := Single(p)
		d.Expired = true
		return d
	}
	wait := "requests wait"
	if v.CardQueue.Waiting == 1 {
		wait = "request waits"
	}
	p.Para(Say("📚 ").Strong(fmt.Sprintf("%d more %s behind these.", v.CardQueue.Waiting, wait)).
		Say(fmt.Sprintf(" %s here already; when one is decided, the next request gets its card. The deadlines stay as they are.", openCards(v.CardQueue.Open))))
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

// MentioningRequest returns the pending request for which a card mentions people, if there is one. For a bundle, it is
// the first request that waits for a decision on the bundle.
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

// MaxMentions is the maximum number of mentions on a card. If a role has more people, the policy can name a user group
// instead.
const MaxMentions = 8
