package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"countersign/store"
)

// Joining holds the parameters with which a test's replica joins.
type Joining struct {
	Name  string
	Lease time.Duration // after this time without a heartbeat, other replicas may take over the replica's claims
	Drain time.Duration // if the replica wants to release a claim, how long it begins no new work under the claim and waits for the running work to end
}

// Member is a replica with its own handle on the store.
type Member struct {
	store.Store
	store.Replica
	Freeze func() // stops the replica's heartbeats
	Thaw   func() // restarts the replica's heartbeats
	Leave  func()
}

// RunClaims runs the suite for stores on which several replicas work at the same time. fresh makes an empty store, and
// returns a function that joins a replica on the store.
func RunClaims(t *testing.T, fresh func(t *testing.T) func(Joining) Member) {
	for name, test := range map[string]func(*claimsHarness){
		"one owner each, and fair portions":         oneOwner,
		"a dead owner's work is taken over":         takenOver,
		"a clean stop releases at once":             released,
		"a fenced transaction writes nothing":       fencedOut,
		"a transaction that takeover meets":         fencedMidway,
		"work is waited for before it is given up":  drained,
		"work that takes long goes on":              goesOn,
		"work ends when the lease does, and begins": lapsed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&claimsHarness{T: t, join: fresh(t)})
		})
	}
}

// claimsHarness holds the replicas of one test.
type claimsHarness struct {
	*testing.T
	join    func(Joining) Member
	members []Member
}

// These are the durations of leases in the tests. A short lease survives when a busy machine suspends the process for a
// while. A long lease does not end during a test, so there is no takeover.
const (
	shortLease = 5 * time.Second
	longLease  = 10 * time.Minute
)

// add joins a replica.
func (h *claimsHarness) add(j Joining) Member {
	h.Helper()
	if j.Name = fmt.Sprint("replica ", len(h.members)); j.Drain == 0 {
		j.Drain = time.Hour
	}
	m := h.join(j)
	h.members = append(h.members, m)
	return m
}

func count(s store.Shares) (n int) {
	for share := range store.ShareCount {
		if s.Has(share) {
			n++
		}
	}
	return n
}

