package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"countersign/store"
	"countersign/store/record"
)

func (t reader) Files(execution string) ([]store.File, error) {
	return fileTable.all(t.run, execution, "WHERE execution = $1 ORDER BY index", text(execution))
}

func (t reader) FileData(execution string, index int) (data []byte, err error) {
	const where = "WHERE execution = $1 AND index = $2"
	list, err := fileTable.all(t.run, execution, where, text(execution), int64(index))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("file %d of execution %q: %w", index, execution, store.ErrNotFound)
	}
	err = t.run.query(onRows(fileTable.in, execution), row("SELECT data FROM files "+where, []any{text(execution), int64(index)}, func(found pgx.Row) error {
		return found.Scan(&data)
	}))
	if err != nil {
		return nil, err
	}
	if wrong := list[0].Holds(data); wrong != nil {
		damaged := &store.DamagedError{Damage: store.Damage{Bucket: fileTable.in, Key: fmt.Sprintf("%s %d", execution, index), Why: wrong.Error()}}
		_ = t.run.note(damaged)
		return nil, damaged
	}
	return data, nil
}

func (t *tx) PutFile(f store.File, data []byte) error {
	if err := keyable("file's execution", f.Execution); err != nil {
		return err
	}
	if err := f.Holds(data); err != nil {
		return err
	}
	js, err := record.Append(nil, &f)
	if err != nil {
		return err
	}
	k := key{"files", f.Execution, int64(f.Index)}
	there, err := t.run.exists(k, "SELECT 1 FROM files WHERE execution = $1 AND index = $2", text(f.Execution), int64(f.Index))
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("file %d of execution %q already exists: %w", f.Index, f.Execution, store.ErrConflict)
	}
	if data == nil {
		data = []byte{}
	}
	t.run.known[k] = known{value: true}
	t.run.always(k, "INSERT INTO files (execution, index, record, checksum, data) VALUES ($1, $2, $3, $4, $5)",
		text(f.Execution), int64(f.Index), js, rowSum("files", numbered(text(f.Execution), int64(f.Index)), js), data)
	return nil
}

func (t *tx) EraseFiles(execution string) (int, error) {
	return t.run.exec("DELETE FROM files WHERE execution = $1", text(execution))
}
