package slackapi

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// scopeReader reads which scopes the bot token has. Slack says so in a header of its answers, also in one that refuses a
// call.
type scopeReader struct {
	next    http.RoundTripper
	changed func() // is called when they have changed, not at the first answer

	mu      sync.Mutex
	granted []string
}

// GrantedScopes returns the scopes in Slack's answer to a call with the bot token. It is empty if the answer names none.
func GrantedScopes(req *http.Request, resp *http.Response) []string {
	scopes := resp.Header.Get("X-OAuth-Scopes")
	if scopes == "" || MethodOf(req) == "apps.connections.open" { // this one is made with the app-level token
		return nil
	}
	granted := strings.Split(strings.ReplaceAll(scopes, " ", ""), ",")
	slices.Sort(granted)
	return granted
}

// RoundTrip makes a call, and reads the scopes in its answer.
func (s *scopeReader) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if granted := GrantedScopes(req, resp); granted != nil && s.keep(granted) {
		s.changed()
	}
	return resp, nil
}

// keep reports whether the scopes differ from those of the answer before.
func (s *scopeReader) keep(granted []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.granted != nil && !slices.Equal(s.granted, granted)
	s.granted = granted
	return changed
}

// Scopes returns the scopes that the bot token has by Slack's latest answer. It is empty before the first one.
func (c *Client) Scopes() []string {
	c.scopes.mu.Lock()
	defer c.scopes.mu.Unlock()
	return c.scopes.granted
}
