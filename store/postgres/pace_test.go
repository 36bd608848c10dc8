package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// replicaEnv names an environment variable with the URL of a database. If the variable is set, TestReplicaProcess runs
// as a replica on this database.
const replicaEnv = "COUNTERSIGN_TEST_REPLICA"

// TestReplicaProcess runs a replica in a separate process. TestTakeover kills this process.
func TestReplicaProcess(t *testing.T) {
	url := os.Getenv(replicaEnv)
	if url == "" {
		t.Skip("is a part of TestTakeover")
	}
	f := joinCallFixture(t, open(t, url)).joined("killed")
	f.work()
	select {} // TestTakeover kills the process
}

// joined makes the process of the fixture a replica. The lease and the heartbeats are the same as in production.
func (f *callFixture) joined(name string) *callFixture {
	f.Helper()
	r, err := f.store.Join(f.Context(), postgres.ReplicaOptions{Name: name})
	if err != nil {
		f.Fatal(err)
	}
	return f.on(f.store, r)
}

// The method has waits until its parameter, a function, returns true for the shares of the fixture's replica.
func (f *callFixture) has(is func(store.Shares) bool) {
	f.Helper()
	timeout := time.After(testkit.Patience)
	for {
		changed := f.replica.Changed()
		if is(f.replica.Shares()) {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			f.Fatalf("the replica has the shares %x", f.replica.Shares())
		}
	}
}

// TestTakeover kills one of two replicas with SIGKILL. At the same moment, a person approves a request whose timers are
// in the shares of the killed replica. The other replica must run the call within ten seconds.
//
// COUNTERSIGN_TAKEOVERS sets the number of kills.
func TestTakeover(t *testing.T) {
	t.Parallel()
	server := pgserver.New(t, "fsync=off")
	n := testkit.Size(t, "COUNTERSIGN_TAKEOVERS", 1)
	var took []time.Duration
	var mu sync.Mutex
	crowd(t, 5, n, func(i int) error { // each takeover has its own database
		d, err := takeover(t, newDatabase(t, server, fmt.Sprintf("takeover%d", i)))
		mu.Lock()
		defer mu.Unlock()
		took = append(took, d)
		return err
	})
	p50, p99 := percentiles(took)
	t.Logf("kills=%d takeover p50=%.1f s p99=%.1f s", n, p50/1000, p99/1000)
	if p99 > 10_000 {
		t.Errorf("p99 is %.1f s, want at most 10 s", p99/1000)
	}
}

func takeover(t *testing.T, url string) (took time.Duration, err error) {
	s, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	f := newCallFixture(t, s)
	var requests []approvers.Request
	for range 20 {
		r, err := f.ask(t.Context())
		if err != nil {
			return 0, err
		}
		requests = append(requests, r)
	}
	ran := make(chan string, len(requests))
	f = f.joined("stays")
	f.ran = func(execution string) { ran <- execution }
	defer f.work()()
	f.has(func(s store.Shares) bool { return s == store.AllShares })
	killed := exec.Command(os.Args[0], "-test.run=^TestReplicaProcess$")
	killed.Env = append(os.Environ(), replicaEnv+"="+url)
	if err := killed.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = killed.Process.Kill()
		_ = killed.Wait() // the exit status does not matter
	}()
	var theirs approvers.Request
	f.has(func(own store.Shares) bool {
		i := slices.IndexFunc(requests, func(r approvers.Request) bool { return !own.Has(store.Timer{Ref: clickRow + r.ID, Lane: r.ID}.Share()) })
		if len(list(own)) > store.ShareCount/2 || i < 0 {
			return false
		}
		theirs = requests[i]
		return true
	})
	time.Sleep(rand.N(2 * time.Second)) // so that the kill comes at a random time between two heartbeats
	began := time.Now()
	if err := killed.Process.Kill(); err != nil {
		return 0, err
	}
	if err := f.click(t.Context(), theirs); err != nil {
		return 0, err
	}
	select {
	case <-ran:
		return time.Since(began), nil
	case <-time.After(testkit.Patience):
		return 0, fmt.Errorf("%s: the call did not run", theirs.ID)
	}
}

