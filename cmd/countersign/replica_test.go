package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/demo/workspace"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// replicaPoints are the points at which the test kills a replica while other replicas work.
var replicaPoints = func() []string {
	points := []string{toolCalled, toolActed}
	for _, transaction := range []string{"Receive", "ReceiveMessage", "Begin", "Propose", "Delivered", "Decide", "Claim", "Finish"} {
		points = append(points, transaction+testkit.BeforeCommit, transaction+testkit.BehindCommit)
	}
	return points
}()

// TestReplicas disturbs three replicas on one database while people click. The faults come at random moments, several
// at a time:
//   - a replica is killed with SIGKILL, at any moment or at a named point, and a new replica replaces it
//   - a replica is stopped with SIGSTOP for longer than its lease, and then resumed
//   - the network between a replica and the database is cut, blocked in one direction or in both, or slow
//   - the database is stopped immediately, as in a crash, and started again
//
// Afterwards the remaining replicas must settle all work by themselves. TestReplicas makes the same checks as
// TestKills. One of the replicas at a time seals the history. When all replicas that have sealed are killed, other
// replicas must seal the rest. The history must be whole, according to the heads files of all replicas.
//
// COUNTERSIGN_REPLICA_KILLS sets the number of kills (50 with CI=true). After about every sixth kill comes another
// fault. Sometimes two replicas are killed at the same moment. The kills are made in rounds, each with its own server,
// database, workspace and replicas. At most six rounds run concurrently, unless the flag -parallel sets another number.
// Leases are short, so that the other replicas take over the work of a killed replica before the next kill. On a slow
// machine, leases are longer. Every fifth round has leases of the usual length. COUNTERSIGN_SEED repeats the moments of
// the faults.
func TestReplicas(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	pgserver.Find(t) // skips the test without PostgreSQL
	n, seed := testkit.Size(t, "COUNTERSIGN_REPLICA_KILLS", 50), testkit.Seed(t)
	began := time.Now()
	var mu sync.Mutex
	var all figures
	count := replicaFaultCount{}
	t.Run("rounds", func(t *testing.T) {
		size := min(roundKills, (n+1)/2)
		for round := 0; round*size < n; round++ {
			kills, lease, seed := min(size, n-round*size), shortLease, seed+uint64(round)
			if round%5 == 4 {
				lease = usualLease
			}
			t.Run(fmt.Sprint(round), func(t *testing.T) {
				t.Parallel()
				own := time.Now()
				f, faults := replicaRound(t, kills, lease, seed)
				mu.Lock()
				defer mu.Unlock()
				all.add(f)
				for kind, n := range faults {
					count[kind] += n
				}
				t.Logf("%s=%d COUNTERSIGN_REPLICA_KILLS=%d: %s %s in %s; so far %d kills in %s", testkit.SeedVariable, seed, 2*kills, f, faults,
					time.Since(own).Round(time.Second), all.kills, time.Since(began).Round(time.Second))
			})
		}
	})
	t.Logf("%s %s in %s", all, count, time.Since(began).Round(time.Second))
	if all.acknowledged < n/2 || all.calls < n/4 {
		t.Errorf("too little happened between %d kills: %d acknowledged clicks, %d calls", n, all.acknowledged, all.calls)
	}
}

// usualLease and shortLease are the lease durations of the replicas in TestReplicas.
const (
	usualLease = 6 * time.Second
	shortLease = 2 * time.Second
)

// killsPerFault is the number of kills between two faults of other kinds.
const killsPerFault = 6

