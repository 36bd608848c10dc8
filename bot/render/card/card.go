package card

import (
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/store"
)

// card is the approval card of one request.
type card struct {
	wording.DecisionParts
	from    wording.Origin
	run     runWords
	tool    wording.ToolDescription
	pause   settings.Pause
	earlier string    // address of the question about an earlier run, if the request is a retry
	now     time.Time // when the card is drawn
}

// Draw draws the card of one request.
func Draw(v wording.View) block.Rendered { return newCard(v).draw(*v.Request) }

func newCard(v wording.View) card {
	from := v.Origin()
	return card{
		DecisionParts: v.DecisionParts(), from: from, run: newRunWords(v), tool: v.Tool, pause: v.Pause,
		earlier: from.EarlierLink(v.Message.To, v.Earlier), now: v.Now,
	}
}

// draw draws a request for its approvers. A pending card begins with the warnings, the effect of the call, and its
// arguments. Then the card says who asked, and in which words. At the end, the card says for whom the request waits,
// and what happens if nobody decides. The card leaves out facts that are the normal case. Details… shows everything.
// The card of a decided request has two lines.
func (c card) draw(r approvers.Request) block.Rendered {
	p := new(block.Builder)
	whole := argument.FitsCard(c.argumentTable(r))
	if r.State == approvers.Pending {
		c.pending(p, r, whole)
	} else {
		c.decidedCard(p, r)
	}
	return block.Rendered{Messages: []block.Message{p.Message()}, Shows: []store.Shown{{Request: r.ID, Digest: r.Digest, Stage: approvers.StageDigest(r), Whole: whole}}}
}

func (c card) pending(p *block.Builder, r approvers.Request, whole bool) {
	p.Para(c.banners(r)...)
	p.Headline(wording.WhatHappens(r.Preview, r.Tool))
	p.Para(wording.RiskLine(r))
	arguments(p, c.argumentTable(r), whole, " Details… shows all of them. Approve the call there.")
	c.argumentChanges(p, r)
	if note := wording.MaskedNote(r); !note.Empty() {
		if c.MustReveal(r) {
			them := "them"
			if len(argument.SecretsIn(r.Args, r.Secrets)) == 1 {
				them = "it"
			}
			note.Strong(" Reveal " + them + " first, then you can approve.")
		}
		p.Para(note)
	}
	p.Para(wording.ToolPreviewLine(r, block.MaxNote, c.pause.On))
	c.from.Requester(p, r, block.MaxQuote)
	p.Para(c.WaitsLine(r)...)
	p.Para(c.Remarks(r)...)
	p.Para(c.IfNobodyActs(r, c.now)...)
	c.actionButtons(p, r, whole)
}

// banners returns the warnings that stand above everything else on a card. Normally there are no such warnings.
func (c card) banners(r approvers.Request) []*block.RichText {
	out := wording.Setbacks(r, c.pause, c.earlier)
	for _, f := range argument.Doubts(r) {
		out = append(out, block.Say("⚠️ ").Strong(f))
	}
	return out
}

// decidedCard draws the subject of a request, who asked, who decided, and how the request ended.
func (c card) decidedCard(p *block.Builder, r approvers.Request) {
	what := block.Say(wording.EndSign(r) + " ").Strong(wording.WhatHappens(r.Preview, r.Tool))
	if r.Facts.Asker != "" {
		what.Say(", asked by ").Person(r.Facts.Asker, r.Facts.AskerName)
	}
	p.Para(what, c.Ending(r).Add(c.run.aftermath(r)))
	value := c.Token(r.ID)
	row := []slack.BlockElement{block.Button(control.ActArguments, "Details…", value, slack.StyleDefault)}
	if r.State == approvers.Approved {
		row = append(row, c.TakeBack(r))
	}
	p.Buttons("", row...)
}

// arguments shows the exact arguments. If the arguments are too long, it shows their beginning and how much is missing.
// The function then adds readsAll, which says where to read all arguments.
func arguments(p *block.Builder, text string, whole bool, readsAll string) {
	if whole {
		p.Preformatted(text)
		return
	}
	start, missing := argument.Head(text, maxCutArgs, maxCutLines)
	p.Preformatted(start)
	p.Para(block.Say("✂️ ").Strong(fmt.Sprintf("Cut here: %d more characters.", missing)).Say(readsAll))
}

// argumentTable lays out the arguments of a request for its approvers. The most informative arguments come first. If an
// approver changed an argument, its earlier value is shown before the current one.
func (c card) argumentTable(r approvers.Request) string {
	was := wording.CurrentValues(r)
	if len(r.Edits) > 0 {
		maps.Copy(was, argument.ChangedFrom(r.Edits[0].Before, r.Args, r.Secrets))
	}
	return argument.Table(r.Args, r.Secrets, firstArguments(r, c.Policy, c.tool), was)
}