// list returns the numbers of the shares in a set.
func list(shares store.Shares) (all []int) {
	for n := range store.ShareCount {
		if shares.Has(n) {
			all = append(all, n)
		}
	}
	return all
}

// percentiles returns the median and the 99th percentile of durations, in milliseconds.
func percentiles(took []time.Duration) (p50, p99 float64) {
	slices.Sort(took)
	at := func(p float64) float64 {
		return float64(took[min(len(took)-1, int(p*float64(len(took))))]) / float64(time.Millisecond)
	}
	return at(0.5), at(0.99)
}

// BenchmarkReplicas compares a database with three replicas to a database with one replica. The benchmark measures the
// time from a click at one replica until another replica runs the call. In the first part ("calm"), each click comes
// after all work of the previous click is done. The clicks go alternately to the two databases. In the second part,
// each click comes when the call of the previous click has run. In the third part, many people approve at the same
// moment. The third part measures how many calls run in a second, and what the connections wait for.
func BenchmarkReplicas(b *testing.B) {
	const round, workers = 64, 64
	server := diskServer(b)
	sides := []*side{{name: "one-", moments: map[string]*[clickSteps]time.Time{}}, {name: "three-", moments: map[string]*[clickSteps]time.Time{}}}
	for i, s := range sides {
		s.database = fmt.Sprintf("side%d", i)
		url := newDatabase(b, server, s.database)
		s.asked, s.ran = make(chan approvers.Request, round), make(chan int, round)
		first := newCallFixture(b, open(b, url))
		for n := range 1 + 2*i {
			f := first
			if n > 0 {
				f = first.on(open(b, url), nil)
			}
			f = f.joined(fmt.Sprint(n))
			f.asked, f.ran, f.step = func(r approvers.Request) { s.asked <- r }, func(string) { s.ran <- n }, s.reached
			f.work()
			s.replicas = append(s.replicas, f)
		}
		for _, f := range s.replicas {
			f.has(func(own store.Shares) bool { return own != 0 && len(list(own)) <= store.ShareCount/len(s.replicas)+1 })
		}
	}
	for b.Loop() {
		calm := [][]approvers.Request{sides[0].ask(round), sides[1].ask(round)}
		for i := range round {
			for n, s := range sides {
				s.calm.add(s.click(calm[n][i]))
				s.replicas[0].quiet()
			}
		}
		for _, s := range sides {
			one := s.ask(round)
			cpu := testkit.ProcessorTime(b) + serverTime(b, server, s.database)
			for _, r := range one {
				s.alone.add(s.click(r))
			}
			s.replicas[0].quiet()
			s.worked += testkit.ProcessorTime(b) + serverTime(b, server, s.database) - cpu
			requests := s.ask(round)
			stop := s.sample.begin(b, server)
			began := time.Now()
			crowd(b, workers, round, func(i int) error {
				err := s.replicas[i%len(s.replicas)].click(b.Context(), requests[i])
				s.reached(acknowledged, requests[i].ID)
				return err
			})
			for range round {
				<-s.ran
			}
			for _, r := range requests {
				s.crowded = append(s.crowded, s.between(r.ID, acknowledged, taken))
			}
			s.spent += time.Since(began)
			stop()
			s.done += round
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, s := range sides {
		s.calm.report(b, s.name+"calm-")
		s.alone.report(b, s.name)
		p50, p99 := percentiles(s.crowded)
		b.Logf("%s many at once: carried out p50 %.1f ms, p99 %.1f ms after the acknowledgement", s.name, p50, p99)
		b.ReportMetric(1000*s.worked.Seconds()/float64(s.done), s.name+"cpu-ms/click")
		b.ReportMetric(float64(s.done)/s.spent.Seconds(), s.name+"runs/s")
		for kind, share := range s.sample.shares() {
			b.ReportMetric(share, s.name+kind+"-%")
		}
	}
	conn, err := pgx.Connect(b.Context(), server.URL("postgres"))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	var deadlocks float64
	if err := conn.QueryRow(b.Context(), "SELECT sum(deadlocks)::float8 FROM pg_stat_database").Scan(&deadlocks); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(deadlocks, "deadlocks")
	perSecond := func(s *side) float64 { return float64(s.done) / s.spent.Seconds() }
	b.ReportMetric(perSecond(sides[1])/perSecond(sides[0]), "ratio")
}

// side is one database of BenchmarkReplicas with its replicas.
type side struct {
	name     string
	database string
	replicas []*callFixture
	asked    chan approvers.Request
	ran      chan int // the number of the replica that ran a call

	mu      sync.Mutex
	moments map[string]*[clickSteps]time.Time // by the id of the request, for the steps before the step begun; by the id of the execution, for the other steps

	calm, alone clickTimes
	crowded     []time.Duration // many clicks at once: time from the acknowledgement until a replica handles the click
	worked      time.Duration   // processor time of all replicas and the server for the clicks in the field alone
	spent       time.Duration   // duration of the parts with many clicks at once
	done        int
	sample      waits
}

// ask makes n requests that wait for a decision.
func (s *side) ask(n int) (requests []approvers.Request) {
	f := s.replicas[0]
	crowd(f, 4, n, func(int) error { return f.say(f.Context()) })
	for range n {
		requests = append(requests, <-s.asked)
	}
	f.quiet()
	return requests
}

func (s *side) reached(step clickStep, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moments[id] == nil {
		s.moments[id] = &[clickSteps]time.Time{}
	}
	s.moments[id][step] = time.Now()
}

// between returns the time between two steps of a click on a request. If the second step came first, between returns 0.
func (s *side) between(id string, from, to clickStep) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.moments[id][to].Sub(s.moments[id][from]))
}

