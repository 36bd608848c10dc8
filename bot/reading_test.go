package bot

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// runningStep is a step with two calls that run, and what they say of themselves.
func runningStep() (desk.Sight, map[string]reading) {
	call := func(id, tool, preview string, tries int) desk.CallSight {
		return desk.CallSight{
			Call:      store.Call{ID: "call_" + id, Tool: tool, Args: `{"path":"/data"}`, Preview: preview, Step: 1, Execution: "exec_" + id},
			Execution: &approvers.Execution{ID: "exec_" + id, State: approvers.ExecutionExecuting, Tool: tool, Tries: tries},
		}
	}
	s := sightOf(testRequest(refundArgs))
	s.Surface.Kind, s.Surface.Step, s.Surface.Request, s.Request, s.Execution, s.Call = store.SurfaceStep, 1, "", nil, nil, nil
	s.Calls = []desk.CallSight{call("1", "files.copy", "Copy /data to the archive", 1), call("2", "crm.export", "", 2), call("3", "files.list", "", 1)}
	s.Calls[2].Call.Index = 2
	return s, map[string]reading{
		"exec_1": {done: 3, total: 7, text: "orders.csv <!channel> *approved by Teo*\n\u202egpj.exe"},
		"exec_2": {done: 1200},
	}
}

func TestStepWithProgress(t *testing.T) {
	s, says := runningStep()
	view := scene{Sight: s, url: home, readings: says}
	d, _, err := draw(view)
	if err != nil {
		t.Fatal(err)
	}
	withinLimits(t, d.messages[0])
	golden(t, "step_progress", d.messages[0])
	if got, want := view.status(), `is running files.copy… 42 % orders.csv <!channel> *approved by Teo* ⏎ ⟨U+202E⟩gpj.exe`; got != want {
		t.Errorf("the status is %q, want %q", got, want)
	}
}

// What is shown between two recorded versions has the buttons of the recorded one, and nothing is shown once the state has moved on.
func TestProgressKeepsTheButtons(t *testing.T) {
	s, says := runningStep()
	_, recorded, err := draw(scene{Sight: s, url: home})
	if err != nil {
		t.Fatal(err)
	}
	s.Surface.Posts++ // it was recorded
	s.Surface.Hash = sha256Hex(recorded)
	d, fits, err := between(scene{Sight: s, url: home}, says)
	if err != nil || !fits {
		t.Fatalf("it does not fit the recorded version: %v", err)
	}
	raw := string(encode(t, d))
	if !strings.Contains(raw, "42 %") {
		t.Error("it does not say how far the run is")
	}
	value := strings.SplitN(strings.SplitN(string(recorded), `"action_id":"stop"`, 2)[1], `"value":"`, 2)[1]
	value = value[:strings.IndexByte(value, '"')]
	if !strings.Contains(raw, `"value":"`+value+`"`) {
		t.Errorf("the button is not %q", value)
	}
	s.Calls[1].Call.Outcome = approvers.OutcomeExecuted
	if _, fits, err := between(scene{Sight: s, url: home}, says); fits || err != nil {
		t.Errorf("it is shown although the state has moved on (%v)", err)
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
		if got := (reading{done: c.done, total: c.total}).amount(); got != c.want {
			t.Errorf("%v of %v is %q, want %q", c.done, c.total, got, c.want)
		}
	}
	masked := desk.CallSight{Call: store.Call{Args: `{"token":"hunter2-hunter2"}`, Secrets: []string{"token"}}}
	if got := (reading{text: "signing in with hunter2-hunter2"}).words(masked); strings.Contains(got, "hunter2") {
		t.Errorf("a masked argument is shown: %q", got)
	}
	if got := (reading{text: strings.Repeat("é", 10_000)}).words(masked); width(got) > maxReadingText {
		t.Errorf("%d characters", width(got))
	}
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
