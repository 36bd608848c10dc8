package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// home draws a person's Home tab. It shows the requests that wait for the person, with buttons, and the person's own
// requests. It also shows recent decisions, the person's absence, and the grants that the person can revoke.
func (v View) home() Rendered {
	p := new(BlockBuilder)
	if v.Message.Home.Idle {
		p.Para(Say("You have not looked here for a while, so this page is not up to date. What waits for you came by message."))
		p.buttons("", v.turnTo(PartAll, 0, "Show what is current"))
		return Single(p)
	}
	if v.Home.Who.ID == "" || v.Home.Who.Guest || v.Home.Who.Foreign {
		p.Para(Say("Only full members of this workspace can ask and decide here."))
		return Single(p)
	}
	p.Para(v.paused())
	shows := v.homeWaiting(p)
	v.homeAsked(p)
	v.homeRecent(p)
	v.homeAway(p)
	v.homeGrants(p)
	p.Blocks = append(p.Blocks, slack.NewDividerBlock())
	foot := "You can also type all of this: see /countersign help. Times are in your time zone."
	if v.Version != "" {
		foot += " Countersign " + v.Version + "."
	}
	p.Small(foot)
	return Rendered{Messages: []Message{p.Message()}, Shows: shows}
}

// section starts a section of a Home tab.
func (p *BlockBuilder) section(title string) {
	if len(p.Blocks) > 0 {
		p.Blocks = append(p.Blocks, slack.NewDividerBlock())
	}
	p.headline(title)
}

// turnTo returns a button that shows another page of a section.
func (v View) turnTo(part string, page int, words string) slack.BlockElement {
	return button(ActHome+"_"+strings.ToLower(strings.ReplaceAll(words, " ", "_")), words, part+" "+strconv.Itoa(page), slack.StyleDefault)
}

// pager shows the page number of a section, if the section has several pages.
func pager[T any](v View, p *BlockBuilder, part string, of Rows[T]) {
	if of.Pages < 2 {
		return
	}
	p.Small(fmt.Sprintf("Page %d of %d, %d in all", of.Page+1, of.Pages, of.Total))
	var row []slack.BlockElement
	if of.Page > 0 {
		row = append(row, v.turnTo(part, of.Page-1, "Previous"))
	}
	if of.Page < of.Pages-1 {
		row = append(row, v.turnTo(part, of.Page+1, "Next"))
	}
	p.buttons(part, row...)
}

// homeWaiting draws the items that wait for the person. homeWaiting returns the requests that the section shows.
func (v View) homeWaiting(p *BlockBuilder) (shows []store.Shown) {
	of := v.Home.Waiting
	if of.Total == 0 {
		p.section("Nothing waits for you")
		p.Para(Say("What waits for you comes by message, and is listed here too."))
		return nil
	}
	p.section(fmt.Sprintf("Waits for you: %d", of.Total))
	if v.Home.More {
		p.Para(Say("Too much waits to list all of it. These are the oldest."))
	}
	for i, row := range of.List {
		if i > 0 {
			p.Blocks = append(p.Blocks, slack.NewDividerBlock())
		}
		if row.Execution != nil || row.Request == nil {
			list := WaitingList{View: v, Who: v.Home.Who}
			p.Para(list.DecideLine(row.PendingItem, row.Conversation, row.Messages))
			continue
		}
		v.homeRequest(p, row)
		shows = append(shows, store.Shown{Request: row.Request.ID, Digest: row.Request.Digest})
	}
	pager(v, p, PartWaiting, of)
	return shows
}

// homeRequest draws one waiting request with its actions. The IDs of the request's blocks contain the request's id, so
// that ItemBody finds this part of the tab.
func (v View) homeRequest(p *BlockBuilder, row HomeRow) {
	r := *row.Request
	v.Conversation = row.Conversation
	first := len(p.Blocks)
	sign, risk := riskWords(r.Plan.Risk, r.Effect)
	p.Para(new(RichText).Strong(Clip(whatHappens(r.Preview, r.Tool), maxBundleText)), Say(sign+" "+risk), v.toolPreviewLine(r, MaxNote))
	cut := v.homeArguments(p, r)
	p.Para(append([]*RichText{cut, v.askedShort(r)}, append(v.waitsLine(r), maskedNote(r), Say("⏳ ").add(v.deadline(r)))...)...)
	value := v.token(r.ID)
	buttons := []slack.BlockElement{
		button(ActArguments, "Approve…", value, slack.StyleDefault), button(ActReject, "Reject…", value, slack.StyleDanger),
	}
	if r.Facts.Editable() {
		buttons = append(buttons, button(ActModify, "Modify…", value, slack.StyleDefault))
	}
	buttons = append(buttons, v.reveal(r)...)
	list := WaitingList{View: v, Who: v.Home.Who}
	if link := list.link(row.Conversation, row.Messages, store.ToUser, store.ToChannel); link != "" {
		buttons = append(buttons, linkButton("See the card", link))
	}
	p.buttons("", buttons...)
	for i, b := range p.Blocks[first:] {
		withID(b, r.ID+":"+strconv.Itoa(i))
	}
}

