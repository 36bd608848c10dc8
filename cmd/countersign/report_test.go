package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/task"
	"countersign/store"
)

// The command pending shows the state of a run that the operator names. Only if the outcome is unknown, it says so, and
// asks for a report. The command report says why it records nothing.
func TestOneRun(t *testing.T) {
	inRun(t, []agent.Tool{
		{Name: "fine", Effect: approvers.ReadOnly, Run: func(context.Context, agent.Invocation) (string, error) { return "found it", nil }},
		{Name: "fragile", Effect: approvers.Unprotected, Run: func(context.Context, agent.Invocation) (string, error) {
			return "", agent.ErrOutcomeUnknown
		}},
	}, func(b *synctestHarness) {
		b.says("run fine\nrun fragile")
		ids := map[string]string{}
		b.within(time.Minute, "both runs to end", func() bool {
			b.view(func(r store.Reader) error {
				for _, turn := range b.allTurns(r) {
					calls, err := r.Calls(turn)
					if err != nil {
						return err
					}
					for _, c := range calls {
						if e, err := r.Execution(c.Execution); err == nil && !e.FinishedAt.IsZero() {
							ids[e.Tool] = e.ID
						}
					}
				}
				return nil
			})
			return len(ids) == 2
		})
		running := func() (*workflow.Workflow, error) { return b.bot.workflow, nil }
		do := func(name string, options any) string {
			var out bytes.Buffer
			w := task.Env{Store: b.db, Workflow: running, Bare: running, Who: approvers.Operator("root"), Out: &out, Path: "store.db"}
			if err := runTask(b.ctx, name, w, options); err != nil {
				return err.Error()
			}
			if name != "pending" {
				return out.String()
			}
			p, err := parsePending(out.Bytes())
			b.ok(err)
			out.Reset()
			p.print(&out, true)
			return out.String()
		}
		report := func(tool string, what workflow.Report) string {
			return do("report", finding{Execution: ids[tool], What: what, Reason: "seen"})
		}
		says := func(text string, has []string, hasNot ...string) {
			b.Helper()
			for _, words := range has {
				if !strings.Contains(text, words) {
					b.Errorf("it does not say %q:\n%s", words, text)
				}
			}
			for _, words := range hasNot {
				if strings.Contains(text, words) {
					b.Errorf("it says %q:\n%s", words, text)
				}
			}
		}
		says(do("pending", ids["fine"]), []string{"fine · succeeded\n", "Result: found it\n"}, "unknown", "0001-01-01", "countersign report")
		says(do("pending", ids["fragile"]), []string{"fragile · it is unknown whether it happened\n", "; the agent is told that the outcome is unknown at 20", "countersign report " + ids["fragile"]}, "0001-01-01")
		says(report("fine", workflow.Happened), []string{"nothing was reported: the run ended at 20"}, "decided")
		says(do("decide", operatorDecision{Request: ids["fine"], Reason: "no"}), []string{"there is no request " + ids["fine"]})
		says(report("fragile", workflow.Leave), []string{"Reported as operator:root."})
		says(report("fragile", workflow.Leave), []string{"nothing was reported: the agent already has a result, or was told that the outcome is unknown"})
		says(do("pending", ids["fragile"]), []string{"it is unknown whether it happened\n", "countersign report"}, "0001-01-01", "is told that")
		says(report("fragile", workflow.DidNot), []string{"Reported as operator:root."})
		says(report("fragile", workflow.DidNot), []string{"nothing was reported: operator:root reported the outcome before, at 20"})
		says(do("pending", ids["fragile"]), []string{"fragile · failed\n", "reported by operator:root\n"}, "countersign report")
	})
}
