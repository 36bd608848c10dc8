package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/store"
)

// argumentsForm shows arguments whole, page by page. The last page is where they can be approved.
func argumentsForm(r approvers.Request, f formMark, may bool) slack.ModalViewRequest {
	pages := pagesOf(argumentText(r.Args), maxPageText)
	f.Page = min(f.Page, len(pages)-1)
	last := f.Page == len(pages)-1
	p := new(page)
	p.para(new(prose).strong(clip(whatHappens(r.Preview, r.Tool), maxQuote)), say(fmt.Sprintf("Page %d of %d of the arguments", f.Page+1, len(pages))))
	for _, part := range pagesOf(pages[f.Page], maxBlockText) {
		p.exact(part)
	}
	if last {
		for _, warning := range findings(wordsIn(r.Args)) {
			p.para(say("⚠️ ").strong(warning))
		}
	}
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

// turnPage shows another page of the arguments.
func (b *Bot) turnPage(ctx context.Context, d delivered, i interaction) error {
	f, err := readFormMark(i.View.Metadata)
	if err != nil {
		return err
	}
	switch i.Actions[0].Value {
	case "1":
		f.Page++
	case "-1":
		f.Page = max(0, f.Page-1)
	default:
		return fmt.Errorf("%w: no page there", errPayload)
	}
	s, err := b.seen(ctx, f.mark)
	if err != nil {
		return b.unseen(ctx, d, whisper{user: i.User.ID}, err)
	}
	v := refusal(actArguments, denied(&approvers.Denied{Code: approvers.DeniedStale}, s.Request, s.Policy))
	if s.Request != nil && s.Request.Execution == f.Execution {
		who, err := b.authority(ctx, i.User.ID, s)
		if err != nil {
			return b.unknownClicker(ctx, d, whisper{user: i.User.ID}, err)
		}
		_, denied := s.Request.Authority(s.Policy, who)
		v = argumentsForm(*s.Request, f, denied == nil && s.Request.State == approvers.Pending)
	}
	if _, err := b.api.UpdateViewContext(ctx, v, "", i.View.Hash, i.View.ID); err != nil {
		if errorCode(err) == "" && d.tries < clickTries {
			return slow(err)
		}
		b.Log.Info("a page could not be turned: the form was closed or changed", "inbox", d.id, "cause", err)
	}
	if err := b.Desk.Done(ctx, d.id, ""); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// wholeHash is the hash of the arguments as the modal shows them, over all its pages.
func wholeHash(args []byte) string {
	text, err := json.Marshal(pagesOf(argumentText(args), maxPageText))
	if err != nil { // texts always encode
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
