package bot

import (
	"context"
	"strconv"
	"strings"

	"countersign/approvers"
	"countersign/bot/directory"
	"countersign/bot/render/block"
	"countersign/bot/render/form"
	"countersign/bot/render/home"
	"countersign/store"
)

// maxHistory is the number of requests on a page of a person's history.
const maxHistory = 10

// history answers /countersign history. The function lists the person's own requests and the requests that the person
// decided, newest first. With a request's id, the function shows the history of this request.
func (b *explainer) history(ctx context.Context, c command, text string) (*block.Builder, error) {
	named, rest, _ := strings.Cut(text, " ")
	page, isPage := pageIn(named)
	if named == "" {
		page, isPage = 0, true
	}
	words := b.words()
	who, err := b.identities.member(ctx, c.User, words.Policy)
	if err != nil {
		return nil, err
	}
	if isPage {
		return b.historyOf(ctx, words, c, who, page)
	}
	ids, err := b.requestsNamed(ctx, named)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, notClear("I don't know that request. Write %s history for yours, with their ids, or give the link of a card.", c.Command)
	}
	page, _ = pageIn(strings.TrimSpace(rest))
	return b.historyOfRequest(ctx, words, c, who, ids[0], page)
}

// pageIn parses a page number that counts from 1. pageIn returns a number that counts from 0.
func pageIn(s string) (page int, ok bool) {
	n, err := strconv.Atoi(s)
	return max(0, n-1), err == nil && n > 0 && n < 1_000_000
}

func (b *explainer) historyOf(ctx context.Context, words form.Explainer, c command, who approvers.Identity, nth int) (*block.Builder, error) {
	var before store.RequestCursor
	var list []approvers.Request
	for at := range nth + 1 { // the cursor of each page comes from the previous page
		var err error
		if list, err = b.Views.RequestsOf(ctx, who.ID, before, maxHistory+1); err != nil {
			return nil, err
		}
		if len(list) <= maxHistory {
			if at < nth {
				return block.Paragraph(block.Say("There is no page " + strconv.Itoa(nth+1) + ": the last one is page " + strconv.Itoa(at+1) + ".")), nil
			}
			break
		}
		last := list[maxHistory-1]
		before = store.RequestCursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	if len(list) == 0 {
		return block.Paragraph(block.Say("You have asked for nothing that people had to allow, and decided nothing.")), nil
	}
	p := new(block.Builder)
	title := "What you asked for or had a say in, newest first:"
	if nth > 0 {
		title = "What you asked for or had a say in, page " + strconv.Itoa(nth+1) + ":"
	}
	p.Para(new(block.RichText).Strong(title))
	for i, r := range list {
		if i == maxHistory {
			p.Para(block.Say("There is more: ").Code(c.Command + " history " + strconv.Itoa(nth+2)))
			break
		}
		p.Para(home.HistoryLine(r, words.Policy, who.ID).Say(" · ").Code(r.ID))
	}
	p.Para(new(block.RichText).Code(c.Command + " history " + list[0].ID).Say(" says what has happened to one of them."))
	return p, nil
}

func (b *explainer) historyOfRequest(ctx context.Context, words form.Explainer, c command, who approvers.Identity, id string, nth int) (*block.Builder, error) {
	r, err := b.Views.Request(ctx, id)
	if err != nil {
		return nil, err
	}
	if !concerns(r, who, words.Policy) || directory.Barred(who) {
		return block.Paragraph(block.Say("That request is between those who asked for it and those who may decide it.")), nil
	}
	records, err := b.Views.Chain(ctx, id)
	if err != nil {
		return nil, err
	}
	lines, pages := form.Newest(words.Timeline(records), nth)
	p := new(block.Builder)
	p.Para(home.HistoryLine(r, words.Policy, who.ID))
	p.Para(lines...)
	if nth+1 < pages {
		p.Para(block.Say("What came before: ").Code(c.Command + " history " + id + " " + strconv.Itoa(nth+2)))
	}
	return p, nil
}
