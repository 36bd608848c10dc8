package render

import (
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// card is the approval card of one request.
type card struct {
	decisionParts
	from    origin
	run     runWords
	tool    ToolDescription
	pause   settings.Pause
	earlier string    // address of the question about an earlier run, if the request is a retry
	now     time.Time // when the card is drawn
}

// drawCard draws the card of one request.
func drawCard(v View) Rendered { return newCard(v).draw(*v.Request) }

func newCard(v View) card {
	from := v.origin()
	return card{
		decisionParts: v.decisionParts(), from: from, run: newRunWords(v), tool: v.Tool, pause: v.Pause,
		earlier: from.earlierLink(v.Message.To, v.Earlier), now: v.Now,
	}
}

// draw draws a request for its approvers. A pending card begins with the warnings, the effect of the call, and its
// arguments. Then the card says who asked, and in which words. At the end, the card says for whom the request waits,
// and what happens if nobody decides. The card leaves out facts that are the normal case. Details… shows everything.
// The card of a decided request has two lines.
func (c card) draw(r approvers.Request) Rendered {
	p := new(BlockBuilder)
	whole := fitsCard(c.argumentTable(r))
	if r.State == approvers.Pending {
		c.pending(p, r, whole)
	} else {
		c.decidedCard(p, r)
	}
	return Rendered{Messages: []Message{p.Message()}, Shows: []store.Shown{{Request: r.ID, Digest: r.Digest, Whole: whole}}}
}

func (c card) pending(p *BlockBuilder, r approvers.Request, whole bool) {
	p.Para(c.banners(r)...)
	p.headline(whatHappens(r.Preview, r.Tool))
	p.Para(riskLine(r))
	arguments(p, c.argumentTable(r), whole, " Details… shows all of them, and there it can be approved.")
	c.argumentChanges(p, r)
	if note := maskedNote(r); !note.empty() {
		if c.mustReveal(r) {
			them := "them"
			if len(SecretsIn(r.Args, r.Secrets)) == 1 {
				them = "it"
			}
			note.Strong(" Reveal " + them + " first, then you can approve.")
		}
		p.Para(note)
	}
	p.Para(toolPreviewLine(r, MaxNote, c.pause.On))
	c.from.requester(p, r, maxQuote)
	p.Para(c.waitsLine(r)...)
	p.Para(c.remarks(r)...)
	p.Para(c.ifNobodyActs(r, c.now)...)
	c.actionButtons(p, r, whole)
}

// banners returns the warnings that stand above everything else on a card. Normally there are no such warnings.
func (c card) banners(r approvers.Request) []*RichText {
	out := setbacks(r, c.pause, c.earlier)
	for _, f := range doubts(r) {
		out = append(out, Say("⚠️ ").Strong(f))
	}
	return out
}

// decidedCard draws the subject of a request, who asked, who decided, and how the request ended.
func (c card) decidedCard(p *BlockBuilder, r approvers.Request) {
	what := Say(endSign[r.State] + " ").Strong(whatHappens(r.Preview, r.Tool))
	if r.Facts.Asker != "" {
		what.Say(", asked by ").Person(r.Facts.Asker, r.Facts.AskerName)
	}
	p.Para(what, c.ending(r).add(c.run.aftermath(r)))
	value := c.token(r.ID)
	row := []slack.BlockElement{button(ActArguments, "Details…", value, slack.StyleDefault)}
	if r.State == approvers.Approved {
		row = append(row, c.takeBack(r))
	}
	p.buttons("", row...)
}

// arguments shows the exact arguments. If the arguments are too long, it shows their beginning and how much is missing.
// The function then adds readsAll, which says where to read all arguments.
func arguments(p *BlockBuilder, text string, whole bool, readsAll string) {
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
func (c card) argumentTable(r approvers.Request) string {
	was := currentValues(r)
	if len(r.Edits) > 0 {
		maps.Copy(was, changedFrom(r.Edits[0].Before, r.Args, r.Secrets))
	}
	return argumentTable(r.Args, r.Secrets, firstArguments(r, c.policy, c.tool), was)
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

// argumentChanges names the person who last changed the arguments. The function also shows the changes that the table
// of arguments leaves out. The table shows an earlier value only if it takes one short line.
func (c card) argumentChanges(p *BlockBuilder, r approvers.Request) {
	if len(r.Edits) == 0 {
		return
	}
	e := r.Edits[len(r.Edits)-1]
	line := Say("✏️ ").Strong("Changed").Say(" by ").Person(e.By, e.Name).Say(" ("+c.title(e.Role)+"), ").At(e.At, clock)
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

// actionButtons adds the buttons of a pending card. A copy for one person has only the buttons that this person can use
// now. A card in a channel looks the same to everybody. A person without permission gets an explanation when they
// click.
func (c card) actionButtons(p *BlockBuilder, r approvers.Request, whole bool) {
	value := c.token(r.ID)
	details := button(ActArguments, "Details…", value, slack.StyleDefault)
	if c.ownerHasApproved(r) {
		p.Para(c.haveAgreed(r))
		p.buttons("", c.takeBack(r), details)
		return
	}
	if c.hasPassedOn(r) {
		p.Para(c.stillNeeded(r, "☑️ You changed it, which needs approval."))
		p.buttons("", details)
		return
	}
	p.Para(wantsTyping(r))
	row := c.decisions(r, whole, slack.StylePrimary)
	if whole {
		row = append(row, details)
	}
	p.buttons("", row...)
}

// cardQueue draws how many requests wait until the open cards at an address are decided, and names the oldest of these
// requests.
func cardQueue(q *view.CardQueue) Rendered {
	p := new(BlockBuilder)
	if q == nil {
		p.Para(Say("No requests are queued here any more."))
		d := Single(p)
		d.Expired = true
		return d
	}
	wait := "requests wait"
	if q.Waiting == 1 {
		wait = "request waits"
	}
	p.Para(Say("📚 ").Strong(fmt.Sprintf("%d more %s behind these.", q.Waiting, wait)).
		Say(fmt.Sprintf(" %s here already; when one is decided, the next request gets its card. The deadlines stay as they are.", openCards(q.Open))))
	var oldest []*RichText
	for _, r := range q.First {
		oldest = append(oldest, isQueued(r))
	}
	if n := q.Waiting - len(oldest); n > 0 {
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

func isQueued(r approvers.Request) *RichText {
	return Say("• ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxCallText)).Say(", asked for by ").Person(r.Facts.Asker, r.Facts.AskerName).
		Say("; expires ").At(r.ExpiresAt, DayTime)
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
func wantsTyping(r approvers.Request) *RichText {
	if !r.WantsTyping() {
		return new(RichText)
	}
	what, _ := typedValue(r)
	return Say("✍️ Approve… asks you to type " + what + ". " + whyTyped(r))
}
