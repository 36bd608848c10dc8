package nodetest

import (
	"strings"
	"testing"

	"countersign/internal/demo/workspace/delivery"
)

// In each of Slack's two ways of connecting, one app and one workspace serve all the steps, one after the other, as an
// app in a real workspace would.
func TestOfficialClient(t *testing.T) {
	for name, newDesk := range map[string]func(*testing.T) *desk{"Socket Mode": overSockets, "HTTP": overHTTP} {
		t.Run(name, func(t *testing.T) { steps(t, newDesk(t)) })
	}
}

// An app that was given another signing secret takes nothing from the workspace, not even the challenge that comes
// first.
func TestSignaturesAreChecked(t *testing.T) {
	d := newDesk(t, "SLACK_SIGNING_SECRET="+strings.Repeat("0", 32))
	err := d.srv.SetRequestURLs(t.Context(), delivery.URLsAt(d.url()))
	if err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("an app with another signing secret: %v", err)
	}
}

func steps(t *testing.T, d *desk) {
	for _, step := range []struct {
		name string
		run  func(t *testing.T, d *desk)
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
