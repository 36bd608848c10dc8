package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// bouncer starts a PgBouncer in front of the server.
func bouncer(t *testing.T, settings ...string) *pgserver.Bouncer {
	t.Helper()
	begin(t)
	if server.own == nil {
		t.Skip("needs a server of its own")
	}
	return pgserver.NewBouncer(t, server.own, map[string]string{role: "bot"}, settings...)
}

func bouncedBot(b *pgserver.Bouncer, name string) string {
	return b.URL(name, url.UserPassword(role, "bot"))
}

// With pool_mode=session, all functions of the store work. The test makes the tables, runs transactions, and checks the
// settings of the sessions. The test also holds the lock, exchanges notices, and takes over the work of a dead replica.
// Parameters of the address have an effect, even if PgBouncer is configured to ignore these parameters.
func TestBouncerSession(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	for _, settings := range [][]string{{"pool_mode=session"}, {"pool_mode=session", "ignore_startup_parameters=search_path,statement_timeout", "server_round_robin=1"}} {
		b := bouncer(t, append(settings, "default_pool_size=40")...)
		fresh := database(t, "template0")
		s, err := postgres.Open(t.Context(), b.URL(fresh, nil)+"&search_path=elsewhere", postgres.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"search_path": "elsewhere", "statement_timeout": "30s", "enable_seqscan": "off", "TimeZone": "UTC", "synchronous_commit": "on"} {
			if got, err := s.Shown(t.Context(), name); err != nil || got != want {
				t.Errorf("%s is %q (%v), want %q", name, got, err, want)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}

		name := empty(t)
		o := postgres.ReplicaOptions{Lease: 5 * time.Second}
		first, a := join(t, bouncedBot(b, name), o)
		second, c := join(t, bouncedBot(b, name), o)
		for _, held := range []*postgres.Store{first, second} {
			if err := held.Hold(t.Context(), true); err != nil {
				t.Fatal(err)
			}
		}
		alone := open(t, bouncedBot(b, name))
		if err := alone.Hold(t.Context(), false); !errors.Is(err, store.ErrLocked) {
			t.Errorf("while replicas hold the database: got error %v, want ErrLocked", err)
		}
		write := func(s *postgres.Store) error {
			return s.Update(t.Context(), func(tx store.Tx) error {
				x, err := tx.Setting("x")
				x.Key, x.Value = "x", []byte("1")
				return errors.Join(store.IgnoreNotFound(err), tx.PutSetting(x))
			})
		}
		if err := errors.Join(write(first), write(second), first.Check(t.Context())); err != nil {
			t.Error(err)
		}
		notified(t, a, c)
		a.Freeze() // simulates the death of the process
		for end := time.Now().Add(time.Minute); c.Shares() != store.AllShares; {
			changed := c.Changed()
			select {
			case <-changed:
			case <-time.After(time.Until(end)):
				t.Fatal("the second replica does not take over")
			}
		}
		a.Thaw()
		a.Leave()
		c.Leave()
		if err := errors.Join(first.Close(), second.Close(), alone.Hold(t.Context(), false)); err != nil {
			t.Errorf("after the replicas have ended: %v", err)
		}
	}
}

// PgBouncer's pool is too small for the bot. The error names the pool as a possible cause.
func TestBouncerFull(t *testing.T) {
	t.Parallel()
	b := bouncer(t, "pool_mode=session", "default_pool_size=1")
	tryOpen(t, b.URL(empty(t), nil)+"&connect_timeout=1", store.ErrUnavailable, "does not answer", "connection pooler: see whether it has connections left")
}

// PgBouncer refuses a wrong password and a missing database. The error says what to do.
func TestBouncerRefuses(t *testing.T) {
	t.Parallel()
	b := bouncer(t, "pool_mode=session")
	name := empty(t)
	tryOpen(t, b.URL(name, url.UserPassword(role, "horse")), postgres.ErrAccess, "pooler", "check the user and the password")
	tryOpen(t, b.URL(name, url.User(role)), postgres.ErrAccess, "pooler", "check the user and the password")
	tryOpen(t, b.URL(name, url.UserPassword("nobody", "horse")), postgres.ErrAccess, "pooler", "check the user and the password")
	tryOpen(t, b.URL("unknown", url.UserPassword(role, "bot")), postgres.ErrAccess, "pooler", "make the database first")
}

// notified waits until one replica gets the notice of another replica.
func notified(t *testing.T, from, to *postgres.Replica) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond) // the notice is repeated, because LISTEN may begin later
	defer again.Stop()
	end := time.After(time.Minute)
	for {
		select {
		case n := <-to.Notices():
			if len(n.News) > 0 {
				return
			}
		case <-again.C:
			from.Tell(store.Notice{News: []string{"hello"}})
		case <-end:
			t.Fatal("no notice arrives")
		}
	}
}

// With any other pool_mode, Open fails and writes nothing. The test tries poolers that use several server processes in
// turn, poolers with a single server process, and poolers with a second client.
func TestBouncerModes(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{
		"pool_mode=transaction", "pool_mode=statement", "pool_mode=transaction server_round_robin=1", "pool_mode=transaction default_pool_size=1",
		"pool_mode=transaction server_reset_query_always=1",
	} {
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			b := bouncer(t, strings.Fields(settings)...)
			name := database(t, "template0")
			if err := execIn(name, "CREATE TABLE public.mine (id int)"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer cancel()
			if !strings.Contains(settings, "size=1") {
				conn, err := pgx.Connect(ctx, b.URL(name, nil))
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // an error of Close has no effect
					for ctx.Err() == nil {
						_, _ = conn.PgConn().Exec(ctx, "SELECT 1").ReadAll() // the client only has to use server processes
					}
				})
			}
			for range 5 {
				if _, err := postgres.Open(t.Context(), b.URL(name, nil), postgres.Options{Create: true}); !errors.Is(err, postgres.ErrServer) || !strings.Contains(err.Error(), "pool_mode = session") {
					t.Fatalf("got error %v, want one that names pool_mode", err)
				} else if strings.Contains(err.Error(), "horse") {
					t.Errorf("the error %q shows the password", err)
				}
			}
			if _, err := postgres.Migrate(context.Background(), b.URL(name, nil), false); !errors.Is(err, postgres.ErrServer) {
				t.Errorf("migrate: got error %v", err)
			}
			if err := execIn(name, "CREATE SCHEMA countersign"); err != nil {
				t.Errorf("the schema was made: %v", err)
			}
		})
	}
}
