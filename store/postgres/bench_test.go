package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store/postgres"
)

// docs/figures.md explains the results of these benchmarks, and describes how to repeat the benchmarks.

// BenchmarkDecisionAlone compares decisions by the store with a hand-written program that writes the same rows. The
// program sends each decision with pgx, as one transaction in one batch. Rounds of the store and of the program
// alternate. The requests are chosen at random among the waiting requests. The goal is that the store makes at least
// half as many decisions per second as the program.
func BenchmarkDecisionAlone(b *testing.B) { benchDecisions(b, 1, 100) }

func BenchmarkDecision64(b *testing.B) { benchDecisions(b, 64, 640) }

func benchDecisions(b *testing.B, workers, round int) {
	server := diskServer(b)
	record := &recorder{open: map[*pgx.Conn][]statement{}}
	s, err := postgres.OpenWith(b.Context(), newDatabase(b, server, "ours"), func(c *pgx.ConnConfig) { c.Tracer = record })
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	f := newCallFixture(b, s)
	hand, err := pgxpool.New(b.Context(), newDatabase(b, server, "byhand")+"&search_path=countersign&pool_max_conns=16") // as many connections as the store's pool
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(hand.Close)
	write := func(rows []statement) error {
		batch := &pgx.Batch{}
		batch.Queue("begin")
		for _, w := range rows {
			batch.Queue(w.sql, w.args...)
		}
		batch.Queue("commit")
		return hand.SendBatch(b.Context(), batch).Close()
	}
	var done, statements, begun int
	var spent, worked, served [2]time.Duration
	measure := func(side int, database string, do func(i int) error) {
		atServer := serverTime(b, server, database)
		began, cpu := time.Now(), testkit.ProcessorTime(b)
		crowd(b, workers, round, do)
		spent[side] += time.Since(began)
		worked[side] += testkit.ProcessorTime(b) - cpu
		served[side] += serverTime(b, server, database) - atServer
	}
	var waiting []approvers.Request
	for b.Loop() {
		b.StopTimer()
		asked := make([]approvers.Request, max(round, 3000-len(waiting)))
		crowd(b, 4, len(asked), func(i int) (err error) {
			asked[i], err = f.ask(b.Context())
			return err
		})
		waiting = append(waiting, asked...)
		rand.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		requests := waiting[:round]
		waiting = waiting[round:]
		for _, rows := range record.taken() {
			if err := write(rows); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		measure(0, "ours", func(i int) error {
			_, err := f.decide(b.Context(), "", requests[i])
			return err
		})
		begun += record.begun
		decisions := record.taken()
		if len(decisions) != round {
			b.Fatalf("%d decisions took %d transactions", round, len(decisions))
		}
		measure(1, "byhand", func(i int) error { return write(decisions[i]) })
		done += round
		statements = len(decisions[0])
	}
	perSecond := func(side int) float64 { return float64(done) / spent[side].Seconds() }
	b.ReportMetric(0, "ns/op") // not reported, because one iteration does a round of the store and a round of the program
	b.ReportMetric(perSecond(0), "decisions/s")
	b.ReportMetric(perSecond(1), "byhand/s")
	b.ReportMetric(perSecond(0)/perSecond(1), "ratio")
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(done) }
	b.ReportMetric(each(worked[0]), "cpu-µs/decision")
	b.ReportMetric(each(worked[1]), "byhand-cpu-µs")
	b.ReportMetric(each(served[0]), "server-µs/decision")
	b.ReportMetric(each(served[1]), "byhand-server-µs")
	b.ReportMetric(float64(begun)/float64(done), "transactions/decision")
	b.ReportMetric(float64(statements), "rows")
}

