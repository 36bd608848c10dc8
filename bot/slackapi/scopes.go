package slackapi

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// scopeReader reads which scopes the bot token has. Slack names the scopes in a header of each answer, including
// refusals.
type scopeReader struct {
	next    http.RoundTripper
	changed func() // is called when the scopes have changed, but not for the first answer

	calls atomic.Int64 // number of calls begun so far

	mu      sync.Mutex
	granted []string
	latest  int64 // the call whose answer named the granted scopes
}

// GrantedScopes returns the scopes in Slack's answer to a call with the bot token. If the answer names no scopes,
// GrantedScopes returns nil.
func GrantedScopes(req *http.Request, resp *http.Response) []string {
	scopes := resp.Header.Get("X-OAuth-Scopes")
	if scopes == "" || MethodOf(req) == opening {
		return nil
	}
	granted := strings.Split(strings.ReplaceAll(scopes, " ", ""), ",")
	slices.Sort(granted)
	return granted
}

// RoundTrip makes a call, and reads the scopes in its answer.
func (s *scopeReader) RoundTrip(req *http.Request) (*http.Response, error) {
	call := s.calls.Add(1)
	resp, err := s.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if granted := GrantedScopes(req, resp); granted != nil && s.keep(granted, call) {
		s.changed()
	}
	return resp, nil
}

// keep stores the scopes of an answer. keep reports whether these scopes differ from the previous answer's scopes. If
// the call began earlier than the previous answer's call, its scopes may be outdated, and keep ignores them.
func (s *scopeReader) keep(granted []string, call int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call < s.latest {
		return false
	}
	changed := s.granted != nil && !slices.Equal(s.granted, granted)
	s.granted, s.latest = granted, call
	return changed
}

// Scopes returns the scopes of the bot token according to Slack's latest answer. The list is empty before the first
// answer.
func (c *Client) Scopes() []string {
	c.scopes.mu.Lock()
	defer c.scopes.mu.Unlock()
	return c.scopes.granted
}
