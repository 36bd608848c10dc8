package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/demo/scriptedmodel"
	"countersign/store"
)

var timer = store.Timer{Kind: store.TimerThink, Ref: "turn_1"}

func TestThinkProposes(t *testing.T) {
	d := &fakeWorkflow{brief: asked("Refund A")}
	a := newAgent(d, answers(200, nil, strings.NewReader(stream(one(0, "c1", "shop_look_up", "{}"), end("tool_calls"), "[DONE]"))))
	if err := a.Think(t.Context(), timer); err != nil {
		t.Fatal(err)
	}
	if len(d.proposals) != 1 || len(d.proposals[0].Calls) != 1 {
		t.Fatalf("%+v", d)
	}
	p := d.proposals[0]
	if p.Turn != "turn_1" || p.Calls[0] != (workflow.ModelCall{ID: "c1", Tool: "shop.look_up", Args: "{}"}) || len(p.Authors) != 1 || p.Authors[0] != "T1/U1" {
		t.Errorf("%+v", p)
	}
}

// The cost of a step is the number of tokens that the server counted. If the server sends no count, the cost is an
// estimate for the request and the answer.
func TestThinkCosts(t *testing.T) {
	counted := `{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":12,"total_tokens":42}}`
	for _, tt := range []struct {
		name   string
		events []string
		most   int
		least  int
	}{
		{"as the server counted", []string{delta(`{"content":"All right."}`, ""), end("stop"), counted, "[DONE]"}, 42, 42},
		{"as estimated", []string{delta(`{"content":"All right."}`, ""), end("stop"), "[DONE]"}, 10_000, 43},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &fakeWorkflow{brief: asked("Refund A")}
			if err := newAgent(d, answers(200, nil, strings.NewReader(stream(tt.events...)))).Think(t.Context(), timer); err != nil {
				t.Fatal(err)
			}
			if len(d.tokens) != 1 || d.tokens[0] < tt.least || d.tokens[0] > tt.most {
				t.Errorf("cost %v, want %d to %d", d.tokens, tt.least, tt.most)
			}
		})
	}
}

