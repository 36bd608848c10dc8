package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

func timerRefs(list []store.Timer) []string {
	return ids(list, func(t store.Timer) string { return t.Ref })
}

func timers(h *harness) {
	set := func(kind store.TimerKind, ref string, due int) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.SetTimer(store.Timer{Kind: kind, Ref: ref, Due: at(due)}) }
	}
	unset := func(kind store.TimerKind, ref string) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.ClearTimer(kind, ref) }
	}
	due := func(now int, limit int, want ...string) {
		h.Helper()
		h.view(func(r store.Reader) error {
			list, err := r.TimersIn(store.AllShares, store.TimerRun, at(now), limit)
			h.same(fmt.Sprintf("at most %d due at %d µs", limit, now), timerRefs(list), append([]string{}, want...))
			return err
		})
	}
	h.write(set(store.TimerRun, "late", 1_000_000), set(store.TimerRun, "b", 5), set(store.TimerRun, "c", 5), set(store.TimerRun, "a", 5),
		set(store.TimerRun, "early", -1_000_000_000), set(store.TimerShow, "other", -9), set(store.TimerShowFirst, "another", -10))
	due(4, 10, "early")
	due(5, 10, "early", "a", "b", "c")
	due(5, 2, "early", "a")
	due(5, 0)
	due(2_000_000, 10, "early", "a", "b", "c", "late")
	h.write(set(store.TimerRun, "early", 6), set(store.TimerRun, "early", 5)) // the second timer replaces the first timer
	due(5, 10, "a", "b", "c", "early")
	h.write(unset(store.TimerRun, "b"), unset(store.TimerRun, "never there"), unset(store.TimerRun, "b"))
	h.write(unset(store.TimerRun, "a"), set(store.TimerRun, "a", 7))
	due(9, 10, "c", "early", "a")
	h.view(func(r store.Reader) error {
		all, err := r.Timers(store.TimerRun, 10)
		h.same("all of them", timerRefs(all), []string{"c", "early", "a", "late"})
		some, err2 := r.Timers(store.TimerRun, 3)
		h.same("some of them", timerRefs(some), []string{"c", "early", "a"})
		one, err3 := r.Timer(store.TimerRun, "a")
		h.same("one of them", one, store.Timer{Kind: store.TimerRun, Ref: "a", Due: at(7)})
		shows, err4 := r.Timers(store.TimerShow, 10)
		h.same("all of a kind whose name another one begins with", timerRefs(shows), []string{"other"})
		return errors.Join(err, err2, err3, err4)
	})
	// A list of the timers of some shares is complete, even if other shares have more timers than the limit.
	own := store.Timer{Ref: "late"}.Share()
	h.view(func(r store.Reader) error {
		var want []string
		for _, ref := range []string{"c", "early", "a", "late"} {
			if (store.Timer{Ref: ref}).Share() == own {
				want = append(want, ref)
			}
		}
		in := func(shares store.Shares, until time.Time, limit int, want ...string) error {
			h.Helper()
			list, err := r.TimersIn(shares, store.TimerRun, until, limit)
			h.same(fmt.Sprintf("at most %d in the shares %b until %s", limit, shares, until), timerRefs(list), append([]string{}, want...))
			return err
		}
		return errors.Join(
			in(store.Shares(0).With(own), time.Time{}, 10, want...), in(store.Shares(0).With(own), time.Time{}, 1, want[0]),
			in(store.Shares(0).With(own), at(1000), 10, want[:len(want)-1]...),
			in(store.AllShares, time.Time{}, 10, "c", "early", "a", "late"), in(store.AllShares, at(5), 10, "c", "early"), in(store.AllShares, at(5), 1, "c"),
			in(store.AllShares, time.Time{}, 0), in(0, time.Time{}, 10),
		)
	})
	h.view(func(r store.Reader) error {
		var errs []error
		for until, want := range map[int][]store.TimerKind{
			-11: nil, -10: {store.TimerShowFirst}, 4: {store.TimerShow, store.TimerShowFirst}, 5: {store.TimerRun, store.TimerShow, store.TimerShowFirst},
		} {
			found, err := r.DueKinds(store.AllShares, []store.TimerKind{store.TimerRun, store.TimerShow, store.TimerShowFirst, store.TimerThink}, at(until))
			slices.Sort(found)
			h.same(fmt.Sprintf("the kinds that are due at %d µs", until), found, want)
			errs = append(errs, err)
		}
		none, err := r.DueKinds(0, []store.TimerKind{store.TimerRun}, at(5))
		h.same("the due kinds without shares", len(none), 0)
		without := store.AllShares &^ store.Shares(0).With(store.Timer{Ref: "other"}.Share())
		others, err2 := r.DueKinds(without, []store.TimerKind{store.TimerShow}, at(5))
		h.same("the due kinds in other shares", len(others), 0)
		return errors.Join(append(errs, err, err2)...)
	})
	// The store keeps the lane, the affinity and the number of tries of a timer. Setting the timer without these three
	// values removes them.
	laned := store.Timer{Kind: store.TimerRun, Ref: "c", Due: at(5), Lane: "l", Affinity: "conversation:x", Tries: 3}
	h.write(func(tx store.Tx) error { return tx.SetTimer(laned) })
	h.view(func(r store.Reader) error {
		got, err := r.Timer(store.TimerRun, "c")
		h.same("a timer with everything", got, laned)
		in, err2 := r.TimersIn(store.Shares(0).With(store.Timer{Affinity: "conversation:x"}.Share()), store.TimerRun, at(5), 10)
		h.same("it is in the share of its affinity", timerRefs(in), []string{"c"})
		return errors.Join(err, err2)
	})
	h.write(set(store.TimerRun, "c", 5))
	h.view(func(r store.Reader) error {
		got, err := r.Timer(store.TimerRun, "c")
		h.same("a timer that was set again", got, store.Timer{Kind: store.TimerRun, Ref: "c", Due: at(5)})
		return err
	})
}

