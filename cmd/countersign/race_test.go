package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/visitor"
	"countersign/internal/workspace"
	"countersign/store"
)

const racePolicy = `version: 1
tools:
  count: {risk: high, confirm: true}
approvers:
  finance-director: {title: Finance Director, members: [U0003, U0004], max_risk: critical, can_approve: ["*"], cards: "#support-approvals"}
agents:
  support: {channels: ["#support"], prompt: Count., tools: ["*"]}
`

// TestRaces has two people click Approve on one card at the same time, again and again, through the page's API, the sockets and the store.
// Each time one of them wins, the other is told who, the tool runs once, and no button stays. It does so 200 times (50 with the race detector), or
// COUNTERSIGN_RACES times: a thousand take a minute or two. The desk's own tests have a thousand each time.
func TestRaces(t *testing.T) {
	t.Parallel()
	races, batch := 200, 25
	if raceDetector {
		races = 50
	}
	if text := os.Getenv("COUNTERSIGN_RACES"); text != "" {
		races, _ = strconv.Atoi(text)
	}
	if races < 1 {
		t.Fatal("COUNTERSIGN_RACES is not a number of races")
	}
	began := time.Now()
	r := &ring{runs: map[string]int{}, wins: map[string]int{}}
	r.arena = openArena(t, arenaConfig{seed: workspace.DemoSeed(), policy: racePolicy, runs: r.count})
	cards := 0
	for done := 0; done < races; cards += batch {
		done += r.batch(cards, batch)
	}
	t.Logf("races=%d won by ingrid=%d by kenji=%d in %s (one of them found no button any more on %d cards)",
		r.wins["U0003"]+r.wins["U0004"], r.wins["U0003"], r.wins["U0004"], time.Since(began).Round(time.Second), cards-r.wins["U0003"]-r.wins["U0004"])
	for key, n := range r.runs {
		if n != 1 {
			t.Errorf("execution %s ran %d times", key, n)
		}
	}
	if len(r.runs) != cards {
		t.Errorf("%d executions ran, want %d", len(r.runs), cards)
	}
	for _, who := range []string{"ingrid", "kenji"} {
		r.wait(who+" to see no button any more", func() (bool, error) {
			left := slices.ContainsFunc(r.newest(r.as(who), "C0002", 3*cards), func(m visitor.Message) bool { return len(visitor.Elements(m.Blocks)) > 0 })
			return !left, nil
		})
	}
}

// ring is where people race.
type ring struct {
	*arena
	mu   sync.Mutex
	runs map[string]int // by execution
	wins map[string]int // by user
}

func (r *ring) count(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[key]++
}

// batch has both click each card of one step at the same time. It returns how many races that were: where one of them was so late that the
// card had no button any more there was none.
func (r *ring) batch(start, n int) (races int) {
	r.Helper()
	since, err := r.as("sam").Say(r.Context(), "#support", "", fmt.Sprintf("@Countersign %d of races-%d", n, start))
	if err != nil {
		r.Fatal(err)
	}
	clicks := map[string]int{} // by request
	cards := r.cards(n)
	for _, c := range cards {
		clicks[c.request] = r.click(c)
	}
	won := map[string]int{}
	for _, c := range cards {
		user := r.winner(c, clicks[c.request])
		if clicks[c.request] == 2 {
			won[user]++
			races++
		}
	}
	for user, n := range won {
		r.wins[user] += n
	}
	r.told("ingrid", "<@U0004>", won["U0004"], n, since)
	r.told("kenji", "<@U0003>", won["U0003"], n, since)
	return races
}

// click has both click Approve on a card at the same time. It returns how many of them could.
func (r *ring) click(c card) int {
	var both sync.WaitGroup
	var clicked atomic.Int64
	gate := make(chan struct{})
	for _, who := range []string{"ingrid", "kenji"} {
		both.Go(func() {
			<-gate
			err := r.as(who).Press(r.Context(), c.message, c.button)
			switch {
			case err == nil:
				clicked.Add(1)
			case visitor.Code(err) != "unknown_action": // the card had no button any more
				r.Errorf("%s's click was not acknowledged: %v", who, err)
			}
		})
	}
	close(gate)
	both.Wait()
	return int(clicked.Load())
}

// winner waits until a card is decided and every click on it was handled, and returns who won.
func (r *ring) winner(c card, clicks int) string {
	r.Helper()
	winner := ""
	r.until("the end of a race", func(s store.Reader) (bool, error) {
		req, err := s.Request(c.request)
		if err != nil {
			return false, err
		}
		e, err := s.Execution(c.execution)
		if err != nil {
			return false, err
		}
		history, err := s.Audit(c.request)
		if err != nil {
			return false, err
		}
		decided, denied := 0, 0
		for _, h := range history {
			switch {
			case h.Kind == approvers.AuditDecided:
				decided++
			case h.Kind == approvers.AuditDenied && h.Facts["code"] == string(approvers.DeniedResolved):
				denied++
			case h.Kind == approvers.AuditDenied:
				r.Fatalf("a click was denied as %s", h.Facts["code"])
			}
		}
		if decided > 1 || len(req.Decisions) > 1 {
			r.Fatalf("%s has %d decisions", c.request, max(decided, len(req.Decisions)))
		}
		winner = req.ClosedBy.User()
		return decided == 1 && denied == clicks-1 && e.State == approvers.ExecutionSucceeded, nil
	})
	return winner
}

// told waits until somebody was told so often that the other one was faster, in messages that only they see.
func (r *ring) told(who, other string, times, batch int, since string) {
	r.Helper()
	told := 0
	r.wait(fmt.Sprintf("%s to be told %d times that %s decided", who, times, other), func() (bool, error) {
		told = 0
		for _, m := range r.newest(r.as(who), "C0002", 2*batch) {
			if m.Ephemeral && strings.Contains(m.Text, other) && strings.Contains(m.Text, "Too late") && m.TS > since {
				told++
			}
		}
		return told >= times, nil
	})
	if told != times {
		r.Errorf("%s was told %d times that %s decided, want %d", who, told, other, times)
	}
}
