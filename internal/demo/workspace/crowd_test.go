package workspace

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

// Everybody at once: clicks, messages, updates, reading and saving. Each click reaches
// the app exactly once, each message is there, and timestamps are unique.
func TestACrowd(t *testing.T) {
	b := newBench(t, func(c *Config) { c.DataFile = filepath.Join(t.TempDir(), "w.json") })
	ts := b.postButton("C0000")
	var mu sync.Mutex
	clicks := map[string]int{}
	done := make(chan struct{})
	const rounds = 20
	people := []string{"ada", "teo", "ingrid", "kenji", "sam", "priya"}
	b.connect(func(e socketmode.Event) (bool, any) {
		if c, ok := e.Data.(slack.InteractionCallback); ok {
			mu.Lock()
			defer mu.Unlock()
			clicks[c.User.Name]++
			total := 0
			for _, n := range clicks {
				total += n
			}
			if total == rounds*len(people) {
				close(done)
			}
		}
		return true, nil
	})
	var crowd sync.WaitGroup
	for _, who := range people {
		crowd.Go(func() {
			for i := range rounds {
				b.must(b.post("/people/"+who+"/actions", obj{"channel": "C0000", "ts": ts, "action_id": "go"}))
				b.say(who, "C0000", fmt.Sprint(who, i), "")
				b.must(b.get("/people/" + who + "/channels/C0000/messages?mark=true"))
			}
		})
	}
	crowd.Go(func() {
		for i := range rounds {
			if _, err := b.api.PublishView("U0001", slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewDividerBlock()}}}, ""); err != nil {
				t.Error(err)
			}
			if err := b.api.AddReaction(fmt.Sprintf("r%d", i), slack.NewRefToMessage("C0000", ts)); err != nil {
				t.Error(err)
			}
		}
	})
	crowd.Wait()
	wait(t, done)
	seen := map[any]bool{}
	for _, m := range b.messages("ada", "C0000", "") {
		if seen[dig(m, "ts")] {
			t.Errorf("the ts %v twice", dig(m, "ts"))
		}
		seen[dig(m, "ts")] = true
	}
	if want := rounds*len(people) + 1; len(seen) != want {
		t.Errorf("%d messages, want %d", len(seen), want)
	}
	for who, n := range clicks {
		if n != rounds {
			t.Errorf("%d clicks by %s", n, who)
		}
	}
}
