package agent

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
)

// The log contains ids of conversations and names of tools. The log never contains messages, arguments, answers or
// the key.
func TestTheLogKeepsSecrets(t *testing.T) {
	var log bytes.Buffer
	logged := func(c *Config) {
		c.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
		c.Model.Key = "sk-secret"
	}
	d := &fakeWorkflow{brief: asked("my password is hunter2")}
	a := newAgent(d, answers(200, nil, strings.NewReader(stream(delta(says("Well, hunter2."), ""), one(0, "c1", "issue_refund", `{"order_id":"hunter2","amount":5}`), end("tool_calls")))), logged)
	if err := a.Think(t.Context(), timer); err != nil || len(d.proposals) != 1 {
		t.Fatalf("%v %+v", err, d)
	}
	a = newAgent(d, tripper(nil), logged)
	a.model.HTTP.Transport = answers(401, nil, strings.NewReader(`{"error":{"message":"wrong key"}}`))
	if err := a.Think(t.Context(), timer); err != nil || len(d.stops) != 1 {
		t.Fatalf("%v %+v", err, d)
	}
	r := testTools(func(context.Context, Invocation) (string, error) { return "hunter2", nil })
	d = &fakeWorkflow{execution: allowed(r, "issue_refund", `{"order_id":"hunter2","amount":5}`)}
	a = newAgent(d, nil, logged, func(c *Config) { c.Tools = r })
	if err := a.Run(t.Context(), due); err != nil || len(d.results) != 1 {
		t.Fatalf("%v %+v", err, d)
	}
	for _, secret := range []string{"hunter2", "sk-secret"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%q is in the log:\n%s", secret, &log)
		}
	}
	for _, want := range []string{`"conversation":"conv_1"`, `"tool":"issue_refund"`, `"request":"req_1"`, `"turn":"turn_1"`, "wrong key"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in the log:\n%s", want, &log)
		}
	}
}
