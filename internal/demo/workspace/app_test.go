package workspace

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// testApp is an app without sockets.
type testApp struct {
	events int
	asked  []string
	err    error
}

func (a *testApp) Event(json.RawMessage) { a.events++ }

func (a *testApp) Ask(kind string, _ json.RawMessage) (json.RawMessage, error) {
	a.asked = append(a.asked, kind)
	return nil, a.err
}

// TestApp has deliveries go to the app that the configuration names, and what it does not answer be seen.
func TestApp(t *testing.T) {
	app := &testApp{}
	s, err := New(Config{Seed: OpenSeed(), App: app})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	post := func(path, body string) int {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		return w.Code
	}
	if code := post("/people/sam/messages", `{"channel":"#support","text":"@Countersign hello"}`); code != http.StatusOK || app.events != 2 {
		t.Errorf("a mention: status %d, %d events; want it as a message and as a mention", code, app.events)
	}
	command := `{"channel":"#support","command":"/countersign","text":"help"}`
	if code := post("/people/sam/commands", command); code != http.StatusOK || len(app.asked) != 1 || app.asked[0] != "slash_commands" {
		t.Errorf("a command: status %d, %v", code, app.asked)
	}
	app.err = errors.New("it is down")
	if code := post("/people/sam/commands", command); code != http.StatusGatewayTimeout {
		t.Errorf("a command that nobody answers: status %d", code)
	}
}
