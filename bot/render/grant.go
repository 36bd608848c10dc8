package render

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/slackapi"
	"countersign/store"
)

// grantMessage is the message about a grant, with the buttons to end or accept the grant.
type grantMessage struct {
	titles
	version
	grant        approvers.Grant
	stalled      string // why no call can run under the grant now
	conversation store.Conversation
	now          time.Time
}

func newGrantMessage(v View) grantMessage {
	return grantMessage{titles: titles{v.Policy}, version: v.version(), grant: *v.Grant, stalled: v.Stalled, conversation: v.Conversation, now: v.Now}
}

// draw draws a grant: which calls may run without approval, who gave the grant, how many calls are left, and how to
// end the grant.
func (m grantMessage) draw() *BlockBuilder {
	p := new(BlockBuilder)
	g := m.grant
	if g.State == approvers.GrantLive && !m.now.Before(g.Until) {
		g.State, g.ClosedAt = approvers.GrantExpired, g.Until // the grant has just ended, and the workflow has not recorded it yet
	}
	switch {
	case g.State == approvers.GrantLive:
		p.Para(m.grantLine(g), bounds(g), left(g), stallReason(m.stalled))
		p.buttons("", m.revoke(g))
		p.Small("Everything else still waits for approval, also what the person who allowed this asks for.")
	case g.State == approvers.GrantOffered && m.now.Before(g.Until):
		m.offer(p, g)
	case g.OfferedTo != "" && g.By == "":
		p.Para(proved(g), grantEnd(g))
	default:
		p.Para(m.grantLine(g), grantEnd(g))
	}
	return p
}

// grantLine returns one line that says who allowed the calls, how many, and for how long.
func (m grantMessage) grantLine(g approvers.Grant) *RichText {
	p := Say("🎟️ ").Person(g.By, g.Name).Say(" (" + m.title(g.Role) + ") allowed ").Strong(Plural(g.Uses, "more call") + " of " + Name(g.Tool)).
		Say(" to run without asking, ")
	if approvers.IsCallerScope(g.Conversation) {
		p.Say("for " + grantedTo(g))
	} else if g.Conversation == "" {
		p.Say("for everybody who asks the agent " + Name(g.Agent) + ", in all of its conversations")
	} else {
		p.Say("for everybody who asks in this conversation").add(m.grantConversation(g))
	}
	return p.Say(", until ").At(g.Until, DayTime).Say(".")
}

// grantConversation names the grant's conversation, for readers who see the grant in another place.
func (m grantMessage) grantConversation(g approvers.Grant) *RichText {
	p := new(RichText)
	if !m.ownCopy() || m.conversation.DM || m.conversation.Name == "" {
		return p
	}
	return p.Say(" in ").Strong("#" + Name(m.conversation.Name))
}

// bounds describes which calls the grant covers.
func bounds(g approvers.Grant) *RichText {
	var parts []string
	for i, b := range g.Bounds {
		switch {
		case i == maxBoundsTold:
			parts = append(parts, fmt.Sprintf("and %d more", len(g.Bounds)-i))
		case i > maxBoundsTold:
		case b.AtMost != nil:
			parts = append(parts, Name(b.Arg)+" from 0 to "+Name(string(b.AtMost)))
		case len(b.Equal) == 0:
			parts = append(parts, "no "+Name(b.Arg))
		default:
			parts = append(parts, Name(b.Arg)+" "+boundShown(b, g.Secrets))
		}
	}
	p := new(RichText)
	if len(parts) > 0 {
		p.Say("Only with ").Strong(strings.Join(parts, ", ")).Say(". ")
	}
	if free := g.Free(); len(free) > 0 {
		p.Say(ArgumentList(free) + " may be anything.")
	}
	return p
}

// boundShown returns, in readable form, the value that an argument must have under a grant.
func boundShown(b approvers.Bound, secrets []string) string {
	if approvers.HoldsSecret(secrets, b.Arg) {
		return masked(b.Equal)
	}
	return shorten(Visible(string(b.Equal)), maxBoundShown)
}

