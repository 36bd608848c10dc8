package storetest

import (
	"cmp"
	"errors"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

func (m *memory) Elicitation(id string) (approvers.Elicitation, error) {
	return find(m.elicitations, id)
}

func (m *memory) Elicitations(execution string) ([]approvers.Elicitation, error) {
	var out []approvers.Elicitation
	for _, id := range m.asked {
		if q := m.elicitations[id]; q.Execution == execution {
			out = append(out, q)
		}
	}
	return out, nil
}

func (m *memory) PutElicitation(q approvers.Elicitation) error {
	created := q.Version == 0
	err := guard(m.elicitations, q.ID, &q.Version, func(q approvers.Elicitation) uint64 { return q.Version })
	if err != nil {
		return err
	}
	if created {
		m.asked = append(m.asked, q.ID)
	}
	m.elicitations[q.ID] = q
	return nil
}

// eraseAsked deletes the elicitations of an execution, and their outbox messages.
func (m *memory) eraseAsked(execution string) {
	for id, q := range m.elicitations {
		if q.Execution == execution {
			m.eraseOutboxMessages(id)
			delete(m.elicitations, id)
			m.asked = slices.DeleteFunc(m.asked, func(a string) bool { return a == id })
		}
	}
}

func (m *memory) Files(execution string) ([]store.File, error) {
	return sorted(m.files, func(f store.File) bool { return f.Execution == execution },
		func(a, b store.File) int { return cmp.Compare(a.Index, b.Index) }, noLimit), nil
}

func (m *memory) FileData(execution string, index int) ([]byte, error) {
	return find(m.fileData, fileKey{execution, index})
}

func (m *memory) PutFile(f store.File, data []byte) error {
	if f.Execution == "" || f.Holds(data) != nil {
		return errors.New("refused")
	}
	k := fileKey{f.Execution, f.Index}
	if _, there := m.files[k]; there {
		return store.ErrConflict
	}
	m.files[k], m.fileData[k] = f, data
	return nil
}

func (m *memory) EraseFiles(execution string) (int, error) {
	n := 0
	for k := range m.files {
		if k.execution == execution {
			delete(m.files, k)
			delete(m.fileData, k)
			n++
		}
	}
	return n, nil
}
