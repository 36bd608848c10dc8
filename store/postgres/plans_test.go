package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/postgres"
)

// smallTables lists the tables that have few rows even in a large store. All other tables are growing tables.
var smallTables = []string{"replicas", "claims", "connections", "policies", "origin", "migrations"}

// mostRead is the maximum number of unneeded rows of growing tables that one statement may read.
const mostRead = 100

// largePart is a large part of the 2,000 waiting requests in the database. If the result of a statement has more than
// largePart rows, a plan that reads and sorts all requests is also good. PostgreSQL may choose either plan, depending
// on its statistics.
const largePart = 200

// TestPlans checks the plans of all statements on a store with thousands of requests. Two replicas make calls, from the
// message to the answer. The test then stops one replica, and the other replica takes over its work. At the end, every
// waiting request is checked against a changed policy. The server explains every statement that it executes, including
// statements within functions. No statement may read a growing table without an index, or read many unneeded rows.
// PostgreSQL plans a statement for its actual parameters, or for arbitrary parameters. The test tries both plans.
func TestPlans(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	name := empty(t)
	if server.own == nil {
		t.Skip("needs a server of its own, with auto_explain")
	}
	f := fillTables(t, name)
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		t.Run(mode, func(t *testing.T) {
			var seen plans
			f.TB = t
			f.policy.Hash = mode // changes the policy, so that every waiting request is checked against it
			f.useDatabase(at(name)+"&plan_cache_mode="+mode+"&session_preload_libraries=auto_explain&auto_explain.log_min_duration=0&auto_explain.log_analyze=on"+
				"&auto_explain.log_timing=off&auto_explain.log_nested_statements=on&auto_explain.log_format=json&auto_explain.log_level=notice", &seen)
			seen.check(t)
		})
	}
}

