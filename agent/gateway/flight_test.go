package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers/workflow"
)

// While a request is being stored, another request with the same key waits. After the time limit, the waiting request
// gets an error with a Retry-After header. Only one request is stored. Requests with other keys don't wait.
func TestKeyInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored, storing := 0, make(chan struct{})
		slow := fakeCallers{propose: func(_ context.Context, c workflow.CallerCall) (string, bool, error) {
			again := stored > 0
			if c.Key == "slow" && !again {
				stored++
				<-storing
			}
			return "req_1", again, nil
		}}
		g := testGateway(t, slow, &fakeViews{request: edited(`{"a":1}`)})
		ask := func(key string) *httptest.ResponseRecorder {
			reply := httptest.NewRecorder()
			g.ServeHTTP(reply, testRequest(t.Context(), http.MethodPost, "/v1/requests", `{"tool":"deploy","args":{}}`, "Idempotency-Key", key))
			return reply
		}
		first := make(chan *httptest.ResponseRecorder, 1)
		go func() { first <- ask("slow") }()
		synctest.Wait()
		began := time.Now()
		if reply := ask("other"); reply.Code != http.StatusOK || time.Since(began) > 0 {
			t.Errorf("another key is answered %d after %s", reply.Code, time.Since(began))
		}
		reply := ask("slow")
		var problem struct{ Type string }
		if err := json.Unmarshal(reply.Body.Bytes(), &problem); err != nil || reply.Code != http.StatusConflict || problem.Type != problemType+"key_in_flight" || reply.Header().Get("Retry-After") != "1" {
			t.Errorf("the key in flight is answered %d %s %v", reply.Code, reply.Body, reply.Header())
		}
		if took := time.Since(began); took != inFlightFor {
			t.Errorf("after %s, want %s", took, inFlightFor)
		}
		second := make(chan *httptest.ResponseRecorder, 1)
		go func() { second <- ask("slow") }()
		synctest.Wait()
		close(storing)
		if reply := <-first; reply.Code != http.StatusOK || reply.Header().Get("Idempotent-Replayed") != "" {
			t.Errorf("the first request is answered %d %v", reply.Code, reply.Header())
		}
		if reply := <-second; reply.Code != http.StatusOK || reply.Header().Get("Idempotent-Replayed") != "true" || stored != 1 {
			t.Errorf("its repetition is answered %d %v, and %d were stored", reply.Code, reply.Header(), stored)
		}
	})
}