// The agent asks the endpoint to count the tokens of a stream. If the endpoint refuses the field, the agent repeats the
// request without the field, and leaves it out of later requests.
func TestAsksForUsage(t *testing.T) {
	answer := stream(delta(`{"content":"All right."}`, ""), end("stop"), "[DONE]")
	for name, tt := range map[string]struct {
		status int
		body   string
		want   []bool // for each request of two turns: whether the field is sent
	}{
		"accepted":            {want: []bool{true, true}},
		"refused as OpenAI":   {400, `{"error":{"message":"Unknown parameter","param":"stream_options","type":"invalid_request_error"}}`, []bool{true, false, false}},
		"refused as a list":   {422, `{"detail":[{"loc":["body","stream_options"],"msg":"extra fields not permitted"}]}`, []bool{true, false, false}},
		"refused as an event": {200, `{"error":{"message":"include_usage is not supported","code":400}}`, []bool{true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []bool
			d := &fakeWorkflow{brief: asked("Refund A")}
			a := newAgent(d, tripper(func(r *http.Request) (*http.Response, error) {
				raw, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				asks := strings.Contains(string(raw), `"stream_options":{"include_usage":true}`)
				sent = append(sent, asks)
				if asks && tt.body != "" {
					return answers(tt.status, http.Header{"Content-Type": {"application/json"}}, strings.NewReader(tt.body))(r)
				}
				return answers(200, nil, strings.NewReader(answer))(r)
			}))
			for range 2 {
				if err := a.Think(t.Context(), timer); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(sent, tt.want) || len(d.answers) != 2 {
				t.Errorf("the field was sent: %v, want %v; answers %q", sent, tt.want, d.answers)
			}
		})
	}
}

// An error that mentions the field for usage is no refusal of the field if the status or the place in the stream says
// otherwise, because the message may quote the conversation. A refusal counts only if the endpoint accepts the repeated
// request. In all other cases, the next turn asks for usage again.
func TestErrorThatMentionsUsage(t *testing.T) {
	const mention = `{"error":{"message":"can't handle: what does include_usage do?"}}`
	answer := stream(delta(`{"content":"All right."}`, ""), end("stop"), "[DONE]")
	for name, tt := range map[string]struct {
		failures []tripper
		want     []bool // for each request of two turns: whether the field is sent
	}{
		"busy":           {[]tripper{answers(429, http.Header{"Retry-After": {"20"}}, strings.NewReader(mention))}, []bool{true, true}},
		"down":           {[]tripper{answers(503, nil, strings.NewReader(mention))}, []bool{true, true}},
		"after text":     {[]tripper{answers(200, nil, strings.NewReader(stream(delta(says("All"), ""), mention)))}, []bool{true, true}},
		"after a call":   {[]tripper{answers(200, nil, strings.NewReader(stream(one(0, "c1", "issue_refund", "{"), mention)))}, []bool{true, true}},
		"refused anyway": {[]tripper{answers(400, nil, strings.NewReader(mention)), answers(400, nil, strings.NewReader(mention))}, []bool{true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []bool
			a := newAgent(&fakeWorkflow{brief: asked("Refund A")}, tripper(func(r *http.Request) (*http.Response, error) {
				raw, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				sent = append(sent, strings.Contains(string(raw), `"stream_options":{"include_usage":true}`))
				if n := len(sent); n <= len(tt.failures) {
					return tt.failures[n-1](r)
				}
				return answers(200, nil, strings.NewReader(answer))(r)
			}))
			for range 2 {
				if err := a.Think(t.Context(), timer); err != nil {
					t.Log(err) // the first turn fails, and is tried again later
				}
			}
			if !slices.Equal(sent, tt.want) {
				t.Errorf("the field was sent: %v, want %v", sent, tt.want)
			}
		})
	}
}

// The request contains the agent's model, the agent's prompt, and the agent's tools in a stable order.
func TestThinkAsks(t *testing.T) {
	strict := strictModel()
	d := &fakeWorkflow{brief: asked("Refund A")}
	d.brief.Agent.Tools = []string{"shop.look_up", "issue_refund", "no_such_tool"}
	a := newAgent(d, strict.Transport(), func(c *Config) { c.Model.Name = "other" })
	d.brief.Agent.Model = "m"
	if err := a.Think(t.Context(), timer); err != nil {
		t.Fatal(err)
	}
	r := strict.Requests()[0]
	if len(r.Tools) != 2 || r.Tools[0].Name != "issue_refund" || r.Tools[1].Name != "shop_look_up" || r.Model != "m" || !r.Stream || r.ToolChoice != "auto" {
		t.Errorf("%+v", r)
	}
	if len(d.answers) != 1 || d.answers[0] != "All right." {
		t.Errorf("%q", d.answers)
	}
}

// The history that an endpoint gets has the reasoning of its own earlier answers, and the JSON that it had added to
// calls. Each message of the model has a content. Another endpoint, or another model, gets only the content.
func TestReasoningGoesBack(t *testing.T) {
	const signature = `{"google":{"thought_signature":"c2ln<&>"}}`
	call := func(id, added string) string {
		return `{"index":` + id + `,"id":"c` + id + `","function":{"name":"shop_look_up","arguments":"{}"}` + added + `}`
	}
	first := stream(delta(`{"reasoning_content":"First I "}`, ""), delta(`{"reasoning_content":"look."}`, ""),
		delta(calls(call("0", `,"extra_content":`+signature), call("0", ""), call("1", "")), "tool_calls"), "[DONE]")
	d := &fakeWorkflow{brief: asked("What is in the shop?")}
	if err := newAgent(d, answers(200, nil, strings.NewReader(first))).Think(t.Context(), timer); err != nil || len(d.proposals) != 1 {
		t.Fatalf("%v %+v", err, d)
	}
	r := d.proposals[0].Reasoning
	if r == nil || r.Text != "First I look." || len(d.proposals[0].Calls) != 2 || !slices.Equal(r.Calls, []string{signature, ""}) {
		t.Fatalf("%+v of %+v", r, d.proposals[0].Calls)
	}
	step := store.Message{Conversation: "conv_1", Seq: 2, Turn: "turn_1", Step: 1, Role: store.RoleAssistant, State: store.MessageTaken, Calls: 2, Reasoning: r}
	d.brief.Messages = append(d.brief.Messages, step)
	for i, c := range d.proposals[0].Calls {
		d.brief.Calls["turn_1"] = append(d.brief.Calls["turn_1"], store.Call{ID: fmt.Sprint("call_", i), ModelID: c.ID, Step: 1, Index: i, Tool: c.Tool, Args: c.Args, Outcome: "executed", Result: "ok"})
	}
	d.brief.Messages = append(d.brief.Messages,
		store.Message{Conversation: "conv_1", Seq: 3, Turn: "turn_1", Step: 2, Role: store.RoleAssistant, State: store.MessageTaken, Text: "Nothing."},
		store.Message{Conversation: "conv_1", Seq: 4, Turn: "turn_2", Role: store.RoleUser, State: store.MessageTaken, Author: "T1/U1", Text: "And now?"})
	d.brief.Turn.ID = "turn_2"
	for _, c := range []struct {
		name   string
		change func(*Config)
		own    bool
	}{
		{"the same", func(*Config) {}, true},
		{"with another slash", func(c *Config) { c.Model.BaseURL += "/" }, true},
		{"another model", func(c *Config) { c.Model.Name = "n" }, false},
		{"another endpoint", func(c *Config) { c.Model.BaseURL = "http://other.invalid/v1" }, false},
		{"without tools", func(c *Config) { c.Tools = new(Registry) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body struct {
				Messages []struct {
					Role      string
					Content   *string
					Reasoning *string `json:"reasoning_content"`
					Calls     []struct {
						ID    string
						Added *json.RawMessage `json:"extra_content"`
					} `json:"tool_calls"`
				}
			}
			d.reasoning = nil
			a := newAgent(d, tripper(func(r *http.Request) (*http.Response, error) {
				raw := must(io.ReadAll(r.Body))
				if err := json.Unmarshal(raw, &body); err != nil || r.ContentLength != int64(len(raw)) {
					t.Errorf("%v; %d bytes were announced, %d sent", err, r.ContentLength, len(raw))
				}
				return answers(200, nil, strings.NewReader(stream(delta(`{"reasoning_content":"Hm."}`, ""), delta(says("Still nothing."), "stop"))))(r)
			}), c.change)
			if err := a.Think(t.Context(), timer); err != nil || len(body.Messages) != 7 {
				t.Fatalf("%v, %+v", err, body.Messages)
			}
			step, answer := body.Messages[2], body.Messages[5]
			if step.Content == nil || *step.Content != "" || answer.Content == nil || *answer.Content != "Nothing." || len(step.Calls) != 2 || step.Calls[0].ID != "c0" {
				t.Errorf("%+v %+v", step, answer)
			}
			if own := step.Reasoning != nil && *step.Reasoning == "First I look." && answer.Reasoning != nil && *answer.Reasoning == ""; own != c.own {
				t.Errorf("%v %v", step.Reasoning, answer.Reasoning)
			}
			if added := step.Calls[0].Added; (added != nil) != c.own || c.own && !sameJSON(string(*added), signature) || step.Calls[1].Added != nil {
				t.Errorf("%+v", step.Calls)
			}
			if got := d.reasoning; len(got) != 1 || got[0] == nil || got[0].Text != "Hm." || c.own && got[0].Source != r.Source {
				t.Errorf("%+v", got)
			}
		})
	}
}

// If the endpoint does not count tokens, the estimate for a step includes the reasoning that the model wrote.
func TestReasoningIsSpent(t *testing.T) {
	r := reply{text: strings.Repeat("a", 40), reasoning: &store.Reasoning{Text: strings.Repeat("b", 400)}}
	if got := r.spent(modelRequest{tokens: 1000}); got != 1110 {
		t.Errorf("%d tokens, want 1110", got)
	}
	r.tokens = 7
	if got := r.spent(modelRequest{tokens: 1000}); got != 7 {
		t.Errorf("%d tokens, want the endpoint's count", got)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// Reasoning and added JSON that are longer than their limits are cut, because they are stored with the step.
func TestReasoningIsBounded(t *testing.T) {
	long := strings.Repeat("é", maxThought)
	added := func(n int) string { return `"` + strings.Repeat("s", n) + `"` }
	call := func(i, n int) string {
		return fmt.Sprintf(`{"index":%d,"id":"c%d","function":{"name":"shop_look_up","arguments":"{}"},"extra_content":%s}`, i, i, added(n))
	}
	got, err := askBody(strings.NewReader(stream(delta(`{"reasoning_content":"`+long+`"}`, ""), delta(calls(call(0, 100), call(1, maxThought-100), call(2, 100)), "tool_calls"))))
	if err != nil || got.reasoning == nil {
		t.Fatalf("%v", err)
	}
	if text := got.reasoning.Text; len(text) > maxThought || !strings.HasPrefix(long, text) || len(text) < maxThought-4 {
		t.Errorf("%d bytes of reasoning", len(text))
	}
	if want := []string{added(100), "", added(100)}; !slices.Equal(got.reasoning.Calls, want) {
		t.Errorf("%d calls", len(got.reasoning.Calls))
	}
	if got, err := askBody(strings.NewReader(stream(delta(says("Hello"), "stop")))); err != nil || got.reasoning != nil {
		t.Errorf("%v, %+v", err, got.reasoning)
	}
}

// If a model calls tools in every step, the last request of the turn forbids tools. The answer to the last request, or
// the sentence with which the turn stops, gives the reason.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name string
		body string
		want string
		stop string
	}{
		{"an answer", stream(delta(says("Half of it is done."), ""), end("stop")), "Half of it is done.\n\n(I stopped here after 3 steps, the most that I take for one message. Write to me if I should continue.)", ""},
		{"calls all the same", stream(one(0, "c1", "shop_look_up", "{}"), end("tool_calls")), "", "I stopped after 3 steps, the most that I take for one message, without coming to an answer. What was done is listed above. Write to me if I should continue."},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &fakeWorkflow{brief: asked("Do it all")}
			d.brief.Agent.MaxSteps = 3
			var body string
			a := newAgent(d, tripper(func(r *http.Request) (*http.Response, error) {
				body = string(must(io.ReadAll(r.Body)))
				return answers(200, nil, strings.NewReader(c.body))(r)
			}))
			d.brief.Turn.Step = 2
			if err := a.Think(t.Context(), timer); err != nil || strings.Contains(body, `"tool_choice"`) {
				t.Fatalf("the third step: %v, %s", err, body)
			}
			d.proposals, d.answers = nil, nil
			d.brief.Turn.Step = 3
			if err := a.Think(t.Context(), timer); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(body, `"tool_choice":"none"`) || !strings.Contains(body, "Make no more") {
				t.Errorf("the last question: %s", body)
			}
			if len(d.proposals) > 0 || strings.Join(d.answers, "") != c.want {
				t.Errorf("%+v, %q", d.proposals, d.answers)
			}
			if c.stop != "" && (len(d.stops) != 1 || d.stops[0] != stop{c.stop, false}) {
				t.Errorf("%+v", d.stops)
			}
		})
	}
}

func TestRetriesThenStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeWorkflow{brief: asked("Refund A")}
		calls := 0
		a := newAgent(d, tripper(func(r *http.Request) (*http.Response, error) {
			calls++
			return nil, errReset
		}))
		var pauses []time.Duration
		for len(d.stops) == 0 {
			before := len(d.postponed)
			if err := a.Think(t.Context(), timer); err != nil {
				t.Fatal(err)
			}
			if len(d.postponed) > before {
				pause := time.Until(d.postponed[before])
				pauses = append(pauses, pause)
				time.Sleep(pause)
			}
		}
		if calls != 5 || len(pauses) != 4 {
			t.Fatalf("%d calls, pauses %v", calls, pauses)
		}
		for i, want := range []float64{2, 5, 12.5, 31.25} {
			if got := pauses[i].Seconds(); got < want*0.8 || got > want*1.2 {
				t.Errorf("pause %d is %v, want about %v s", i+1, pauses[i], want)
			}
		}
		if d.stops[0] != (stop{sentences[causeDown], true}) {
			t.Errorf("%+v", d.stops)
		}
	})
}

func TestFailures(t *testing.T) {
	status := func(code int, header http.Header, body string) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			return answers(code, header, strings.NewReader(body))(r)
		})
	}
	for _, c := range []struct {
		name     string
		endpoint http.RoundTripper
		pause    [2]time.Duration // zero: the turn stops
		stop     string
		noRetry  bool
	}{
		{"retry-after in seconds", status(429, http.Header{"Retry-After": {"20"}}, `{"error":{"message":"slow down"}}`), [2]time.Duration{20 * time.Second, 20 * time.Second}, "", false},
		{"retry-after is less than our own pause", status(503, http.Header{"Retry-After": {"1"}}, ``), [2]time.Duration{1600 * time.Millisecond, 2400 * time.Millisecond}, "", false},
		{"retry-after as a date, by the server's clock", status(429, http.Header{"Retry-After": {"Fri, 31 Dec 1999 23:59:59 GMT"}, "Date": {"Fri, 31 Dec 1999 23:59:29 GMT"}}, ``), [2]time.Duration{30 * time.Second, 30 * time.Second}, "", false},
		{"retry-after is nonsense", status(429, http.Header{"Retry-After": {"soon"}}, ``), [2]time.Duration{1600 * time.Millisecond, 2400 * time.Millisecond}, "", false},
		{"retry-after is not a number", status(429, http.Header{"Retry-After": {"NaN"}}, ``), [2]time.Duration{1600 * time.Millisecond, 2400 * time.Millisecond}, "", false},
		{"retry-after is long", status(429, http.Header{"Retry-After": {"3600"}}, ``), [2]time.Duration{}, sentences[causeBusy] + " It asks not to be called for 1h0m0s.", false},
		{"the key", status(401, nil, `{"error":{"message":"Incorrect API key provided: sk-12**"}}`), [2]time.Duration{}, sentences[causeKey], false},
		{"the model", status(404, nil, `{"error":{"message":"no such model"}}`), [2]time.Duration{}, sentences[causeModel], false},
		{"nothing to leave out", status(400, nil, `{"error":{"code":"context_length_exceeded","message":"too long"}}`), [2]time.Duration{}, sentences[causeLong], true},
		{"silence", tripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), [2]time.Duration{1600 * time.Millisecond, 2400 * time.Millisecond}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &fakeWorkflow{brief: asked("Refund A")}
				var log bytes.Buffer
				a := newAgent(d, c.endpoint, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
				if err := a.Think(t.Context(), timer); err != nil {
					t.Fatal(err)
				}
				if c.stop != "" {
					level := "ERROR"
					if c.noRetry { // only this conversation has the problem
						level = "WARN"
					}
					if want := `level=` + level + ` msg="model call failed; the turn stops"`; !strings.Contains(log.String(), want) {
						t.Errorf("the log lacks %s:\n%s", want, log.String())
					}
					if len(d.stops) != 1 || d.stops[0] != (stop{c.stop, !c.noRetry}) || len(d.postponed) > 0 {
						t.Errorf("%+v %v", d.stops, d.postponed)
					}
					return
				}
				if len(d.postponed) != 1 || len(d.stops) > 0 {
					t.Fatalf("%+v %v", d.stops, d.postponed)
				}
				if pause := time.Until(d.postponed[0]); pause < c.pause[0] || pause > c.pause[1] {
					t.Errorf("pause %v, want between %v and %v", pause, c.pause[0], c.pause[1])
				}
			})
		})
	}
}

