package thread

import (
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
)

const maxStatus = 120 // characters of a thread status; the bot's own limit

// Status describes in a few words what a turn is doing. Status returns "" if the turn has ended or no work is in
// progress.
func Status(vm view.Model, progress map[string]wording.RunProgress) string {
	switch {
	case vm.Turn.Ended():
		return ""
	case vm.Pause.On:
		return "is paused"
	case vm.Turn.State != approvers.TurnWaiting:
		return "is thinking…"
	}
	who, lost, running, asks := "", "", "", false
	more := waiting(vm.Calls) - 1
	for _, c := range vm.Calls {
		switch {
		case c.Call.Outcome != "":
		case wording.Waits(c):
			if who == "" {
				who = wording.Titles{Policy: vm.Policy}.WaitsFor(*c.Request)
			}
		case c.Call.ModelQuestion != nil, c.Asks:
			asks = true
		case c.Execution != nil && c.Execution.State == approvers.ExecutionUnknown:
			lost = "is waiting to be told whether " + block.Name(c.Call.Tool) + " happened"
		case running == "":
			running = "is running " + block.Name(c.Call.Tool) + "…"
			running = strings.TrimSpace(running + " " + wording.ProgressText(c, progress))
		}
	}
	switch {
	case asks:
		return "is waiting for your answer"
	case who != "" && more > 0:
		return block.Shorten(fmt.Sprintf("is waiting for %s, and for %s", who, block.Plural(more, "more decision")), maxStatus)
	case who != "":
		return block.Shorten("is waiting for "+who, maxStatus)
	case lost != "":
		return block.Shorten(lost, maxStatus)
	case running != "":
		return block.Shorten(running, maxStatus)
	}
	return ""
}
