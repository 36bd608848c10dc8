package storetest

import (
	"errors"
	"fmt"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

func ids[T any](list []T, id func(T) string) []string {
	out := []string{}
	for _, rec := range list {
		out = append(out, id(rec))
	}
	return out
}

func messages(h *harness) {
	put := func(conversation string, seq uint64, text string) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.PutMessage(store.Message{Conversation: conversation, Seq: seq, Text: text})
		}
	}
	h.write(put("c", 300, "late"), put("c", 2, "second"), put("d", 1, "other"), put("c", 256, "middle"), put("c", 1, "first"))
	h.write(put("c", 2, "replaced"))
	for after, want := range map[uint64][]string{
		0: {"first", "replaced", "middle", "late"}, 1: {"replaced", "middle", "late"}, 2: {"middle", "late"}, 299: {"late"}, 300: {}, 1 << 62: {}, 1<<64 - 1: {},
	} {
		h.view(func(r store.Reader) error {
			list, err := r.Messages("c", after)
			h.same(fmt.Sprintf("messages after %d", after), ids(list, func(m store.Message) string { return m.Text }), want)
			return err
		})
	}
}

// places checks that ConversationAt returns the conversation that was created last, even if another one has the same
// CreatedAt or is changed later.
func places(h *harness) {
	put := func(id, place string, version uint64, created int) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.PutConversation(store.Conversation{ID: id, Place: place, Version: version, CreatedAt: at(created)})
		}
	}
	current := func(place, want string) {
		h.Helper()
		h.view(func(r store.Reader) error {
			c, err := r.ConversationAt(place)
			h.same("the conversation at "+place, c.ID, want)
			return err
		})
	}
	h.write(put("z", "p", 0, 5))
	h.write(put("other", "p2", 0, 0))
	current("p", "z")
	h.write(put("b", "p", 0, 6))
	current("p", "b")
	h.write(put("a", "p", 0, 6)) // created in the same microsecond as the other conversation
	current("p", "a")
	h.write(put("z", "p", 1, 5)) // changing the old conversation does not make it current
	current("p", "a")
	current("p2", "other")
	h.view(func(r store.Reader) error { _, err := r.Conversation("b"); return err })
}

func calls(h *harness) {
	put := func(id, turn string, step, index int, version uint64) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.PutCall(store.Call{ID: id, Turn: turn, Step: step, Index: index, Version: version})
		}
	}
	h.write(put("d", "t", 10, 0, 0), put("a", "t", 2, 1, 0), put("b", "t", 2, 0, 0), put("c", "t", 2, 10, 0), put("e", "t2", 1, 0, 0), put("f", "t", 0, 3, 0))
	h.write(put("a", "t", 2, 1, 1))
	h.view(func(r store.Reader) error {
		list, err := r.Calls("t")
		h.same("the calls", ids(list, func(c store.Call) string { return c.ID }), []string{"f", "b", "a", "c", "d"})
		return err
	})
}

func requestsOf(h *harness) {
	put := func(id string, created int, version uint64, asker approvers.PersonID, by ...approvers.PersonID) func(store.Tx) error {
		r := approvers.Request{ID: id, State: approvers.Rejected, CreatedAt: at(created), Version: version}
		r.Facts.Requesters = []approvers.PersonID{asker}
		for _, who := range by {
			r.Decisions = append(r.Decisions, approvers.Decision{By: who})
		}
		return func(tx store.Tx) error { return tx.PutRequest(r) }
	}
	h.write(put("a", 1, 0, "T/U1"), put("b", 3, 0, "T/U1"), put("c", 3, 0, "T/U2", "T/U1", "T/U1"), put("d", 2, 0, "T/U2"), put("e", 4, 0, "T/U10"))
	h.write(put("a", 1, 1, "T/U1", "T/U2")) // a person decided the request
	list := func(what string, who approvers.PersonID, before store.RequestCursor, limit int, want ...string) {
		h.view(func(r store.Reader) error {
			got, err := r.RequestsOf(who, before, limit)
			h.same(what, ids(got, func(q approvers.Request) string { return q.ID }), append([]string{}, want...))
			return err
		})
	}
	list("all of one person", "T/U1", store.RequestCursor{}, 10, "c", "b", "a")
	list("all of another", "T/U2", store.RequestCursor{}, 10, "c", "d", "a")
	list("the newest", "T/U1", store.RequestCursor{}, 1, "c")
	list("those before it", "T/U1", store.RequestCursor{CreatedAt: at(3), ID: "c"}, 10, "b", "a")
	list("those before one that is not there", "T/U2", store.RequestCursor{CreatedAt: at(2), ID: "z"}, 10, "d", "a")
	list("of somebody who has none", "T/U", store.RequestCursor{}, 10)
}

func openRequests(h *harness) {
	put := func(id string, state approvers.State, created int, version uint64) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.PutRequest(approvers.Request{ID: id, State: state, CreatedAt: at(created), Version: version})
		}
	}
	var want []string
	h.together(func() {
		for i := range 25 {
			id := fmt.Sprintf("r%02d", i)
			want = append(want, id)
			h.write(put(id, approvers.Pending, i/4, 0)) // some requests have the same time
		}
	})
	h.write(put("a", approvers.Refused, 0, 0)) // the request was never open
	page := func(limit int) []string {
		got := []string{}
		h.view(func(r store.Reader) error {
			var cursor store.RequestCursor
			for {
				list, err := r.OpenRequests(cursor, limit)
				if err != nil || len(list) == 0 {
					return err
				}
				if len(list) > limit {
					return fmt.Errorf("%d requests, more than the limit of %d", len(list), limit)
				}
				got = append(got, ids(list, func(q approvers.Request) string { return q.ID })...)
				last := list[len(list)-1]
				cursor = store.RequestCursor{CreatedAt: last.CreatedAt, ID: last.ID}
			}
		})
		return got
	}
	for _, limit := range []int{1, 4, 7, 25, 100} {
		h.same(fmt.Sprintf("open requests in pages of %d", limit), page(limit), want)
	}
	h.write(put("r03", approvers.Approved, 0, 1)) // the request stays open
	h.write(put("r04", approvers.Rejected, 1, 1), put("r05", approvers.Approved, 1, 1), put("r05", approvers.Consumed, 1, 2))
	h.write(put("r04", approvers.Pending, 1, 2)) // the request is open again
	want = slices.DeleteFunc(want, func(id string) bool { return id == "r05" })
	h.same("open requests after some closed", page(6), want)
	h.view(func(r store.Reader) error {
		// A cursor need not name an existing request.
		list, err := r.OpenRequests(store.RequestCursor{CreatedAt: at(1), ID: "r05"}, 1)
		h.same("the next one", ids(list, func(q approvers.Request) string { return q.ID }), []string{"r06"})
		none, err2 := r.OpenRequests(store.RequestCursor{}, 0)
		h.same("none", len(none), 0)
		return errors.Join(err, err2)
	})
}
