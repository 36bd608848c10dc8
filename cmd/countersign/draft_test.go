package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
)

// slowly is a model that writes a paragraph every two seconds.
type slowly struct {
	paragraphs []string
	breaks     atomic.Bool // the answer is cut off before its end, and the model is then down
	asked      atomic.Int64
}

func (s *slowly) handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			h.ServeHTTP(w, r)
			return
		}
		if s.asked.Add(1) > 1 && s.breaks.Load() {
			http.Error(w, `{"error":{"message":"down"}}`, http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(text, finish string) {
			raw, _ := json.Marshal(text)
			fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":%s}]}\n\n", raw, finish)
			w.(http.Flusher).Flush()
		}
		for _, p := range s.paragraphs {
			half := len(p) / 2
			send(p[:half], "null")
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				return
			}
			send(p[half:]+"\n\n", "null")
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				return
			}
		}
		if s.breaks.Load() {
			panic(http.ErrAbortHandler)
		}
		send("The end.", `"stop"`)
		fmt.Fprint(w, "data: [DONE]\n\n")
	})
}

// The method "replies" lists the texts of the bot's messages in a thread.
func (b *synctestHarness) replies(thread string) (out []string) {
	b.Helper()
	messages, err := b.as("sam").Messages(b.ctx, "#support", thread)
	b.ok(err)
	for _, m := range messages {
		if m.BotID != "" && !m.Ephemeral {
			out = append(out, workspaceclient.Text(m.Blocks))
		}
	}
	return out
}

// In each case, something else happens to the draft while the model writes. In the end, the thread always has one
// message with the whole answer, and no open stream.
func TestDrafts(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	story := []string{"# A story", "It was **once**.", "- one\n- two <!channel>", "```\ncode\n\nmore code\n```", "| a | b |\n|---|---|\n| 1 | 2 |", "It was over at [last](https://example.com/x)."}
	nth := func(method string, n int64, fate callFate) func(*synctestHarness) func(apiCall) callFate {
		return func(*synctestHarness) func(apiCall) callFate {
			var seen atomic.Int64
			return func(c apiCall) callFate {
				if c.method == method && (seen.Add(1) == n || n == 0) {
					return fate
				}
				return callFine
			}
		}
	}
	for _, c := range []struct {
		name    string
		fate    func(*synctestHarness) func(apiCall) callFate
		appends int // minimum number of calls to chat.appendStream
		updates int // minimum number of calls to chat.update
	}{
		{"all goes well", nil, 3, 1},
		{"streams are refused", nth("chat.startStream", 0, callUnknown), 0, 2},
		{"there are no streams", nth("chat.startStream", 0, callMissing), 0, 2},
		{"a proxy answers for streams", nth("chat.startStream", 0, callHTML), 0, 1},
		{"streams are answered with nothing", nth("chat.startStream", 0, callEmpty), 0, 1},
		{"every stream fails", nth("chat.startStream", 0, callFails), 0, 1},
		{"every append is not there", nth("chat.appendStream", 0, callMissing), 1, 2},
		{"the end of a stream is not there", nth("chat.stopStream", 0, callMissing), 3, 0},
		{"the end of a stream always fails", nth("chat.stopStream", 0, callFails), 3, 0},
		{"the first answer is lost", nth("chat.startStream", 1, callUnheard), 0, 0},
		{"the first call fails", nth("chat.startStream", 1, callFails), 0, 0},
		{"Slack takes no stream for now", nth("chat.startStream", 1, callRefused), 0, 0},
		{"an append's answer is lost", nth("chat.appendStream", 2, callUnheard), 2, 2},
		{"an append is put off", nth("chat.appendStream", 1, callRefused), 1, 0},
		{"Slack ends the stream", nth("chat.appendStream", 2, callOver), 2, 2},
		{"the end of the stream is not heard", nth("chat.stopStream", 1, callUnheard), 3, 1},
		{"the end of the stream fails", nth("chat.stopStream", 1, callFails), 3, 1},
		{"the bot dies as the stream begins", nth("chat.startStream", 1, callFatal), 0, 0},
		{"the bot dies in mid-stream", nth("chat.appendStream", 2, callFatal), 2, 0},
		{"the bot dies at its end", nth("chat.stopStream", 1, callFatal), 2, 0},
		{"the bot dies before it is recorded", nth("chat.update", 1, callFatal), 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := &slowly{paragraphs: story}
			inFakedTime(t, func(b *synctestHarness) { b.instead = model.handler }, func(b *synctestHarness) {
				if c.fate != nil {
					b.becomes(c.fate(b))
				}
				began := time.Now()
				thread := b.says("tell me a story")
				if c.appends > 2 {
					b.pass(8 * time.Second)
					if half := b.replies(thread); len(half) != 1 || !strings.Contains(half[0], "once") || strings.Contains(half[0], "last") {
						t.Errorf("in mid-stream the thread has %q", half)
					}
				}
				b.within(3*time.Minute, "all is shown", func() bool {
					select {
					case <-b.death:
						b.restart()
					default:
					}
					all := strings.Join(b.replies(thread), "\n")
					return strings.Contains(all, "The end.") && b.idle()
				})
				b.pass(10 * time.Second)
				got := b.replies(thread)
				if len(got) != 1 || strings.Count(got[0], "once") != 1 || strings.Count(got[0], "The end.") != 1 || strings.Contains(got[0], "still writing") {
					t.Errorf("the thread has %d messages: %q", len(got), got)
				}
				count := func(method string) int { return len(b.made(began, func(a apiCall) bool { return a.method == method })) }
				if n := count("chat.appendStream"); n < c.appends {
					t.Errorf("%d appends", n)
				}
				if n := count("chat.update"); n < c.updates {
					t.Errorf("%d updates", n)
				}
				raw, err := b.as("sam").Messages(b.ctx, "#support", thread)
				b.ok(err)
				for _, m := range raw {
					if m.BotID != "" && strings.Contains(string(m.Blocks), `"broadcast"`) {
						t.Error("the model's words mention people")
					}
				}
				b.books()
			})
		})
	}
}

