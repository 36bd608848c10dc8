package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/cmd/countersign/openstore"
	"countersign/internal/testkit"
	"countersign/store"
)

// grown is the result of a measurement with n waiting requests. The number of finished requests is n, or maxFinished if
// n is larger.
type grown struct {
	Requests  int     // number of waiting requests
	StartMS   float64 // from the start of serve until it is ready; the best of 3
	OtherMS   float64 // the same time after a change of the policy; only over PostgreSQL
	HeapMiB   float64 // heap of serve when it is ready
	DecideP50 float64 // median time of one durable decision, in ms
	DecideP99 float64
	FileKiB   float64 // size of the file per request, waiting or finished
}

// TestGrowth measures figures that can grow with the size of a store: start, heap, decision time, file size.
// COUNTERSIGN_WAITING=1000000 selects the long form. Only the long form checks the time of a start. The short form runs
// in parallel with other tests on any machine, so its times are not reliable.
func TestGrowth(t *testing.T) {
	testkit.SkipIfShort(t)
	const short = 500
	most := testkit.Size(t, "COUNTERSIGN_WAITING", short)
	p := openProcessHarness(t)
	g := newGrowing(t, p.policy(), func() (store.Store, error) { return openstore.File(p.store()) })
	var all []grown
	for _, n := range steps(most) {
		g.to(n)
		now := grown{Requests: n}
		now.DecideP50, now.DecideP99 = g.decisions(200)
		g.close()
		info, err := os.Stat(p.store())
		if err != nil {
			t.Fatal(err)
		}
		now.FileKiB = float64(info.Size()) / 1024 / float64(n+min(n, maxFinished))
		now.StartMS, now.HeapMiB = start(t, p.dir, p.env)
		g.open()
		t.Logf("waiting=%d finished=%d start=%.0f ms heap=%.1f MiB decision p50=%.2f ms p99=%.2f ms file=%.1f KiB each", n, min(n, maxFinished), now.StartMS, now.HeapMiB, now.DecideP50, now.DecideP99, now.FileKiB)
		all = append(all, now)
	}
	g.close()
	checkGrown(t, all, most > short)
}

// checkGrown compares the largest store with the smallest one. If slow is true, checkGrown also checks the time that
// serve takes to start.
func checkGrown(t *testing.T, all []grown, slow bool) {
	t.Helper()
	first, last := all[0], all[len(all)-1]
	t.Logf("from %d to %d: start × %.2f, heap + %.1f MiB, decision p50 × %.2f", first.Requests, last.Requests, last.StartMS/first.StartMS, last.HeapMiB-first.HeapMiB, last.DecideP50/first.DecideP50)
	if slow && max(last.StartMS, last.OtherMS) > 2000 {
		t.Errorf("serve was ready after %.0f ms, and with another policy after %.0f ms; the figure to reach is 2000", last.StartMS, last.OtherMS)
	}
	if grew := last.HeapMiB - first.HeapMiB; grew > 64 {
		t.Errorf("the heap grew by %.0f MiB; the figure to reach is 64", grew)
	}
}

// The function "steps" returns the sizes to measure: 1,000, 10,000 and so on below most, and then most.
func steps(most int) (out []int) {
	for n := 1000; n < most; n *= 10 {
		out = append(out, n)
	}
	return append(out, most)
}

// The method "decisions" approves requests at random positions in the store, one after the other.
func (g *growing) decisions(count int) (p50, p99 float64) {
	g.t.Helper()
	var took []float64
	for tries := 0; len(took) < count && tries < 100*count; tries++ {
		id := fmt.Sprintf("req_w%09d", rand.IntN(g.n))
		var r approvers.Request
		err := g.store.View(g.t.Context(), func(v store.Reader) (err error) {
			r, err = v.Request(id)
			return err
		})
		if err != nil {
			g.t.Fatal(err)
		}
		if r.State != approvers.Pending {
			continue
		}
		began := time.Now()
		if _, err := g.workflow.Requests.Decide(g.t.Context(), g.approval(r)); err != nil {
			g.t.Fatal(err)
		}
		took = append(took, float64(time.Since(began).Microseconds())/1000)
		// The timer of the call's run is cleared, so that serve has no call to run.
		err = g.store.Update(g.t.Context(), func(tx store.Tx) error { return tx.ClearTimer(store.TimerRun, r.Execution) })
		if err != nil {
			g.t.Fatal(err)
		}
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100]
}

// start starts serve three times. start returns the shortest time that serve took to be ready, and its largest heap
// when it was ready.
func start(t *testing.T, dir string, env []string) (ms, heap float64) {
	t.Helper()
	ms = 1e9
	for range 3 {
		p, took, admin := startOnce(t, dir, env)
		ms = min(ms, took)
		_, body := get(t, admin+"/metrics")
		m := regexp.MustCompile(`(?m)^go_memstats_heap_alloc_bytes (\S+)$`).FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("no heap in\n%s", body)
		}
		bytes, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		heap = max(heap, bytes/(1<<20))
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	return ms, heap
}

// startOnce starts serve, and returns how long serve took to be ready. admin is the admin address of serve.
func startOnce(t *testing.T, dir string, env []string) (p *program, ms float64, admin string) {
	t.Helper()
	p = launch(t, dir, env, "serve")
	admin = "http://" + p.says(`countersign is up.* admin=(\S+)`)
	ready(t, admin)
	return p, float64(time.Since(p.began).Microseconds()) / 1000, admin
}

// ready waits until a bot reports that it is ready.
func ready(t *testing.T, admin string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		status, body := get(t, admin+"/readyz?wait=5")
		if status == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not ready: %d %s", status, body)
		}
	}
}