// replicaRound runs one round, from an empty database until everything is settled.
func replicaRound(t *testing.T, kills int, lease time.Duration, seed uint64) (figures, replicaFaultCount) {
	began := time.Now()
	server := pgserver.New(t, "fsync=off")
	lease = max(lease, time.Since(began)/4) // on a slow machine, a live replica would often renew a short lease too late
	c := openKillHarness(t, seed, func(ws *workspace.Config) { ws.RetryDelays = []time.Duration{} })
	c.conf.Store, c.conf.Lease, c.others, c.tolerated = server.URL("postgres"), lease, 2, databaseAway
	c.conf.Audit.Key = filepath.Join(c.dir, "key")
	c.begin()
	c.conf.Listen = ""
	f := &replicaFaults{killHarness: c, server: server, random: testkit.Chance(seed, 7), count: replicaFaultCount{}}
	c.run(func(ctx context.Context) {
		for i := range 1 + c.others {
			f.places = append(f.places, newReplicaPlace(t, server, filepath.Join(c.dir, fmt.Sprintf("heads-at-%d", i))))
			f.start(ctx, i, killPoint{})
		}
		for _, p := range f.places {
			c.awaitUp(p.process)
		}
		for n := 0; f.count[killedReplica] < kills; n++ {
			if n%(killsPerFault+1) == killsPerFault {
				f.begin(ctx, otherFaults[n/(killsPerFault+1)%len(otherFaults)])
			} else {
				f.begin(ctx, killedReplica)
			}
		}
		f.end(ctx)
		c.await("a signed head", func() bool { n, _ := c.sealedHeads(); return n > 0 })
		for _, p := range f.places {
			p.process.end(syscall.SIGKILL)
		}
		c.hadHeads, _ = c.sealedHeads()
	})
	all := c.findings()
	all.kills = f.count[killedReplica]
	return all, f.count
}

type replicaFault string

const (
	killedReplica    replicaFault = "killed"   // a replica
	stoppedReplica   replicaFault = "stopped"  // a replica, for longer than its lease
	crashedDatabase  replicaFault = "database" // stopped immediately, and started again
	refusedNetwork   replicaFault = "refused"  // connections are cut, and new ones are refused
	silentNetwork    replicaFault = "silent"   // nothing arrives in either direction
	deafNetwork      replicaFault = "no-queries"
	muteNetwork      replicaFault = "no-answers"
	slowNetwork      replicaFault = "slow"
	longestPause                  = time.Second     // between the beginnings of two faults, with short leases
	continuedReplica              = 2 * time.Second // time from the resume of a stopped replica until its earlier work is over
)

type replicaFaultCount map[replicaFault]int

func (c replicaFaultCount) String() string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		list = append(list, fmt.Sprintf("%s=%d", kind, c[kind]))
	}
	return strings.Join(list, " ")
}

// replicaNetworks has the states of the network for each kind of network fault.
var replicaNetworks = map[replicaFault]pgserver.Network{
	refusedNetwork: {Refused: true},
	silentNetwork:  {FromClient: true, FromServer: true},
	deafNetwork:    {FromClient: true},
	muteNetwork:    {FromServer: true},
}

// otherFaults lists the faults other than kills. The faults occur in this order.
var otherFaults = []replicaFault{stoppedReplica, crashedDatabase, silentNetwork, muteNetwork, refusedNetwork, deafNetwork, slowNetwork}

// replicaPlace is a place at which one replica runs at a time. It has a network connection to the database, and the
// current process.
type replicaPlace struct {
	proxy   *pgserver.Proxy
	url     string
	heads   string // the heads file of the replicas at this place
	process *process
	doomed  bool          // the process kills itself when it reaches a point
	healed  chan struct{} // closed when the last fault at this place is over
}

func newReplicaPlace(t *testing.T, server *pgserver.Server, heads string) *replicaPlace {
	p := &replicaPlace{proxy: pgserver.NewProxy(t, server), heads: heads, healed: make(chan struct{})}
	p.url = p.proxy.URL("postgres")
	close(p.healed)
	return p
}

// replicaFaults causes the faults.
type replicaFaults struct {
	*killHarness
	server   *pgserver.Server
	random   *rand.Rand
	places   []*replicaPlace
	database chan struct{} // closed when the database runs again; nil: the database was never stopped
	count    replicaFaultCount
}

// start starts a replica at a place.
func (f *replicaFaults) start(ctx context.Context, at int, end killPoint) {
	direct := f.conf
	defer func() { f.conf = direct }()
	f.conf.Store, f.conf.Audit.Heads = f.places[at].url, f.places[at].heads
	f.places[at].process, f.places[at].doomed = f.killHarness.start(ctx, end), end != killPoint{}
}

