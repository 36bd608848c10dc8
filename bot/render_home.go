package bot

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// home draws somebody's Home tab: what waits for them, with buttons; what they asked for; what was decided lately; when they are away; and what they
// allowed to run without asking.
func (s scene) home() drawing {
	p := new(page)
	if s.Surface.Home.Rests {
		p.para(say("You have not looked here for a while, so this page is not kept up to date. What waits for you has come by message all the same."))
		p.buttons("", s.turnTo(partAll, 0, "Show what is current"))
		return one(p)
	}
	if s.tab.who.ID == "" || s.tab.who.Guest || s.tab.who.Foreign {
		p.para(say("Only full members of this workspace ask for things and decide here. Ask a colleague who is one."))
		return one(p)
	}
	p.para(s.paused())
	shows := s.homeWaiting(p)
	s.homeAsked(p)
	s.homeRecent(p)
	s.homeAway(p)
	s.homeGrants(p)
	p.blocks = append(p.blocks, slack.NewDividerBlock())
	p.small("Everything here can also be typed: /countersign help lists it. Times are in your time zone.")
	return drawing{messages: []message{p.message()}, shows: shows}
}

// part begins a part of a Home tab.
func (p *page) part(title string) {
	if len(p.blocks) > 0 {
		p.blocks = append(p.blocks, slack.NewDividerBlock())
	}
	p.headline(title)
}

// turnTo is a button that shows another page of a part.
func (s scene) turnTo(part string, page int, words string) slack.BlockElement {
	return button(actHome+"_"+strings.ToLower(strings.ReplaceAll(words, " ", "_")), words, part+" "+itoa(page), slack.StyleDefault)
}

// pager says which page of a part this is, where it has several.
func pager[T any](s scene, p *page, part string, of rows[T]) {
	if of.pages < 2 {
		return
	}
	p.small(fmt.Sprintf("Page %d of %d, %d in all", of.page+1, of.pages, of.total))
	var row []slack.BlockElement
	if of.page > 0 {
		row = append(row, s.turnTo(part, of.page-1, "Previous"))
	}
	if of.page < of.pages-1 {
		row = append(row, s.turnTo(part, of.page+1, "Next"))
	}
	p.buttons(part, row...)
}

// homeWaiting draws what waits for the person. It returns the requests that it shows.
func (s scene) homeWaiting(p *page) (shows []store.Shown) {
	of := s.tab.waiting
	if of.total == 0 {
		p.part("Nothing waits for you")
		p.para(say("What does comes by message, and stands here too."))
		return nil
	}
	p.part(fmt.Sprintf("Waits for you: %d", of.total))
	if s.tab.more {
		p.para(say("So much waits that only the oldest was looked through."))
	}
	for _, row := range of.list {
		if row.Execution != nil || row.Request == nil {
			list := waitingList{view: s, who: s.tab.who}
			p.para(list.toDecide(row.Unsettled, row.conv, row.surfaces))
			continue
		}
		s.homeRequest(p, row)
		shows = append(shows, store.Shown{Request: row.Request.ID, Digest: row.Request.Digest})
	}
	pager(s, p, partWaiting, of)
	return shows
}

// homeRequest draws one request that waits, with what can be done about it. Its blocks bear its id, so that what was shown of it can be told from the rest.
func (s scene) homeRequest(p *page, row homeRow) {
	r := *row.Request
	s.Conversation = row.conv
	first := len(p.blocks)
	sign, risk := riskWords(r.Plan.Risk, r.Effect)
	by := say("💬 Asked by ").person(r.Facts.Asker, r.Facts.AskerName)
	switch {
	case s.Conversation.DM:
		by.say(" in a direct message to the bot")
	case s.Conversation.Name != "":
		by.say(" in ").strong("#" + name(s.Conversation.Name))
	}
	p.para(new(prose).strong(clip(whatHappens(r.Preview, r.Tool), maxBundleText)), say(sign+" "+risk+" · ").code(name(r.Tool)), by,
		say("🧭 "+clip(inWords(r.Plan.Why), maxBundleWhy)+"."), s.homeStage(r), s.ifNobody(r, ""))
	s.homeArguments(p, r)
	p.para(maskedNote(r))
	value := s.mark(r.ID)
	moves := []slack.BlockElement{
		button(actArguments, "Approve…", value, slack.StyleDefault), button(actReject, "Reject…", value, slack.StyleDanger),
		button(actModify, "Modify…", value, slack.StyleDefault),
	}
	moves = append(moves, s.reveal(r)...)
	list := waitingList{view: s, who: s.tab.who}
	if link := list.link(row.conv, row.surfaces, "user:", "channel:"); link != "" {
		moves = append(moves, linkButton("Open", link))
	}
	p.buttons("", moves...)
	for i, b := range p.blocks[first:] {
		withID(b, r.ID+":"+itoa(i))
	}
}