// ArgumentList names arguments up to a limit, and counts the rest.
func ArgumentList(args []string) string {
	shown := args[:min(len(args), maxBoundsTold)]
	text := make([]string, len(shown))
	for i, a := range shown {
		text[i] = Name(a)
	}
	if rest := len(args) - len(shown); rest > 0 {
		text = append(text, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(text, ", ")
}

func left(g approvers.Grant) *RichText {
	return new(RichText).Strong(fmt.Sprintf("%d of %d left.", g.Left, g.Uses))
}

// stallReason explains why no call can run under a grant that is in force.
func stallReason(why string) *RichText {
	if why == "" {
		return new(RichText)
	}
	return Say("⚠️ No call can use it now: " + Clip(Visible(why), MaxNote) + ".")
}

// grantEnd describes how the grant ended.
func grantEnd(g approvers.Grant) *RichText {
	used := g.Uses - g.Left
	ran := map[bool]string{true: "It was not used.", false: Plural(used, "call") + " ran under it."}[used == 0]
	by := func(sign, did string) *RichText {
		return Say(sign+" ").Strong(did).Say(" by ").Person(g.ClosedBy, g.ClosedName).Say(", ").At(g.ClosedAt, DayTime).Say(". ")
	}
	switch g.State {
	case approvers.GrantUsed:
		return Say("✔️ ").Strong("Used up").Say(", ").At(g.ClosedAt, DayTime).Say(". Such calls wait for approval again.")
	case approvers.GrantRevoked:
		return by("↩️", "Taken back").Say(ran + " Such calls wait for approval again.")
	case approvers.GrantReplaced:
		return by("🔁", "Replaced by a newer permission").Say(ran)
	case approvers.GrantDeclined:
		return by("✋", "Declined").Say("Such calls wait for approval, as before.")
	}
	if g.By == "" {
		return Say("⌛ ").Strong("Nobody accepted").Say(" by ").At(g.Until, DayTime).Say(". Such calls wait for approval, as before.")
	}
	return Say("⌛ ").Strong("Its time is over").Say(", ").At(g.ClosedAt, DayTime).Say(". " + ran + " Such calls wait for approval again.")
}

// proved describes which earlier approvals led to an offer.
func proved(g approvers.Grant) *RichText {
	p := Say("🎟️ ").Strong(Name(g.Tool) + " was approved " + times(g.Row) + " in a row").Say(" without changes, and succeeded each time. Approved by ")
	for i, who := range g.Approved {
		if i == maxPeopleTold {
			p.Say(fmt.Sprintf(" and %d more", len(g.Approved)-i))
			break
		}
		if i > 0 {
			p.Say(", ")
		}
		p.Person(who.ID, who.Name)
	}
	return p.Say(".")
}

// offer asks whether calls of the grant's tool may run without approval for a while.
func (m grantMessage) offer(p *BlockBuilder, g approvers.Grant) {
	what := fmt.Sprintf("Allow up to %s to run without asking, for %s?", Plural(g.Uses, "such call"), formatPeriod(g.Within))
	p.Para(proved(g), new(RichText).Strong(what), bounds(g),
		Say("For everybody who asks the agent "+Name(g.Agent)+", in all of its conversations. It can be taken back at any time."),
		Say("⏳ Nothing changes unless ").Strong(m.title(g.OfferedTo)).Say(" accepts by ").At(g.Until, DayTime).Say("."))
	again := confirm("Allow this?", Clip(what, slackapi.MaxConfirm-100)+"\n\nThis starts now, in your name.", "Accept", "Not yet", slack.StylePrimary)
	p.buttons("", button(ActAccept, "Accept", m.token(g.ID), slack.StyleDefault).WithConfirm(again), button(ActDecline, "Decline", m.token(g.ID), slack.StyleDefault))
	p.Small("Everything else still waits for approval, also what the person who accepts asks for.")
}

// allowsMore reports whether an approver of this request may allow more calls of the same kind.
func allowsMore(r approvers.Request, p *approvers.Policy, now time.Time) bool {
	return r.Grantable(approvers.DecisionContext{Policy: p, Now: now})
}

// formatPeriod formats a duration for people: "1 hour 30 minutes".
func formatPeriod(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		long time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / unit.long; n > 0 {
			parts = append(parts, Plural(int(n), unit.name))
			d -= n * unit.long
		}
	}
	return strings.Join(parts, " ")
}

// GrantLine returns one line of a list of grants. The parameter mine says whether the reader can revoke the grant.
func GrantLine(g view.ListedGrant, policy *approvers.Policy, workspaceURL string, mine bool) *RichText {
	p := Say("🎟️ ").Strong(Name(g.Grant.Tool))
	switch {
	case approvers.IsCallerScope(g.Grant.Conversation):
		p.Say(" for " + grantedTo(g.Grant))
	case g.Grant.Conversation == "":
		p.Say(" for everybody who asks the agent " + Name(g.Grant.Agent))
	case g.Conversation.DM:
		p.Say(" in a direct message to the bot")
	default:
		p.Say(" in ").Strong("#" + Name(g.Conversation.Name))
	}
	p.Say(": allowed by ").Person(g.Grant.By, g.Grant.Name).Say(" ("+titles{policy}.title(g.Grant.Role)+"), ").add(left(g.Grant)).
		Say(" Until ").At(g.Grant.Until, DayTime).Say(". ").add(bounds(g.Grant))
	if mine && g.Own != nil {
		if link := workspace(workspaceURL).permalink(g.Own.Channel, g.Own.TS, ""); link != "" {
			p.Say(" ").link(link, "Take it back here")
		}
	}
	return p
}

// allowForm returns the form that approves a call and allows more calls of the same kind without approval.
func allowForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	in, m := trial(s, who)
	m.Digest = s.ShownRequest().Digest
	terms := grantTerms(r, s.Policy)
	g, d := r.Allow(in, m, approvers.Allowance{Uses: terms.Uses, Within: terms.Within})
	if d == nil && !s.ShownRequest().Whole {
		d = &approvers.Denied{Code: approvers.DeniedUnseen}
	}
	if d != nil {
		return Refusal(ActAllow, Denied(d, &r, s.Policy))
	}
	p := new(BlockBuilder)
	p.Para(Say("You approve this now: ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)),
		Say("You also let more calls of ").Code(Name(r.Tool)).Say(" run without asking, for everybody in this conversation:"))
	p.Blocks = append(p.Blocks, usesInput(terms), withinInput(terms))
	for _, b := range g.Bounds {
		if b.AtMost != nil {
			p.Blocks = append(p.Blocks, atMostInput(b))
		}
	}
	p.Para(fixedArguments(g)...)
	p.Small("Everything else still waits for approval, also what you ask for yourself. Everybody in the conversation sees each use. You can take this back at any time.")
	return s.sendable(p, ActAllow, "Approve and allow")
}

// grantTerms returns the current policy's terms for grants of the request's tool.
func grantTerms(r approvers.Request, p *approvers.Policy) approvers.GrantTerms {
	t, _ := p.Tool(r.Tool, r.Agent)
	return t.Grants
}

func usesInput(terms approvers.GrantTerms) slack.Block {
	in := slack.NewNumberInputBlockElement(nil, actionValue, false).WithInitialValue(strconv.Itoa(terms.Uses)).WithMinValue("1").WithMaxValue(strconv.Itoa(terms.Uses))
	return inputBlock(FieldUses, "How many more", fmt.Sprintf("At most %d, by the policy.", terms.Uses), in, false)
}

func withinInput(terms approvers.GrantTerms) slack.Block {
	var options []*slack.OptionBlockObject
	for _, d := range spansUpTo(terms.Within) {
		options = append(options, slack.NewOptionBlockObject(d.String(), plainText(formatPeriod(d)), nil))
	}
	in := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, actionValue, options...)
	in.InitialOption = options[len(options)-1]
	return inputBlock(FieldWithin, "For how long", "", in, false)
}

