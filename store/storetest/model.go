package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"countersign/approvers"
	"countersign/store"
)

// The model test draws from few names and times, so that they collide.
var (
	names   = []string{"a", "a/", "b", "b\x01"}
	moments = []int{-7, 0, 1, 300}
	kinds   = []store.TimerKind{store.TimerRun, store.TimerShow}

	inboxKinds = []store.InboxKind{store.InboxEvent, store.InboxInteraction}
	states     = []approvers.State{approvers.Pending, approvers.Approved, approvers.Rejected}
	grants     = []approvers.GrantState{approvers.GrantOffered, approvers.GrantLive, approvers.GrantUsed}
)

// step is one operation with its drawn arguments. It runs on the backend and on the model, and returns its results.
type step struct {
	name string
	run  func(store.Tx) (any, error)
}

func (s step) String() string { return s.name }

// model runs random transactions on the backend and on a model in memory. It compares the results of each step, and all
// data after each transaction. From time to time it closes and reopens the store.
func model(h *harness) {
	rapid.Check(h.T, func(t *rapid.T) {
		h := newHarness(h.T, h.fresh(h.T), false)
		defer h.leave()
		m := newMemory()
		for range rapid.IntRange(1, 10).Draw(t, "transactions") {
			steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 8).Draw(t, "steps")
			fails := rapid.IntRange(0, 3).Draw(t, "fails") == 0
			var learned, meant []string
			run := func(tx store.Tx, out *[]string) error {
				*out = nil
				for _, s := range steps {
					v, err := s.run(tx)
					*out = append(*out, told(s.name, v, err))
				}
				if fails {
					return errMine
				}
				return nil
			}
			next := m.clone()
			want := run(next, &meant)
			err := h.store.Update(h.Context(), func(tx store.Tx) error { return run(tx, &learned) })
			if !errors.Is(err, want) {
				t.Fatalf("update: got error %v, want %v", err, want)
			}
			if want == nil {
				m = next
			}
			differ(t, learned, meant)
			if rapid.IntRange(0, 15).Draw(t, "reopen") == 0 {
				h.reopen()
			}
			err = h.store.View(h.Context(), func(r store.Reader) error {
				differ(t, everything(r), everything(m))
				return nil
			})
			if err != nil {
				t.Fatalf("view: %v", err)
			}
		}
	})
}

func differ(t *rapid.T, got, want []string) {
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("the store says\n\t%s\nand the model\n\t%s", got[i], want[i])
		}
	}
}

// told formats the result of a call. For an error, it shows only the kind of error.
func told(name string, v any, err error) string {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return name + ": not found"
	case errors.Is(err, store.ErrConflict):
		return name + ": conflict"
	case err != nil:
		return name + ": error"
	}
	js, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%s: %s", name, strings.Replace(string(js), "null", "[]", 1)) // no list and an empty list are the same
}

