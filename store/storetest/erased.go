package storetest

import (
	"errors"
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

// silent checks that ConversationsBefore and ConversationsSince list the conversation with the oldest last message
// first.
func silent(h *harness) {
	put := func(id string, version uint64, last int) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.PutConversation(store.Conversation{ID: id, Place: id, Version: version, LastAt: at(last)})
		}
	}
	h.write(put("c", 0, 5), put("b", 0, 5), put("a", 0, 9), put("old", 0, -7))
	h.write(put("old", 1, 7)) // the conversation got a new message
	before := func(when, limit int, want ...string) {
		h.Helper()
		h.view(func(r store.Reader) error {
			list, err := r.ConversationsBefore(at(when), limit)
			h.same(fmt.Sprintf("%d silent since before %d", limit, when), ids(list, func(c store.Conversation) string { return c.ID }), append([]string{}, want...))
			return err
		})
	}
	since := func(when, limit int, want ...string) {
		h.Helper()
		h.view(func(r store.Reader) error {
			list, err := r.ConversationsSince(at(when), limit)
			h.same(fmt.Sprintf("%d with a message since %d", limit, when), ids(list, func(c store.Conversation) string { return c.ID }), append([]string{}, want...))
			return err
		})
	}
	since(5, 10, "b", "c", "old", "a")
	since(6, 10, "old", "a")
	since(6, 1, "old")
	since(10, 10)
	before(5, 10)
	before(6, 10, "b", "c")
	before(8, 10, "b", "c", "old")
	before(10, 10, "b", "c", "old", "a")
	before(10, 2, "b", "c")
	before(10, 0)
	h.update(func(tx store.Tx) error {
		done, err := tx.EraseConversation("b", 10)
		h.same("it is gone", done, true)
		return err
	})
	before(6, 10, "c")
}

// talk writes a conversation with records of each kind that belongs to a conversation. The tests use the ids "a" and
// "a/" for neighboring conversations, because these ids differ only by a slash.
func talk(id string) func(store.Tx) error {
	return func(tx store.Tx) error {
		err := errors.Join(
			tx.PutConversation(store.Conversation{ID: id, Place: "p/" + id}),
			tx.PutMessage(store.Message{Conversation: id, Seq: 1}),
			tx.PutMessage(store.Message{Conversation: id, Seq: 2}),
			tx.PutTurn(approvers.Turn{ID: "turn/" + id, Conversation: id}),
			tx.PutCall(store.Call{ID: "call/" + id, Conversation: id, Turn: "turn/" + id}),
			tx.PutRequest(approvers.Request{ID: "req/" + id, Conversation: id, State: approvers.Pending, CreatedAt: at(0)}),
			tx.PutRequest(approvers.Request{ID: "req2/" + id, Conversation: id, State: approvers.Rejected, CreatedAt: at(0)}),
			tx.PutExecution(approvers.Execution{ID: "exec/" + id, Conversation: id}),
			tx.PutExecution(approvers.Execution{ID: "exec2/" + id, Conversation: id}), // the execution of an edited call
			tx.SetTimer(store.Timer{Kind: store.TimerExpire, Ref: "req/" + id, Due: at(1)}),
			tx.SetTimer(store.Timer{Kind: store.TimerLeave, Ref: "exec/" + id, Due: at(1)}),
			tx.SetTimer(store.Timer{Kind: "a kind to come", Ref: "call/" + id, Due: at(1)}),
			tx.PutElicitation(approvers.Elicitation{ID: "elicit/" + id, Execution: "exec/" + id}),
			tx.PutElicitation(approvers.Elicitation{ID: "elicit2/" + id, Execution: "exec/" + id}),
			tx.PutFile(store.File{Execution: "exec/" + id}.Of([]byte("bytes")), []byte("bytes")),
			tx.PutFile(store.File{Execution: "exec2/" + id, Index: 3}.Of([]byte("bytes")), []byte("bytes")),
			tx.SetTimer(store.Timer{Kind: store.TimerElicit, Ref: "elicit/" + id, Due: at(1)}),
			append1("req/"+id, "words")(tx),
		)
		for _, ref := range []string{id, "turn/" + id, "call/" + id, "req/" + id, "exec2/" + id, "elicit/" + id} {
			message := "outbox message of " + ref
			err = errors.Join(err,
				tx.PutOutboxMessage(store.OutboxMessage{ID: message, Ref: ref, Channel: "C", TS: ref}),
				tx.SetTimer(store.Timer{Kind: store.TimerShow, Ref: message, Due: at(1)}),
				tx.PutRendering(store.Rendering{OutboxMessage: message, Post: 1}), tx.PutRendering(store.Rendering{OutboxMessage: message, Post: 2}))
		}
		return err
	}
}

