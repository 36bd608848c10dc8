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

// rejectForm asks for the reason of a rejection.
func rejectForm(r approvers.Request, f formMark, s seen) slack.ModalViewRequest {
	p := new(page)
	p.para(say("This will not run: ").strong(clip(whatHappens(r.Preview, r.Tool), maxQuote)))
	p.blocks = append(p.blocks, textInput(fieldReason, "Why?", "The person who asked and the agent are told this, so that the agent can offer something else.", "", true, false))
	return submittable(modal("Reject", p), actReject, "Reject", f)
}

// reportForm asks for the result of a run that did happen.
func reportForm(s seen) slack.ModalViewRequest {
	p := new(page)
	if s.Execution == nil || s.Execution.State != approvers.ExecutionUnknown {
		return refusal(actHappened, say("Somebody has already reported on this. The card shows what they found."))
	}
	p.para(say("You report that this happened: ").strong(clip(whatHappens(s.Call.Preview, s.Execution.Tool), maxQuote)))
	p.blocks = append(p.blocks, textInput(fieldResult, "What was the result?", "For example a number or a confirmation that the tool's own system shows. The agent is told this.", "", true, true))
	return submittable(modal("It happened", p), actHappened, "It happened", formMark{mark: s.mark, Execution: s.Execution.ID})
}

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
	v := modal(formTitles[actArguments], p)
	v.PrivateMetadata, v.CallbackID = f.String(), actArguments
	if last && may {
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

func submittable(v slack.ModalViewRequest, callback, submit string, f formMark) slack.ModalViewRequest {
	v.CallbackID, v.PrivateMetadata, v.Submit, v.Close = callback, f.String(), plainText(short(submit, maxModalTitle)), plainText("Cancel")
	return v
}

// textInput is a field of free text.
func textInput(id, label, hint, initial string, multiline, optional bool) *slack.InputBlock {
	in := slack.NewPlainTextInputBlockElement(nil, id).WithMultiline(multiline).WithInitialValue(initial).WithMaxLength(maxInput)
	return inputBlock(id, label, hint, in, optional)
}

func inputBlock(id, label, hint string, in slack.BlockElement, optional bool) *slack.InputBlock {
	var below *slack.TextBlockObject
	if hint != "" {
		below = plainText(clip(hint, maxQuote))
	}
	return slack.NewInputBlock(id, plainText(clip(label, maxQuote)), below, in).WithOptional(optional)
}
