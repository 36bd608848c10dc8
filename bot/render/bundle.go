package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/slackapi"
	"countersign/store"
)

// bundle draws the requests of one step that ask the same people. Shared facts appear once. Each call follows with
// everything needed to decide it alone. A decided call is reduced to its outcome.
func (v View) bundle() Rendered {
	p := new(BlockBuilder)
	if len(v.Calls) == 0 { // a bundle always has calls; Slack rejects an empty message
		p.Para(Say("…"))
		return Single(p)
	}
	open := v.Undecided()
	first := *v.Calls[0].Request
	v.bundleHead(p, open)
	v.asked(p, first)
	if len(open) > 0 {
		p.Para(v.pausedHere())
		p.Para(v.untilWhen(open), v.standsStill(open[0]))
	}
	var shows []store.Shown
	room := maxBundleArgs
	for i, c := range v.Calls {
		p.Blocks = append(p.Blocks, slack.NewDividerBlock())
		title := Say(fmt.Sprintf("%d. ", i+1)).Strong(Clip(whatHappens(c.Request.Preview, c.Request.Tool), maxBundleText))
		if !undecided(c) {
			p.Para(title, v.settled(c))
			if c.Request.State == approvers.Approved {
				p.buttons(c.Request.ID, v.takeBack(*c.Request))
			}
			continue
		}
		whole := v.bundled(p, c, title, &room, len(open) > 1 && v.differ(open))
		if !v.hadTheirSay(*c.Request) {
			shows = append(shows, store.Shown{Request: c.Request.ID, Digest: c.Request.Digest, Whole: whole})
		}
	}
	v.together(p, open, shows)
	return Rendered{Messages: []Message{p.Message()}, Shows: shows}
}

// undecided reports whether a call is still to be decided on the bundle.
func undecided(c view.Call) bool { return waits(c) && c.Request.Bundled() }

// Undecided returns the requests that are still to be decided on the bundle.
func (v View) Undecided() (open []approvers.Request) {
	for _, c := range v.Calls {
		if undecided(c) {
			open = append(open, *c.Request)
		}
	}
	return open
}

// bundleHead says how many calls wait, and mentions the people they wait for.
func (v View) bundleHead(p *BlockBuilder, open []approvers.Request) {
	all := len(v.Calls)
	if len(open) == 0 {
		p.headline(fmt.Sprintf("%d calls: none waits here any more", all))
		return
	}
	which, wait := Plural(len(open), "call"), "wait"
	if len(open) < all {
		which = fmt.Sprintf("%d of %d calls", len(open), all)
	}
	if len(open) == 1 {
		wait = "waits"
	}
	waits := v.stageTitle(open[0].CurrentStage())
	p.headline(fmt.Sprintf("%s %s for %s", which, wait, waits))
	line := new(RichText)
	for i, c := range v.Mentions {
		line.Say(map[bool]string{true: "✋ ", false: " "}[i == 0])
		c.in(line)
	}
	p.Para(v.handedOn(open[0]), line)
}

// differ reports whether the requests have different deadlines.
func (v View) differ(open []approvers.Request) bool {
	return slices.ContainsFunc(open, func(r approvers.Request) bool {
		return !r.ExpiresAt.Equal(open[0].ExpiresAt) || !r.EscalateAt.Equal(open[0].EscalateAt) || v.joined(r) != v.joined(open[0]) ||
			r.Reminded+r.Told != open[0].Reminded+open[0].Told
	})
}

// untilWhen says what happens if nobody decides. It is empty if the requests have different deadlines.
func (v View) untilWhen(open []approvers.Request) *RichText {
	if len(open) > 1 && v.differ(open) {
		return new(RichText)
	}
	return v.ifNobody(open[0], "Each is")
}

