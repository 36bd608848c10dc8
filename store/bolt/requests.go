package bolt

import (
	"countersign/approvers"
	"countersign/store"
	"time"
)

var requestTable = &table[approvers.Request]{
	in: requests, name: "request",
	id:      func(r *approvers.Request) (string, *uint64) { return r.ID, &r.Version },
	indexes: []bucket{requestOpen},
	index: func(r *approvers.Request, _ uint64) []row {
		if !r.State.Open() {
			return nil
		}
		return []row{{requestOpen, openKey(r.CreatedAt, r.ID)}}
	},
}

var executionTable = &table[approvers.Execution]{
	in: executions, name: "execution",
	id: func(e *approvers.Execution) (string, *uint64) { return e.ID, &e.Version },
}

func openKey(created time.Time, id string) []byte { return text(moment(nil, created), id) }

func (t reader) Request(id string) (approvers.Request, error) { return requestTable.read(t.rows, id) }

func (t reader) OpenRequests(after store.RequestCursor, limit int) ([]approvers.Request, error) {
	var from []byte
	if after.ID != "" || !after.CreatedAt.IsZero() {
		from = append(openKey(after.CreatedAt, after.ID), 0) // the next possible key
	}
	return requestTable.all(t.rows, t.rows.scan(requestOpen, nil, from), limit)
}

func (t *tx) PutRequest(r approvers.Request) error { return requestTable.write(t.rows, r) }

func (t reader) Execution(id string) (approvers.Execution, error) {
	return executionTable.read(t.rows, id)
}

func (t *tx) PutExecution(e approvers.Execution) error { return executionTable.write(t.rows, e) }

func runPrefix(tool, conversation string) []byte { return text(text(nil, tool), conversation) }

func (t reader) CountRuns(tool, conversation string, after time.Time) (int, error) {
	prefix := runPrefix(tool, conversation)
	n := 0
	for range t.rows.scan(runs, prefix, moment(prefix[:len(prefix):len(prefix)], after.Add(time.Microsecond))) {
		n++
	}
	return n, nil
}

func (t *tx) AddRun(run store.Run) error {
	if err := keyable("run's execution", run.Execution); err != nil {
		return err
	}
	key := text(moment(runPrefix(run.Tool, run.Conversation), run.At), run.Execution)
	return t.rows.set(runs, key, t.rows.get(runs, key), []byte{})
}
