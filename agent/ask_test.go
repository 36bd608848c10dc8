package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

const plainForm = `{"type":"object","properties":{"city":{"type":"string"}}}`

func TestForms(t *testing.T) {
	field := func(schema string) Form {
		return Form{Text: "Which?", Schema: json.RawMessage(`{"type":"object","properties":{"a":` + schema + `}}`)}
	}
	for name, c := range map[string]struct {
		form Form
		want string // part of the error; empty: the form is valid
	}{
		"a form":              {Form{Text: "Where to?", Schema: json.RawMessage(plainForm)}, ""},
		"a list of choices":   {field(`{"type":"array","items":{"enum":["x","y"]}}`), ""},
		"an address":          {Form{Text: "Sign in.", URL: "https://bank.example/x"}, ""},
		"one on this machine": {Form{Text: "Sign in.", URL: "http://127.0.0.1:8080/x"}, ""},
		"no question":         {Form{Text: " \n", Schema: json.RawMessage(plainForm)}, "1 to 2000"},
		"a long question":     {Form{Text: strings.Repeat("é", 2001), Schema: json.RawMessage(plainForm)}, "2001 characters"},
		"neither":             {Form{Text: "Well?"}, "schema is missing"},
		"both":                {Form{Text: "Well?", URL: "https://a.example", Schema: json.RawMessage(plainForm)}, "one of them"},
		"http":                {Form{Text: "Sign in.", URL: "http://bank.example/"}, "https://"},
		"javascript":          {Form{Text: "Sign in.", URL: "javascript:alert(1)"}, "can't be parsed"},
		"a password":          {Form{Text: "Sign in.", URL: "https://me:secret@bank.example/"}, "password"},
		"a look-alike":        {Form{Text: "Sign in.", URL: "https://bаnk.example/"}, "ASCII"},
		"another loopback":    {Form{Text: "Sign in.", URL: "http://127.0.0.1.evil.example/"}, "https://"},
		"a large schema":      {field(`{"type":"string","description":"` + strings.Repeat("x", maxFormSchema) + `"}`), "may have 16384"},
		"no schema":           {Form{Text: "Well?", Schema: json.RawMessage(`{"type":`)}, "not valid JSON"},
		"no fields":           {Form{Text: "Well?", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}, "0 fields"},
		"an object":           {field(`{"type":"object"}`), `"object"`},
		"a list of texts":     {field(`{"type":"array","items":{"type":"string"}}`), "not a fixed choice of values"},
		"a reference":         {field(`{"$ref":"https://evil.example/s"}`), "stay within the schema"},
	} {
		_, err := formOf(c.form)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrForm) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The tool receives the outcome of its form. The tool's timer is paused while a form waits for an answer, and
// continues afterwards.
func TestAskingStopsTheClock(t *testing.T) {
	for state, want := range map[approvers.ElicitationState]ReplyAction{
		approvers.ElicitationAccepted: ReplyAccepted, approvers.ElicitationDeclined: ReplyDeclined, approvers.ElicitationCancelled: ReplyCancelled, approvers.ElicitationExpired: ReplyCancelled,
	} {
		synctest.Test(t, func(t *testing.T) {
			var told Reply
			var after time.Duration
			a, d := runner(func(ctx context.Context, in Invocation) (string, error) {
				time.Sleep(20 * time.Second)
				var err error
				if told, err = in.Ask(ctx, Form{Text: "Where to?", Schema: json.RawMessage(plainForm)}); err != nil {
					return "", err
				}
				began := time.Now()
				<-ctx.Done()
				after = time.Since(began)
				return "", ctx.Err()
			}, "shop.look_up")
			d.elicit = func(_ context.Context, _ string, ask workflow.Elicitation, _ func() string) (approvers.Elicitation, error) {
				time.Sleep(9 * time.Minute)
				return approvers.Elicitation{State: state, Values: json.RawMessage(`{"city":"Oslo"}`)}, nil
			}
			if err := a.Run(t.Context(), due); err != nil {
				t.Fatal(err)
			}
			if told.Action != want || (string(told.Values) == `{"city":"Oslo"}`) != (want == ReplyAccepted) {
				t.Errorf("%s: told %s %s", state, told.Action, told.Values)
			}
			if after != 10*time.Second { // ten of thirty seconds are left
				t.Errorf("%s: %s of the run's own time were left", state, after)
			}
			if got := d.results[0].result; got != "it did not answer within 30s" {
				t.Errorf("%s: %q", state, got)
			}
		})
	}
}

// If the workflow refuses a form, the tool gets an error or a cancelled form. When the process stops, the wait for an
// answer ends immediately.
func TestAskingThatCantBe(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want ReplyAction
	}{
		"paused": {workflow.ErrPaused, ReplyCancelled}, "over": {workflow.ErrNotDue, ReplyCancelled}, "too often": {workflow.ErrTooManyElicitations, ""}, "too many": {workflow.ErrTooManyWait, ""},
	} {
		a, d := runner(func(ctx context.Context, in Invocation) (string, error) {
			r, err := in.Ask(ctx, Form{Text: "Where to?", Schema: json.RawMessage(plainForm)})
			if r.Action != c.want || errors.Is(err, ErrForm) != (c.want == "") {
				t.Errorf("%s: %s, %v", name, r.Action, err)
			}
			return "done", nil
		}, "shop.look_up")
		d.elicit = func(context.Context, string, workflow.Elicitation, func() string) (approvers.Elicitation, error) {
			return approvers.Elicitation{}, c.err
		}
		if err := a.Run(t.Context(), due); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		a, d := runner(func(ctx context.Context, in Invocation) (string, error) {
			r, err := in.Ask(ctx, Form{Text: "Where to?", Schema: json.RawMessage(plainForm)})
			return string(r.Action), err
		}, "issue_refund")
		d.elicit = func(ctx context.Context, _ string, _ workflow.Elicitation, why func() string) (approvers.Elicitation, error) {
			time.AfterFunc(time.Minute, stop)
			<-ctx.Done()
			return approvers.Elicitation{State: approvers.ElicitationCancelled, Why: why()}, nil
		}
		began := time.Now()
		if err := a.Run(ctx, due); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != time.Minute || d.results[0].result != "cancel" {
			t.Errorf("after %s: %+v", took, d.results)
		}
	})
}