// homeStage says where it stands where more than one person has to agree.
func (s scene) homeStage(r approvers.Request) *prose {
	st := r.Plan.Stages[r.Stage]
	if st.Quorum < 2 && len(r.Plan.Stages) < 2 {
		return new(prose)
	}
	return say(fmt.Sprintf("👥 Stage %d of %d · %d of %d agreed", r.Stage+1, len(r.Plan.Stages), r.At(r.Stage), st.Quorum)).say(against(r, " · "))
}

// homeArguments shows the exact arguments, or their beginning.
func (s scene) homeArguments(p *page, r approvers.Request) {
	text := argumentsOf(r)
	if width(text) <= maxBundleCall && strings.Count(text, "\n") < maxBundleLines {
		p.exact(text)
		return
	}
	start, missing := head(text, maxBundleCall/4, maxBundleLines/2)
	p.exact(start)
	p.para(say("✂️ ").strong(fmt.Sprintf("Cut here: %d more characters.", missing)).say(" Approve… shows all of them first."))
}

// withID gives a block an id.
func withID(b slack.Block, id string) {
	switch b := b.(type) {
	case *slack.RichTextBlock:
		b.BlockID = id
	case *slack.ActionBlock:
		b.BlockID = id
	}
}

// homeAsked draws what the person asked for and waits.
func (s scene) homeAsked(p *page) {
	of := s.tab.asked
	if of.total == 0 {
		return
	}
	p.part(fmt.Sprintf("You asked for: %d", of.total))
	list := waitingList{view: s, who: s.tab.who}
	for _, row := range of.list {
		p.para(list.askedFor(row.Unsettled, row.conv, row.surfaces))
	}
	pager(s, p, partAsked, of)
}

// homeRecent draws what was decided lately, by the person or for them.
func (s scene) homeRecent(p *page) {
	of := s.tab.recent
	if of.total == 0 {
		return
	}
	p.part("Decided lately")
	for _, r := range of.list {
		p.para(s.inHistory(r, s.tab.who.ID))
	}
	pager(s, p, partRecent, of)
}

// homeAway draws when the person is away, and for whom they stand in.
func (s scene) homeAway(p *page) {
	p.part("Away")
	a := s.tab.away
	value := s.mark(refAway)
	if a.Over(s.Now) {
		p.para(say("You are here. While you are away nobody waits for you, and a colleague can stand in by their own role."))
		p.buttons("away", button(actAway, "I'm away…", value, slack.StyleDefault))
	} else {
		line := say("🌴 You are away from ").at(a.From, longTime).say(" until ").at(a.Until, longTime).say(".")
		if a.Delegate != "" {
			line.say(" ").person(a.Delegate, a.DelegateName).say(" stands in for you, in their own name.")
		} else {
			line.say(" Nobody stands in for you.")
		}
		p.para(line)
		p.buttons("away", button(actBack, "I'm back", value, slack.StyleDefault), button(actAway, "Change…", value, slack.StyleDefault))
	}
	for i, other := range s.tab.standsFor {
		if i == maxPeopleTold {
			p.para(say("… and for " + plural(len(s.tab.standsFor)-i, "other person") + "."))
			break
		}
		p.para(say("🤝 You stand in for ").person(other.Who, other.Name).say(" from ").at(other.From, longTime).say(" until ").at(other.Until, longTime).say("."))
	}
}

// homeGrants draws the permissions that the person can take back.
func (s scene) homeGrants(p *page) {
	of := s.tab.grants
	if of.total == 0 {
		return
	}
	p.part(fmt.Sprintf("May run without asking: %d", of.total))
	for _, g := range of.list {
		p.para(s.inList(desk.GrantSight{Grant: g.Grant, Conversation: g.Conversation}, true))
		p.buttons(g.Grant.ID, s.revoke(g.Grant))
	}
	pager(s, p, partGrants, of)
}

// inHistory is the line on a request that is decided, or that the person has decided their part of.
func (s scene) inHistory(r approvers.Request, who approvers.PersonID) *prose {
	line := say(signOf(r) + " ").strong(clip(whatHappens(r.Preview, r.Tool), maxCallText))
	if r.Facts.Asker != who {
		line.say(", asked for by ").person(r.Facts.Asker, r.Facts.AskerName)
	}
	line.say(": ")
	if r.State == approvers.Pending {
		if hadASay(r, who) {
			line.say("you had your say; ")
		}
		line.say("it waits for "+s.waitsFor(r)+" until ").at(r.ExpiresAt, dayTime).say(".")
	} else {
		line.also(s.ending(r))
	}
	return line
}

// signOf stands before how a request stands.
func signOf(r approvers.Request) string {
	if sign, over := endSign[r.State]; over {
		return sign
	}
	return "✋"
}
