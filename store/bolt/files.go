package bolt

import (
	"bytes"
	"fmt"

	"countersign/approvers"
	"countersign/store"
)

var elicitationTable = &table[approvers.Elicitation]{
	in: elicitations, name: "elicitation",
	id:      func(q *approvers.Elicitation) (string, *uint64) { return q.ID, &q.Version },
	indexes: []bucket{elicitationExecution},
	closed:  func(q *approvers.Elicitation) bool { return q.State != approvers.ElicitationOpen },
	index: func(q *approvers.Elicitation, birth uint64) []row {
		return []row{{elicitationExecution, number(text(nil, q.Execution), birth)}}
	},
}

func (t reader) Elicitation(id string) (approvers.Elicitation, error) {
	return elicitationTable.read(t.rows, id)
}

func (t reader) Elicitations(execution string) ([]approvers.Elicitation, error) {
	return elicitationTable.all(t.rows, t.rows.scan(elicitationExecution, text(nil, execution), nil), noLimit)
}

func (t *tx) PutElicitation(q approvers.Elicitation) error {
	return elicitationTable.write(t.rows, q)
}

func fileKey(execution string, index int) []byte { return signed(text(nil, execution), int64(index)) }

func (t reader) Files(execution string) ([]store.File, error) {
	return list[store.File](t.rows.scan(files, text(nil, execution), nil))
}

func (t reader) FileData(execution string, index int) ([]byte, error) {
	key := fileKey(execution, index)
	if t.rows.get(files, key) == nil {
		return nil, fmt.Errorf("file %d of execution %q: %w", index, execution, store.ErrNotFound)
	}
	return bytes.Clone(t.rows.get(fileData, key)), nil
}

func (t *tx) PutFile(f store.File, data []byte) error {
	if err := keyable("file's execution", f.Execution); err != nil {
		return err
	}
	if err := f.Holds(data); err != nil {
		return err
	}
	key := fileKey(f.Execution, f.Index)
	if t.rows.get(files, key) != nil {
		return fmt.Errorf("file %d of execution %q already exists: %w", f.Index, f.Execution, store.ErrConflict)
	}
	if err := t.rows.set(fileData, key, nil, data); err != nil {
		return err
	}
	return put(t.rows, files, key, &f)
}

func (t *tx) EraseFiles(execution string) (int, error) {
	n := 0
	for _, in := range []bucket{fileData, files} {
		keys := t.rows.keys(in, text(nil, execution), noLimit)
		if err := t.rows.discardAll(in, keys); err != nil {
			return 0, err
		}
		n = len(keys)
	}
	return n, nil
}

// files verifies that each row of files has its bytes in file_data, and that file_data has no other rows.
func (c *checker) files() {
	checkRecords(c, files, func(f *store.File) []byte {
		key := fileKey(f.Execution, f.Index)
		data := c.get(fileData, key)
		if data == nil {
			c.fault("%s: the bytes of row %x are missing", fileData, key)
		} else if err := f.Holds(data); err != nil {
			c.fault("%s: row %x: %v", fileData, key, err)
		}
		return key
	})
	for k := range c.rows.sound(fileData, nil, nil) {
		if c.get(files, k) == nil {
			c.fault("%s: row %x belongs to no file", fileData, k)
		}
	}
}
