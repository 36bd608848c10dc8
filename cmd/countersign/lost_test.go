package main

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/testkit"
	"countersign/store"
)

// TestLostPosts repeatedly loses Slack's answers to posts, and kills the bot after it has posted a message and before
// it has recorded the post. The bot must find each message by its metadata, and each message must be in Slack exactly
// once.
//
// COUNTERSIGN_POSTS sets the number of conversations (15 with CI=true).
func TestLostPosts(t *testing.T) {
	t.Parallel()
	n, seed := testkit.Size(t, "COUNTERSIGN_POSTS", 15), testkit.Seed(t)
	inFakedTime(t, nil, func(b *synctestHarness) {
		random, pace := testkit.Chance(seed, 2), testkit.Chance(seed, 3)
		lost, killed := 0, 0
		b.becomes(func(c apiCall) callFate {
			if c.method != "chat.postMessage" || c.outboxID == "" {
				return callFine
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			switch random.IntN(8) {
			case 0, 1:
				lost++
				return callUnheard
			case 2:
				killed++
				return callFatal
			}
			return callFine
		})
		alive := func() bool {
			select {
			case <-b.death:
				b.restart()
				return false
			default:
				return true
			}
		}
		for i := range n {
			for _, text := range []string{"say %d", "tell %d", "plain c%d"} {
				b.says(fmt.Sprintf(text, i))
			}
			b.pass(time.Duration(pace.IntN(2000)) * time.Millisecond)
			alive()
		}
		b.within(time.Duration(n)*time.Minute+10*time.Minute, "everything is shown", func() bool { return alive() && b.idle() })
		posted, messages := map[string]int{}, 0
		for _, c := range b.made(time.Time{}, isPost) {
			posted[fmt.Sprint(c.outboxID, " ", c.part)]++
			messages++
		}
		double := 0
		for what, times := range posted {
			if times != 1 {
				double++
				b.Errorf("%s was posted %d times", what, times)
			}
		}
		missing := 0
		for _, s := range b.outbox() {
			if s.State == store.OutboxShown && posted[s.ID+" 0"] == 1 || s.State == store.OutboxExpanded || s.State == store.OutboxRemoved {
				continue
			}
			missing++
			b.Errorf("%s to %s is %s: %s", s.Kind, s.To, s.State, s.LastError)
		}
		b.books()
		b.Logf("conversations=%d messages=%d answers_lost=%d killed=%d double=%d missing=%d", 3*n, messages, lost, killed, double, missing)
		if lost < n/4 || killed < n/8 {
			b.Errorf("too little got lost")
		}
	})
}

// TestLostPostsWhileTheClockJumps sets the machine's clock while the bot does not know whether a card was posted. The
// bot must find the card, even if the clock jumps between the creation of the card, its post, and the search.
func TestLostPostsWhileTheClockJumps(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		for name, play := range map[string]func(*jumps){
			"between two processes": func(j *jumps) {
				j.next("chat.postMessage", callFatal, nil)
				j.says("plain a")
				j.another(func() { j.jump(by) })
			},
			"while one process lives": func(j *jumps) {
				j.jump(by)
				j.next("chat.postMessage", callFatal, nil)
				j.says("plain a")
				j.another(func() { j.jump(-by) })
			},
			"long before": func(j *jumps) {
				j.jump(by)
				j.next("chat.postMessage", callUnheard, nil)
				j.says("plain a")
			},
			// Two cards are for the same channel. The answer to the first post is lost, and the bot searches the whole
			// channel. Then the clock jumps. Then the answer to the second post is lost.
			"between a look and a post": func(j *jumps) {
				j.next("chat.postMessage", callUnheard, func() {
					j.next("chat.update", callFine, func() {
						j.jump(by)
						j.next("chat.postMessage", callUnheard, nil)
					})
				})
				j.says("plain a")
				j.says("plain b")
			},
		} {
			t.Run(fmt.Sprint(name, " ", by), func(t *testing.T) {
				inJumps(t, func(j *jumps) {
					play(j)
					j.eachOnce(2 * time.Hour)
					looks := j.made(time.Time{}, func(c apiCall) bool {
						return c.channel == approvalsChannel && c.method == "conversations.history" && c.form.Get("include_all_metadata") == "1"
					})
					for _, c := range looks {
						oldest, _ := strconv.ParseInt(c.form.Get("oldest"), 10, 64)
						if back := c.at.Sub(time.Unix(oldest, 0)); back > 5*time.Minute {
							j.Errorf("it looked %s back", back)
						}
					}
					if j.planned.Load() != 0 {
						j.Errorf("not all that was planned has happened")
					}
				})
			})
		}
	}
}

