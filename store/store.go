package store

import (
	"context"
	"time"

	"countersign/approvers"
)

// Store is a backend.
type Store interface {
	// Update runs the closure in a transaction and commits it. See the package's promises.
	Update(ctx context.Context, fn func(Tx) error) error
	// View runs the closure over one consistent snapshot.
	View(ctx context.Context, fn func(Reader) error) error
	// Check verifies the backend's own consistency and every audit chain. It is for tests and operators: it reads everything.
	Check(ctx context.Context) error
	// Close waits for transactions under way and releases the store.
	Close() error
}

// Reader is the read half of a transaction. Single reads fail with ErrNotFound; lists are empty instead.
type Reader interface {
	Conversation(id string) (Conversation, error)
	// ConversationAt is the newest conversation at a place.
	ConversationAt(place string) (Conversation, error)
	// ConversationsBefore lists conversations whose last message is from before the time, those that are silent for longest first.
	ConversationsBefore(lastAt time.Time, limit int) ([]Conversation, error)
	// Messages lists a conversation's messages by Seq, starting after the given one.
	Messages(conversation string, after uint64) ([]Message, error)

	Turn(id string) (approvers.Turn, error)
	Call(id string) (Call, error)
	// Calls lists a turn's calls by Step and Index.
	Calls(turn string) ([]Call, error)

	Request(id string) (approvers.Request, error)
	// OpenRequests lists requests that are pending or approved, oldest first, starting after the given one
	// (zero value: from the start).
	OpenRequests(after RequestCursor, limit int) ([]approvers.Request, error)
	// RequestsOf lists the requests that a person asked for or had a say in, newest first, starting before the given one (zero value: from the newest).
	RequestsOf(who approvers.PersonID, before RequestCursor, limit int) ([]approvers.Request, error)
	Execution(id string) (approvers.Execution, error)
	// Executions lists a conversation's executions by id, also those that edits replaced.
	Executions(conversation string) ([]approvers.Execution, error)
	// Elicitation reads what a run asked the person who asked for it.
	Elicitation(id string) (approvers.Elicitation, error)
	// Elicitations lists what an execution's runs asked, oldest first.
	Elicitations(execution string) ([]approvers.Elicitation, error)
	// Files lists what an execution's run brought back beside its text, by Index, without the bytes.
	Files(execution string) ([]File, error)
	// FileData is the bytes of one of them, which the caller may keep.
	FileData(execution string, index int) ([]byte, error)
	// CountTally adds up what was counted under a key after a time.
	CountTally(key string, after time.Time) (int, error)

	// Grant reads a grant, whatever became of it.
	Grant(id string) (approvers.Grant, error)
	// OpenGrants lists a tool's grants that are offered or in force, oldest first; of all tools for an empty one.
	OpenGrants(tool string) ([]approvers.Grant, error)

	// Absence reads when a person is away. One that is over stays until the next replaces it.
	Absence(who approvers.PersonID) (approvers.Absence, error)
	// Absences lists all that are stored, by person.
	Absences() ([]approvers.Absence, error)

	Timer(kind TimerKind, ref string) (Timer, error)
	// DueTimers lists a kind's timers that are due, in order of Due, then Ref.
	DueTimers(kind TimerKind, now time.Time, limit int) ([]Timer, error)
	// NextTimer is a kind's next timer, due or not.
	NextTimer(kind TimerKind) (Timer, error)
	// Timers lists up to limit of a kind's timers in order of Due, then Ref, whether due or not.
	Timers(kind TimerKind, limit int) ([]Timer, error)

	Inbox(id string) (Inbox, error)
	// Unhandled reports whether an inbox row of a kind that was received at or before the time is not handled yet.
	Unhandled(kind InboxKind, received time.Time) (bool, error)

	Surface(id string) (Surface, error)
	// SurfacesOf lists the surfaces with a Ref, in order of creation.
	SurfacesOf(ref string) ([]Surface, error)
	// SurfaceAt finds the surface that Slack shows as a message.
	SurfaceAt(channel, ts string) (Surface, error)
	Rendering(surface string, post uint64) (Rendering, error)
	// Renderings lists the posted versions of a surface by Post.
	Renderings(surface string) ([]Rendering, error)

	// Audit lists a chain's records by Seq.
	Audit(chain string) ([]approvers.AuditRecord, error)
	// AuditHead is a chain's last record; ErrNotFound for a chain that does not exist.
	AuditHead(chain string) (approvers.AuditRecord, error)
	// AuditChains lists the ids of chains in rising order, starting after the given one.
	AuditChains(after string, limit int) ([]string, error)
	AuditPayload(chain string, seq uint64) (approvers.AuditPayload, error)
	// AuditRow is a record as it is stored, without its payload.
	AuditRow(chain string, seq uint64) (approvers.AuditRow, error)
	// EachAuditRow goes through all records as they are stored, in order of chain and seq, until fn fails. What it can't read is a row
	// like any other: it is for finding what somebody did to the store. The bytes hold until the transaction ends.
	EachAuditRow(fn func(approvers.AuditRow) error) error
	// Journal lists what the heads are made over, from a leaf on: an entry for each record that was ever appended, in the order of the
	// commits, and within a transaction of the appends. A backend with several writers may still change the order of those that no head covers.
	Journal(from uint64, limit int) ([]approvers.JournalEntry, error)
	// LastHead is the newest head; ErrNotFound if there is none.
	LastHead() (Head, error)
	// Heads lists heads by Number, starting after the given one.
	Heads(after uint64, limit int) ([]Head, error)

	Setting(key string) (Setting, error)
}

