package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// home is a person's Home tab.
type home struct {
	decisionParts
	tab   HomeTab
	list  WaitingList
	pause settings.Pause
	now   time.Time
}

// drawHome draws a person's Home tab.
func drawHome(v View, tab HomeTab) Rendered { return newHome(v, tab).draw() }

func newHome(v View, tab HomeTab) home {
	list := WaitingList{Policy: v.Policy, WorkspaceURL: v.WorkspaceURL, Who: tab.Who}
	return home{decisionParts: v.decisionParts(), tab: tab, list: list, pause: v.Pause, now: v.Now}
}

// draw draws a person's Home tab. It shows the requests that wait for the person, with buttons, and the person's own
// requests. It also shows recent decisions, the person's absence, and the grants that the person can revoke.
func (h home) draw() Rendered {
	p := new(BlockBuilder)
	if h.message.Home.Idle {
		p.Para(Say("You have not looked here for a while, so this page is not up to date. What waits for you came by message."))
		p.buttons("", turnTo(PartAll, 0, "Show what is current"))
		return Single(p)
	}
	if h.tab.Who.ID == "" || h.tab.Who.Guest || h.tab.Who.Foreign {
		p.Para(Say("Only full members of this workspace can ask and decide here."))
		return Single(p)
	}
	p.Para(paused(h.pause))
	shows := h.waitingItems(p)
	h.ownRequests(p)
	h.recentDecisions(p)
	h.absence(p)
	h.revocableGrants(p)
	p.Blocks = append(p.Blocks, slack.NewDividerBlock())
	foot := "You can also type all of this: see /countersign help. Times are in your time zone."
	if h.tab.Version != "" {
		foot += " Countersign " + h.tab.Version + "."
	}
	p.Small(foot)
	return Rendered{Messages: []Message{p.Message()}, Shows: shows}
}

// section starts a section of a Home tab.
func section(p *BlockBuilder, title string) {
	if len(p.Blocks) > 0 {
		p.Blocks = append(p.Blocks, slack.NewDividerBlock())
	}
	p.headline(title)
}

// turnTo returns a button that shows another page of a section.
func turnTo(part string, page int, words string) slack.BlockElement {
	return button(ActHome+"_"+strings.ToLower(strings.ReplaceAll(words, " ", "_")), words, part+" "+strconv.Itoa(page), slack.StyleDefault)
}

// pager shows the page number of a section, if the section has several pages.
func pager[T any](p *BlockBuilder, part string, of Rows[T]) {
	if of.Pages < 2 {
		return
	}
	p.Small(fmt.Sprintf("Page %d of %d, %d in all", of.Page+1, of.Pages, of.Total))
	var row []slack.BlockElement
	if of.Page > 0 {
		row = append(row, turnTo(part, of.Page-1, "Previous"))
	}
	if of.Page < of.Pages-1 {
		row = append(row, turnTo(part, of.Page+1, "Next"))
	}
	p.buttons(part, row...)
}

// waitingItems draws the items that wait for the person. waitingItems returns the requests that the section shows.
func (h home) waitingItems(p *BlockBuilder) (shows []store.Shown) {
	of := h.tab.Waiting
	if of.Total == 0 {
		section(p, "Nothing waits for you")
		p.Para(Say("What waits for you comes by message, and is listed here too."))
		return nil
	}
	section(p, fmt.Sprintf("Waits for you: %d", of.Total))
	if h.tab.More {
		p.Para(Say("Too much waits to list all of it. These are the oldest."))
	}
	for i, row := range of.List {
		if i > 0 {
			p.Blocks = append(p.Blocks, slack.NewDividerBlock())
		}
		if row.Execution != nil || row.Request == nil {
			p.Para(h.list.DecideLine(row.PendingItem, row.Conversation, row.Messages))
			continue
		}
		h.waitingRequest(p, row)
		shows = append(shows, store.Shown{Request: row.Request.ID, Digest: row.Request.Digest})
	}
	pager(p, PartWaiting, of)
	return shows
}

