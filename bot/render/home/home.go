package home

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
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/store"
)

// home is a person's Home tab.
type home struct {
	wording.DecisionParts
	tab   Tab
	list  WaitingList
	pause settings.Pause
	now   time.Time
}

// Draw draws a person's Home tab.
func Draw(v wording.View, tab Tab) block.Rendered { return newHome(v, tab).draw() }

func newHome(v wording.View, tab Tab) home {
	list := WaitingList{Policy: v.Policy, WorkspaceURL: v.WorkspaceURL, Who: tab.Who}
	return home{DecisionParts: v.DecisionParts(), tab: tab, list: list, pause: v.Pause, now: v.Now}
}

// draw draws a person's Home tab. It shows the requests that wait for the person, with buttons, and the person's own
// requests. It also shows recent decisions, the person's absence, and the grants that the person can revoke.
func (h home) draw() block.Rendered {
	p := new(block.Builder)
	if h.Message.Home.Idle {
		p.Para(block.Say("You have not opened this tab for a while, so it is not up to date. Requests for you came as messages."))
		p.Buttons("", turnTo(PartAll, 0, "Refresh"))
		return block.Single(p)
	}
	if h.tab.Who.ID == "" || h.tab.Who.Guest || h.tab.Who.Foreign {
		p.Para(block.Say("Only full members of this workspace can ask and decide here."))
		return block.Single(p)
	}
	p.Para(wording.Paused(h.pause))
	shows := h.waitingItems(p)
	h.ownRequests(p)
	h.recentDecisions(p)
	h.absence(p)
	h.revocableGrants(p)
	p.Blocks = append(p.Blocks, slack.NewDividerBlock())
	foot := "Commands can do all of this, too: see /countersign help. Times are in your time zone."
	if h.tab.Version != "" {
		foot += " Countersign " + h.tab.Version + "."
	}
	p.Small(foot)
	return block.Rendered{Messages: []block.Message{p.Message()}, Shows: shows}
}

// section starts a section of a Home tab.
func section(p *block.Builder, title string) {
	if len(p.Blocks) > 0 {
		p.Blocks = append(p.Blocks, slack.NewDividerBlock())
	}
	p.Headline(title)
}

// turnTo returns a button that shows another page of a section.
func turnTo(part string, page int, words string) slack.BlockElement {
	return block.Button(control.ActHome+"_"+strings.ToLower(strings.ReplaceAll(words, " ", "_")), words, part+" "+strconv.Itoa(page), slack.StyleDefault)
}

// pager shows the page number of a section, if the section has several pages.
func pager[T any](p *block.Builder, part string, of Rows[T]) {
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
	p.Buttons(part, row...)
}

// waitingItems draws the items that wait for the person. waitingItems returns the requests that the section shows.
func (h home) waitingItems(p *block.Builder) (shows []store.Shown) {
	of := h.tab.Waiting
	if of.Total == 0 {
		section(p, "Nothing waits for you")
		p.Para(block.Say("Requests for you come as messages, and are listed here too."))
		return nil
	}
	section(p, fmt.Sprintf("Waits for you: %d", of.Total))
	if h.tab.More {
		p.Para(block.Say("There are too many to list them all. These are the oldest."))
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
		shows = append(shows, store.Shown{Request: row.Request.ID, Digest: row.Request.Digest, Stage: approvers.StageDigest(*row.Request)})
	}
	pager(p, PartWaiting, of)
	return shows
}

// waitingRequest draws one waiting request with its actions. The IDs of the request's blocks contain the request's id,
// so that ItemBody finds this part of the tab.
func (h home) waitingRequest(p *block.Builder, row Row) {
	r := *row.Request
	from := wording.NewOrigin(h.list.WorkspaceURL, row.Conversation)
	first := len(p.Blocks)
	sign, risk := wording.RiskWords(r.Plan.Risk, r.Effect)
	p.Para(new(block.RichText).Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxBundleText)),
		block.Say(sign+" "+risk), wording.ToolPreviewLine(r, block.MaxNote, h.pause.On))
	cut := homeArguments(p, r)
	p.Para(append([]*block.RichText{cut, from.AskedShort(r)}, append(h.WaitsLine(r), wording.MaskedNote(r), block.Say("⏳ ").Add(h.Deadline(r)))...)...)
	value := h.Token(r.ID)
	buttons := []slack.BlockElement{
		block.Button(control.ActArguments, "Approve…", value, slack.StyleDefault), block.Button(control.ActReject, "Reject…", value, slack.StyleDanger),
	}
	if r.Facts.Editable() {
		buttons = append(buttons, block.Button(control.ActModify, "Modify…", value, slack.StyleDefault))
	}
	buttons = append(buttons, h.Reveal(r)...)
	if link := h.list.link(row.Conversation, row.Messages, store.ToUser, store.ToChannel); link != "" {
		buttons = append(buttons, block.LinkButton("See the card", link))
	}
	p.Buttons("", buttons...)
	for i, b := range p.Blocks[first:] {
		withID(b, r.ID+":"+strconv.Itoa(i))
	}
}

