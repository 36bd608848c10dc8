package render

import (
	"fmt"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/markdown"
	"countersign/store"
)

// threadNotice draws the notices in a conversation that say why the agent does not continue.
type threadNotice struct {
	titles
	version
	turn  approvers.Turn
	calls []view.Call
	waits []store.Message // the messages that wait
	pause settings.Pause
}

// problemNotice draws the notice that a turn has stopped.
func problemNotice(v View) *BlockBuilder { return newThreadNotice(v).problem() }

// queuedNotice draws the notice that messages wait.
func queuedNotice(v View) Rendered { return newThreadNotice(v).queued() }

// standstill draws the notice that a conversation gets because of a pause.
func standstill(v View) *BlockBuilder { return newThreadNotice(v).standstill() }

func newThreadNotice(v View) threadNotice {
	return threadNotice{titles: titles{v.Policy}, version: v.version(), turn: v.Turn, calls: v.Calls, waits: v.Queued, pause: v.Pause}
}

// problem draws the notice that a turn has stopped, with a button to try again.
func (t threadNotice) problem() *BlockBuilder {
	p := new(BlockBuilder)
	if t.turn.State != approvers.TurnStopped {
		p.Para(Say("🔁 Somebody asked to try again; the agent continued."))
		return p
	}
	p.pieces(markdown.Parse(t.message.DraftText), maxSaidText, markdown.MaxBlocks-5) // the part of the answer that people have already seen
	text := Clip(Visible(t.turn.Problem), MaxSentence)
	if text == "" {
		text = "The agent could not continue."
	}
	p.Para(Say("⚠️ ").Strong(text))
	if t.turn.CanRetry {
		p.buttons("", button(ActTryAgain, "Try again", t.token(t.turn.ID), slack.StylePrimary))
	}
	return p
}

// queued tells people why their messages wait, and how to continue without waiting.
func (t threadNotice) queued() Rendered {
	p := new(BlockBuilder)
	n := len(t.waits)
	if t.turn.State != approvers.TurnWaiting {
		p.Para(new(RichText).soft("The message that waited here was taken up."))
		return Single(p)
	}
	if n == 0 {
		p.Para(new(RichText).soft("Nothing waits here any more."))
		d := Single(p)
		d.Expired = true
		return d
	}
	line := Say("📥 ")
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
		line.Say(Clip(inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets), maxCallText))
		if waits(c) {
			line.Say(" (for " + t.stageTitle(c.Request.CurrentStage()) + ")")
		}
	}
	p.Para(line.Say("."), paused(t.pause))
	again := confirm("Continue without it?", "Everything that still waits for a decision here is taken back and will not run. The agent then reads the new messages.", "Withdraw and continue", "Keep waiting", slack.StyleDanger)
	p.buttons("", button(ActWithdrawAll, "Withdraw and continue with this", t.token(t.turn.ID), slack.StyleDefault).WithConfirm(again))
	return Single(p)
}

// standstill draws the notice that a conversation gets because of a pause. The notice says that a pause delays the
// messages, or that the pause is over.
func (t threadNotice) standstill() *BlockBuilder {
	p := new(BlockBuilder)
	if !t.pause.On {
		p.Para(Say("▶️ ").soft("This waited for a pause, which ").Person(t.pause.By, "").soft(" ended ").At(t.pause.At, DayTime).soft("."))
		return p
	}
	kept := "Your messages are kept. I continue when the pause ends."
	if n := len(t.waits); n > 0 {
		kept = fmt.Sprintf("Your messages are kept, with %s that came later. I continue when the pause ends.", Plural(n, "message"))
	}
	p.Para(PausedBy(t.pause).Say(" " + kept))
	return p
}
