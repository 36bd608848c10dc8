package mcp

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/agent"
	"countersign/internal/redact"
)

// accepting returns a function that accepts each form with the given values, and a list of the forms.
func accepting(values string) (func(context.Context, agent.Form) (agent.Reply, error), *[]agent.Form) {
	var mu sync.Mutex
	var forms []agent.Form
	return func(_ context.Context, f agent.Form) (agent.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		forms = append(forms, f)
		return agent.Reply{Action: agent.ReplyAccepted, Values: []byte(values)}, nil
	}, &forms
}

// TestAsk checks that a question of the server goes to the requester of the call. The schema of the form keeps its
// bytes, and the server gets the answer.
func TestAsk(t *testing.T) {
	_, o := running(t, quick(), program(t, "bad", "asks"))
	tool := o.tool(t, "bad.act")
	ask, forms := accepting(`{"zebra":"yes"}`)
	text, err := tool.Run(t.Context(), agent.Invocation{Args: []byte(`{}`), Ask: ask})
	if err != nil || !strings.Contains(text, `"action":"accept"`) || !strings.Contains(text, `"zebra":"yes"`) {
		t.Errorf("%q, %v", text, err)
	}
	if len(*forms) != 1 {
		t.Fatalf("%d forms", len(*forms))
	}
	if f := (*forms)[0]; f.From != "the server bad" || f.Text != "Which one?" || string(f.Schema) != `{"type":"object","properties":{"zebra":{"type":"string"},"ant":{"type":"string"}}}` {
		t.Errorf("%+v", f)
	}
	for reply, want := range map[agent.ReplyAction]string{agent.ReplyDeclined: `"action":"decline"`, agent.ReplyCancelled: `"action":"cancel"`} {
		text, err := tool.Run(t.Context(), agent.Invocation{Args: []byte(`{}`), Ask: func(context.Context, agent.Form) (agent.Reply, error) { return agent.Reply{Action: reply}, nil }})
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %q, %v", reply, text, err)
		}
	}
	text, err = tool.Run(t.Context(), agent.Invocation{Args: []byte(`{}`), Ask: func(context.Context, agent.Form) (agent.Reply, error) {
		return agent.Reply{}, errors.New("nobody is there")
	}})
	if err != nil || !strings.Contains(text, `"action":"cancel"`) {
		t.Errorf("an error: %q, %v", text, err)
	}
	text, err = tool.Run(t.Context(), agent.Invocation{Args: []byte(`{}`), Ask: func(context.Context, agent.Form) (agent.Reply, error) {
		return agent.Reply{Action: agent.ReplyAccepted, Values: []byte(`[]`)}, nil
	}})
	if err != nil || !strings.Contains(text, `"action":"decline"`) {
		t.Errorf("an answer that is not an object: %q, %v", text, err)
	}
	if text, err := tool.Run(t.Context(), agent.Invocation{Args: []byte(`{}`)}); err != nil || !strings.Contains(text, `"action":"decline"`) {
		t.Errorf("nobody to ask: %q, %v", text, err)
	}
}

