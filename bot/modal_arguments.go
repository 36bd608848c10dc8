package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// argumentsForm shows arguments whole, page by page. The last page is where they can be approved.
func argumentsForm(r approvers.Request, f formMark, may bool) slack.ModalViewRequest {
	pages := argumentPages(r)
	f.Page = min(f.Page, len(pages)-1)
	last := f.Page == len(pages)-1
	p := pages[f.Page]
	var row []slack.BlockElement
	if f.Page > 0 {
		row = append(row, button(actPage+"_back", "Back", "-1", slack.StyleDefault))
	}
	if !last {
		row = append(row, button(actPage+"_next", "Next page", "1", slack.StylePrimary))
	}
	if len(row) > 0 {
		p.buttons("", row...)
	}
	approvable := last && may
	if approvable && r.WantsTyping() {
		p.blocks = append(p.blocks, typedInput(r))
	}
	v := modal(formTitles[actArguments], p)
	v.PrivateMetadata, v.CallbackID = f.String(), actArguments
	if approvable {
		v.Submit = plainText("Approve")
	}
	return v
}

// argumentPages lay all arguments out, with what could mislead in them at the end. They are made of the request alone, and the same each time.
func argumentPages(r approvers.Request) []*page {
	texts := pagesOf(argumentsOf(r), maxPageText)
	pages := make([]*page, len(texts))
	for i, text := range texts {
		p := new(page)
		p.para(new(prose).strong(clip(whatHappens(r.Preview, r.Tool), maxQuote)), say(fmt.Sprintf("Page %d of %d of the arguments", i+1, len(texts))))
		for _, part := range pagesOf(text, maxBlockText) {
			p.exact(part)
		}
		pages[i] = p
	}
	if f := r.Forecast; f != nil && f.State == approvers.ForecastMade && f.Text != "" {
		p := pages[len(pages)-1]
		if len(pages) > 1 || len(texts[0]) > maxPageText/2 {
			p = new(page)
			pages = append(pages, p)
		}
		p.para(say("🔎 ").also(says(*f)))
		for _, part := range pagesOf(forecastText(*f), maxBlockText) {
			p.quoted(part)
		}
	}
	for _, warning := range doubts(r) {
		pages[len(pages)-1].para(say("⚠️ ").strong(warning))
	}
	pages[len(pages)-1].para(maskedNote(r))
	return pages
}

// turnPage shows another page of the arguments.
func (b *Bot) turnPage(ctx context.Context, d delivered, i interaction) error {
	w := whisper{user: i.User.ID}
	f, err := readFormMark(i.View.Metadata)
	if err != nil {
		return b.unseen(ctx, d, w, desk.Click{}, seen{}, err)
	}
	switch i.Actions[0].Value {
	case "1":
		f.Page++
	case "-1":
		f.Page = max(0, f.Page-1)
	default:
		return fmt.Errorf("%w: no page there", errPayload)
	}
	s, err := b.seen(ctx, f.mark, "")
	if err != nil {
		return b.unseen(ctx, d, w, desk.Click{}, s, err)
	}
	var viewer approvers.Identity
	v := refusal(actArguments, denied(&approvers.Denied{Code: approvers.DeniedStale}, s.Request, s.Policy))
	if s.Request != nil && s.Request.Execution == f.Execution {
		who, err := b.authority(ctx, i.User.ID, s, actArguments)
		if err != nil {
			return b.unknownClicker(ctx, d, w, desk.Click{}, s, err)
		}
		viewer = who
		_, denied := s.Request.Authority(s.Policy, who)
		v = argumentsForm(*s.Request, f, denied == nil && s.Request.State == approvers.Pending)
	}
	if _, err := b.api.UpdateViewContext(ctx, v, "", i.View.Hash, i.View.ID); err != nil {
		if errorCode(err) == "" && d.tries < clickTries {
			return slow(err)
		}
		b.Log.Info("a page could not be turned: the form was closed or changed", "inbox", d.id, "cause", err)
	} else if err := b.noteWhole(ctx, s, viewer, v); err != nil {
		return err
	}
	if err := b.Desk.Done(ctx, d.id, ""); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// noteWhole records that somebody was shown all arguments, once the last page is before them: only then can they approve there.
func (b *Bot) noteWhole(ctx context.Context, s seen, who approvers.Identity, v slack.ModalViewRequest) error {
	if v.CallbackID != actArguments || v.Submit == nil {
		return nil
	}
	body, err := wholeView(*s.Request)
	if err != nil {
		return err
	}
	_, err = b.Desk.Viewed(ctx, desk.Viewing{Request: s.Request.ID, Digest: s.Request.Digest, Who: who.ID, As: "view", Body: body})
	return err
}

// wholeView is what somebody has been shown who has turned through all pages.
func wholeView(r approvers.Request) ([]byte, error) {
	var all []message
	for _, p := range argumentPages(r) {
		all = append(all, message{Text: p.lines[0], Blocks: p.blocks})
	}
	body, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode the arguments of %s: %w", r.ID, err)
	}
	return body, nil
}
