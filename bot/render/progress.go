package render

import (
	"countersign/approvers/workflow"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
)

// RedrawProgress draws the recorded version of an outbox message with new progress of its runs. The buttons name the
// recorded version. The second result is false if the state has changed since that version.
func RedrawProgress(v wording.View, say map[string]wording.RunProgress) (block.Rendered, bool, error) {
	v.Progress = nil
	v.Message.Posts--
	_, body, err := Draw(v)
	if err != nil || !workflow.Same(v.Message, body) {
		return block.Rendered{}, false, err
	}
	if v.Print, err = fingerprint(v, render); err != nil {
		return block.Rendered{}, false, err
	}
	v.Progress = say
	return render(v), true, nil
}
