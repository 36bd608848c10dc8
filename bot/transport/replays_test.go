package transport

import (
	"crypto/sha256"
	"testing"
	"time"
)

// replays keeps a request while the request's signature can be valid, even if replays has begun a new half in between.
// replays drops the request some time later.
func TestSeenRequests(t *testing.T) {
	begin := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for at := time.Duration(0); at < 30*time.Minute; at += 30 * time.Second {
		seen, name := &replays{}, requestName(sha256.Sum256([]byte("a request")))
		for other := range 60 { // other requests come too, so that replays begins a new half now and then
			now := begin.Add(time.Duration(other) * 30 * time.Second)
			if now.Equal(begin.Add(at)) && !seen.first(name, now) {
				t.Errorf("after %s it was known before it came", at)
			}
			if !seen.first(sha256.Sum256([]byte{byte(other)}), now) {
				t.Errorf("another request is taken for it")
			}
			if since := now.Sub(begin.Add(at)); since > 0 && since <= signatureLives && seen.first(name, now) {
				t.Errorf("%s after it came at %s it was forgotten", since, at)
			}
		}
		seen.first(sha256.Sum256([]byte("much later")), begin.Add(time.Hour))
		if !seen.first(name, begin.Add(2*time.Hour)) {
			t.Error("a request is remembered for ever")
		}
	}
}