// fillTables puts some requests into a database, and makes copies of every row, so that the database has thousands of
// rows.
func fillTables(t testing.TB, database string) *callFixture {
	t.Helper()
	const copies = 1000
	s := open(t, at(database))
	f := newCallFixture(t, s)
	asked := make(chan approvers.Request, 1)
	f.asked = func(r approvers.Request) { asked <- r }
	stop := f.work()
	for i := range 4 {
		if err := f.say(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := <-asked
		if i%2 == 0 { // the other requests wait
			if err := f.click(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		f.quiet()
	}
	stop()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, at(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, fmt.Sprintf(`
SET search_path = countersign;
INSERT INTO grants (id, version, tool, state, open, record, checksum) SELECT 'grant' || n, 1, 'tool' || n, 'active', true, '{}', '' FROM generate_series(1, 4) n;
INSERT INTO elicitations (id, version, execution, record, checksum) VALUES ('elicitation', 1, 'execution', '{}', '');
DO $$ DECLARE name text; list text; copied text; BEGIN
FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'countersign' AND tablename <> 'migrations' AND NOT tablename = ANY('{%s}') LOOP
    -- The names of records get a suffix, and what is in a copy otherwise is the same.
    SELECT string_agg(quote_ident(attname), ', '), string_agg(CASE
        WHEN attname IN ('id', 'conversation', 'turn', 'call', 'request', 'execution', 'ref', 'chain', 'message', 'place', 'key', 'ts') THEN format('%%I || ''-'' || copy', attname)
        WHEN attname IN ('due', 'created_at', 'last_at', 'received_at', 'handled_at', 'at') THEN format('%%I + copy * interval ''1 second''', attname)
        ELSE quote_ident(attname) END, ', ')
    INTO list, copied FROM pg_attribute
    WHERE attrelid = name::regclass AND attnum > 0 AND NOT attisdropped AND attidentity = '' AND attgenerated = '' AND NOT (name = 'audit_journal' AND attname = 'leaf');
    EXECUTE format('INSERT INTO %%I (%%s) SELECT %%s FROM %%I, generate_series(1, %d) copy', name, list, copied, name);
END LOOP;
END $$;
ANALYZE`, strings.Join(smallTables, ","), copies)); err != nil {
		t.Fatal(err)
	}
	return f
}

// useDatabase makes calls with two replicas. Then one replica is stopped, and the other replica takes over its work.
func (f *callFixture) useDatabase(url string, seen *plans) {
	t := f.TB
	t.Helper()
	const calls = 6
	asked, ran := make(chan approvers.Request, calls), make(chan string, calls)
	var all []*callFixture
	var replicas []*postgres.Replica
	for i := range 2 {
		s, err := postgres.OpenWith(t.Context(), url, func(c *pgx.ConnConfig) {
			c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { seen.add(n.Message) }
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		r := joinOn(t, s, postgres.ReplicaOptions{Name: fmt.Sprint(i), Lease: 5 * time.Second, Beat: 50 * time.Millisecond})
		f := f.on(s, r)
		f.asked, f.ran = func(r approvers.Request) { asked <- r }, func(execution string) { ran <- execution }
		f.work()
		all, replicas = append(all, f), append(replicas, r)
	}
	portion := func(i int, has func(store.Shares) bool) {
		t.Helper()
		timeout := time.After(time.Minute)
		for {
			changed := replicas[i].Changed()
			if has(replicas[i].Shares()) {
				return
			}
			select {
			case <-changed:
			case <-timeout:
				t.Fatalf("replica %d has the shares %x", i, replicas[i].Shares())
			}
		}
	}
	portion(1, func(s store.Shares) bool { return s != 0 })
	for i := range calls {
		if i == calls/2 {
			replicas[1].Freeze()
			portion(0, func(s store.Shares) bool { return s == store.AllShares })
		}
		if err := all[0].say(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := all[0].click(t.Context(), <-asked); err != nil {
			t.Fatal(err)
		}
		<-ran
	}
	all[0].quiet()
	if err := all[0].workflow.Requests.Reevaluate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// plans has the plans of the statements that the server has executed.
type plans struct {
	mu  sync.Mutex
	all map[string]explained // by statement
}

// explained is one statement, with its worst plan: the plan that has read the most unneeded rows.
type explained struct {
	Statement string `json:"Query Text"`
	Plan      planNode
}

// planNode is a part of a plan in the form of EXPLAIN (ANALYZE, FORMAT JSON).
type planNode struct {
	Kind      string `json:"Node Type"`
	Relation  string `json:"Relation Name"`
	Index     string `json:"Index Name"`
	Condition string `json:"Index Cond"`
	Rows      int    `json:"Actual Rows"`
	Loops     int    `json:"Actual Loops"`
	Removed   int    `json:"Rows Removed by Filter"`
	Rechecked int    `json:"Rows Removed by Index Recheck"`
	Plans     []planNode
}

// wasted returns how many unneeded rows a plan has read.
func (n planNode) wasted() (rows int) {
	for _, below := range n.Plans {
		rows += below.wasted()
	}
	if slices.Contains(smallTables, n.Relation) {
		return rows
	}
	return rows + (n.Removed+n.Rechecked)*n.Loops
}

// each calls fn for each part of a plan.
func (n planNode) each(fn func(planNode)) {
	fn(n)
	for _, below := range n.Plans {
		below.each(fn)
	}
}

// add reads a notice of auto_explain.
func (p *plans) add(notice string) {
	_, plan, is := strings.Cut(notice, "plan:\n")
	if !is {
		return
	}
	var e explained
	if err := json.Unmarshal([]byte(plan), &e); err != nil {
		panic(fmt.Sprintf("%v: %s", err, plan))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]explained{}
	}
	if before, there := p.all[e.Statement]; !there || before.Plan.wasted() < e.Plan.wasted() {
		p.all[e.Statement] = e
	}
}

// check looks for statements that become slower as the store grows.
func (p *plans) check(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	used := map[string]bool{}
	for _, e := range p.all {
		if strings.Contains(e.Statement, "sha256") {
			t.Errorf("%s: share_of runs a statement for each timer", e.Statement)
		}
		if e.Plan.Rows > largePart && strings.Contains(e.Statement, " LIMIT ") {
			continue
		}
		e.Plan.each(func(n planNode) {
			used[n.Relation] = true
			rows := n.Rows * n.Loops
			switch {
			case n.Kind == "Sort" && n.Plans[0].Rows*n.Plans[0].Loops > e.Plan.Rows+mostRead:
				t.Errorf("%s: sorts %d rows to find %d", e.Statement, n.Plans[0].Rows*n.Plans[0].Loops, e.Plan.Rows)
			case strings.HasSuffix(e.Statement, "FROM grants WHERE open ORDER BY born"): // a real store has only a few open grants; the store of this test has many
			case n.Relation == "" || slices.Contains(smallTables, n.Relation):
			case n.Kind == "Seq Scan", strings.Contains(n.Kind, "Index") && n.Condition == "" && rows > mostRead:
				t.Errorf("%s: %s of %s, %d rows", e.Statement, n.Kind, n.Relation, rows)
			}
		})
		most := mostRead
		if strings.Contains(e.Statement, "share = ANY") { // the statement also reads the timers in the shares of other replicas
			most += 4 * store.ShareCount * e.Plan.Rows
		}
		if wasted := e.Plan.wasted(); wasted > most {
			t.Errorf("%s: read %d rows and skipped %d; at most %d may be skipped", e.Statement, e.Plan.Rows, wasted, most)
		}
	}
	for _, table := range []string{"requests", "calls", "executions", "audit_records", "timers", "inbox", "outbox_messages", "claims", "replicas", "policies"} {
		if !used[table] {
			t.Errorf("no plan with the table %s was seen", table)
		}
	}
	t.Logf("statements=%d", len(p.all))
}

// TestErasingWithOldStatistics checks that erasing a conversation reads each row only a few times. The test makes the
// server's statistics outdated: according to the statistics, the tables are empty.
func TestErasingWithOldStatistics(t *testing.T) {
	t.Parallel()
	const rows = 400
	name := empty(t)
	if server.own == nil {
		t.Skip("needs a server of its own, with auto_explain")
	}
	var seen plans
	s, err := postgres.OpenWith(t.Context(), at(name)+"&session_preload_libraries=auto_explain&auto_explain.log_min_duration=0&auto_explain.log_analyze=on"+
		"&auto_explain.log_timing=off&auto_explain.log_format=json&auto_explain.log_level=notice",
		func(c *pgx.ConnConfig) { c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { seen.add(n.Message) } })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	put := func(rows int, ids ...string) {
		t.Helper()
		err := s.Update(t.Context(), func(tx store.Tx) error {
			var errs []error
			for _, id := range ids {
				errs = append(errs, tx.PutConversation(store.Conversation{ID: id, Place: id}))
				for i := range rows {
					message := fmt.Sprint(id, i)
					errs = append(errs, tx.PutMessage(store.Message{Conversation: id, Seq: uint64(i) + 1, Text: "words"}),
						tx.PutOutboxMessage(store.OutboxMessage{ID: message, Ref: id}),
						tx.PutRendering(store.Rendering{OutboxMessage: message, Post: 1}))
				}
			}
			return errors.Join(errs...)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	erase := func(id string) {
		t.Helper()
		err := s.Update(t.Context(), func(tx store.Tx) error {
			if done, err := tx.EraseConversation(id, 10*rows); err != nil || !done {
				return fmt.Errorf("erased: %v, %w", done, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(1, "first") // the server assumes that a table that never had a row is larger
	erase("first")
	if err := execIn(name, "ANALYZE"); err != nil {
		t.Fatal(err)
	}
	put(rows, "one", "other")
	erase("one")
	seen.mu.Lock()
	defer seen.mu.Unlock()
	deletions := 0
	for _, e := range seen.all {
		read := 0
		e.Plan.each(func(n planNode) { read += (n.Rows + n.Removed) * n.Loops })
		if read > 20*rows {
			t.Errorf("%s: reads %d rows", e.Statement, read)
		}
		if strings.HasPrefix(e.Statement, "DELETE") {
			deletions++
		}
	}
	if deletions < 3 {
		t.Errorf("the plans of %d deletions were seen", deletions)
	}
}
