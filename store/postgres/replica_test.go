package postgres_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/bits"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/jobs"
	"countersign/store/postgres"
	"countersign/store/storetest"
)

// join opens a store, and makes this process a replica.
func join(t *testing.T, url string, o postgres.ReplicaOptions) (*postgres.Store, *postgres.Replica) {
	t.Helper()
	s := open(t, url)
	return s, joinOn(t, s, o)
}

func joinOn(t testing.TB, s *postgres.Store, o postgres.ReplicaOptions) *postgres.Replica {
	t.Helper()
	o.Beat, o.Margin = cmp.Or(o.Beat, 20*time.Millisecond), cmp.Or(o.Margin, 200*time.Millisecond)
	for began := time.Now(); ; {
		r, err := s.Join(t.Context(), o)
		switch {
		case err == nil:
			return r
		case !errors.Is(err, store.ErrUnavailable) || time.Since(began) > testkit.Patience: // a busy server may need longer than a short lease to answer
			t.Fatal(err)
		}
	}
}

func TestClaims(t *testing.T) {
	storetest.RunClaims(t, func(t *testing.T) func(storetest.Joining) storetest.Member {
		name := empty(t)
		return func(j storetest.Joining) storetest.Member {
			s, r := join(t, asBot(name), postgres.ReplicaOptions{Name: j.Name, Lease: j.Lease, Drain: j.Drain})
			return storetest.Member{Store: s, Replica: r, Freeze: r.Freeze, Thaw: r.Thaw, Leave: r.Leave}
		}
	})
}

// When the work on a share has ended, the share moves to another replica immediately. When a replica stops, its shares
// move immediately too. The other replicas do not wait for their next heartbeat.
func TestHandedOverAtOnce(t *testing.T) {
	t.Parallel()
	name := empty(t)
	seldom := postgres.ReplicaOptions{Lease: 2 * time.Hour, Beat: time.Hour, Drain: time.Hour}
	var replicas []*postgres.Replica
	for range 2 {
		r, err := open(t, asBot(name)).Join(t.Context(), seldom)
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, r)
	}
	a, b := replicas[0], replicas[1]
	conn, err := pgx.Connect(t.Context(), at(name))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // an error of Close has no effect
	await(t, "both hear notices", func() bool {
		n := 0
		err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' AND (query LIKE 'LISTEN %' OR query = '-- ping')").Scan(&n)
		return err == nil && n == 2
	})
	var leaves []func()
	for share := range store.ShareCount {
		_, leave, ok := a.Enter(t.Context(), store.ShareClaim(share))
		if !ok {
			t.Fatalf("the first replica does not have share %d", share)
		}
		leaves = append(leaves, leave)
	}
	a.BeatNow()
	await(t, "half of the shares are given up", func() bool { return bits.OnesCount64(uint64(a.Shares())) == 32 })
	if s := b.Shares(); s != 0 {
		t.Errorf("the second replica has the shares %b while work on them goes on", s)
	}
	for _, leave := range leaves {
		leave()
	}
	await(t, "half of the shares are handed over", func() bool { return b.Shares() == ^a.Shares() && bits.OnesCount64(uint64(b.Shares())) == 32 })
	a.Leave()
	await(t, "all shares are handed over", func() bool { return b.Shares() == store.AllShares })
}

// A replica that can't work leaves its shares to the other replicas. It keeps a share until the running work in the
// share has ended. If no replica can work, the replicas divide the shares as usual.
func TestReplicaThatCannotWork(t *testing.T) {
	t.Parallel()
	name := empty(t)
	var able [2]atomic.Bool
	var replicas [2]*postgres.Replica
	for i := range replicas {
		able[i].Store(true)
		_, replicas[i] = join(t, asBot(name), postgres.ReplicaOptions{Able: able[i].Load})
	}
	a, b := replicas[0], replicas[1]
	divided := func() bool {
		return bits.OnesCount64(uint64(a.Shares())) == store.ShareCount/2 && b.Shares() == ^a.Shares()
	}
	await(t, "the replicas divide the shares", divided)

	busy := bits.TrailingZeros64(uint64(a.Shares()))
	work, leave, ok := a.Enter(t.Context(), store.ShareClaim(busy))
	if !ok {
		t.Fatalf("the first replica does not have share %d", busy)
	}
	able[0].Store(false)
	await(t, "the other replica has all shares without running work", func() bool { return b.Shares() == store.AllShares&^store.Shares(0).With(busy) })
	if work.Err() != nil {
		t.Errorf("the running work ended: %v", work.Err())
	}
	leave()
	await(t, "the other replica has all shares", func() bool { return b.Shares() == store.AllShares })

	able[1].Store(false)
	await(t, "the replicas divide the shares, because none can work", divided)
	able[0].Store(true)
	await(t, "the first replica has all shares", func() bool { return a.Shares() == store.AllShares })
	able[1].Store(true)
	await(t, "the replicas divide the shares again", divided)
}

