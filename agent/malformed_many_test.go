package agent

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// badArguments are invalid arguments of a call. A call with bad arguments must be refused: it must not run in part,
// and must not be repaired.
var badArguments = map[string]string{
	"cut": good[:12], "cut in a string": `{"amount":5,"order_id":"A`, "cut in a number": `{"order_id":"A","amount":50`, "cut at the end": good[:len(good)-1],
	"nothing": "", "space": " ", "null": "null", "a list": "[" + good + "]", "a text": `"{}"`, "twice": good + good, "a tail": good + "}", "a fence": "```json\n" + good + "\n```",
	"words before": "Sure: " + good, "a trailing comma": `{"order_id":"A","amount":5,}`, "single quotes": `{'order_id':'A','amount':5}`, "bare names": `{order_id:"A",amount:5}`,
	"a comment": `{"order_id":"A"/**/,"amount":5}`, "a name twice": `{"order_id":"A","amount":5,"amount":5000}`, "a name twice in other case": `{"order_id":"A","amount":5,"AMOUNT":1}`,
	"an unknown name": `{"order_id":"A","amount":5,"x":1}`, "a missing name": `{"amount":5}`, "another type": `{"order_id":"A","amount":"5"}`, "no number": `{"order_id":"A","amount":Infinity}`,
	"a leading zero": `{"order_id":"A","amount":05}`, "half a pair": `{"order_id":"\ud800","amount":5}`, "out of range": `{"order_id":"A","amount":1e400}`,
	"Python": `{"order_id":"A","amount":None}`, "a control character": "{\"order_id\":\"A\nB\",\"amount\":5}", "a byte order mark": "\ufeff" + good,
}

// finishes lists finish reasons of answers with bad arguments. The value true means that a good call in the same
// answer is accepted.
var finishes = map[string]bool{"tool_calls": true, "stop": true, "eos": true, "length": false, "content_filter": false}

// inPieces lists ways to split a text into pieces.
var inPieces = map[string]func(string) []string{
	"whole": func(s string) []string { return []string{s} },
	"halves": func(s string) []string {
		r := []rune(s)
		return []string{string(r[:len(r)/2]), string(r[len(r)/2:])}
	},
	"letters": func(s string) []string { return strings.Split(s, "") },
}

// TestMalformedCombinations tries all combinations of bad arguments, ways to send them, and finish reasons. The bad
// call is the only call of the answer, or one of two calls.
func TestMalformedCombinations(t *testing.T) {
	strict := strictModel()
	cases, repaired, invalid := 0, 0, 0
	try := func(name string, finish string, believed bool, bad string, split func(string) []string, beside bool) {
		cases++
		events := []string{one(0, "c1", "issue_refund", "")}
		for _, piece := range split(bad) {
			events = append(events, one(0, "", "", piece))
		}
		if beside {
			events = append(events, one(1, "c2", "set_price", `{"price":1}`))
		}
		d := &fakeWorkflow{brief: asked("Refund order A")}
		a := newAgent(d, answers(http.StatusOK, nil, strings.NewReader(stream(append(events, end(finish), "[DONE]")...))))
		offered := a.Tools.Offered(d.brief.Agent, d.brief.Policy)
		r, err := a.model.ask(t.Context(), request("m", compose(d.brief, offered, 1<<20, a.Now(), false), offered, false), a.Tools.named, noWords)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		step, runs, _ := propose(a, r.calls)
		want := ""
		if beside && believed {
			want = `set_price {"price":1}`
		}
		if got := strings.Join(runs, "\n"); got != want {
			repaired++
			t.Errorf("%s: it runs %q, want %q", name, got, want)
		}
		before := t.Failed()
		validAfter(t, strict, d.brief, r.text, step)
		if t.Failed() && !before {
			invalid++
		}
	}
	for kind, bad := range badArguments {
		for finish, believed := range finishes {
			for way, split := range inPieces {
				for _, beside := range []bool{false, true} {
					name := fmt.Sprintf("%s, in %s, ends with %s, beside another: %t", kind, way, finish, beside)
					try(name, finish, believed, bad, split, beside)
				}
			}
		}
	}
	t.Logf("answers=%d crashes=0 repaired=%d invalid_histories=%d (and %d more of TestMalformedAnswers)", cases, repaired, invalid, len(malformedAnswers))
}
