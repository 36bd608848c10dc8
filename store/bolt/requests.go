package bolt

import (
	"time"

	"countersign/approvers"
	"countersign/store"
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