// firstArguments returns the most informative arguments of a call: the arguments in the policy's sentence, and the
// arguments that the tool requires.
func firstArguments(r approvers.Request, p *approvers.Policy, tool wording.ToolDescription) []string {
	var names []string
	if p != nil {
		t, _ := p.Tool(r.Tool, r.Agent)
		for _, action := range templateActions.FindAllString(t.Preview.Text, -1) {
			for _, m := range templateFields.FindAllStringSubmatch(action, -1) {
				names = append(names, m[1])
			}
		}
	}
	return append(names, tool.Required...)
}

var (
	templateActions = regexp.MustCompile(`\{\{.*?\}\}`)
	templateFields  = regexp.MustCompile(`\.([A-Za-z_]\w*)`)
)

// argumentChanges names the person who last changed the arguments. The function also shows the changes that the table
// of arguments leaves out. The table shows an earlier value only if it takes one short line.
func (c card) argumentChanges(p *block.Builder, r approvers.Request) {
	if len(r.Edits) == 0 {
		return
	}
	e := r.Edits[len(r.Edits)-1]
	line := block.Say("✏️ ").Strong("Changed").Say(" by ").Person(e.By, e.Name).Say(" ("+c.Title(e.Role)+"), ").At(e.At, block.Clock)
	if e.Reason != "" {
		line.Say(": ").Soft(block.Clip(block.OneLine(e.Reason), block.MaxNote))
	}
	p.Para(line)
	before := r.Edits[0].Before
	diff, ok := argument.LongChanges(before, r.Args, r.Secrets)
	if !ok {
		p.Para(block.Say("The earlier arguments are too long to show here. Details… shows them."))
		return
	}
	p.Preformatted(diff)
}

// actionButtons adds the buttons of a pending card. A copy for one person has only the buttons that this person can use
// now. A card in a channel looks the same to everybody. A person without permission gets an explanation when they
// click.
func (c card) actionButtons(p *block.Builder, r approvers.Request, whole bool) {
	value := c.Token(r.ID)
	details := block.Button(control.ActArguments, "Details…", value, slack.StyleDefault)
	if c.OwnerHasApproved(r) {
		p.Para(c.HaveAgreed(r))
		p.Buttons("", c.TakeBack(r), details)
		return
	}
	if c.HasPassedOn(r) {
		p.Para(c.StillNeeded(r, "☑️ You changed the arguments. The change needs approval."))
		p.Buttons("", details)
		return
	}
	p.Para(wantsTyping(r))
	row := c.Decisions(r, whole, slack.StylePrimary)
	if whole {
		row = append(row, details)
	}
	p.Buttons("", row...)
}

// DrawQueue draws how many requests wait until the open cards at an address are decided, and names the oldest of these
// requests.
func DrawQueue(q *view.CardQueue) block.Rendered {
	p := new(block.Builder)
	if q == nil {
		p.Para(block.Say("No requests are queued here any more."))
		d := block.Single(p)
		d.Expired = true
		return d
	}
	wait := "requests wait"
	if q.Waiting == 1 {
		wait = "request waits"
	}
	p.Para(block.Say("📚 ").Strong(fmt.Sprintf("%d more %s behind these.", q.Waiting, wait)).
		Say(fmt.Sprintf(" %s here already; when one is decided, the next request gets its card. The deadlines do not change.", openCards(q.Open))))
	var oldest []*block.RichText
	for _, r := range q.First {
		oldest = append(oldest, isQueued(r))
	}
	if n := q.Waiting - len(oldest); n > 0 {
		oldest = append(oldest, block.Say(fmt.Sprintf("… and %d more", n)))
	}
	p.Para(oldest...)
	p.Small("These requests exceed the policy's limit of open cards. To approve one of them, you type one of its values.")
	return block.Single(p)
}

func openCards(n int) string {
	if n == 1 {
		return "1 undecided card is"
	}
	return fmt.Sprintf("%d undecided cards are", n)
}

func isQueued(r approvers.Request) *block.RichText {
	return block.Say("• ").Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxCallText)).Say(", asked for by ").Person(r.Facts.Asker, r.Facts.AskerName).
		Say("; expires ").At(r.ExpiresAt, block.DayTime)
}

// MentioningRequest returns the pending request for which a card mentions people, if there is one. For a bundle, it is
// the first request that waits for a decision on the bundle.
func MentioningRequest(s view.Model) (approvers.Request, bool) {
	if s.Message.Kind == store.OutboxCard {
		return *s.Request, s.Request.State == approvers.Pending
	}
	if s.Message.Kind == store.OutboxBundle {
		if open := Undecided(s.Calls); len(open) > 0 {
			return open[0], true
		}
	}
	return approvers.Request{}, false
}

// MaxMentions is the maximum number of mentions on a card. If a role has more people, the policy can name a user group
// instead.
const MaxMentions = 8

// wantsTyping returns the note on a card about a required typed value, with the reason. If no value is required, the
// note is empty.
func wantsTyping(r approvers.Request) *block.RichText {
	if !r.WantsTyping() {
		return new(block.RichText)
	}
	what, _ := argument.TypedValue(r)
	return block.Say("✍️ Approve… asks you to type " + what + ". " + wording.WhyTyped(r))
}