// Some models accept tools only through another API of OpenAI. go-openai refuses their requests, and a repetition would
// not help.
func TestModelThatTakesNoTools(t *testing.T) {
	d := &fakeWorkflow{brief: asked("Refund A")}
	sent := 0
	a := newAgent(d, tripper(func(*http.Request) (*http.Response, error) { sent++; return nil, errReset }), func(c *Config) { c.Model.Name = openai.GPT6Astra })
	if err := a.Think(t.Context(), timer); err != nil || sent > 0 || len(d.stops) != 1 || d.stops[0] != (stop{sentences[causeModel], true}) {
		t.Errorf("%v; %d requests, %+v, %v", err, sent, d.stops, d.postponed)
	}
}

// drip is a body that returns a piece at a time.
type drip struct {
	ctx    context.Context
	pieces []string
	pause  time.Duration
}

func (d *drip) Read(p []byte) (int, error) {
	if len(d.pieces) == 0 {
		return 0, io.EOF
	}
	if !sleep(d.ctx, d.pause) {
		return 0, d.ctx.Err()
	}
	n := copy(p, d.pieces[0])
	d.pieces = d.pieces[1:]
	return n, nil
}

func TestSlowStreams(t *testing.T) {
	text := stream(delta(says("a"), ""))
	last := stream(end("stop"))
	for _, c := range []struct {
		name   string
		pieces []string
		pause  time.Duration
		ok     bool
		took   time.Duration
	}{
		{"slow but alive", []string{text, text, text, last, stream("[DONE]")}, 80 * time.Second, true, 0},
		{"comments are a sign of life", []string{": wait\n\n", ": wait\n\n", text, last, stream("[DONE]")}, 70 * time.Second, true, 0},
		{"silent between pieces", []string{text, text, last}, 91 * time.Second, false, (91 + 90) * time.Second},
		{"a late beginning", []string{text + text + last, stream("[DONE]")}, 280 * time.Second, true, 0},
		{"no beginning", []string{text}, time.Hour, false, 10 * time.Minute},
		{"too slow as a whole", []string{text, text, text, text, text, text, text, last}, 80 * time.Second, false, 5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &fakeWorkflow{brief: asked("Refund A")}
				a := newAgent(d, tripper(func(r *http.Request) (*http.Response, error) {
					return answers(200, nil, &drip{r.Context(), c.pieces, c.pause})(r)
				}), func(c *Config) { c.Model.Timeout = 10 * time.Minute })
				if c.took == 5*time.Minute {
					a.model.Timeout = 5 * time.Minute
				}
				began := time.Now()
				if err := a.Think(t.Context(), timer); err != nil {
					t.Fatal(err)
				}
				if c.ok != (len(d.answers) == 1) || c.ok == (len(d.postponed) == 1) {
					t.Errorf("answers %q, postponed %v", d.answers, d.postponed)
				}
				if took := time.Since(began); !c.ok && took != c.took {
					t.Errorf("given up after %v, want %v", took, c.took)
				}
			})
		})
	}
}

