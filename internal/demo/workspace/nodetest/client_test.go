package nodetest

import (
	"strings"
	"testing"

	"countersign/internal/demo/workspace/delivery"
)

// For Socket Mode and for HTTP, the test does all steps in order, with one app and one workspace.
func TestOfficialClient(t *testing.T) {
	for name, newHarness := range map[string]func(*testing.T) *harness{"Socket Mode": overSockets, "HTTP": overHTTP} {
		t.Run(name, func(t *testing.T) { steps(t, newHarness(t)) })
	}
}

// An app with another signing secret rejects the challenge, which is the first request.
func TestSignaturesAreChecked(t *testing.T) {
	d := newHarness(t, "SLACK_SIGNING_SECRET="+strings.Repeat("0", 32))
	err := d.srv.SetRequestURLs(t.Context(), delivery.URLsAt(d.url()))
	if err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("an app with another signing secret: %v", err)
	}
}

func steps(t *testing.T, d *harness) {
	for _, step := range []struct {
		name string
		run  func(t *testing.T, d *harness)
	}{
		{"messages", messages},
		{"mentions", mentions},
		{"edits, reactions and members", changes},
		{"presses and choices", choices},
		{"ephemeral messages", ephemerals},
		{"forms opened", formOpened},
		{"forms submitted", formSubmitted},
		{"forms stacked and closed", formStacked},
		{"slash commands", slashCommands},
		{"shortcuts", shortcuts},
		{"App Home", appHome},
		{"the agent's threads", agentThreads},
		{"streams", streams},
		{"files", files},
		{"people's files", attachments},
		{"pages of lists", pages},
		{"people and groups", people},
		{"errors", refusals},
		{"rate limits", rateLimits},
	} {
		t.Run(step.name, func(t *testing.T) {
			d.t = t
			step.run(t, d)
		})
	}
}
