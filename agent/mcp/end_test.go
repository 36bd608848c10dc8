package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/agent"
	"countersign/config"
)

// TestUnresponsiveAddress checks a server that answers no call and no ping. The client opens a new connection, and the
// waiting call ends with the old connection.
func TestUnresponsiveAddress(t *testing.T) {
	l := quick()
	l.probe = 100 * time.Millisecond
	a := &address{act: func(_ http.ResponseWriter, r *http.Request, _ wire) { <-r.Context().Done() }}
	arrived := make(chan struct{}, 10)
	a.gate = func(_ http.ResponseWriter, r *http.Request) bool {
		a.mu.Lock()
		last := a.bodies[len(a.bodies)-1]
		a.mu.Unlock()
		if strings.Contains(last, `"ping"`) {
			<-r.Context().Done()
			return false
		}
		if strings.Contains(last, `"tools/call"`) {
			arrived <- struct{}{}
		}
		return true
	}
	c, o := running(t, l, a.at(t))
	tool := o.tool(t, "far.act")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ends := make(chan error, 2)
	for _, ctx := range []context.Context{ctx, t.Context()} {
		go func() {
			_, err := tool.Run(ctx, agent.Invocation{Args: []byte(`{}`)})
			ends <- err
		}()
	}
	<-arrived
	<-arrived
	cancel()
	for range 2 {
		select {
		case err := <-ends:
			if outcomeOf(err) != unclear {
				t.Errorf("%v", err)
			}
		case <-time.After(patience):
			t.Fatal("a call outlives its connection")
		}
	}
	deadline := time.Now().Add(patience)
	for c.Status()[0].Restarts == 0 {
		if time.Now().After(deadline) {
			t.Fatalf("there is no new connection: %+v", c.Status())
		}
		time.Sleep(time.Millisecond)
	}
}

// TestIssuer checks that the client's secret is sent only to the issuer that the policy names, even if the server
// names another issuer.
func TestIssuer(t *testing.T) {
	t.Setenv("CRM_SECRET", "crm-client-secret")
	for name, honest := range map[string]bool{"the issuer of the policy": true, "another": false} {
		t.Run(name, func(t *testing.T) {
			var given atomic.Int64
			var self string
			mux := http.NewServeMux()
			issuer := httptest.NewServer(mux)
			defer issuer.Close()
			mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q,"authorization_endpoint":%q,"response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["client_secret_post"]}`, issuer.URL, issuer.URL+"/token", issuer.URL+"/authorize")
			})
			mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(string(body), "crm-client-secret") {
					given.Add(1)
				}
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"access_token":"let-me-in-1","token_type":"Bearer","expires_in":3600}`)
			})
			a := &address{}
			a.gate = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
					w.Header().Set("Content-Type", "application/json")
					_ = json.NewEncoder(w).Encode(map[string]any{"resource": self, "authorization_servers": []string{issuer.URL}})
					return false
				}
				if r.Header.Get("Authorization") == "Bearer let-me-in-1" {
					return true
				}
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+strings.TrimSuffix(self, "/mcp")+`/.well-known/oauth-protected-resource/mcp"`)
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return false
			}
			s := a.at(t)
			self = s.URL
			s.OAuth = &config.OAuth{Issuer: issuer.URL, ClientID: "crm", ClientSecret: "${CRM_SECRET}"}
			if !honest {
				s.OAuth.Issuer = "https://login.example.com"
			}
			c, o := running(t, quick(), s)
			if err := c.Settled(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := c.Status()[0]; got.Connected != honest || (given.Load() > 0) != honest {
				t.Errorf("%+v, and the secret was sent %d times", got, given.Load())
			}
			if honest {
				if text, err := call(t, o.tool(t, "far.act"), `{}`); err != nil || text != "done" {
					t.Errorf("%q, %v", text, err)
				}
			}
		})
	}
}
