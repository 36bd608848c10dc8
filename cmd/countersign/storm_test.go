package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
)

// TestStorm sends many answers to one channel and some answers to another channel. At the same time, critical cards
// come for the first channel and for direct messages. The test runs with Slack's published limits, and with a Slack
// that refuses calls at random times for random durations. Every message must be posted exactly once. The bot may make
// no call before the time that Slack asked for. Each process may post at most two answers before a waiting critical
// card of the same channel.
//
// COUNTERSIGN_POSTS sets the number of answers (40 with CI=true).
func TestStorm(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	posts, seed := testkit.Size(t, "COUNTERSIGN_POSTS", 40), testkit.Seed(t)
	for _, kind := range []struct {
		name  string
		begin func(*storm)
		known bool // the bot knows Slack's limits
	}{
		{"published limits", func(s *storm) { s.ws.SetRealRates(true) }, true},
		{"unknown limits", func(s *storm) { s.ws.SetRealRates(true) }, false},
		{"refusals at random", func(s *storm) { s.becomes(s.refuse) }, true},
		{"refusals at random, and unknown limits", func(s *storm) { s.becomes(s.refuse) }, false},
	} {
		for _, several := range []bool{false, true} {
			t.Run(kind.name+amongReplicas(several), func(t *testing.T) {
				inFakedTime(t, func(b *synctestHarness) { b.setup.unlimited, b.board = !kind.known, boardIf(several) }, func(b *synctestHarness) {
					s := &storm{synctestHarness: b, random: testkit.Chance(seed, 1), moves: testkit.Chance(seed, 2), closed: map[string]time.Time{}}
					kind.begin(s)
					s.blow(posts)
					if kind.name == "published limits" && s.refused > 0 {
						b.Errorf("Slack refused %d calls although its limits are known", s.refused)
					}
				})
			})
		}
	}
}

// amongReplicas returns a suffix for the names of tests with several bots.
func amongReplicas(several bool) string {
	if several {
		return fmt.Sprintf(", %d replicas", replicas)
	}
	return ""
}

// boardIf returns the board that divides the work among several bots. For one bot, boardIf returns nil.
func boardIf(several bool) *board {
	if several {
		return new(board)
	}
	return nil
}

// storm is a test in which Slack gets more calls than it accepts.
type storm struct {
	*synctestHarness
	random  *rand.Rand           // decides which calls Slack refuses; guarded by mu
	moves   *rand.Rand           // decides which shares move
	closed  map[string]time.Time // time until which calls are refused, by method and channel
	alarms  []string
	refused int
	early   int // number of calls made before the time that Slack asked for
}

// refuse decides whether Slack refuses a call. From time to time, Slack refuses a kind of call for a while. The caller
// does not hold s.mu.
func (s *storm) refuse(c apiCall) callFate {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := heldKey(c)
	now := time.Now()
	if s.closed[key].After(now) || s.closed[c.method].After(now) {
		return callRefused
	}
	if s.random.IntN(25) > 0 {
		return callFine
	}
	if s.random.IntN(3) == 0 { // refuses calls for the whole workspace, not only for that channel
		key = c.method
	}
	s.closed[key] = now.Add(time.Duration(1+s.random.IntN(90)) * time.Second)
	return callRefused
}

// heldKey identifies the calls to which a refusal of Slack applies.
func heldKey(c apiCall) string {
	if c.method == "chat.postMessage" {
		return c.method + " " + c.channel
	}
	return c.method
}

// blow makes all requests, and waits until Slack shows all messages.
func (s *storm) blow(posts int) {
	began := time.Now()
	for i := range posts {
		s.says(fmt.Sprintf("say %d", i))
		if i%8 == 0 {
			s.saysIn("#general", fmt.Sprintf("say elsewhere%d", i))
		}
		if i%25 == 5 {
			n := fmt.Sprint("alarm", i)
			s.says("alarm " + n)
			s.alarms = append(s.alarms, n)
			if s.board != nil {
				s.board.shuffle(s.moves, 4)
			}
			s.pass(7 * time.Second)
		}
	}
	asked := time.Since(began)
	s.within(time.Duration(posts)*20*time.Second+time.Hour, "everything is shown", s.idle)
	took := time.Since(began)
	s.becomes(nil)
	s.within(time.Hour, "everything is shown", s.idle)
	s.eachOnce(posts)
	s.heeded()
	waits := s.criticalFirst()
	s.books()
	for _, line := range s.log.with("will be tried again") {
		// If a timer is set again at the same instant of faked time, the bot logs this line although nothing failed.
		// Such a line has no error.
		if !strings.Contains(line, "error=<nil>") {
			s.Errorf("something failed: %s", line)
		}
	}
	calls := len(s.made(began, func(apiCall) bool { return true }))
	s.Logf("posts=%d critical=%d in %s (asked for in %s): calls=%d refused=%d early=%d critical cards waited %s at most", posts, len(s.alarms),
		took.Round(time.Second), asked.Round(time.Second), calls, s.refused, s.early, slices.Max(waits).Round(time.Millisecond))
}