// bundled draws one call that is decided here, and reports whether all of it is shown. room is the remaining space for
// arguments.
func (v View) bundled(p *BlockBuilder, c view.Call, title *RichText, room *int, ownTime bool) bool {
	r := *c.Request
	sign, risk := riskWords(r.Plan.Risk, r.Effect)
	no := new(RichText)
	if says := previewSaysNo(r); says != "" {
		no = Say("⛔ ").Strong(says)
	}
	p.Para(title, no, Say(sign+" "+risk+" · ").Code(Name(r.Tool)))
	text := argumentsOf(r)
	whole := Width(text) <= min(maxBundleCall, *room) && strings.Count(text, "\n") < maxBundleLines && Width(whatHappens(r.Preview, r.Tool)) <= maxBundleText
	notes := v.bundleNotes(r)
	if whole {
		*room -= Width(text)
		p.exact(text)
	} else {
		start, missing := head(text, min(maxBundleCall/4, max(0, *room)), maxBundleLines/2)
		*room -= Width(start)
		p.exact(start)
		notes = append([]*RichText{Say("✂️ ").Strong(fmt.Sprintf("Cut here: %d more characters.", missing)).Say(" Details… shows all of them, and there it can be approved.")}, notes...)
	}
	if ownTime {
		notes = append(notes, v.ifNobody(r, ""))
	}
	p.Para(notes...)
	v.bundleMoves(p, r, whole)
	return whole
}

// bundleNotes returns the notes on one call of a bundle: misleading text, approvals so far, remarks, and why a value
// must be typed.
func (v View) bundleNotes(r approvers.Request) []*RichText {
	var out []*RichText
	var warnings []string
	warnings = append(warnings, doubts(r)...)
	if fault := previewFault(r); fault != "" {
		warnings = append(warnings, "The preview could not be made: "+OneLine(fault)+".")
	}
	if !r.Plan.Known {
		warnings = append(warnings, "The policy does not know this tool.")
	}
	if note := v.toolPreviewLine(r); !note.empty() {
		out = append(out, note)
	}
	if len(warnings) > 0 {
		out = append(out, Say("⚠️ ").Strong(Clip(strings.Join(warnings, " "), maxBundleNote)))
	}
	if n := len(SecretsIn(r.Args, r.Secrets)); n > 0 {
		out = append(out, Say("🔒 ").Strong(Plural(n, "value")+" hidden.").Say(" Open separately, and reveal them there."))
	}
	st := r.CurrentStage()
	if st.Quorum > 1 || len(r.Plan.Stages) > 1 {
		line := Say(fmt.Sprintf("👥 %d of %d agreed", r.At(r.Stage), st.Quorum)).Say(against(r, ", "))
		for i, d := range r.Standing() {
			if i == 3 {
				line.Say(" and more")
				break
			}
			line.Say(map[bool]string{true: ": ", false: ", "}[i == 0]).Person(d.By, d.Name)
		}
		if after := len(r.Plan.Stages) - 1 - r.Stage; after > 0 {
			line.Say("; then " + Plural(after, "more stage"))
		}
		out = append(out, line)
	}
	if n := len(r.Remarks); n > 0 {
		m := r.Remarks[n-1]
		line := Say("🗨️ ").also(v.speaker(m)).Say(": ").soft(Clip(OneLine(m.Text), maxBundleNote/2))
		if n > 1 {
			line.Say(fmt.Sprintf(" (and %s before; open separately to read them)", Plural(n-1, "remark")))
		}
		out = append(out, line)
	}
	return append(out, v.wantsTyping(r))
}

// bundleMoves adds the buttons of one call of a bundle.
func (v View) bundleMoves(p *BlockBuilder, r approvers.Request, whole bool) {
	if v.hadTheirSay(r) {
		p.Para(Say("☑️ You have agreed. Others are still needed."))
		p.buttons(r.ID, v.takeBack(r))
		return
	}
	row := append(v.decisions(r, whole, slack.StyleDefault), button(ActApart, "Open separately", v.token(r.ID), slack.StyleDefault))
	if len(r.Standing()) > 0 && !v.ownCopy() {
		row = append(row, v.takeBack(r))
	}
	p.buttons(r.ID, row...)
}

func (v View) takeBack(r approvers.Request) slack.BlockElement {
	return button(ActTakeBack, "Take back…", v.token(r.ID), slack.StyleDefault)
}

// settled says where a call stands that can no longer be decided here.
func (v View) settled(c view.Call) *RichText {
	switch {
	case waits(c):
		return Say("↗️ It has a card of its own now. ").also(v.waiting(*c.Request))
	case c.Execution != nil && c.Execution.State == approvers.ExecutionExecuting:
		if v.Pause.On {
			return Say("⏸️ ").also(v.decided(c)).also(v.held(c))
		}
		return Say("▶️ ").also(v.decided(c)).Say("Running…")
	}
	sign, state := v.state(c)
	return Say(sign + " ").also(state)
}

