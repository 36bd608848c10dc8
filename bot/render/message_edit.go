package render

import (
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// messageEdit draws a notice for requesters who have edited or deleted a message. The notice says that the calls from
// this message wait unchanged, and offers to withdraw the calls. When none of these calls is waiting, the notice is
// removed.
func messageEdit(m version, w requestWords, turn string, calls []view.Call, edited *store.Message) Rendered {
	p := new(BlockBuilder)
	open := slices.DeleteFunc(slices.Clone(calls), func(c view.Call) bool { return !waits(c) })
	if edited == nil || len(open) == 0 {
		p.Para(Say("Nothing of what was asked for here waits any more."))
		d := Single(p)
		d.Expired = true
		return d
	}
	p.Para(messageEditText(*edited.MessageEdit), new(RichText).Person(edited.Author, edited.AuthorName).
		Say(", that changes nothing by itself: what waits was made from the words before, and runs if it is approved. If you want something else, take it back and write that."))
	for i, c := range open {
		if i == MaxStepCalls {
			otherCalls(p, open[i:])
			p.buttons("rest", button(ActWithdrawSome, "Withdraw some…", m.token(turn), slack.StyleDefault))
			break
		}
		p.Para(Say("✋ ").Strong(Clip(inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), maxCallText)), w.waiting(*c.Request))
		p.buttons(c.Request.ID, m.withdraw(c, ""))
	}
	return Single(p)
}

func messageEditText(change approvers.MessageEdit) *RichText {
	if change.Deleted {
		return Say("🗑️ ").Strong("The message that asked for this was deleted.")
	}
	return Say("✏️ ").Strong("The message that asked for this was edited after the agent had read it.")
}