// BenchmarkDecisionParts shows how the processor time of a decision is divided. The store makes decisions. Then a
// program repeats their statements with pgx in copies of the database. In the first copy, the program sends only the
// writes, as in BenchmarkDecisionAlone. In each further copy, it does one thing more as the store does. The server does
// not sync its log. Rounds of the copies alternate.
func BenchmarkDecisionParts(b *testing.B) {
	const round, rounds, workers = 64, 40, 8
	const serializable = "begin isolation level serializable"
	parts := []struct {
		name, begin string
		numbered    bool // with the number of the commit
		reads       bool // with the reads
		apart       bool // the reads take a round trip of their own
	}{
		{name: "writes", begin: "begin"},
		{name: "serializable", begin: serializable},
		{name: "numbered", begin: serializable, numbered: true},
		{name: "reads", begin: serializable, numbered: true, reads: true},
		{name: "apart", begin: serializable, numbered: true, reads: true, apart: true},
	}
	server := pgserver.New(b, "fsync=off")
	url := newDatabase(b, server, "store")
	s := open(b, url)
	f := newCallFixture(b, s)
	asked := make([]approvers.Request, round*rounds)
	crowd(b, 4, len(asked), func(i int) (err error) {
		asked[i], err = f.ask(b.Context())
		return err
	})
	if err := s.Close(); err != nil { // a database with connections can't be copied
		b.Fatal(err)
	}
	record := &recorder{open: map[*pgx.Conn][]statement{}}
	var copies []*pgxpool.Pool
	for _, p := range parts {
		if err := server.SQL("postgres", "CREATE DATABASE "+p.name+" TEMPLATE store"); err != nil {
			b.Fatal(err)
		}
		conf, err := pgxpool.ParseConfig(server.URL(p.name) + fmt.Sprintf("&search_path=countersign&enable_seqscan=off&pool_max_conns=%d", workers))
		if err != nil {
			b.Fatal(err)
		}
		conf.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "INSERT INTO connections (id, backend, began, used) VALUES (pg_backend_pid(), pg_backend_pid(), now(), now())")
			return err
		}
		pool, err := pgxpool.NewWithConfig(b.Context(), conf)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(pool.Close)
		copies = append(copies, pool)
	}
	recorded, err := postgres.OpenWith(b.Context(), url, func(c *pgx.ConnConfig) { c.Tracer = record })
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { recorded.Close() })
	f = f.on(recorded, nil)
	times := map[string]time.Duration{}
	measure := func(name string, do func(i int) error) {
		cpu, atServer := testkit.ProcessorTime(b), serverTime(b, server, name)
		crowd(b, workers, round, do)
		times[name+"-client-µs"] += testkit.ProcessorTime(b) - cpu
		times[name+"-server-µs"] += serverTime(b, server, name) - atServer
	}
	send := func(conn *pgxpool.Conn, n int, decision []statement) error {
		p, reading, batch := parts[n], true, &pgx.Batch{}
		batch.Queue(p.begin)
		for _, x := range decision {
			switch {
			case x.writes():
				if p.apart && reading {
					if err := conn.SendBatch(b.Context(), batch).Close(); err != nil {
						return err
					}
					reading, batch = false, &pgx.Batch{}
				}
				batch.Queue(x.sql, x.args...)
			case strings.Contains(x.sql, "number_commit"):
				if p.numbered {
					batch.Queue("SELECT number_commit(pg_backend_pid()::text, 1)")
				}
			case p.reads:
				batch.Queue(x.sql, x.args...)
			}
		}
		batch.Queue("commit")
		return conn.SendBatch(b.Context(), batch).Close()
	}
	repeat := func(n int, decision []statement) error {
		return copies[n].AcquireFunc(b.Context(), func(conn *pgxpool.Conn) error {
			for {
				err := send(conn, n, decision)
				var refused *pgconn.PgError
				if !errors.As(err, &refused) || refused.Code != "40001" { // if the transaction conflicts with another one, it is repeated
					return err
				}
				if _, err := conn.Exec(b.Context(), "rollback"); err != nil {
					return err
				}
			}
		})
	}
	rand.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
	for b.Loop() {
		for requests := range slices.Chunk(asked, round) {
			measure("store", func(i int) error {
				_, err := f.decide(b.Context(), "", requests[i])
				return err
			})
			decisions := record.transactions()
			for n, p := range parts {
				measure(p.name, func(i int) error { return repeat(n, decisions[i]) })
			}
		}
	}
	b.ReportMetric(0, "ns/op") // not reported, because one iteration makes all decisions
	for name, all := range times {
		b.ReportMetric(float64(all.Microseconds())/float64(len(asked)), name)
	}
}

