package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/testkit"
)

// TestRefreshedSockets makes people write messages and commands while Slack repeatedly replaces the bot's sockets.
// Slack replaces one socket after the other, or all sockets together after a warning. No person may get the error that
// the app did not respond, because each new socket is open before the old socket closes. Then Slack closes or breaks
// all sockets at the same time, without a warning. The bot must answer every message exactly once. The test runs in
// faked time.
//
// COUNTERSIGN_REFRESHES sets the number of replacements.
func TestRefreshedSockets(t *testing.T) {
	t.Parallel()
	refreshes, seed := testkit.Size(t, "COUNTERSIGN_REFRESHES", 4), testkit.Seed(t)
	inFakedTime(t, func(b *synctestHarness) { b.http = false }, func(b *synctestHarness) {
		c := &refreshed{synctestHarness: b, rnd: testkit.Chance(seed, 1), threads: map[int]string{}}
		c.talk(refreshes, func(n int) {
			if n%2 == 0 {
				b.ws.Refresh()
			} else {
				b.ok(b.ws.Disconnect("warning"))
			}
		})
		if c.unanswered > 0 {
			t.Errorf("%d of %d commands were not acknowledged while Slack replaced sockets", c.unanswered, c.commands)
		}
		t.Logf("refreshes=%d messages=%d commands=%d unanswered=%d", refreshes, len(c.threads), c.commands, c.unanswered)
		c.talk(refreshes/3, func(n int) {
			if n%2 == 0 {
				b.ws.DropSockets()
			} else {
				b.ok(b.ws.Disconnect("refresh_requested"))
			}
		})
		b.pass(10 * time.Second) // the sockets are open again
		b.within(15*time.Minute, "everything is handled", func() bool {
			return b.bot.bot.Gaps.Recorded() && b.idle()
		})
		for n, thread := range c.threads {
			messages, err := b.as("sam").Messages(b.ctx, "#support", thread)
			b.ok(err)
			answers := 0
			for _, m := range messages {
				answers += strings.Count(m.Text, fmt.Sprint("You said ", n, "."))
			}
			if answers != 1 {
				t.Errorf("message %d has %d answers", n, answers)
			}
		}
		t.Logf("with drops: messages=%d commands=%d unanswered=%d", len(c.threads), c.commands, c.unanswered)
	})
}

// refreshed counts people's messages and commands during the replacements.
type refreshed struct {
	*synctestHarness
	rnd     *rand.Rand
	threads map[int]string // by number of the message

	mu                   sync.Mutex
	commands, unanswered int
	typing               sync.WaitGroup
}

// talk makes people write. At the same time, talk calls a function a number of times, with some seconds between two
// calls.
func (c *refreshed) talk(times int, do func(n int)) {
	for n := range times {
		next := time.Now().Add(time.Duration(2000+c.rnd.IntN(20_000)) * time.Millisecond)
		for time.Now().Before(next) {
			m := len(c.threads)
			c.threads[m] = c.says(fmt.Sprintf("say %d.", m))
			c.types()
			c.pass(time.Duration(c.rnd.IntN(2000)) * time.Millisecond)
		}
		c.types()
		do(n)
		c.types()
		c.threads[len(c.threads)] = c.says(fmt.Sprintf("say %d.", len(c.threads)))
	}
	c.typing.Wait()
}

// The method "types" makes a person type a command, concurrently with everything else.
func (c *refreshed) types() {
	c.typing.Go(func() {
		_, err := c.as("ada").Command(c.ctx, "#support", "/countersign", "help")
		c.mu.Lock()
		defer c.mu.Unlock()
		c.commands++
		if err != nil {
			c.unanswered++
		}
	})
}
