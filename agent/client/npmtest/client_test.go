// Package npmtest compiles the TypeScript client, and tests the client against a fake gateway with faults. TestSDKs in
// cmd/countersign runs the client and its adapters against a real bot.
package npmtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"countersign/internal/testkit/fakegateway"
	"countersign/internal/testkit/sdks"
)

func approve(r *fakegateway.Request) { r.Status = "approved" }

// The client handles faults of the gateway, faults of the connection to the gateway, and rare decisions.
func TestClient(t *testing.T) {
	p := sdks.Compile(t, "../../..")
	g := fakegateway.New(t, "../../gateway/openapi.json")
	g.OnAsk(func(r *fakegateway.Request) {
		r.Status = "approved"
		switch r.Key {
		case "question":
			r.Status, r.Questions = "pending", []map[string]any{{"question": 0, "text": "Why now?", "by": "Team Lead"}}
		case "late-answer":
			r.Status, r.Questions = "pending", []map[string]any{{"question": 0, "text": "Still?", "by": "Team Lead"}}
		case "cut-poll", "stopped":
			r.Status = "pending"
		case "expired":
			r.Status, r.Reason = "expired", "it was approved but could not be started in time"
		case "shown-rejected":
			r.Status, r.Reason = "rejected", "not now"
		case "edited", "shown-edited":
			r.Edited, r.Reason = `{"n":2}`, "half"
		case "other-bytes":
			r.Edited = `{"n":2}`
		case "running":
			r.Status = "running"
		}
	})
	seen := map[string]int{}
	g.Fault(func(w http.ResponseWriter, req *http.Request) bool {
		id, action, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/v1/requests/"), "/")
		name := id
		for _, r := range g.Requests() {
			if r.ID == id {
				name = r.Key
			}
		}
		if req.URL.Path == "/v1/requests" {
			name, action = req.Header.Get("Idempotency-Key"), "ask"
		}
		seen[name+" "+action]++
		if action == "" && req.Header.Get("If-None-Match") == "" {
			t.Errorf("%s: the client waits for the decision and not for the next change, which can be a question", name)
		}
		switch name + " " + action {
		case "busy ask":
			if seen[name+" "+action] > 1 {
				return false
			}
			fakegateway.Problem(w, http.StatusServiceUnavailable, "unavailable", "the store is busy")
		case "claim-unread claim": // the claim is stored, and the gateway can't read the request for its answer
			g.Change(id, func(r *fakegateway.Request) { r.Status = "running" })
			fakegateway.Problem(w, http.StatusServiceUnavailable, "unavailable", "the store is busy")
		case "claim-lost claim":
			panic(http.ErrAbortHandler)
		case "report-lost outcome":
			http.Error(w, "<h1>Bad gateway</h1>", http.StatusBadGateway)
		case "older-replica outcome": // does not know the field run
			body, err := io.ReadAll(req.Body)
			switch {
			case err != nil:
				t.Error(err)
			case bytes.Contains(body, []byte(`"run"`)):
				fakegateway.Problem(w, http.StatusBadRequest, "invalid_request", `"run" is not a name that is known here`)
				return true
			}
			g.Change(id, func(r *fakegateway.Request) { r.Status, r.Outcome = "succeeded", string(body) })
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":%q,"status":"succeeded","args_sha256":%q}`, id, fakegateway.Hash(`{}`))
		case "other-bytes ask":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"req_x","status":"approved","args_sha256":%q,"decision":{"type":"edit","args_json":"{\"n\":3}","by":[]}}`, fakegateway.Hash(`{"n":2}`))
		case "late-answer answer": // the approver has decided, so the question needs no answer any more
			g.Change(id, approve)
			fakegateway.Problem(w, http.StatusConflict, "no_question", "there is no such question")
		case "reopened claim":
			if seen["reopened claim"] > 1 {
				return false
			}
			g.Change(id, func(r *fakegateway.Request) { r.Status = "pending" })
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			fmt.Fprintf(w, `{"type":"urn:countersign:problem:not_approved","title":"The call is not approved now.","status":409,"id":%q,"request_status":"pending"}`, id)
		case "reopened ":
			g.Change(id, approve)
			return false
		case "paused claim":
			fakegateway.Problem(w, http.StatusServiceUnavailable, "paused", "")
		case "unrun ask":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"req_y","status":"failed","args_sha256":%q,"disposition":"denied-not-executed","reason":"the tool has changed"}`, fakegateway.Hash(`{}`))
		case "lost ask": // the store was restored from a backup
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"req_z","status":"voided","args_sha256":%q,"disposition":"outcome-unknown","reason":"check first"}`, fakegateway.Hash(`{}`))
		case "records-lost ask":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"req_z","status":"unknown","args_sha256":%q,"disposition":"outcome-unknown","reason":"its records are lost"}`, fakegateway.Hash(`{}`))
		case "cut-poll ": // the connection breaks after more time than the client's patience
			if seen["cut-poll "] == 1 {
				time.Sleep(600 * time.Millisecond)
				panic(http.ErrAbortHandler)
			}
			g.Change(id, approve)
			return false
		case "stopped-in-pause ask":
			w.Header().Set("Retry-After", "600")
			fakegateway.Problem(w, http.StatusServiceUnavailable, "unavailable", "the store is busy")
		default:
			return false
		}
		return true
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // only a fault reaches the limit
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Node, "core.js")
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.Dir, &out, &out
	cmd.Env = append(os.Environ(), "GATE="+g.URL, "TOKEN="+fakegateway.Token)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	list := g.Await("the question is answered", func(list []fakegateway.Request) bool {
		return len(list) == 2 && list[1].Questions[0]["answer"] != nil
	})
	if got := list[1].Questions[0]["answer"]; got != "question says: because Why now?" {
		t.Errorf("the answer is %q", got)
	}
	g.Change(list[1].ID, approve)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	want := `bytes ran: { "amount" : 12345678901234567890.10, "note":"<a & ü>" }
bytes returns: {"done":"bytes"}
question ran: {}
question returns: {"done":"question"}
busy ran: {}
busy returns: {"done":"busy"}
claim-lost throws: the response to the claim was lost, so the tool did not run
report-lost ran: {}
warned: countersign: the outcome of req_5 was not reported: the gateway, or something before it, answered 502 Bad Gateway
report-lost returns: {"done":"report-lost"}
older-replica ran: {}
older-replica returns: {"done":"older-replica"}
edited ran: {"n":2}
edited returns: {"note":"An approver changed the arguments of the call to {\"n\":2}. The reason: half","result":{"done":"edited"}}
other-bytes throws: the arguments do not match the hash that the gateway approved
running throws a refusal: The call may have run: its outcome is not known. People are asked what happened. Don't try it in another way.
no-object throws a refusal: The call did not run, because its arguments are not a JSON object.
no-json throws a refusal: The call did not run, because its arguments are not a JSON object.
über throws: the gateway takes no such id of a call: "über"
late-answer ran: {}
late-answer returns: {"done":"late-answer"}
reopened ran: {}
reopened returns: {"done":"reopened"}
paused throws a refusal: The call did not run, because people have paused all runs.
expired throws a refusal: The call expired, and did not run: it was approved but could not be started in time
unrun throws a refusal: The call did not run: the tool has changed
lost throws a refusal: It is not known whether the call was decided, or ran: check first
records-lost throws a refusal: It is not known whether the call was decided, or ran: its records are lost
claim-unread throws: the response to the claim was lost, so the tool did not run
cut-poll ran: {}
cut-poll returns: {"done":"cut-poll"}
stopped waits for Team Lead until 2026-11-27T10:00:00Z
stopped throws: This operation was aborted
stopped-in-pause throws: The operation was aborted due to timeout
circular returns the tool's result: true
bigint returns the tool's result: true
bigint-inside returns the tool's result: true
surrogate returns the tool's result: true
bare returns the tool's result: true
shown: {"type":"content","value":[{"type":"text","text":"shown"}]}
shown-edited: {"type":"content","value":[{"type":"text","text":"An approver changed the arguments of the call to {\"n\":2}. The reason: half"},{"type":"text","text":"shown-edited"}]}
shown-rejected: {"type":"text","value":"The call was rejected by Team Lead, and did not run: not now"}
refused: http://example.com
refused: ftp://127.0.0.1
refused: https://user@example.com
refused: https://example.com?x=1
the tool search is not gated, so settle can't decide about its call
`
	if got := out.String(); got != want {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
	if seen["stopped withdraw"] != 0 || seen["claim-lost claim"] != 1 || seen["busy ask"] != 2 || seen["claim-unread claim"] != 1 || seen["other-bytes claim"] != 0 {
		t.Errorf("the gateway saw %v", seen)
	}
	outcomes := map[string]string{}
	for _, r := range g.Requests() {
		outcomes[r.Key] = r.Outcome
	}
	if got := outcomes["claim-unread"]; !strings.HasPrefix(got, "failed The tool did not run") {
		t.Errorf("the outcome of claim-unread is %q", got)
	}
	if got := outcomes["older-replica"]; got != `{"status":"succeeded","text":"{\"done\":\"older-replica\"}"}` {
		t.Errorf("the report to an older replica is %s", got)
	}
	for key, want := range map[string]string{
		"circular": "[object Object]", "bigint": "10", "bigint-inside": "[object Object]", "surrogate": "half \ufffd", "bare": "[object Object]",
	} { // a result that JSON can't express, or with half of a character, is reported like every other result
		if got := outcomes[key]; got != "succeeded "+want {
			t.Errorf("the outcome of %s is %q", key, got)
		}
	}
	if got := g.Requests()[0]; got.Summary != "tests passed" || got.Outcome != `succeeded {"done":"bytes"}` {
		t.Errorf("%+v", got)
	}
}
