package transport

import (
	"strings"
	"testing"
	"time"
)

// The operator is told of invalid requests at most once a minute, with their number. /readyz says what may be wrong.
func TestSenders(t *testing.T) {
	s, now := &senders{}, time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	says := func(want string) {
		t.Helper()
		if err := s.arriving(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v; want %q", err, want)
		}
	}
	says("no request yet")
	for i, want := range []int{1, 0, 0, 3} {
		at := now.Add(time.Duration(i) * 20 * time.Second)
		if logged := s.refuse(at, "the clock is wrong"); logged != want {
			t.Errorf("after %d seconds the operator is told of %d; want %d", 20*i, logged, want)
		}
	}
	says("no valid request from Slack yet; refused: 4, the last because the clock is wrong")
	s.noteVerified(now)
	says("")
	s.refuse(now, "the secret is wrong")
	says("refused since Slack's last valid request: 1, the last because the secret is wrong")
}