// Some servers keep the stream open after a complete answer. The client waits for the end of the stream only for the
// time afterFinish.
func TestAfterTheFinishReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeWorkflow{brief: asked("Refund A")}
		a := newAgent(d, tripper(func(r *http.Request) (*http.Response, error) {
			open := io.MultiReader(strings.NewReader(stream(delta(says("Hello"), ""), end("stop"))), &drip{r.Context(), []string{"x"}, time.Hour})
			return answers(200, nil, open)(r)
		}))
		began := time.Now()
		if err := a.Think(t.Context(), timer); err != nil || len(d.answers) != 1 || time.Since(began) != afterFinish {
			t.Errorf("%v, %q after %v", err, d.answers, time.Since(began))
		}
	})
}

// If the process ends during a model call, nothing is recorded. The timer's row stays in the store, so the next
// process calls the model again.
func TestThinkInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeWorkflow{brief: asked("Refund A")}
		a := newAgent(d, tripper(func(r *http.Request) (*http.Response, error) {
			return answers(200, nil, &drip{r.Context(), []string{stream(delta(says("a"), "")), "x"}, 10 * time.Second})(r)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		err := a.Think(ctx, timer)
		if !errors.Is(err, context.DeadlineExceeded) || len(d.answers)+len(d.postponed)+len(d.stops)+len(d.proposals) > 0 {
			t.Errorf("%v %+v", err, d)
		}
	})
}