func TestAdmits(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer","maximum":9},"mail":{"type":"string","format":"email"}}}`)
	for values, want := range map[string]string{`{"n":3}`: "", `{"n":10}`: "n: ", `{}`: "n: ", `{"n":1,"mail":"x"}`: "mail: ", `{"n":1,"other":2}`: "other", `[]`: "the arguments"} {
		if err := Admits(schema, json.RawMessage(values)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}

// If an earlier try may have acted, and a person declines the tool's question in a later try, the tool does not ask
// again: the outcome is unknown. If no earlier try may have acted, the tool's own error is the outcome.
func TestDecliningEndsTheTries(t *testing.T) {
	unsure := fmt.Errorf("the bank hung up: %w", ErrOutcomeUnknown)
	nothing := errors.New("declined; nothing was done")
	for _, c := range []struct {
		name        string
		state       approvers.ElicitationState
		before, err error // the errors of the first try, before its question, and of each try with a question
		runs, asks  int
		want        []finished
	}{
		{"declined in the second try", approvers.ElicitationDeclined, unsure, nothing, 2, 1, []finished{{lost: true}}},
		{"declined in the second try, and then cut off", approvers.ElicitationDeclined, unsure, unsure, 2, 1, []finished{{lost: true}}},
		{"declined in the first try", approvers.ElicitationDeclined, nil, nothing, 1, 1, []finished{{result: nothing.Error()}}},
		{"declined in the first try, and then cut off", approvers.ElicitationDeclined, nil, unsure, 1, 1, []finished{{lost: true}}},
		{"declined, and then an answer", approvers.ElicitationDeclined, unsure, nil, 2, 1, []finished{{ok: true, result: "done"}}},
		{"accepted", approvers.ElicitationAccepted, unsure, nothing, 5, 4, nil}, // the sixth claim is refused
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs, asks := 0, 0
				a, d := runner(func(ctx context.Context, in Invocation) (string, error) {
					if runs++; runs == 1 && c.before != nil {
						return "", c.before
					}
					if _, err := in.Ask(ctx, Form{Text: "Really?", Schema: json.RawMessage(plainForm)}); err != nil {
						return "", err
					}
					return "done", c.err
				}, "set_price")
				d.elicit = func(context.Context, string, workflow.Elicitation, func() string) (approvers.Elicitation, error) {
					asks++
					return approvers.Elicitation{State: c.state, Values: json.RawMessage(`{}`)}, nil
				}
				err := a.Run(t.Context(), due)
				if err != nil || runs != c.runs || asks != c.asks || !reflect.DeepEqual(d.results, c.want) {
					t.Errorf("%v; ran %d times, and asked %d times, want %d and %d; recorded %+v, want %+v", err, runs, asks, c.runs, c.asks, d.results, c.want)
				}
			})
		})
	}
}
