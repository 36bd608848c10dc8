package card

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/bot/slackapi"
	"countersign/store"
)

// bundle is the card of several calls of one step.
type bundle struct {
	wording.DecisionParts
	calls  []view.Call
	states wording.CallWords
	from   wording.Origin
	turn   string // id of the turn
	now    time.Time
}

// DrawBundle draws the card of several calls of one step.
func DrawBundle(v wording.View) block.Rendered { return newBundle(v).draw() }

func newBundle(v wording.View) bundle {
	return bundle{DecisionParts: v.DecisionParts(), calls: v.Calls, states: v.CallWords(), from: v.Origin(), turn: v.Turn.ID, now: v.Now}
}

// draw draws the requests of one step that wait for the same approvers. Facts that all requests share appear once.
// Then each call has a few lines: the effect of the call, its arguments, and warnings. Details… shows the rest. A
// decided call is reduced to its outcome.
//
// The whole card, from the headline to the buttons for all calls, must fit on a phone's screen. A card that is too tall
// is shortened in steps until it fits. First, the quotation of the person who asked is shortened. Second, the calls
// become a list, with one row of buttons that open one call each. Third, each decided call takes one line. Finally, one
// after the other, the tallest calls are reduced to the sentence about their effect. Such a call can be approved only
// in its details.
func (b bundle) draw() block.Rendered {
	if len(b.calls) == 0 { // a bundle always has calls; Slack rejects an empty message
		return block.Single(block.Paragraph(block.Say("…")))
	}
	look := b.lookIn(roomy, nil)
	p, shows := b.drawIn(look)
	var cut []string
	for len(look.open) > 0 && block.PhoneHeight(p.Blocks) > block.MaxPhoneHeight {
		if look.form == brief {
			highest, found := look.highest()
			if !found {
				break
			}
			cut = append(cut, highest)
		}
		look = b.lookIn(min(look.form+1, brief), cut)
		p, shows = b.drawIn(look)
	}
	return block.Rendered{Messages: []block.Message{p.Message()}, Shows: shows}
}

// drawIn draws a bundle in the given look.
func (b bundle) drawIn(look bundleLook) (p *block.Builder, shows []store.Shown) {
	p = new(block.Builder)
	b.heading(p, look.open)
	b.from.Requester(p, *b.calls[0].Request, [...]int{roomy: block.MaxQuote, terse: maxTerseQuote, listed: maxTerseQuote, brief: maxBriefQuote}[look.form])
	if len(look.open) > 0 {
		paused := new(block.RichText)
		if look.form == roomy {
			p.Para(wording.PausedHere(b.states.Pause))
		} else if b.states.Pause.On {
			paused.Say("⏸️ ").Strong("Everything is paused.")
		}
		p.Para(paused, look.risk, b.untilWhen(look), b.StandsStill(look.open[0], b.now), look.agreed)
		if look.same.whole {
			p.Para(block.Say("The same in all calls: " + look.same.line))
			p.Preformatted(look.same.table)
		}
	}
	list := look.list()
	var details []slack.BlockElement // buttons that open the calls of a list
	for i, c := range b.calls {
		r := *c.Request
		opens := block.Button(control.ActArguments, "Details…", b.Token(r.ID), slack.StyleDefault)
		if list {
			opens = block.Button(control.ActDetailsOf+strconv.Itoa(i+1), fmt.Sprintf("Open %d…", i+1), b.Token(r.ID), slack.StyleDefault)
		}
		number, what := fmt.Sprintf("%d. ", i+1), wording.WhatHappens(r.Preview, r.Tool)
		if undecided(c) {
			begin := len(p.Blocks)
			b.call(p, r, number, opens, look)
			look.heights[r.ID] = block.PhoneHeight(p.Blocks[begin:])
			details = append(details, opens)
			if !b.OwnerHasApproved(r) {
				shows = append(shows, store.Shown{Request: r.ID, Digest: r.Digest, Stage: approvers.StageDigest(r), Whole: look.args[r.ID].whole})
			}
			continue
		}
		if sign, state := b.settled(c); look.form == brief {
			p.Para(block.Say(number + sign + " ").Strong(block.Shorten(what, look.briefly()-3)))
		} else {
			p.Para(block.Say(number).Strong(block.Clip(what, block.MaxBundleText)), block.Say(sign+" ").Add(state))
		}
		switch {
		case r.State != approvers.Approved:
		case list:
			details = append(details, opens)
		default:
			p.Buttons(r.ID, b.TakeBack(r))
		}
	}
	if list {
		p.Buttons("details", details...)
	}
	b.buttonsForAll(p, look, len(shows))
	return p, shows
}

