package bot

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"
)

// A request is remembered for as long as its signature may be good, whenever the memory was begun anew, and not for
// ever.
func TestSeenRequests(t *testing.T) {
	begin := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for at := time.Duration(0); at < 30*time.Minute; at += 30 * time.Second {
		k, name := &intake{}, sha256.Sum256([]byte("a request"))
		for other := range 60 { // the memory is in use, so that it is begun anew now and then
			now := begin.Add(time.Duration(other) * 30 * time.Second)
			if now.Equal(begin.Add(at)) && !k.first(name, now) {
				t.Errorf("after %s it was known before it came", at)
			}
			if !k.first(sha256.Sum256([]byte{byte(other)}), now) {
				t.Errorf("another request is taken for it")
			}
			if since := now.Sub(begin.Add(at)); since > 0 && since <= signatureLives && k.first(name, now) {
				t.Errorf("%s after it came at %s it was forgotten", since, at)
			}
		}
		k.first(sha256.Sum256([]byte("much later")), begin.Add(time.Hour))
		if !k.first(name, begin.Add(2*time.Hour)) {
			t.Error("a request is remembered for ever")
		}
	}
}

// The operator is told of strangers once a minute at most, with how many there were, and sees on /readyz what may be
// wrong.
func TestComplaints(t *testing.T) {
	b, now := &Bot{}, time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	says := func(want string) {
		t.Helper()
		if err := b.Listening(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v; want %q", err, want)
		}
	}
	says("none came yet")
	for i, want := range []int{1, 0, 0, 3} {
		at := now.Add(time.Duration(i) * 20 * time.Second)
		if told := b.intake.refused(at, "the clock is wrong"); told != want {
			t.Errorf("after %d seconds the operator is told of %d; want %d", 20*i, told, want)
		}
	}
	says("none of Slack's came yet; refused: 4, the last because the clock is wrong")
	b.intake.verified(now)
	says("")
	b.intake.refused(now, "the secret is wrong")
	says("refused since the last one of Slack's: 1, the last because the secret is wrong")
}
