package store

import (
	"context"
	"time"

	"countersign/approvers"
)

// Store is a backend.
type Store interface {
	// Update runs the closure in a transaction, and commits the transaction. See the package documentation.
	Update(ctx context.Context, fn func(Tx) error) error
	// View runs the closure over one consistent snapshot.
	View(ctx context.Context, fn func(Reader) error) error
	// Check verifies the backend's consistency and every audit chain. Check reads all rows, so only tests and operators
	// use it.
	Check(ctx context.Context) error
	// Close waits for running transactions and releases the store.
	Close() error
}

// Reader has the read methods of a transaction. If a single record does not exist, the read fails with ErrNotFound. A
// list without records is empty, and is not an error.
type Reader interface {
	Conversation(id string) (Conversation, error)
	// ConversationAt returns the newest conversation at a place (see the function Place).
	ConversationAt(place string) (Conversation, error)
	// ConversationsBefore lists conversations whose last message is before the time. The conversation with the oldest
	// last message comes first.
	ConversationsBefore(lastAt time.Time, limit int) ([]Conversation, error)
	// ConversationsSince lists conversations whose last message is at the time or later. The conversation with the
	// oldest last message comes first.
	ConversationsSince(lastAt time.Time, limit int) ([]Conversation, error)
	// Messages lists a conversation's messages by Seq, starting after the given Seq.
	Messages(conversation string, after uint64) ([]Message, error)

	Turn(id string) (approvers.Turn, error)
	Call(id string) (Call, error)
	// Calls lists a turn's calls by Step and Index.
	Calls(turn string) ([]Call, error)

	Request(id string) (approvers.Request, error)
	// OpenRequests lists pending and approved requests, oldest first. The list starts after the cursor. With a zero
	// cursor, the list starts at the oldest request.
	OpenRequests(after RequestCursor, limit int) ([]approvers.Request, error)
	// RequestsOf lists the requests that a person made, decided or closed, newest first. The list has only requests
	// that are older than the cursor. With a zero cursor, the list starts at the newest request.
	RequestsOf(who approvers.PersonID, before RequestCursor, limit int) ([]approvers.Request, error)
	// Requests lists a conversation's requests in the order of their ids.
	Requests(conversation string) ([]approvers.Request, error)
	Execution(id string) (approvers.Execution, error)
	// Executions lists a conversation's executions in the order of their ids, including executions that an edit
	// replaced.
	Executions(conversation string) ([]approvers.Execution, error)
	// Elicitation reads a question that a run asked the requester.
	Elicitation(id string) (approvers.Elicitation, error)
	// Elicitations lists the questions that an execution's runs asked, oldest first.
	Elicitations(execution string) ([]approvers.Elicitation, error)
	// Files lists the files of an execution in the order of Index, without their bytes.
	Files(execution string) ([]File, error)
	// FileData returns the bytes of a file. The caller may keep these bytes.
	FileData(execution string, index int) ([]byte, error)
	// CounterSum returns the sum of a key's counters with a time after the given time.
	CounterSum(key string, after time.Time) (int, error)

	// Grant reads a grant in any state.
	Grant(id string) (approvers.Grant, error)
	// OpenGrants lists a tool's grants that are offered or in force, oldest first. If tool is empty, OpenGrants lists
	// the grants of all tools.
	OpenGrants(tool string) ([]approvers.Grant, error)
	// ClosedGrants lists grants that have ended, in the order of their ids, after the given id.
	ClosedGrants(after string, limit int) ([]approvers.Grant, error)

	// Absence reads a person's absence. A past absence stays stored until the person's next absence replaces it, or
	// EraseAbsence deletes it.
	Absence(who approvers.PersonID) (approvers.Absence, error)
	// Absences lists all stored absences in the order of the persons' ids.
	Absences() ([]approvers.Absence, error)

	Timer(kind TimerKind, ref string) (Timer, error)
	// Timers lists up to limit timers of a kind, due or not, in order of Due, then Ref.
	Timers(kind TimerKind, limit int) ([]Timer, error)
	// TimersIn is like Timers, but lists only the timers of the given shares. If until is not zero, TimersIn lists only
	// timers that are due at until or earlier.
	TimersIn(shares Shares, kind TimerKind, until time.Time, limit int) ([]Timer, error)
	// DueKinds returns those of the given kinds that have a timer in the given shares that is due at until or earlier.
	DueKinds(shares Shares, kinds []TimerKind, until time.Time) ([]TimerKind, error)

	Inbox(id string) (Inbox, error)
	// Unhandled reports whether a kind has an unhandled inbox row that was received at or before the time.
	Unhandled(kind InboxKind, received time.Time) (bool, error)

	OutboxMessage(id string) (OutboxMessage, error)
	// OutboxMessagesOf lists the outbox messages with a Ref, in order of creation.
	OutboxMessagesOf(ref string) ([]OutboxMessage, error)
	// OutboxRefs lists the Refs of outbox messages in ascending order, after the given Ref. Each Ref is listed once.
	OutboxRefs(after string, limit int) ([]string, error)
	// OutboxMessageAt finds the outbox message of a Slack message.
	OutboxMessageAt(channel, ts string) (OutboxMessage, error)
	Rendering(message string, post uint64) (Rendering, error)
	// Renderings lists the posted versions of an outbox message by Post.
	Renderings(message string) ([]Rendering, error)

	// Audit lists a chain's records by Seq. Audit skips damaged records. If there are damaged records, Audit also
	// returns an error that joins a *DamagedError for each damaged record.
	Audit(chain string) ([]approvers.AuditRecord, error)
	// AuditHead returns a chain's last record, or ErrNotFound if the chain does not exist.
	AuditHead(chain string) (approvers.AuditRecord, error)
	// AuditChains lists the ids of chains in ascending order, after the given id.
	AuditChains(after string, limit int) ([]string, error)
	AuditPayload(chain string, seq uint64) (approvers.AuditPayload, error)
	// AuditRow returns a record as stored, without its payload. AuditRow returns a damaged record without an error.
	AuditRow(chain string, seq uint64) (approvers.AuditRow, error)
	// EachAuditRow calls fn with each record as stored, in order of chain and seq, until fn returns an error. fn also gets
	// unreadable rows, so that verification finds tampering. The bytes passed to fn are valid until the transaction ends.
	EachAuditRow(fn func(approvers.AuditRow) error) error
	// Journal lists the entries of the journal, starting at the entry whose number (leaf) is from. The journal has one
	// entry for each record that was ever appended. The entries are in the order of the commits. Entries of one
	// transaction are in the order of the appends. With several writers, a backend may reorder entries that no head
	// covers yet.
	Journal(from uint64, limit int) ([]approvers.JournalEntry, error)
	// LastHead returns the newest head. If there is no head, the error is ErrNotFound.
	LastHead() (Head, error)
	// Heads lists heads by Number, starting after the given Number.
	Heads(after uint64, limit int) ([]Head, error)

	Setting(key string) (Setting, error)

	// Policy returns the Policy in force. Policy is cheap, because it does not read the content of the policy.
	Policy() (Policy, error)
	// PolicyContent returns the content that was passed to the last PutPolicy. The caller may keep the slice.
	PolicyContent() ([]byte, error)
}