func inbox(h *harness) {
	put := func(id string, version uint64, received, handled int) func(store.Tx) error {
		return func(tx store.Tx) error {
			row := store.Inbox{ID: id, Version: version, Kind: store.InboxInteraction, ReceivedAt: at(received)}
			if handled != 0 {
				row.HandledAt = at(handled)
			}
			return tx.PutInbox(row)
		}
	}
	unhandled := func(received time.Time, want bool) {
		h.Helper()
		h.view(func(r store.Reader) error {
			got, err := r.Unhandled(store.InboxInteraction, received)
			h.same(fmt.Sprintf("anything unhandled at %s", received), got, want)
			return err
		})
	}
	forget := func(before, limit, want int) {
		h.Helper()
		h.update(func(tx store.Tx) error {
			n, err := tx.ForgetInbox(at(before), limit)
			h.same(fmt.Sprintf("forgotten before %d µs", before), n, want)
			return err
		})
	}
	unhandled(at(1000), false)
	h.write(func(tx store.Tx) error {
		return tx.PutInbox(store.Inbox{ID: "of another kind", Kind: store.InboxEvent, ReceivedAt: at(1)})
	})
	unhandled(at(1000), false)
	h.write(put("a", 0, 10, 0), put("b", 0, 20, 0), put("c", 0, 5, 7))
	unhandled(at(9), false)
	unhandled(at(10).Add(-time.Nanosecond), false)
	unhandled(at(10), true)
	unhandled(at(15), true)
	h.write(put("a", 1, 10, 30))
	unhandled(at(19), false)
	unhandled(at(20), true)
	h.write(put("b", 1, 20, 30))
	unhandled(at(1000), false)
	forget(7, 10, 0) // a row that was handled at exactly the given time is not deleted
	forget(8, 10, 1)
	h.view(func(r store.Reader) error {
		if _, err := r.Inbox("c"); !errors.Is(err, store.ErrNotFound) {
			h.Errorf("a forgotten row: got error %v, want ErrNotFound", err)
		}
		_, err := r.Inbox("a")
		return err
	})
	h.refused(store.ErrConflict, put("a", 0, 50, 0)) // a redelivery of a row that is still kept
	forget(31, 0, 0)
	forget(31, 1, 1)
	forget(31, 10, 1)
	forget(31, 10, 0)
	h.write(put("a", 0, 50, 0)) // the row counts as new again
	forget(1000, 10, 0)         // an unhandled row is never deleted
	unhandled(at(50), true)
}

