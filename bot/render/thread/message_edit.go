package thread

import (
	"slices"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/store"
)

// MessageEdit draws a notice for requesters who have edited or deleted a message. The notice says that the calls from
// this message wait unchanged, and offers to withdraw the calls. When none of these calls is waiting, the notice is
// removed.
func MessageEdit(m wording.Version, w wording.RequestWords, turn string, calls []view.Call, edited *store.Message) block.Rendered {
	p := new(block.Builder)
	open := slices.DeleteFunc(slices.Clone(calls), func(c view.Call) bool { return !wording.Waits(c) })
	if edited == nil || len(open) == 0 {
		p.Para(block.Say("No call from this message waits any more."))
		d := block.Single(p)
		d.Expired = true
		return d
	}
	p.Para(messageEditText(*edited.MessageEdit), new(block.RichText).Person(edited.Author, edited.AuthorName).
		Say(", this changes nothing by itself: the waiting calls are based on the earlier text, and run if they are approved. If you want something else, withdraw them and write a new message."))
	for i, c := range open {
		if i == MaxStepCalls {
			otherCalls(p, open[i:])
			p.Buttons("rest", block.Button(control.ActWithdrawSome, "Withdraw some…", m.Token(turn), slack.StyleDefault))
			break
		}
		p.Para(block.Say("✋ ").Strong(block.Clip(wording.InFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), block.MaxCallText)), w.Waiting(*c.Request))
		p.Buttons(c.Request.ID, m.Withdraw(c, ""))
	}
	return block.Single(p)
}

func messageEditText(change approvers.MessageEdit) *block.RichText {
	if change.Deleted {
		return block.Say("🗑️ ").Strong("The message that asked for this was deleted.")
	}
	return block.Say("✏️ ").Strong("The message that asked for this was edited after the agent had read it.")
}
