package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sashabaranov/go-openai"

	"countersign/internal/redact"
)

// An endpoint may quote the key in a bad answer, so the errors of the client for the endpoint may contain the key. The
// function redact.Text must remove the key and the password of the endpoint's address from these errors.
func TestErrorsOfTheEndpointKeepNoSecret(t *testing.T) {
	const key = "sk-proj-S3cr3tValue0123456789"
	held, tried := 0, 0
	for name, answer := range map[string]func(w http.ResponseWriter, quoted string){
		"an error": func(w http.ResponseWriter, q string) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error","code":"invalid_api_key"}}`, "Incorrect API key provided: "+q)
		},
		"an error page": func(w http.ResponseWriter, q string) { http.Error(w, q, http.StatusBadGateway) },
		"no JSON":       func(w http.ResponseWriter, q string) { fmt.Fprint(w, q) },
		"a redirect": func(w http.ResponseWriter, q string) {
			w.Header().Set("Location", "http://127.0.0.1:1/?"+q)
			w.WriteHeader(http.StatusFound)
		},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			answer(w, "authorization="+r.Header.Get("Authorization"))
		}))
		c := openai.DefaultConfig(key)
		// The endpoint's address has a user name and a password.
		c.BaseURL = strings.Replace(srv.URL, "http://", "http://gateway:S3cr3tValue@", 1)
		client := openai.NewClientWithConfig(c)
		ask := openai.ChatCompletionRequest{Model: "m", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "x"}}}
		_, once := client.CreateChatCompletion(context.Background(), ask)
		_, streamed := client.CreateChatCompletionStream(context.Background(), ask)
		for _, err := range []error{once, streamed} {
			if err == nil {
				continue
			}
			tried++
			raw := fmt.Sprintf("%v %+v", err, err)
			if strings.Contains(raw, "S3cr3tValue") {
				held++
			}
			if said := redact.Text(raw); strings.Contains(said, "S3cr3tValue") {
				t.Errorf("%s: %s", name, said)
			}
		}
		srv.Close()
	}
	if held == 0 {
		t.Error("no error held a secret: this shows nothing")
	}
	t.Logf("errors=%d, %d with a secret; 0 logged or stored", tried, held)
}
