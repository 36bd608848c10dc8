package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

var duePreview = store.Timer{Kind: store.TimerPreview, Ref: "req_1"}

// newPreviewAgent returns an agent and a workflow that requests a preview. The preview comes from a tool that the
// policy names for it. look is the function of this tool.
func newPreviewAgent(t *testing.T, look func(context.Context, Invocation) (string, error)) (*Agent, *fakeWorkflow) {
	t.Helper()
	var r Registry
	companion := Tool{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object"}`), Effect: approvers.ReadOnly, Run: look, Timeout: time.Hour}
	if err := r.Register(companion); err != nil {
		t.Fatal(err)
	}
	d := &fakeWorkflow{previewing: workflow.PreviewCall{
		Request: "req_1", Conversation: "conv_1", Turn: "turn_1", Asker: "T1/U1", Digest: "d", Key: "preview_exec_1", Tool: "look", ToolHash: companion.hash(),
		Args: json.RawMessage(`{"amount": 1.10}`), Within: 5 * time.Second,
	}}
	a := newAgent(d, nil, func(c *Config) { c.Tools = &r })
	return a, d
}

// TestPreviewCalls checks that the tool gets the exact bytes, and a key that differs from the execution's key. The
// workflow gets the tool's answer.
func TestPreviewCalls(t *testing.T) {
	var got Invocation
	a, d := newPreviewAgent(t, func(_ context.Context, in Invocation) (string, error) {
		got = in
		return "Would refund 1.10", nil
	})
	if err := a.Preview(t.Context(), duePreview); err != nil {
		t.Fatal(err)
	}
	if got.Key != "preview_exec_1" || string(got.Args) != `{"amount": 1.10}` || got.Conversation != "conv_1" || got.Turn != "turn_1" || got.Request != "req_1" || got.Asker != "T1/U1" {
		t.Errorf("%+v", got)
	}
	if len(d.previews) != 1 || d.previews[0] != (approvers.PreviewAnswer{Text: "Would refund 1.10"}) {
		t.Errorf("%+v", d.previews)
	}
	d.previewing.Tool = "" // the workflow requests no preview
	if err := a.Preview(t.Context(), duePreview); err != nil || len(d.previews) != 1 {
		t.Errorf("%v, %+v", err, d.previews)
	}
}

// TestPreviewItself checks a tool with a Preview function: the agent calls Preview, and not Run.
func TestPreviewItself(t *testing.T) {
	a, d := newPreviewAgent(t, nothing)
	ran := false
	tool := Func("look", "Looks.", approvers.Idempotent, func(context.Context, Invocation, struct {
		Amount Decimal `json:"amount"`
	}) (string, error) {
		ran = true
		return "done", nil
	})
	tool.Preview = Typed(func(_ context.Context, _ Invocation, args struct {
		Amount Decimal `json:"amount"`
	}) (string, error) {
		return "Refund of " + args.Amount.String(), nil
	})
	var r Registry
	if err := r.Register(tool); err != nil {
		t.Fatal(err)
	}
	if pinned, _ := r.Tool("look"); !pinned.Previews {
		t.Error("the workflow does not know that the tool makes its own preview")
	}
	a.Tools, d.previewing.ToolHash, d.previewing.Own = &r, tool.hash(), true
	if err := a.Preview(t.Context(), duePreview); err != nil || ran || len(d.previews) != 1 || d.previews[0].Text != "Refund of 1.10" {
		t.Errorf("%v, ran %v, %+v", err, ran, d.previews)
	}
}

// TestPreviewFails checks many ways in which a preview can fail. At the latest shortly after the time limit, the
// workflow gets the reason as one sentence. The process does not crash. At INFO, the log does not have the reason.
func TestPreviewFails(t *testing.T) {
	for _, c := range []struct {
		name string
		look func(context.Context, Invocation) (string, error)
		want approvers.PreviewAnswer
		took time.Duration
	}{
		{"an error", func(context.Context, Invocation) (string, error) { return "", errors.New("there is no order ORD-9") }, approvers.PreviewAnswer{Text: "there is no order ORD-9", No: "there is no order ORD-9"}, 0},
		{"an error without words", func(context.Context, Invocation) (string, error) { return "", errors.New("") }, approvers.PreviewAnswer{Fault: "look: it failed without saying why"}, 0},
		{"a secret in an error", func(context.Context, Invocation) (string, error) {
			return "", errors.New("GET https://u:hunter22@shop.example: 500")
		}, approvers.PreviewAnswer{Text: "GET https://(removed)@shop.example: 500", No: "GET https://(removed)@shop.example: 500"}, 0},
		{"a broken connection", func(context.Context, Invocation) (string, error) {
			return "", fmt.Errorf("get: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})
		}, approvers.PreviewAnswer{Fault: "look: get: dial: connection refused"}, 0},
		{"it does not know", func(context.Context, Invocation) (string, error) {
			return "", fmt.Errorf("lost: %w", ErrOutcomeUnknown)
		}, approvers.PreviewAnswer{Fault: "look: lost: it is unknown whether this happened"}, 0},
		{"the source refuses", func(context.Context, Invocation) (string, error) { return "", Refused("the order is closed") }, approvers.PreviewAnswer{Text: "the order is closed", No: "the order is closed"}, 0},
		{"a panic", func(context.Context, Invocation) (string, error) { panic("no") }, approvers.PreviewAnswer{Fault: "look: the tool failed in the middle of its work"}, 0},
		{"it hangs", func(ctx context.Context, _ Invocation) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, approvers.PreviewAnswer{Fault: "look: it did not answer within 5s"}, 5 * time.Second},
		{"it hangs for good", func(context.Context, Invocation) (string, error) {
			time.Sleep(time.Hour)
			return "", nil
		}, approvers.PreviewAnswer{Fault: "look: it did not answer within 5s"}, 5*time.Second + patience},
		{"too much", func(context.Context, Invocation) (string, error) { return strings.Repeat("é", 1<<20), nil }, approvers.PreviewAnswer{Text: strings.Repeat("é", maxToolPreviewBytes/2) + "…"}, 0},
		{"no UTF-8", func(context.Context, Invocation) (string, error) { return "a\xffb", nil }, approvers.PreviewAnswer{Text: "a\uFFFDb"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, d := newPreviewAgent(t, c.look)
				var lines bytes.Buffer
				a.Log = slog.New(slog.NewTextHandler(&lines, nil))
				began := time.Now()
				if err := a.Preview(t.Context(), duePreview); err != nil {
					t.Fatal(err)
				}
				if len(d.previews) != 1 || d.previews[0] != c.want || time.Since(began) != c.took {
					t.Errorf("after %s: %.200q", time.Since(began), fmt.Sprint(d.previews))
				}
				if err := a.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(lines.String()) {
					if strings.Contains(line, "level=INFO") && c.want.Text != "" && strings.Contains(line, c.want.Text) {
						t.Errorf("the log has the tool's text: %s", line)
					}
				}
			})
		})
	}
	a, d := newPreviewAgent(t, nothing)
	d.previewing.ToolHash = "another"
	if err := a.Preview(t.Context(), duePreview); err != nil || d.previews[0].Fault != "look: its definition was changed in the meantime" {
		t.Errorf("%v, %+v", err, d.previews)
	}
}

// TestPreviewIsInterrupted checks that a preview is started again after a pause or a stop of the process. If the
// request is decided during the preview, the preview is discarded.
func TestPreviewIsInterrupted(t *testing.T) {
	for _, c := range []struct {
		cause error
		back  int
	}{{workflow.ErrPaused, 1}, {workflow.ErrStopped, 0}, {nil, 1}} {
		synctest.Test(t, func(t *testing.T) {
			a, d := newPreviewAgent(t, func(ctx context.Context, _ Invocation) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
			d.previewing.Within = 30 * time.Second
			a.Grace = time.Second
			stopping, stop := context.WithCancel(t.Context())
			defer stop()
			ctx, interrupt, done := workflow.Interruptible(stopping)
			defer done()
			time.AfterFunc(2*time.Second, func() {
				if c.cause == nil {
					stop()
				} else {
					interrupt(c.cause)
				}
			})
			err := a.Preview(ctx, duePreview)
			if (err != nil) != (c.cause == nil) || d.previewsBack != c.back || len(d.previews) != 0 {
				t.Errorf("%v: %v, put back %d times, %+v", c.cause, err, d.previewsBack, d.previews)
			}
		})
	}
}