// spansUpTo returns the durations to choose from, up to the policy's maximum.
func spansUpTo(most time.Duration) []time.Duration {
	all := []time.Duration{
		10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour, 72 * time.Hour, 168 * time.Hour,
	}
	shorter := slices.DeleteFunc(all, func(d time.Duration) bool { return d >= most })
	return append(shorter, most)
}

// atMostInput asks for the maximum of an argument. The initial value is the value in the call.
func atMostInput(b approvers.Bound) slack.Block {
	f := field{name: b.Arg}
	label, hint, value := Visible(Clip(b.Arg, MaxNameShown))+" at most", "In this call it is "+Visible(string(b.AtMost))+".", string(b.AtMost)
	if !plainNumber.MatchString(value) {
		return inputBlock(f.blockID(), label, hint, slack.NewPlainTextInputBlockElement(nil, actionValue).WithInitialValue(value).WithMaxLength(maxTyped), false)
	}
	in := slack.NewNumberInputBlockElement(nil, actionValue, true).WithInitialValue(value).WithMinValue(value)
	return inputBlock(f.blockID(), label, hint, in, false)
}

// fixedArguments lists which arguments must stay the same, and which may vary.
func fixedArguments(g approvers.Grant) []*RichText {
	var out []*RichText
	for _, b := range g.Bounds {
		switch {
		case b.AtMost != nil:
		case len(b.Equal) == 0:
			out = append(out, Say("• ").Strong(Name(b.Arg)).Say(": none, as here"))
		default:
			out = append(out, Say("• ").Strong(Name(b.Arg)).Say(": ").Code(boundShown(b, g.Secrets)).Say(", as here"))
		}
	}
	if len(out) > maxBoundsTold {
		out = append(out[:maxBoundsTold], Say(fmt.Sprintf("• and %d more, as here", len(out)-maxBoundsTold)))
	}
	if free := g.Free(); len(free) > 0 {
		out = append(out, Say("⚠️ ").Strong(ArgumentList(free)).Say(" may be anything."))
	}
	return append(out, Say("Calls with further arguments still wait for approval."))
}