// click approves a request at the first replica, and waits until the call runs. click returns the times from the click
// to each step. If there are several replicas and the first replica ran the call, click returns nil.
func (s *side) click(r approvers.Request) []time.Duration {
	f := s.replicas[0]
	f.Helper()
	began := time.Now()
	if err := f.click(f.Context(), r); err != nil {
		f.Fatal(err)
	}
	s.reached(acknowledged, r.ID)
	if at := <-s.ran; at == 0 && len(s.replicas) > 1 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var after []time.Duration
	for step := range clickSteps {
		id := r.ID
		if step >= begun {
			id = r.Execution
		}
		after = append(after, s.moments[id][step].Sub(began))
	}
	return after
}

// clickTimes holds, for each step, the times from the clicks to this step.
type clickTimes [clickSteps][]time.Duration

func (c *clickTimes) add(after []time.Duration) {
	for step, d := range after {
		c[step] = append(c[step], d)
	}
}

func (c *clickTimes) report(b *testing.B, name string) {
	for step := range clickSteps {
		p50, p99 := percentiles(c[step])
		b.Logf("%s%s p50 %.1f ms, p99 %.1f ms", name, step, p50, p99)
	}
	p50, p99 := percentiles(c[claimed])
	b.ReportMetric(p50, name+"p50-ms")
	b.ReportMetric(p99, name+"p99-ms")
}

// waits counts what the server processes do during transactions: computing, or waiting for the client, a lock or the
// disk.
type waits struct {
	seen map[string]int
	all  int
}

// begin reads the state of the server processes every 10 ms, until stop is called.
func (w *waits) begin(t testing.TB, server *pgserver.Server) (stop func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if w.seen == nil {
		w.seen = map[string]int{}
	}
	end := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		defer conn.Close(t.Context())
		for {
			select {
			case <-end:
				return
			case <-time.After(10 * time.Millisecond):
			}
			rows, err := conn.Query(t.Context(), `
SELECT CASE WHEN wait_event_type IS NULL THEN 'computing' WHEN wait_event_type = 'Client' THEN 'client' WHEN wait_event_type = 'Lock' THEN 'locks' ELSE 'disk' END
FROM pg_stat_activity WHERE datname LIKE 'side%' AND state IN ('active', 'idle in transaction')`)
			if err != nil {
				t.Error(err)
				return
			}
			for rows.Next() {
				var kind string
				if err := rows.Scan(&kind); err != nil {
					t.Error(err)
				}
				w.seen[kind]++
				w.all++
			}
		}
	})
	return func() {
		close(end)
		looking.Wait()
	}
}

// shares returns the percentage of each kind of activity.
func (w *waits) shares() map[string]float64 {
	out := map[string]float64{}
	for kind, n := range w.seen {
		out[kind] = 100 * float64(n) / float64(w.all)
	}
	return out
}
