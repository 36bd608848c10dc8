package workspace

import (
	"bytes"
	"testing"
	"time"

	"github.com/slack-go/slack/socketmode"

	"countersign/internal/demo/workspace/delivery"
)

// Each attempt to deliver an event may be lost, late, doubled, or acknowledged in vain; what is lost for good never
// arrives.
func TestMishaps(t *testing.T) {
	fates := map[string][]delivery.Mishap{
		"late":   {{Late: 30 * time.Millisecond}},
		"twice":  {{Again: 20 * time.Millisecond}},
		"lost":   {{Lost: true}, {Lost: true}, {}},
		"never":  {{Lost: true}, {Lost: true}, {Lost: true}, {Lost: true}},
		"unsaid": {{Deaf: true}, {}},
	}
	times := map[string]int{"late": 1, "twice": 2, "lost": 1, "never": 0, "unsaid": 2, "plain": 1}
	kinds := make(chan string, 100)
	b := newBench(t, func(c *Config) {
		c.AckTimeout, c.RetryDelays = 100*time.Millisecond, []time.Duration{0, time.Millisecond, 2 * time.Millisecond}
		c.Mishaps = func(a delivery.Attempt) delivery.Mishap {
			kinds <- a.Kind
			for word, fate := range fates {
				if bytes.Contains(a.Payload, []byte(word)) && a.Number < len(fate) {
					return fate[a.Number]
				}
			}
			return delivery.Mishap{}
		}
	})
	got := make(chan string, 100)
	b.connect(func(e socketmode.Event) (bool, any) {
		for word := range times {
			if bytes.Contains(e.Request.Payload, []byte(word)) {
				got <- word
			}
		}
		return true, nil
	})
	total := 0
	for word, n := range times {
		b.say("sam", "C0001", word, "")
		total += n
	}
	seen := map[string]int{}
	for range total {
		seen[wait(t, got)]++
	}
	select {
	case word := <-got:
		t.Errorf("%s came once more", word)
	case <-time.After(300 * time.Millisecond):
	}
	for word, n := range times {
		if seen[word] != n {
			t.Errorf("%s came %d times; want %d", word, seen[word], n)
		}
	}
	if kind := wait(t, kinds); kind != "events_api" {
		t.Errorf("an attempt of kind %q", kind)
	}
}
