package bolt

import (
	"time"

	"countersign/approvers"
	"countersign/store"
)

var requestTable = &table[approvers.Request]{
	in: requests, name: "request",
	id:      func(r *approvers.Request) (string, *uint64) { return r.ID, &r.Version },
	indexes: []bucket{requestOpen, requestConversation, requestPerson},
	closed:  func(r *approvers.Request) bool { return !r.State.Open() },
	index: func(r *approvers.Request, _ uint64) []row {
		rows := []row{{requestConversation, text(text(nil, r.Conversation), r.ID)}}
		if r.State.Open() {
			rows = append(rows, row{requestOpen, openKey(r.CreatedAt, r.ID)})
		}
		for _, who := range r.People() {
			rows = append(rows, row{requestPerson, personKey(who, r.CreatedAt, r.ID)})
		}
		return rows
	},
}

var executionTable = &table[approvers.Execution]{
	in: executions, name: "execution",
	id:      func(e *approvers.Execution) (string, *uint64) { return e.ID, &e.Version },
	indexes: []bucket{executionConversation},
	closed: func(e *approvers.Execution) bool {
		return e.State != approvers.ExecutionNone && e.State != approvers.ExecutionExecuting
	},
	index: func(e *approvers.Execution, _ uint64) []row {
		return []row{{executionConversation, text(text(nil, e.Conversation), e.ID)}}
	},
}

func openKey(created time.Time, id string) []byte { return text(moment(nil, created), id) }

func personKey(who approvers.PersonID, created time.Time, id string) []byte {
	return text(moment(text(nil, string(who)), created), id)
}

func (t reader) Request(id string) (approvers.Request, error) { return requestTable.read(t.rows, id) }

func (t reader) OpenRequests(after store.RequestCursor, limit int) ([]approvers.Request, error) {
	var from []byte
	if after.ID != "" || !after.CreatedAt.IsZero() {
		from = append(openKey(after.CreatedAt, after.ID), 0) // the next possible key
	}
	return requestTable.readable(t.rows, t.rows.sound(requestOpen, nil, from), limit)
}

func (t reader) RequestsOf(who approvers.PersonID, before store.RequestCursor, limit int) ([]approvers.Request, error) {
	var from []byte
	if before.ID != "" || !before.CreatedAt.IsZero() {
		from = personKey(who, before.CreatedAt, before.ID)
	}
	return requestTable.readable(t.rows, t.rows.back(requestPerson, text(nil, string(who)), from), limit)
}

func (t reader) Requests(conversation string) ([]approvers.Request, error) {
	return requestTable.all(t.rows, t.rows.scan(requestConversation, text(nil, conversation), nil), noLimit)
}

func (t *tx) PutRequest(r approvers.Request) error { return requestTable.write(t.rows, r) }

func (t reader) Execution(id string) (approvers.Execution, error) {
	return executionTable.read(t.rows, id)
}

func (t reader) Executions(conversation string) ([]approvers.Execution, error) {
	return executionTable.all(t.rows, t.rows.scan(executionConversation, text(nil, conversation), nil), noLimit)
}

func (t *tx) PutExecution(e approvers.Execution) error { return executionTable.write(t.rows, e) }
