package slackapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// heldAnswers answers a call with scopes, immediately or when hold is closed.
type heldAnswers struct{ begun, hold chan struct{} }

func (a heldAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	answer.Header().Set("X-OAuth-Scopes", "chat:write")
	if req.URL.Path == "/api/auth.test" {
		close(a.begun)
		<-a.hold
		answer.Header().Set("X-OAuth-Scopes", "chat:write, users:read")
	}
	return answer.Result(), nil
}

// If the answer to an earlier call comes late, its scopes do not replace the scopes from the answer to a later call.
func TestScopesOfLateAnswer(t *testing.T) {
	a := heldAnswers{make(chan struct{}), make(chan struct{})}
	changes := 0
	s := &scopeReader{next: a, changed: func() { changes++ }}
	call := func(method string) {
		resp, err := s.RoundTrip(httptest.NewRequest(http.MethodPost, "/api/"+method, nil))
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
	}
	late := make(chan struct{})
	go func() {
		defer close(late)
		call("auth.test")
	}()
	<-a.begun
	call("users.info")
	close(a.hold)
	<-late
	if !slices.Equal(s.granted, []string{"chat:write"}) || changes != 0 {
		t.Errorf("the scopes are %v after %d changes", s.granted, changes)
	}
}