// undecided reports whether a call waits for a decision on the bundle.
func undecided(c view.Call) bool { return wording.Waits(c) && c.Request.Bundled() }

// Undecided returns the requests that wait for a decision on the bundle.
func Undecided(calls []view.Call) (open []approvers.Request) {
	for _, c := range calls {
		if undecided(c) {
			open = append(open, *c.Request)
		}
	}
	return open
}

// These are the forms of a bundle, from the tallest to the shortest.
const (
	roomy  = iota // each call has its own buttons
	terse         // like roomy, but with less text about all calls together
	listed        // one row of buttons opens the calls, if there are several
	brief         // decided calls take one line
)

// bundleLook determines how the undecided calls of a bundle are drawn.
type bundleLook struct {
	open    []approvers.Request
	form    int
	args    map[string]bundledArgs // the calls' arguments, by request
	heights map[string]int         // by request; set when the calls are drawn
	risk    *block.RichText        // the risk of all calls; empty: the risks differ, and each call shows its own risk
	same    bundledArgs            // the arguments that are the same in each call of a list
	agreed  *block.RichText        // the people who agreed to every call of a list; empty: these people differ, and each call shows its own
	ownTime bool                   // the calls have different deadlines
	all     string                 // the question before all calls are approved together; empty: each call is approved separately
	apart   string                 // why each call is approved separately; empty if there is only one call
}

// highest returns the request with the tallest call that can be shortened.
func (look bundleLook) highest() (request string, found bool) {
	most := 0
	for _, r := range look.open {
		if h := look.heights[r.ID]; h > most && !look.args[r.ID].hidden {
			request, most, found = r.ID, h, true
		}
	}
	return request, found
}

// list reports whether the calls have no buttons of their own. A single call keeps its buttons, because a list would
// save no space.
func (look bundleLook) list() bool { return look.form >= listed && len(look.open) > 1 }

// briefly returns the maximum length of the text about a decided call.
func (look bundleLook) briefly() int {
	if slices.ContainsFunc(look.open, func(r approvers.Request) bool { return look.args[r.ID].hidden }) {
		return maxBriefly
	}
	return 2 * maxBriefly
}

// bundledArgs are a call's arguments in a bundle. Short arguments are on one line. Longer arguments are a table, which
// may be cut.
type bundledArgs struct {
	line, table string
	whole       bool // nothing is cut, neither the arguments nor the sentence about the call
	missing     int  // number of characters that are cut
	hidden      bool // only the sentence about the call is shown
}

// sameArguments returns the laid-out arguments that are the same in all calls, and the names of these arguments. If a
// call has no other arguments, or if the calls are to different tools, sameArguments returns nil.
func sameArguments(open []approvers.Request) (args bundledArgs, same []string) {
	all, first := argument.Members(open[0].Args)
	same = slices.Clone(all)
	for _, r := range open {
		names, values := argument.Members(r.Args)
		same = slices.DeleteFunc(same, func(n string) bool { return !bytes.Equal(values[n], first[n]) || approvers.HoldsSecret(r.Secrets, n) })
		if r.Tool != open[0].Tool || len(names) != len(values) {
			return bundledArgs{}, nil
		}
	}
	if len(same) == 0 || slices.ContainsFunc(open, func(r approvers.Request) bool { return len(argument.Spans(r.Args)) == len(same) }) {
		return bundledArgs{}, nil
	}
	one := open[0]
	one.ID, one.Preview = "", ""
	one.Args = without(one.Args, slices.DeleteFunc(all, func(n string) bool { return slices.Contains(same, n) }))
	if args = bundledArguments([]approvers.Request{one}, nil, nil)[""]; !args.whole {
		return bundledArgs{}, nil
	}
	return args, same
}

