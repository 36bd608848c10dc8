package main

import (
	"fmt"
	"testing"
	"time"

	"countersign/internal/testkit"
	"countersign/store"
)

// TestLostPosts has answers of Slack's to posts get lost, and the bot killed between a post and its record, again and
// again: each message is found again by what it says in its metadata, and is there once.
//
// COUNTERSIGN_POSTS says in how many conversations (15).
func TestLostPosts(t *testing.T) {
	n, seed := testkit.Size(t, "COUNTERSIGN_POSTS", testkit.Scale(15)), testkit.Seed(t)
	inBubble(t, nil, func(b *bubble) {
		random, pace := testkit.Chance(seed, 2), testkit.Chance(seed, 3)
		lost, killed := 0, 0
		b.becomes(func(c apiCall) callFate {
			if c.method != "chat.postMessage" || c.surface == "" {
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
			posted[fmt.Sprint(c.surface, " ", c.part)]++
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
		for _, s := range b.surfaces() {
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
