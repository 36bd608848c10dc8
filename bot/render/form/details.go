package form

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/markdown"
	"countersign/bot/render/wording"
)

// Details shows everything about a request. It shows warnings, all arguments (page by page), and the whole preview.
// It also shows who has to decide and why, and what has happened. A person who may decide can approve the request in
// the form after seeing all arguments. The buttons of the form lead to all other actions that the person may take.
func Details(s ClickTarget, f control.FormToken, who approvers.Identity) slack.ModalViewRequest {
	r := *s.Request
	pages := ArgumentPages(r)
	seen := len(pages) - 1 // index of the last page with arguments
	if at := pages[seen]; at.Width() < MaxPageText/2 {
		requestDetails(at, s)
	} else {
		pages = append(pages, new(block.Builder))
		requestDetails(pages[seen+1], s)
	}
	f.Page = min(f.Page, len(pages)-1)
	p := pages[f.Page]
	may, outdated := mayApprove(r, s.Policy, who), s.Outdated()
	if f.Page == 0 {
		from := wording.NewOrigin(s.About.WorkspaceURL, s.Conversation)
		wrong := wording.Setbacks(r, s.Pause, from.EarlierLink(s.Message.To, s.Earlier))
		if may && outdated != nil {
			wrong = slices.Insert(wrong, 0, DeniedText(outdated, &r, s.Policy))
		}
		p = detailsTop(wrong, otherButtons(s, who), p)
	}
	turnPages(p, f.Page, len(pages))
	approvable := f.Page >= seen && may && outdated == nil
	if approvable && r.WantsTyping() {
		p.Blocks = append(p.Blocks, typedInput(r))
	}
	m := Modal(Titles[control.ActArguments], p)
	m.PrivateMetadata, m.CallbackID = f.String(), control.ActArguments
	if approvable {
		m.Submit = block.PlainText("Approve")
	}
	return m
}

// mayApprove reports whether a person can approve a request. It assumes that the person has seen all arguments that are
// not masked.
func mayApprove(r approvers.Request, p *approvers.Policy, who approvers.Identity) bool {
	_, denied := r.Authority(p, who)
	agreed := slices.ContainsFunc(r.ValidApprovals(), func(d approvers.Decision) bool { return d.By == who.ID })
	return denied == nil && r.State == approvers.Pending && !agreed && !r.MustReveal(p, who.ID)
}

// detailsTop puts the warnings and the buttons before the first page.
func detailsTop(wrong []*block.RichText, buttons []slack.BlockElement, first *block.Builder) *block.Builder {
	p := new(block.Builder)
	p.Para(wrong...)
	if len(buttons) > 0 {
		p.Buttons("moves", buttons...)
	}
	p.Blocks = append(p.Blocks, first.Blocks...)
	return p
}

// otherButtons returns the buttons that the person can use, and that the card does not offer.
func otherButtons(s ClickTarget, who approvers.Identity) (row []slack.BlockElement) {
	r := *s.Request
	if r.Bundled() && r.State == approvers.Pending { // a card of its own has room for the other buttons
		if Precheck(r, s, who) != nil {
			return nil
		}
		row = []slack.BlockElement{block.Button(control.ActReject, "Reject…", r.ID, slack.StyleDanger)}
		if !r.MustReveal(s.Policy, who.ID) {
			row = append(row, block.Button(control.ActModify, "Modify…", r.ID, slack.StyleDefault))
		}
		row = append(row, block.Button(control.ActApart, "Open separately", r.ID, slack.StyleDefault))
		if People[control.ActTakeBack](s, who).Submit != nil {
			row = append(row, block.Button(control.ActTakeBack, "Take back…", r.ID, slack.StyleDefault))
		}
		return row
	}
	for _, one := range []struct{ action, label string }{
		{control.ActAsk, "Ask…"}, {control.ActComment, "Comment…"}, {control.ActHandOn, "Hand on…"}, {control.ActAllow, "Allow more…"}, {control.ActTakeBack, "Take back…"},
	} {
		if People[one.action](s, who).Submit != nil {
			row = append(row, block.Button(one.action, one.label, r.ID, slack.StyleDefault))
		}
	}
	if Precheck(r, s, who) == nil && len(argument.SecretsIn(r.Args, r.Secrets)) > 0 {
		row = append(row, block.Button(control.ActReveal, "Reveal…", r.ID, slack.StyleDefault))
		if r.Facts.Editable() {
			row = append(row, block.Button(control.ActModify, "Modify…", r.ID, slack.StyleDefault))
		}
	}
	return row
}

// turnPages adds the buttons that lead to the previous and the next page.
func turnPages(p *block.Builder, page, pages int) {
	var row []slack.BlockElement
	if page > 0 {
		row = append(row, block.Button(control.ActPage+"_back", "Back", "-1", slack.StyleDefault))
	}
	if page < pages-1 {
		row = append(row, block.Button(nextPage, "Next page", "1", slack.StylePrimary))
	}
	if len(row) > 0 {
		p.Buttons("pages", row...)
	}
}