// RequestCursor stands at a request in the order of OpenRequests and RequestsOf.
type RequestCursor struct {
	CreatedAt time.Time
	ID        string
}

// Tx is a transaction.
type Tx interface {
	Reader

	PutConversation(Conversation) error
	// EraseConversation deletes what belongs to a conversation, up to limit records at a time, and says whether everything is gone: its messages, turns,
	// calls, requests, executions with what they asked and brought back, their surfaces with renderings, their timers, and at last the conversation. Their audit stays. One with a turn
	// under way is ErrConflict; one that is not there is done.
	EraseConversation(id string, limit int) (done bool, err error)
	// PutMessage writes a message under its Seq. Writing an existing Seq replaces it.
	PutMessage(Message) error

	PutTurn(approvers.Turn) error
	PutCall(Call) error
	PutRequest(approvers.Request) error
	PutExecution(approvers.Execution) error
	PutElicitation(approvers.Elicitation) error
	// PutFile writes a file with its bytes. It is never replaced: ErrConflict. One whose Size or Hash is not that of the bytes is refused.
	PutFile(f File, data []byte) error
	// EraseFiles deletes an execution's files with their bytes, and says how many there were.
	EraseFiles(execution string) (int, error)
	AddTally(Tally) error
	// ForgetTallies deletes up to limit tallies from before the time, and says how many.
	ForgetTallies(before time.Time, limit int) (int, error)
	PutGrant(approvers.Grant) error
	PutAbsence(approvers.Absence) error

	SetTimer(Timer) error
	// ClearTimer removes a timer; one that isn't there is no error.
	ClearTimer(kind TimerKind, ref string) error

	PutInbox(Inbox) error
	// ForgetInbox deletes up to limit rows that were handled before the time, and says how many.
	ForgetInbox(handledBefore time.Time, limit int) (int, error)

	PutSurface(Surface) error
	// PutRendering writes a posted version. It is never replaced: ErrConflict.
	PutRendering(Rendering) error
	// EraseRenderings deletes the posted versions of a surface below a Post, or all of them for 0, and says how many there were.
	EraseRenderings(surface string, below uint64) (int, error)

	// AppendAudit writes a linked record and its payload (nil: none). A record that does not follow the chain's head is ErrConflict.
	AppendAudit(approvers.AuditRecord, *approvers.AuditPayload) error
	// ErasePayloads deletes payloads of a chain, those of the named records or all where none is named, and says which there were. The records and
	// their hashes stay. Whoever erases says so in the audit: see approvers.Erasure.
	ErasePayloads(chain string, only ...uint64) (seqs []uint64, err error)
	// PruneChain deletes a chain's records and payloads, and says how many records there were. Their entries in the journal stay. Whoever prunes says so
	// in the audit: see approvers.Pruning.
	PruneChain(chain string) (records int, err error)
	// PutHead writes the next head, which covers the first Size entries of the journal. One that does not follow the last is
	// ErrConflict, and one that covers more than there is is refused.
	PutHead(Head) error

	PutSetting(Setting) error
}
