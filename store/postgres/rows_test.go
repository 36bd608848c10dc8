package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/store/postgres"
)

// A whole job may write or delete at most jobRows rows, and may make at most jobCommits commits: see ADR 8.
const (
	jobRows    = 52
	jobCommits = 4
)

// TestRowsOfAJob counts the rows that the workflow writes for one call, from the proposal of the call to the record of
// its result.
func TestRowsOfAJob(t *testing.T) {
	t.Parallel()
	record := &recorder{open: map[*pgx.Conn][]statement{}}
	s, err := postgres.OpenWith(t.Context(), at(empty(t)), func(c *pgx.ConnConfig) { c.Tracer = record })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	f, ctx := newCallFixture(t, s), t.Context()
	turn, err := f.message(ctx, "", f.ts())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.workflow.Turns.Begin(ctx, turn); err != nil {
		t.Fatal(err)
	}
	record.taken()
	if err := f.propose(ctx, turn); err != nil {
		t.Fatal(err)
	}
	r, err := f.request(turn)
	if err == nil {
		r, err = f.decide(ctx, "", r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, run, err := f.workflow.Runs.Claim(ctx, r.Execution); err != nil || !run {
		t.Fatalf("run: %t, %v", run, err)
	}
	if err := f.workflow.Runs.Finish(ctx, r.Execution, true, "done"); err != nil {
		t.Fatal(err)
	}
	all, in := 0, map[string]int{}
	commits := record.taken()
	for _, rows := range commits {
		for _, w := range rows {
			all++
			verb, table, _ := strings.Cut(w.sql, " ")
			table = strings.TrimPrefix(strings.TrimPrefix(table, "INTO "), "FROM ")
			table, _, _ = strings.Cut(table, " ")
			in[verb+" "+table]++
		}
	}
	if all > jobRows || len(commits) > jobCommits {
		t.Errorf("a job takes %d rows in %d commits, want at most %d in %d: %v", all, len(commits), jobRows, jobCommits, in)
	}
}
