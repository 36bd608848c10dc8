package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"countersign/approvers/workflow"
)

// askBody returns the assembled answer of an endpoint that sends this body.
func askBody(body io.Reader) (reply, error) {
	a := newAgent(&fakeWorkflow{}, answers(200, nil, body))
	return a.model.ask(context.Background(), request("m", modelRequest{}, nil, false), a.Tools.named, noWords)
}

// A server may split the calls of an answer at any character. The assembled calls have exactly the bytes that the model
// wrote.
func TestPiecesComeTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []workflow.ModelCall
		var queues [][]string
		for i := range rapid.IntRange(1, 5).Draw(t, "calls") {
			c := workflow.ModelCall{
				ID:   fmt.Sprint("call_", i),
				Tool: rapid.SampledFrom([]string{"issue_refund", "set_price", "no_such_tool"}).Draw(t, "tool"),
				Args: rapid.OneOf(rapid.Just(good), rapid.StringMatching(`[ -~é😀\n]{1,40}`)).Draw(t, "args"),
			}
			want = append(want, c)
			rest := []rune(c.Args)
			pieces := []string{piece(i, c.ID, c.Tool, "")}
			for len(rest) > 0 {
				n := rapid.IntRange(1, len(rest)).Draw(t, "length")
				pieces = append(pieces, piece(i, "", "", string(rest[:n])))
				rest = rest[n:]
			}
			queues = append(queues, pieces)
		}
		var events []string
		begun := 0
		for left := len(queues); left > 0; {
			// The calls begin in order. After that, the pieces of the calls come in any order.
			k := rapid.IntRange(0, min(begun, len(queues)-1)).Draw(t, "next")
			begun = max(begun, k+1)
			if len(queues[k]) == 0 {
				k = slices.IndexFunc(queues[:min(begun+1, len(queues))], func(q []string) bool { return len(q) > 0 })
				begun = max(begun, k+1)
			}
			events = append(events, delta(calls(queues[k][0]), ""))
			if queues[k] = queues[k][1:]; len(queues[k]) == 0 {
				left--
			}
		}
		got, err := askBody(strings.NewReader(stream(append(events, end("tool_calls"), "[DONE]")...)))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.calls, want) {
			t.Fatalf("got %q\nwant %q", got.calls, want)
		}
	})
}

// An answer may be cut off at any byte. The agent uses an answer completely or not at all.
func TestCutAtEveryByte(t *testing.T) {
	whole := stream(delta(says("I look."), ""), one(0, "c1", "issue_refund", good[:9]), one(1, "c2", "set_price", `{"price":1}`),
		one(0, "", "", good[9:]), end("tool_calls"), "[DONE]")
	want := []workflow.ModelCall{{ID: "c1", Tool: "issue_refund", Args: good}, {ID: "c2", Tool: "set_price", Args: `{"price":1}`}}
	finish := strings.Index(whole, `"finish_reason":"tool_calls"`)
	for i := range len(whole) + 1 {
		for _, broken := range []error{io.EOF, errReset, io.ErrUnexpectedEOF} {
			got, err := askBody(io.MultiReader(strings.NewReader(whole[:i]), brokenOff{broken}))
			var f *failure
			switch {
			case err == nil && i > finish && slices.Equal(got.calls, want) && got.text == "I look.":
			case errors.As(err, &f) && f.worth && i < len(whole)-len("data: [DONE]\n\n"):
			default:
				t.Fatalf("cut after %d of %d bytes by %v: %+v, %v", i, len(whole), broken, got, err)
			}
		}
	}
}

// For any answer of an endpoint, the agent does not crash, and the limits hold. The agent does not accept an empty
// answer.
func FuzzAnswer(f *testing.F) {
	for _, c := range malformedAnswers {
		if len(c.body) < 5000 {
			f.Add(c.body)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, err := askBody(strings.NewReader(body))
		var bad *failure
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("not a failure: %v", err)
		}
		if err != nil && sentences[bad.cause] == "" {
			t.Fatalf("nobody is told: %v", err)
		}
		if err == nil && strings.TrimSpace(got.text) == "" && len(got.calls) == 0 {
			t.Fatal("an empty answer was taken")
		}
		if len(got.calls) > maxCalls+1 || len(got.text) > maxContent {
			t.Fatalf("%d calls, %d bytes of text", len(got.calls), len(got.text))
		}
	})
}
