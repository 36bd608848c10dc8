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

// bundle draws the requests of one step that ask the same people. Shared facts appear once. Each call follows in a few
// lines: what would happen, its arguments, and what speaks against it; Details… shows the rest. A decided call is
// reduced to its outcome.
func (v View) bundle() Rendered {
	p := new(BlockBuilder)
	if len(v.Calls) == 0 { // a bundle always has calls; Slack rejects an empty message
		p.Para(Say("…"))
		return Single(p)
	}
	open := v.Undecided()
	first := *v.Calls[0].Request
	v.bundleHead(p, open)
	look := newBundleLook(v, open)
	v.asked(p, first)
	if len(open) > 0 {
		p.Para(v.pausedHere())
		p.Para(look.risk, v.untilWhen(open), v.standsStill(open[0]))
	}
	var shows []store.Shown
	for i, c := range v.Calls {
		title := Say(fmt.Sprintf("%d. ", i+1)).Strong(Clip(whatHappens(c.Request.Preview, c.Request.Tool), maxBundleText))
		if !undecided(c) {
			p.Para(title, v.settled(c))
			if c.Request.State == approvers.Approved {
				p.buttons(c.Request.ID, v.takeBack(*c.Request))
			}
			continue
		}
		v.bundled(p, *c.Request, title, look)
		if !v.hadTheirSay(*c.Request) {
			shows = append(shows, store.Shown{Request: c.Request.ID, Digest: c.Request.Digest, Whole: look.args[c.Request.ID].whole})
		}
	}
	v.together(p, look, len(shows))
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

// bundleLook is how a bundle draws its undecided calls.
type bundleLook struct {
	args    map[string]bundledArgs // by request
	risk    *RichText              // of all; empty: each with its own, because these differ
	ownTime bool                   // each with its deadline, because these differ
	all     string                 // the question asked before all are approved together; empty: each is approved alone
	apart   string                 // why each is approved alone; empty if there is only one
}

// bundledArgs are a call's arguments on a bundle: on one line if they are short, else as a table, which may be cut.
type bundledArgs struct {
	line, table string
	whole       bool // with the sentence about the call
	missing     int  // characters that are cut
}

// bundledArguments lays out the arguments of the calls. Together they are limited, the first come first.
func bundledArguments(open []approvers.Request) map[string]bundledArgs {
	out, room := map[string]bundledArgs{}, maxBundleArgs
	for _, r := range open {
		a := bundledArgs{line: onOneLine(r.Args, r.Secrets), table: argumentsOf(r), whole: true}
		switch {
		case Width(a.line) <= min(maxBundleLine, room):
			a.table = ""
		case Width(a.table) <= min(maxBundleCall, room) && strings.Count(a.table, "\n") < maxBundleLines:
			a.line = ""
		default:
			a.line, a.whole = "", false
			a.table, a.missing = head(a.table, min(maxBundleCall/4, max(0, room)), maxBundleLines/2)
		}
		a.whole = a.whole && Width(whatHappens(r.Preview, r.Tool)) <= maxBundleText
		room -= Width(a.line) + Width(a.table)
		out[r.ID] = a
	}
	return out
}

func newBundleLook(v View, open []approvers.Request) bundleLook {
	look := bundleLook{args: bundledArguments(open), risk: new(RichText)}
	if len(open) == 0 {
		return look
	}
	look.ownTime = len(open) > 1 && v.differ(open)
	if !slices.ContainsFunc(open, func(r approvers.Request) bool { return r.Plan.Risk != open[0].Plan.Risk || r.Effect != open[0].Effect }) {
		look.risk = riskLine(open[0])
	}
	offered := slices.DeleteFunc(slices.Clone(open), v.hadTheirSay)
	if len(offered) > 1 {
		look.all, look.apart = allInOne(v.Policy, offered, look.args)
	}
	return look
}

// bundleHead says how many requests wait, and mentions the people they wait for.
func (v View) bundleHead(p *BlockBuilder, open []approvers.Request) {
	all := len(v.Calls)
	if len(open) == 0 {
		p.headline(fmt.Sprintf("%d requests: none waits here any more", all))
		return
	}
	which, wait := Plural(len(open), "request"), "wait"
	if len(open) < all {
		which = fmt.Sprintf("%d of %d", len(open), all)
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

// bundled draws one call that is decided here.
func (v View) bundled(p *BlockBuilder, r approvers.Request, title *RichText, look bundleLook) {
	lines, notes, args := []*RichText{title}, v.bundleNotes(r), look.args[r.ID]
	if says := previewSaysNo(r); says != "" {
		lines = append(lines, Say("⛔ ").Strong(says))
	}
	if look.risk.empty() {
		lines = append(lines, riskLine(r))
	}
	if args.line != "" {
		lines = append(lines, Say(args.line))
	}
	p.Para(lines...)
	p.exact(args.table)
	if !args.whole {
		cut := "Not all of it is shown here."
		if args.missing > 0 {
			cut = fmt.Sprintf("Cut here: %d more characters.", args.missing)
		}
		notes = append([]*RichText{Say("✂️ ").Strong(cut).Say(" Details… shows all of it, and there it can be approved.")}, notes...)
	}
	if look.ownTime {
		notes = append(notes, v.ifNobody(r, ""))
	}
	if v.hadTheirSay(r) {
		notes = append(notes, haveAgreed(v, r))
	}
	p.Para(notes...)
	v.bundleButtons(p, r, look)
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
		out = append(out, Say("🔒 ").Strong(Plural(n, "value")+" hidden.").Say(" Choose Details…, then Open separately, and reveal them there."))
	}
	st := r.CurrentStage()
	if st.Quorum > 1 || len(r.Plan.Stages) > 1 {
		line := Say(fmt.Sprintf("👥 %d of %d agreed", r.At(r.Stage), st.Quorum)).Say(against(r, ", "))
		for i, d := range r.ValidApprovals() {
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
		line := Say("🗨️ ").also(v.speaker(m)).Say(changedLater(m) + ": ").soft(Clip(OneLine(m.Text), maxBundleNote/2))
		if n > 1 {
			line.Say(" (and " + Plural(n-1, "remark") + " before, in Details…)")
		}
		out = append(out, line)
	}
	return append(out, v.wantsTyping(r))
}

// bundleButtons adds the buttons of one call of a bundle. Details… has the others.
func (v View) bundleButtons(p *BlockBuilder, r approvers.Request, look bundleLook) {
	details := button(ActArguments, "Details…", v.token(r.ID), slack.StyleDefault)
	if v.hadTheirSay(r) {
		p.buttons(r.ID, v.takeBack(r), details)
		return
	}
	style := slack.StyleDefault
	if look.all == "" {
		style = slack.StylePrimary
	}
	whole := look.args[r.ID].whole
	row := v.decisions(r, whole, style)
	if whole {
		row = append(row, details)
	}
	p.buttons(r.ID, row...)
}

func (v View) takeBack(r approvers.Request) slack.BlockElement {
	return button(ActTakeBack, "Take back…", v.token(r.ID), slack.StyleDefault)
}

// settled describes the state of a call that can no longer be decided here.
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
func (v View) together(p *BlockBuilder, look bundleLook, offered int) {
	if offered < 2 {
		return
	}
	p.Blocks = append(p.Blocks, slack.NewDividerBlock())
	value := v.token(v.Turn.ID)
	var row []slack.BlockElement
	if look.all != "" {
		ask := confirm(fmt.Sprintf("Approve all %d?", offered), look.all, "Approve all", "Not yet", slack.StylePrimary)
		row = append(row, button(ActApproveAll, "Approve all", value, slack.StylePrimary).WithConfirm(ask))
	}
	p.buttons("", append(row, button(ActRejectAll, "Reject all…", value, slack.StyleDanger))...)
	if look.apart != "" {
		p.Small(look.apart)
	}
}

// allInOne returns the question asked before all calls are approved together; it repeats what each of them would do. If
// they can't be approved together, apart says why.
func allInOne(p *approvers.Policy, open []approvers.Request, args map[string]bundledArgs) (question, apart string) {
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
		case !args[r.ID].whole:
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