// await waits until the replicas have reached a state.
func (h *claimsHarness) await(what string, is func() bool) {
	h.Helper()
	end := time.Now().Add(2 * time.Minute)
	for !is() {
		if time.Now().After(end) {
			for i, m := range h.members {
				h.Logf("replica %d has %064b", i, m.Shares())
			}
			h.Fatalf("after two minutes: not %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// awaitPortions waits until the replicas together have all shares, and each replica has the expected number of shares.
func (h *claimsHarness) awaitPortions(members []Member, portions ...int) {
	h.Helper()
	h.await(fmt.Sprint("portions of ", portions), func() bool {
		left := map[int]int{}
		for _, n := range portions {
			left[n]++
		}
		var all store.Shares
		for _, m := range members {
			s := m.Shares()
			if all&s != 0 {
				return false
			}
			all |= s
			left[count(s)]--
		}
		for _, n := range left {
			if n != 0 {
				return false
			}
		}
		return all == store.AllShares
	})
}

// begin begins work on a share, which the replica must have.
func (h *claimsHarness) begin(m Member, share int) (inner context.Context, leave func()) {
	h.Helper()
	inner, leave, ok := m.Enter(h.Context(), store.ShareClaim(share))
	if !ok {
		h.Fatalf("the replica does not have share %d", share)
	}
	return inner, leave
}

// owned returns a replica's claim on a share.
func (h *claimsHarness) owned(m Member, share int) store.Claim {
	h.Helper()
	inner, leave := h.begin(m, share)
	defer leave()
	return store.ClaimsOf(inner)[0]
}

// watch checks continuously that two replicas never have the same share. The returned function ends the check.
func (h *claimsHarness) watch(members ...Member) (end func()) {
	ctx, stop := context.WithCancel(h.Context())
	var wg sync.WaitGroup
	looked := 0
	wg.Go(func() {
		for first := true; first || ctx.Err() == nil; first = false {
			for i, a := range members {
				for j, b := range members {
					if i == j {
						continue
					}
					// The check reads the shares of replica a, then of replica b, then of replica a. A share in all
					// three results belonged to both replicas at the same time.
					before, between := a.Shares(), b.Shares()
					if both := before & between & a.Shares(); both != 0 {
						h.Errorf("the replicas %d and %d both have the shares %064b", i, j, both)
						return
					}
					looked++
				}
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
	return func() {
		stop()
		wg.Wait()
		if looked == 0 {
			h.Error("nothing was compared")
		}
	}
}

// oneOwner checks that each share has at most one owner at any time, even while replicas join and leave. Each replica
// gets about the same number of shares.
func oneOwner(h *claimsHarness) {
	a := h.add(Joining{Lease: longLease})
	h.awaitPortions(h.members, 64)
	first := h.owned(a, 7)
	b := h.add(Joining{Lease: longLease})
	end := h.watch(a, b)
	h.awaitPortions(h.members, 32, 32)
	end()
	c := h.add(Joining{Lease: longLease})
	end = h.watch(a, b, c)
	h.awaitPortions(h.members, 21, 21, 22)
	a.Leave()
	h.awaitPortions([]Member{b, c}, 32, 32)
	end()
	b.Leave()
	h.awaitPortions([]Member{c}, 64)
	last := h.owned(c, 7)
	if last.Epoch <= first.Epoch || last.Owner == first.Owner {
		h.Errorf("the claim was %+v, and is %+v after it got another owner", first, last)
	}
	if _, _, ok := a.Enter(h.Context(), store.ShareClaim(7)); ok {
		h.Error("a replica that left begins work")
	}
}

// takenOver checks that other replicas take over a replica's shares when its lease has ended without a heartbeat.
// When the replica resumes its heartbeats, it gets half of the shares.
func takenOver(h *claimsHarness) {
	a := h.add(Joining{Lease: shortLease})
	b := h.add(Joining{Lease: shortLease})
	end := h.watch(a, b)
	defer end()
	h.awaitPortions(h.members, 32, 32)
	share := 0
	for !a.Shares().Has(share) {
		share++
	}
	before := h.owned(a, share)
	a.Freeze()
	began := time.Now()
	h.await("taken over", func() bool { return b.Shares() == store.AllShares })
	h.Logf("taken over after %s, with a lease of %s", time.Since(began), shortLease)
	if after := h.owned(b, share); after.Epoch <= before.Epoch {
		h.Errorf("the epoch was %d, and is %d after a takeover", before.Epoch, after.Epoch)
	}
	a.Thaw()
	h.awaitPortions(h.members, 32, 32)
}

// released checks that the shares of a replica that stops cleanly move immediately, long before its lease ends.
func released(h *claimsHarness) {
	a, b := h.add(Joining{Lease: longLease}), h.add(Joining{Lease: longLease})
	h.awaitPortions(h.members, 32, 32)
	inner, leave := h.begin(a, firstOf(a))
	defer leave()
	a.Leave()
	if !errors.Is(context.Cause(inner), store.ErrFenced) {
		h.Errorf("work of a replica that left: got %v, want ErrFenced", context.Cause(inner))
	}
	h.awaitPortions([]Member{b}, 64)
}

func firstOf(m Member) int {
	s := m.Shares()
	for share := range store.ShareCount {
		if s.Has(share) {
			return share
		}
	}
	return 0
}

// fencedOut checks that a replica whose claim was taken over can't write in any transaction under this claim.
func fencedOut(h *claimsHarness) {
	a, b := h.add(Joining{Lease: shortLease}), h.add(Joining{Lease: shortLease})
	h.awaitPortions(h.members, 32, 32)
	share := firstOf(a)
	inner, leave := h.begin(a, share)
	defer leave()
	put := func(id string) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.PutSetting(store.Setting{Key: id, Value: []byte("1")}) }
	}
	if err := a.Update(inner, put("before")); err != nil {
		h.Fatalf("with the claim: %v", err)
	}
	a.Freeze()
	h.await("taken over", func() bool { return b.Shares() == store.AllShares })
	if !errors.Is(context.Cause(inner), store.ErrFenced) {
		h.Errorf("the context of the work: got %v, want ErrFenced", context.Cause(inner))
	}
	late := context.WithoutCancel(inner) // simulates a handler that ignores the end of its context
	for name, fn := range map[string]func(store.Tx) error{
		"that only writes": put("a"),
		"that reads first": func(tx store.Tx) error {
			if _, err := tx.Setting("before"); err != nil {
				return err
			}
			return put("a")(tx)
		},
		"that only reads": func(tx store.Tx) error { _, err := tx.Setting("before"); return err },
	} {
		if err := a.Update(late, fn); !errors.Is(err, store.ErrFenced) {
			h.Errorf("a transaction %s: got error %v, want ErrFenced", name, err)
		}
	}
	err := b.View(h.Context(), func(r store.Reader) error {
		if _, err := r.Setting("a"); !errors.Is(err, store.ErrNotFound) {
			h.Errorf("what a fenced transaction wrote: got error %v, want ErrNotFound", err)
		}
		return nil
	})
	if err != nil {
		h.Error(err)
	}
	own, leave := h.begin(b, share)
	defer leave()
	if err := b.Update(own, put("a")); err != nil {
		h.Errorf("the new owner: %v", err)
	}
}

// In fencedMidway, another replica takes over a claim while a transaction under this claim runs. The transaction can't
// change rows that the new owner has read.
func fencedMidway(h *claimsHarness) {
	a, b := h.add(Joining{Lease: shortLease}), h.add(Joining{Lease: shortLease})
	h.awaitPortions(h.members, 32, 32)
	share := firstOf(a)
	inner, leave := h.begin(a, share)
	defer leave()
	err := a.Update(inner, func(tx store.Tx) error { return tx.PutSetting(store.Setting{Key: "run", Value: []byte(`"executing"`)}) })
	if err != nil {
		h.Fatal(err)
	}
	runs := 0
	err = a.Update(context.WithoutCancel(inner), func(tx store.Tx) error {
		s, err := tx.Setting("run")
		if runs++; err != nil || runs > 1 {
			return err
		}
		a.Freeze()
		h.await("taken over", func() bool { return b.Shares() == store.AllShares })
		own, leave := h.begin(b, share)
		defer leave()
		err = b.Update(own, func(tx store.Tx) error {
			s, err := tx.Setting("run")
			if err != nil {
				return err
			}
			s.Value = []byte(`"unknown"`)
			return tx.PutSetting(s)
		})
		if err != nil {
			h.Errorf("the new owner: %v", err)
		}
		s.Value = []byte(`"finished"`)
		return tx.PutSetting(s)
	})
	if !errors.Is(err, store.ErrFenced) {
		h.Errorf("got error %v, want ErrFenced", err)
	}
	err = b.View(h.Context(), func(r store.Reader) error {
		s, err := r.Setting("run")
		if string(s.Value) != `"unknown"` {
			h.Errorf("stored is %s", s.Value)
		}
		return err
	})
	if err != nil {
		h.Error(err)
	}
}

// drained checks that a replica releases a share only after its work on the share has ended. No replica begins work on
// the share before the release.
func drained(h *claimsHarness) {
	a := h.add(Joining{Lease: longLease})
	h.awaitPortions(h.members, 64)
	leaves := map[int]func(){}
	for share := range store.ShareCount {
		inner, leave := h.begin(a, share)
		defer leave()
		defer func() {
			if cause := context.Cause(inner); cause != nil && errors.Is(cause, store.ErrFenced) {
				h.Errorf("work on share %d was cut off", share)
			}
		}()
		leaves[share] = leave
	}
	b := h.add(Joining{Lease: longLease})
	end := h.watch(a, b)
	defer end()
	h.await("half of the shares are given up", func() bool { return count(a.Shares()) == 32 })
	if n := count(b.Shares()); n != 0 {
		h.Errorf("another replica has %d shares while work on them goes on", n)
	}
	for share, leave := range leaves {
		if !a.Shares().Has(share) {
			leave()
		}
	}
	h.awaitPortions(h.members, 32, 32)
}

// In goesOn, a second replica joins while long work is running on every share of the first replica. The first replica
// does not cancel this work, and keeps the shares until the work has ended. After Drain, the first replica may again
// begin work on all shares. When the long work has ended, the second replica gets half of the shares.
func goesOn(h *claimsHarness) {
	a := h.add(Joining{Lease: longLease, Drain: 10 * time.Millisecond})
	h.awaitPortions(h.members, 64)
	var work []context.Context
	var leaves []func()
	for share := range store.ShareCount {
		inner, leave := h.begin(a, share)
		defer leave()
		work, leaves = append(work, inner), append(leaves, leave)
	}
	b := h.add(Joining{Lease: longLease})
	h.await("the replica tries to give up half of the shares", func() bool { return count(a.Shares()) == 32 })
	var again store.Shares
	h.await("work begins again on each share", func() bool {
		again |= a.Shares()
		return again == store.AllShares
	})
	if n := count(b.Shares()); n != 0 {
		h.Errorf("another replica has %d shares while work on them goes on", n)
	}
	for share, inner := range work {
		if inner.Err() != nil {
			h.Errorf("share %d: the work was cut off: %v", share, context.Cause(inner))
		}
		leaves[share]()
	}
	h.awaitPortions(h.members, 32, 32)
}

// lapsed checks that a replica's work is cancelled when its lease ends without a heartbeat, even if no other replica
// takes over. After the next heartbeat, the replica can begin work under the same claim.
func lapsed(h *claimsHarness) {
	a := h.add(Joining{Lease: shortLease})
	h.awaitPortions(h.members, 64)
	claim := h.owned(a, 3)
	inner, leave := h.begin(a, 3)
	defer leave()
	changed := a.Changed()
	a.Freeze()
	h.await("the work is over", func() bool { return inner.Err() != nil })
	select {
	case <-changed:
	case <-time.After(30 * time.Second):
		h.Fatal("nobody is told that the lease is over")
	}
	if _, _, ok := a.Enter(h.Context(), store.ShareClaim(3)); ok || a.Shares() != 0 || !errors.Is(context.Cause(inner), store.ErrFenced) {
		h.Errorf("work began: %v; shares %b; the cause is %v", ok, a.Shares(), context.Cause(inner))
	}
	a.Thaw()
	h.awaitPortions(h.members, 64)
	if again := h.owned(a, 3); again != claim {
		h.Errorf("the claim was %+v, and is %+v", claim, again)
	}
	if err := a.Update(context.WithoutCancel(inner), func(tx store.Tx) error { return tx.PutSetting(store.Setting{Key: "x", Value: []byte("1")}) }); err != nil {
		h.Errorf("with a claim that nobody took: %v", err)
	}
}
