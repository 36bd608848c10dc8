package main

import (
	"context"
	"runtime/pprof"

	"countersign/approvers"
	"countersign/store"
)

// These are the faults of a commit.
const (
	faultFull  = "full"  // the disk is full: nothing is written, but later writes may succeed
	faultLost  = "lost"  // the commit itself fails, and nothing was written
	faultDoubt = "doubt" // the commit itself fails, and everything was written
)

// gatedStore is the store of one process. Each write, and each read of a scheduler, waits at the gate.
type gatedStore struct {
	store.Store
	p *life
}

func (g gatedStore) View(ctx context.Context, fn func(store.Reader) error) error {
	if _, scheduler := pprof.Label(ctx, "scheduler"); scheduler { // reads pass the gate one after the other, so that their effects have a fixed order
		if _, err := g.p.wait(ctx, atLook, ""); err != nil {
			return err
		}
	}
	if g.p.dead.Load() {
		return errKilled
	}
	return g.Store.View(ctx, fn)
}

func (g gatedStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	v, err := g.p.wait(ctx, atCommit, "")
	switch {
	case err != nil:
		return err
	case v.fault == faultFull:
		return store.ErrFull
	case v.fault == faultLost:
		g.p.doubts.Store(true)
		return store.ErrCommitUnknown
	}
	var seen witnessed
	err = g.Store.Update(ctx, func(t store.Tx) error {
		seen = witnessed{}
		return fn(witnessTx{t, &seen})
	})
	if err == nil {
		g.p.simulation.witness(g.p, seen)
	}
	if v.hold {
		if _, killed := g.p.wait(ctx, atBack, atCommit); killed != nil && g.p.dead.Load() {
			return killed
		}
	}
	if v.fault == faultDoubt && err == nil {
		g.p.doubts.Store(true)
		return store.ErrCommitUnknown
	}
	return err
}

// witnessed has the writes of a transaction that the account needs.
type witnessed struct {
	turns    []string
	messages []string // people's messages, by ts
	inbox    []store.Inbox
	started  []string // executions that were claimed
}

type witnessTx struct {
	store.Tx
	seen *witnessed
}

func (t witnessTx) PutTurn(turn approvers.Turn) error {
	t.seen.turns = append(t.seen.turns, turn.ID)
	return t.Tx.PutTurn(turn)
}

func (t witnessTx) PutMessage(m store.Message) error {
	before, err := t.Messages(m.Conversation, m.Seq-1)
	if err != nil {
		return err
	}
	if m.Role == store.RoleUser && len(before) == 0 {
		t.seen.messages = append(t.seen.messages, m.TS)
	}
	return t.Tx.PutMessage(m)
}

func (t witnessTx) PutInbox(row store.Inbox) error {
	t.seen.inbox = append(t.seen.inbox, row)
	return t.Tx.PutInbox(row)
}

func (t witnessTx) PutExecution(e approvers.Execution) error {
	if e.State == approvers.ExecutionExecuting {
		t.seen.started = append(t.seen.started, e.ID)
	}
	return t.Tx.PutExecution(e)
}
