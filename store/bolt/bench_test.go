package bolt

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"countersign/approvers"
	"countersign/store"
)

// The benchmarks run the store and raw bbolt writing the very same bytes in turns within one run, so that a noisy disk hurts both,
// and report how many decisions a second each makes and the ratio. Their decision is the transaction of a click: the request
// is read and put, a timer cleared and another set, the audit appended with its payload, and the card's surface put.

const benchRequests = 1024

func BenchmarkDecisionAlone(b *testing.B) { benchDecisions(b, 1, 200) }

func BenchmarkDecision64(b *testing.B) { benchDecisions(b, 64, 6400) }

// benchDecisions makes decisions with a number of writers, in rounds of the store and raw bbolt in turn.
func benchDecisions(b *testing.B, writers, round int) {
	ours := benchStore(b)
	recorded := record(b, benchStore(b))
	raw := newRawWriter(b, benchStore(b).detach(b))
	var next [2]atomic.Int64
	var spent [2]time.Duration
	done := 0
	for b.Loop() {
		if done++; done%round != 1 && round > 1 {
			continue
		}
		for side, work := range [2]func(n int64){
			func(n int64) {
				if err := ours.Update(b.Context(), func(tx store.Tx) error { return decide(tx, n) }); err != nil {
					b.Error(err)
				}
			},
			func(n int64) {
				if err := raw.write(recorded[n%int64(len(recorded))]); err != nil {
					b.Error(err)
				}
			},
		} {
			begin := time.Now()
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for range round / writers {
						work(next[side].Add(1) - 1)
					}
				})
			}
			wg.Wait()
			spent[side] += time.Since(begin)
		}
	}
	store := float64(next[0].Load()) / spent[0].Seconds()
	bare := float64(next[1].Load()) / spent[1].Seconds()
	b.ReportMetric(0, "ns/op") // a loop is half one, half the other
	b.ReportMetric(store, "decisions/s")
	b.ReportMetric(bare, "raw/s")
	b.ReportMetric(store/bare, "ratio")
}

func benchID(kind string, n int64) string {
	return fmt.Sprintf("%s_%026d", kind, n%benchRequests)
}