func outboxMessages(h *harness) {
	put := func(s store.OutboxMessage) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.PutOutboxMessage(s) }
	}
	of := func(ref string, want ...string) {
		h.Helper()
		h.view(func(r store.Reader) error {
			list, err := r.OutboxMessagesOf(ref)
			h.same("the outbox messages of "+ref, ids(list, func(s store.OutboxMessage) string { return s.ID }), append([]string{}, want...))
			return err
		})
	}
	shown := func(channel, ts, want string) {
		h.Helper()
		h.view(func(r store.Reader) error {
			s, err := r.OutboxMessageAt(channel, ts)
			if want == "" && errors.Is(err, store.ErrNotFound) {
				return nil
			}
			h.same("the message at "+channel+" "+ts, s.ID, want)
			return err
		})
	}
	// Lists are in the order of creation, even if the times are equal and the ids sort differently.
	h.write(put(store.OutboxMessage{ID: "z", Ref: "r", CreatedAt: at(0)}), put(store.OutboxMessage{ID: "m", Ref: "r", CreatedAt: at(0)}), put(store.OutboxMessage{ID: "q", Ref: "r2"}))
	h.write(put(store.OutboxMessage{ID: "a", Ref: "r", CreatedAt: at(0)}), put(store.OutboxMessage{ID: "none"}))
	of("r", "z", "m", "a")
	of("", "none")
	h.write(put(store.OutboxMessage{ID: "m", Version: 1, Ref: "r", CreatedAt: at(0), Channel: "C1", TS: "1.1"}))
	of("r", "z", "m", "a")
	shown("C1", "1.1", "m")
	shown("C1", "1.", "")
	shown("C11", ".1", "")
	h.write(put(store.OutboxMessage{ID: "m", Version: 2, Ref: "r", CreatedAt: at(0), Channel: "C2", TS: "1.1"})) // shown elsewhere
	shown("C1", "1.1", "")
	shown("C2", "1.1", "m")
	h.write(put(store.OutboxMessage{ID: "z", Version: 1, Ref: "r", CreatedAt: at(0), Channel: "C2"})) // no message yet
	shown("C2", "", "")
	h.write(put(store.OutboxMessage{ID: "q", Version: 1, Ref: "r", CreatedAt: at(0)})) // the message shows something else now
	of("r", "z", "m", "q", "a")
	of("r2")
	// A transaction that reads two requests of one turn sees each message of the turn once.
	request := func(id string) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.PutRequest(approvers.Request{ID: id, Turn: "r"}) }
	}
	h.write(request("first"), request("second"))
	read := func(id string) func(store.Tx) error {
		return func(tx store.Tx) error { _, err := tx.Request(id); return err }
	}
	h.write(put(store.OutboxMessage{ID: "b", Ref: "r", CreatedAt: at(0)}), read("first"), read("second"), func(tx store.Tx) error {
		list, err := tx.OutboxMessagesOf("r")
		h.same("the messages of the turn", ids(list, func(s store.OutboxMessage) string { return s.ID }), []string{"z", "m", "q", "a", "b"})
		return err
	})
}

func renderings(h *harness) {
	put := func(message string, post uint64, hash string) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.PutRendering(store.Rendering{OutboxMessage: message, Post: post, Hash: hash, Body: []byte(hash)})
		}
	}
	h.write(put("s", 10, "ten"), put("s", 2, "two"), put("s", 1, "one"), put("s2", 1, "other"))
	h.refused(store.ErrConflict, put("s", 2, "changed"))
	h.refused(store.ErrConflict, put("s", 2, "two"))
	h.view(func(r store.Reader) error {
		list, err := r.Renderings("s")
		h.same("the renderings", ids(list, func(r store.Rendering) string { return string(r.Body) }), []string{"one", "two", "ten"})
		two, err2 := r.Rendering("s", 2)
		h.same("one rendering", two.Hash, "two")
		return errors.Join(err, err2)
	})
	for _, erased := range []struct {
		below uint64
		want  int
	}{{1, 0}, {2, 1}, {0, 2}, {0, 0}} {
		h.update(func(tx store.Tx) error {
			n, err := tx.EraseRenderings("s", erased.below)
			h.same(fmt.Sprint("how many are erased below ", erased.below), n, erased.want)
			return err
		})
	}
	h.view(func(r store.Reader) error {
		list, err := r.Renderings("s")
		h.same("how many are left", len(list), 0)
		other, err2 := r.Rendering("s2", 1)
		h.same("another message's", other.Hash, "other")
		return errors.Join(err, err2)
	})
}