// waitingRequest draws one waiting request with its actions. The IDs of the request's blocks contain the request's id,
// so that ItemBody finds this part of the tab.
func (h home) waitingRequest(p *BlockBuilder, row HomeRow) {
	r := *row.Request
	from := newOrigin(h.list.WorkspaceURL, row.Conversation)
	first := len(p.Blocks)
	sign, risk := riskWords(r.Plan.Risk, r.Effect)
	p.Para(new(RichText).Strong(Clip(whatHappens(r.Preview, r.Tool), maxBundleText)), Say(sign+" "+risk), toolPreviewLine(r, MaxNote, h.pause.On))
	cut := homeArguments(p, r)
	p.Para(append([]*RichText{cut, from.askedShort(r)}, append(h.waitsLine(r), maskedNote(r), Say("⏳ ").add(h.deadline(r)))...)...)
	value := h.token(r.ID)
	buttons := []slack.BlockElement{
		button(ActArguments, "Approve…", value, slack.StyleDefault), button(ActReject, "Reject…", value, slack.StyleDanger),
	}
	if r.Facts.Editable() {
		buttons = append(buttons, button(ActModify, "Modify…", value, slack.StyleDefault))
	}
	buttons = append(buttons, h.reveal(r)...)
	if link := h.list.link(row.Conversation, row.Messages, store.ToUser, store.ToChannel); link != "" {
		buttons = append(buttons, linkButton("See the card", link))
	}
	p.buttons("", buttons...)
	for i, b := range p.Blocks[first:] {
		withID(b, r.ID+":"+strconv.Itoa(i))
	}
}

// homeArguments shows the exact arguments, or their beginning and how much is missing.
func homeArguments(p *BlockBuilder, r approvers.Request) (cut *RichText) {
	text := argumentsOf(r)
	if Width(text) <= maxBundleCall && strings.Count(text, "\n") < maxBundleLines {
		p.preformatted(text)
		return new(RichText)
	}
	start, missing := head(text, maxBundleCall/4, maxBundleLines/2)
	p.preformatted(start)
	return Say("✂️ ").Strong(fmt.Sprintf("Cut here: %d more characters.", missing)).Say(" Approve… shows all of them first.")
}

// withID sets the ID of a block.
func withID(b slack.Block, id string) {
	switch b := b.(type) {
	case *slack.RichTextBlock:
		b.BlockID = id
	case *slack.ActionBlock:
		b.BlockID = id
	}
}

// ownRequests draws the person's own requests that wait.
func (h home) ownRequests(p *BlockBuilder) {
	of := h.tab.Asked
	if of.Total == 0 {
		return
	}
	section(p, fmt.Sprintf("You asked for: %d", of.Total))
	for _, row := range of.List {
		p.Para(h.list.AskedLine(row.PendingItem, row.Conversation, row.Messages))
	}
	pager(p, PartAsked, of)
}

// recentDecisions draws recent decisions by the person or about the person's requests.
func (h home) recentDecisions(p *BlockBuilder) {
	of := h.tab.Recent
	if of.Total == 0 {
		return
	}
	section(p, "Decided lately")
	for _, r := range of.List {
		p.Para(HistoryLine(r, h.policy, h.tab.Who.ID))
	}
	pager(p, PartRecent, of)
}

// absence draws the person's absence, and the people for whom the person stands in.
func (h home) absence(p *BlockBuilder) {
	section(p, "Away")
	a := h.tab.Away
	value := h.token(refAway)
	if a.Over(h.now) {
		p.Para(Say("While you are away, your cards go to others, and a colleague can stand in."))
		p.buttons("away", button(ActAway, "I'm away…", value, slack.StyleDefault))
	} else {
		line := Say("🌴 You are away from ").At(a.From, longTime).Say(" until ").At(a.Until, longTime).Say(".")
		if a.Delegate != "" {
			line.Say(" ").Person(a.Delegate, a.DelegateName).Say(" stands in for you, in their own name.")
		} else {
			line.Say(" Nobody stands in for you.")
		}
		p.Para(line)
		p.buttons("away", button(ActBack, "I'm back", value, slack.StyleDefault), button(ActAway, "Change…", value, slack.StyleDefault))
	}
	for i, other := range h.tab.StandsInFor {
		if i == maxPeopleTold {
			p.Para(Say("… and for " + Plural(len(h.tab.StandsInFor)-i, "other person") + "."))
			break
		}
		p.Para(Say("🤝 You stand in for ").Person(other.Who, other.Name).Say(" from ").At(other.From, longTime).Say(" until ").At(other.Until, longTime).Say("."))
	}
}