// If the model refuses even the shortest request, and the definitions of the tools are the larger part of it, the log
// says so.
func TestToolsAreTooLong(t *testing.T) {
	const words = "most of it are the definitions of tools"
	for name, tt := range map[string]struct {
		tools int
		text  string
		told  bool
	}{
		"many tools":   {20, "Hello", true},
		"a long text":  {2, strings.Repeat("Hello. ", 2000), false},
		"all is short": {1, "Hello", false},
	} {
		t.Run(name, func(t *testing.T) {
			tools := new(Registry)
			for i := range tt.tools {
				one := Tool{Name: fmt.Sprint("look_up_", i), Description: strings.Repeat("Looks. ", 100), Schema: json.RawMessage(`{"type":"object"}`), Effect: approvers.ReadOnly, Run: nothing}
				if err := tools.Register(one); err != nil {
					t.Fatal(err)
				}
			}
			var log bytes.Buffer
			d := &fakeWorkflow{brief: asked(tt.text)}
			a := newAgent(d, tripper(func(r *http.Request) (*http.Response, error) {
				return answers(400, nil, strings.NewReader(`{"error":{"code":"context_length_exceeded","message":"too long"}}`))(r)
			}), func(c *Config) { c.Tools, c.Log = tools, slog.New(slog.NewTextHandler(&log, nil)) })
			if err := a.Think(t.Context(), timer); err != nil {
				t.Fatal(err)
			}
			if told := strings.Contains(log.String(), words); told != tt.told {
				t.Errorf("told: %t, want %t\n%s", told, tt.told, log.String())
			}
		})
	}
}