func auditChains(h *harness) {
	var heads = map[string]approvers.AuditRecord{}
	add := func(chain string, kind approvers.AuditKind, body string) {
		h.Helper()
		a := approvers.AuditRecord{Chain: chain, At: at(len(heads)), Kind: kind, Actor: "T/U", Facts: map[string]string{"z": "1", "a": "<&>"}}
		p := approvers.AuditPayload{Chain: chain, Seq: heads[chain].Seq + 1, Salt: []byte{0xff, 0, 1}, Body: []byte(body)}
		a.PayloadHash = p.Hash()
		a = a.Link(heads[chain])
		h.write(func(tx store.Tx) error { return tx.AppendAudit(a, &p) })
		heads[chain] = a
	}
	for i := range 12 {
		for _, chain := range []string{"b", "a", "ab", "é"} {
			if i == 0 || chain == "b" {
				add(chain, approvers.AuditShown, fmt.Sprint(chain, i))
			}
		}
	}
	// A record without a payload and without facts is allowed.
	h.write(func(tx store.Tx) error {
		return tx.AppendAudit(approvers.AuditRecord{Chain: "b", At: at(99), Kind: approvers.AuditClosed}.Link(heads["b"]), nil)
	})
	h.view(func(r store.Reader) error {
		list, err := r.Audit("b")
		if err != nil {
			return err
		}
		h.same("how many records", len(list), 13)
		head, err2 := r.AuditHead("b")
		h.same("the head", head, list[len(list)-1])
		if _, err := r.AuditPayload("b", 13); !errors.Is(err, store.ErrNotFound) {
			h.Errorf("a payload that was never given: got error %v, want ErrNotFound", err)
		}
		p, err3 := r.AuditPayload("b", 7)
		h.same("a payload", string(p.Body), "b6")
		h.same("its hash", p.Hash(), list[6].PayloadHash)
		var chains []string
		for after := ""; ; after = chains[len(chains)-1] {
			page, err := r.AuditChains(after, 2)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			chains = append(chains, page...)
		}
		h.same("the chains", chains, []string{"a", "ab", "b", "é"})
		between, err4 := r.AuditChains("aaa", 1)
		h.same("the chain after one that is not there", between, []string{"ab"})
		return errors.Join(err2, err3, err4, approvers.VerifyChain(list))
	})
}

func auditRefusals(h *harness) {
	first := approvers.AuditRecord{Chain: "c", At: at(0), Kind: approvers.AuditProposed}.Link(approvers.AuditRecord{})
	second := approvers.AuditRecord{Chain: "c", At: at(1), Kind: approvers.AuditShown}.Link(first)
	other := approvers.AuditRecord{Chain: "c", At: at(2), Kind: approvers.AuditDenied}.Link(first)
	add := func(a approvers.AuditRecord, p *approvers.AuditPayload) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.AppendAudit(a, p) }
	}
	h.refused(store.ErrConflict, add(second, nil)) // the chain does not exist yet
	h.write(add(first, nil))
	h.refused(store.ErrConflict, add(first, nil))
	h.write(add(second, nil))
	h.refused(store.ErrConflict, add(second, nil))
	h.refused(store.ErrConflict, add(other, nil)) // another record was appended first
	elsewhere := other
	elsewhere.Chain = "d"
	h.refused(store.ErrConflict, add(elsewhere, nil))
	h.refused(store.ErrConflict, add(approvers.AuditRecord{Chain: "c", At: at(3), Kind: approvers.AuditClosed}.Link(other), nil)) // a second record after the same predecessor
	// A record that would fail verification is refused, because an appended record can't be corrected.
	wrongPlace := approvers.AuditPayload{Chain: "c", Seq: 2, Body: []byte("x")}
	third := approvers.AuditRecord{Chain: "c", At: at(3), Kind: approvers.AuditClosed, PayloadHash: "of something else"}.Link(second)
	forged := third
	forged.Kind = approvers.AuditApproved
	for what, put := range map[string]func(store.Tx) error{
		"record that was changed after it was linked":     add(forged, nil),
		"payload that the record does not commit to":      add(third, &approvers.AuditPayload{Chain: "c", Seq: 3, Body: []byte("x")}),
		"payload that says it is another record's":        add(approvers.AuditRecord{Chain: "c", At: at(3), PayloadHash: wrongPlace.Hash()}.Link(second), &wrongPlace),
		"record whose hash would not survive the storing": add(approvers.AuditRecord{Chain: "c", At: at(3), Actor: "\xff"}.Link(second), nil),
	} {
		if err := h.try(put); err == nil {
			h.Errorf("a %s was stored", what)
		}
	}
	h.write(add(third, nil)) // a copy of a record whose payload was erased earlier
}

// nothingBroken requires that the check finds no faults in a store with most kinds of data. The tests of each backend
// test that the check finds faults.
func nothingBroken(h *harness) {
	h.update(seed)
	h.update(scribble)
	if err := h.store.Check(h.Context()); err != nil {
		h.Errorf("check: %v", err)
	}
}
