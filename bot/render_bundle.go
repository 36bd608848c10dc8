package bot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// bundle draws the requests of one step that ask the same people: what they share once, and then each call with all that is needed to decide
// it for itself. What is settled shrinks to how it ended.
func (s scene) bundle() drawing {
	p := new(page)
	if len(s.Calls) == 0 { // a bundle keeps its calls; Slack refuses an empty message
		p.para(say("…"))
		return one(p)
	}
	open := s.undecided()
	first := *s.Calls[0].Request
	s.bundleHead(p, open)
	s.asked(p, first)
	if len(open) > 0 {
		p.para(s.pausedHere())
		p.para(s.whyAll(open), s.untilWhen(open), s.standsStill(open[0]))
	}
	var shows []store.Shown
	room := maxBundleArgs
	for i, c := range s.Calls {
		p.blocks = append(p.blocks, slack.NewDividerBlock())
		title := say(fmt.Sprintf("%d. ", i+1)).strong(clip(whatHappens(c.Request.Preview, c.Request.Tool), maxBundleText))
		if !undecided(c) {
			p.para(title, s.settled(c))
			if c.Request.State == approvers.Approved {
				p.buttons(c.Request.ID, s.takeBack(*c.Request))
			}
			continue
		}
		whole := s.bundled(p, c, title, &room, len(open) > 1 && s.differ(open))
		if !s.hadTheirSay(*c.Request) {
			shows = append(shows, store.Shown{Request: c.Request.ID, Digest: c.Request.Digest, Whole: whole})
		}
	}
	s.together(p, open, shows)
	return drawing{messages: []message{p.message()}, shows: shows}
}

// undecided reports whether a call is decided on the bundle.
func undecided(c desk.CallSight) bool { return waits(c) && c.Request.Bundled() }

// undecided lists the requests that are decided on the bundle.
func (s scene) undecided() (open []approvers.Request) {
	for _, c := range s.Calls {
		if undecided(c) {
			open = append(open, *c.Request)
		}
	}
	return open
}

// bundleHead says how many calls wait, and calls those for whom.
func (s scene) bundleHead(p *page, open []approvers.Request) {
	all := len(s.Calls)
	if len(open) == 0 {
		p.headline(fmt.Sprintf("%d calls: none waits here any more", all))
		return
	}
	which, wait := plural(len(open), "call"), "wait"
	if len(open) < all {
		which = fmt.Sprintf("%d of %d calls", len(open), all)
	}
	if len(open) == 1 {
		wait = "waits"
	}
	waits := s.stageTitle(open[0].Plan.Stages[open[0].Stage])
	p.headline(fmt.Sprintf("%s %s for %s", which, wait, waits))
	line := say("✋ ")
	for _, c := range s.calls {
		c.in(line)
		line.say(" ")
	}
	p.para(s.handedOn(open[0]), line.say("Each call is decided for itself, and runs as soon as it is approved."))
}

// whyAll says why the calls come to these people: every reason once.
func (s scene) whyAll(open []approvers.Request) *prose {
	var why []string
	for _, r := range open {
		for _, w := range r.Plan.Why {
			if !slices.Contains(why, w) {
				why = append(why, w)
			}
		}
	}
	return say("🧭 Why they come here: " + clip(inWords(why), maxBundleWhy) + ".")
}

// differ reports whether the requests fall due at different times.
func (s scene) differ(open []approvers.Request) bool {
	return slices.ContainsFunc(open, func(r approvers.Request) bool {
		return !r.ExpiresAt.Equal(open[0].ExpiresAt) || !r.EscalateAt.Equal(open[0].EscalateAt) || s.joined(r) != s.joined(open[0]) ||
			r.Reminded+r.Told != open[0].Reminded+open[0].Told
	})
}

// untilWhen says what happens if nobody does anything, where that is the same for all of them.
func (s scene) untilWhen(open []approvers.Request) *prose {
	if len(open) > 1 && s.differ(open) {
		return new(prose)
	}
	return s.ifNobody(open[0], " a call")
}

