package store

import (
	"context"
	"time"

	"countersign/approvers"
)

// Store is a backend.
type Store interface {
	// Update runs the closure in a transaction and commits it. See the package documentation.
	Update(ctx context.Context, fn func(Tx) error) error
	// View runs the closure over one consistent snapshot.
	View(ctx context.Context, fn func(Reader) error) error
	// Check verifies the backend's consistency and every audit chain. Check reads all rows, so only tests and operators
	// use it.
	Check(ctx context.Context) error
	// Close waits for running transactions and releases the store.
	Close() error
}

// Reader is the read half of a transaction. If a single record does not exist, the read fails with ErrNotFound. A list
// without records is empty.
type Reader interface {
	Conversation(id string) (Conversation, error)
	// ConversationAt returns the newest conversation at a place.
	ConversationAt(place string) (Conversation, error)
	// ConversationsBefore lists conversations whose last message is older than the time, in the order of the last
	// messages, the oldest first.
	ConversationsBefore(lastAt time.Time, limit int) ([]Conversation, error)
	// ConversationsSince lists conversations whose last message is from the time or from later. The order is the order
	// of the last messages, the oldest first.
	ConversationsSince(lastAt time.Time, limit int) ([]Conversation, error)
	// Messages lists a conversation's messages by Seq, starting after the given Seq.
	Messages(conversation string, after uint64) ([]Message, error)

	Turn(id string) (approvers.Turn, error)
	Call(id string) (Call, error)
	// Calls lists a turn's calls by Step and Index.
	Calls(turn string) ([]Call, error)

	Request(id string) (approvers.Request, error)
	// OpenRequests lists pending and approved requests, oldest first, after the cursor (zero value: from the start).
	OpenRequests(after RequestCursor, limit int) ([]approvers.Request, error)
	// RequestsOf lists the requests that a person made, decided or closed, newest first, before the cursor (zero
	// value: from the newest).
	RequestsOf(who approvers.PersonID, before RequestCursor, limit int) ([]approvers.Request, error)
	// Requests lists a conversation's requests, by id.
	Requests(conversation string) ([]approvers.Request, error)
	Execution(id string) (approvers.Execution, error)
	// Executions lists a conversation's executions by id, including those that an edit replaced.
	Executions(conversation string) ([]approvers.Execution, error)
	// Elicitation reads a question that a run asked the requester.
	Elicitation(id string) (approvers.Elicitation, error)
	// Elicitations lists the questions that an execution's runs asked, oldest first.
	Elicitations(execution string) ([]approvers.Elicitation, error)
	// Files lists the files of an execution by Index, without their bytes.
	Files(execution string) ([]File, error)
	// FileData returns the bytes of a file. The caller may keep these bytes.
	FileData(execution string, index int) ([]byte, error)
	// CounterSum returns the sum of the counters of a key after a time.
	CounterSum(key string, after time.Time) (int, error)

	// Grant reads a grant in any state.
	Grant(id string) (approvers.Grant, error)
	// OpenGrants lists a tool's grants that are offered or in force, oldest first. If tool is empty, OpenGrants lists
	// the grants of all tools.
	OpenGrants(tool string) ([]approvers.Grant, error)

	// Absence reads a person's absence. A past absence stays until the next absence replaces it.
	Absence(who approvers.PersonID) (approvers.Absence, error)
	// Absences lists all stored absences, by person.
	Absences() ([]approvers.Absence, error)

	Timer(kind TimerKind, ref string) (Timer, error)
	// DueTimers lists the due timers of a kind in order of Due, then Ref.
	DueTimers(kind TimerKind, now time.Time, limit int) ([]Timer, error)
	// NextTimer returns the next timer of a kind, due or not.
	NextTimer(kind TimerKind) (Timer, error)
	// Timers lists up to limit timers of a kind, due or not. Their order is Due, then Ref.
	Timers(kind TimerKind, limit int) ([]Timer, error)
	// TimersIn is like Timers, but lists only the timers of the given shares. If until is not zero, TimersIn lists only
	// the timers that are due by then.
	TimersIn(shares Shares, kind TimerKind, until time.Time, limit int) ([]Timer, error)

	Inbox(id string) (Inbox, error)
	// Unhandled reports whether a kind has an unhandled inbox row that was received at or before the time.
	Unhandled(kind InboxKind, received time.Time) (bool, error)

	OutboxMessage(id string) (OutboxMessage, error)
	// OutboxMessagesOf lists the outbox messages with a Ref, in order of creation.
	OutboxMessagesOf(ref string) ([]OutboxMessage, error)
	// OutboxMessageAt finds the outbox message of a Slack message.
	OutboxMessageAt(channel, ts string) (OutboxMessage, error)
	Rendering(message string, post uint64) (Rendering, error)
	// Renderings lists the posted versions of an outbox message by Post.
	Renderings(message string) ([]Rendering, error)

	// Audit lists a chain's records by Seq. Audit skips damaged records, and returns a *DamagedError for each damaged
	// record, joined.
	Audit(chain string) ([]approvers.AuditRecord, error)
	// AuditHead returns a chain's last record, or ErrNotFound if the chain does not exist.
	AuditHead(chain string) (approvers.AuditRecord, error)
	// AuditChains lists the ids of chains in ascending order, after the given id.
	AuditChains(after string, limit int) ([]string, error)
	AuditPayload(chain string, seq uint64) (approvers.AuditPayload, error)
	// AuditRow returns a record as stored, without its payload. AuditRow returns damaged records too.
	AuditRow(chain string, seq uint64) (approvers.AuditRow, error)
	// EachAuditRow calls fn with each record as stored, in order of chain and seq, until fn fails. Unreadable rows are
	// included, so that tampering can be found. The bytes passed to fn are valid until the transaction ends.
	EachAuditRow(fn func(approvers.AuditRow) error) error
	// Journal lists all entries, starting at a leaf. There is one entry for each record ever appended. The entries are
	// in the order of the commits and, within a transaction, in the order of the appends. With several writers, a
	// backend may reorder entries until a head covers them.
	Journal(from uint64, limit int) ([]approvers.JournalEntry, error)
	// LastHead returns the newest head, or ErrNotFound if there is none.
	LastHead() (Head, error)
	// Heads lists heads by Number, starting after the given Number.
	Heads(after uint64, limit int) ([]Head, error)

	Setting(key string) (Setting, error)

	// Policy reads which policy and pins are in force. The call is cheap, because it does not read the content of the
	// policy.
	Policy() (Policy, error)
	// PolicyContent returns the content that was passed to the last PutPolicy. The caller may keep the slice.
	PolicyContent() ([]byte, error)
}

