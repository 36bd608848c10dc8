package render

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/markdown"
)

// ArgumentsForm shows all arguments, page by page. They can be approved on the last page.
func ArgumentsForm(r approvers.Request, f FormToken, may bool) slack.ModalViewRequest {
	pages := ArgumentPages(r)
	f.Page = min(f.Page, len(pages)-1)
	last := f.Page == len(pages)-1
	p := pages[f.Page]
	var row []slack.BlockElement
	if f.Page > 0 {
		row = append(row, button(ActPage+"_back", "Back", "-1", slack.StyleDefault))
	}
	if !last {
		row = append(row, button(nextPage, "Next page", "1", slack.StylePrimary))
	}
	if len(row) > 0 {
		p.buttons("", row...)
	}
	approvable := last && may
	if approvable && r.WantsTyping() {
		p.Blocks = append(p.Blocks, typedInput(r))
	}
	v := Modal(FormTitles[ActArguments], p)
	v.PrivateMetadata, v.CallbackID = f.String(), ActArguments
	if approvable {
		v.Submit = plainText("Approve")
	}
	return v
}

// nextPage is the action of the button to the next page.
const nextPage = ActPage + "_next"

// LastPage reports whether a form has no further page.
func LastPage(v slack.ModalViewRequest) bool {
	return !slices.ContainsFunc(v.Blocks.BlockSet, func(b slack.Block) bool {
		row, ok := b.(*slack.ActionBlock)
		return ok && slices.ContainsFunc(row.Elements.ElementSet, func(e slack.BlockElement) bool {
			next, ok := e.(*slack.ButtonBlockElement)
			return ok && next.ActionID == nextPage
		})
	})
}

// ArgumentPages lays out all arguments, followed by warnings about misleading text. The pages depend only on the
// request, so they are the same each time.
func ArgumentPages(r approvers.Request) []*BlockBuilder {
	texts := markdown.Pages(argumentsOf(r), maxPageText)
	pages := make([]*BlockBuilder, len(texts))
	for i, text := range texts {
		p := new(BlockBuilder)
		p.Para(new(RichText).Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)), Say(fmt.Sprintf("Arguments, page %d of %d", i+1, len(texts))))
		for _, part := range markdown.Pages(text, markdown.MaxBlockText) {
			p.exact(part)
		}
		pages[i] = p
	}
	if f := r.ToolPreview; f != nil && f.State == approvers.ToolPreviewReady && f.Text != "" {
		p := pages[len(pages)-1]
		if len(pages) > 1 || len(texts[0]) > maxPageText/2 {
			p = new(BlockBuilder)
			pages = append(pages, p)
		}
		p.Para(Say("🔎 ").also(says(*f)))
		for _, part := range markdown.Pages(toolPreviewText(*f), markdown.MaxBlockText) {
			p.quoted(part)
		}
	}
	for _, warning := range doubts(r) {
		pages[len(pages)-1].Para(Say("⚠️ ").Strong(warning))
	}
	pages[len(pages)-1].Para(maskedNote(r))
	return pages
}

// WholeView returns the content of all pages: what a person has seen who turned through them.
func WholeView(r approvers.Request) ([]byte, error) {
	var all []Message
	for _, p := range ArgumentPages(r) {
		all = append(all, Message{Text: p.lines[0], Blocks: p.Blocks})
	}
	body, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode the arguments of %s: %w", r.ID, err)
	}
	return body, nil
}
