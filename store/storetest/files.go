package storetest

import (
	"bytes"
	"errors"
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

// elicitations checks that an execution's elicitations are listed in the order of their creation.
func elicitations(h *harness) {
	put := func(id, execution string, version uint64) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.PutElicitation(approvers.Elicitation{ID: id, Execution: execution, Version: version})
		}
	}
	h.write(put("z", "e", 0), put("a", "e", 0), put("m", "e/", 0))
	h.write(put("z", "e", 1)) // the elicitation was answered
	for execution, want := range map[string][]string{"e": {"z", "a"}, "e/": {"m"}, "": {}} {
		h.view(func(r store.Reader) error {
			list, err := r.Elicitations(execution)
			h.same("elicitations of "+execution, ids(list, func(q approvers.Elicitation) string { return q.ID }), want)
			return err
		})
	}
}

// files checks that each file keeps its exact bytes, and that no write replaces a file.
func files(h *harness) {
	large := bytes.Repeat([]byte{0, 0xFF, 1}, 1<<20)
	put := func(execution string, index int, data []byte) func(store.Tx) error {
		return func(tx store.Tx) error {
			return tx.PutFile(store.File{Execution: execution, Index: index, Name: fmt.Sprint("file ", index)}.Of(data), data)
		}
	}
	h.write(put("e", 2, []byte("two")), put("e", 10, nil), put("e", 0, large), put("e/", 0, []byte("another's")))
	h.refused(store.ErrConflict, put("e", 2, []byte("two")))
	for _, wrong := range []store.File{{Size: 4, Hash: store.File{}.Of([]byte("two")).Hash}, {Size: 3}, {}} {
		wrong.Execution, wrong.Index = "e", 3
		if err := h.try(func(tx store.Tx) error { return tx.PutFile(wrong, []byte("two")) }); err == nil {
			h.Errorf("a file that says %+v was written with other bytes", wrong)
		}
	}
	h.view(func(r store.Reader) error {
		list, err := r.Files("e")
		h.same("the files in order", ids(list, func(f store.File) string { return f.Name }), []string{"file 0", "file 2", "file 10"})
		data, err2 := r.FileData("e", 0)
		h.same("the large one is whole", bytes.Equal(data, large), true)
		none, err3 := r.FileData("e", 10)
		h.same("one without a byte", len(none), 0)
		return errors.Join(err, err2, err3)
	})
	h.update(func(tx store.Tx) error {
		n, err := tx.EraseFiles("e")
		h.same("how many were erased", n, 3)
		again, err2 := tx.EraseFiles("e")
		h.same("how many were left", again, 0)
		return errors.Join(err, err2)
	})
	h.view(func(r store.Reader) error {
		if _, err := r.FileData("e", 0); !errors.Is(err, store.ErrNotFound) {
			h.Errorf("an erased file: got error %v, want ErrNotFound", err)
		}
		data, err := r.FileData("e/", 0)
		h.same("the other's", string(data), "another's")
		return err
	})
	h.write(put("e", 0, []byte("anew")))
}

// policyInForce checks that a transaction writes nothing if the policy in force is not the expected policy. The content
// of the policy keeps its exact bytes. In one transaction, Policy and PolicyContent always return the same policy.
func policyInForce(h *harness) {
	large := bytes.Repeat([]byte{0, 0xFF, 1}, 1<<20)
	put := func(load string, version uint64, content []byte) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.PutPolicy(store.Policy{Load: load, Version: version}, content) }
	}
	read := func(tx store.Tx) error { _, err := tx.Turn("x"); return store.IgnoreNotFound(err) }
	write := func(tx store.Tx) error { return tx.PutTurn(approvers.Turn{ID: "mine"}) }
	under := func(load string, steps ...func(store.Tx) error) func(store.Tx) error {
		return func(tx store.Tx) error {
			if err := tx.ExpectPolicy(load); err != nil {
				return err
			}
			for _, step := range steps {
				if err := step(tx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	outdated := func(load string) {
		h.Helper()
		h.together(func() {
			for name, fn := range map[string]func(store.Tx) error{
				"reads": under(load, read), "writes": under(load, write), "reads, then writes": under(load, read, write), "writes, then reads": under(load, write, read),
			} {
				if err := h.try(fn); !errors.Is(err, store.ErrPolicyChanged) || !store.Refused(err) {
					h.Errorf("under %q, a transaction that %s: got error %v, want ErrPolicyChanged", load, name, err)
				}
			}
		})
		h.view(func(r store.Reader) error {
			if _, err := r.Turn("mine"); !errors.Is(err, store.ErrNotFound) {
				h.Errorf("under %q something was written", load)
			}
			return nil
		})
	}
	inForce := func(load string, version uint64, content []byte) {
		h.Helper()
		h.view(func(r store.Reader) error {
			p, err := r.Policy()
			h.same("the policy in force", p, store.Policy{Load: load, Version: version})
			got, err2 := r.PolicyContent()
			h.same("its content is whole", bytes.Equal(got, content), true)
			return errors.Join(err, err2)
		})
	}
	outdated("first") // no policy is in force yet
	h.write(put("first", 0, large))
	inForce("first", 1, large)
	outdated("second")
	h.update(under("first", read))
	h.write(put("second", 1, nil), put("third", 2, []byte("3")))
	inForce("third", 3, []byte("3"))
	outdated("first")
	outdated("second")
	h.refused(store.ErrConflict, put("fourth", 2, []byte("4"))) // another transaction has already changed the policy
	h.refused(errMine, func(tx store.Tx) error { return errors.Join(put("fourth", 3, []byte("4"))(tx), errMine) })
	inForce("third", 3, []byte("3"))
	h.update(under("third", read, write))
}
