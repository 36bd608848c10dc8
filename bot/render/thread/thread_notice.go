package thread

import (
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/markdown"
	"countersign/bot/render/wording"
	"countersign/store"
)

// threadNotice draws the notices in a conversation that say why the agent does not continue.
type threadNotice struct {
	wording.Titles
	wording.Version
	turn  approvers.Turn
	calls []view.Call
	waits []store.Message // the messages that wait
	pause settings.Pause
}

// Problem draws the notice that a turn has stopped.
func Problem(v wording.View) *block.Builder { return newThreadNotice(v).problem() }

// Queued draws the notice that messages wait.
func Queued(v wording.View) block.Rendered { return newThreadNotice(v).queued() }

// Standstill draws the notice that a conversation gets because of a pause.
func Standstill(v wording.View) *block.Builder { return newThreadNotice(v).standstill() }

func newThreadNotice(v wording.View) threadNotice {
	return threadNotice{Titles: wording.Titles{Policy: v.Policy}, Version: v.Version(), turn: v.Turn, calls: v.Calls, waits: v.Queued, pause: v.Pause}
}

// problem draws the notice that a turn has stopped, with a button to try again.
func (t threadNotice) problem() *block.Builder {
	p := new(block.Builder)
	if t.turn.State != approvers.TurnStopped {
		p.Para(block.Say("🔁 Somebody asked to try again; the agent continued."))
		return p
	}
	p.Pieces(markdown.Parse(t.Message.DraftText), maxSaidText, markdown.MaxBlocks-5) // the part of the answer that people have already seen
	text := block.Clip(block.Visible(t.turn.Problem), block.MaxSentence)
	if text == "" {
		text = "The agent could not continue."
	}
	p.Para(block.Say("⚠️ ").Strong(text))
	if t.turn.CanRetry {
		p.Buttons("", block.Button(control.ActTryAgain, "Try again", t.Token(t.turn.ID), slack.StylePrimary))
	}
	return p
}

// queued tells people why their messages wait, and how to continue without waiting.
func (t threadNotice) queued() block.Rendered {
	p := new(block.Builder)
	n := len(t.waits)
	if t.turn.State != approvers.TurnWaiting {
		p.Para(new(block.RichText).Soft("The agent has read the message that waited here."))
		return block.Single(p)
	}
	if n == 0 {
		p.Para(new(block.RichText).Soft("Nothing waits here any more."))
		d := block.Single(p)
		d.Expired = true
		return d
	}
	line := block.Say("📥 ")
	if n == 1 {
		line.Strong("1 message waits")
	} else {
		line.Strong(fmt.Sprintf("%d messages wait", n))
	}
	line.Say(" until this is settled: ")
	open := 0
	for _, c := range t.calls {
		if c.Call.Outcome != "" {
			continue
		}
		if open > 0 {
			line.Say("; ")
		}
		if open++; open > 3 {
			line.Say("and more")
			break
		}
		line.Say(block.Clip(wording.InFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), block.MaxCallText))
		if wording.Waits(c) {
			line.Say(" (for " + t.WaitsFor(*c.Request) + ")")
		}
	}
	p.Para(line.Say("."), wording.Paused(t.pause))
	again := block.Confirm("Withdraw the waiting calls?", "All calls in this conversation that wait for a decision are withdrawn and will not run. The agent then reads the new messages.", "Withdraw and continue", "Keep waiting", slack.StyleDanger)
	p.Buttons("", block.Button(control.ActWithdrawAll, "Withdraw and continue with this", t.Token(t.turn.ID), slack.StyleDefault).WithConfirm(again))
	return block.Single(p)
}

// standstill draws the notice that a conversation gets because of a pause. The notice says that a pause delays the
// messages, or that the pause is over.
func (t threadNotice) standstill() *block.Builder {
	p := new(block.Builder)
	if !t.pause.On {
		p.Para(block.Say("▶️ ").Soft("This waited for a pause, which ").Person(t.pause.By, "").Soft(" ended ").At(t.pause.At, block.DayTime).Soft("."))
		return p
	}
	kept := "Your messages are kept. I continue when the pause ends."
	if n := len(t.waits); n > 0 {
		kept = fmt.Sprintf("Your messages are kept, with %s that came later. I continue when the pause ends.", block.Plural(n, "message"))
	}
	p.Para(wording.Paused(t.pause).Say(" " + kept))
	return p
}
