package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"countersign/approvers"
	"countersign/store"
)

var errMine = errors.New("the closure's own error")

// scribble changes the records that seed has written, and adds records of most kinds.
func scribble(tx store.Tx) error {
	head, err := tx.AuditHead("x")
	if err != nil {
		return err
	}
	a := approvers.AuditRecord{Chain: "x", At: at(9), Kind: approvers.AuditShown}
	own := approvers.AuditPayload{Chain: "y", Seq: 1, Salt: []byte{1}, Body: []byte("y")}
	b := approvers.AuditRecord{Chain: "y", At: at(9), Kind: approvers.AuditShown, PayloadHash: own.Hash()}
	return errors.Join(
		tx.PutConversation(store.Conversation{ID: "y", Place: "x"}),
		tx.PutMessage(store.Message{Conversation: "x", Seq: 1, Text: "changed"}),
		tx.PutMessage(store.Message{Conversation: "x", Seq: 2}),
		tx.PutTurn(approvers.Turn{ID: "x", Version: 1, Problem: "changed"}),
		tx.PutCall(store.Call{ID: "y", Turn: "x"}),
		tx.PutRequest(approvers.Request{ID: "x", Version: 1, State: approvers.Rejected, CreatedAt: at(0)}),
		tx.PutRequest(approvers.Request{ID: "y", State: approvers.Pending, CreatedAt: at(1)}),
		tx.PutExecution(approvers.Execution{ID: "x", Version: 1, Owner: "changed"}),
		tx.AddCounter(store.Counter{Key: "x", At: at(2), ID: "y", N: 2}),
		forgetOne(tx, at(2)),
		tx.PutGrant(approvers.Grant{ID: "x", Version: 1, State: approvers.GrantRevoked, Tool: "x"}),
		tx.PutGrant(approvers.Grant{ID: "y", State: approvers.GrantLive, Tool: "x"}),
		tx.PutAbsence(approvers.Absence{Who: "x", Version: 1, Name: "changed"}),
		tx.PutAbsence(approvers.Absence{Who: "y"}),
		tx.SetTimer(store.Timer{Kind: store.TimerRun, Ref: "x", Due: at(9)}),
		tx.SetTimer(store.Timer{Kind: store.TimerRun, Ref: "y", Due: at(2)}),
		tx.ClearTimer(store.TimerShow, "x"),
		tx.PutInbox(store.Inbox{ID: "x", Version: 1, ReceivedAt: at(0), HandledAt: at(3)}),
		tx.PutOutboxMessage(store.OutboxMessage{ID: "x", Version: 1, Ref: "x", Channel: "moved", TS: "x"}),
		tx.PutOutboxMessage(store.OutboxMessage{ID: "y", Ref: "x"}),
		tx.PutRendering(store.Rendering{OutboxMessage: "x", Post: 2}),
		tx.AppendAudit(a.Link(head), nil),
		tx.AppendAudit(b.Link(approvers.AuditRecord{}), &own),
		tx.PutHead(store.Head{Number: 2, Size: 4}),
		pruneAll(tx, "z"),
		eraseAll(tx, "y"),
		tx.PutConversation(store.Conversation{ID: "z", Place: "z"}),
		tx.PutTurn(approvers.Turn{ID: "z", Conversation: "z"}),
		eraseWhole(tx, "z"),
		tx.PutSetting(store.Setting{Key: "x", Version: 1, Value: []byte("2")}),
	)
}

// forgetOne deletes the oldest counter.
func forgetOne(tx store.Tx, before time.Time) error {
	n, err := tx.PruneCounters(before, 1)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d counters are forgotten, want 1", n)
	}
	return err
}

// eraseAll erases all payloads of a chain, which must have one payload.
func eraseAll(tx store.Tx, chain string) error {
	seqs, err := tx.ErasePayloads(chain)
	if err == nil && len(seqs) != 1 {
		err = fmt.Errorf("the payloads of %v are erased, want 1", seqs)
	}
	return err
}

// pruneAll prunes a whole chain, which must have one record.
func pruneAll(tx store.Tx, chain string) error {
	n, err := tx.PruneChain(chain)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d records are pruned, want 1", n)
	}
	return err
}

// eraseWhole erases a conversation.
func eraseWhole(tx store.Tx, id string) error {
	done, err := tx.EraseConversation(id, 100)
	if err == nil && !done {
		err = fmt.Errorf("conversation %s is not erased", id)
	}
	return err
}

