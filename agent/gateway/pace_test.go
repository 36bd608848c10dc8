package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
)

// A client may send a burst of requests. Further requests wait, and are refused if they would wait too long. Other
// clients don't wait.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGateway(t, fakeCallers{}, &fakeViews{request: edited(`{"a":1}`)})
		policy := *testPolicy
		policy.Clients = append(policy.Clients, approvers.Client{Name: "other", Token: hashOf([]byte("cs_other")), Audience: "other"})
		g.Policy = func() *approvers.Policy { return &policy }
		type answer struct {
			code  int
			after time.Duration
		}
		began, answers := time.Now(), make(chan answer, 10000)
		send := func(token string) {
			reply := httptest.NewRecorder()
			g.ServeHTTP(reply, testRequest(t.Context(), http.MethodGet, "/v1/requests/req_1", "", "Authorization", "Bearer "+token))
			answers <- answer{reply.Code, time.Since(began)}
			if reply.Code == http.StatusTooManyRequests && reply.Header().Get("Retry-After") == "" {
				t.Error("an answer has no Retry-After")
			}
		}
		const slow = requestRate * int(paceWithin/time.Second)
		for range requestBurst + slow + 100 {
			go send(testToken)
		}
		synctest.Wait()
		go send("cs_other")
		synctest.Wait()
		time.Sleep(paceWithin)
		synctest.Wait()
		close(answers)
		counts := map[string]int{}
		for a := range answers {
			switch {
			case a.code == http.StatusTooManyRequests && a.after == 0:
				counts["refused"]++
			case a.code == http.StatusOK && a.after == 0:
				counts["at once"]++
			case a.code == http.StatusOK:
				counts["later"]++
			default:
				t.Fatalf("answered %d after %s", a.code, a.after)
			}
		}
		if counts["at once"] != requestBurst+1 || counts["later"] != slow || counts["refused"] != 100 {
			t.Errorf("%v", counts)
		}
	})
}
