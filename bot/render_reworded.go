package bot

import (
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// reworded tells those who asked that what they edited or deleted since still waits as it was, and lets them take it back. It is taken away when nothing
// waits any more.
func (s scene) reworded() drawing {
	p := new(page)
	open := slices.DeleteFunc(slices.Clone(s.Calls), func(c desk.CallSight) bool { return !waits(c) })
	if s.Reworded == nil || len(open) == 0 {
		p.para(say("Nothing of what was asked for here waits any more."))
		d := one(p)
		d.over = true
		return d
	}
	p.para(s.rewordedHow(), new(prose).person(s.Reworded.Author, s.Reworded.AuthorName).
		say(", that changes nothing by itself: what waits was made from the words before, and runs if it is approved. If you want something else, take it back and write that."))
	for i, c := range open {
		if i == maxStepCalls {
			s.rest(p, open[i:])
			p.buttons("rest", button(actWithdrawSome, "Withdraw some…", s.mark(s.Turn.ID), slack.StyleDefault))
			break
		}
		p.para(say("✋ ").strong(clip(inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), maxCallText)), s.waiting(*c.Request))
		p.buttons(c.Request.ID, s.withdraw(c, ""))
	}
	return one(p)
}

func (s scene) rewordedHow() *prose {
	if s.Reworded.Reworded.Deleted {
		return say("🗑️ ").strong("The message that asked for this was deleted.")
	}
	return say("✏️ ").strong("The message that asked for this was edited after the agent had read it.")
}

// withdraw is the button that takes a call back. number tells it from others like it.
func (s scene) withdraw(c desk.CallSight, number string) slack.BlockElement {
	what := inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets)
	again := confirm("Take it back?", clip(what, maxCallAsk)+"\n\nIt will not run, and the agent is told that you took it back.", "Withdraw", "Keep waiting", slack.StyleDanger)
	return button(actWithdraw, "Withdraw"+number, s.mark(c.Request.ID), slack.StyleDefault).WithConfirm(again)
}

// since says on a card what became of the words that led to the call after the agent had read them. What is signed are the arguments, and they are as they were.
func since(p *page, r approvers.Request) {
	w := r.Facts.Reworded
	switch {
	case w == nil:
	case w.Deleted:
		p.para(say("🗑️ ").strong("Deleted since").say(", ").at(w.At, dayTime).say(". The call is as it was, and waits until it is decided or withdrawn."))
	default:
		p.para(say("✏️ ").strong("Edited since").say(", ").at(w.At, dayTime).say(". The call was made from the words above; they now read:"))
		p.quoted(clip(Visible(hush(w.Text, r.Args, r.Secrets)), maxQuote/2)) // both must fit on the largest card
	}
}