// begin begins a fault and waits for a short time.
func (f *replicaFaults) begin(ctx context.Context, kind replicaFault) {
	f.Helper()
	at := f.place()
	place := f.places[at]
	<-place.healed
	if kind != killedReplica {
		f.count[kind]++
	}
	switch kind {
	case killedReplica:
		killed := []int{at}
		if f.random.IntN(6) == 0 {
			if other := f.place(); other != at {
				<-f.places[other].healed
				killed = append(killed, other)
			}
		}
		for _, at := range killed {
			_ = f.places[at].process.cmd.Process.Signal(syscall.SIGKILL) // the process may have ended; finish checks the reason
		}
		for _, at := range killed {
			f.finish(f.places[at])
			end := killPoint{}
			if f.random.IntN(2) == 0 {
				end = killPoint{Point: replicaPoints[f.random.IntN(len(replicaPoints))], Nth: 1 + f.random.IntN(2)}
			}
			f.start(ctx, at, end)
		}
	case stoppedReplica:
		f.revive(ctx, at)
		f.frozen.Add(1)
		_ = place.process.cmd.Process.Signal(syscall.SIGSTOP) // the process may have killed itself
		f.heal(place, f.conf.Lease+f.upTo(f.conf.Lease), func() {
			_ = place.process.cmd.Process.Signal(syscall.SIGCONT)
			time.AfterFunc(continuedReplica, func() { f.frozen.Add(-1) })
		})
	case crashedDatabase:
		f.awaitDatabase()
		f.server.Kill()
		again := make(chan struct{})
		f.database = again
		time.AfterFunc(f.upTo(f.conf.Lease), func() {
			defer close(again)
			if err := f.server.Run(); err != nil {
				f.Error(err)
			}
		})
	default:
		f.revive(ctx, at)
		network := replicaNetworks[kind]
		if kind == slowNetwork {
			network.Delay = 20*time.Millisecond + f.upTo(300*time.Millisecond)
		}
		place.proxy.Set(network)
		f.heal(place, f.upTo(2*f.conf.Lease), func() { place.proxy.Set(pgserver.Network{}) })
	}
	select {
	case <-place.process.gone:
	case <-time.After(f.upTo(longestPause * f.conf.Lease / shortLease)):
	}
}

// place selects a random place. It prefers places without a fault.
func (f *replicaFaults) place() int {
	order := f.random.Perm(len(f.places))
	for _, at := range order {
		select {
		case <-f.places[at].healed:
			return at
		default:
		}
	}
	return order[0]
}

func (f *replicaFaults) upTo(longest time.Duration) time.Duration {
	return time.Duration(f.random.Int64N(int64(longest)))
}

// heal ends a fault after a while.
func (f *replicaFaults) heal(place *replicaPlace, after time.Duration, end func()) {
	healed := make(chan struct{})
	place.healed = healed
	time.AfterFunc(after, func() {
		defer close(healed)
		end()
	})
}

func (f *replicaFaults) awaitDatabase() {
	if f.database != nil {
		<-f.database
	}
}

// finish kills the replica at a place.
func (f *replicaFaults) finish(place *replicaPlace) {
	f.Helper()
	f.killed(place.process)
	f.count[killedReplica]++
}

// revive makes sure that a replica runs at a place.
func (f *replicaFaults) revive(ctx context.Context, at int) {
	f.Helper()
	select {
	case <-f.places[at].process.gone:
		f.awaitDatabase()
		f.finish(f.places[at])
		f.start(ctx, at, killPoint{})
	default:
	}
}

// end waits until all faults are over. Then end waits until the replicas have settled the work that people had begun by
// that time.
func (f *replicaFaults) end(ctx context.Context) {
	f.Helper()
	f.awaitDatabase()
	for i, place := range f.places {
		<-place.healed
		f.revive(ctx, i)
		if place.doomed { // otherwise all replicas could kill themselves, and no replica would be left
			f.finish(place)
			f.start(ctx, i, killPoint{})
		}
	}
	f.settled()
}