// bundled draws one call that is decided here. It reports whether the call is shown whole; room is what is left for arguments.
func (s scene) bundled(p *page, c desk.CallSight, title *prose, room *int, ownTime bool) bool {
	r := *c.Request
	sign, risk := riskWords(r.Plan.Risk, r.Effect)
	p.para(title, say(sign+" "+risk+" · ").code(name(r.Tool)))
	text := argumentsOf(r)
	whole := width(text) <= min(maxBundleCall, *room) && strings.Count(text, "\n") < maxBundleLines && width(whatHappens(r.Preview, r.Tool)) <= maxBundleText
	notes := s.bundleNotes(r)
	if whole {
		*room -= width(text)
		p.exact(text)
	} else {
		start, missing := head(text, min(maxBundleCall/4, max(0, *room)), maxBundleLines/2)
		*room -= width(start)
		p.exact(start)
		notes = append([]*prose{say("✂️ ").strong(fmt.Sprintf("Cut here: %d more characters.", missing)).say(" Open all arguments to approve it.")}, notes...)
	}
	if ownTime {
		notes = append(notes, s.ifNobody(r, ""))
	}
	p.para(notes...)
	s.bundleMoves(p, r, whole)
	return whole
}

// bundleNotes are what stands out about a call of a bundle: what could mislead, who has agreed, what was said, and why a value has to be typed.
func (s scene) bundleNotes(r approvers.Request) []*prose {
	var out []*prose
	var warnings []string
	warnings = append(warnings, doubts(r)...)
	if r.PreviewFault != "" {
		warnings = append(warnings, "The preview could not be made: "+oneLine(r.PreviewFault)+".")
	}
	if !r.Plan.Known {
		warnings = append(warnings, "The policy does not know this tool.")
	}
	if note := s.forecastNote(r); !note.empty() {
		out = append(out, note)
	}
	if len(warnings) > 0 {
		out = append(out, say("⚠️ ").strong(clip(strings.Join(warnings, " "), maxBundleNote)))
	}
	if n := len(secretsIn(r.Args, r.Secrets)); n > 0 {
		out = append(out, say("🔒 ").strong(plural(n, "value")+" masked here.").say(" Its own card reveals them to those who may decide."))
	}
	st := r.Plan.Stages[r.Stage]
	if st.Quorum > 1 || len(r.Plan.Stages) > 1 {
		line := say(fmt.Sprintf("👥 Stage %d of %d · %d of %d agreed", r.Stage+1, len(r.Plan.Stages), r.At(r.Stage), st.Quorum)).say(against(r, " · "))
		for i, d := range r.Standing() {
			if i == 3 {
				line.say(" and more")
				break
			}
			line.say(map[bool]string{true: ": ", false: ", "}[i == 0]).person(d.By, d.Name)
		}
		out = append(out, line)
	}
	if n := len(r.Remarks); n > 0 {
		m := r.Remarks[n-1]
		line := say("🗨️ ").also(s.speaker(m)).say(": ").soft(clip(oneLine(m.Text), maxBundleNote/2))
		if n > 1 {
			line.say(fmt.Sprintf(" (and %s before; they are on its own card)", plural(n-1, "remark")))
		}
		out = append(out, line)
	}
	return append(out, s.wantsTyping(r))
}

// bundleMoves are the buttons of one call of a bundle.
func (s scene) bundleMoves(p *page, r approvers.Request, whole bool) {
	if s.hadTheirSay(r) {
		p.para(say("☑️ You have agreed. Others are still needed."))
		p.buttons(r.ID, s.takeBack(r))
		return
	}
	row := append(s.decisions(r, whole, slack.StyleDefault), button(actApart, "On its own card", s.mark(r.ID), slack.StyleDefault))
	if len(r.Standing()) > 0 && !s.ownCopy() {
		row = append(row, s.takeBack(r))
	}
	p.buttons(r.ID, row...)
}

func (s scene) takeBack(r approvers.Request) slack.BlockElement {
	return button(actTakeBack, "Take back…", s.mark(r.ID), slack.StyleDefault)
}

// settled says where a call stands that is not decided here any more.
func (s scene) settled(c desk.CallSight) *prose {
	switch {
	case waits(c):
		return say("↗️ It has a card of its own now. ").also(s.waiting(*c.Request))
	case c.Execution != nil && c.Execution.State == approvers.ExecutionExecuting:
		if s.Pause.On {
			return say("⏸️ ").also(s.decided(c)).also(s.held(c))
		}
		return say("▶️ ").also(s.decided(c)).say("Running…")
	}
	sign, state := s.state(c)
	return say(sign + " ").also(state)
}