// askedShort returns one line that says who asked, where, and in which words.
func (v View) askedShort(r approvers.Request) *RichText {
	line := Say("💬 ").Person(r.Facts.Asker, r.Facts.AskerName)
	if r.Facts.Caller != nil {
		line = callerLine(*r.Facts.Caller).Say(". ").add(runsItself(r.Facts.Caller))
	}
	switch {
	case v.Conversation.DM:
		line.Say(" in a direct message")
	case v.Conversation.Name != "":
		line.Say(" in #" + Name(v.Conversation.Name))
	}
	if quote := Clip(OneLine(maskSecrets(r.Facts.Quote, r.Args, r.Secrets)), maxBundleNote); quote != "" {
		line.Say(": ").soft("“" + quote + "”")
	}
	return line
}

// homeArguments shows the exact arguments, or their beginning and how much is missing.
func (v View) homeArguments(p *BlockBuilder, r approvers.Request) (cut *RichText) {
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

// homeAsked draws the person's own requests that wait.
func (v View) homeAsked(p *BlockBuilder) {
	of := v.Home.Asked
	if of.Total == 0 {
		return
	}
	p.section(fmt.Sprintf("You asked for: %d", of.Total))
	list := WaitingList{View: v, Who: v.Home.Who}
	for _, row := range of.List {
		p.Para(list.AskedLine(row.PendingItem, row.Conversation, row.Messages))
	}
	pager(v, p, PartAsked, of)
}

// homeRecent draws recent decisions by the person or about the person's requests.
func (v View) homeRecent(p *BlockBuilder) {
	of := v.Home.Recent
	if of.Total == 0 {
		return
	}
	p.section("Decided lately")
	for _, r := range of.List {
		p.Para(v.HistoryLine(r, v.Home.Who.ID))
	}
	pager(v, p, PartRecent, of)
}

// homeAway draws the person's absence, and the people for whom the person stands in.
func (v View) homeAway(p *BlockBuilder) {
	p.section("Away")
	a := v.Home.Away
	value := v.token(refAway)
	if a.Over(v.Now) {
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
	for i, other := range v.Home.StandsInFor {
		if i == maxPeopleTold {
			p.Para(Say("… and for " + Plural(len(v.Home.StandsInFor)-i, "other person") + "."))
			break
		}
		p.Para(Say("🤝 You stand in for ").Person(other.Who, other.Name).Say(" from ").At(other.From, longTime).Say(" until ").At(other.Until, longTime).Say("."))
	}
}

// homeGrants draws the grants that the person can revoke.
func (v View) homeGrants(p *BlockBuilder) {
	of := v.Home.Grants
	if of.Total == 0 {
		return
	}
	p.section(fmt.Sprintf("May run without asking: %d", of.Total))
	for _, g := range of.List {
		p.Para(v.GrantLine(view.ListedGrant{Grant: g.Grant, Conversation: g.Conversation}, true))
		p.buttons(g.Grant.ID, v.revoke(g.Grant))
	}
	pager(v, p, PartGrants, of)
}

// HistoryLine returns the line about a request in a person's history. The request has ended, or the person has decided
// about it.
func (v View) HistoryLine(r approvers.Request, who approvers.PersonID) *RichText {
	line := Say(signOf(r) + " ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxCallText))
	if r.Facts.Asker != who {
		line.Say(", asked for by ").Person(r.Facts.Asker, r.Facts.AskerName)
	}
	line.Say(": ")
	if r.State == approvers.Pending {
		if TookPart(r, who) {
			line.Say("you have decided; ")
		}
		line.Say("it waits for "+v.waitsFor(r)+" until ").At(r.ExpiresAt, DayTime).Say(".")
	} else {
		line.add(v.ending(r))
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