// eachOnce checks that every answer and every card is posted once, and that a late reminder is not posted.
func (s *storm) eachOnce(posts int) {
	count := map[string]int{}
	for _, c := range s.made(time.Time{}, isPost) {
		count[c.outboxID]++
	}
	answers := -len(s.alarms) - (posts+7)/8
	for _, n := range s.alarms {
		answers += b2i(s.request(n).State == approvers.Pending)
	}
	for _, sf := range s.outbox() {
		if want, ok := map[store.OutboxState]int{store.OutboxShown: 1, store.OutboxExpanded: 0, store.OutboxRemoved: 0}[sf.State]; !ok || count[sf.ID] != want {
			s.Errorf("%s to %s is %s, posted %d times", sf.Kind, sf.To, sf.State, count[sf.ID])
		}
		answers += b2i(sf.Kind == store.OutboxAnswer)
	}
	if answers != posts {
		s.Errorf("%d answers; want %d", answers, posts)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// wait returns how long Slack asked to wait.
func (c apiCall) wait() time.Duration {
	seconds, err := strconv.Atoi(c.retryAfter)
	if err != nil {
		panic(err)
	}
	return time.Duration(seconds) * time.Second
}

// heeded checks that after a refusal, no call of the same kind came before the time that Slack asked for. If posts in
// two channels were refused, no post in any channel may come before that time.
func (s *storm) heeded() {
	type hold struct {
		key         string
		from, until time.Time
	}
	var holds []hold
	all := s.made(time.Time{}, func(apiCall) bool { return true })
	slices.SortStableFunc(all, func(a, b apiCall) int { return a.at.Compare(b.at) })
	for _, c := range all {
		if c.status != 429 {
			continue
		}
		s.refused++
		h := hold{heldKey(c), c.answered, c.answered.Add(c.wait())}
		if c.method == "chat.postMessage" && slices.ContainsFunc(holds, func(o hold) bool {
			return o.key != h.key && o.key != c.method && o.until.After(h.from) && len(o.key) > len(c.method) && o.key[:len(c.method)] == c.method
		}) {
			holds = append(holds, hold{c.method, h.from, h.until})
		}
		holds = append(holds, h)
	}
	for _, c := range all {
		for _, h := range holds {
			if (h.key == heldKey(c) || h.key == c.method) && c.at.After(h.from) && c.at.Before(h.until) {
				s.early++
				s.Errorf("%s was called %s before Slack wanted it", h.key, h.until.Sub(c.at))
			}
		}
	}
}

// reading reports whether a method only reads from Slack.
func reading(method string) bool {
	return strings.HasPrefix(method, "conversations.") || strings.HasPrefix(method, "users.") || strings.HasPrefix(method, "dnd.")
}

// criticalFirst checks that no answer is posted in a channel while a critical card waits for the same channel. Answers
// that a bot was already sending do not count. Each bot may have two such answers. Answers are also allowed while Slack
// refuses the reads that the bot needs before it posts the card. criticalFirst returns how long the cards waited.
func (s *storm) criticalFirst() (waits []time.Duration) {
	answers := s.made(time.Time{}, func(c apiCall) bool { return isPost(c) && c.channel == "C0001" })
	refusals := s.made(time.Time{}, func(c apiCall) bool { return c.status == 429 && reading(c.method) })
	kinds := map[string]store.OutboxMessage{}
	for _, sf := range s.outbox() {
		kinds[sf.ID] = sf
	}
	for _, n := range s.alarms {
		r := s.request(n)
		for _, sf := range kinds {
			if sf.Kind != store.OutboxCard || sf.Ref != r.ID || sf.State != store.OutboxShown {
				continue
			}
			var posted time.Time
			for _, c := range answers {
				if c.outboxID == sf.ID {
					posted = c.at
				}
			}
			waits = append(waits, posted.Sub(sf.CreatedAt))
			since := sf.CreatedAt
			for _, c := range refusals {
				if over := c.answered.Add(c.wait()); over.After(since) && c.at.Before(posted) {
					since = over
				}
			}
			before := 0
			for _, c := range answers {
				if kinds[c.outboxID].Kind == store.OutboxAnswer && c.at.After(since) && c.at.Before(posted) {
					before++
				}
			}
			if before > 2*len(s.bots()) {
				s.Errorf("%d answers went before the card for %s, which waited for %s", before, n, posted.Sub(sf.CreatedAt))
			}
		}
	}
	if len(waits) != len(s.alarms) {
		s.Errorf("%d critical cards in the channel; want %d", len(waits), len(s.alarms))
	}
	return waits
}
