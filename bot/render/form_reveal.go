package render

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/markdown"
)

// RevealForm shows the secret values to one person who may decide, page by page.
func RevealForm(r approvers.Request, f FormToken) slack.ModalViewRequest {
	pages := revealPages(r)
	f.Page = min(f.Page, len(pages)-1)
	p := pages[f.Page]
	turnPages(p, f.Page, len(pages))
	v := Modal(FormTitles[ActReveal], p)
	v.PrivateMetadata, v.CallbackID = f.String(), ActReveal
	return v
}

// revealPages lays out the secret values. The pages depend only on the request, so they are the same whenever they are
// drawn.
func revealPages(r approvers.Request) []*BlockBuilder {
	var pages []*BlockBuilder
	var p *BlockBuilder
	room, values := 0, 0
	for _, v := range SecretsIn(r.Args, r.Secrets) {
		for i, text := range markdown.Pages(valueText(v.raw), maxPageText) {
			if room -= Width(text); p == nil || room < 0 || values == maxRevealed {
				p, room, values = new(BlockBuilder), maxPageText-Width(text), 0
				p.Para(new(RichText).Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)), Say("Only you see this. It is recorded that you looked."))
				pages = append(pages, p)
			}
			values++
			name := new(RichText).Strong(Name(v.Path))
			if i > 0 {
				name.Say(", continued")
			}
			p.Para(name)
			for _, part := range markdown.Pages(text, markdown.MaxBlockText) {
				p.preformatted(part)
			}
		}
		for _, f := range findings(wordsIn(fmt.Appendf(nil, "[%s]", v.raw))) {
			p.Para(Say("⚠️ ").Strong(f))
		}
	}
	if p == nil { // no secret is left, because the policy or the arguments changed
		p = new(BlockBuilder)
		p.Para(Say("Nothing is masked any more."))
		pages = append(pages, p)
	}
	return pages
}

// maxRevealed is the maximum number of values on one page.
const maxRevealed = 20

// valueText lays out one value.
func valueText(raw []byte) string {
	if len(raw) > 0 && raw[0] == '{' {
		return ArgumentText(raw)
	}
	if text, err := jsontext.AppendUnquote(nil, raw); err == nil && len(raw) > 0 && raw[0] == '"' {
		return `"` + Visible(string(text)) + `"`
	}
	return Visible(string(raw))
}