// requestDetails draws who has to decide a request and why. It also draws the request's remarks and history, and what
// the buttons do.
func requestDetails(p *block.Builder, s ClickTarget) {
	r := *s.Request
	p.Blocks = append(p.Blocks, slack.NewDividerBlock())
	Explainer{Policy: s.Policy, Now: s.Now, tool: s.About.Tool}.explain(p, r, s.About.History)
	for _, lines := range wording.Under(s.Policy).AllRemarks(r, block.MaxNote) {
		p.Para(lines...)
	}
	if e := s.Execution; e != nil && e.Result != "" && r.State == approvers.Consumed {
		p.Para(new(block.RichText).Strong("The tool's result:"))
		p.Quote(block.Clip(resultText(argument.MaskedResult(*e, s.Call)), maxResult))
	}
	if r.State == approvers.Pending {
		p.Para(buttonHelp(r, allowsMore(r, s.Policy, s.Now))...)
	}
	p.Small("Request " + r.ID + " · arguments " + r.Digest + " · policy " + block.Shorten(block.OneLine(r.Plan.PolicyHash), maxPolicyHash))
}

// maxPolicyHash is the number of characters of the policy's hash that are shown.
const maxPolicyHash = 16

// buttonHelp explains what the buttons do.
func buttonHelp(r approvers.Request, allowsMore bool) []*block.RichText {
	help := []*block.RichText{new(block.RichText).Strong("What the buttons do:")}
	add := func(label, does string) { help = append(help, block.Say("• ").Strong(label).Say(" "+does)) }
	add("Reject…", "rejects the call. The agent and the person who asked read your reason.")
	add("Modify…", "changes the arguments before you approve.")
	if r.Bundled() {
		add("Open separately", "gives it a card of its own, where you can ask, comment and hand it on.")
		return help
	}
	add("Ask…", "asks the person who requested the call, in their thread. The deadline does not change.")
	add("Comment…", "adds a remark to every copy of this card, and nowhere else.")
	add("Hand on…", "asks a colleague whose role may decide this, too.")
	if allowsMore {
		add("Allow more…", "approves this and lets calls like it run without asking, for a while.")
	}
	if len(r.ValidApprovals()) > 0 {
		add("Take back…", "revokes the approval of everybody who has agreed. The call will not run.")
	}
	return help
}

// nextPage is the action of the button to the next page.
const nextPage = control.ActPage + "_next"

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
// request, so they are the same whenever they are drawn.
func ArgumentPages(r approvers.Request) []*block.Builder {
	texts := markdown.Pages(argument.OfRequest(r), MaxPageText)
	pages := make([]*block.Builder, len(texts))
	for i, text := range texts {
		p := new(block.Builder)
		page := new(block.RichText)
		if len(texts) > 1 {
			page.Say(fmt.Sprintf("Arguments, page %d of %d", i+1, len(texts)))
		}
		p.Para(new(block.RichText).Strong(block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxQuote)), page)
		for _, part := range markdown.Pages(text, markdown.MaxBlockText) {
			p.Preformatted(part)
		}
		pages[i] = p
	}
	if f := r.ToolPreview; f != nil && f.State == approvers.ToolPreviewReady && f.Text != "" {
		p := pages[len(pages)-1]
		if len(pages) > 1 || len(texts[0]) > MaxPageText/2 {
			p = new(block.Builder)
			pages = append(pages, p)
		}
		p.Para(block.Say("🔎 ").Add(says(*f)))
		for _, part := range markdown.Pages(toolPreviewText(*f), markdown.MaxBlockText) {
			p.Quote(part)
		}
	}
	for _, warning := range argument.Doubts(r) {
		pages[len(pages)-1].Para(block.Say("⚠️ ").Strong(warning))
	}
	pages[len(pages)-1].Para(wording.MaskedNote(r))
	return pages
}

// WholeView returns the content of all pages. A person has seen this content after reading the last page.
func WholeView(r approvers.Request) ([]byte, error) {
	var all []block.Message
	for _, p := range ArgumentPages(r) {
		all = append(all, block.Message{Text: p.FirstLine(), Blocks: p.Blocks})
	}
	body, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode the arguments of %s: %w", r.ID, err)
	}
	return body, nil
}

// resultText lays out a tool's answer. An answer that is not a single JSON object is shown unchanged.
func resultText(s string) string {
	if s == "" {
		return "(an empty result)"
	}
	if len(argument.Spans([]byte(s))) > 0 {
		return argument.Text([]byte(s))
	}
	return block.Visible(s)
}

// says returns the introduction of a preview. The introduction names the tool that made the preview.
func says(f approvers.ToolPreview) *block.RichText {
	switch {
	case f.Dry:
		return block.Say("What ").Code(block.Name(f.By)).Say(" says of a dry run, in its own words:")
	case f.Own:
		return block.Say("What ").Code(block.Name(f.By)).Say(" itself says of it:")
	}
	return block.Say("What ").Code(block.Name(f.By)).Say(" says of it, in its own words:")
}

// toolPreviewText lays out a preview. A JSON object is laid out like arguments; any other text stays unchanged.
func toolPreviewText(f approvers.ToolPreview) string {
	text := argument.Text([]byte(f.Text))
	if f.Cut > 0 {
		text += fmt.Sprintf("\n… (cut: %d more characters, which were not stored)", f.Cut)
	}
	return text
}
