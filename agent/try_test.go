package agent

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/internal/demo/scriptedmodel"
)

func TestTry(t *testing.T) {
	words := scriptedmodel.ResponderFunc(func(context.Context, scriptedmodel.Request) (scriptedmodel.Reply, error) {
		return scriptedmodel.Reply{Content: "I am here."}, nil
	})
	tools := new(Registry)
	text := strings.Repeat("looks up an order ", 50)
	if err := tools.Register(Func("lookup", text, approvers.ReadOnly, func(context.Context, Invocation, struct{}) (string, error) {
		t.Error("the tool was called")
		return "", nil
	})); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		responder scriptedmodel.Responder
		key, path string
		model     string
		context   int
		want      error
		called    bool
	}{
		"a model with tools":       {nil, "sk-key", "/v1", scriptedmodel.DefaultModel, 0, nil, true},
		"one that only talks":      {words, "sk-key", "/v1", scriptedmodel.DefaultModel, 0, nil, false},
		"another key":              {nil, "sk-old", "/v1", scriptedmodel.DefaultModel, 0, ErrModelKey, false},
		"no such model":            {nil, "sk-key", "/v1", "gpt-none", 0, ErrNoModel, false},
		"nobody at the address":    {nil, "sk-key", "", scriptedmodel.DefaultModel, 0, ErrModelUnreachable, false},
		"tools beyond its context": {nil, "sk-key", "/v1", scriptedmodel.DefaultModel, 200, ErrToolsTooLong, false},
		"an address of other use":  {nil, "sk-key", "/elsewhere", scriptedmodel.DefaultModel, 0, ErrNoModel, false},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(scriptedmodel.New(scriptedmodel.Config{APIKey: "sk-key", Responder: c.responder, ContextTokens: c.context}))
			defer srv.Close()
			at := srv.URL + c.path
			if c.path == "" {
				at = "http://127.0.0.1:1/v1"
			}
			trial, err := Try(t.Context(), Model{BaseURL: at, Key: c.key, Name: c.model}, tools.Offered(approvers.Agent{Tools: []string{"*"}}, &approvers.Policy{}))
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if trial.Called != c.called {
				t.Errorf("called: %t, want %t", trial.Called, c.called)
			}
		})
	}
}
