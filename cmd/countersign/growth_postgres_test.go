package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/internal/testkit"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
	recordjson "countersign/store/record"
)

// TestGrowthPostgres measures figures that can grow with the size of a database: start, heap, decision time, size.
// COUNTERSIGN_WAITING=1000000 selects the long form, as in TestGrowth. The database server syncs its log to the disk.
func TestGrowthPostgres(t *testing.T) {
	testkit.SkipIfShort(t)
	const short = 500
	most := testkit.Size(t, "COUNTERSIGN_WAITING", short)
	server := pgserver.New(t, "max_wal_size=8GB")
	p := openProcessHarness(t)
	var url string
	database := func(name string) {
		t.Helper()
		if err := server.SQL("postgres", "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
		url = server.URL(name)
	}
	database("originals")
	g := newGrowing(t, p.policy(), func() (store.Store, error) {
		return postgres.Open(t.Context(), url, postgres.Options{Create: true})
	})
	originals := allRows(t, g.store)
	g.close()
	var all []grown
	for _, n := range steps(most) {
		name := fmt.Sprintf("waiting%d", n)
		database(name)
		g.open()
		g.fill(originals, n)
		g.seal(filepath.Join(p.dir, "countersign-postgres.audit-key"))
		if err := server.SQL(name, "VACUUM ANALYZE"); err != nil { // the server would do this by itself a minute later
			t.Fatal(err)
		}
		now := grown{Requests: n}
		now.DecideP50, now.DecideP99 = g.decisions(200)
		now.FileKiB = databaseSize(t, url) / 1024 / float64(n+min(n, maxFinished))
		g.close()
		env := append(p.env, "COUNTERSIGN_STORE="+url, "COUNTERSIGN_AUDIT_HEADS="+filepath.Join(p.dir, name))
		now.StartMS, now.HeapMiB = start(t, p.dir, env)
		now.OtherMS = startOther(t, p, env)
		t.Logf("waiting=%d finished=%d start=%.0f ms with another policy=%.0f ms heap=%.1f MiB decision p50=%.2f ms p99=%.2f ms database=%.1f KiB each", n, min(n, maxFinished), now.StartMS, now.OtherMS, now.HeapMiB, now.DecideP50, now.DecideP99, now.FileKiB)
		all = append(all, now)
		if err := server.SQL("postgres", "DROP DATABASE "+name); err != nil {
			t.Fatal(err)
		}
	}
	checkGrown(t, all, most > short)
}

// startOther starts serve with another policy, so that serve checks all waiting requests again. startOther returns how
// long serve took to be ready.
func startOther(t *testing.T, p *processHarness, env []string) (ms float64) {
	t.Helper()
	policy, err := os.ReadFile(p.policy())
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.policy(), append(policy, "# another policy\n"...))
	defer write(t, p.policy(), policy)
	bot, ms, _ := startOnce(t, p.dir, env)
	if err := bot.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return ms
}

// seal seals the history, as a running bot does. If the key file does not exist, seal creates the key.
func (g *growing) seal(key string) {
	g.t.Helper()
	keys, err := audit.OpenKeyFile(g.t.Context(), key, g.store, slog.New(slog.DiscardHandler))
	if err != nil {
		g.t.Fatal(err)
	}
	for {
		n, err := g.workflow.History.Seal(g.t.Context(), keys...)
		if err != nil {
			g.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

func databaseSize(t *testing.T, url string) (size float64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT pg_database_size(current_database())::float8").Scan(&size); err != nil {
		t.Fatal(err)
	}
	return size
}

func allRows(t *testing.T, s store.Store) (all []store.Row) {
	t.Helper()
	err := s.(store.Contents).EachRow(t.Context(), func(row store.Row) error {
		all = append(all, row.Clone())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// fill fills an empty database with the rows of the originals and with copies. The database then has n waiting copies.
// The number of finished copies is n, or maxFinished if n is larger.
func (g *growing) fill(originals []store.Row, n int) {
	g.t.Helper()
	err := g.store.(*postgres.Store).Fill(g.t.Context(), false, func(f store.Filling) error {
		to := &rowWriter{ctx: g.t.Context(), to: f}
		for _, row := range originals {
			if row.Part == store.PartJournal {
				to.leaf = row.Entry.Leaf + 1
			}
			if err := f.Put(to.ctx, row); err != nil {
				return err
			}
		}
		for i := range n {
			if err := g.waiting.copy(to, "w", i); err != nil {
				return err
			}
			if i >= maxFinished {
				continue
			}
			if err := g.finished.copy(to, "f", i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		g.t.Fatal(err)
	}
	g.n = n
}

// rowWriter puts new records directly into a store that is being filled. rowWriter does not use a transaction of the
// workflow.
type rowWriter struct {
	store.Tx // always nil: nothing calls the methods that rowWriter does not define
	ctx      context.Context
	to       store.Filling
	leaf     uint64 // number of the next journal entry
}

func putRow[T any](w *rowWriter, part store.Part, rec T) error {
	js, err := recordjson.Append(nil, &rec)
	if err != nil {
		return err
	}
	return w.to.Put(w.ctx, store.Row{Part: part, Record: js})
}

func (w *rowWriter) PutConversation(c store.Conversation) error {
	c.Version++
	return putRow(w, store.PartConversations, c)
}

func (w *rowWriter) PutMessage(m store.Message) error { return putRow(w, store.PartMessages, m) }

func (w *rowWriter) PutTurn(t approvers.Turn) error {
	t.Version++
	return putRow(w, store.PartTurns, t)
}

func (w *rowWriter) PutCall(c store.Call) error {
	c.Version++
	return putRow(w, store.PartCalls, c)
}

func (w *rowWriter) PutRequest(r approvers.Request) error {
	r.Version++
	return putRow(w, store.PartRequests, r)
}

func (w *rowWriter) PutExecution(e approvers.Execution) error {
	e.Version++
	return putRow(w, store.PartExecutions, e)
}

func (w *rowWriter) SetTimer(t store.Timer) error { return putRow(w, store.PartTimers, t) }

func (w *rowWriter) PutOutboxMessage(s store.OutboxMessage) error {
	s.Version++
	return putRow(w, store.PartOutboxMessages, s)
}

func (w *rowWriter) PutRendering(x store.Rendering) error { return putRow(w, store.PartRenderings, x) }

func (w *rowWriter) AppendAudit(a approvers.AuditRecord, p *approvers.AuditPayload) error {
	row := approvers.AuditRow{Chain: a.Chain, Seq: a.Seq, Leaf: w.leaf, Sum: approvers.SumOf(a.Bytes()), Record: a.Bytes()}
	if p != nil {
		row.Payload = p.Bytes()
	}
	w.leaf++
	if err := w.to.Put(w.ctx, store.Row{Part: store.PartAudit, Audit: row}); err != nil {
		return err
	}
	return w.to.Put(w.ctx, store.Row{Part: store.PartJournal, Entry: approvers.JournalEntry{Leaf: row.Leaf, Chain: row.Chain, Seq: row.Seq, Sum: row.Sum}})
}