// together adds the buttons that act on all waiting calls, and the notes that belong to them.
func (v View) together(p *BlockBuilder, open []approvers.Request, shows []store.Shown) {
	if len(shows) < 2 {
		return
	}
	p.Blocks = append(p.Blocks, slack.NewDividerBlock())
	value := v.token(v.Turn.ID)
	var row []slack.BlockElement
	question, apart := allInOne(v.Policy, open, shows)
	if apart == "" {
		ask := confirm(fmt.Sprintf("Approve all %d?", len(shows)), question, "Approve all", "Not yet", slack.StylePrimary)
		row = append(row, button(ActApproveAll, "Approve all", value, slack.StylePrimary).WithConfirm(ask))
	}
	p.buttons("", append(row, button(ActRejectAll, "Reject all…", value, slack.StyleDanger))...)
	if apart != "" {
		p.Small(apart)
	}
}

// allInOne returns the question asked before all calls are approved together; it repeats what each of them would do. If
// they can't be approved together, apart says why.
func allInOne(p *approvers.Policy, open []approvers.Request, shows []store.Shown) (question, apart string) {
	var lines []string
	for i, r := range open {
		switch {
		case r.Stage != open[0].Stage:
			return "", "They are not at the same stage, so each is approved alone."
		case r.MustReveal(p, ""):
			return "", "One of them has masked values, so each is approved alone."
		case r.WantsTyping():
			return "", "One of them asks for a typed value, so each is approved alone."
		case previewSaysNo(r) != "":
			return "", "The preview of one of them says no, so each is approved alone."
		case slices.ContainsFunc(shows, func(o store.Shown) bool { return o.Request == r.ID && !o.Whole }):
			return "", "One of them is not shown whole here, so each is approved alone."
		}
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, inFull(r.Preview, r.Tool, r.Args, r.Secrets)))
	}
	if question = strings.Join(lines, "\n"); Width(question) > slackapi.MaxConfirm {
		return "", "What they do is too long to ask for in one question, so each is approved alone."
	}
	return question, ""
}

// SelectRequest selects the request of the bundle that the button is about. It selects none if the button is about all
// of them.
func (s *ClickTarget) SelectRequest() {
	for _, c := range s.Calls {
		if c.Request.ID == s.Token.Ref {
			s.Request, s.Execution, s.Call = c.Request, c.Execution, &c.Call
		}
	}
}

// Offered returns the calls that the clicked version of a bundle offered for decision.
func (s ClickTarget) Offered() (calls []view.Call) {
	for _, c := range s.Calls {
		if c.Request != nil && slices.ContainsFunc(s.Shown.Shows, func(o store.Shown) bool { return o.Request == c.Request.ID }) {
			calls = append(calls, c)
		}
	}
	return calls
}

// DeniedAll says why none of several calls was decided, and which call prevented it.
func DeniedAll(d *approvers.Denied, r approvers.Request, p *approvers.Policy) *RichText {
	if r.ID == "" {
		return Denied(d, nil, p)
	}
	return Say("None of them was decided, because of ").Strong(Clip(whatHappens(r.Preview, r.Tool), maxQuote)).Say(". ").also(Denied(d, &r, p))
}

// RejectAllForm asks for one reason to reject all calls of a bundle.
func RejectAllForm(s ClickTarget, who approvers.Identity) slack.ModalViewRequest {
	calls := s.Offered()
	if len(calls) == 0 {
		return Refusal(ActRejectAll, Denied(&approvers.Denied{Code: approvers.DeniedNothing}, nil, s.Policy))
	}
	lines := []*RichText{Say("⛔ You reject these, and none of them will run:")}
	for _, c := range calls {
		one := s
		one.Request = c.Request
		if d := Precheck(*c.Request, one, who); d != nil {
			return Refusal(ActRejectAll, DeniedAll(d, *c.Request, s.Policy))
		}
		lines = append(lines, Say("• ").Strong(Clip(whatHappens(c.Request.Preview, c.Request.Tool), maxBundleText)))
	}
	p := new(BlockBuilder)
	p.Para(lines...)
	p.Blocks = append(p.Blocks, textInput(FieldReason, "Why?", reasonHint, "", true, false))
	return submittable(Modal(FormTitles[ActRejectAll], p), ActRejectAll, "Reject all", FormToken{ButtonToken: s.Token})
}
