package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// replicaPoints are points at which a replica is killed while others work.
var replicaPoints = func() []string {
	points := []string{toolCalled, toolActed}
	for _, transaction := range []string{"Receive", "ReceiveMessage", "Begin", "Propose", "Delivered", "Decide", "Claim", "Finish"} {
		points = append(points, transaction+testkit.BeforeCommit, transaction+testkit.BehindCommit)
	}
	return points
}()

// TestReplicas kills replicas that work on one database with SIGKILL, at random moments and at named points, while
// others continue and people click. Each killed replica is replaced by a new one. The findings are those of TestKills.
//
// COUNTERSIGN_REPLICA_KILLS sets the number of kills (4), COUNTERSIGN_SEED repeats their moments.
func TestReplicas(t *testing.T) {
	t.Parallel()
	kills, seed := testkit.Size(t, "COUNTERSIGN_REPLICA_KILLS", 4), testkit.Seed(t)
	server, err := pgserver.Start(pgserver.Find(t), "fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Remove)
	began := time.Now()
	c := openKillHarness(t, seed, func(ws *workspace.Config) { ws.RetryDelays = []time.Duration{} })
	c.conf.Store, c.conf.Listen, c.others = server.URL("postgres"), "", 2
	random := testkit.Chance(seed, 7)
	c.run(func(ctx context.Context) {
		var replicas []*process
		for range 1 + c.others {
			replicas = append(replicas, c.start(ctx, killPoint{}))
		}
		for _, p := range replicas {
			c.awaitUp(p)
		}
		for n := range kills {
			which := n % len(replicas)
			end := killPoint{}
			if random.IntN(2) == 0 {
				end = killPoint{Point: replicaPoints[random.IntN(len(replicaPoints))], Nth: 1 + random.IntN(2)}
			}
			c.killed(replicas[which])
			replicas[which] = c.start(ctx, end)
			select {
			case <-replicas[which].gone:
			case <-time.After(time.Duration(random.Int64N(int64(4 * time.Second)))):
			}
		}
		for _, p := range replicas {
			p.end(syscall.SIGKILL)
		}
	})
	f := c.findings()
	f.kills = kills
	t.Logf("%s in %s", f, time.Since(began).Round(time.Second))
	if f.acknowledged < kills/2 || f.calls < kills/2 {
		t.Errorf("too little happened between %d kills: %d acknowledged clicks, %d calls", kills, f.acknowledged, f.calls)
	}
}

// TestStoppedReplica stops a replica with SIGSTOP in the middle of a run, for longer than its lease, and continues it.
// Meanwhile another one takes over: it says that the run's outcome is unknown, and answers people. The replica that was
// stopped completes its call, but can't record that, and then works again.
//
// COUNTERSIGN_STOPPED sets for how many seconds it is stopped (10).
func TestStoppedReplica(t *testing.T) {
	t.Parallel()
	stopped := time.Duration(testkit.Size(t, "COUNTERSIGN_STOPPED", 10)) * time.Second
	server, err := pgserver.Start(pgserver.Find(t), "fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Remove)
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
	took := time.Since(began)
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
		return err == nil && strings.Contains(string(said), "this replica was taken for dead")
	})
	c.await("its call to end", func() bool { return c.runsSeen() > 1 }) // one line of each tool
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