// talkRecords is the number of records of a talk, without timers, index rows and audit.
const talkRecords = 1 + 2 + 1 + 1 + 2 + 2 + 2 + 2 + 6 + 12

// left counts the records of a talk that are in the store.
func left(h *harness, id string) (n int) {
	h.Helper()
	h.view(func(r store.Reader) error {
		found := func(err error) {
			switch {
			case err == nil:
				n++
			case !errors.Is(err, store.ErrNotFound):
				h.Errorf("what is left of %s: %v", id, err)
			}
		}
		_, err := r.Conversation(id)
		found(err)
		_, err = r.Turn("turn/" + id)
		found(err)
		_, err = r.Call("call/" + id)
		found(err)
		for _, k := range []string{"req/", "req2/"} {
			_, err = r.Request(k + id)
			found(err)
		}
		for _, k := range []string{"exec/", "exec2/"} {
			_, err = r.Execution(k + id)
			found(err)
			files, err := r.Files(k + id)
			n += len(files)
			for _, f := range files {
				_, missing := r.FileData(f.Execution, f.Index)
				err = errors.Join(err, missing)
			}
			asked, err2 := r.Elicitations(k + id)
			n += len(asked)
			if err := errors.Join(err, err2); err != nil {
				return err
			}
		}
		messages, err := r.Messages(id, 0)
		n += len(messages)
		if err != nil {
			return err
		}
		for _, ref := range []string{id, "turn/" + id, "call/" + id, "req/" + id, "exec2/" + id, "elicit/" + id} {
			_, err = r.OutboxMessage("outbox message of " + ref)
			found(err)
			posts, err := r.Renderings("outbox message of " + ref)
			n += len(posts)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return n
}

// outboxErased checks OutboxRefs and EraseOutboxMessage. The tests use Refs that differ only by their end.
func outboxErased(h *harness) {
	refs := func(after string, limit int, want ...string) {
		h.Helper()
		h.view(func(r store.Reader) error {
			list, err := r.OutboxRefs(after, limit)
			h.same(fmt.Sprintf("%d refs after %q", limit, after), append([]string{}, list...), append([]string{}, want...))
			return err
		})
	}
	refs("", 10)
	for i, ref := range []string{"home", "home/b", "home/a", "home/a", "home0", "home/a/"} {
		id := fmt.Sprint("m", i)
		h.write(func(tx store.Tx) error {
			return errors.Join(
				tx.PutOutboxMessage(store.OutboxMessage{ID: id, Ref: ref, Channel: "C", TS: id}),
				tx.PutRendering(store.Rendering{OutboxMessage: id, Post: 1}), tx.PutRendering(store.Rendering{OutboxMessage: id, Post: 2}),
				tx.SetTimer(store.Timer{Kind: store.TimerShow, Ref: id, Due: at(1)}), tx.SetTimer(store.Timer{Kind: "a kind to come", Ref: id, Due: at(1)}))
		})
	}
	refs("", 10, "home", "home/a", "home/a/", "home/b", "home0")
	refs("", 2, "home", "home/a")
	refs("home", 2, "home/a", "home/a/")
	refs("home/", 10, "home/a", "home/a/", "home/b", "home0")
	refs("home/a", 1, "home/a/")
	refs("home0", 10)
	refs("", 0)
	erase := func(id string) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.EraseOutboxMessage(id) }
	}
	h.refused(errMine, func(tx store.Tx) error { return errors.Join(erase("m2")(tx), errMine) })
	left := func(id string, want int) {
		h.Helper()
		h.view(func(r store.Reader) error {
			n := 0
			if _, err := r.OutboxMessage(id); err == nil {
				n++
			}
			if _, err := r.OutboxMessageAt("C", id); err == nil {
				n++
			}
			for _, kind := range []store.TimerKind{store.TimerShow, "a kind to come"} {
				if _, err := r.Timer(kind, id); err == nil {
					n++
				}
			}
			posts, err := r.Renderings(id)
			h.same("what is left of "+id, n+len(posts), want)
			return err
		})
	}
	left("m2", 6)
	h.write(erase("m2"), erase("m4"), erase("none"))
	left("m2", 0)
	left("m3", 6)
	refs("", 10, "home", "home/a", "home/a/", "home/b")
	h.update(func(tx store.Tx) error { // the erasure is visible in its own transaction
		err := tx.EraseOutboxMessage("m3")
		of, err2 := tx.OutboxMessagesOf("home/a")
		h.same("messages about home/a", len(of), 0)
		list, err3 := tx.OutboxRefs("", 10)
		h.same("refs", list, []string{"home", "home/a/", "home/b"})
		return errors.Join(err, err2, err3)
	})
	h.write(func(tx store.Tx) error { return tx.PutOutboxMessage(store.OutboxMessage{ID: "m3", Ref: "home/a"}) })
	left("m3", 1)
}

// conversationsErased checks that EraseConversation removes a conversation completely. Neighboring conversations and
// the audit stay.
func conversationsErased(h *harness) {
	h.write(talk("a"), talk("a/"), talk("b"))
	h.refused(errMine, func(tx store.Tx) error {
		_, err := tx.EraseConversation("a", 100)
		return errors.Join(err, errMine)
	})
	h.same("what is left of a after it was undone", left(h, "a"), talkRecords)
	h.update(func(tx store.Tx) error {
		done, err := tx.EraseConversation("a", 100)
		h.same("it is done", done, true)
		again, err2 := tx.EraseConversation("a", 100)
		h.same("it is done already", again, true)
		return errors.Join(err, err2)
	})
	h.same("what is left of a", left(h, "a"), 0)
	for _, id := range []string{"a/", "b"} {
		h.same("what is left of "+id, left(h, id), talkRecords)
	}
	h.view(func(r store.Reader) error {
		for kind, n := range map[store.TimerKind]int{store.TimerExpire: 2, store.TimerLeave: 2, store.TimerElicit: 2, "a kind to come": 2, store.TimerShow: 12} {
			list, err := r.Timers(kind, 100)
			if err != nil {
				return err
			}
			h.same("timers "+string(kind), len(list), n)
		}
		if _, err := r.OutboxMessageAt("C", "req/a"); !errors.Is(err, store.ErrNotFound) {
			h.Errorf("a message of the conversation: got error %v, want ErrNotFound", err)
		}
		open, err := r.OpenRequests(store.RequestCursor{}, 10)
		h.same("open requests", ids(open, func(q approvers.Request) string { return q.ID }), []string{"req/a/", "req/b"})
		p, err2 := r.AuditPayload("req/a", 1)
		h.same("the audit", string(p.Body), "words")
		none, err3 := r.Executions("a")
		h.same("how many executions of a", len(none), 0)
		runs, err4 := r.Executions("b")
		h.same("the executions of b", ids(runs, func(e approvers.Execution) string { return e.ID }), []string{"exec/b", "exec2/b"})
		return errors.Join(err, err2, err3, err4)
	})
	h.write(talk("a")) // after the erasure, a new conversation can have the same names
	h.same("what there is of a again", left(h, "a"), talkRecords)
	h.write(func(tx store.Tx) error {
		c, err := tx.Conversation("b")
		c.Turn = "turn/b"
		return errors.Join(err, tx.PutConversation(c))
	})
	h.refused(store.ErrConflict, func(tx store.Tx) error { _, err := tx.EraseConversation("b", 100); return err })
	h.same("what is left of b", left(h, "b"), talkRecords)
}

// erasedInParts checks that each call of EraseConversation deletes at most limit records, and that only the last call
// reports done.
func erasedInParts(h *harness) {
	id := func(limit int) string { return fmt.Sprint("limit", limit) }
	before := map[int]int{} // by limit: how many records are left
	h.together(func() {
		for _, limit := range []int{1, 2, 3, 7, talkRecords, talkRecords + 1, 1000} {
			h.write(talk(id(limit)))
			h.update(func(tx store.Tx) error {
				done, err := tx.EraseConversation(id(limit), 0)
				h.same("nothing may be deleted", done, false)
				return err
			})
			before[limit] = talkRecords
		}
	})
	for limit, n := range before {
		h.same("what there is", left(h, id(limit)), n)
	}
	for len(before) > 0 {
		done := map[int]bool{}
		h.together(func() {
			for limit := range before {
				h.update(func(tx store.Tx) (err error) {
					done[limit], err = tx.EraseConversation(id(limit), limit)
					return err
				})
			}
		})
		for limit, n := range before {
			now := left(h, id(limit))
			if now >= n || n-now > limit {
				h.Fatalf("a transaction with a limit of %d deleted %d of %d", limit, n-now, n)
			}
			before[limit] = now
			if done[limit] {
				h.same("what is left", now, 0)
				delete(before, limit)
			}
		}
	}
}

// theTurn names the records of the turn of a talk.
func theTurn(id string) store.TurnRecords {
	return store.TurnRecords{
		ID: "turn/" + id, Messages: []uint64{1, 2}, Requests: []string{"req/" + id, "req2/" + id}, Executions: []string{"exec/" + id, "exec2/" + id},
	}
}

// besideTurn is the number of records of a talk that do not belong to its turn: the conversation, and an outbox message
// with two renderings.
const besideTurn = 1 + 1 + 2

// turnErased checks that EraseTurn removes a turn completely. The conversation, its other turns, neighboring
// conversations and the audit stay.
func turnErased(h *harness) {
	h.write(talk("a"), talk("a/"))
	h.write(func(tx store.Tx) error {
		return errors.Join(
			tx.PutMessage(store.Message{Conversation: "a", Seq: 3}),
			tx.PutTurn(approvers.Turn{ID: "later", Conversation: "a"}),
			tx.PutCall(store.Call{ID: "later call", Conversation: "a", Turn: "later"}),
			tx.PutRequest(approvers.Request{ID: "later request", Conversation: "a", State: approvers.Pending, CreatedAt: at(1)}),
			tx.PutExecution(approvers.Execution{ID: "later execution", Conversation: "a"}),
			tx.PutOutboxMessage(store.OutboxMessage{ID: "later message", Ref: "later request", Channel: "C", TS: "later"}))
	})
	h.refused(errMine, func(tx store.Tx) error {
		_, err := tx.EraseTurn(theTurn("a"), 100)
		return errors.Join(err, errMine)
	})
	h.same("what is left of a after it was undone", left(h, "a"), talkRecords+1)
	h.update(func(tx store.Tx) error {
		done, err := tx.EraseTurn(theTurn("a"), 100)
		h.same("it is done", done, true)
		again, err2 := tx.EraseTurn(theTurn("a"), 100)
		h.same("it is done already", again, true)
		_, gone := tx.Turn("turn/a")
		h.same("the turn is gone", errors.Is(gone, store.ErrNotFound), true)
		return errors.Join(err, err2)
	})
	h.same("what is left of a", left(h, "a"), besideTurn+1)
	h.same("what is left of a/", left(h, "a/"), talkRecords)
	h.view(func(r store.Reader) error {
		for kind, n := range map[store.TimerKind]int{store.TimerExpire: 1, store.TimerLeave: 1, store.TimerElicit: 1, "a kind to come": 1, store.TimerShow: 7} {
			list, err := r.Timers(kind, 100)
			if err != nil {
				return err
			}
			h.same("timers "+string(kind), len(list), n)
		}
		_, err := r.Turn("later")
		_, err2 := r.Call("later call")
		_, err3 := r.OutboxMessageAt("C", "later")
		requests, err4 := r.Requests("a")
		h.same("the requests of a", ids(requests, func(q approvers.Request) string { return q.ID }), []string{"later request"})
		runs, err5 := r.Executions("a")
		h.same("the executions of a", ids(runs, func(e approvers.Execution) string { return e.ID }), []string{"later execution"})
		open, err6 := r.OpenRequests(store.RequestCursor{}, 10)
		h.same("open requests", ids(open, func(q approvers.Request) string { return q.ID }), []string{"req/a/", "later request"})
		p, err7 := r.AuditPayload("req/a", 1)
		h.same("the audit", string(p.Body), "words")
		return errors.Join(err, err2, err3, err4, err5, err6, err7)
	})
	h.write(func(tx store.Tx) error {
		c, err := tx.Conversation("a/")
		c.Turn = "turn/a/"
		return errors.Join(err, tx.PutConversation(c))
	})
	h.refused(store.ErrConflict, func(tx store.Tx) error { _, err := tx.EraseTurn(theTurn("a/"), 100); return err })
	h.same("what is left of a/", left(h, "a/"), talkRecords)
}

// turnErasedInParts checks that each call of EraseTurn deletes at most limit records, and that only the last call
// reports done. As long as the turn exists, its first message exists, too. The last call deletes both as one record.
func turnErasedInParts(h *harness) {
	for _, limit := range []int{1, 3, 7, talkRecords} {
		id := fmt.Sprint("limit", limit)
		h.write(talk(id))
		for n, done := talkRecords, false; !done; {
			h.update(func(tx store.Tx) (err error) {
				done, err = tx.EraseTurn(theTurn(id), limit)
				return err
			})
			now, most := left(h, id), limit
			if done {
				most++
			}
			if now >= n || n-now > most {
				h.Fatalf("a transaction with a limit of %d deleted %d of %d", limit, n-now, n)
			}
			n = now
			h.view(func(r store.Reader) error {
				_, gone := r.Turn("turn/" + id)
				messages, err := r.Messages(id, 0)
				first := len(messages) > 0 && messages[0].Seq == theTurn(id).Messages[0]
				h.same("the first message is there", first, gone == nil)
				h.same("the turn is gone", gone != nil, done)
				return err
			})
		}
		h.same("what is left", left(h, id), besideTurn)
	}
}