// TestFailover kills the primary database with SIGKILL and promotes a synchronous standby. Meanwhile, people click, and
// three replicas handle the clicks. The replicas have the addresses of both databases. In every second failover, the
// machine of the primary stops answering. Until the promotion, every replica says on /readyz that it is not ready.
// Afterwards the replicas work without a restart. TestFailover makes the same checks as TestKills: no acknowledged
// delivery may be lost.
//
// COUNTERSIGN_FAILOVERS sets the number of failovers (2 with CI=true).
func TestFailover(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	n, seed := testkit.Size(t, "COUNTERSIGN_FAILOVERS", 2), testkit.Seed(t)
	primary, err := pgserver.Start(pgserver.Find(t), "fsync=off", "wal_level=replica", "max_wal_senders=5")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { primary.Remove() })
	standby, err := primary.Standby(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { standby.Remove() })
	began := time.Now()
	c := openKillHarness(t, seed, func(ws *workspace.Config) { ws.RetryDelays = []time.Duration{} })
	c.tolerated = databaseAway
	proxies := []*pgserver.Proxy{pgserver.NewProxy(t, primary), pgserver.NewProxy(t, standby)}
	at, err := url.Parse(proxies[0].URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := url.Parse(proxies[1].URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	at.Host += "," + second.Host
	at.RawQuery += "&target_session_attrs=read-write"
	c.conf.Store, c.others = at.String(), 2
	c.begin()
	c.conf.Listen = ""
	random := testkit.Chance(seed, 8)
	var noticed, took []time.Duration
	c.run(func(ctx context.Context) {
		var replicas []*process
		for range 1 + c.others {
			p := c.start(ctx, killPoint{})
			c.awaitUp(p)
			replicas = append(replicas, p)
		}
		all := func(status int) func() bool {
			return func() bool {
				return !slices.ContainsFunc(replicas, func(p *process) bool {
					is, _ := c.ready(p)
					return is != status
				})
			}
		}
		for i := range n {
			clicked := c.clicks()
			c.await("people to click", func() bool { return c.clicks() > clicked+10 })
			<-time.After(time.Duration(random.Int64N(int64(time.Second))))
			if i%2 == 0 { // the primary is at the first address: its machine stops answering
				proxies[i%2].Set(pgserver.Network{FromClient: true, FromServer: true})
			}
			primary.KillHard()
			killed := time.Now()
			c.await("the replicas to say that the database is away", all(http.StatusServiceUnavailable))
			noticed = append(noticed, time.Since(killed).Round(100*time.Millisecond))
			if err := standby.Promote(); err != nil {
				t.Fatal(err)
			}
			promoted := time.Now()
			c.await("the replicas to continue", all(http.StatusOK))
			clicked = c.clicks()
			c.await("people to click again", func() bool { return c.clicks() > clicked })
			took = append(took, time.Since(promoted).Round(100*time.Millisecond))
			c.settled()
			proxies[i%2].Set(pgserver.Network{})
			port := primary.Port
			primary.Remove()
			primary = standby
			if standby, err = primary.Standby(port); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range replicas {
			p.end(syscall.SIGKILL)
		}
	})
	t.Logf("%s failovers=%d; noticed after %s, continued %s after the promotion; in %s", c.findings(), n, noticed, took, time.Since(began).Round(time.Second))
}

// databaseAway lists the errors that the bot may log while the database is down or another replica takes over.
var databaseAway = []string{
	"the database does not answer: nothing is acknowledged, decided or run until it does",
	"a delivery could not be stored, so it is not acknowledged",
	"a tool ran, but its result could not be recorded yet",
	"the history can't be sealed",
	"signed heads of the history can't be shipped",
}

// sealedHeads returns the number of heads in the store, and reports whether they cover every record.
func (c *killHarness) sealedHeads() (heads uint64, all bool) {
	c.Helper()
	left := false
	c.beside(func(db store.Store) (err error) {
		heads, left, err = unsealed(c.Context(), db)
		return err
	})
	return heads, !left
}

// awaitSealed waits until replicas that were not killed have sealed the rest of the history.
func (c *killHarness) awaitSealed() {
	if c.conf.Audit.Key == "" {
		return
	}
	c.Helper()
	c.await("other replicas to seal the history", func() bool {
		n, all := c.sealedHeads()
		return n > c.hadHeads && all
	})
}

func (c *killHarness) clicks() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.deeds)
}

// The method "settled" waits until all work that people have begun is settled.
func (c *killHarness) settled() {
	c.Helper()
	c.mu.Lock()
	asks := slices.Clone(c.asks)
	c.mu.Unlock()
	left := func() []*ask {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.DeleteFunc(slices.Clone(asks), func(a *ask) bool { return a.closed })
	}
	stuck := isStuck(func() int { return len(left()) })
	for ; len(left()) > 0; <-time.After(glance) {
		if stuck() {
			c.Fatalf("waited in vain for everything to settle that people had begun: %s\n%s", c.outstanding(left()), c.tail())
		}
	}
}

