package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
)

// If an answer is too long for messages, the bot uploads the answer as one file, even if some calls to Slack fail. If
// Slack accepts no files, the bot posts the whole answer in messages.
func TestLongAnswerIsAFile(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	var b strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&b, "Line %d of the long report.\n\n", i)
	}
	story := b.String()
	once := func(method string, fate callFate) func(apiCall) callFate {
		var seen atomic.Int64
		return func(c apiCall) callFate {
			if c.method == method && seen.Add(1) == 1 {
				return fate
			}
			return callFine
		}
	}
	always := func(method string, fate callFate) func(apiCall) callFate {
		return func(c apiCall) callFate {
			if c.method == method {
				return fate
			}
			return callFine
		}
	}
	for _, c := range []struct {
		name  string
		fate  func(apiCall) callFate
		files int
	}{
		{"all goes well", nil, 1},
		{"the address fails", once("files.getUploadURLExternal", callFails), 1},
		{"Slack asks the bot to wait", once("files.completeUploadExternal", callRefused), 1},
		{"the end is not heard", once("files.completeUploadExternal", callUnheard), 1},
		{"the bot dies after it", once("files.completeUploadExternal", callFatal), 1},
		{"the bot dies before it", once("files.getUploadURLExternal", callFatal), 1},
		{"Slack takes no files", always("files.getUploadURLExternal", callUnknown), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := &slowly{paragraphs: []string{story}}
			inFakedTime(t, func(b *synctestHarness) { b.instead = model.handler }, func(b *synctestHarness) {
				b.becomes(c.fate)
				thread := b.says("report")
				b.within(5*time.Minute, "all is shown", func() bool {
					select {
					case <-b.death:
						b.restart()
					default:
					}
					return len(b.replies(thread)) > 1 && b.idle()
				})
				b.pass(time.Minute)
				messages, err := b.as("sam").Messages(b.ctx, "#support", thread)
				b.ok(err)
				files, text := 0, ""
				for _, m := range messages {
					if m.BotID == "" {
						continue
					}
					text += workspaceclient.Text(m.Blocks)
					for _, f := range m.Files {
						files++
						resp, err := b.client.Get(f.URL)
						b.ok(err)
						raw, err := io.ReadAll(resp.Body)
						b.ok(err)
						b.ok(resp.Body.Close())
						if resp.StatusCode != http.StatusOK || !strings.HasPrefix(string(raw), strings.TrimSpace(story)) {
							t.Errorf("the file holds %d of %d bytes", len(raw), len(story))
						}
					}
				}
				if files != c.files {
					t.Errorf("%d files", files)
				}
				if !strings.Contains(text, "Line 0 of") || !strings.Contains(text, "The full answer follows in this thread") {
					t.Errorf("the first message does not begin the answer: %.300s", text)
				}
				if c.files == 0 && strings.Count(text, "of the long report.") != 1500 {
					t.Errorf("%d of 1500 lines are there", strings.Count(text, "of the long report."))
				}
				b.books()
			})
		})
	}
}
