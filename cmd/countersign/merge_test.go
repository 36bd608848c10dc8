package main

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestManyChangesAreOneUpdate makes three people decide, one after the other, while Slack accepts no updates.
// Afterwards the bot updates the card once, and the card shows all decisions.
func TestManyChangesAreOneUpdate(t *testing.T) {
	inFakedTime(t, nil, func(b *synctestHarness) {
		b.says("vote now")
		b.asked("now")
		b.within(time.Minute, "the card is shown", b.idle)
		card, began := b.card("now"), time.Now()
		updates := func() []apiCall {
			return b.made(began, func(c apiCall) bool { return c.method == "chat.update" && c.channel == card.Channel })
		}
		var refused atomic.Bool
		b.becomes(func(c apiCall) callFate {
			if c.method == "chat.update" && c.channel == card.Channel && refused.CompareAndSwap(false, true) {
				return callRefused // Slack asks the bot to wait for 30 seconds
			}
			return callFine
		})
		for _, who := range []string{"ada", "priya", "teo"} {
			b.ok(b.approve(who, "now", card))
			b.pass(5 * time.Second)
		}
		if n := len(updates()); n != 1 || !refused.Load() {
			t.Fatalf("Slack was asked %d times to change the card, and refused: %t", n, refused.Load())
		}
		b.within(time.Minute, "the card is shown", b.idle)
		done := updates()[1:]
		if len(done) != 1 || !done[0].done || !strings.Contains(done[0].form.Get("blocks"), "3 of 4 agreed") {
			t.Fatalf("%d updates; want one that shows all three: %v", len(done), done)
		}
		if after := done[0].at.Sub(began); after < 30*time.Second || after > 32*time.Second {
			t.Errorf("the card was changed after %s", after)
		}
	})
}
