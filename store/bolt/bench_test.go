package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/testkit"
	"countersign/store"
)

// The benchmarks compare the store with raw bbolt, which writes the same rows without checksums and compression. Rounds
// of the store and rounds of raw bbolt alternate within one run, so a busy machine slows both alike. The benchmarks
// report the decisions per second of the store and of raw bbolt, and the ratio of the two rates. The benchmarks also
// report the processor time of raw bbolt divided by the processor time of the store. This second ratio is almost the
// same on a busy machine. A decision is the transaction that follows a click on a card. The transaction puts the
// request, clears or sets a timer, appends an audit record with a payload, and puts the card's outbox message.

const benchRequests = 1024

func BenchmarkDecisionAlone(b *testing.B) { benchDecisions(b, 1, 200, false) }

func BenchmarkDecision64(b *testing.B) { benchDecisions(b, 64, 6400, false) }

// BenchmarkDecision64Read also reads the request, the outbox message and the head of the chain in each transaction of
// the store, as the workflow does. Raw bbolt only writes, and does not read these records.
func BenchmarkDecision64Read(b *testing.B) { benchDecisions(b, 64, 6400, true) }

// benchDecisions makes decisions with a number of writers, in alternating rounds of the store and raw bbolt.
func benchDecisions(b *testing.B, writers, round int, read bool) {
	ours := newClicks(b, read)
	recorder := newClicks(b, read)
	recorded := recorder.record(b)
	raw := recorder.detach(b)
	var done [2]int
	var spent, worked [2]time.Duration
	loops := 0
	for b.Loop() {
		if loops++; loops%round != 1 {
			continue // one iteration in each round makes all decisions of the round, on both sides
		}
		for side, work := range [2]func(writer, i int) error{
			func(writer, i int) error { return ours.click(b.Context(), writer+writers*i) },
			func(writer, i int) error {
				n := writer + writers*i + done[1]
				return raw.update(putRows(again(recorded[n%len(recorded)], n/len(recorded))))
			},
		} {
			begin, cpu := time.Now(), testkit.ProcessorTime(b)
			var wg sync.WaitGroup
			for writer := range writers {
				wg.Go(func() {
					for i := range round / writers {
						if err := work(writer, i); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			spent[side] += time.Since(begin)
			worked[side] += testkit.ProcessorTime(b) - cpu
			done[side] += round
		}
	}
	perSecond := func(side int) float64 { return float64(done[side]) / spent[side].Seconds() }
	b.ReportMetric(0, "ns/op") // not reported, because one iteration stands for one decision on each side
	b.ReportMetric(perSecond(0), "decisions/s")
	b.ReportMetric(perSecond(1), "raw/s")
	b.ReportMetric(perSecond(0)/perSecond(1), "ratio")
	b.ReportMetric(worked[1].Seconds()/worked[0].Seconds(), "cpu-ratio")
}

func benchID(kind string, n int) string {
	return fmt.Sprintf("%s_%026d", kind, n%benchRequests)
}

// benchStore creates a store with waiting requests, each with a card, timers and the beginning of its chain.
func benchStore(b *testing.B) *Store {
	s, err := Open(filepath.Join(b.TempDir(), "store.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	for from := 0; from < benchRequests; from += 64 {
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
func propose(tx store.Tx, id, message string, now time.Time) error {
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
		tx.PutOutboxMessage(store.OutboxMessage{
			ID: message, Kind: store.OutboxCard, Ref: id, Request: id, To: "channel:#support-approvals", State: store.OutboxShown,
			Revision: 1, ShownRevision: 1, Posts: 1, Hash: strings.Repeat("d", 64), Channel: "C0001", TS: id, CreatedAt: now,
		}),
		tx.SetTimer(store.Timer{Kind: store.TimerExpire, Ref: id, Due: r.ExpiresAt}),
		tx.SetTimer(store.Timer{Kind: store.TimerEscalate, Ref: id, Due: r.EscalateAt}),
		tx.AppendAudit(a.Link(approvers.AuditRecord{}), nil),
	)
}

// clicks is a store with requests, which people decide by clicks. Requests with different numbers may be decided
// concurrently.
type clicks struct {
	*Store
	read bool
	last []decided // by request
}

// decided holds the last written state of a request.
type decided struct {
	request approvers.Request
	message store.OutboxMessage
	head    approvers.AuditRecord
}

func newClicks(b *testing.B, read bool) *clicks {
	c := &clicks{Store: benchStore(b), read: read, last: make([]decided, benchRequests)}
	err := c.View(b.Context(), func(r store.Reader) (err error) {
		for n := range c.last {
			if c.last[n], err = readDecided(r, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func readDecided(r store.Reader, n int) (d decided, err error) {
	if d.request, err = r.Request(benchID("req", n)); err != nil {
		return d, err
	}
	if d.message, err = r.OutboxMessage(benchID("s", n)); err != nil {
		return d, err
	}
	d.head, err = r.AuditHead(d.request.ID)
	return d, err
}

// click decides on a request. If the request is already decided, click instead resets the request to pending.
func (c *clicks) click(ctx context.Context, n int) error {
	n %= benchRequests
	var next decided
	err := c.Update(ctx, func(tx store.Tx) (err error) {
		d := c.last[n]
		if c.read {
			if d, err = readDecided(tx, n); err != nil {
				return err
			}
		}
		next, err = d.decide(tx)
		return err
	})
	if err == nil {
		next.request.Version++
		next.message.Version++
		c.last[n] = next
	}
	return err
}

func (d decided) decide(tx store.Tx) (decided, error) {
	timer := func() error { return tx.ClearTimer(store.TimerEscalate, d.request.ID) }
	if d.request.State == approvers.Approved {
		d.request.State, d.request.Decisions = approvers.Pending, nil
		timer = func() error {
			return tx.SetTimer(store.Timer{Kind: store.TimerEscalate, Ref: d.request.ID, Due: d.request.EscalateAt})
		}
	} else {
		d.request.State = approvers.Approved
		d.request.Decisions = []approvers.Decision{{
			Kind: approvers.Approve, By: "T0001/U0002", Name: "Sam", Role: "team-lead", Digest: d.request.Digest, Rendering: d.request.Digest, At: benchTime,
		}}
	}
	d.message.State, d.message.Revision = store.OutboxWanted, d.message.Revision+1
	p := approvers.AuditPayload{Chain: d.request.ID, Seq: d.head.Seq + 1, Salt: []byte("0123456789abcdef"), Body: []byte(`{"reason":"The photographs show it."}`)}
	d.head = approvers.AuditRecord{
		Chain: d.request.ID, At: benchTime, Kind: approvers.AuditDecided, Actor: "T0001/U0002", PayloadHash: p.Hash(),
		Facts: map[string]string{"decision": "approve", "role": "team-lead", "stage": "1", "digest": d.request.Digest, "rendering": d.request.Digest},
	}.Link(d.head)
	return d, errors.Join(tx.PutRequest(d.request), timer(), tx.AppendAudit(d.head, &p), tx.PutOutboxMessage(d.message))
}

// record makes clicks, and returns the rows that each click wrote.
func (c *clicks) record(b *testing.B) [][]rawPut {
	var all [][]rawPut
	for n := range 2 * benchRequests {
		n %= benchRequests
		var puts []rawPut
		err := c.Update(b.Context(), func(t store.Tx) error {
			puts = nil
			next, err := c.last[n].decide(t)
			if err != nil {
				return err
			}
			next.request.Version++
			next.message.Version++
			c.last[n] = next
			puts = written(t)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, puts)
	}
	return all
}

// again returns the rows that a repeated click writes. These rows differ from the rows of the first click, because
// every click appends a new audit record.
func again(puts []rawPut, round int) []rawPut {
	puts = slices.Clone(puts)
	for i, p := range puts {
		if name := string(p.in); name == audit.String() || name == auditPayloads.String() {
			seq := p.key[len(p.key)-8:]
			puts[i].key = number(append(make([]byte, 0, len(p.key)), p.key[:len(p.key)-8]...), binary.BigEndian.Uint64(seq)+2*uint64(round))
		}
	}
	return puts
}

// detach closes the store, so that raw bbolt can open the file.
func (s *Store) detach(b *testing.B) *rawWriter {
	path := s.db.Path()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	db, err := openRaw(path)
	if err != nil {
		b.Fatal(err)
	}
	w := startRawWriter(db)
	b.Cleanup(func() { w.close() })
	return w
}
