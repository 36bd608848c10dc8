package main

import (
	"strings"
	"testing"
	"time"
)

// The thread's status shows the current activity of the turn. The bot renews the status before Slack removes it, and
// clears the status when the turn has ended.
func TestStatus(t *testing.T) {
	t.Parallel()
	inFakedTime(t, nil, func(b *synctestHarness) {
		began := time.Now()
		set := func() (texts []string) {
			for _, c := range b.made(began, func(a apiCall) bool { return a.method == "assistant.threads.setStatus" }) {
				texts = append(texts, c.form.Get("status"))
			}
			return texts
		}
		b.says("after 5s plain 1")
		b.asked("1")
		b.within(time.Minute, "the card is there", b.idle)
		if got := strings.Join(set(), ", "); got != "is thinking…, is waiting for Lead" {
			t.Errorf("set were %s", got)
		}
		b.pass(9 * time.Minute)
		made := b.made(began, func(a apiCall) bool { return a.method == "assistant.threads.setStatus" })
		for i := 1; i < len(made); i++ {
			if gap := made[i].at.Sub(made[i-1].at); gap > 2*time.Minute {
				t.Errorf("Slack took it away %s before it was set again", gap-2*time.Minute)
			}
		}
		if len(made) < 6 {
			t.Errorf("it was set %d times in nine minutes", len(made))
		}
		b.ok(b.approve("teo", "1", b.card("1")))
		b.within(time.Minute, "the turn is over", b.idle)
		n := len(set())
		b.pass(5 * time.Minute)
		if after := set(); len(after) != n {
			t.Errorf("it was set after the end: %v", after[n:])
		}
		// Slack may never have shown the status between the approval and the answer, because a message removes a
		// status.
		shown := ""
		for _, c := range b.made(began, func(a apiCall) bool { return a.method == "assistant.threads.setStatus" || isPost(a) }) {
			switch {
			case !isPost(c):
				shown = c.form.Get("status")
			case c.form.Get("thread_ts") != "":
				shown = ""
			}
		}
		if shown != "" {
			t.Errorf("in the end it is %q", shown)
		}
	})
}

// If Slack does not support statuses, the bot does not retry repeatedly.
func TestStatusIsRefused(t *testing.T) {
	t.Parallel()
	inFakedTime(t, nil, func(b *synctestHarness) {
		began := time.Now()
		b.becomes(func(c apiCall) callFate {
			if c.method == "assistant.threads.setStatus" {
				return callUnknown
			}
			return callFine
		})
		for range 3 {
			b.says("after 5s plain 1")
		}
		b.pass(10 * time.Minute)
		if n := len(b.made(began, func(a apiCall) bool { return a.method == "assistant.threads.setStatus" })); n > 3 {
			t.Errorf("it was tried %d times", n)
		}
	})
}