// The method "outstanding" describes conversations that are not settled. It lists the messages in their threads, and
// the waiting work in the database.
func (c *killHarness) outstanding(asks []*ask) string {
	var says strings.Builder
	fmt.Fprintf(&says, "frozen %d", c.frozen.Load())
	for _, a := range asks {
		fmt.Fprintf(&says, "\n#%s:", a.number)
		messages, err := workspaceclient.Client{Base: c.conf.Base, User: "sam"}.Messages(c.Context(), "#support", a.root)
		if err != nil {
			fmt.Fprint(&says, err)
		}
		for _, m := range messages {
			fmt.Fprintf(&says, "\n  %q", m.Text)
			for _, e := range workspaceclient.Elements(m.Blocks) {
				fmt.Fprintf(&says, " [%s %s]", e.ActionID, e.Value)
			}
		}
	}
	db, err := postgres.Open(c.Context(), c.conf.Store, postgres.Options{})
	if err != nil {
		return fmt.Sprint(says.String(), "\n", err)
	}
	defer db.Close()
	err = db.View(c.Context(), func(r store.Reader) error {
		for _, kind := range store.TimerKinds {
			timers, err := r.Timers(kind, 20)
			if err != nil {
				return err
			}
			for _, t := range timers {
				fmt.Fprintf(&says, "\n%s %s in share %d, due %s, tries %d", t.Kind, t.Ref, t.Share(), t.Due.Format(time.TimeOnly), t.Tries)
			}
		}
		return nil
	})
	if err != nil {
		fmt.Fprint(&says, "\n", err)
	}
	return says.String()
}

// TestStoppedReplica stops a replica with SIGSTOP in the middle of a run, and resumes it after its lease has expired.
// Meanwhile another replica takes over. The other replica says that the run's outcome is unknown, and answers people.
// The stopped replica completes its call, but can't record the result. Then the resumed replica takes part in the work.
//
// COUNTERSIGN_STOPPED sets for how many seconds the replica is stopped (10 with CI=true).
func TestStoppedReplica(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	stopped := time.Duration(testkit.Size(t, "COUNTERSIGN_STOPPED", 10)) * time.Second
	server := pgserver.New(t, "fsync=off")
	c := openKillHarness(t, 1)
	c.conf.Store, c.others, c.conf.Slow = server.URL("postgres"), 1, 3*time.Second
	sam := workspaceclient.Client{Base: c.conf.Base, User: "sam"}
	replicas := []*process{c.start(t.Context(), killPoint{}), c.start(t.Context(), killPoint{})}
	for _, p := range replicas {
		c.awaitUp(p)
		defer p.end(syscall.SIGKILL)
	}
	root, err := sam.Say(t.Context(), "#support", "", "@Countersign do act #2000")
	if err != nil {
		t.Fatal(err)
	}
	<-c.wakeups["tool"]
	first, second := replicas[0], replicas[1]
	if second.tools.Load() > 0 {
		first, second = second, first
	}
	if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	db, err := postgres.Open(t.Context(), c.conf.Store, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs := func() (all []approvers.Execution) {
		err := db.View(t.Context(), func(r store.Reader) error {
			conv, err := r.ConversationAt("T0001/C0001/" + root)
			if err != nil {
				return err
			}
			all, err = r.Executions(conv.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	c.await("another replica to take over", func() bool { all := runs(); return len(all) == 1 && all[0].State == approvers.ExecutionUnknown })
	// The takeover takes at most 8 seconds. The test allows more, because a busy machine needs longer.
	took := time.Since(began)
	if took > 30*time.Second {
		t.Errorf("the other replica took over after %s", took)
	}
	if second.tools.Load() != 0 {
		t.Error("the run was repeated")
	}
	if _, err := sam.Say(t.Context(), "#support", "", "@Countersign do look #2001"); err != nil {
		t.Fatal(err)
	}
	c.await("the other replica to work", func() bool { return second.tools.Load() > 0 })
	<-time.After(stopped - time.Since(began))
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.await("the replica that was stopped to join again", func() bool {
		said, err := os.ReadFile(filepath.Join(c.dir, "said"))
		return err == nil && strings.Contains(string(said), "other replicas took this replica for dead")
	})
	c.await("its call to end", func() bool { return c.runsSeen() > 1 }) // each tool writes one line
	if all := runs(); len(all) != 1 || all[0].State != approvers.ExecutionUnknown {
		t.Errorf("after the late end of the call: %+v", all)
	}
	for n := 0; first.tools.Load() < 2; n++ {
		if n == 200 {
			t.Fatal("the replica that was stopped does not work again")
		}
		if _, err := sam.Say(t.Context(), "#support", "", fmt.Sprintf("@Countersign do look #%d", 2002+n)); err != nil {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Logf("taken over after %s; stopped for %s", took.Round(100*time.Millisecond), stopped)
}
