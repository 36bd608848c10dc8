package form

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/markdown"
	"countersign/bot/render/wording"
)

// Reveal shows the secret values to one person who may decide, page by page.
func Reveal(r approvers.Request, f control.FormToken) slack.ModalViewRequest {
	pages := revealPages(r)
	f.Page = min(f.Page, len(pages)-1)
	p := pages[f.Page]
	turnPages(p, f.Page, len(pages))
	v := Modal(Titles[control.ActReveal], p)
	v.PrivateMetadata, v.CallbackID = f.String(), control.ActReveal
	return v
}

// revealPages lays out the secret values. The pages depend only on the request, so they are the same whenever they are
// drawn.
func revealPages(r approvers.Request) []*block.Builder {
	var pages []*block.Builder
	var p *block.Builder
	room := 0
	for _, v := range argument.SecretsIn(r.Args, r.Secrets) {
		for i, text := range markdown.Pages(valueText(v.Raw), MaxPageText) {
			if room -= block.Width(text); p == nil || room < 0 || len(p.Blocks) > maxRevealed {
				p, room = new(block.Builder), MaxPageText-block.Width(text)
				p.Para(new(block.RichText).Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxQuote)), block.Say("Only you see this. It is recorded that you looked."))
				pages = append(pages, p)
			}
			name := new(block.RichText).Strong(block.Name(v.Path))
			if i > 0 {
				name.Say(", continued")
			}
			p.Para(name)
			for _, part := range markdown.Pages(text, markdown.MaxBlockText) {
				p.Preformatted(part)
			}
		}
		for _, f := range block.Findings(argument.WordsIn(fmt.Appendf(nil, "[%s]", v.Raw))) {
			p.Para(block.Say("⚠️ ").Strong(f))
		}
	}
	if p == nil { // no secret is left, because the policy or the arguments changed
		p = new(block.Builder)
		p.Para(block.Say("Nothing is masked any more."))
		pages = append(pages, p)
	}
	return pages
}

// maxRevealed is the number of blocks with which a page is full. The last value of a page, with its warnings, may add
// ten more blocks.
const maxRevealed = 40

// valueText lays out one value.
func valueText(raw []byte) string {
	if len(raw) > 0 && raw[0] == '{' {
		return argument.Text(raw)
	}
	if text, err := jsontext.AppendUnquote(nil, raw); err == nil && len(raw) > 0 && raw[0] == '"' {
		return `"` + block.Visible(string(text)) + `"`
	}
	return block.Visible(string(raw))
}