// If the model refuses a history as too long, the agent shortens the history until the model accepts it. Later
// requests begin with the accepted size.
func TestShrinks(t *testing.T) {
	long := scriptedmodel.New(scriptedmodel.Config{
		Models: []string{"m"}, ContextTokens: 4000, Record: true,
		Responder: scriptedmodel.ResponderFunc(func(context.Context, scriptedmodel.Request) (scriptedmodel.Reply, error) {
			return scriptedmodel.Reply{Content: "All right."}, nil
		}),
	})
	d := &fakeWorkflow{brief: asked("and now?")}
	for i := range 20 {
		turn := fmt.Sprint("old_", i)
		d.brief.Messages = append([]store.Message{
			{Turn: turn, Role: store.RoleUser, State: store.MessageTaken, Author: "T1/U1", Text: strings.Repeat("word ", 500)},
			{Turn: turn, Role: store.RoleAssistant, State: store.MessageTaken, Text: "yes"},
		}, d.brief.Messages...)
	}
	tries := 0
	a := newAgent(d, tripper(func(r *http.Request) (*http.Response, error) {
		tries++
		return long.Transport().RoundTrip(r)
	}))
	if err := a.Think(t.Context(), timer); err != nil || len(d.answers) != 1 {
		t.Fatalf("%v %+v", err, d.stops)
	}
	first := tries
	if first < 2 || first > 8 {
		t.Errorf("%d tries", first)
	}
	if err := a.Think(t.Context(), timer); err != nil || len(d.answers) != 2 || tries != first+1 {
		t.Errorf("%v; %d tries for the next question", err, tries-first)
	}
}

func TestPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		status, body := 200, `{"data":[]}`
		a := newAgent(&fakeWorkflow{}, tripper(func(r *http.Request) (*http.Response, error) {
			asked++
			if r.Method != http.MethodGet || r.URL.Path != "/v1/models" {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			if status == 0 {
				return nil, errReset
			}
			return answers(status, http.Header{}, strings.NewReader(body))(r)
		}))
		for _, c := range []struct {
			status int
			body   string
			want   error
		}{
			{200, `{"data":[]}`, nil},
			{200, `{"data":[` + strings.Repeat(" ", maxErrorBody) + `]}`, nil}, // longer than the part that Ping reads
			{404, `404 page not found`, nil},
			{429, ``, nil},
			{401, `{"error":{"message":"wrong key"}}`, ErrModelKey},
			{500, ``, ErrModelUnreachable},
			{0, ``, ErrModelUnreachable},
		} {
			status, body, asked = c.status, c.body, 0
			err := a.Ping(t.Context())
			if !errors.Is(err, c.want) {
				t.Errorf("status %d: %v", c.status, err)
			}
			if again := a.Ping(t.Context()); asked != 1 || !errors.Is(again, c.want) {
				t.Errorf("status %d: %d requests for two looks, %v", c.status, asked, again)
			}
			time.Sleep(a.PingEvery)
		}
	})
}

// TestSpread checks the retries of conversations that failed at the same time. Almost all retries are at different
// times, and each delay deviates by at most a fifth.
func TestSpread(t *testing.T) {
	r := Retry{}.withDefaults()
	seen := map[time.Duration]bool{}
	for i := range 100 {
		pause, again := r.next(fmt.Sprint("turn_", i), 0, &failure{worth: true})
		if !again || pause < r.First*8/10 || pause > r.First*12/10 {
			t.Fatalf("a pause of %s, %t", pause, again)
		}
		seen[pause] = true
	}
	if len(seen) < 95 {
		t.Errorf("%d pauses for 100 conversations", len(seen))
	}
}
