package render

import (
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
)

const maxStatus = 120 // characters of a thread status; the bot's own limit

// Status describes in a few words what a turn is doing. Status returns "" if the turn has ended or no work is in
// progress.
func Status(vm view.Model, progress map[string]RunProgress) string {
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
		case waits(c):
			if who == "" {
				who = titles{vm.Policy}.stageTitle(c.Request.CurrentStage())
			}
		case c.Call.ModelQuestion != nil, c.Asks:
			asks = true
		case c.Execution != nil && c.Execution.State == approvers.ExecutionUnknown:
			lost = "is waiting to be told whether " + Name(c.Call.Tool) + " happened"
		case running == "":
			running = "is running " + Name(c.Call.Tool) + "…"
			running = strings.TrimSpace(running + " " + progressText(c, progress))
		}
	}
	switch {
	case asks:
		return "is waiting for your answer"
	case who != "" && more > 0:
		return shorten(fmt.Sprintf("is waiting for %s, and for %s", who, Plural(more, "more decision")), maxStatus)
	case who != "":
		return shorten("is waiting for "+who, maxStatus)
	case lost != "":
		return shorten(lost, maxStatus)
	case running != "":
		return shorten(running, maxStatus)
	}
	return ""
}
