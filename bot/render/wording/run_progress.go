package wording

import (
	"fmt"
	"math"
	"strings"

	"countersign/approvers/workflow/view"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
)

// RunProgress is the progress that a run reports.
type RunProgress struct {
	Done, Total float64 // Total is 0 if the total is not known
	Text        string
}

// MaxRunProgressText is the maximum length of a tool's progress text.
const MaxRunProgressText = 120

// percent returns the completed share in percent: at most 100, even if the tool reports more. The second result is
// false if the share is unknown.
func (r RunProgress) percent() (int, bool) {
	part := r.Done / r.Total
	if math.IsNaN(part) || r.Total <= 0 || math.IsInf(r.Total, 0) {
		return 0, false
	}
	return int(math.Floor(100 * min(max(part, 0), 1))), true
}

// amount formats the progress in figures. If the run reports no figures, amount returns "".
func (r RunProgress) amount() string {
	if percent, known := r.percent(); known {
		return fmt.Sprintf("%d %%", percent)
	}
	if r.Done > 0 && r.Done < 1e15 {
		return fmt.Sprintf("%d so far", int64(r.Done))
	}
	return ""
}

// words returns the progress text on one line, with the call's secrets masked.
func (r RunProgress) words(c view.Call) string {
	return block.Shorten(block.OneLine(argument.MaskSecrets(strings.ToValidUTF8(r.Text, "\uFFFD"), []byte(c.Call.Args), c.Call.Secrets)), MaxRunProgressText)
}

// runProgress returns the progress that a call's run has reported, if any.
func runProgress(c view.Call, progress map[string]RunProgress) (RunProgress, bool) {
	if c.Execution == nil {
		return RunProgress{}, false
	}
	r, there := progress[c.Execution.ID]
	return r, there
}

// ProgressText describes in a few words the progress that a call's run has reported. If there is none, ProgressText
// returns "".
func ProgressText(c view.Call, progress map[string]RunProgress) string {
	r, there := runProgress(c, progress)
	if !there {
		return ""
	}
	return strings.TrimSpace(r.amount() + " " + r.words(c))
}

// running returns the note that a call is running, with the reported progress of the call.
func (w CallWords) running(c view.Call) *block.RichText {
	p := block.Say("Running…")
	if c.Execution.Tries > 1 {
		p = block.Say(fmt.Sprintf("Running again (try %d)…", c.Execution.Tries))
	}
	r, there := runProgress(c, w.progress)
	if !there {
		return p
	}
	if amount := r.amount(); amount != "" {
		p.Say(" ").Strong(amount)
	}
	if words := r.words(c); words != "" {
		p.Say(" · ").Soft("“" + words + "”")
	}
	return p
}