// benchStore has requests that wait, each with a card, timers and the beginning of its chain.
func benchStore(b *testing.B) *Store {
	s, err := Open(filepath.Join(b.TempDir(), "store.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	for from := int64(0); from < benchRequests; from += 64 {
		err := s.Update(b.Context(), func(tx store.Tx) error {
			for n := from; n < from+64; n++ {
				if err := propose(tx, benchID("req", n), benchID("s", n), benchTime); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return s
}

var benchTime = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// propose stores a request of ordinary size.
func propose(tx store.Tx, id, surface string, now time.Time) error {
	args := []byte(`{"order_id":"ORD-123","amount":49.99,"currency":"USD","reason":"The parcel arrived damaged, the customer sent photographs."}`)
	r := approvers.Request{
		ID: id, State: approvers.Pending, Conversation: "c_" + id, Turn: "t_" + id, Call: "call_" + id, Agent: "support", Tool: "issue_refund",
		ToolHash: strings.Repeat("a", 64), Effect: approvers.Unprotected, Execution: "x_" + id, Args: args, Digest: strings.Repeat("b", 64),
		Preview: "Refund of $49.99 for order ORD-123",
		Facts: approvers.AskFacts{
			Asker: "T0001/U0009", AskerName: "Robin", Requesters: []approvers.PersonID{"T0001/U0009"}, Authors: []approvers.PersonID{"T0001/U0009"},
			Quote: "Please refund order ORD-123, it arrived damaged.", MessageTS: "1780000000.000100",
		},
		Plan: approvers.Plan{
			Verdict: approvers.Ask, Risk: approvers.High, Stages: []approvers.Stage{{Approver: "team-lead", Quorum: 1}}, Known: true,
			Why: []string{"issue_refund is high risk", "policy asks for confirmation"}, Requesters: []approvers.PersonID{"T0001/U0009"}, PolicyHash: strings.Repeat("c", 64),
		},
		CreatedAt: now, ExpiresAt: now.Add(30 * time.Minute), EscalateAt: now.Add(10 * time.Minute),
	}
	a := approvers.AuditRecord{Chain: id, At: now, Kind: approvers.AuditProposed, Facts: map[string]string{"tool": r.Tool, "digest": r.Digest}}
	return errors.Join(
		tx.PutRequest(r),
		tx.PutSurface(store.Surface{
			ID: surface, Kind: store.SurfaceCard, Ref: id, Request: id, To: "channel:#support-approvals", Urgent: true, State: store.SurfaceShown,
			Want: 1, Shown: 1, Posts: 1, Hash: strings.Repeat("d", 64), Channel: "C0001", TS: id, CreatedAt: now,
		}),
		tx.SetTimer(store.Timer{Kind: store.TimerExpire, Ref: id, Due: r.ExpiresAt}),
		tx.SetTimer(store.Timer{Kind: store.TimerEscalate, Ref: id, Due: r.EscalateAt}),
		tx.AppendAudit(a.Link(approvers.AuditRecord{}), nil),
	)
}

// decide is one click. A request that was decided is set back by the next one, so that every decision is the same work.
func decide(tx store.Tx, n int64) error {
	id := benchID("req", n)
	r, err := tx.Request(id)
	if err != nil {
		return err
	}
	cleared, set := store.TimerEscalate, store.TimerRun
	if r.State == approvers.Approved {
		cleared, set, r.State, r.Decisions = set, cleared, approvers.Pending, nil
	} else {
		r.State = approvers.Approved
		r.Decisions = []approvers.Decision{{Kind: approvers.Approve, By: "T0001/U0002", Name: "Sam", Role: "team-lead", Digest: r.Digest, Rendering: r.Digest, At: benchTime}}
	}
	s, err := tx.Surface(benchID("s", n))
	if err != nil {
		return err
	}
	s.State, s.Want = store.SurfaceWanted, s.Want+1
	head, err := tx.AuditHead(id)
	if err != nil {
		return err
	}
	p := approvers.AuditPayload{Chain: id, Seq: head.Seq + 1, Salt: []byte("0123456789abcdef"), Body: []byte(`{"reason":"The photographs show it."}`)}
	a := approvers.AuditRecord{Chain: id, At: benchTime, Kind: approvers.AuditDecided, Actor: "T0001/U0002", PayloadHash: p.Hash(),
		Facts: map[string]string{"decision": "approve", "role": "team-lead", "stage": "1", "digest": r.Digest, "rendering": r.Digest}}
	return errors.Join(
		tx.PutRequest(r),
		tx.ClearTimer(cleared, id),
		tx.SetTimer(store.Timer{Kind: set, Ref: id, Due: benchTime}),
		tx.AppendAudit(a.Link(head), &p),
		tx.PutSurface(s),
	)
}

// put is one row that a decision writes; a nil value deletes it.
type rawPut struct {
	in         []byte
	key, value []byte
}

// record makes decisions and notes the bytes that each wrote.
func record(b *testing.B, s *Store) [][]rawPut {
	var all [][]rawPut
	for n := range int64(2 * benchRequests) {
		var puts []rawPut
		err := s.Update(b.Context(), func(t store.Tx) error {
			puts = nil
			if err := decide(t, n); err != nil {
				return err
			}
			r := t.(*tx).rows
			for _, c := range r.changes {
				puts = append(puts, rawPut{[]byte(bucketNames[c.in]), c.key, append([]byte(nil), r.get(c.in, c.key)...)})
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, puts)
	}
	return all
}

// detach gives the file to raw bbolt.
func (s *Store) detach(b *testing.B) *bbolt.DB {
	path := s.db.Path()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, InitialMmapSize: initialMap})
	if err != nil {
		b.Fatal(err)
	}
	db.AllocSize = growBy
	b.Cleanup(func() { db.Close() })
	return db
}

// rawWriter is what one would write by hand: a goroutine that drains a queue of writes into one transaction.
type rawWriter struct {
	jobs chan rawJob
}

type rawJob struct {
	puts []rawPut
	done chan error
}

func newRawWriter(b *testing.B, db *bbolt.DB) *rawWriter {
	w := &rawWriter{jobs: make(chan rawJob)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for j := range w.jobs {
			batch := []rawJob{j}
			err := db.Update(func(tx *bbolt.Tx) error {
				for spins := 0; ; {
					for _, p := range batch[len(batch)-1].puts {
						bucket := tx.Bucket(p.in)
						var err error
						if len(p.value) == 0 {
							err = bucket.Delete(p.key)
						} else {
							err = bucket.Put(p.key, p.value)
						}
						if err != nil {
							return err
						}
					}
				more:
					select {
					case j, ok := <-w.jobs:
						if !ok {
							return nil
						}
						batch = append(batch, j)
					default:
						if spins++; spins == 1 {
							runtime.Gosched()
							goto more
						}
						return nil
					}
					spins = 0
				}
			})
			for _, j := range batch {
				j.done <- err
			}
		}
	})
	b.Cleanup(func() { close(w.jobs); wg.Wait() })
	return w
}

func (w *rawWriter) write(puts []rawPut) error {
	j := rawJob{puts, make(chan error, 1)}
	w.jobs <- j
	return <-j.done
}