// without returns the arguments without the named arguments.
func without(args []byte, names []string) []byte {
	if len(names) == 0 {
		return args
	}
	none := map[string][]byte{}
	for _, n := range names {
		none[n] = nil
	}
	return argument.Splice(args, none, nil)
}

// bundledArguments lays out the calls' arguments. It leaves out arguments that are shown once for all calls. The calls
// share one limit on the length of their arguments. Each call may use the part of the limit that the calls before it
// have not used.
func bundledArguments(open []approvers.Request, hidden, same []string) map[string]bundledArgs {
	out, room := map[string]bundledArgs{}, MaxBundleArgs
	for _, r := range open {
		if slices.Contains(hidden, r.ID) {
			out[r.ID] = bundledArgs{hidden: true}
			continue
		}
		r.Args = without(r.Args, same)
		a := bundledArgs{line: argument.OnOneLine(r.Args, r.Secrets), table: argument.OfRequest(r), whole: true}
		switch {
		case block.Width(a.line) <= min(maxBundleLine, room):
			a.table = ""
		case block.Width(a.table) <= min(block.MaxBundleCall, room) && strings.Count(a.table, "\n") < block.MaxBundleLines:
			a.line = ""
		default:
			a.line, a.whole = "", false
			a.table, a.missing = argument.Head(a.table, min(block.MaxBundleCall/4, max(0, room)), block.MaxBundleLines/2)
		}
		a.whole = a.whole && block.Width(wording.WhatHappens(r.Preview, r.Tool)) <= block.MaxBundleText
		room -= block.Width(a.line) + block.Width(a.table)
		out[r.ID] = a
	}
	return out
}

// lookIn returns the look of a bundle in the given form, such as roomy. For the requests in hidden, only the sentence
// about the effect is shown.
func (b bundle) lookIn(form int, hidden []string) bundleLook {
	open := Undecided(b.calls)
	look := bundleLook{open: open, form: form, heights: map[string]int{}, risk: new(block.RichText), agreed: new(block.RichText)}
	if len(open) == 0 {
		return look
	}
	var same []string
	if look.list() {
		look.same, same = sameArguments(open)
		agreed := agreedOf(open[0])
		if !slices.ContainsFunc(open, func(r approvers.Request) bool { return agreedOf(r).Mrkdwn() != agreed.Mrkdwn() }) {
			look.agreed = agreed
		}
	}
	look.args = bundledArguments(open, hidden, same)
	look.ownTime = len(open) > 1 && b.differ(open)
	if !slices.ContainsFunc(open, func(r approvers.Request) bool { return r.Plan.Risk != open[0].Plan.Risk || r.Effect != open[0].Effect }) {
		look.risk = wording.RiskLine(open[0])
	}
	offered := slices.DeleteFunc(slices.Clone(open), b.OwnerHasApproved)
	if len(offered) > 1 {
		look.all, look.apart = allInOne(b.Policy, offered, look.args)
	}
	return look
}

// heading draws how many requests wait, and mentions the people for whom they wait.
func (b bundle) heading(p *block.Builder, open []approvers.Request) {
	all := len(b.calls)
	if len(open) == 0 {
		p.Headline(fmt.Sprintf("%d requests: none waits here any more", all))
		return
	}
	which, wait := block.Plural(len(open), "request"), "wait"
	if len(open) < all {
		which = fmt.Sprintf("%d of %d", len(open), all)
	}
	if len(open) == 1 {
		wait = "waits"
	}
	waits := b.StageTitle(open[0].CurrentStage())
	p.Headline(fmt.Sprintf("%s %s for %s", which, wait, waits))
	line := new(block.RichText)
	for i, c := range b.Mentions {
		line.Say(map[bool]string{true: "✋ ", false: " "}[i == 0])
		c.In(line)
	}
	p.Para(b.HandedOn(open[0]), line)
}

// differ reports whether the requests differ in the effect of their deadlines: in the times, the added roles, or the
// numbers of escalations.
func (b bundle) differ(open []approvers.Request) bool {
	return slices.ContainsFunc(open, func(r approvers.Request) bool {
		return !r.ExpiresAt.Equal(open[0].ExpiresAt) || !r.EscalateAt.Equal(open[0].EscalateAt) || b.EscalatedRoles(r) != b.EscalatedRoles(open[0]) ||
			r.Reminded+r.Told != open[0].Reminded+open[0].Told
	})
}

