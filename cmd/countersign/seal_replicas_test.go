package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// sealingPair has two bots with the same signing key, which work on one database, each in its own directory. One of
// them signs the history.
type sealingPair struct {
	*processHarness
	server   *pgserver.Server
	db       store.Store
	replicas [2]*processHarness
	bots     [2]*program
	sealer   int // the index of the bot that signs the history
}

func openSealingPair(t *testing.T) *sealingPair {
	t.Helper()
	x := &sealingPair{server: pgserver.New(t, "fsync=off"), processHarness: openProcessHarness(t)}
	for i := range x.replicas {
		x.replicas[i] = x.replicaOf(x.server.URL("postgres"), filepath.Join(x.dir, "key"))
		x.bots[i], _ = x.replicas[i].serve()
	}
	db, err := postgres.Open(t.Context(), x.server.URL("postgres"), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	x.db, x.sealer = db, sealingBot(t, x.server.URL("postgres"), x.bots[:])
	return x
}

// Two bots with the same signing key work on one database, each in its own directory. One of them signs the history.
// When it is killed with SIGKILL, the other bot signs, and adds the heads of both bots to its own heads file. The
// killed bot starts again and takes over when the other bot ends. It then adds the heads that its file lacks. The whole
// history is correct for each directory, and for the heads file of the other directory.
func TestAnotherReplicaSeals(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	pair := openSealingPair(t)
	replicas, bots, db, sealer := pair.replicas, pair.bots, pair.db, pair.sealer
	sam := pair.watcher("sam")
	other := 1 - sealer
	asks := func(order string) {
		t.Helper()
		sam.sees("#support", sam.says("#support", "", "@Countersign where is "+order+"?"), order)
	}

	asks("ORD-123")
	before := replicas[sealer].awaitHeads(db, 0)
	if err := bots[sealer].end(syscall.SIGKILL); err == nil {
		t.Error("the bot that seals was not killed")
	}
	asks("ORD-129")
	killed := time.Now()
	after := replicas[other].awaitHeads(db, before)
	t.Logf("%d heads before the kill, %d heads %s after the next answer", before, after, time.Since(killed).Round(100*time.Millisecond))
	if now := headNumbers(t, readText(t, replicas[sealer].heads())); uint64(len(now)) >= after {
		t.Errorf("the heads file of the killed bot has %d heads", len(now))
	}

	bots[sealer], _ = replicas[sealer].serve()
	asks("ORD-131")
	if err := bots[other].end(syscall.SIGTERM); err != nil {
		t.Errorf("the other bot: %v", err)
	}
	replicas[sealer].awaitHeads(db, after)
	for _, r := range replicas {
		launch(t, r.dir, r.env, "audit", "verify", "--heads", replicas[0].heads(), "--heads", replicas[1].heads()).says("(the history is whole)")
	}
}

// sealingBot waits until one of the bots has the claim on the sealing, and returns its index.
func sealingBot(t *testing.T, database string, bots []*program) (at int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var owner string
		err := conn.QueryRow(t.Context(), "SELECT coalesce((SELECT r.name FROM countersign.claims c JOIN countersign.replicas r ON r.id = c.owner WHERE c.name = $1), '')", sealingJob).Scan(&owner)
		if err != nil {
			t.Fatal(err)
		}
		at = slices.IndexFunc(bots, func(p *program) bool {
			return owner == strings.Replace(cli.ProcessName(), fmt.Sprint(os.Getpid()), fmt.Sprint(p.cmd.Process.Pid), 1)
		})
		if at >= 0 {
			return at
		}
		if time.Now().After(end) {
			t.Fatalf("the sealing belongs to %q", owner)
		}
	}
}

// heads returns the path of a replica's heads file.
func (p *processHarness) heads() string { return filepath.Join(p.dir, "countersign-postgres.heads") }

// awaitHeads waits until the history has more heads than the given number, heads cover all records, and the replica's
// heads file has each head once. awaitHeads returns the number of heads.
func (p *processHarness) awaitHeads(db store.Store, more uint64) (n uint64) {
	p.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		number, left, err := unsealed(p.Context(), db)
		if err != nil {
			p.Fatal(err)
		}
		n = number
		text, err := os.ReadFile(p.heads())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.Fatal(err)
		}
		var want, got []uint64
		for i := range n {
			want = append(want, i+1)
		}
		kept, faults := approvers.KeptHeads(string(text)) // the last head may be incomplete
		for _, k := range kept {
			head, err := approvers.ReadHead(k.Note)
			if err != nil {
				p.Fatal(err)
			}
			got = append(got, head.Number)
		}
		if n > more && !left && len(faults) == 0 && slices.Equal(got, want) {
			return n
		}
		if time.Now().After(end) {
			p.Fatalf("there are %d heads (%t: and records without a head), and the file has the heads %v and the faults %v", n, left, got, faults)
		}
	}
}

// unsealed returns the number of heads in the store, and reports whether there are records that no head covers.
func unsealed(ctx context.Context, db store.Store) (heads uint64, left bool, err error) {
	err = db.View(ctx, func(r store.Reader) error {
		last, err := r.LastHead()
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		entries, err := r.Journal(last.Size, 1)
		heads, left = last.Number, len(entries) > 0
		return err
	})
	return heads, left, err
}