// TestDraftOfManyBlocks: if a model's answer is too long for one message, the draft shows the part that fits. In the
// end, Slack shows the whole answer.
func TestDraftOfManyBlocks(t *testing.T) {
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("Line %d of it.", i))
	}
	for name, c := range map[string]struct {
		first string        // first paragraph of the answer; the model sends it in two halves
		at    time.Duration // time at which Slack shows the draft
		has   string        // the text of the draft
	}{
		"paragraphs":       {strings.Join(lines, "\n\n"), 1900 * time.Millisecond, "Line 44 of it."},
		"one long listing": {"```\nLine 20 of it.\n" + strings.Repeat("x", 10_000) + "\n```\n\n" + strings.Repeat("And so on.\n\n", 1000), 7 * time.Second, "Line 20 of it."},
	} {
		t.Run(name, func(t *testing.T) {
			model := &slowly{paragraphs: []string{c.first, "Now", "to", "the", "end.", "Line 200 of it."}}
			inFakedTime(t, func(b *synctestHarness) { b.instead = model.handler }, func(b *synctestHarness) {
				thread := b.says("tell me all")
				b.pass(c.at)
				if draft := b.replies(thread); len(draft) != 1 || !strings.Contains(draft[0], c.has) || strings.Contains(draft[0], "Line 90 of it.") {
					t.Errorf("the draft is %q", draft)
				}
				b.within(3*time.Minute, "all is shown", func() bool {
					return strings.Contains(strings.Join(b.replies(thread), "\n"), "The end.") && b.idle()
				})
				all := strings.Join(b.replies(thread), "\n")
				for _, line := range []string{"Line 20 of it.", "Line 200 of it.", "The end."} {
					if strings.Count(all, line) != 1 {
						t.Errorf("the answer has %d times %q", strings.Count(all, line), line)
					}
				}
				if said := b.log.with("exceeds Slack's limits"); len(said) > 0 {
					t.Errorf("the log says %q", said)
				}
				b.books()
			})
		})
	}
}

// If a person stops the agent while it writes, the thread keeps the text that was written before. The message says that
// somebody stopped the agent.
func TestDraftThatIsStopped(t *testing.T) {
	model := &slowly{paragraphs: []string{"One.", "Two.", "Three.", "Four.", "Five.", "Six."}}
	inFakedTime(t, func(b *synctestHarness) { b.instead = model.handler }, func(b *synctestHarness) {
		thread := b.says("count")
		b.pass(7 * time.Second)
		_, err := b.as("sam").Say(b.ctx, "#support", thread, "stop")
		b.ok(err)
		b.within(time.Minute, "it is stopped", func() bool { return b.idle() && strings.Contains(strings.Join(b.replies(thread), ""), "stopped this") })
		got := b.replies(thread)
		if len(got) != 1 || !strings.Contains(got[0], "One.") || strings.Contains(got[0], "Six.") {
			t.Errorf("the thread has %q", got)
		}
		b.pass(time.Minute)
		if n := model.asked.Load(); n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
		b.books()
	})
}

// If a model's answer is cut off at each attempt, the thread keeps the text that was received before. The thread gets a
// button to try again.
func TestDraftThatBreaksOff(t *testing.T) {
	model := &slowly{paragraphs: []string{"One.", "Two.", "Three.", "Four."}}
	model.breaks.Store(true)
	inFakedTime(t, func(b *synctestHarness) { b.instead = model.handler }, func(b *synctestHarness) {
		thread := b.says("count")
		b.within(5*time.Minute, "people are told", func() bool {
			_, ok := b.button(thread, "Try again")
			return ok && b.idle()
		})
		got := b.replies(thread)
		if len(got) != 1 || !strings.Contains(got[0], "Three.") || strings.Count(got[0], "One.") != 1 {
			t.Errorf("the thread has %q", got)
		}
		b.books()
	})
}