// The SQL code and the Go code compute the same share for a timer.
func TestShares(t *testing.T) {
	t.Parallel()
	s := open(t, at(empty(t)))
	var timers []store.Timer
	for i, text := range []string{"", "a", "\x00", "\x01b", "\x02", "\x03", "ä", "conversation:1", "\xff", "\U0001F600", "thread:C1/1.1"} {
		for j := range 3 {
			timer := store.Timer{Kind: "k", Ref: fmt.Sprint(i, "/", j), Due: time.Unix(1, 0)}
			switch j {
			case 0:
				timer.Ref += strings.ToValidUTF8(text, "")
			case 1:
				timer.Lane = text
			case 2:
				timer.Lane, timer.Affinity = "lane", text
			}
			timers = append(timers, timer)
		}
	}
	err := s.Update(t.Context(), func(tx store.Tx) error {
		for _, timer := range timers {
			if err := tx.SetTimer(timer); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.View(t.Context(), func(r store.Reader) error {
		found := 0
		for share := range store.ShareCount {
			list, err := r.TimersIn(store.Shares(0).With(share), "k", time.Time{}, 100)
			if err != nil {
				return err
			}
			for _, timer := range list {
				if timer.Share() != share {
					t.Errorf("the database has %+v in share %d, and it belongs to %d", timer, share, timer.Share())
				}
			}
			found += len(list)
		}
		if found != len(timers) {
			t.Errorf("%d timers are in shares, want %d", found, len(timers))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// worker is a replica that handles timers. The handler of a timer appends the timer's Ref to the setting of the timer's
// lane.
type worker struct {
	replica *postgres.Replica
	store   *postgres.Store
	stop    func()
}

func work(t *testing.T, url string, o postgres.ReplicaOptions, handle func(ctx context.Context, s *postgres.Store, timer store.Timer) error) *worker {
	t.Helper()
	return workOn(t, open(t, url), o, handle)
}

func workOn(t *testing.T, s *postgres.Store, o postgres.ReplicaOptions, handle func(ctx context.Context, s *postgres.Store, timer store.Timer) error) *worker {
	t.Helper()
	w := &worker{store: s, replica: joinOn(t, s, o)}
	now := func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
	r := jobs.New(jobs.Options{
		Store: w.store, Log: slog.New(slog.DiscardHandler), Now: now, Kinds: []store.TimerKind{store.TimerRun}, Replica: w.replica,
		Update: func(ctx context.Context, _ string, fn func(store.Tx, time.Time) error) error {
			return w.store.Update(ctx, func(tx store.Tx) error { return fn(tx, now()) })
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		err := r.Run(ctx, map[store.TimerKind]jobs.Worker{store.TimerRun: {Concurrency: 16, Handle: func(ctx context.Context, timer store.Timer) error {
			return handle(ctx, w.store, timer)
		}}})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", o.Name, err)
		}
	})
	w.stop = sync.OnceFunc(func() {
		stop()
		wg.Wait()
	})
	t.Cleanup(w.stop)
	return w
}

// done appends a timer's Ref to the setting of the timer's lane, and clears the timer.
func done(ctx context.Context, s *postgres.Store, timer store.Timer) error {
	return s.Update(ctx, func(tx store.Tx) error {
		x, err := tx.Setting(timer.Lane)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		if len(x.Value) == 0 {
			x.Key, x.Value = timer.Lane, []byte(`""`)
		}
		x.Value = []byte(strings.TrimSuffix(string(x.Value), `"`) + timer.Ref + ` "`)
		return errors.Join(tx.PutSetting(x), tx.ClearTimer(timer.Kind, timer.Ref))
	})
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(testkit.Patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %s: not %s", testkit.Patience, what)
		}
	}
}

// Three replicas handle timers of many lanes. One replica leaves. A second replica is suspended during its work, and
// the third replica takes over this work. Every timer is handled once, and the timers of a lane are handled in order.
func TestReplicasShareWork(t *testing.T) {
	t.Parallel()
	const lanes, each = 40, 6
	url := at(empty(t))
	set := open(t, url)
	add := func(from, to int) {
		t.Helper()
		err := set.Update(t.Context(), func(tx store.Tx) error {
			for lane := range lanes {
				for i := from; i < to; i++ {
					timer := store.Timer{Kind: store.TimerRun, Ref: fmt.Sprintf("%d.%d", lane, i), Lane: fmt.Sprint("lane ", lane), Due: time.Unix(int64(i), 0)}
					if err := tx.SetTimer(timer); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	o := func(name string) postgres.ReplicaOptions {
		return postgres.ReplicaOptions{Name: name, Lease: 5 * time.Second}
	}
	a := work(t, url, o("a"), done)
	caught := make(chan store.Timer, lanes)
	wake, fate := make(chan struct{}), make(chan error, lanes)
	b := work(t, url, o("b"), func(ctx context.Context, s *postgres.Store, timer store.Timer) error {
		if !strings.HasSuffix(timer.Ref, ".3") {
			return done(ctx, s, timer)
		}
		select {
		case caught <- timer:
		default:
		}
		<-wake
		err := done(context.WithoutCancel(ctx), s, timer)
		fate <- err
		return err
	})
	c := work(t, url, o("c"), done)
	add(0, 3)
	idle := func() bool {
		left := 1
		err := set.View(t.Context(), func(r store.Reader) error {
			timers, err := r.Timers(store.TimerRun, 1000)
			left = len(timers)
			return err
		})
		return err == nil && left == 0
	}
	await(t, "everything is handled", idle)
	await(t, "all have a portion", func() bool {
		return !slices.ContainsFunc([]*worker{a, b, c}, func(w *worker) bool { return w.replica.Shares() == 0 })
	})
	c.stop()
	c.replica.Leave()
	add(3, each)
	timer := <-caught
	began := time.Now()
	b.replica.Freeze()
	await(t, "the others do what a stopped one did not", func() bool { return a.replica.Shares() == store.AllShares && idle() })
	close(wake)
	t.Logf("%s was taken over and done after %s", timer.Ref, time.Since(began))
	if err := <-fate; !errors.Is(err, store.ErrFenced) {
		t.Errorf("recorded by the one that was stopped: got error %v, want ErrFenced", err)
	}
	b.stop()
	err := set.View(t.Context(), func(r store.Reader) error {
		for lane := range lanes {
			want := ""
			for i := range each {
				want += fmt.Sprintf("%d.%d ", lane, i)
			}
			x, err := r.Setting(fmt.Sprint("lane ", lane))
			if err != nil {
				return err
			}
			if got := strings.Trim(string(x.Value), `"`); got != want {
				t.Errorf("lane %d: %s; want %s", lane, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// If a notice has several payloads, the last payload has the timers. So the receiver gets all news before it wakes its
// workers.
func TestTimersInLastPayload(t *testing.T) {
	t.Parallel()
	n := store.Notice{Timers: map[store.TimerKind]store.Shares{store.TimerRun: store.AllShares}}
	for range 50 {
		n.News = append(n.News, strings.Repeat("x", 1000))
	}
	list := postgres.Payloads(n)
	news := 0
	for i, payload := range list {
		news += strings.Count(payload, n.News[0])
		if last := i == len(list)-1; strings.Contains(payload, "timers") != last {
			t.Errorf("payload %d of %d: %.100s", i+1, len(list), payload)
		}
	}
	if len(list) < 2 || news != len(n.News) {
		t.Errorf("%d payloads with %d news", len(list), news)
	}
}

// A notice reaches every other replica of the schema, but not its sender. A notice that is too long for PostgreSQL
// arrives in parts. After the loss of a connection, the replica reconnects and receives notices. A notice may be lost,
// for example if this process is suspended for a while, so the test repeats a notice that does not arrive.
func TestNotices(t *testing.T) {
	t.Parallel()
	url := at(empty(t))
	o := postgres.ReplicaOptions{Lease: time.Minute}
	admin, a := join(t, url, o)
	_, b := join(t, url, o)
	_, c := join(t, url, o)
	got := map[*postgres.Replica]*store.Notice{a: {}, b: {}, c: {}}
	receive := func(r *postgres.Replica) {
		select {
		case n := <-r.Notices():
			got[r].Merge(n)
		case <-time.After(10 * time.Millisecond):
		}
	}
	// await sends a notice until it arrives. The function notice returns the notice of the nth try.
	await := func(what string, from *postgres.Replica, every time.Duration, notice func(n int) store.Notice, arrived func(n int) bool) {
		t.Helper()
		end := time.Now().Add(testkit.Patience)
		for n := 1; ; n++ {
			from.Tell(notice(n))
			for next := time.Now().Add(every); time.Now().Before(next); {
				for r := range got {
					receive(r)
				}
				if arrived(n) {
					return
				}
			}
			if time.Now().After(end) {
				t.Fatalf("not %s", what)
			}
		}
	}
	short := func(text string) func(int) store.Notice {
		return func(int) store.Notice { return store.Notice{News: []string{text}} }
	}
	hear := func(text string, replicas ...*postgres.Replica) func(int) bool {
		return func(int) bool {
			return !slices.ContainsFunc(replicas, func(r *postgres.Replica) bool { return !slices.Contains(got[r].News, text) })
		}
	}
	await("all hear", a, 50*time.Millisecond, short("hello"), hear("hello", b, c)) // the others may begin LISTEN later
	await("the first hears", b, 50*time.Millisecond, short("hello"), hear("hello", a))

	long := func(n int) store.Notice {
		notice := store.Notice{Timers: map[store.TimerKind]store.Shares{store.TimerRun: 5}}
		for i := range 500 {
			notice.News = append(notice.News, fmt.Sprintf("long %d %060d", n, i))
		}
		return notice
	}
	whole := func(r *postgres.Replica, n int) bool {
		parts := slices.DeleteFunc(slices.Clone(got[r].News), func(s string) bool { return !strings.HasPrefix(s, fmt.Sprintf("long %d ", n)) })
		return slices.Equal(parts, long(n).News) && got[r].Timers[store.TimerRun] == 5
	}
	await("the long one arrives, whole and in order", b, 10*time.Second, long, func(n int) bool { return whole(a, n) && whole(c, n) })
	if slices.ContainsFunc(got[b].News, func(s string) bool { return strings.HasPrefix(s, "long ") }) {
		t.Error("the sender got its own notice")
	}
	if err := admin.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND datname = current_database()"); err != nil {
		t.Fatal(err)
	}
	await("they hear again", a, 50*time.Millisecond, short("hello again"), hear("hello again", b, c))
}

// Another process sets a timer. The replica gets no notice of the timer, because LISTEN fails or the notification is
// lost. The replica begins the work within two seconds, because every replica reads the due timers once a second.
func TestLostNotices(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*pgserver.Proxy){
		"LISTEN fails": func(p *pgserver.Proxy) {
			p.When(func(statement string) pgserver.Cutting {
				if strings.HasPrefix(statement, "LISTEN ") {
					return pgserver.Before
				}
				return pgserver.Pass
			})
		},
		"notifications are lost": func(p *pgserver.Proxy) { p.Deafen.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := empty(t)
			p, through := through(t, database)
			lose(p)
			begun := make(chan string, 1)
			w := work(t, through, postgres.ReplicaOptions{Lease: time.Minute}, func(ctx context.Context, s *postgres.Store, timer store.Timer) error {
				begun <- timer.Ref
				return done(ctx, s, timer)
			})
			set, other := join(t, at(database), postgres.ReplicaOptions{Lease: time.Minute})
			other.Leave() // after this, the worker gets all shares
			for changed := w.replica.Changed(); w.replica.Shares() != store.AllShares; changed = w.replica.Changed() {
				<-changed
			}
			reads := readEachSecond(t, w.store)
			for i := range 4 {
				timer := store.Timer{Kind: store.TimerRun, Ref: fmt.Sprint(i), Lane: "lane", Due: time.Unix(int64(i), 0)}
				if err := set.Update(t.Context(), func(tx store.Tx) error { return tx.SetTimer(timer) }); err != nil {
					t.Fatal(err)
				}
				before := reads.Load()
				set.Visit().Tell(store.Notice{Timers: map[store.TimerKind]store.Shares{timer.Kind: store.AllShares}})
				// The replica begins within two seconds. The test does not measure seconds, because a busy machine needs
				// more of them. On such a machine, the reads once a second are late, too.
				if ref, n := <-begun, reads.Load()-before; ref != timer.Ref || n > 5 {
					t.Errorf("timer %s was begun after %d reads, want timer %s after at most two", ref, n, timer.Ref)
				}
			}
		})
	}
}

// readEachSecond reads from the store once a second, until the test ends. The result is the number of the reads so far.
func readEachSecond(t *testing.T, s *postgres.Store) *atomic.Int64 {
	var reads atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.NewTicker(time.Second); ; reads.Add(1) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := s.View(ctx, func(r store.Reader) error { _, err := r.Timers(store.TimerRun, 1); return err }); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return &reads
}

// The address has two hosts. The first host stops answering, but does not close its connections. The replica continues
// its heartbeats, notices and reads over the second host. An attempt to reach the first host takes longer than a
// heartbeat may take. So later connections must try the second host first. The time limits are so long that the test
// also passes on a busy machine, which may suspend a process for a while.
func TestSilentAddress(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	name := empty(t)
	first, at1 := through(t, name)
	_, at2 := through(t, name)
	u, err := url.Parse(at1)
	if err != nil {
		t.Fatal(err)
	}
	other, err := url.Parse(at2)
	if err != nil {
		t.Fatal(err)
	}
	u.Host += "," + other.Host
	u.RawQuery += "&connect_timeout=5&target_session_attrs=read-write"
	const lease = 9 * time.Second // a heartbeat may take a third of this
	s, r := join(t, u.String(), postgres.ReplicaOptions{Lease: lease})
	_, direct := join(t, at(name), postgres.ReplicaOptions{Lease: time.Minute})
	look := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return s.View(ctx, func(r store.Reader) error { _, err := r.Turn("t"); return store.IgnoreNotFound(err) })
	}
	if err := look(time.Minute); err != nil {
		t.Fatal(err)
	}
	first.Set(pgserver.Network{FromClient: true, FromServer: true})
	silent := time.Now()
	if err := look(100 * time.Millisecond); !store.Refused(err) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read ended with %v", err)
	}
	await := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after a minute: not %s", what)
			}
		}
	}
	await("the replica works again", func() bool {
		return time.Since(silent) > lease && r.Shares() != 0 && look(10*time.Second) == nil
	})
	await("notices arrive again", func() bool {
		direct.Tell(store.Notice{News: []string{"hello"}})
		select {
		case <-r.Notices():
			return true
		default:
			return false
		}
	})
	before := first.Accepted.Load()
	for range 3 {
		if err := s.Reconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := first.Accepted.Load() - before; n > 0 {
		t.Errorf("three new connections tried the host that does not answer %d times", n)
	}
	first.Set(pgserver.Network{Refused: true}) // without this refusal, Close would wait for the connections to the first host
}

// The server never answers the first statement of a connection. The pool must close this connection after a while, and
// use its place for another connection.
func TestSilentFirstStatement(t *testing.T) {
	t.Parallel()
	name := empty(t)
	p, at := through(t, name)
	s := open(t, at+"&pool_max_conns=1&connect_timeout=1")
	var silent atomic.Bool
	silent.Store(true)
	p.When(func(statement string) pgserver.Cutting {
		if strings.HasPrefix(statement, "INSERT INTO connections") && silent.CompareAndSwap(true, false) {
			return pgserver.Hang
		}
		return pgserver.Pass
	})
	s.Renew()
	look := func() error {
		return s.View(t.Context(), func(r store.Reader) error { _, err := r.Turn("t"); return store.IgnoreNotFound(err) })
	}
	if err := look(); !store.Refused(err) || silent.Load() {
		t.Errorf("the first read ended with %v", err)
	}
	if err := look(); err != nil {
		t.Errorf("the pool has no connection left: %v", err)
	}
}

// nextProgram returns the migrations of a "next program", and the version of the tables of the current program. The
// next program has the migrations of the current program, and one more step. The function oldest returns the oldest
// program version that can use the tables after this step.
func nextProgram(t *testing.T, step string, oldest func(today int64) int64) (next fs.FS, today int64) {
	t.Helper()
	files := fstest.MapFS{}
	entries, err := os.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile("migrations/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = &fstest.MapFile{Data: text}
		if today, err = goose.NumericComponent(e.Name()); err != nil {
			t.Fatal(err)
		}
	}
	files[fmt.Sprintf("%05d_next.sql", today+1)] = &fstest.MapFile{Data: fmt.Appendf(nil, "-- +goose Up\n%s\nSELECT needs_program(%d);\n", step, oldest(today))}
	return files, today
}

// openAs opens a database like a program with other migrations. openAs closes the store at the end of the test.
func openAs(t *testing.T, url string, program fs.FS) *postgres.Store {
	t.Helper()
	s, err := postgres.OpenAs(t.Context(), url, program, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// addsOnly is a step that only adds columns, tables and functions, so the current program can use the tables after the
// step. The bot's role ROLE gets few rights on the new table and the new function. ROLE also gets one additional right
// on an existing table.
const addsOnly = `
ALTER TABLE requests ADD COLUMN urgency text NOT NULL DEFAULT 'none';
ALTER TABLE timers ADD COLUMN hint text;
ALTER TABLE audit_journal ADD COLUMN hint text;
CREATE TABLE hints (id text PRIMARY KEY, hint text NOT NULL);
CREATE FUNCTION hint() RETURNS text LANGUAGE sql AS $$ SELECT 'none' $$;
REVOKE ALL ON FUNCTION hint() FROM PUBLIC;
GRANT SELECT ON hints TO ROLE;
GRANT INSERT (hint) ON audit_journal TO ROLE;`

func same(today int64) int64 { return today }

// Replicas of the current program and of a next program (see nextProgram) work at the same time, during and after the
// migration. Each of the two replicas takes over work of the other replica, and no timer is handled twice.
func TestVersionsSideBySide(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	name := database(t, template)
	next, today := nextProgram(t, strings.ReplaceAll(addsOnly, "ROLE", role), same)
	set := open(t, asBot(name))
	const lanes = 100
	added := 0
	add := func() {
		t.Helper()
		err := set.Update(t.Context(), func(tx store.Tx) error {
			for lane := range lanes {
				if err := tx.SetTimer(store.Timer{Kind: store.TimerRun, Ref: fmt.Sprintf("%d.%d", lane, added), Lane: fmt.Sprint("lane ", lane), Due: time.Unix(int64(added), 0)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		added++
	}
	idle := func() bool {
		left := 1
		err := set.View(t.Context(), func(r store.Reader) error {
			timers, err := r.Timers(store.TimerRun, 1000)
			left = len(timers)
			return err
		})
		return err == nil && left == 0
	}
	hasAll := func(w *worker) func() bool {
		return func() bool { return w.replica.Shares() == store.AllShares && idle() }
	}
	o := func(name string) postgres.ReplicaOptions {
		return postgres.ReplicaOptions{Name: name, Lease: 5 * time.Second}
	}
	a := work(t, asBot(name), o("a, today"), done)
	add()
	// A long read transaction, such as a dump, does not stop the replicas.
	dump, err := pgx.Connect(t.Context(), at(name))
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // an error of Close has no effect
	if _, err := dump.Exec(t.Context(), "BEGIN; SELECT FROM countersign.requests"); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.MigrateAs(t.Context(), at(name), next, false); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "for longer than 2s; the step that failed is undone: try again later") {
		t.Errorf("during a dump: got error %v, want that the step waits for 2 s and is tried again later", err)
	}
	if a.replica.Shares() != store.AllShares {
		t.Error("the replica has lost its shares")
	}
	if _, err := dump.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	names, err := postgres.MigrateAs(t.Context(), at(name), next, false)
	if err != nil || len(names) != 1 {
		t.Fatalf("with a replica of today's: applied %v, %v", names, err)
	}
	add()
	await(t, "today's replica continues", idle)
	b := workOn(t, openAs(t, at(name), next), o("b, next"), done)
	await(t, "both have a portion", func() bool { return a.replica.Shares() != 0 && b.replica.Shares() != 0 })
	add()
	await(t, "both do their part", idle)
	a.replica.Freeze()
	add()
	await(t, "the next takes over from today's", hasAll(b))
	a.stop()
	// The current program also starts on the newer tables. The current program does not report unknown tables and
	// functions as faults.
	c := work(t, asBot(name), o("c, today"), done)
	if r := c.store.Rights(); r.Missing() != nil || r.Excess() != "" {
		t.Errorf("today's program on the newer tables: %v, %s", r.Missing(), r.Excess())
	}
	if names, err := postgres.Migrate(t.Context(), at(name), false); err != nil || len(names) != 0 {
		t.Errorf("today's program migrates the newer tables: applied %v, %v", names, err)
	}
	await(t, "both have a portion", func() bool { return b.replica.Shares() != 0 && c.replica.Shares() != 0 })
	add()
	await(t, "both do their part", idle)
	b.replica.Freeze()
	add()
	await(t, "today's takes over from the next", hasAll(c))
	b.stop()
	var want strings.Builder
	err = set.View(t.Context(), func(r store.Reader) error {
		for lane := range lanes {
			want.Reset()
			for i := range added {
				fmt.Fprintf(&want, "%d.%d ", lane, i)
			}
			x, err := r.Setting(fmt.Sprint("lane ", lane))
			if err != nil {
				return err
			}
			if got := strings.Trim(string(x.Value), `"`); got != want.String() {
				t.Errorf("lane %d: %s; want %s", lane, got, want.String())
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// Only the next program can check the store, because only this program has all migrations.
	if err := openAs(t, at(name), next).Check(t.Context()); err != nil {
		t.Errorf("the next program's check: %v", err)
	}
	refused := fmt.Sprintf("have version %d. This program knows those of version %d, so it can't check or copy everything", today+1, today)
	for what, err := range map[string]error{
		"check":   set.Check(t.Context()),
		"copy":    set.EachRow(t.Context(), func(store.Row) error { return nil }),
		"salvage": set.EachReadable(t.Context(), func(store.Row) error { return nil }, func(store.Damage, string) {}),
		"fill":    open(t, at(name)).Fill(t.Context(), false, func(store.Filling) error { return nil }),
	} {
		if !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), refused) {
			t.Errorf("%s by today's program: got error %v, want ErrNewer", what, err)
		}
	}
}

// twoVersions passes calls alternately to a store of the current program and to a store of the next program. Only the
// store of the next program checks the tables.
type twoVersions struct{ several }

func (p *twoVersions) Check(ctx context.Context) error { return p.stores[1].Check(ctx) }

// The current program and a next program (see nextProgram) pass the concurrent part of the conformance suite on the
// same tables.
func TestConformanceTwoVersions(t *testing.T) {
	storetest.RunConcurrent(t, func(t *testing.T) storetest.Opener {
		name := database(t, template)
		next, _ := nextProgram(t, strings.ReplaceAll(addsOnly, "ROLE", role), same)
		if _, err := postgres.MigrateAs(t.Context(), at(name), next, false); err != nil {
			t.Fatal(err)
		}
		return func() (store.Store, error) {
			a, err := postgres.Open(context.Background(), asBot(name), postgres.Options{})
			b, err2 := postgres.OpenAs(context.Background(), at(name), next, postgres.Options{})
			return &twoVersions{several{stores: []store.Store{a, b}}}, errors.Join(err, err2)
		}
	})
}

// A step of a next program (see nextProgram) changes the tables so that the current program can't use them. While a
// replica of the current program works, the step fails. The step succeeds while a replica of the current program is
// suspended. When this replica continues, it stops.
func TestBreakingStep(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	name := database(t, template)
	next, today := nextProgram(t, "ALTER TABLE absences RENAME COLUMN record TO stored;", func(today int64) int64 { return today + 1 })
	s, r := join(t, asBot(name), postgres.ReplicaOptions{Name: "host/1", Version: "v1", Lease: 5 * time.Second})
	late := open(t, asBot(name)) // this store joins later
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, postgres.ErrOldReplicas) || !strings.Contains(err.Error(), "host/1 v1. ") {
			t.Errorf("%s: got error %v, want ErrOldReplicas and the name", what, err)
		}
	}
	names, err := postgres.MigrateAs(t.Context(), at(name), next, true)
	refused("dry run", err)
	if len(names) != 1 {
		t.Errorf("dry run: it would apply %v", names)
	}
	names, err = postgres.MigrateAs(t.Context(), at(name), next, false)
	refused("migrate", err)
	if len(names) != 0 {
		t.Errorf("it applied %v", names)
	}
	_, err = postgres.OpenAs(t.Context(), at(name), next, postgres.Options{Migrate: true})
	refused("serve with COUNTERSIGN_MIGRATE=auto", err)
	// The step itself calls needs_program, which also checks the replicas. So a replica that joined after the first
	// check is detected.
	if err := execIn(name, fmt.Sprintf("SET search_path = countersign; SELECT needs_program(%d)", today)); err != nil {
		t.Errorf("a step that only adds: %v", err)
	}
	if err := execIn(name, fmt.Sprintf("SET search_path = countersign; SELECT needs_program(%d)", today+1)); err == nil || !strings.Contains(err.Error(), "host/1 v1") {
		t.Errorf("the step itself: got error %v, want that the replica is named", err)
	}
	open(t, asBot(name)) // opens, because the step changed nothing

	ctx, leave, ok := r.Enter(t.Context(), store.ShareClaim(0))
	if !ok {
		t.Fatal("the replica does not have the share")
	}
	defer leave()
	r.Freeze() // the other replicas consider it dead after the end of its lease
	await(t, "the step is applied", func() bool {
		names, err := postgres.MigrateAs(t.Context(), at(name), next, false)
		if err != nil {
			refused("within the lease", err)
		}
		return err == nil && len(names) == 1
	})
	err = s.Update(context.WithoutCancel(ctx), func(tx store.Tx) error { return tx.PutSetting(store.Setting{Key: "late"}) })
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("a handler of the old program: got error %v, want ErrFenced", err)
	}
	sentence := fmt.Sprintf("have version %d, and this program knows versions up to %d. Start the newer program again", today+1, today)
	r.Thaw()
	select {
	case <-s.Broken():
	case <-time.After(testkit.Patience):
		t.Fatal("the old program does not end")
	}
	if err := s.Failure(); !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), sentence) {
		t.Errorf("the old program ends with %v, want ErrNewer", err)
	}
	if _, err := late.Join(t.Context(), postgres.ReplicaOptions{Name: "late"}); !errors.Is(err, store.ErrNewer) || errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), sentence) {
		t.Errorf("a replica of the old program joins: got error %v, want ErrNewer", err)
	}
	tryOpen(t, asBot(name), store.ErrNewer, sentence)
	if _, err := postgres.Migrate(t.Context(), at(name), false); !errors.Is(err, store.ErrNewer) {
		t.Errorf("the old program migrates: got error %v, want ErrNewer", err)
	}
	after := joinOn(t, openAs(t, asBot(name), next), postgres.ReplicaOptions{Name: "next", Lease: 5 * time.Second})
	await(t, "the next program has everything", func() bool { return after.Shares() == store.AllShares })
}

// A replica that joins during a step waits for the end of the step. After the wait, the replica detects that the tables
// need a newer program.
func TestJoinDuringStep(t *testing.T) {
	t.Parallel()
	name := database(t, template)
	_, today := nextProgram(t, "", same)
	s := open(t, asBot(name))
	step, err := pgx.Connect(t.Context(), at(name))
	if err != nil {
		t.Fatal(err)
	}
	defer step.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // an error of Close has no effect
	_, err = step.Exec(t.Context(), fmt.Sprintf("BEGIN; SET LOCAL search_path = countersign; SELECT needs_program(%d); INSERT INTO migrations (version_id, is_applied) VALUES (%[1]d, true)", today+1))
	if err != nil {
		t.Fatal(err)
	}
	joined := make(chan error, 1)
	go func() {
		_, err := s.Join(t.Context(), postgres.ReplicaOptions{Name: "old"})
		joined <- err
	}()
	await(t, "the replica waits", func() bool {
		select {
		case err := <-joined:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		var waits bool
		err := step.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'countersign.replicas'::regclass AND NOT granted)").Scan(&waits)
		return err == nil && waits
	})
	if _, err := step.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-joined; !errors.Is(err, store.ErrNewer) {
		t.Errorf("got error %v, want ErrNewer", err)
	}
}

// Replicas on machines whose clocks differ use the same time, the database's. Therefore a request that one replica makes
// does not expire early in another replica, whose clock is an hour ahead. The operator learns of each wrong clock once,
// and the offset ends when the clock is right again.
func TestClocksOfReplicas(t *testing.T) {
	t.Parallel()
	name := empty(t)
	var log strings.Builder
	handler := slog.NewTextHandler(&log, nil)
	var ahead [3]atomic.Int64 // by how much the clock of each replica's machine is ahead
	var replicas [3]*postgres.Replica
	var fixtures [3]*callFixture
	for i, skew := range []time.Duration{0, -time.Hour, 200 * time.Millisecond} {
		ahead[i].Store(int64(skew))
		var s *postgres.Store
		s, replicas[i] = join(t, asBot(name), postgres.ReplicaOptions{
			Name: fmt.Sprintf("host-%d", i), Log: slog.New(handler),
			Now: func() time.Time { return time.Now().Add(time.Duration(ahead[i].Load())) },
		})
		if i == 0 {
			fixtures[i] = newCallFixture(t, s).on(s, replicas[i])
		} else {
			fixtures[i] = fixtures[0].on(s, replicas[i])
		}
	}
	for i, want := range []time.Duration{0, time.Hour, 0} {
		if got := replicas[i].ClockOffset(); (got - want).Abs() > time.Second {
			t.Errorf("replica %d: the offset is %s, want about %s", i, got, want)
		}
		if differs := time.Until(replicas[i].Now()); differs.Abs() > time.Second {
			t.Errorf("replica %d: the time differs by %s", i, differs)
		}
	}
	if offset, err := postgres.ReadOffset(t.Context(), asBot(name)); err != nil || offset != 0 {
		t.Errorf("a command measures an offset of %s: %v", offset, err)
	}
	r, err := fixtures[1].ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fixtures {
		defer f.work()()
	}
	fixtures[0].quiet()
	await(t, "no deadline is due", func() bool {
		due := false
		err := fixtures[0].store.View(t.Context(), func(x store.Reader) error {
			timers, err := x.Timers(store.TimerExpire, 10)
			due = len(timers) > 0 && !timers[0].Due.After(replicas[0].Now())
			return err
		})
		return err == nil && !due
	})
	if r, err = fixtures[0].workflow.Views.Request(t.Context(), r.ID); err != nil || !r.State.Open() {
		t.Errorf("the request is %s: %v", r.State, err)
	}

	ahead[1].Store(0)
	await(t, "the offset ends", func() bool { return replicas[1].ClockOffset() == 0 })
	ahead[2].Store(int64(10 * time.Minute))
	await(t, "the clock that was set is noticed", func() bool { return replicas[2].ClockOffset() < -9*time.Minute })
	for _, r := range replicas {
		r.Leave()
	}
	for words, want := range map[string]int{
		"level=WARN msg=\"this machine's clock is 1h0m0s behind the database's\"":  1,
		"level=INFO msg=\"this machine's clock and the database's agree again\"":   1,
		"level=WARN msg=\"this machine's clock is 10m0s ahead of the database's\"": 1,
	} {
		if got := strings.Count(log.String(), words); got != want {
			t.Errorf("the log has %q %d times, want %d:\n%s", words, got, want, log.String())
		}
	}
}
