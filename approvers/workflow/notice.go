package workflow

import (
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// notify tells one person something about a request by direct message. step says which question or edit it is about.
func (t *tx) notify(request string, who approvers.PersonID, note store.Note, step int) error {
	if !onSlack(who) {
		return nil
	}
	return t.newOutboxMessage(store.OutboxMessage{Kind: store.OutboxNotice, Ref: request, Request: request, Step: step, To: toUser + who.User(), Note: note})
}

// onSlack reports whether a person can be written to. The operator at the command line can't.
func onSlack(who approvers.PersonID) bool { return strings.Contains(string(who), "/") }
