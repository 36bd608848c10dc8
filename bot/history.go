package bot

import (
	"context"
	"strconv"
	"strings"

	"countersign/approvers"
	"countersign/bot/directory"
	"countersign/bot/render"
	"countersign/store"
)

// maxHistory is the number of requests on a page of a person's history.
const maxHistory = 10

// history answers /countersign history. The function lists the person's own requests and the requests that the person
// decided, newest first. With a request's id, the function shows the history of this request.
func (b *explainer) history(ctx context.Context, c command, text string) (*render.BlockBuilder, error) {
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

func (b *explainer) historyOf(ctx context.Context, words render.Explainer, c command, who approvers.Identity, nth int) (*render.BlockBuilder, error) {
	var before store.RequestCursor
	var list []approvers.Request
	for at := range nth + 1 { // the cursor of each page comes from the previous page
		var err error
		if list, err = b.Views.RequestsOf(ctx, who.ID, before, maxHistory+1); err != nil {
			return nil, err
		}
		if len(list) <= maxHistory {
			if at < nth {
				return render.Paragraph(render.Say("There is no page " + strconv.Itoa(nth+1) + ": the last one is page " + strconv.Itoa(at+1) + ".")), nil
			}
			break
		}
		last := list[maxHistory-1]
		before = store.RequestCursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	if len(list) == 0 {
		return render.Paragraph(render.Say("You have asked for nothing that people had to allow, and decided nothing.")), nil
	}
	p := new(render.BlockBuilder)
	title := "What you asked for or had a say in, newest first:"
	if nth > 0 {
		title = "What you asked for or had a say in, page " + strconv.Itoa(nth+1) + ":"
	}
	p.Para(new(render.RichText).Strong(title))
	for i, r := range list {
		if i == maxHistory {
			p.Para(render.Say("There is more: ").Code(c.Command + " history " + strconv.Itoa(nth+2)))
			break
		}
		p.Para(render.HistoryLine(r, words.Policy, who.ID).Say(" · ").Code(r.ID))
	}
	p.Para(new(render.RichText).Code(c.Command + " history " + list[0].ID).Say(" says what has happened to one of them."))
	return p, nil
}

func (b *explainer) historyOfRequest(ctx context.Context, words render.Explainer, c command, who approvers.Identity, id string, nth int) (*render.BlockBuilder, error) {
	r, err := b.Views.Request(ctx, id)
	if err != nil {
		return nil, err
	}
	if !concerns(r, who, words.Policy) || directory.Barred(who) {
		return render.Paragraph(render.Say("That request is between those who asked for it and those who may decide it.")), nil
	}
	records, err := b.Views.Chain(ctx, id)
	if err != nil {
		return nil, err
	}
	lines, pages := render.Newest(words.Timeline(records), nth)
	p := new(render.BlockBuilder)
	p.Para(render.HistoryLine(r, words.Policy, who.ID))
	p.Para(lines...)
	if nth+1 < pages {
		p.Para(render.Say("What came before: ").Code(c.Command + " history " + id + " " + strconv.Itoa(nth+2)))
	}
	return p, nil
}
