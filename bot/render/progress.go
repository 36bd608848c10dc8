package render

import "countersign/approvers/workflow"

// RedrawProgress draws the recorded version of an outbox message with new progress of its runs. The buttons name the
// recorded version. The second result is false if the state has changed since that version.
func RedrawProgress(v View, say map[string]RunProgress) (Rendered, bool, error) {
	v.Progress = nil
	v.Message.Posts--
	_, body, err := Draw(v)
	if err != nil || !workflow.Same(v.Message, body) {
		return Rendered{}, false, err
	}
	if v.print, err = fingerprint(v, render); err != nil {
		return Rendered{}, false, err
	}
	v.Progress = say
	return render(v), true, nil
}
