package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
	"countersign/store/bolt"
)

// TestVerifyLarge verifies a large history, and logs the time and the memory that this takes. COUNTERSIGN_RECORDS sets
// the number of records. Each request has twelve records, like a request that is approved and run. Two of three records
// have a payload, and about a hundred records are sealed at a time.
func TestVerifyLarge(t *testing.T) {
	testkit.SkipIfShort(t)
	n := testkit.Size(t, "COUNTERSIGN_RECORDS", 20_000)
	path := filepath.Join(t.TempDir(), "large.db")
	s := newSealedStore(t)
	begin := time.Now()
	db := s.fill(path, n)
	defer db.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("made %d records in %s, a file of %d MiB", n, time.Since(begin).Round(time.Second), info.Size()>>20)
	var out bytes.Buffer
	begin, cpu := time.Now(), testkit.ProcessorTime(t)
	report, err := Verify(t.Context(), db, VerifyOptions{Keys: []string{s.keys[0].Public}, Guard: bolt.Guard})
	if err != nil {
		t.Fatal(err)
	}
	if report.Write(&out); report.Faults() > 0 {
		t.Fatal(out.String())
	}
	t.Logf("records=%d seconds=%.2f, %.2f of processor time on %d processors\n%s",
		n, time.Since(begin).Seconds(), (testkit.ProcessorTime(t) - cpu).Seconds(), runtime.GOMAXPROCS(0), out.String())
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	t.Logf("heap after it: %d MiB", mem.HeapAlloc>>20)
}

// fill creates a store with n records in chains of twelve, and a head for every 96 records.
func (s *sealedStore) fill(path string, n int) *bolt.Store {
	s.Helper()
	db, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		s.Fatal(err)
	}
	wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }, Log: s.log})
	for done := 0; done < n; {
		err := db.Update(s.Context(), func(tx store.Tx) error {
			var errs []error
			var head approvers.AuditRecord
			for i := done; i < min(done+96, n); i++ {
				if i%12 == 0 {
					head = approvers.AuditRecord{}
				}
				var p *approvers.AuditPayload
				a := approvers.AuditRecord{
					Chain: fmt.Sprintf("req_%026d", i/12), At: time.UnixMicro(int64(i) * 1000), Kind: approvers.AuditDecided, Actor: "T0001/U0002",
					Facts: map[string]string{"role": "team-lead", "digest": fmt.Sprintf("%064d", i), "rendering": fmt.Sprintf("%064d", i), "took": "40211"},
				}
				if i%3 > 0 {
					p = &approvers.AuditPayload{Chain: a.Chain, Seq: head.Seq + 1, Salt: []byte("0123456789abcdef"), Body: bytes.Repeat([]byte{byte(i)}, 300)}
					a.PayloadHash = p.Hash()
				}
				head = a.Link(head)
				errs = append(errs, tx.AppendAudit(head, p))
			}
			return errors.Join(errs...)
		})
		if err != nil {
			s.Fatal(err)
		}
		done += 96
		if _, err := wf.History.Seal(s.Context(), s.keys...); err != nil {
			s.Fatal(err)
		}
	}
	return db
}