func seed(tx store.Tx) error {
	a := approvers.AuditRecord{Chain: "x", At: at(0), Kind: approvers.AuditProposed}
	z := approvers.AuditRecord{Chain: "z", At: at(0), Kind: approvers.AuditProposed}
	return errors.Join(
		tx.PutConversation(store.Conversation{ID: "x", Place: "x"}),
		tx.PutMessage(store.Message{Conversation: "x", Seq: 1, Text: "as it was"}),
		tx.PutTurn(approvers.Turn{ID: "x"}),
		tx.PutCall(store.Call{ID: "x", Turn: "x"}),
		tx.PutRequest(approvers.Request{ID: "x", State: approvers.Pending, CreatedAt: at(0)}),
		tx.PutExecution(approvers.Execution{ID: "x"}),
		tx.AddCounter(store.Counter{Key: "x", At: at(1), ID: "x", N: 7}),
		tx.AddCounter(store.Counter{Key: "x", At: at(3), ID: "x", N: 5}),
		tx.PutGrant(approvers.Grant{ID: "x", State: approvers.GrantOffered, Tool: "x"}),
		tx.PutAbsence(approvers.Absence{Who: "x"}),
		tx.SetTimer(store.Timer{Kind: store.TimerRun, Ref: "x", Due: at(0)}),
		tx.SetTimer(store.Timer{Kind: store.TimerShow, Ref: "x", Due: at(0)}),
		tx.PutInbox(store.Inbox{ID: "x", ReceivedAt: at(0)}),
		tx.PutOutboxMessage(store.OutboxMessage{ID: "x", Ref: "x", Channel: "x", TS: "x"}),
		tx.PutRendering(store.Rendering{OutboxMessage: "x", Post: 1}),
		tx.AppendAudit(a.Link(approvers.AuditRecord{}), nil),
		tx.AppendAudit(z.Link(approvers.AuditRecord{}), nil),
		tx.PutHead(store.Head{Number: 1, Size: 2, Note: "first"}),
		tx.PutSetting(store.Setting{Key: "x", Value: []byte("1")}),
	)
}

// picture reads all data that scribble can change.
func picture(h *harness) (p []any) {
	h.Helper()
	h.view(func(r store.Reader) error { p = look(r); return nil })
	return p
}

func look(r store.Reader) (p []any) {
	see := func(v any, err error) {
		if err != nil {
			v = errors.Is(err, store.ErrNotFound)
		}
		p = append(p, v)
	}
	see(r.ConversationAt("x"))
	see(r.Conversation("y"))
	see(r.Messages("x", 0))
	see(r.Turn("x"))
	see(r.Calls("x"))
	see(r.Request("x"))
	see(r.OpenRequests(store.RequestCursor{}, 10))
	see(r.Execution("x"))
	see(r.CounterSum("x", at(0)))
	see(r.Grant("x"))
	see(r.OpenGrants("x"))
	see(r.OpenGrants(""))
	see(r.Absence("x"))
	see(r.Absences())
	see(r.Timers(store.TimerRun, 10))
	see(r.Timer(store.TimerRun, "x"))
	see(r.Timers(store.TimerShow, 10))
	see(r.Inbox("x"))
	see(r.Unhandled("", at(5)))
	see(r.OutboxMessagesOf("x"))
	see(r.OutboxMessageAt("x", "x"))
	see(r.OutboxMessageAt("moved", "x"))
	see(r.Renderings("x"))
	see(r.Audit("x"))
	see(r.AuditHead("x"))
	see(r.Audit("z"))
	see(r.AuditPayload("y", 1))
	see(r.Journal(0, 10))
	see(r.Heads(0, 10))
	see(r.LastHead())
	see(r.Turn("z"))
	see(r.ConversationsBefore(at(0), 10))
	see(r.Setting("x"))
	return p
}

func undone(h *harness) {
	h.update(seed)
	before := picture(h)
	h.refused(errMine, func(tx store.Tx) error { return errors.Join(scribble(tx), errMine) })
	h.same("everything", picture(h), before)
	if err := h.try(func(tx store.Tx) error { return errMine }); !reflectSame(err, errMine) { // the error is unchanged and not wrapped
		h.Errorf("the closure's error came back as %v", err)
	}
	h.update(scribble) // the same writes succeed without the error
	if reflectSame(picture(h), before) {
		h.Error("scribble changes nothing: this test can't fail")
	}
}

