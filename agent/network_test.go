package agent

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"countersign/internal/demo/scriptedmodel"
)

// TestOverTheNetwork repeats some malformed answers over real connections, because net/http reports a server's errors
// in its own way.
func TestOverTheNetwork(t *testing.T) {
	reply := scriptedmodel.Reply{Content: "I look.", Calls: []scriptedmodel.Call{
		{ID: "c1", Name: "issue_refund", Arguments: good}, {ID: "c2", Name: "set_price", Arguments: `{"price":1}`},
	}}
	const taken cause = -1
	for name, c := range map[string]struct {
		fault scriptedmodel.Fault
		want  cause
	}{
		"as it should be":        {scriptedmodel.Fault{}, taken},
		"pieces in turns":        {scriptedmodel.Fault{Interleave: true}, taken},
		"one id for all":         {scriptedmodel.Fault{DuplicateIDs: true}, taken},
		"calls that end in stop": {scriptedmodel.Fault{Finish: "stop"}, taken},
		"cut":                    {scriptedmodel.Fault{Cut: true, CutAfter: 3}, causeCut},
		"cut at once":            {scriptedmodel.Fault{Cut: true}, causeCut},
		"an error in the middle": {scriptedmodel.Fault{Cut: true, CutAfter: 3, StreamError: true}, causeDown},
		"busy":                   {scriptedmodel.Fault{Status: 429, RetryAfter: time.Second}, causeBusy},
		"down":                   {scriptedmodel.Fault{Status: 502}, causeDown},
		"silent":                 {scriptedmodel.Fault{Hang: true}, causeDown},
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.NewScript(reply), APIKey: "k", Fault: c.fault})
			s.Inject(c.fault)
			web := httptest.NewServer(s)
			defer web.Close()
			d := &fakeWorkflow{brief: asked("Refund A")}
			a := newAgent(d, nil, func(cfg *Config) {
				cfg.Model = Model{BaseURL: web.URL + "/v1/", Key: "k", Name: scriptedmodel.DefaultModel, HTTP: web.Client()}
				if c.fault.Hang {
					cfg.Model.Timeout = 50 * time.Millisecond
				}
			})
			_, r, err := a.answer(t.Context(), d.brief, false, noWords)
			var f *failure
			switch {
			case errors.As(err, &f):
				if f.cause != c.want || !f.worth {
					t.Errorf("cause %d: %v", f.cause, f)
				}
			case err != nil || c.want != taken || r.text != "I look." || len(r.calls) != 2 || r.calls[0].Args != good || r.calls[1].Args != `{"price":1}`:
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// If no server listens at the address, the call fails with an error that allows a retry. Ping reports the error.
func TestNobodyListens(t *testing.T) {
	d := &fakeWorkflow{brief: asked("Refund A")}
	a := newAgent(d, nil, func(c *Config) { c.Model = Model{BaseURL: "http://127.0.0.1:1", Name: "m"} })
	if err := a.Think(t.Context(), timer); err != nil || len(d.postponed) != 1 {
		t.Errorf("%v %+v", err, d.stops)
	}
	if err := a.Ping(context.Background()); !errors.Is(err, ErrModelUnreachable) {
		t.Errorf("%v", err)
	}
}