// ParseAllowance reads the submitted form for a grant, and returns the errors of the form.
func ParseAllowance(r approvers.Request, p *approvers.Policy, filled answers) (a approvers.Allowance, faults map[string]string) {
	terms := grantTerms(r, p)
	faults = map[string]string{}
	var err error
	if a.Uses, err = strconv.Atoi(strings.TrimSpace(filled.text(FieldUses))); err != nil || a.Uses < 1 || a.Uses > terms.Uses {
		faults[FieldUses] = fmt.Sprintf("Write a whole number from 1 to %d.", terms.Uses)
	}
	if a.Within, err = time.ParseDuration(filled.text(FieldWithin)); err != nil || a.Within <= 0 || a.Within > terms.Within {
		faults[FieldWithin] = "Choose how long, up to " + formatPeriod(terms.Within) + "."
	}
	_, values := membersOf(r.Args)
	a.AtMost = map[string]json.RawMessage{}
	for _, arg := range terms.AtMost {
		block := field{name: arg}.blockID()
		text := strings.TrimSpace(filled.text(block))
		least, known := new(big.Rat).SetString(string(values[arg]))
		most, ok := new(big.Rat).SetString(text)
		if !known || !ok || !simpleNumber(text) || most.Cmp(least) < 0 {
			faults[block] = "Write a number: " + Visible(string(values[arg])) + " or more."
			continue
		}
		a.AtMost[arg] = json.RawMessage(text)
	}
	return a, faults
}

// simpleNumber reports whether s is a JSON number without sign and exponent.
func simpleNumber(s string) bool {
	return len(s) <= maxTyped && strings.Trim(s, "0123456789.") == "" && json.Valid([]byte(s))
}
