package render

import (
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
)

// messageEdit draws a notice for requesters who have edited or deleted a message. The notice says that the calls from
// this message wait unchanged, and offers to withdraw the calls. When none of these calls is waiting, the notice is
// removed.
func (v View) messageEdit() Rendered {
	p := new(BlockBuilder)
	open := slices.DeleteFunc(slices.Clone(v.Calls), func(c view.Call) bool { return !waits(c) })
	if v.MessageEdit == nil || len(open) == 0 {
		p.Para(Say("Nothing of what was asked for here waits any more."))
		d := Single(p)
		d.Expired = true
		return d
	}
	p.Para(v.messageEditText(), new(RichText).Person(v.MessageEdit.Author, v.MessageEdit.AuthorName).
		Say(", that changes nothing by itself: what waits was made from the words before, and runs if it is approved. If you want something else, take it back and write that."))
	for i, c := range open {
		if i == MaxStepCalls {
			v.otherCalls(p, open[i:])
			p.buttons("rest", button(ActWithdrawSome, "Withdraw some…", v.token(v.Turn.ID), slack.StyleDefault))
			break
		}
		p.Para(Say("✋ ").Strong(Clip(inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), maxCallText)), v.waiting(*c.Request))
		p.buttons(c.Request.ID, v.withdraw(c, ""))
	}
	return Single(p)
}

func (v View) messageEditText() *RichText {
	if v.MessageEdit.MessageEdit.Deleted {
		return Say("🗑️ ").Strong("The message that asked for this was deleted.")
	}
	return Say("✏️ ").Strong("The message that asked for this was edited after the agent had read it.")
}

// withdraw returns the button that withdraws a call. The button's label ends with the given number, so that the labels
// of different calls differ.
func (v View) withdraw(c view.Call, number string) slack.BlockElement {
	what := inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets)
	again := confirm("Take it back?", Clip(what, maxCallAsk)+"\n\nIt will not run, and the agent is told that you took it back.", "Withdraw", "Keep waiting", slack.StyleDanger)
	return button(ActWithdraw, "Withdraw"+number, v.token(c.Request.ID), slack.StyleDefault).WithConfirm(again)
}

// messageChange draws, on a card, how a person changed the message behind the call after the agent had read the
// message. The arguments did not change with the message.
func messageChange(p *BlockBuilder, r approvers.Request) {
	w := r.Facts.MessageEdit
	switch {
	case w == nil:
	case w.Deleted:
		p.Para(Say("🗑️ ").Strong("Deleted since").Say(", ").At(w.At, DayTime).Say(". The call is as it was, and waits until it is decided or withdrawn."))
	default:
		p.Para(Say("✏️ ").Strong("Edited since").Say(", ").At(w.At, DayTime).Say(". The call was made from the words above; they now read:"))
		p.quote(Clip(Visible(maskSecrets(w.Text, r.Args, r.Secrets)), maxQuote/2)) // the words before and after the edit must both fit on the largest card
	}
}
