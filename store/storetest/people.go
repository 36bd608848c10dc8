package storetest

import (
	"errors"
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

func openGrants(h *harness) {
	put := func(id, tool string, state approvers.GrantState, version uint64, when int) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.PutGrant(approvers.Grant{ID: id, Tool: tool, State: state, Version: version, At: at(when)})
		}
	}
	open := func(tool string, want ...string) {
		h.Helper()
		h.view(func(r store.Reader) error {
			list, err := r.OpenGrants(tool)
			h.same(fmt.Sprintf("the open grants of %q", tool), ids(list, func(g approvers.Grant) string { return g.ID }), append([]string{}, want...))
			return err
		})
	}
	open("")
	// Lists are in the order of creation, even for records of one transaction. Ids and times do not affect the order.
	h.write(put("z", "t", approvers.GrantLive, 0, 9), put("m", "u", approvers.GrantOffered, 0, 5), put("b", "t", approvers.GrantOffered, 0, 9))
	h.write(put("never", "t", approvers.GrantDeclined, 0, 0), put("a", "t", approvers.GrantLive, 0, 1), put("bare", "", approvers.GrantLive, 0, 0))
	open("t", "z", "b", "a")
	open("u", "m")
	open("", "z", "m", "b", "a", "bare")
	open("t/")
	h.write(put("z", "t", approvers.GrantLive, 1, 9), put("b", "t", approvers.GrantLive, 1, 20)) // one grant is used, the other accepted
	open("t", "z", "b", "a")
	// A grant can end in several ways. In each case, the grant is accepted in the transaction that ends it.
	for i, state := range []approvers.GrantState{approvers.GrantUsed, approvers.GrantExpired, approvers.GrantRevoked, approvers.GrantDeclined} {
		id := fmt.Sprint("ends", i)
		h.write(put(id, "t", approvers.GrantOffered, 0, 0))
		open("t", "z", "b", "a", id)
		h.write(put(id, "t", approvers.GrantLive, 1, 0), put(id, "t", state, 2, 0))
		open("t", "z", "b", "a")
		h.view(func(r store.Reader) error {
			g, err := r.Grant(id)
			h.same("a grant that is over", g.State, state)
			return err
		})
	}
	h.write(put("z", "t", approvers.GrantUsed, 2, 9))
	open("t", "b", "a")
	open("", "m", "b", "a", "bare")
	h.write(put("m", "t", approvers.GrantOffered, 1, 5), put("bare", "t", approvers.GrantLive, 1, 0)) // the grant now belongs to another tool
	open("u")
	open("t", "m", "b", "a", "bare")
	open("", "m", "b", "a", "bare")
	h.refused(errMine, func(tx store.Tx) error { return errors.Join(put("b", "t", approvers.GrantRevoked, 2, 0)(tx), errMine) })
	open("t", "m", "b", "a", "bare")
}

// grantsErased checks ClosedGrants and EraseGrant.
func grantsErased(h *harness) {
	put := func(id string, state approvers.GrantState, version uint64) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.PutGrant(approvers.Grant{ID: id, Tool: "t", State: state, Version: version})
		}
	}
	closed := func(after string, limit int, want ...string) {
		h.Helper()
		h.view(func(r store.Reader) error {
			list, err := r.ClosedGrants(after, limit)
			h.same(fmt.Sprintf("%d closed grants after %q", limit, after), ids(list, func(g approvers.Grant) string { return g.ID }), append([]string{}, want...))
			return err
		})
	}
	erase := func(id string) func(store.Tx) error { return func(tx store.Tx) error { return tx.EraseGrant(id) } }
	closed("", 10)
	h.write(put("c", approvers.GrantUsed, 0), put("b", approvers.GrantLive, 0), put("a", approvers.GrantDeclined, 0), put("d", approvers.GrantOffered, 0))
	closed("", 10, "a", "c")
	closed("a", 10, "c")
	closed("b", 10, "c")
	closed("c", 10)
	closed("", 1, "a")
	closed("", 0)
	h.write(put("d", approvers.GrantExpired, 1))
	closed("", 10, "a", "c", "d")
	h.refused(errMine, func(tx store.Tx) error { return errors.Join(erase("c")(tx), errMine) })
	closed("", 10, "a", "c", "d")
	h.write(erase("c"), erase("b"), erase("nobody's"))
	closed("", 10, "a", "d")
	h.view(func(r store.Reader) error {
		open, err := r.OpenGrants("")
		h.same("the open grants", len(open), 0)
		if _, err := r.Grant("c"); !errors.Is(err, store.ErrNotFound) {
			h.Errorf("an erased grant: got error %v, want ErrNotFound", err)
		}
		return err
	})
	h.write(put("c", approvers.GrantLive, 0)) // a new grant may have the id again
}

func absences(h *harness) {
	put := func(who approvers.PersonID, version uint64, name string) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.PutAbsence(approvers.Absence{Who: who, Version: version, Name: name, From: at(1), Until: at(2)})
		}
	}
	all := func(want ...string) {
		h.Helper()
		h.view(func(r store.Reader) error {
			list, err := r.Absences()
			h.same("all absences", ids(list, func(a approvers.Absence) string { return string(a.Who) + " " + a.Name }), append([]string{}, want...))
			return err
		})
	}
	all()
	h.write(put("T2/U1", 0, "first"), put("T1/U2", 0, "second"), put("T1/U10", 0, "third"))
	all("T1/U10 third", "T1/U2 second", "T2/U1 first")
	h.write(put("T1/U2", 1, "back, and away again"))
	all("T1/U10 third", "T1/U2 back, and away again", "T2/U1 first")
	h.refused(store.ErrConflict, put("T1/U2", 1, "stale"))
	h.refused(store.ErrConflict, put("T1/U2", 0, "stale"))
	all("T1/U10 third", "T1/U2 back, and away again", "T2/U1 first")
	h.view(func(r store.Reader) error {
		got, err := r.Absence("T1/U2")
		h.same("one of them", got, approvers.Absence{Who: "T1/U2", Version: 2, Name: "back, and away again", From: at(1), Until: at(2)})
		if _, err := r.Absence("T1/U"); !errors.Is(err, store.ErrNotFound) {
			h.Errorf("nobody's absence: got error %v, want ErrNotFound", err)
		}
		return err
	})
	h.write(func(tx store.Tx) error { return errors.Join(tx.EraseAbsence("T1/U2"), tx.EraseAbsence("T1/U")) })
	all("T1/U10 third", "T2/U1 first")
	h.write(put("T1/U2", 0, "away again"))
	all("T1/U10 third", "T1/U2 away again", "T2/U1 first")
}