// RequestCursor is a position in the order of OpenRequests and RequestsOf.
type RequestCursor struct {
	CreatedAt time.Time
	ID        string
}

// TurnRecords names the records of a turn that EraseTurn deletes, and that no index lists by the turn. A record that
// does not exist is skipped, so an interrupted erasure can be repeated.
type TurnRecords struct {
	ID         string
	Messages   []uint64 // the Seqs of messages of the turn's conversation; the first is a message of the turn
	Requests   []string
	Executions []string
}

// FirstMessage returns the Seq of the first message, which is deleted together with the turn, and the other Seqs.
func (r TurnRecords) FirstMessage() (first, others []uint64) {
	n := min(1, len(r.Messages))
	return r.Messages[:n], r.Messages[n:]
}

// Tx is a transaction.
type Tx interface {
	Reader

	PutConversation(Conversation) error
	// EraseConversation deletes up to limit records of a conversation. The records are messages, turns, calls,
	// requests, executions with elicitations and files, outbox messages with renderings, and timers. The conversation
	// itself is the last record that is deleted. done reports whether everything is deleted. If the conversation does
	// not exist, done is true. The audit records of the conversation are not deleted. If the conversation has a current
	// turn, the error is ErrConflict.
	EraseConversation(id string, limit int) (done bool, err error)
	// EraseTurn deletes up to limit records of a turn: the given records, the turn's calls, the elicitations and files of
	// the given executions, the outbox messages of all these records with renderings, and timers. The turn itself and the
	// first given message are deleted last and together, and count as one record. So a turn that exists can be found
	// through this message. done reports whether everything is deleted. If the turn does not exist, done is true. The
	// audit records are not deleted. If the turn is the current turn of its conversation, the error is ErrConflict.
	EraseTurn(turn TurnRecords, limit int) (done bool, err error)
	// PutMessage writes a message under its Seq. PutMessage replaces an existing message with this Seq.
	PutMessage(Message) error

	PutTurn(approvers.Turn) error
	PutCall(Call) error
	PutRequest(approvers.Request) error
	PutExecution(approvers.Execution) error
	PutElicitation(approvers.Elicitation) error
	// PutFile writes a file with its bytes. If the file already exists, the error is ErrConflict. PutFile refuses a
	// file whose Size or Hash does not match the bytes.
	PutFile(f File, data []byte) error
	// EraseFiles deletes an execution's files with their bytes, and returns the number of deleted files.
	EraseFiles(execution string) (int, error)
	AddCounter(Counter) error
	// PruneCounters deletes up to limit counters from before the given time, and returns the number of deleted
	// counters.
	PruneCounters(before time.Time, limit int) (int, error)
	PutGrant(approvers.Grant) error
	// EraseGrant deletes a grant. If the grant does not exist, EraseGrant does nothing. The messages about the grant,
	// its timer and its audit records are not deleted.
	EraseGrant(id string) error
	PutAbsence(approvers.Absence) error
	// EraseAbsence deletes a person's absence. If the absence does not exist, EraseAbsence does nothing. The messages
	// about the absence, its timer and its audit records are not deleted.
	EraseAbsence(who approvers.PersonID) error

	SetTimer(Timer) error
	// ClearTimer removes a timer. If the timer does not exist, ClearTimer does nothing.
	ClearTimer(kind TimerKind, ref string) error

	PutInbox(Inbox) error
	// ForgetInbox deletes up to limit rows that were handled before the time, and returns the number of deleted rows.
	ForgetInbox(handledBefore time.Time, limit int) (int, error)

	PutOutboxMessage(OutboxMessage) error
	// EraseOutboxMessage deletes an outbox message, its renderings and its timers, if they exist.
	EraseOutboxMessage(id string) error
	// PutRendering writes a posted version of an outbox message. If the version already exists, the error is
	// ErrConflict.
	PutRendering(Rendering) error
	// EraseRenderings deletes old renderings of an outbox message: the renderings whose Post is less than below. If
	// below is 0, EraseRenderings deletes all renderings of the message. EraseRenderings returns the number of deleted
	// renderings.
	EraseRenderings(message string, below uint64) (int, error)

	// AppendAudit appends a record to its chain, and writes the record's payload. If the payload is nil, the record has
	// no payload. If the record is not linked to the chain's last record, the error is ErrConflict.
	AppendAudit(approvers.AuditRecord, *approvers.AuditPayload) error
	// ErasePayloads deletes payloads of a chain, and returns the Seqs of the deleted payloads. With Seqs, ErasePayloads
	// deletes only the payloads of these records. Without Seqs, ErasePayloads deletes all payloads of the chain. The
	// records and their hashes stay. The caller records the erasure in the audit: see approvers.Erasure.
	ErasePayloads(chain string, only ...uint64) (seqs []uint64, err error)
	// PruneChain deletes a chain's records and payloads, and returns the number of records. The journal entries of the
	// records stay. The caller records the pruning in the audit: see approvers.Pruning.
	PruneChain(chain string) (records int, err error)
	// PutHead writes the next head, which covers the first Size entries of the journal. If the head does not follow the
	// last head, the error is ErrConflict. PutHead refuses a head that covers more entries than exist. If the head with
	// this number is damaged, PutHead replaces it.
	PutHead(Head) error

	PutSetting(Setting) error

	// PutPolicy puts a policy into force, and stores the policy's content.
	PutPolicy(p Policy, content []byte) error
	// ExpectPolicy states which policy must be in force when the transaction begins. If no policy is in force, or the
	// policy in force has another Load, the transaction fails with ErrPolicyChanged. This error comes from ExpectPolicy,
	// from a later read, or from Update: the check does not need a round trip of its own to the database. A transaction
	// must not call both ExpectPolicy and PutPolicy.
	ExpectPolicy(load string) error
}
