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
	Execution(id string) (approvers.Execution, error)
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
	// Unhandled reports whether an inbox row that was received at or before the time is not handled yet.
	Unhandled(received time.Time) (bool, error)

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

	Setting(key string) (Setting, error)
}

// RequestCursor stands behind a request in OpenRequests' order.
type RequestCursor struct {
	CreatedAt time.Time
	ID        string
}

// Tx is a transaction.
type Tx interface {
	Reader

	PutConversation(Conversation) error
	// PutMessage writes a message under its Seq. Writing an existing Seq replaces it.
	PutMessage(Message) error

	PutTurn(approvers.Turn) error
	PutCall(Call) error
	PutRequest(approvers.Request) error
	PutExecution(approvers.Execution) error
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

	// AppendAudit writes a linked record and its payload (nil: none). A record that does not follow the chain's head is ErrConflict.
	AppendAudit(approvers.AuditRecord, *approvers.AuditPayload) error

	PutSetting(Setting) error
}
