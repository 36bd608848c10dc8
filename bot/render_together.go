package bot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/store"
)

// together are the buttons for all calls that wait, and what the buttons can't say themselves.
func (s scene) together(p *page, open []approvers.Request, shows []store.Shown) {
	if len(open) == 0 {
		return
	}
	p.blocks = append(p.blocks, slack.NewDividerBlock())
	p.para(nothingHidden(open, shows))
	value := s.mark(s.Turn.ID)
	var row []slack.BlockElement
	question, apart := allInOne(open, shows)
	if len(shows) > 1 && apart == "" {
		ask := confirm(fmt.Sprintf("Approve all %d?", len(shows)), question, "Approve all", "Not yet", slack.StylePrimary)
		row = append(row, button(actApproveAll, "Approve all", value, slack.StyleDefault).WithConfirm(ask))
	}
	if len(shows) > 1 {
		row = append(row, button(actRejectAll, "Reject all…", value, slack.StyleDanger))
		p.buttons("", row...)
	}
	note := "Modify… changes the arguments before approving. On its own card there is room for questions, comments and colleagues."
	if !open[0].Plan.SelfOK {
		note += " Those who asked for it can't decide."
	}
	if len(shows) > 1 && apart != "" {
		note = apart + " " + note
	}
	p.small(note)
}

// nothingHidden says that what is before the reader is all of it, where that is so.
func nothingHidden(open []approvers.Request, shows []store.Shown) *prose {
	if slices.ContainsFunc(shows, func(o store.Shown) bool { return !o.Whole }) ||
		slices.ContainsFunc(open, func(r approvers.Request) bool { return len(doubts(r)) > 0 }) {
		return new(prose)
	}
	return new(prose).soft("Above are all arguments, exactly as they will be sent: nothing is hidden, cut or masked.")
}

// allInOne is the question that is asked before all are approved together: it repeats what each would do. Where they can't be approved
// together, it says why instead.
func allInOne(open []approvers.Request, shows []store.Shown) (question, apart string) {
	var lines []string
	for i, r := range open {
		switch {
		case r.Stage != open[0].Stage:
			return "", "They are not at the same stage, so each is approved for itself."
		case r.WantsTyping():
			return "", "One of them asks for a typed value, so each is approved for itself."
		case slices.ContainsFunc(shows, func(o store.Shown) bool { return o.Request == r.ID && !o.Whole }):
			return "", "One of them is not shown whole here, so each is approved for itself."
		}
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, inFull(r.Preview, r.Tool, r.Args, r.Secrets)))
	}
	if question = strings.Join(lines, "\n"); width(question) > maxConfirm {
		return "", "What they do is too long to ask for in one question, so each is approved for itself."
	}
	return question, ""
}