// diskServer starts a server that writes to the disk before it answers a COMMIT. A server in production also writes to
// the disk first.
func diskServer(t testing.TB) *pgserver.Server {
	t.Helper()
	return pgserver.New(t)
}

// newDatabase makes a database with the tables.
func newDatabase(t testing.TB, server *pgserver.Server, name string) (url string) {
	t.Helper()
	if err := server.SQL("postgres", "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), server.URL(name), postgres.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return server.URL(name)
}

type statement struct {
	sql  string
	args []any
}

// writes reports whether the statement writes a row that the store's caller has given.
func (s statement) writes() bool {
	verb, _, _ := strings.Cut(s.sql, " ")
	return verb == "INSERT" || verb == "UPDATE" || verb == "DELETE"
}

// recorder records the statements of a store's transactions.
type recorder struct {
	mu        sync.Mutex
	open      map[*pgx.Conn][]statement
	committed [][]statement
	begun     int // transactions that began after the last call of taken
}

var _ pgx.BatchTracer = &recorder{}

// transactions returns the statements of the transactions that were committed after the last call of transactions,
// without the statements that begin and end transactions and savepoints.
func (r *recorder) transactions() [][]statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.committed
	r.committed, r.begun = nil, 0
	return out
}

// taken is like transactions, but returns only the statements that write rows, and no transaction without them.
func (r *recorder) taken() (written [][]statement) {
	for _, tx := range r.transactions() {
		if rows := slices.DeleteFunc(tx, func(s statement) bool { return !s.writes() }); len(rows) > 0 {
			written = append(written, rows)
		}
	}
	return written
}

type sentBatch struct{}

func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	return context.WithValue(ctx, sentBatch{}, data.Batch)
}

func (*recorder) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (r *recorder) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	b, is := ctx.Value(sentBatch{}).(*pgx.Batch)
	if !is || data.Err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := 0
	for _, q := range b.QueuedQueries {
		verb, _, _ := strings.Cut(q.SQL, " ")
		switch {
		case verb == "begin":
			r.begun++
			delete(r.open, conn)
		case verb == "commit" && len(r.open[conn]) > 0:
			r.committed = append(r.committed, r.open[conn])
			delete(r.open, conn)
		case verb == "savepoint":
			kept = len(r.open[conn])
		case verb == "rollback": // the rollback goes to the savepoint
			r.open[conn] = r.open[conn][:kept]
		case verb == "commit", verb == "release":
		default:
			r.open[conn] = append(r.open[conn], statement{q.SQL, q.Arguments})
		}
	}
}

func (*recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (*recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// crowd calls a function for each of n numbers, with several concurrent workers.
func crowd(t testing.TB, workers, n int, do func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// serverTime returns the processor time of the server processes that work for a database. If the operating system does
// not report the time, serverTime returns 0.
func serverTime(t testing.TB, server *pgserver.Server, database string) (all time.Duration) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, _ := conn.Query(t.Context(), "SELECT pid FROM pg_stat_activity WHERE datname = $1", database) // CollectRows returns the error
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		var user, system int64
		for i, into := range map[int]*int64{11: &user, 12: &system} { // proc(5): utime and stime, in hundredths of a second
			if *into, err = strconv.ParseInt(strings.Fields(after)[i], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		all += time.Duration(user+system) * 10 * time.Millisecond
	}
	return all
}
