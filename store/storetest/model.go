package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"countersign/approvers"
	"countersign/store"
)

// The model test uses few names and times, so its steps often use the same records.
var (
	names   = []string{"a", "a/", "b", "b\x01"}
	moments = []int{-7, 0, 1, 300}
	kinds   = []store.TimerKind{store.TimerRun, store.TimerShow}

	inboxKinds = []store.InboxKind{store.InboxEvent, store.InboxInteraction}
	states     = []approvers.State{approvers.Pending, approvers.Approved, approvers.Rejected}
	grants     = []approvers.GrantState{approvers.GrantOffered, approvers.GrantLive, approvers.GrantUsed}
)

// step is one operation with random arguments. run executes the operation on the backend or on the model, and returns
// the results.
type step struct {
	name string
	run  func(store.Tx) (any, error)
}

func (s step) String() string { return s.name }

// model runs random transactions on the backend and on a model in memory. The test compares the results of each step,
// and all data after each transaction. Sometimes the test closes and reopens the store.
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

// told formats the result of a call. For an error, told returns only the kind of the error.
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

// everything returns the results of all readings.
func everything(r store.Reader) (out []string) {
	for _, x := range readings() {
		v, err := x.read(r)
		out = append(out, told(x.name, v, err))
	}
	return out
}

// reading is one read of a record or a list.
type reading struct {
	name string
	read func(store.Reader) (any, error)
}

// readings returns reads of all data that the model test may have written.
func readings() (all []reading) {
	see := func(name string, read func(store.Reader) (any, error)) { all = append(all, reading{name, read}) }
	for _, n := range names {
		see("conversation "+n, func(r store.Reader) (any, error) { return r.Conversation(n) })
		see("conversation at "+n, func(r store.Reader) (any, error) { return r.ConversationAt(n) })
		for _, after := range []uint64{0, 1, 2} {
			see(fmt.Sprint("messages of ", n, after), func(r store.Reader) (any, error) { return r.Messages(n, after) })
		}
		see("turn "+n, func(r store.Reader) (any, error) { return r.Turn(n) })
		see("call "+n, func(r store.Reader) (any, error) { return r.Call(n) })
		see("calls of "+n, func(r store.Reader) (any, error) {
			calls, err := r.Calls(n)
			return len(calls), err
		})
		see("request "+n, func(r store.Reader) (any, error) { return r.Request(n) })
		see("requests of "+n, func(r store.Reader) (any, error) { return r.Requests(n) })
		see("execution "+n, func(r store.Reader) (any, error) { return r.Execution(n) })
		see("executions of "+n, func(r store.Reader) (any, error) { return r.Executions(n) })
		see("elicitation "+n, func(r store.Reader) (any, error) { return r.Elicitation(n) })
		see("elicitations of "+n, func(r store.Reader) (any, error) { return r.Elicitations(n) })
		see("files of "+n, func(r store.Reader) (any, error) { return r.Files(n) })
		for index := range 3 {
			see(fmt.Sprint("file ", index, " of ", n), func(r store.Reader) (any, error) { return r.FileData(n, index) })
		}
		see("inbox "+n, func(r store.Reader) (any, error) { return r.Inbox(n) })
		see("outbox message "+n, func(r store.Reader) (any, error) { return r.OutboxMessage(n) })
		see("outbox messages of "+n, func(r store.Reader) (any, error) { return r.OutboxMessagesOf(n) })
		see("renderings of "+n, func(r store.Reader) (any, error) { return r.Renderings(n) })
		see("rendering 1 of "+n, func(r store.Reader) (any, error) { return r.Rendering(n, 1) })
		see("chain "+n, func(r store.Reader) (any, error) { return r.Audit(n) })
		see("head of "+n, func(r store.Reader) (any, error) { return r.AuditHead(n) })
		see("payload 1 of "+n, func(r store.Reader) (any, error) { return r.AuditPayload(n, 1) })
		see("audit row 1 of "+n, func(r store.Reader) (any, error) { return r.AuditRow(n, 1) })
		see("setting "+n, func(r store.Reader) (any, error) { return r.Setting(n) })
		see("grant "+n, func(r store.Reader) (any, error) { return r.Grant(n) })
		see("open grants of "+n, func(r store.Reader) (any, error) { return r.OpenGrants(n) })
		see("absence of "+n, func(r store.Reader) (any, error) { return r.Absence(approvers.PersonID(n)) })
		see("closed grants after "+n, func(r store.Reader) (any, error) { return r.ClosedGrants(n, 2) })
		see("outbox refs after "+n, func(r store.Reader) (any, error) { return r.OutboxRefs(n, 2) })
		see("chains after "+n, func(r store.Reader) (any, error) { return r.AuditChains(n, 2) })
		for _, m := range names {
			see(fmt.Sprintf("outbox message at %q %q", n, m), func(r store.Reader) (any, error) { return r.OutboxMessageAt(n, m) })
		}
		for _, when := range moments {
			see(fmt.Sprintf("counter of %q after %d", n, when), func(r store.Reader) (any, error) { return r.CounterSum(n, at(when)) })
		}
		for _, k := range kinds {
			see(fmt.Sprintf("timer %s of %s", k, n), func(r store.Reader) (any, error) { return r.Timer(k, n) })
		}
	}
	for _, when := range moments {
		see(fmt.Sprint("open requests after ", when), func(r store.Reader) (any, error) {
			return r.OpenRequests(store.RequestCursor{CreatedAt: at(when), ID: "a/"}, 2)
		})
		see(fmt.Sprint("conversations before ", when), func(r store.Reader) (any, error) { return r.ConversationsBefore(at(when), 3) })
		see(fmt.Sprint("conversations since ", when), func(r store.Reader) (any, error) { return r.ConversationsSince(at(when), 3) })
		see(fmt.Sprint("kinds due at ", when), func(r store.Reader) (any, error) {
			due, err := r.DueKinds(store.AllShares, kinds, at(when))
			slices.Sort(due)
			return due, err
		})
		for _, kind := range inboxKinds {
			see(fmt.Sprintf("%s unhandled at %d", kind, when), func(r store.Reader) (any, error) { return r.Unhandled(kind, at(when)) })
		}
		for _, k := range kinds {
			see(fmt.Sprintf("timers %s due at %d", k, when), func(r store.Reader) (any, error) { return r.TimersIn(store.AllShares, k, at(when), 3) })
		}
	}
	for _, k := range kinds {
		see("timers "+string(k), func(r store.Reader) (any, error) { return r.Timers(k, 100) })
	}
	see("open requests", func(r store.Reader) (any, error) { return r.OpenRequests(store.RequestCursor{}, 100) })
	see("open grants", func(r store.Reader) (any, error) { return r.OpenGrants("") })
	see("absences", func(r store.Reader) (any, error) { return r.Absences() })
	for _, from := range []uint64{0, 1, 1 << 63} {
		see(fmt.Sprint("journal from ", from), func(r store.Reader) (any, error) { return r.Journal(from, 100) })
		see(fmt.Sprint("heads after ", from), func(r store.Reader) (any, error) { return r.Heads(from, 2) })
	}
	see("the last head", func(r store.Reader) (any, error) { return r.LastHead() })
	see("the policy in force", func(r store.Reader) (any, error) { return r.Policy() })
	see("its content", func(r store.Reader) (any, error) { return r.PolicyContent() })
	see("all audit rows", func(r store.Reader) (any, error) {
		var rows []approvers.AuditRow
		err := r.EachAuditRow(func(x approvers.AuditRow) error { rows = append(rows, x); return nil })
		return rows, err
	})
	return all
}