// revocableGrants draws the grants that the person can revoke.
func (h home) revocableGrants(p *BlockBuilder) {
	of := h.tab.Grants
	if of.Total == 0 {
		return
	}
	section(p, fmt.Sprintf("May run without asking: %d", of.Total))
	for _, g := range of.List {
		p.Para(GrantLine(view.ListedGrant{Grant: g.Grant, Conversation: g.Conversation}, h.policy, h.list.WorkspaceURL, true))
		p.buttons(g.Grant.ID, h.revoke(g.Grant))
	}
	pager(p, PartGrants, of)
}

// HistoryLine returns the line about a request in a person's history. The request has ended, or the person has decided
// about it.
func HistoryLine(r approvers.Request, policy *approvers.Policy, who approvers.PersonID) *RichText {
	w := wordsUnder(policy)
	line := Say(signOf(r) + " ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxCallText))
	if r.Facts.Asker != who {
		line.Say(", asked for by ").Person(r.Facts.Asker, r.Facts.AskerName)
	}
	line.Say(": ")
	if r.State == approvers.Pending {
		if TookPart(r, who) {
			line.Say("you have decided; ")
		}
		line.Say("it waits for "+w.waitsFor(r)+" until ").At(r.ExpiresAt, DayTime).Say(".")
	} else {
		line.add(w.ending(r))
	}
	return line
}

// signOf returns the sign for a request's state.
func signOf(r approvers.Request) string {
	if sign, over := endSign[r.State]; over {
		return sign
	}
	return "✋"
}

// These are the sections of a Home tab that have pages.
const (
	PartWaiting = "waiting"
	PartAsked   = "asked"
	PartRecent  = "recent"
	PartGrants  = "grants"
	PartAll     = "all" // the first page of every section, as when the tab is opened
)

// HomeTab is the content of a person's Home tab, read from the state.
type HomeTab struct {
	Who         approvers.Identity
	Waiting     Rows[HomeRow]
	Asked       Rows[HomeRow]
	Recent      Rows[approvers.Request]
	Grants      Rows[view.ListedGrant]
	More        bool // some waiting items were not examined
	Away        approvers.Absence
	StandsInFor []approvers.Absence // absences in which the person stands in
	Version     string              // version of the program, for the foot; empty: it is not shown
}

// HomeRow is one waiting item.
type HomeRow struct {
	view.PendingItem
	Conversation store.Conversation
	Messages     []store.OutboxMessage
}

// Rows is one page of a list, with its position.
type Rows[T any] struct {
	List        []T
	Page, Pages int
	Total       int // 0: not counted
}

// TookPart reports whether a person has made a decision about a request.
func TookPart(r approvers.Request, who approvers.PersonID) bool {
	return slices.ContainsFunc(r.Decisions, func(d approvers.Decision) bool { return d.By == who })
}

// Paginate returns a page of a list. If the list has fewer pages, Paginate returns the last page.
func Paginate[T any](list []T, page, size int) Rows[T] {
	pages := max(1, (len(list)+size-1)/size)
	page = min(max(0, page), pages-1)
	return Rows[T]{List: list[page*size : min(len(list), (page+1)*size)], Page: page, Pages: pages, Total: len(list)}
}

// HomeRows is the number of rows per page in each section of a Home tab. With these numbers a tab has at most about 90
// blocks. Slack accepts 100 blocks.
var HomeRows = map[string]int{PartWaiting: 8, PartAsked: 5, PartRecent: 8, PartGrants: 4}
