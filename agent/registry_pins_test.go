package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/agent/pins"
	"countersign/approvers"
)

// offered is a tool as a source offers it, with a version in its definition.
func offered(name, version string) Tool {
	return Tool{
		Name: name, Description: "Does " + name, Schema: json.RawMessage(`{"type":"object"}`), Effect: approvers.Unprotected,
		Definition: json.RawMessage(`{"name": "` + name + `", "v": "` + version + `"}`),
		Run:        func(context.Context, Invocation) (string, error) { return name + " " + version, nil },
	}
}

// stands lists the tools of a registry with their states. For a blocked tool, it adds the reason.
func stands(r *Registry) string {
	var out []string
	all, _ := r.Status()
	for _, s := range all {
		line := s.Tool.Name + " " + string(s.State)
		if s.Tool.Blocked != "" {
			line += ": " + s.Tool.Blocked
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

// drift lists the tools that the registry's method Drift returns.
func drift(r *Registry) string {
	var out []string
	for _, d := range r.Drift() {
		out = append(out, d.Source+"/"+d.Tool+" "+string(d.How))
	}
	return strings.Join(out, "; ")
}

func none(t *testing.T, errs []error) {
	t.Helper()
	if len(errs) > 0 {
		t.Fatal(errs)
	}
}

// The registry compares the definitions of a source with the pins. The comparison is repeated when a definition or a
// pin changes.
func TestPins(t *testing.T) {
	r := &Registry{}
	expect := func(what, want, drifts string) {
		t.Helper()
		if got := stands(r); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
		if got := drift(r); got != drifts {
			t.Errorf("%s: the drift is %q, want %q", what, got, drifts)
		}
	}
	none(t, r.Pin("files", []Tool{offered("files.read", "1"), offered("files.write", "1")}))
	expect("by the lock", "files.read waiting; files.write waiting", "files/files.read unknown; files/files.write unknown")
	none(t, r.Replace("files", []Tool{offered("files.write", "1"), offered("files.read", "1")}))
	expect("the source confirms", "files.read same; files.write same", "")
	none(t, r.Replace("files", []Tool{offered("files.read", "2"), offered("files.write", "1"), offered("files.list", "1")}))
	expect("it drifts", "files.list new: nobody has pinned its definition yet; files.read drifted: its definition changed since it was pinned; files.write same", "files/files.read changed")
	all, _ := r.Status()
	if string(all[1].Definition) != `{"name":"files.read","v":"2"}` || string(all[1].Pinned) != `{"name":"files.read","v":"1"}` {
		t.Errorf("it became %s, and was %s", all[1].Definition, all[1].Pinned)
	}
	none(t, r.Pin("files", []Tool{offered("files.read", "2"), offered("files.list", "1"), offered("files.write", "1")}))
	expect("pinned again", "files.list same; files.read same; files.write same", "")
	none(t, r.Replace("files", []Tool{offered("files.read", "1"), offered("files.write", "1")}))
	expect("back to what was", "files.list gone: its source does not offer it any more, or not as a tool that can be used; files.read drifted: its definition changed since it was pinned; files.write same", "files/files.list gone; files/files.read changed")
	broken := offered("files.write", "3")
	broken.Schema = json.RawMessage(`{"type":"array"}`)
	if errs := r.Replace("files", []Tool{offered("files.read", "2"), broken}); len(errs) != 1 || !errors.Is(errs[0], ErrTool) {
		t.Errorf("%v", errs)
	}
	expect("a schema that can't be used",
		"files.list gone: its source does not offer it any more, or not as a tool that can be used; files.read same; files.write drifted: its definition changed since it was pinned, to one that can't be used", "files/files.list gone; files/files.write unusable")
	if all, _ = r.Status(); all[2].Fault == nil || string(all[2].Pinned) != `{"name":"files.write","v":"1"}` {
		t.Errorf("%+v", all[2])
	}
	none(t, r.Pin("files", nil))
	expect("the pins are gone", "files.read new: nobody has pinned its definition yet", "")
	r.Remove("files")
	expect("the source is gone", "", "")
	if len(r.Sources()) != 0 {
		t.Errorf("%v", r.Sources())
	}
}

// Three kinds of tools need no pin: compiled-in tools, tools that the policy file declares, and tools of a source
// that is part of this program.
func TestWhatNeedsNoPin(t *testing.T) {
	r := &Registry{}
	plain := offered("plain", "1")
	plain.Definition = nil
	if err := r.Register(plain); err != nil {
		t.Fatal(err)
	}
	declared := plain
	declared.Name = "declared"
	none(t, r.Replace("http", []Tool{declared}))
	none(t, r.Replace("shop", []Tool{offered("refund", "1")}))
	if got := stands(r); got != "declared ; plain ; refund new: nobody has pinned its definition yet" {
		t.Error(got)
	}
	none(t, r.Trust("shop"))
	none(t, r.Replace("shop", []Tool{offered("refund", "2")}))
	if got := stands(r); got != "declared ; plain ; refund " {
		t.Error(got)
	}
	if tool, _ := r.Tool("declared"); tool.Source != "http" {
		t.Errorf("it is of the source %q", tool.Source)
	}
}

func TestPinsThatCanNotBe(t *testing.T) {
	r := &Registry{}
	plain, odd := offered("plain", "1"), offered("odd", "1")
	plain.Definition, odd.Definition = nil, json.RawMessage(`{`)
	errs := r.Pin("files", []Tool{plain, odd, offered("files.read", "1")})
	if len(errs) != 2 || !errors.Is(errs[0], ErrTool) || !strings.Contains(errs[0].Error(), "no definition") || !errors.Is(errs[1], pins.ErrDefinition) {
		t.Errorf("%v", errs)
	}
	if got := stands(r); got != "files.read waiting" {
		t.Error(got)
	}
	twice := r.Replace("files", []Tool{offered("files.read", "1"), offered("files.read", "2")})
	if len(twice) != 1 || !strings.Contains(twice[0].Error(), "offers it twice") {
		t.Errorf("%v", twice)
	}
	if got := stands(r); !strings.HasPrefix(got, "files.read drifted: ") {
		t.Errorf("one of two tools with the same name was registered: %s", got)
	}
	none(t, r.Replace("files", []Tool{offered("files.read", "1")}))
	if errs := r.Pin("others", []Tool{offered("files.read", "1")}); len(errs) != 1 || !strings.Contains(errs[0].Error(), "a tool of that name") {
		t.Errorf("another source took a name: %v", errs)
	}
	if errs := r.Trust("files"); len(errs) != 0 {
		t.Error(errs)
	}
}

// The hash of a pinned tool is the same before and after its source lists the tool. Requests that wait for approval
// therefore stay valid after a restart.
func TestPinnedToolIsTheSameTool(t *testing.T) {
	r := &Registry{}
	none(t, r.Pin("files", []Tool{offered("files.read", "1")}))
	before, _ := r.Tool("files.read")
	print := r.Fingerprint()
	spaced := offered("files.read", "1")
	spaced.Definition = json.RawMessage("{\"name\":\"files.read\",\n\"v\":\"1\"}")
	spaced.Schema = json.RawMessage("{\"type\":\n\"object\"}") // as in the definition
	none(t, r.Replace("files", []Tool{spaced}))
	if after, _ := r.Tool("files.read"); after.Hash != before.Hash || before.Blocked != "" || r.Fingerprint() != print {
		t.Errorf("%+v became %+v", before, after)
	}
	version := r.Version()
	none(t, r.Replace("files", []Tool{offered("files.read", "2")}))
	if after, _ := r.Tool("files.read"); after.Hash == before.Hash || r.Fingerprint() == print || r.Version() == version {
		t.Errorf("another definition passes for the same: %+v", after)
	}
}

func TestChangedTellsOnceForMany(t *testing.T) {
	r := &Registry{}
	changed := r.Changed()
	none(t, r.Replace("files", []Tool{offered("files.read", "1")}))
	none(t, r.Replace("files", nil))
	<-changed
	select {
	case <-changed:
		t.Error("two changes that were not read caused two notifications")
	default:
	}
	if r.Changed() != changed {
		t.Error("it is another channel the second time")
	}
}

// If the source has not listed a pinned tool yet, a run of the tool waits for the source. The run uses only the
// pinned definition.
func TestRunWaitsForTheSource(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*Registry)
		want    string
		fails   string
	}{
		"it comes":            {func(r *Registry) { r.Replace("files", []Tool{offered("files.read", "1")}) }, "files.read 1", ""},
		"another comes first": {func(r *Registry) { r.Replace("x", nil); r.Replace("files", []Tool{offered("files.read", "1")}) }, "files.read 1", ""},
		"it drifted":          {func(r *Registry) { r.Replace("files", []Tool{offered("files.read", "2")}) }, "", "it was not run, because its definition changed since it was pinned"},
		"it drifted and was seen": {func(r *Registry) {
			r.Replace("files", []Tool{offered("files.read", "2")})
			r.Pin("files", []Tool{offered("files.read", "2")})
		}, "", "it was not run, because its definition changed"},
		"it is gone":         {func(r *Registry) { r.Replace("files", nil) }, "", "it was not run, because its source does not offer it any more, or not as a tool that can be used"},
		"the source is gone": {func(r *Registry) { r.Remove("files") }, "", "it was not run, because its source does not offer it any more"},
		"nothing comes":      {func(*Registry) {}, "", "it was not run, because its source files is not available; it can be tried again later"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &Registry{}
				none(t, r.Pin("files", []Tool{offered("files.read", "1")}))
				tool, _ := r.find("files.read")
				began := time.Now()
				go func() {
					time.Sleep(3 * time.Second)
					c.happens(r)
				}()
				got, err := tool.Run(t.Context(), Invocation{})
				if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.HasPrefix(err.Error(), c.fails) {
					t.Errorf("%q, %v", got, err)
				}
				if took := time.Since(began); took > patienceForSource {
					t.Errorf("it waited %s", took)
				}
				synctest.Wait()
			})
		})
	}
}

func TestRunStopsWaitingWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Registry{}
		none(t, r.Pin("files", []Tool{offered("files.read", "1")}))
		tool, _ := r.find("files.read")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := tool.Run(ctx, Invocation{}); !errors.Is(err, ErrNotRun) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// Sources change concurrently. Every reader sees a complete list of each source's tools.
func TestRegistryRaces(t *testing.T) {
	r := &Registry{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			v := string(rune('a' + i%3))
			r.Pin("files", []Tool{offered("one", v), offered("two", v)})
			r.Replace("files", []Tool{offered("one", "a"), offered("two", "a")})
		}
	}()
	for {
		all, _ := r.Status()
		states := map[pins.State]int{}
		for _, s := range all {
			states[s.State]++
		}
		if len(all) != 0 && (len(all) != 2 || len(states) != 1) {
			t.Fatal(stands(r))
		}
		select {
		case <-done:
			return
		default:
			r.Fingerprint()
			r.named("one")
		}
	}
}

// The model does not receive blocked tools. With the setting unpinned_tools: unknown, the policy distrusts a tool that
// differs from its pin, and the model receives the tool.
func TestBlockedToolsAreNotOffered(t *testing.T) {
	r := &Registry{}
	none(t, r.Pin("files", []Tool{offered("files.read", "1")}))
	none(t, r.Replace("files", []Tool{offered("files.read", "2"), offered("files.list", "1")}))
	a := newAgent(&fakeWorkflow{}, nil, func(c *Config) { c.Tools = r })
	policy := &approvers.Policy{}
	names := func() (out []string) {
		for _, t := range a.Tools.Offered(approvers.Agent{Tools: []string{"*"}}, policy) {
			out = append(out, t.Name)
		}
		return out
	}
	if got := names(); len(got) != 0 {
		t.Errorf("the model is offered %v", got)
	}
	policy = policy.With(approvers.Overlay{Distrusted: map[string]string{"files.read": "its definition changed"}})
	if got := names(); len(got) != 1 || got[0] != "files.read" {
		t.Errorf("the model is offered %v", got)
	}
}

