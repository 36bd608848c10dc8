package agent

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"countersign/internal/demo/scriptedmodel"
)

func TestTry(t *testing.T) {
	words := scriptedmodel.ResponderFunc(func(context.Context, scriptedmodel.Request) (scriptedmodel.Reply, error) {
		return scriptedmodel.Reply{Content: "I am here."}, nil
	})
	for name, c := range map[string]struct {
		responder scriptedmodel.Responder
		key, path string
		model     string
		want      error
		called    bool
	}{
		"a model with tools":      {nil, "sk-key", "/v1", scriptedmodel.DefaultModel, nil, true},
		"one that only talks":     {words, "sk-key", "/v1", scriptedmodel.DefaultModel, nil, false},
		"another key":             {nil, "sk-old", "/v1", scriptedmodel.DefaultModel, ErrModelKey, false},
		"no such model":           {nil, "sk-key", "/v1", "gpt-none", ErrNoModel, false},
		"nobody at the address":   {nil, "sk-key", "", scriptedmodel.DefaultModel, ErrModelUnreachable, false},
		"an address of other use": {nil, "sk-key", "/elsewhere", scriptedmodel.DefaultModel, ErrNoModel, false},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(scriptedmodel.New(scriptedmodel.Config{APIKey: "sk-key", Responder: c.responder}))
			defer srv.Close()
			at := srv.URL + c.path
			if c.path == "" {
				at = "http://127.0.0.1:1/v1"
			}
			trial, err := Try(t.Context(), Model{BaseURL: at, Key: c.key, Name: c.model})
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if trial.Called != c.called {
				t.Errorf("called: %t, want %t", trial.Called, c.called)
			}
		})
	}
}
