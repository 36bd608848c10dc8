package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/cmd/countersign/cli"
	"countersign/internal/testkit"
)

// Two replicas work on a database that loses its newest signed head, as after a failover to a standby that lacked it.
// Both replicas end, and both are held when they start again: the one that signed no heads has written the head to its
// heads file. Then one of them works, because an operator has renamed its heads file. On the other one, audit
// accept-loss refuses, because it would close the work of the first one.
func TestReplicasOfRewoundDatabase(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	pair := openSealingPair(t)
	server, replicas, bots := pair.server, pair.replicas, pair.bots
	sam := pair.watcher("sam")
	sam.sees("#support", sam.says("#support", "", "@Countersign where is ORD-123?"), "ORD-123")
	replicas[pair.sealer].awaitHeads(pair.db, 0)
	awaitBeats(t, server.URL("postgres"))
	if err := server.SQL("postgres", "DELETE FROM countersign.audit_heads WHERE number = (SELECT max(number) FROM countersign.audit_heads)"); err != nil {
		t.Fatal(err)
	}
	ends := func(p *program, code int) {
		t.Helper()
		select {
		case <-p.gone:
		case <-time.After(patience):
			t.Fatal("the program does not end")
		}
		var exit *exec.ExitError
		if !errors.As(p.err, &exit) || exit.ExitCode() != code {
			t.Errorf("the program ended with %v, want %d", p.err, code)
		}
	}
	for i, bot := range bots {
		ends(bot, cli.ExitFailed)
		if !strings.Contains(bot.text(), "the database is older than before") {
			t.Errorf("the bot does not say why it ends:\n%s", bot.text())
		}
		bots[i] = launch(t, replicas[i].dir, replicas[i].env, "serve")
		bots[i].says("(older than its signed heads)")
	}
	head := bots[1].says(`signed heads in \S+ end with head (\d+)`)
	if err := bots[0].end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := os.Rename(replicas[0].heads(), replicas[0].heads()+".kept"); err != nil {
		t.Fatal(err)
	}
	replicas[0].serve()
	accepts := launch(t, replicas[1].dir, replicas[1].env, "audit", "accept-loss", "--head", head, "--reason", "the disk is gone")
	accepts.says("(in use by another process.* stop the bot here)")
	ends(accepts, cli.ExitFailed)
}

// awaitBeats waits until every replica has sent two more heartbeats, with which it reads the newest head. The replica
// has handled the first one when it sends the second one.
func awaitBeats(t *testing.T, database string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	lease := func(which string) (until time.Time) {
		if err := conn.QueryRow(t.Context(), "SELECT "+which+"(alive_until) FROM countersign.replicas").Scan(&until); err != nil {
			t.Fatal(err)
		}
		return until
	}
	for range 2 {
		before, end := lease("max"), time.Now().Add(patience)
		for !lease("min").After(before) {
			if time.Now().After(end) {
				t.Fatal("the replicas send no heartbeats")
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
