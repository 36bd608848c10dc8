package render

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/thread"
	"countersign/bot/render/wording"
	"countersign/store"
)

// runningStep returns a step with two running calls, and their progress.
func runningStep() (view.Model, map[string]wording.RunProgress) {
	call := func(id, tool, preview string, tries int) view.Call {
		return view.Call{
			Call:      store.Call{ID: "call_" + id, Tool: tool, Args: `{"path":"/data"}`, Preview: preview, Step: 1, Execution: "exec_" + id},
			Execution: &approvers.Execution{ID: "exec_" + id, State: approvers.ExecutionExecuting, Tool: tool, Tries: tries},
		}
	}
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	s.Message.Kind, s.Message.Step, s.Message.Request, s.Request, s.Execution, s.Call = store.OutboxStep, 1, "", nil, nil, nil
	s.Calls = []view.Call{call("1", "files.copy", "Copy /data to the archive", 1), call("2", "crm.export", "", 2), call("3", "files.list", "", 1)}
	s.Calls[2].Call.Index = 2
	return s, map[string]wording.RunProgress{
		"exec_1": {Done: 3, Total: 7, Text: "orders.csv <!channel> *approved by Teo*\n\u202egpj.exe"},
		"exec_2": {Done: 1200},
	}
}

func TestStepWithProgress(t *testing.T) {
	s, says := runningStep()
	d, _, err := Draw(wording.View{Model: s, WorkspaceURL: bottest.WorkspaceURL, Progress: says})
	if err != nil {
		t.Fatal(err)
	}
	withinLimits(t, d.Messages[0])
	bottest.Golden(t, "step_progress", d.Messages[0])
	if got, want := thread.Status(s, says), `is running files.copy… 42 % orders.csv <!channel> *approved by Teo* ⏎ ⟨U+202E⟩gpj.exe`; got != want {
		t.Errorf("the status is %q, want %q", got, want)
	}
}

// Progress is drawn between two recorded versions of a message. Such a drawing has the buttons of the last recorded
// version. No progress is drawn after the state has changed.
func TestProgressKeepsTheButtons(t *testing.T) {
	s, says := runningStep()
	_, recorded, err := Draw(wording.View{Model: s, WorkspaceURL: bottest.WorkspaceURL})
	if err != nil {
		t.Fatal(err)
	}
	s.Message.Posts++ // the version was recorded
	s.Message.Hash = sha256Hex(recorded)
	d, fits, err := RedrawProgress(wording.View{Model: s, WorkspaceURL: bottest.WorkspaceURL}, says)
	if err != nil || !fits {
		t.Fatalf("the progress was not drawn: %v", err)
	}
	raw := string(encode(t, d))
	if !strings.Contains(raw, "42 %") {
		t.Error("the progress is missing")
	}
	value := strings.SplitN(strings.SplitN(string(recorded), `"action_id":"stop"`, 2)[1], `"value":"`, 2)[1]
	value = value[:strings.IndexByte(value, '"')]
	if !strings.Contains(raw, `"value":"`+value+`"`) {
		t.Errorf("the button is not %q", value)
	}
	s.Calls[1].Call.Outcome = approvers.OutcomeExecuted
	if _, fits, err := RedrawProgress(wording.View{Model: s, WorkspaceURL: bottest.WorkspaceURL}, says); fits || err != nil {
		t.Errorf("progress is shown although the state has changed (%v)", err)
	}
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
