package render

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/store"
)

// runningStep returns a step with two running calls, and their progress.
func runningStep() (view.Model, map[string]RunProgress) {
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
	return s, map[string]RunProgress{
		"exec_1": {Done: 3, Total: 7, Text: "orders.csv <!channel> *approved by Teo*\n\u202egpj.exe"},
		"exec_2": {Done: 1200},
	}
}

func TestStepWithProgress(t *testing.T) {
	s, says := runningStep()
	d, _, err := Draw(View{Model: s, WorkspaceURL: bottest.WorkspaceURL, Progress: says})
	if err != nil {
		t.Fatal(err)
	}
	withinLimits(t, d.Messages[0])
	bottest.Golden(t, "step_progress", d.Messages[0])
	if got, want := Status(s, says), `is running files.copy… 42 % orders.csv <!channel> *approved by Teo* ⏎ ⟨U+202E⟩gpj.exe`; got != want {
		t.Errorf("the status is %q, want %q", got, want)
	}
}

// Progress is drawn between two recorded versions of a message. Such a drawing has the buttons of the last recorded
// version. No progress is drawn after the state has changed.
func TestProgressKeepsTheButtons(t *testing.T) {
	s, says := runningStep()
	_, recorded, err := Draw(View{Model: s, WorkspaceURL: bottest.WorkspaceURL})
	if err != nil {
		t.Fatal(err)
	}
	s.Message.Posts++ // the version was recorded
	s.Message.Hash = sha256Hex(recorded)
	d, fits, err := RedrawProgress(View{Model: s, WorkspaceURL: bottest.WorkspaceURL}, says)
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
	if _, fits, err := RedrawProgress(View{Model: s, WorkspaceURL: bottest.WorkspaceURL}, says); fits || err != nil {
		t.Errorf("progress is shown although the state has changed (%v)", err)
	}
}

func TestReadings(t *testing.T) {
	for _, c := range []struct {
		done, total float64
		want        string
	}{
		{0, 10, "0 %"}, {9.99, 10, "99 %"}, {10, 10, "100 %"}, {11, 10, "100 %"}, {1e308, 1e-308, "100 %"}, {-3, 10, "0 %"}, {3, -10, "3 so far"}, {0, 0, ""}, {-1, 0, ""},
		{12.7, 0, "12 so far"}, {1e18, 0, ""}, {math.NaN(), 10, ""}, {1, math.NaN(), "1 so far"}, {math.Inf(1), 10, "100 %"}, {math.Inf(1), math.Inf(1), ""}, {1, math.Inf(1), "1 so far"},
	} {
		if got := (RunProgress{Done: c.done, Total: c.total}).amount(); got != c.want {
			t.Errorf("%v of %v is %q, want %q", c.done, c.total, got, c.want)
		}
	}
	masked := view.Call{Call: store.Call{Args: `{"token":"hunter2-hunter2"}`, Secrets: []string{"token"}}}
	if got := (RunProgress{Text: "signing in with hunter2-hunter2"}).words(masked); strings.Contains(got, "hunter2") {
		t.Errorf("a masked argument is shown: %q", got)
	}
	if got := (RunProgress{Text: strings.Repeat("é", 10_000)}).words(masked); Width(got) > MaxRunProgressText {
		t.Errorf("%d characters", Width(got))
	}
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
