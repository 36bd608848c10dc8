package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
)

// modelOutages lists the ways in which the model can be down. The field stops is the maximum time until the bot tells
// people.
var modelOutages = []struct {
	name   string
	state  testkit.NetworkState
	answer http.HandlerFunc // answers instead of the model; nil: the network fails
	stops  time.Duration
}{
	{name: "refuses", state: testkit.NetworkRefuses, stops: 2 * time.Minute},
	{name: "silent", state: testkit.NetworkSilent, stops: 11 * time.Minute},
	{name: "overloaded", stops: 2 * time.Minute, answer: func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusServiceUnavailable)
	}},
	{name: "busy", stops: 3 * time.Minute, answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
	}},
	{name: "cut off", stops: 2 * time.Minute, answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"I th`)
		panic(http.ErrAbortHandler)
	}},
}

// TestModelOutages takes the model down in each way, for ten minutes. With COUNTERSIGN_OUTAGES=2, every other way lasts
// nine and a half hours. Waiting requests don't need the model, so people decide them and the calls run. The bot
// retries a turn for a while, and then stops the turn and posts a message with a button. When the model is back, the
// button continues the turn.
func TestModelOutages(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for i, kind := range modelOutages {
		lasts := 10 * time.Minute
		if i%2 == 0 && testkit.Size(t, "COUNTERSIGN_OUTAGES", 1) > 1 {
			lasts = 9*time.Hour + 30*time.Minute
		}
		t.Run(fmt.Sprintf("%s %s", kind.name, lasts), func(t *testing.T) {
			testkit.EveryOther(t, "COUNTERSIGN_OUTAGES", i)
			var asked atomic.Int64
			var down atomic.Bool
			inFakedTime(t, func(b *synctestHarness) {
				b.instead = func(h http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if !down.Load() || kind.answer == nil || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
							h.ServeHTTP(w, r)
							return
						}
						asked.Add(1)
						kind.answer(w, r)
					})
				}
			}, func(b *synctestHarness) {
				b.says("patient before")
				waits := b.asked("before")
				b.within(time.Minute, "everything is shown", b.idle)
				began := time.Now()
				down.Store(true)
				b.model.SetState(kind.state)
				thread := b.says("say meanwhile")
				if ready := b.bot.agent.Ping(b.ctx); kind.state != testkit.NetworkWorks && ready == nil {
					b.Error("the model is said to answer")
				}
				b.within(kind.stops, "people are told", func() bool {
					_, ok := b.button(thread, "Try again")
					return ok
				})
				told := time.Since(began)
				if kind.answer != nil && (asked.Load() < 3 || asked.Load() > 5) {
					b.Errorf("the model was asked %d times", asked.Load())
				}
				before := asked.Load()
				b.ok(b.approve("teo", "before", b.card("before")))
				b.within(time.Minute, "what was approved has run", func() bool { return b.request("before").State == approvers.Consumed })
				b.pass(max(0, lasts-time.Since(began)))
				if r := b.request("before"); b.runs["before"] != 1 || r.ID != waits.ID || asked.Load()-before > 5 {
					b.Errorf("it ran %d times, and the model was asked %d times since", b.runs["before"], asked.Load()-before)
				}
				b.model.SetState(testkit.NetworkWorks)
				down.Store(false)
				press, ok := b.button(thread, "Try again")
				if !ok {
					b.Fatal("the button is gone")
				}
				b.ok(b.as("sam").Press(b.ctx, press.message, press.button))
				b.within(time.Minute, "the answer", func() bool { return b.hears(thread, "You said meanwhile") })
				b.within(time.Minute, "everything is shown", b.idle)
				b.books()
				b.Logf("down for %s: people were told after %s; what waited was decided and ran; the turn continued by its button", lasts, told.Round(time.Second))
			})
		})
	}
}

type synctestButton struct {
	message workspaceclient.Message
	button  workspaceclient.Element
}

// button finds a button in a thread of #support.
func (b *synctestHarness) button(thread, label string) (found synctestButton, ok bool) {
	b.Helper()
	messages, err := b.as("sam").Messages(b.ctx, "#support", thread)
	b.ok(err)
	for _, m := range messages {
		for _, e := range workspaceclient.Elements(m.Blocks) {
			if e.Text.Text == label {
				found, ok = synctestButton{message: m, button: e}, true
			}
		}
	}
	return found, ok
}

// The method "hears" reports whether a thread of #support has a message of the bot with the given words.
func (b *synctestHarness) hears(thread, words string) bool {
	b.Helper()
	messages, err := b.as("sam").Messages(b.ctx, "#support", thread)
	b.ok(err)
	for _, m := range messages {
		if m.BotID != "" && strings.Contains(m.Text, words) {
			return true
		}
	}
	return false
}
