package workflow

import (
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// notify sends one person a direct message about a request. step says which question or edit it is about.
func (t outboxTx) notify(request string, who approvers.PersonID, note store.Note, step int) error {
	if !onSlack(who) {
		return nil
	}
	return t.add(store.OutboxMessage{Kind: store.OutboxNotice, Ref: request, Request: request, Step: step, To: store.ToUser + who.User(), Note: note})
}

// onSlack reports whether a person can get messages. The operator at the command line can't.
func onSlack(who approvers.PersonID) bool { return strings.Contains(string(who), "/") }
