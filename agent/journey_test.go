package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/demo/scriptedmodel"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/jobs"
)

// harness is one process with the real workflow, a real store and a scripted model, without Slack. Only the store
// survives a restart of the process.
type harness struct {
	t      *testing.T
	path   string
	model  *scriptedmodel.Server
	script *scriptedmodel.Script
	tools  *agent.Registry
	runs   runs

	store    store.Store
	workflow *workflow.Workflow
	stop     func()
}

// runs counts the runs of each tool.
type runs struct {
	mu   sync.Mutex
	done []string
	keys []string
}

func (r *runs) add(tool string, in agent.Invocation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, tool+" "+string(in.Args))
	r.keys = append(r.keys, in.Key)
}

func (r *runs) list() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.done, "; ")
}

var (
	ana  = approvers.Identity{ID: "T1/U1", Name: "Ana"}
	lead = approvers.Identity{ID: "T1/U2", Name: "Lee"}
)

func policy() *approvers.Policy {
	return &approvers.Policy{
		Hash: "p1",
		Defaults: approvers.Defaults{
			ExpiresAfter: 30 * time.Minute, EscalateAfter: 10 * time.Minute, RunWithin: 15 * time.Minute,
			UnknownTool: approvers.ToolPolicy{Risk: approvers.Critical, Confirm: true},
		},
		Tools: []approvers.ToolPolicy{
			{Name: "look_up", Risk: approvers.Low}, {Name: "set_price", Risk: approvers.Medium}, {Name: "send", Risk: approvers.Medium},
			{Name: "refund", Risk: approvers.High, Confirm: true},
		},
		Approvers: []approvers.Role{{
			Name: "lead", Title: "Team Lead", MaxRisk: approvers.High, CanApprove: []string{"*"}, Cards: approvers.CardsDM,
			Members: []approvers.Member{{Kind: approvers.MemberUser, Value: "U2"}},
		}},
		Agents: []approvers.Agent{{Name: "support", Prompt: "You help.", Channels: []string{"*"}, Tools: []string{"*"}, MaxSteps: 4}},
	}
}