// RequestCursor is a position in the order of OpenRequests and RequestsOf.
type RequestCursor struct {
	CreatedAt time.Time
	ID        string
}

// Tx is a transaction.
type Tx interface {
	Reader

	PutConversation(Conversation) error
	// EraseConversation deletes a conversation and everything that belongs to it, up to limit records at a time:
	// messages, turns, calls, requests, executions with their elicitations and files, outbox messages with renderings,
	// timers, and finally the conversation itself. done reports whether everything is deleted. If the conversation does
	// not exist, it is also true. The audit stays. If the conversation has a current turn, the error is ErrConflict.
	EraseConversation(id string, limit int) (done bool, err error)
	// PutMessage writes a message under its Seq, replacing an existing one.
	PutMessage(Message) error

	PutTurn(approvers.Turn) error
	PutCall(Call) error
	PutRequest(approvers.Request) error
	PutExecution(approvers.Execution) error
	PutElicitation(approvers.Elicitation) error
	// PutFile writes a file with its bytes. If the file exists already, the error is ErrConflict. A file whose Size or
	// Hash does not match the bytes is refused.
	PutFile(f File, data []byte) error
	// EraseFiles deletes an execution's files with their bytes, and returns their number.
	EraseFiles(execution string) (int, error)
	AddCounter(Counter) error
	// PruneCounters deletes up to limit counters from before the time, and returns their number.
	PruneCounters(before time.Time, limit int) (int, error)
	PutGrant(approvers.Grant) error
	PutAbsence(approvers.Absence) error

	SetTimer(Timer) error
	// ClearTimer removes a timer. ClearTimer returns no error if the timer does not exist.
	ClearTimer(kind TimerKind, ref string) error

	PutInbox(Inbox) error
	// ForgetInbox deletes up to limit rows that were handled before the time, and returns their number.
	ForgetInbox(handledBefore time.Time, limit int) (int, error)

	PutOutboxMessage(OutboxMessage) error
	// PutRendering writes a posted version. If the version exists already, the error is ErrConflict.
	PutRendering(Rendering) error
	// EraseRenderings deletes the posted versions of an outbox message whose Post is less than below, and returns their
	// number. If below is 0, EraseRenderings deletes all posted versions.
	EraseRenderings(message string, below uint64) (int, error)

	// AppendAudit writes a linked record and its payload. If the payload is nil, the record has no payload. If the
	// record does not follow the chain's head, the error is ErrConflict.
	AppendAudit(approvers.AuditRecord, *approvers.AuditPayload) error
	// ErasePayloads deletes payloads of a chain and returns their Seqs. ErasePayloads deletes the payloads of the
	// records in only. If only is empty, it deletes all payloads. The records and their hashes stay. The caller records
	// the erasure in the audit: see approvers.Erasure.
	ErasePayloads(chain string, only ...uint64) (seqs []uint64, err error)
	// PruneChain deletes a chain's records and payloads, and returns the number of records. The journal entries of the
	// records stay. The caller records the pruning in the audit: see approvers.Pruning.
	PruneChain(chain string) (records int, err error)
	// PutHead writes the next head, which covers the first Size entries of the journal. If the head does not follow the
	// last one, the error is ErrConflict. A head that covers more entries than exist is refused.
	PutHead(Head) error

	PutSetting(Setting) error

	// PutPolicy puts a policy into force, with its content.
	PutPolicy(p Policy, content []byte) error
	// ExpectPolicy makes the transaction fail with ErrPolicyChanged if the policy in force at its beginning has another
	// Load, or if no policy is in force. The error may come from this call, a later read, or Update. The check needs no
	// extra round trip to the database. A transaction must not call both ExpectPolicy and PutPolicy.
	ExpectPolicy(load string) error
}