// homeArguments shows the exact arguments, or their beginning and how much is missing.
func homeArguments(p *block.Builder, r approvers.Request) (cut *block.RichText) {
	text := argument.OfRequest(r)
	if block.Width(text) <= block.MaxBundleCall && strings.Count(text, "\n") < block.MaxBundleLines {
		p.Preformatted(text)
		return new(block.RichText)
	}
	start, missing := argument.Head(text, block.MaxBundleCall/4, block.MaxBundleLines/2)
	p.Preformatted(start)
	return block.Say("✂️ ").Strong(fmt.Sprintf("Cut here: %d more characters.", missing)).Say(" Approve… shows all of them first.")
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
func (h home) ownRequests(p *block.Builder) {
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
func (h home) recentDecisions(p *block.Builder) {
	of := h.tab.Recent
	if of.Total == 0 {
		return
	}
	section(p, "Decided lately")
	for _, r := range of.List {
		p.Para(HistoryLine(r, h.Policy, h.tab.Who.ID))
	}
	pager(p, PartRecent, of)
}

// absence draws the person's absence, and the people for whom the person stands in.
func (h home) absence(p *block.Builder) {
	section(p, "Away")
	a := h.tab.Away
	value := h.Token(control.RefAway)
	if a.Over(h.now) {
		p.Para(block.Say("While you are away, your cards go to others, and a colleague can stand in."))
		p.Buttons("away", block.Button(control.ActAway, "I'm away…", value, slack.StyleDefault))
	} else {
		line := block.Say("🌴 You are away from ").At(a.From, block.LongTime).Say(" until ").At(a.Until, block.LongTime).Say(".")
		if a.Delegate != "" {
			line.Say(" ").Person(a.Delegate, a.DelegateName).Say(" stands in for you, in their own name.")
		} else {
			line.Say(" Nobody stands in for you.")
		}
		p.Para(line)
		p.Buttons("away", block.Button(control.ActBack, "I'm back", value, slack.StyleDefault), block.Button(control.ActAway, "Change…", value, slack.StyleDefault))
	}
	for i, other := range h.tab.StandsInFor {
		if i == block.MaxPeopleTold {
			p.Para(block.Say("… and for " + block.Plural(len(h.tab.StandsInFor)-i, "other person") + "."))
			break
		}
		p.Para(block.Say("🤝 You stand in for ").Person(other.Who, other.Name).Say(" from ").At(other.From, block.LongTime).Say(" until ").At(other.Until, block.LongTime).Say("."))
	}
}

// revocableGrants draws the grants that the person can revoke.
func (h home) revocableGrants(p *block.Builder) {
	of := h.tab.Grants
	if of.Total == 0 {
		return
	}
	section(p, fmt.Sprintf("May run without asking: %d", of.Total))
	for _, g := range of.List {
		p.Para(GrantLine(view.ListedGrant{Grant: g.Grant, Conversation: g.Conversation}, h.Policy, h.list.WorkspaceURL, true))
		p.Buttons(g.Grant.ID, h.Revoke(g.Grant))
	}
	pager(p, PartGrants, of)
}

// HistoryLine returns the line about a request in a person's history. The request has ended, or the person has decided
// about it.
func HistoryLine(r approvers.Request, policy *approvers.Policy, who approvers.PersonID) *block.RichText {
	w := wording.Under(policy)
	line := block.Say(signOf(r) + " ").Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxCallText))
	if r.Facts.Asker != who {
		line.Say(", asked for by ").Person(r.Facts.Asker, r.Facts.AskerName)
	}
	line.Say(": ")
	if r.State == approvers.Pending {
		if TookPart(r, who) {
			line.Say("you have decided; ")
		}
		line.Say("it waits for "+w.WaitsFor(r)+" until ").At(r.ExpiresAt, block.DayTime).Say(".")
	} else {
		line.Add(w.Ending(r))
	}
	return line
}

// signOf returns the sign for a request's state.
func signOf(r approvers.Request) string {
	if sign := wording.EndSign(r); sign != "" {
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

// Tab is the content of a person's Home tab, read from the state.
type Tab struct {
	Who         approvers.Identity
	Waiting     Rows[Row]
	Asked       Rows[Row]
	Recent      Rows[approvers.Request]
	Grants      Rows[view.ListedGrant]
	More        bool // some waiting items were not examined
	Away        approvers.Absence
	StandsInFor []approvers.Absence // absences in which the person stands in
	Version     string              // version of the program, for the foot; empty: it is not shown
}

// Row is one waiting item.
type Row struct {
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

// PageRows is the number of rows per page in each section of a Home tab. With these numbers a tab has at most about 90
// blocks. Slack accepts 100 blocks.
var PageRows = map[string]int{PartWaiting: 8, PartAsked: 5, PartRecent: 8, PartGrants: 4}