func panicked(h *harness) {
	h.update(seed)
	before := picture(h)
	func() {
		defer func() {
			if p, _ := recover().(error); !errors.Is(p, errMine) {
				h.Errorf("the caller recovered %v, want the closure's own panic", p)
			}
		}()
		_ = h.store.Update(h.Context(), func(tx store.Tx) error {
			if err := scribble(tx); err != nil {
				return err
			}
			panic(errMine)
		})
		h.Error("a panic was swallowed")
	}()
	h.same("everything", picture(h), before)
	h.update(scribble)
}

// goneExit checks a closure that ends its goroutine, as t.FailNow does. The store undoes the closure's writes and
// continues.
func goneExit(h *harness) {
	h.update(seed)
	before := picture(h)
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = h.store.Update(h.Context(), func(tx store.Tx) error {
			if err := scribble(tx); err != nil {
				return err
			}
			runtime.Goexit()
			return nil
		})
		h.Error("Update returned after its goroutine was told to end")
	})
	wg.Wait()
	h.same("everything", picture(h), before)
	h.update(scribble)
}

func ownWrites(h *harness) {
	h.update(seed)
	before := picture(h)
	var within []any
	h.update(func(tx store.Tx) error {
		if !reflectSame(look(tx), before) {
			h.Error("a transaction does not see what is stored")
		}
		if err := scribble(tx); err != nil {
			return err
		}
		within = look(tx)
		return nil
	})
	h.same("what the transaction saw", picture(h), within)
}

func isolation(h *harness) {
	h.update(seed)
	before := picture(h)
	h.update(func(tx store.Tx) error {
		if err := scribble(tx); err != nil {
			return err
		}
		var meanwhile []any
		var wg sync.WaitGroup
		wg.Go(func() { meanwhile = picture(h) })
		wg.Wait()
		h.same("everything, seen before the commit", meanwhile, before)
		return nil
	})
}

func snapshot(h *harness) {
	h.update(seed)
	h.view(func(r store.Reader) error {
		before := look(r)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := h.store.Update(h.Context(), scribble); err != nil {
				h.Errorf("update beside a view: %v", err)
			}
		})
		wg.Wait()
		h.same("everything, seen again in one view", look(r), before)
		return nil
	})
	h.view(func(r store.Reader) error {
		_, err := r.Conversation("y")
		return err
	})
}

func contexts(h *harness) {
	ctx, cancel := context.WithCancel(h.Context())
	h.update(seed)
	err := h.store.Update(ctx, func(tx store.Tx) error {
		cancel() // the cancellation comes too late, because the closure is running
		return scribble(tx)
	})
	if err != nil {
		h.Errorf("a transaction under way was given up: %v", err)
	}
	err = h.store.Update(ctx, func(store.Tx) error { h.Error("a closure ran although its context had ended"); return nil })
	if !errors.Is(err, context.Canceled) {
		h.Errorf("update: got error %v, want the context's", err)
	}
	err = h.store.View(ctx, func(store.Reader) error { h.Error("a view ran although its context had ended"); return nil })
	if !errors.Is(err, context.Canceled) {
		h.Errorf("view: got error %v, want the context's", err)
	}
	h.view(func(r store.Reader) error { _, err := r.Conversation("y"); return err })
}

// closing checks that calls after Close return ErrClosed, and that Close may be called twice.
func closing(h *harness) {
	h.update(seed)
	if err := h.store.Close(); err != nil {
		h.Fatalf("close: %v", err)
	}
	if err := h.store.Close(); err != nil {
		h.Errorf("close again: %v", err)
	}
	if err := h.store.Update(h.Context(), seed); !errors.Is(err, store.ErrClosed) {
		h.Errorf("update: got error %v, want ErrClosed", err)
	}
	if err := h.store.View(h.Context(), func(store.Reader) error { return nil }); !errors.Is(err, store.ErrClosed) {
		h.Errorf("view: got error %v, want ErrClosed", err)
	}
	if err := h.store.Check(h.Context()); !errors.Is(err, store.ErrClosed) {
		h.Errorf("check: got error %v, want ErrClosed", err)
	}
	h.enter()
	h.view(func(r store.Reader) error { _, err := r.Conversation("x"); return err })
}