// untilWhen describes what happens if nobody decides. If the deadlines of the requests differ, the text depends on the
// form. In a list, untilWhen names the first deadline. In other forms, each call shows its own deadline, and untilWhen
// returns an empty text.
func (b bundle) untilWhen(look bundleLook) *block.RichText {
	switch {
	case !look.ownTime && look.form == brief:
		return block.Say("⏳ ").Add(b.Deadline(look.open[0]))
	case !look.ownTime:
		return b.IfNobody(look.open[0], "Each is")
	case !look.list():
		return new(block.RichText)
	}
	first := slices.MinFunc(look.open, func(a, b approvers.Request) int { return a.ExpiresAt.Compare(b.ExpiresAt) })
	return block.Say("⏳ The first deadline: ").Add(b.Deadline(first))
}

// call draws one call that can be decided on the bundle. The parameter opens is the button to the call's details.
func (b bundle) call(p *block.Builder, r approvers.Request, number string, opens *slack.ButtonBlockElement, look bundleLook) {
	what, notes, args := wording.WhatHappens(r.Preview, r.Tool), b.notes(r, look), look.args[r.ID]
	lines := []*block.RichText{block.Say(number).Strong(block.Clip(what, block.MaxBundleText))}
	if look.risk.Empty() {
		lines = append(lines, wording.RiskLine(r))
	}
	if args.hidden {
		lines[0] = block.Say(number).Strong(block.Shorten(what, maxBriefly))
		cut := "Shown in part"
		if len(wording.Warnings(r)) > 0 || wording.PreviewSaysNo(r) != "" {
			cut = "Warning; shown in part"
		}
		p.Para(append(lines, block.Say("✂️ ").Strong(cut).Say(": "+opens.Text.Text))...)
		return
	}
	if says := wording.PreviewSaysNo(r); says != "" {
		lines = slices.Insert(lines, 1, block.Say("⛔ ").Strong(says))
	}
	if args.line != "" {
		lines = append(lines, block.Say(args.line))
	}
	p.Para(lines...)
	p.Preformatted(args.table)
	if !args.whole {
		cut := "Not shown in full."
		if args.missing > 0 {
			cut = fmt.Sprintf("Cut here: %d more characters.", args.missing)
		}
		notes = append([]*block.RichText{block.Say("✂️ ").Strong(cut).Say(" " + opens.Text.Text + " shows it in full. Approve it there.")}, notes...)
	}
	if look.ownTime && !look.list() {
		notes = append(notes, b.IfNobody(r, ""))
	}
	if b.OwnerHasApproved(r) {
		notes = append(notes, b.HaveAgreed(r))
	}
	p.Para(notes...)
	if !look.list() {
		b.callButtons(p, r, opens, look)
	}
}

// notes returns the notes on one call of a bundle: the tool's preview, warnings, the number of hidden values, the
// approvals so far, the last remark, and what the approver must type, and why.
func (b bundle) notes(r approvers.Request, look bundleLook) []*block.RichText {
	var out []*block.RichText
	if note := wording.ToolPreviewLine(r, [...]int{roomy: block.MaxNote, terse: 50, listed: 50, brief: 22}[look.form], b.states.Pause.On); !note.Empty() {
		out = append(out, note)
	}
	if warned := wording.Warnings(r); len(warned) > 0 {
		out = append(out, block.Say("⚠️ ").Strong(block.Clip(strings.Join(warned, " "), block.MaxBundleNote)))
	}
	if n := len(argument.SecretsIn(r.Args, r.Secrets)); n > 0 {
		out = append(out, block.Say("🔒 ").Strong(block.Plural(n, "value")+" hidden.").Say(" Choose Details…, then Open separately, and reveal them there."))
	}
	if line := agreedOf(r); !line.Empty() && look.agreed.Empty() {
		out = append(out, line)
	}
	if n := len(r.Remarks); n > 0 {
		m := r.Remarks[n-1]
		line := block.Say("🗨️ ").Add(b.Speaker(m)).Say(wording.ChangedLater(m) + ": ").Soft(block.Clip(block.OneLine(m.Text), block.MaxBundleNote/2))
		if n > 1 {
			line.Say(" (and " + block.Plural(n-1, "remark") + " before, in Details…)")
		}
		out = append(out, line)
	}
	if look.list() { // in a list, the call's details ask for the value
		return out
	}
	return append(out, wantsTyping(r))
}