// newHarness creates a harness. Each tool counts its run. If act is not nil, the tool then calls act, and returns the
// error of act.
func newHarness(t *testing.T, act func(ctx context.Context, tool string) error, replies ...scriptedmodel.Reply) *harness {
	w := &harness{t: t, path: filepath.Join(t.TempDir(), "store.db"), script: scriptedmodel.NewScript(replies...), tools: &agent.Registry{}}
	w.model = scriptedmodel.New(scriptedmodel.Config{Responder: w.script, Record: true})
	for _, x := range []struct {
		name   string
		effect approvers.Effect
	}{{"look_up", approvers.ReadOnly}, {"set_price", approvers.Idempotent}, {"send", approvers.Unprotected}, {"refund", approvers.Unprotected}} {
		err := w.tools.Register(agent.Tool{
			Name: x.name, Description: "Does " + x.name + ".", Effect: x.effect,
			Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`),
			Run: func(ctx context.Context, in agent.Invocation) (string, error) {
				w.runs.add(x.name, in)
				if act != nil {
					if err := act(ctx, x.name); err != nil {
						return "", err
					}
				}
				return `{"ok":true}`, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	t.Cleanup(func() { w.stopProcess() })
	return w
}

func (w *harness) start() {
	w.t.Helper()
	s, err := bolt.Open(w.path, bolt.Options{Rehearse: true})
	if err != nil {
		w.t.Fatal(err)
	}
	p := policy()
	log := slog.New(slog.DiscardHandler)
	w.store = s
	w.workflow = workflow.New(workflow.Config{Store: s, Policy: func() *approvers.Policy { return p }, Tools: w.tools, Log: log})
	a := agent.New(agent.Config{
		Turns: w.workflow.Turns, Runs: w.workflow.Runs, Questions: w.workflow.Questions, Results: w.workflow.Views, Tools: w.tools, Log: log,
		Model: agent.Model{BaseURL: "http://model.invalid/v1", Name: scriptedmodel.DefaultModel, HTTP: &http.Client{Transport: w.model.Transport()}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	if err := w.workflow.Runs.Recover(ctx, store.AllShares); err != nil {
		w.t.Fatal(err)
	}
	worked := make(chan error, 1)
	go func() {
		worked <- w.workflow.Work(ctx, map[store.TimerKind]jobs.Worker{
			store.TimerThink: {Handle: a.Think, Concurrency: 4},
			store.TimerRun:   {Handle: a.Run, Concurrency: 4},
		})
	}()
	w.stop = func() {
		cancel()
		if err := <-worked; err != nil {
			w.t.Errorf("work: %v", err)
		}
		if err := a.Wait(context.Background()); err != nil {
			w.t.Errorf("wait: %v", err)
		}
		if err := s.Check(context.Background()); err != nil {
			w.t.Errorf("check: %v", err)
		}
		if err := s.Close(); err != nil {
			w.t.Errorf("close: %v", err)
		}
	}
}

func (w *harness) stopProcess() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// hear sends a person's message, and returns the resulting turn.
func (w *harness) hear(who approvers.Identity, ts, text string) string {
	w.t.Helper()
	row := store.Inbox{ID: "ev_" + ts, Kind: store.InboxEvent, ReceivedAt: time.Now()}
	if _, err := w.workflow.Intake.Receive(w.t.Context(), row, ""); err != nil {
		w.t.Fatal(err)
	}
	heard, err := w.workflow.Intake.ReceiveMessage(w.t.Context(), workflow.IncomingMessage{
		Inbox: row.ID, At: row.ReceivedAt, Channel: approvers.ChannelRef{Channel: "C1", Name: "support"}, Team: "T1", Thread: "1.0", TS: ts, Who: who, Text: text, Start: true,
	})
	if err != nil || heard.Ignored || heard.Denied != nil {
		w.t.Fatalf("%+v, %v", heard, err)
	}
	return heard.Turn
}

func (w *harness) turn(id string) (turn approvers.Turn, calls []store.Call) {
	w.t.Helper()
	err := w.store.View(w.t.Context(), func(r store.Reader) (err error) {
		if turn, err = r.Turn(id); err != nil {
			return err
		}
		calls, err = r.Calls(id)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return turn, calls
}

func (w *harness) request(id string) (r approvers.Request) {
	w.t.Helper()
	r, err := w.workflow.Views.Request(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *harness) lastAnswer(turn approvers.Turn) string {
	w.t.Helper()
	var text string
	err := w.store.View(w.t.Context(), func(r store.Reader) error {
		all, err := r.Messages(turn.Conversation, 0)
		for _, m := range all {
			if m.Role == store.RoleAssistant && m.Calls == 0 {
				text = m.Text
			}
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

func call(name, args string) scriptedmodel.Call {
	return scriptedmodel.Call{Name: name, Arguments: args}
}

// One step has three calls: one runs automatically, one needs approval, and one is invalid. The automatic call runs
// immediately. When a person has approved the second call, all three calls have results, and the model continues.
func TestAStepWithMixedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, nil,
			scriptedmodel.Reply{Content: "I look.", Calls: []scriptedmodel.Call{
				call("look_up", `{"n": 1}`), call("refund", `{"n":  49.90}`), call("refund", `{"n":1,"N":2}`),
			}},
			scriptedmodel.Reply{Content: "It is refunded."})
		turnID := w.hear(ana, "1.0", "Refund it")
		synctest.Wait()
		turn, calls := w.turn(turnID)
		if turn.State != approvers.TurnWaiting || w.runs.list() != `look_up {"n": 1}` || len(calls) != 3 {
			t.Fatalf("%s, %d calls, runs %s", turn.State, len(calls), w.runs.list())
		}
		if calls[2].Outcome != approvers.OutcomeError || !strings.Contains(calls[2].Result, "differ only in case") {
			t.Errorf("%+v", calls[2])
		}
		r := w.request(calls[1].Request)
		if _, err := w.workflow.Requests.Decide(t.Context(), workflow.Click{At: time.Now(), Who: lead, Request: r.ID, Kind: approvers.Approve, Digest: r.Digest, Whole: true}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		turn, calls = w.turn(turnID)
		if turn.State != approvers.TurnAnswered || w.lastAnswer(turn) != "It is refunded." || w.runs.list() != `look_up {"n": 1}; refund {"n":  49.90}` {
			t.Fatalf("%s %q, runs %s", turn.State, w.lastAnswer(turn), w.runs.list())
		}
		if w.runs.keys[1] != calls[1].Execution {
			t.Error("the key is not the execution's id")
		}
		asked := w.model.Requests()
		if len(asked) != 2 || len(asked[1].Messages) != 6 {
			t.Fatalf("%d questions: %+v", len(asked), asked[len(asked)-1].Messages)
		}
		for i, c := range asked[1].Messages[2].ToolCalls {
			if result := asked[1].Messages[3+i]; result.ToolCallID != c.ID || result.Content == "" {
				t.Errorf("result %d: %+v", i, result)
			}
		}
	})
}

// The process stops in the middle of a model call. The next process calls the model again. All work is done exactly
// once.
func TestStoppedWhileThinking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, nil, scriptedmodel.Reply{Content: "Hello."})
		w.model.Inject(scriptedmodel.Fault{Hang: true})
		turnID := w.hear(ana, "1.0", "Hello")
		synctest.Wait()
		w.stopProcess()
		w.start()
		synctest.Wait()
		if turn, _ := w.turn(turnID); turn.State != approvers.TurnAnswered || w.lastAnswer(turn) != "Hello." || turn.Step != 1 || turn.Failures != 0 {
			t.Errorf("%+v", turn)
		}
	})
}

// A turn gets its answer even if several earlier model calls fail in different ways.
func TestAModelThatRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, nil, scriptedmodel.Reply{Content: "Hello.", Fault: scriptedmodel.Fault{Cut: true, CutAfter: 1}}, scriptedmodel.Reply{Content: "Hello."})
		w.model.Inject(scriptedmodel.Fault{Status: 503}, scriptedmodel.Fault{Status: 429, RetryAfter: 40 * time.Second})
		turnID := w.hear(ana, "1.0", "Hello")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if turn, _ := w.turn(turnID); turn.State != approvers.TurnAnswered || w.lastAnswer(turn) != "Hello." || len(w.model.Requests()) != 4 {
			t.Errorf("%+v after %d requests", turn, len(w.model.Requests()))
		}
	})
}

// If a model keeps failing, the turn stops with a sentence for people. The button "Try again" continues the turn.
func TestAModelThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, nil, scriptedmodel.Reply{Content: "Hello."})
		for range 5 {
			w.model.Inject(scriptedmodel.Fault{Status: 500})
		}
		turnID := w.hear(ana, "1.0", "Hello")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		turn, _ := w.turn(turnID)
		if turn.State != approvers.TurnStopped || !turn.CanRetry || !strings.Contains(turn.Problem, "did not answer") || len(w.model.Requests()) != 5 {
			t.Fatalf("%+v after %d requests", turn, len(w.model.Requests()))
		}
		if err := w.workflow.Turns.TryAgain(t.Context(), workflow.Click{At: time.Now(), Who: ana, Turn: turnID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if turn, _ = w.turn(turnID); turn.State != approvers.TurnAnswered {
			t.Errorf("%+v", turn)
		}
	})
}

// The process stops while some tools are running, and these tools don't return within the grace period. The next
// process runs the repeatable tools again with the same key. It asks people about the outcome of the other tool. No run
// is recorded as a failure.
func TestStoppedWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := true
		act := func(ctx context.Context, tool string) error {
			if hang {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		w := newHarness(t, act, scriptedmodel.Reply{Calls: []scriptedmodel.Call{
			call("look_up", `{"n":1}`), call("set_price", `{"n":2}`), call("send", `{"n":3}`),
		}}, scriptedmodel.Reply{Content: "One is open."})
		turnID := w.hear(ana, "1.0", "All of it")
		synctest.Wait()
		w.stopProcess()
		hang = false
		w.start()
		time.Sleep(2 * time.Minute) // by then the workflow's lease on the interrupted runs has expired
		synctest.Wait()
		turn, calls := w.turn(turnID)
		if turn.State != approvers.TurnWaiting || calls[0].Outcome != approvers.OutcomeExecuted || calls[1].Outcome != approvers.OutcomeExecuted || calls[2].Outcome != "" {
			t.Fatalf("%s %+v", turn.State, calls)
		}
		if n := strings.Count(w.runs.list(), "send"); n != 1 {
			t.Errorf("send ran %d times", n)
		}
		for i, done := range w.runs.done {
			for k, other := range w.runs.done {
				if done == other && w.runs.keys[i] != w.runs.keys[k] {
					t.Errorf("%s ran under two keys", done)
				}
			}
		}
		if err := w.workflow.Runs.Report(t.Context(), workflow.Click{At: time.Now(), Who: ana, Execution: calls[2].Execution}, workflow.Happened); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if turn, calls = w.turn(turnID); turn.State != approvers.TurnAnswered || calls[2].Outcome != approvers.OutcomeExecuted {
			t.Errorf("%s %+v", turn.State, calls[2])
		}
	})
}

// If a tool that can't be repeated exceeds its timeout, the same process immediately asks people for the outcome.
func TestAToolThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		act := func(ctx context.Context, tool string) error {
			<-ctx.Done()
			return errors.New("the bank hung up")
		}
		w := newHarness(t, act, scriptedmodel.Reply{Calls: []scriptedmodel.Call{call("send", `{"n":3}`)}}, scriptedmodel.Reply{Content: "It is unknown."})
		turnID := w.hear(ana, "1.0", "Send it")
		time.Sleep(31 * time.Second)
		synctest.Wait()
		turn, calls := w.turn(turnID)
		if turn.State != approvers.TurnWaiting || calls[0].Outcome != "" {
			t.Fatalf("%s %+v", turn.State, calls)
		}
		if err := w.workflow.Runs.Report(t.Context(), workflow.Click{At: time.Now(), Who: ana, Execution: calls[0].Execution}, workflow.Leave); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if turn, calls = w.turn(turnID); turn.State != approvers.TurnAnswered || calls[0].Outcome != approvers.OutcomeUnknown || w.runs.list() != `send {"n":3}` {
			t.Errorf("%s %+v, ran %s", turn.State, calls[0], w.runs.list())
		}
	})
}

// If a model calls tools in every step, the last request demands a text. Messages that arrive during this turn wait,
// and begin the next turn.
func TestTooManySteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := scriptedmodel.Reply{Calls: []scriptedmodel.Call{call("look_up", `{"n":1}`)}}
		w := newHarness(t, nil, again, again, again, again, scriptedmodel.Reply{Content: "Four times I looked."}, scriptedmodel.Reply{Content: "You're welcome."})
		w.model.Inject(scriptedmodel.Fault{Delay: time.Second})
		first := w.hear(ana, "1.0", "Look until you find it")
		synctest.Wait()
		w.hear(lead, "1.1", "Thanks")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		turn, calls := w.turn(first)
		if turn.State != approvers.TurnAnswered || len(calls) != 4 || len(w.model.Requests()) != 6 {
			t.Fatalf("%s after %d calls and %d requests", turn.State, len(calls), len(w.model.Requests()))
		}
		asked := w.model.Requests()
		if asked[3].ToolChoice != "auto" || asked[4].ToolChoice != "none" || asked[5].ToolChoice != "auto" {
			t.Errorf("tool choices %s, %s, %s", asked[3].ToolChoice, asked[4].ToolChoice, asked[5].ToolChoice)
		}
		if got := asked[5].Last().Content; got != "Lee: Thanks" {
			t.Errorf("%q", got)
		}
		if w.lastAnswer(turn) != "You're welcome." {
			t.Errorf("%q", w.lastAnswer(turn))
		}
	})
}