// TestAskOfTwoRuns checks a question that could belong to two runs. The client declines the question, because the
// question might reach the wrong person.
func TestAskOfTwoRuns(t *testing.T) {
	tap := newTap(discard, redact.Values{}, 1000, func() {}, nil)
	f := &flight{token: "one"}
	tap.begin(f)
	question := []byte(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`)
	if tap.in(question, nil) == nil {
		t.Fatal("the question was dropped")
	}
	if _, found := tap.whose(`"q"`); found != f {
		t.Error("the only run is not found")
	}
	tap.begin(&flight{token: "two"})
	if _, found := tap.whose(`"q"`); found != nil {
		t.Error("it is taken to belong to one of two runs")
	}
	tap.in([]byte(strings.Replace(string(question), `"q"`, `"own"`, 1)), f) // the question came on the run's own stream
	if _, found := tap.whose(`"own"`); found != f {
		t.Error("a question on a run's own stream is not known to be the run's")
	}
	if q, _ := tap.whose("made up"); q != nil {
		t.Error("a question that nobody asked")
	}
}

// TestAskOutside checks that the client declines a question that belongs to no run.
func TestAskOutside(t *testing.T) {
	s, read := recorded(t, "asks outside of a run")
	running(t, quick(), s)
	if got := recordedLine(t, read, `"id":"ask"`); !strings.Contains(got, `"action":"decline"`) {
		t.Errorf("%s", got)
	}
}

// TestNotOffered checks requests of a server that the client does not support: model calls, roots, and unknown
// methods. The client must refuse model calls and unknown methods, and must not name a root.
func TestNotOffered(t *testing.T) {
	s, read := recorded(t, "asks for more than is offered")
	_, o := running(t, quick(), s)
	text, err := call(t, o.tool(t, "bad.act"), `{}`)
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(text, "\n")
	if len(answers) != 3 || !strings.Contains(answers[0], `"error"`) || !strings.Contains(answers[2], `"error"`) || strings.Contains(answers[1], "file:") {
		t.Errorf("%s", text)
	}
	hello := recordedLine(t, read, `"method":"initialize"`)
	if strings.Contains(hello, "sampling") || strings.Contains(hello, "roots") || !strings.Contains(hello, "elicitation") {
		t.Errorf("it is offered: %s", hello)
	}
}

// TestVisit checks a server that first requires a visit to an address. The client repeats the call only after the
// requester has agreed to the visit.
func TestVisit(t *testing.T) {
	_, o := running(t, quick(), program(t, "bad", "sends somebody elsewhere"))
	ask, forms := accepting("")
	text, err := o.tool(t, "bad.act").Run(t.Context(), agent.Invocation{Args: []byte(`{}`), Ask: ask})
	if err != nil || text != "done after all" || len(*forms) != 1 || (*forms)[0].URL != "https://example.com/in" {
		t.Errorf("%q, %v, %+v", text, err, *forms)
	}
	_, o = running(t, quick(), program(t, "bad", "sends somebody elsewhere again"))
	_, err = o.tool(t, "bad.act").Run(t.Context(), agent.Invocation{Args: []byte(`{}`), Ask: ask})
	if outcomeOf(err) != fails || !strings.Contains(said(err), "that was opened already") || len(*forms) != 2 {
		t.Errorf("%v, %d forms", err, len(*forms))
	}
	for name, in := range map[string]agent.Invocation{
		"nobody": {},
		"declined": {Ask: func(context.Context, agent.Form) (agent.Reply, error) {
			return agent.Reply{Action: agent.ReplyDeclined}, nil
		}},
		"failed": {Ask: func(context.Context, agent.Form) (agent.Reply, error) {
			return agent.Reply{}, errors.New("Slack is down")
		}},
	} {
		_, o := running(t, quick(), program(t, "bad", "sends somebody elsewhere"))
		_, err := o.tool(t, "bad.act").Run(t.Context(), in)
		if err == nil || errors.Is(err, agent.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "nothing was done") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnfitForms checks that no person sees a question that is too long, or an address that hides its host.
func TestUnfitForms(t *testing.T) {
	for name, f := range map[string]agent.Form{
		"no words":       {},
		"too many words": {Text: strings.Repeat("x", maxQuestion+1)},
		"a large form":   {Text: "?", Schema: []byte(strings.Repeat(" ", maxForm+1))},
		"no host":        {Text: "?", URL: "https://"},
		"a script":       {Text: "?", URL: "javascript:alert(1)"},
		"no encryption":  {Text: "?", URL: "http://example.com"},
		"a name in it":   {Text: "?", URL: "https://bank.example@evil.example/"},
		"a broken one":   {Text: "?", URL: "https://%zz"},
	} {
		if unfitForm(f) == "" {
			t.Errorf("%s is put to people", name)
		}
	}
	for _, f := range []agent.Form{{Text: "?"}, {Text: "?", URL: "https://example.com/x"}, {Text: "?", URL: "http://localhost:1/x"}} {
		if why := unfitForm(f); why != "" {
			t.Errorf("%+v: %s", f, why)
		}
	}
	for name, data := range map[string]string{
		"nothing": `null`, "no list": `{"elicitations":1}`, "no object": `{"elicitations":[1]}`, "a form": `{"elicitations":[{"mode":"form","message":"?"}]}`,
		"too many": `{"elicitations":[{},{},{},{}]}`,
	} {
		if got := addresses("s", []byte(data)); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestAskEndsWithTheRun checks that the wait for an answer ends with the run.
func TestAskEndsWithTheRun(t *testing.T) {
	_, o := running(t, quick(), program(t, "bad", "asks"))
	tool := o.tool(t, "bad.act")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked, let := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = tool.Run(ctx, agent.Invocation{Args: []byte(`{}`), Ask: func(ctx context.Context, _ agent.Form) (agent.Reply, error) {
			close(asked)
			<-ctx.Done()
			close(let)
			return agent.Reply{}, ctx.Err()
		}})
	}()
	<-asked
	cancel()
	select {
	case <-let:
	case <-time.After(patience):
		t.Error("the question outlives its run")
	}
}

// TestUnencryptedAddress checks that a person is never sent to an unencrypted address of another machine.
func TestUnencryptedAddress(t *testing.T) {
	_, o := running(t, quick(), program(t, "bad", "sends somebody astray"))
	ask, forms := accepting("{}")
	text, err := o.tool(t, "bad.act").Run(t.Context(), agent.Invocation{Args: []byte(`{}`), Ask: ask})
	if err != nil || !strings.Contains(text, `"action":"decline"`) || len(*forms) != 0 {
		t.Errorf("%q, %v, %+v", text, err, *forms)
	}
}