// TestLostPostsAtRandomClocks is like TestLostPosts, but the bot's clock jumps. The bot's clock is up to an hour and a
// half ahead of or behind Slack's clock.
//
// COUNTERSIGN_POSTS sets the number of conversations (15 with CI=true).
func TestLostPostsAtRandomClocks(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	n, seed := testkit.Size(t, "COUNTERSIGN_POSTS", 15), testkit.Seed(t)
	inJumps(t, func(j *jumps) {
		random, pace := testkit.Chance(seed, 3), testkit.Chance(seed, 4)
		times, lost := 0, 0
		j.becomes(func(c apiCall) callFate {
			if c.method != "chat.postMessage" || c.outboxID == "" {
				return callFine
			}
			j.mu.Lock()
			defer j.mu.Unlock()
			if random.IntN(6) == 0 {
				times++
				j.skew.Store(random.Int64N(int64(3*time.Hour)) - int64(90*time.Minute))
			}
			if fate := random.IntN(8); fate < 3 {
				lost++
				return []callFate{callUnheard, callUnheard, callFatal}[fate]
			}
			return callFine
		})
		for i := range n {
			for _, text := range []string{"say %d", "tell %d", "plain c%d"} {
				j.says(fmt.Sprintf(text, i))
			}
			j.pass(time.Duration(pace.IntN(2000)) * time.Millisecond)
			j.alive()
		}
		messages := j.eachOnce(24 * time.Hour)
		j.books()
		j.Logf("conversations=%d messages=%d lost_or_killed=%d jumps=%d", 3*n, messages, lost, times)
		if lost < n/4 || times < n/4 {
			j.Errorf("too little got lost, or the clock did not jump")
		}
	})
}

// jumps is a synctestHarness in which the test can set the bot's clock.
type jumps struct {
	*synctestHarness
	skew    atomic.Int64
	planned atomic.Int64 // number of planned fates that have not happened yet
}

func inJumps(t *testing.T, fn func(*jumps)) {
	t.Helper()
	j := &jumps{}
	inFakedTime(t, func(b *synctestHarness) {
		j.synctestHarness = b
		b.setup.now = func() time.Time { return time.Now().Add(time.Duration(j.skew.Load())) }
	}, func(*synctestHarness) { fn(j) })
}

// jump moves the bot's clock.
func (j *jumps) jump(by time.Duration) { j.skew.Add(int64(by)) }

// approvalsChannel is #support-approvals.
const approvalsChannel = "C0002"

// The method "next" plans how one later call ends: the bot's first call of the given Web API method for a card in
// #support-approvals. The function meanwhile runs during this call. All other calls succeed.
func (j *jumps) next(method string, fate callFate, meanwhile func()) {
	j.planned.Add(1)
	var done atomic.Bool
	j.becomes(func(c apiCall) callFate {
		if c.method != method || c.channel != approvalsChannel || !done.CompareAndSwap(false, true) {
			return callFine
		}
		if meanwhile != nil {
			meanwhile()
		}
		j.planned.Add(-1)
		return fate
	})
}

// The method "another" waits until the bot is killed, and then calls the function in the parameter first. After that,
// it starts a new process, which continues the work.
func (j *jumps) another(first func()) {
	<-j.death
	j.ok(j.bot.end())
	first()
	j.start()
}

// alive reports whether the bot still runs. If the bot was killed, alive starts a new process, which continues the
// work.
func (j *jumps) alive() bool {
	select {
	case <-j.death:
		j.restart()
		return false
	default:
		return true
	}
}

// eachOnce waits until all messages are shown. eachOnce checks that each message is in Slack exactly once, and counts
// the messages.
func (j *jumps) eachOnce(most time.Duration) (messages int) {
	j.Helper()
	for began := time.Now(); !j.alive() || !j.idle() || j.waiting(); j.pass(time.Second) {
		if time.Since(began) > most {
			j.Fatalf("not everything is shown after %s", most)
		}
	}
	posted := map[string]int{}
	for _, c := range j.made(time.Time{}, isPost) {
		posted[fmt.Sprint(c.outboxID, " ", c.part)]++
		messages++
	}
	for what, times := range posted {
		if times != 1 {
			j.Errorf("%s was posted %d times", what, times)
		}
	}
	return messages
}

// The method "waiting" reports whether the bot still has to show a message. A message counts even if it is not due by
// the bot's clock.
func (j *jumps) waiting() (yes bool) {
	j.view(func(r store.Reader) error {
		for _, kind := range store.ShowTimers {
			timers, err := r.Timers(kind, 1)
			if err != nil {
				return err
			}
			yes = yes || len(timers) > 0
		}
		return nil
	})
	return yes
}
