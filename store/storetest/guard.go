package storetest

import (
	"errors"

	"countersign/approvers"
	"countersign/store"
)

// guarded lists the kinds of records with a version. For each kind, put writes a record, and read returns the record's
// version.
var guarded = map[string]struct {
	put  func(tx store.Tx, version uint64) error
	read func(r store.Reader) (uint64, error)
}{
	"conversation": {
		func(tx store.Tx, v uint64) error { return tx.PutConversation(store.Conversation{ID: "x", Version: v}) },
		func(r store.Reader) (uint64, error) { c, err := r.Conversation("x"); return c.Version, err },
	},
	"turn": {
		func(tx store.Tx, v uint64) error { return tx.PutTurn(approvers.Turn{ID: "x", Version: v}) },
		func(r store.Reader) (uint64, error) { t, err := r.Turn("x"); return t.Version, err },
	},
	"call": {
		func(tx store.Tx, v uint64) error { return tx.PutCall(store.Call{ID: "x", Version: v}) },
		func(r store.Reader) (uint64, error) { c, err := r.Call("x"); return c.Version, err },
	},
	"request": {
		func(tx store.Tx, v uint64) error { return tx.PutRequest(approvers.Request{ID: "x", Version: v}) },
		func(r store.Reader) (uint64, error) { q, err := r.Request("x"); return q.Version, err },
	},
	"execution": {
		func(tx store.Tx, v uint64) error { return tx.PutExecution(approvers.Execution{ID: "x", Version: v}) },
		func(r store.Reader) (uint64, error) { e, err := r.Execution("x"); return e.Version, err },
	},
	"elicitation": {
		func(tx store.Tx, v uint64) error {
			return tx.PutElicitation(approvers.Elicitation{ID: "x", Version: v})
		},
		func(r store.Reader) (uint64, error) { q, err := r.Elicitation("x"); return q.Version, err },
	},
	"inbox": {
		func(tx store.Tx, v uint64) error { return tx.PutInbox(store.Inbox{ID: "x", Version: v}) },
		func(r store.Reader) (uint64, error) { i, err := r.Inbox("x"); return i.Version, err },
	},
	"outbox message": {
		func(tx store.Tx, v uint64) error {
			return tx.PutOutboxMessage(store.OutboxMessage{ID: "x", Version: v})
		},
		func(r store.Reader) (uint64, error) { s, err := r.OutboxMessage("x"); return s.Version, err },
	},
	"grant": {
		func(tx store.Tx, v uint64) error { return tx.PutGrant(approvers.Grant{ID: "x", Version: v}) },
		func(r store.Reader) (uint64, error) { g, err := r.Grant("x"); return g.Version, err },
	},
	"absence": {
		func(tx store.Tx, v uint64) error { return tx.PutAbsence(approvers.Absence{Who: "x", Version: v}) },
		func(r store.Reader) (uint64, error) { a, err := r.Absence("x"); return a.Version, err },
	},
	"policy": {
		func(tx store.Tx, v uint64) error {
			return tx.PutPolicy(store.Policy{Load: "x", Version: v}, []byte("1"))
		},
		func(r store.Reader) (uint64, error) { p, err := r.Policy(); return p.Version, err },
	},
	"setting": {
		func(tx store.Tx, v uint64) error {
			return tx.PutSetting(store.Setting{Key: "x", Version: v, Value: []byte("1")})
		},
		func(r store.Reader) (uint64, error) { s, err := r.Setting("x"); return s.Version, err },
	},
}

func versions(h *harness) {
	put := func(want error, versions ...uint64) { // puts records of each kind in one transaction
		h.Helper()
		h.together(func() {
			for name, kind := range guarded {
				err := h.try(func(tx store.Tx) error {
					for _, v := range versions {
						if err := kind.put(tx, v); err != nil {
							return err
						}
					}
					return nil
				})
				if !errors.Is(err, want) {
					h.Fatalf("%s, the versions %d: got error %v, want %v", name, versions, err, want)
				}
			}
		})
	}
	stands := func(want uint64) {
		h.Helper()
		for name, kind := range guarded {
			h.view(func(r store.Reader) error {
				got, err := kind.read(r)
				h.same(name+"'s version", got, want)
				return err
			})
		}
	}
	put(store.ErrConflict, 1) // the record does not exist
	put(nil, 0)
	stands(1)
	put(store.ErrConflict, 0) // the record already exists
	put(store.ErrConflict, 2) // a version that does not exist yet
	stands(1)
	put(nil, 1)
	stands(2)
	put(store.ErrConflict, 1) // the record has a newer version
	put(nil, 2, 3)            // twice in one transaction
	stands(4)
}

// usableAfterRefusal checks that a closure may continue after a refused write.
func usableAfterRefusal(h *harness) {
	h.together(func() {
		for name, kind := range guarded {
			h.update(func(tx store.Tx) error {
				if err := kind.put(tx, 7); !errors.Is(err, store.ErrConflict) {
					h.Errorf("%s: got error %v, want ErrConflict", name, err)
				}
				if _, err := kind.read(tx); !errors.Is(err, store.ErrNotFound) {
					h.Errorf("%s: got error %v, want ErrNotFound", name, err)
				}
				return kind.put(tx, 0)
			})
			h.afterwards(func() {
				h.view(func(r store.Reader) error {
					got, err := kind.read(r)
					h.same(name+"'s version", got, uint64(1))
					return err
				})
			})
		}
	})
}
