package bolt

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"countersign/store"
)

// written lists the rows that a closure has written so far, with their current values.
func written(t store.Tx) []rawPut {
	r := t.(*tx).rows
	puts := make([]rawPut, 0, len(r.changes))
	seen := map[string]bool{}
	for _, x := range r.changes {
		name := bucketNames[x.in] + "\x00" + string(x.key)
		if seen[name] {
			continue
		}
		seen[name] = true
		puts = append(puts, rawPut{[]byte(bucketNames[x.in]), bytes.Clone(x.key), append([]byte(nil), r.get(x.in, x.key)...)})
	}
	return puts
}

// recorder is a store that records the rows of each transaction.
type recorder struct {
	*Store
	mu  sync.Mutex // guards all fields: benchFixture.asked makes concurrent requests
	all [][]rawPut
}

func (r *recorder) Update(ctx context.Context, fn func(store.Tx) error) error {
	var puts []rawPut
	err := r.Store.Update(ctx, func(t store.Tx) error {
		err := fn(t)
		puts = written(t)
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(puts) > 0 {
		r.all = append(r.all, puts)
	}
	return err
}

// replay lists the rows that jobs wrote. A benchmark writes the same rows with bbolt alone.
type replay struct {
	asked [][]rawPut   // the rows from before the jobs
	jobs  [][][]rawPut // the transactions of each job
}

// recordJobs does n jobs sequentially, and records the rows that the jobs write.
func recordJobs(b testing.TB, n int) replay {
	o := newBenchFixture(b, false)
	r := &recorder{Store: o.shared}
	o.over = r
	var out replay
	turns := o.asked(n)
	out.asked, r.all = r.all, nil
	for _, turn := range turns {
		if err := o.job(turn); err != nil {
			b.Fatal(err)
		}
		out.jobs, r.all = append(out.jobs, r.all), nil
	}
	return out
}

// A whole job may put or delete at most jobRows rows, and may make at most jobCommits commits. Smaller numbers are
// better: see ADR 8.
const (
	jobRows    = 75
	jobCommits = 4
)

func TestRowsOfAJob(t *testing.T) {
	job := recordJobs(t, 2).jobs[1]
	rows, all := map[string]int{}, 0
	for _, puts := range job {
		all += len(puts)
		for _, p := range puts {
			rows[string(p.in)]++
		}
	}
	if all > jobRows || len(job) > jobCommits {
		t.Errorf("a job takes %d rows in %d commits, want at most %d in %d: %v", all, len(job), jobRows, jobCommits, rows)
	}
}

// begin creates a store with the rows from before the jobs.
func (r replay) begin(b *testing.B) *rawWriter {
	path := filepath.Join(b.TempDir(), "replay.db")
	if err := create(path, Options{OpenFile: os.OpenFile}); err != nil {
		b.Fatal(err)
	}
	db, err := openRaw(path)
	if err != nil {
		b.Fatal(err)
	}
	w := startRawWriter(db)
	crowd(b, 64, len(r.asked), func(i int) error { return w.update(putRows(r.asked[i])) })
	return w
}

// job writes the rows that a job wrote.
func (r replay) job(w *rawWriter, n int) error {
	for _, puts := range r.jobs[n] {
		if err := w.update(putRows(puts)); err != nil {
			return err
		}
	}
	return nil
}