// If a tool's definition changes between the claim and the run, the tool does not run. If an earlier try may have
// acted, the outcome is unknown.
func TestDriftBetweenClaimAndRun(t *testing.T) {
	for name, c := range map[string]struct {
		tries  int
		effect approvers.Effect
		lost   bool
	}{
		"the first try":         {1, approvers.Idempotent, false},
		"another try":           {2, approvers.Idempotent, true},
		"another try of a look": {2, approvers.ReadOnly, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Registry{}
			v1, v2 := offered("files.read", "1"), offered("files.read", "2")
			v2.Run = func(context.Context, Invocation) (string, error) {
				t.Error("it ran with the new definition")
				return "", nil
			}
			v1.Effect, v2.Effect = c.effect, c.effect
			none(t, r.Pin("files", []Tool{v1}))
			none(t, r.Replace("files", []Tool{v1}))
			d := &fakeWorkflow{execution: allowed(r, "files.read", `{}`)}
			a := newAgent(d, nil, func(c *Config) { c.Tools = r })
			none(t, r.Replace("files", []Tool{v2}))
			e := d.execution
			e.Tries = c.tries
			done, err := a.execute(t.Context(), e, a.Log)
			if err != nil || done.ok || done.lost != c.lost || !c.lost && done.result != "it was not run, because the tool's definition changed" {
				t.Errorf("%+v, %v", done, err)
			}
		})
	}
}
