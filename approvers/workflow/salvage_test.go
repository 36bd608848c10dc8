package workflow_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/store"
	"countersign/store/bolt"
)

// One page of a store is destroyed. The salvaged store is sound, and its open requests are closed like those of a
// restored store. The history of the store verifies, except for the records that it lists as lost.
// COUNTERSIGN_DAMAGE="1 1" is the long form, which tries every page.
func TestSalvagedStore(t *testing.T) {
	w := wreckable(t)
	pages, step := len(w.file)/4096, 5
	if os.Getenv(damageEnv) != "" {
		step = 1
	}
	random := rand.New(rand.NewPCG(5, 1))
	destroyed, rows, named := 0, 0, 0
	for page := 0; page < pages; page += step {
		broken := append([]byte(nil), w.file...)
		gone := []int{page}
		if page%3 == 0 {
			gone = append(gone, random.IntN(pages))
		}
		for _, p := range gone {
			for i := range 4096 {
				broken[p*4096+i] = byte(random.Uint32() * uint32(page%2))
			}
		}
		destroyed++
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Hour) // later than everything in the store
			dir := quickDir(t)
			defer os.RemoveAll(dir)
			from, scratch, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "scratch.db"), filepath.Join(dir, "to.db")
			what := fmt.Sprintf("pages %v of %d", gone, pages)
			if err := os.WriteFile(from, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			lost, err := bolt.Salvage(t.Context(), from, scratch, nil)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			s, err := bolt.Open(scratch, bolt.Options{AsIs: true})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			wf := workflow.New(workflow.Config{Store: s, Policy: func() *approvers.Policy { return policy("policy-1") }, Tools: newToolbox(), Log: slog.New(slog.DiscardHandler)})
			if err := wf.History.Salvaged(t.Context(), workflow.Restoration{Who: "operator:o", Taken: time.Now()}, lost); err != nil {
				t.Errorf("%s: %v", what, err)
				s.Close()
				return
			}
			err = bolt.Fill(t.Context(), to, false, func(f store.Filling) error {
				return store.CopyRows(t.Context(), s, f, func(store.Copied) { rows++ }, func() {})
			})
			if err := errors.Join(err, s.Close()); err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			s, err = bolt.Open(to, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if found := s.Damage(); len(found) > 0 {
				t.Errorf("%s: the new store is damaged: %v", what, found)
			}
			report, err := audit.Verify(t.Context(), s, audit.VerifyOptions{Guard: bolt.Guard})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if report.Faults() > 0 {
				t.Errorf("%s: the history has faults; missing: %v", what, lost)
				report.Write(t.Output())
			}
			report.Write(io.Discard)
			for _, d := range lost {
				if d.Bucket == "audit" || d.Bucket == "audit_payloads" {
					named++
				}
			}
			err = s.View(t.Context(), func(r store.Reader) error {
				open, err := r.OpenRequests(store.RequestCursor{}, 100)
				if err != nil || len(open) > 0 {
					t.Errorf("%s: %d requests are open, %v", what, len(open), err)
				}
				for _, kind := range []store.TimerKind{store.TimerRun, store.TimerOutcome, store.TimerThink, store.TimerInbox, store.TimerModelQuestion, store.TimerExpire} {
					if timers, err := r.Timers(kind, 100); err != nil || len(timers) > 0 {
						t.Errorf("%s: there are %d timers %s, %v", what, len(timers), kind, err)
					}
				}
				for id := range w.ran {
					e, err := r.Execution(id)
					if err == nil && (e.State == approvers.ExecutionNone || e.State == approvers.ExecutionExecuting) {
						t.Errorf("%s: the run %s is %s, and had acted", what, id, e.State)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Logf("of %d pages, %d destroyed: %d rows in the new stores, %d lost records and texts of the history, each named", pages, destroyed, rows, named)
}
