package bot

import (
	"context"
	"strconv"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// maxHistory is how many requests one page of somebody's history lists.
const maxHistory = 10

// history answers /countersign history: what somebody asked for or had a say in, newest first; or what has happened to one request.
func (b *Bot) history(ctx context.Context, c command, text string) (*page, error) {
	named, rest, _ := strings.Cut(text, " ")
	page, isPage := pageIn(named)
	if named == "" {
		page, isPage = 0, true
	}
	view, err := b.sceneFor(ctx, c.User)
	if err != nil {
		return nil, err
	}
	who, err := b.member(ctx, c.User, view.Policy)
	if err != nil {
		return nil, err
	}
	if isPage {
		return b.historyOf(ctx, view, c, who, page)
	}
	ids, err := b.requestsNamed(ctx, named)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, notClear("I don't know that request. Write %s history for yours, with their ids, or give the link of a card.", c.Command)
	}
	page, _ = pageIn(strings.TrimSpace(rest))
	return b.historyOfRequest(ctx, view, c, who, ids[0], page)
}

// pageIn reads a page as people count: from 1.
func pageIn(s string) (page int, ok bool) {
	n, err := strconv.Atoi(s)
	return max(0, n-1), err == nil && n > 0 && n < 1_000_000
}

func (b *Bot) historyOf(ctx context.Context, view scene, c command, who approvers.Identity, nth int) (*page, error) {
	var before store.RequestCursor
	var list []approvers.Request
	for at := range nth + 1 { // each page is found from the one before
		var err error
		if list, err = b.Desk.Past(ctx, who.ID, before, maxHistory+1); err != nil {
			return nil, err
		}
		if len(list) <= maxHistory {
			if at < nth {
				return paragraph(say("There is no page " + itoa(nth+1) + ": the last one is page " + itoa(at+1) + ".")), nil
			}
			break
		}
		last := list[maxHistory-1]
		before = store.RequestCursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	if len(list) == 0 {
		return paragraph(say("You have asked for nothing that people had to allow, and decided nothing.")), nil
	}
	p := new(page)
	title := "What you asked for or had a say in, newest first:"
	if nth > 0 {
		title = "What you asked for or had a say in, page " + itoa(nth+1) + ":"
	}
	p.para(new(prose).strong(title))
	for i, r := range list {
		if i == maxHistory {
			p.para(say("There is more: ").code(c.Command + " history " + itoa(nth+2)))
			break
		}
		p.para(view.inHistory(r, who.ID).say(" · ").code(r.ID))
	}
	p.para(new(prose).code(c.Command + " history " + list[0].ID).say(" says what has happened to one of them."))
	return p, nil
}

func (b *Bot) historyOfRequest(ctx context.Context, view scene, c command, who approvers.Identity, id string, nth int) (*page, error) {
	r, err := b.Desk.Request(ctx, id)
	if err != nil {
		return nil, err
	}
	if !concerns(r, who, view.Policy) || barred(who) {
		return paragraph(say("That request is between those who asked for it and those who may decide it.")), nil
	}
	records, err := b.Desk.Chain(ctx, id)
	if err != nil {
		return nil, err
	}
	lines, pages := newest(view.happened(records), nth)
	p := new(page)
	p.para(view.inHistory(r, who.ID))
	p.para(lines...)
	if nth+1 < pages {
		p.para(say("What came before: ").code(c.Command + " history " + id + " " + itoa(nth+2)))
	}
	return p, nil
}