// agreedOf names the people who agreed to a call of a bundle, if the call needs several people.
func agreedOf(r approvers.Request) *block.RichText {
	st := r.CurrentStage()
	if st.Quorum < 2 && len(r.Plan.Stages) < 2 {
		return new(block.RichText)
	}
	line := block.Say(fmt.Sprintf("👥 %d of %d agreed", r.At(r.Stage), st.Quorum)).Say(wording.Against(r, ", "))
	for i, d := range r.ValidApprovals() {
		if i == 3 {
			line.Say(" and more")
			break
		}
		line.Say(map[bool]string{true: ": ", false: ", "}[i == 0]).Person(d.By, d.Name)
	}
	if after := len(r.Plan.Stages) - 1 - r.Stage; after > 0 {
		line.Say("; then " + block.Plural(after, "more stage"))
	}
	return line
}

// callButtons adds the buttons of one call of a bundle. Details… has the other buttons.
func (b bundle) callButtons(p *block.Builder, r approvers.Request, details *slack.ButtonBlockElement, look bundleLook) {
	if b.OwnerHasApproved(r) {
		p.Buttons(r.ID, b.TakeBack(r), details)
		return
	}
	style := slack.StyleDefault
	if look.all == "" {
		style = slack.StylePrimary
	}
	whole := look.args[r.ID].whole
	row := b.Decisions(r, whole, style)
	if whole {
		row = append(row, details)
	}
	p.Buttons(r.ID, row...)
}

// settled returns the state of a call that can't be decided on the bundle.
func (b bundle) settled(c view.Call) (sign string, state *block.RichText) {
	switch {
	case wording.Waits(c):
		return "↗️", block.Say("It has a card of its own now. ").Add(b.Waiting(*c.Request))
	case c.Execution != nil && c.Execution.State == approvers.ExecutionExecuting:
		if b.states.Pause.On {
			return "⏸️", b.states.AllowedBy(c).Add(wording.Held(c))
		}
		return "▶️", b.states.AllowedBy(c).Say("Running…")
	}
	return b.states.State(c)
}

// buttonsForAll adds the buttons that act on all waiting calls, and the notes about these buttons.
func (b bundle) buttonsForAll(p *block.Builder, look bundleLook, offered int) {
	if offered < 2 {
		return
	}
	if !look.list() {
		p.Blocks = append(p.Blocks, slack.NewDividerBlock())
	}
	value := b.Token(b.turn)
	var row []slack.BlockElement
	if look.all != "" {
		ask := block.Confirm(fmt.Sprintf("Approve all %d?", offered), look.all, "Approve all", "Not yet", slack.StylePrimary)
		row = append(row, block.Button(control.ActApproveAll, "Approve all", value, slack.StylePrimary).WithConfirm(ask))
	}
	p.Buttons("", append(row, block.Button(control.ActRejectAll, "Reject all…", value, slack.StyleDanger))...)
	if look.apart != "" {
		p.Small(look.apart)
	}
}

// allInOne returns the question that is asked before all calls are approved together. The question repeats the effect
// of each call. If the calls can't be approved together, the result apart says why.
func allInOne(p *approvers.Policy, open []approvers.Request, args map[string]bundledArgs) (question, apart string) {
	var lines []string
	for i, r := range open {
		switch {
		case r.Stage != open[0].Stage:
			return "", "They are not at the same stage, so each is approved alone."
		case r.MustReveal(p, ""):
			return "", "One of them has masked values, so each is approved alone."
		case r.WantsTyping():
			return "", "One needs a typed value, so each is approved alone."
		case wording.PreviewSaysNo(r) != "":
			return "", "One call would fail, so each is approved alone."
		case !args[r.ID].whole:
			return "", "Not all is shown, so each is approved alone."
		}
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, wording.InFull(r.Preview, r.Tool, r.Args, r.Secrets)))
	}
	if question = strings.Join(lines, "\n"); block.Width(question) > slackapi.MaxConfirm {
		return "", "Their effects are too long for one confirmation, so each is approved alone."
	}
	return question, ""
}