// everything returns all data that the model test can have written, read through lists and single reads.
func everything(r store.Reader) (out []string) {
	see := func(name string, v any, err error) { out = append(out, told(name, v, err)) }
	for _, n := range names {
		c, err := r.Conversation(n)
		see("conversation "+n, c, err)
		c, err = r.ConversationAt(n)
		see("conversation at "+n, c, err)
		for _, after := range []uint64{0, 1, 2} {
			list, err := r.Messages(n, after)
			see(fmt.Sprint("messages of ", n, after), list, err)
		}
		turn, err := r.Turn(n)
		see("turn "+n, turn, err)
		call, err := r.Call(n)
		see("call "+n, call, err)
		calls, err := r.Calls(n)
		see("calls of "+n, len(calls), err)
		req, err := r.Request(n)
		see("request "+n, req, err)
		exec, err := r.Execution(n)
		see("execution "+n, exec, err)
		runs, err := r.Executions(n)
		see("executions of "+n, runs, err)
		asked, err := r.Elicitation(n)
		see("elicitation "+n, asked, err)
		all, err := r.Elicitations(n)
		see("elicitations of "+n, all, err)
		files, err := r.Files(n)
		see("files of "+n, files, err)
		for index := range 3 {
			data, err := r.FileData(n, index)
			see(fmt.Sprint("file ", index, " of ", n), data, err)
		}
		delivery, err := r.Inbox(n)
		see("inbox "+n, delivery, err)
		s, err := r.OutboxMessage(n)
		see("outbox message "+n, s, err)
		of, err := r.OutboxMessagesOf(n)
		see("outbox messages of "+n, of, err)
		posts, err := r.Renderings(n)
		see("renderings of "+n, posts, err)
		post, err := r.Rendering(n, 1)
		see("rendering 1 of "+n, post, err)
		chain, err := r.Audit(n)
		see("chain "+n, chain, err)
		head, err := r.AuditHead(n)
		see("head of "+n, head, err)
		p, err := r.AuditPayload(n, 1)
		see("payload 1 of "+n, p, err)
		row, err := r.AuditRow(n, 1)
		see("audit row 1 of "+n, row, err)
		setting, err := r.Setting(n)
		see("setting "+n, setting, err)
		grant, err := r.Grant(n)
		see("grant "+n, grant, err)
		granted, err := r.OpenGrants(n)
		see("open grants of "+n, granted, err)
		away, err := r.Absence(approvers.PersonID(n))
		see("absence of "+n, away, err)
		chains, err := r.AuditChains(n, 2)
		see("chains after "+n, chains, err)
		for _, m := range names {
			s, err := r.OutboxMessageAt(n, m)
			see(fmt.Sprintf("outbox message at %q %q", n, m), s, err)
		}
		for _, when := range moments {
			count, err := r.CounterSum(n, at(when))
			see(fmt.Sprintf("counter of %q after %d", n, when), count, err)
		}
		for _, k := range kinds {
			timer, err := r.Timer(k, n)
			see(fmt.Sprintf("timer %s of %s", k, n), timer, err)
		}
	}
	for _, when := range moments {
		open, err := r.OpenRequests(store.RequestCursor{CreatedAt: at(when), ID: "a/"}, 2)
		see(fmt.Sprint("open requests after ", when), open, err)
		silent, err := r.ConversationsBefore(at(when), 3)
		see(fmt.Sprint("conversations before ", when), silent, err)
		recent, err := r.ConversationsSince(at(when), 3)
		see(fmt.Sprint("conversations since ", when), recent, err)
		for _, kind := range inboxKinds {
			unhandled, err := r.Unhandled(kind, at(when))
			see(fmt.Sprintf("%s unhandled at %d", kind, when), unhandled, err)
		}
		for _, k := range kinds {
			due, err := r.DueTimers(k, at(when), 3)
			see(fmt.Sprintf("timers %s due at %d", k, when), due, err)
		}
	}
	for _, k := range kinds {
		all, err := r.Timers(k, 100)
		see("timers "+string(k), all, err)
		next, err := r.NextTimer(k)
		see("next timer "+string(k), next, err)
	}
	open, err := r.OpenRequests(store.RequestCursor{}, 100)
	see("open requests", open, err)
	granted, err := r.OpenGrants("")
	see("open grants", granted, err)
	away, err := r.Absences()
	see("absences", away, err)
	for _, from := range []uint64{0, 1, 1 << 63} {
		entries, err := r.Journal(from, 100)
		see(fmt.Sprint("journal from ", from), entries, err)
		heads, err := r.Heads(from, 2)
		see(fmt.Sprint("heads after ", from), heads, err)
	}
	head, err := r.LastHead()
	see("the last head", head, err)
	policy, err := r.Policy()
	see("the policy in force", policy, err)
	content, err := r.PolicyContent()
	see("its content", content, err)
	var rows []approvers.AuditRow
	err = r.EachAuditRow(func(x approvers.AuditRow) error { rows = append(rows, x); return nil })
	see("all audit rows", rows, err)
	return out
}
