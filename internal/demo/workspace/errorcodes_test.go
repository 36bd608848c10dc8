package workspace

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// refusals holds the error codes of all calls in this package's tests, by method.
var refusals struct {
	mu   sync.Mutex
	seen map[string]map[string]bool
}

// undocumented lists codes that Slack's reference does not name for the method. Each code has the reason why the
// workspace uses it. docs/workspace.md describes the same codes.
var undocumented = map[string]string{
	"api.test my_error":                     "the caller's own code comes back",
	"chat.postMessage cannot_dm_bot":        "seen with Slack when an app writes to another app",
	"chat.postMessage invalid_thread_ts":    "seen with Slack for an invalid timestamp",
	"chat.startStream thread_not_found":     "Slack does not document the code for a deleted thread",
	"conversations.open cannot_dm_bot":      "seen with Slack",
	"dnd.teamInfo too_many_users":           "Slack documents the limit of 50 people, but not the code",
	"oauth.v2.access invalid_refresh_token": "seen with Slack; its reference names the code only for tooling.tokens.rotate",
	"views.publish user_not_found":          "Slack does not document the code for an unknown person",
}

// TestMain compares every error code in the package's tests with Slack's reference. If all tests ran, TestMain also
// checks that every limit was tried.
func TestMain(m *testing.M) {
	code := m.Run()
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == ""
	if whole {
		missing, err := triedLimits()
		if len(missing) > 0 || err != nil {
			fmt.Printf("FAIL: limits whose largest legal and smallest illegal case no test tries: %v %v\n", missing, err)
			code = 1
		}
	}
	known, err := readCodes()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	refusals.mu.Lock()
	defer refusals.mu.Unlock()
	for _, pair := range slices.Sorted(maps.Keys(undocumented)) {
		if method, refusal, _ := strings.Cut(pair, " "); whole && !refusals.seen[method][refusal] {
			fmt.Printf("FAIL: %s never occurs: take it off the list, here and in docs/workspace.md\n", pair)
			code = 1
		}
	}
	for _, method := range slices.Sorted(maps.Keys(refusals.seen)) {
		for _, refusal := range slices.Sorted(maps.Keys(refusals.seen[method])) {
			if !known["every"][refusal] && !known[method][refusal] && undocumented[method+" "+refusal] == "" {
				fmt.Printf("FAIL: %s answered %q, which Slack's reference doesn't name for it (testdata/errors.txt)\n", method, refusal)
				code = 1
			}
		}
	}
	os.Exit(code)
}

func readCodes() (map[string]map[string]bool, error) {
	raw, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		return nil, err
	}
	out, method := map[string]map[string]bool{}, ""
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if !strings.HasPrefix(line, " ") {
			method = strings.TrimSpace(line)
			out[method] = map[string]bool{}
			continue
		}
		for _, code := range strings.Fields(line) {
			out[method][code] = true
		}
	}
	return out, nil
}

// noteRefusals stores the error codes of the calls through a handler.
func noteRefusals(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method, isCall := strings.CutPrefix(r.URL.Path, "/api/")
		if !isCall {
			next.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		var body struct{ Error string }
		if json.Unmarshal(answer.Body.Bytes(), &body) == nil && body.Error != "" {
			refusals.mu.Lock()
			if refusals.seen == nil {
				refusals.seen = map[string]map[string]bool{}
			}
			if refusals.seen[method] == nil {
				refusals.seen[method] = map[string]bool{}
			}
			refusals.seen[method][body.Error] = true
			refusals.mu.Unlock()
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = bytes.NewReader(answer.Body.Bytes()).WriteTo(w)
	})
}
