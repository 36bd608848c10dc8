package workflow

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
	"countersign/store/jobs"
)

// Errors of the use cases. If a person may not do an action, the use case returns *approvers.Denied.
var (
	// ErrNotDue means that no work is left, because the state has changed.
	ErrNotDue = errors.New("workflow: nothing to do")
	// ErrHandled means that the delivery was handled before. The use case changed nothing.
	ErrHandled = errors.New("workflow: this delivery was handled before")
)

// Tools gives the workflow access to the tools that can be called.
type Tools interface {
	Tool(name string) (Tool, bool)
	// Fingerprint identifies the tools, their definitions, and which tools are blocked. If the fingerprint changes, the
	// workflow checks waiting requests again. The fingerprint stays the same across restarts if the tools are the same.
	Fingerprint() string
	// Drift lists the pinned tools whose source does not offer the pinned definition, in order of their names.
	Drift() []Drift
}

// Drift is a pinned tool whose source does not offer the pinned definition.
type Drift struct {
	Tool, Source string
	How          DriftKind
}

// DriftKind says how a tool differs from its pin.
type DriftKind string

// The kinds of drift.
const (
	DriftUnknown  DriftKind = "unknown"  // the source has not listed its tools yet
	DriftChanged  DriftKind = "changed"  // the source offers another definition
	DriftUnusable DriftKind = "unusable" // the source offers another definition, which can't be used
	DriftGone     DriftKind = "gone"     // the source does not offer the tool
)

// Tool is the pinned definition of a tool.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
	Hash        string // hash over name, description, schema and effect
	Effect      approvers.Effect
	Timeout     time.Duration
	Previews    bool   // the tool itself can make a preview of a call
	Asks        bool   // people in the conversation answer the call; no function is called
	Claims      Claims // annotations that the tool's source wrote
	Source      string // name of the tool's source in the policy file; empty: the tool is compiled into the program
	Blocked     string // why nobody may call the tool now, as a part of a sentence; empty: the tool is not blocked
	// Check validates arguments against the schema. The model and the person who fills in a form read the error of
	// Check.
	Check func(args json.RawMessage) error
}

// Claims are the annotations of a tool, for example the claim that the tool only reads. The tool's source writes the
// annotations, and nobody verifies them. A field is nil if the source says nothing about the property.
type Claims struct {
	Title                                        string
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Words describes each claim except the title in a few words.
func (c Claims) Words() []string {
	var out []string
	for _, hint := range []struct {
		says    *bool
		yes, no string
	}{
		{c.ReadOnly, "read-only", "not read-only"},
		{c.Destructive, "destructive", "not destructive"},
		{c.Idempotent, "idempotent", "not idempotent"},
		{c.OpenWorld, "reaches outside systems", "stays within its own data"},
	} {
		switch {
		case hint.says == nil:
		case *hint.says:
			out = append(out, hint.yes)
		default:
			out = append(out, hint.no)
		}
	}
	return out
}

// Crashes counts how often a process crashed while it did a piece of work. Crashes is safe for concurrent use.
type Crashes interface {
	Begin(kind, ref string)     // work on something begins
	End(kind, ref string)       // the work ended, with or without success
	Count(kind, ref string) int // how many processes crashed during the work
	Forget(kind, ref string)    // resets the count
}

// Config holds a workflow's dependencies. All fields are required except Count, Now, Wrote, Trace, GrantOwner,
// HearTold, Admits, Replica, PolicySource, Team and Crashes.
type Config struct {
	Store  store.Store
	Policy func() *approvers.Policy // the policy in force
	Tools  Tools
	Log    *slog.Logger
	// Count is called with each event after the commit. The context is the context of the transaction. If Count is nil,
	// events are dropped.
	Count func(context.Context, Event)
	Now   func() time.Time // returns the current time; nil: time.Now
	// Wrote is called after each commit, with the duration of the transaction. If Wrote is nil, durations are dropped.
	Wrote func(time.Duration)
	// Trace returns the id of a turn's trace, or "" if the turn has no trace. Audit records contain this id. If Trace
	// is nil, no turn is traced.
	Trace func(turn string) string
	// GrantOwner asks Slack about the grant's owner before a call runs under the grant. The owner is the person who
	// gave the grant. The result includes the user groups that could give the owner authority. If GrantOwner is nil,
	// the owner counts as unknown, and the call needs approval.
	GrantOwner func(context.Context, approvers.Grant) (approvers.Identity, error)
	// HearTold is called with each message that another replica sent with Workflow.Tell. If HearTold is nil, these
	// messages are ignored.
	HearTold func(what string)
	// Admits validates a filled-in form against its schema. The form shows the error of Admits to the person. If Admits
	// is nil, any object is accepted.
	Admits func(schema, values json.RawMessage) error
	// Replica says which shares of the work belong to this process. If Replica is nil, this process does all work,
	// because there is no other process.
	Replica store.Replica
	// PolicySource makes the function Policy return the policy in force from the store. If PolicySource is nil, no
	// other process changes the policy in force.
	PolicySource PolicySource
	// Team returns the id of the workspace or enterprise. This id and a user id together identify a person; see
	// approvers.Who. Callers are other agents that call tools through Countersign. A caller's request names people only
	// by user ids, so the workflow needs the id of the workspace. If Team is nil, the id is empty.
	Team func(context.Context) (string, error)
	// Crashes counts the crashes of processes during a piece of work. If Crashes is nil, crashes are not counted.
	Crashes Crashes
}

// Workflow has all use cases, in groups. For example, Requests has the actions of people on requests, and Runs has the
// runs of tools. A method that changes state runs one transaction, or a series of transactions. A Workflow is safe for
// concurrent use.
type Workflow struct {
	*core
	Views     *view.Reader // reads, and changes nothing
	Intake    *Intake
	Requests  *Requests
	Turns     *Turns
	Runs      *Runs
	Questions *Questions
	Grants    *Grants
	People    *People
	Outbox    *Outbox
	Homes     *Homes
	Pauses    *Pauses
	Policies  *Policies
	History   *History
	Callers   *Callers
}

// The groups of use cases.
type (
	// Intake receives deliveries from Slack: messages, and events about channels.
	Intake struct{ *core }
	// Requests handles people's decisions and comments on requests, and the deadlines of requests.
	Requests struct{ *core }
	// Turns handles the conversations of people with the model.
	Turns struct{ *core }
	// Runs handles the runs of tools, and tool previews.
	Runs struct{ *core }
	// Questions handles questions to people. The model or a running tool asks these questions.
	Questions struct{ *core }
	// Grants handles grants. Under a grant, calls may run without approval for a limited time.
	Grants struct{ *core }
	// People handles absences and availability checks.
	People struct{ *core }
	// Outbox handles the messages that Slack must show, and the delivery of these messages.
	Outbox struct{ *core }
	// Homes handles people's Home tabs.
	Homes struct{ *core }
	// Pauses begins and ends pauses of the whole installation.
	Pauses struct{ *core }
	// Policies stores which policy is in force.
	Policies struct{ *core }
	// History seals the audit, posts the weekly report, and closes the open work in a restored or salvaged store.
	History struct{ *core }
)

// core has the fields that all groups share.
type core struct {
	Config
	ids          idMaker
	owner        string    // the name of this process in executions and outbox messages
	began        time.Time // when Work began; from time.Now, because Config.Now may jump
	jobs         *jobs.Runner
	running      runningHandlers
	elicitations elicitationsUnderWay
	waiting      callersWaiting
	writing      callersWriting
	slack        slackClock
	inherited    inherited

	denials denials

	file fileState

	reevaluating sync.Mutex
}

// New returns a workflow.
func New(c Config) *Workflow {
	clock := c.Now
	if clock == nil {
		clock = time.Now
	}
	c.Now = func() time.Time { return clock().UTC().Truncate(time.Microsecond) } // every store backend keeps this precision
	if c.Admits == nil {
		c.Admits = func(json.RawMessage, json.RawMessage) error { return nil }
	}
	if c.Replica == nil {
		c.Replica = store.Alone{}
	}
	if c.Crashes == nil {
		c.Crashes = noCrashes{}
	}
	if c.Wrote == nil {
		c.Wrote = func(time.Duration) {}
	}
	if c.Trace == nil {
		c.Trace = func(string) string { return "" }
	}
	w := &core{Config: c, running: runningHandlers{under: map[int]underWay{}}}
	w.owner = w.ids.newID("proc", c.Now())
	w.jobs = w.newRunner()
	return &Workflow{
		core: w, Views: view.New(c.Store, c.Policy, w.hash, w.Now),
		Intake: &Intake{w}, Requests: &Requests{w}, Turns: &Turns{w}, Runs: &Runs{w}, Questions: &Questions{w}, Grants: &Grants{w},
		People: &People{w}, Outbox: &Outbox{w}, Homes: &Homes{w}, Pauses: &Pauses{w}, Policies: &Policies{w}, History: &History{w},
		Callers: &Callers{w},
	}
}

// tx is one transaction of the workflow: a store transaction with one time and one policy.
type tx struct {
	store.Tx
	parts
	w             *core
	now           time.Time
	policy        *approvers.Policy
	wakes         map[store.TimerKind]store.Shares // the shares in which the transaction set timers, for each kind of timer
	events        []Event                          // events of the transaction, reported after the commit
	pausesAll     bool                             // this transaction pauses everything
	changesPolicy bool                             // this transaction puts a policy into force
	interrupts    map[handled]bool                 // the handlers that this transaction interrupts
	log           []note                           // log lines, written after the commit

	denials      map[denial]int  // for each kind of denied attempt in the transaction: how many there have been, including earlier transactions
	changedCalls map[string]bool // changed calls of other agents; the agents that wait for these calls are woken after the commit
	replied      []string        // ended questions of tools (elicitations); the waiting runs are woken after the commit

	refreshed map[refresh]bool
	showHomes bool // something changed that Home tabs show
	cut       bool // see salvaged
	older     bool // see Restoration
}

func (t *tx) deciding() approvers.DecisionContext {
	return approvers.DecisionContext{Policy: t.policy, Now: t.now}
}

// SetTimer sets a timer, and records the timer's kind and share. After the commit, the worker for this kind and share
// is woken.
func (t *tx) SetTimer(timer store.Timer) error {
	t.wakes[timer.Kind] = t.wakes[timer.Kind].With(timer.Share())
	return t.Tx.SetTimer(timer)
}

// transact runs fn in a transaction, under the policy in force. After the commit, transact wakes workers and waiting
// runs, reports events, and writes log lines.
func (w *core) transact(ctx context.Context, what string, fn func(*tx) error) error {
	for {
		load := ""
		err := w.transactUnder(ctx, what, func(t *tx) error {
			if load = t.policy.Load; load != "" {
				if err := t.ExpectPolicy(load); err != nil {
					return err
				}
			}
			if err := fn(t); err != nil {
				return err
			}
			if w.Policy().Load != load { // the policy changed during fn, and the tools that fn has read may also have changed
				return store.ErrPolicyChanged
			}
			return nil
		})
		if !errors.Is(err, store.ErrPolicyChanged) || w.PolicySource == nil {
			return err
		}
		if err := w.PolicySource.CatchUp(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if w.Policy().Load == load {
			return err // the policy of this process is in force, so the error has another cause
		}
	}
}

// transactUnder is like transact, but does not check that this process has the policy in force.
func (w *core) transactUnder(ctx context.Context, what string, fn func(*tx) error) error {
	var t *tx // the tx of the closure's last run, which was committed
	began := time.Now()
	err := w.Store.Update(ctx, func(s store.Tx) error {
		t = &tx{
			Tx: s, w: w, now: w.Now(), policy: w.Policy(),
			wakes: map[store.TimerKind]store.Shares{}, refreshed: map[refresh]bool{}, interrupts: map[handled]bool{}, denials: map[denial]int{},
			changedCalls: map[string]bool{},
		}
		t.parts = newParts(t)
		if err := fn(t); err != nil {
			return err
		}
		if err := t.callers.announceChanges(); err != nil {
			return err
		}
		return t.homes.followedByHomes()
	})
	if errors.Is(err, store.ErrFull) {
		w.jobs.NoteFull(err)
	}
	if errors.Is(err, store.ErrMoved) {
		w.noteMoved(err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	w.Wrote(time.Since(began))
	if t.pausesAll {
		w.running.interruptAll()
	}
	w.running.interrupt(t.interrupts)
	w.elicitations.end(t.replied...)
	for id := range t.changedCalls {
		w.waiting.wake(id)
	}
	w.denials.came(t.denials)
	w.jobs.Notify(t.wakes, t.news()...)
	w.tell(ctx, t.events)
	for _, n := range t.log {
		w.Log.Log(ctx, n.level, n.text, n.facts...)
	}
	return nil
}

// Tx is a transaction for packages that are built on the workflow, such as package retention. A Tx is the store's
// transaction, with a time and with the audit. If a Tx sets a timer, the timer's worker is woken after the commit.
type Tx struct{ *tx }

// Update runs fn in one transaction, under the policy in force. If fn fails because it read a damaged record, Update
// ends the request, run, call or turn of the record, and runs fn in a new transaction. So fn may run more than once.
func (w *Workflow) Update(ctx context.Context, what string, fn func(Tx) error) error {
	return w.update(ctx, what, func(t *tx) error { return fn(Tx{t}) })
}

// Now returns the time of the transaction.
func (t Tx) Now() time.Time { return t.now }

// WriteAudit appends one record to an audit chain. facts holds names, states and digests. body holds texts that people
// wrote or saw, and may be nil. These texts can be erased later.
func (t Tx) WriteAudit(chain string, kind approvers.AuditKind, actor approvers.PersonID, facts map[string]string, body any) error {
	return t.audit(chain, kind, actor, facts, body)
}

// note is one log line.
type note struct {
	level slog.Level
	text  string
	facts []any
}

// note schedules a log line, which is written after the commit. The transaction may run more than once or fail, so the
// log line can't be written earlier.
func (t *tx) note(level slog.Level, text string, facts ...any) {
	t.log = append(t.log, note{level, text, facts})
}

// settle closes the inbox row of a delivery. inbox is the id of the row. If no delivery started the use case, inbox is
// empty, and settle does nothing. If the row is closed already, settle returns ErrHandled.
func (t *tx) settle(inbox, note string) error {
	if inbox == "" {
		return nil
	}
	row, err := t.Inbox(inbox)
	if err != nil {
		return err
	}
	if !row.HandledAt.IsZero() {
		return ErrHandled
	}
	row.HandledAt, row.Payload, row.Note, row.Deferred = t.now, nil, note, nil
	if err := t.PutInbox(row); err != nil {
		return err
	}
	return t.ClearTimer(store.TimerInbox, inbox)
}

// Receive stores a delivery. The bot acknowledges the delivery to Slack after Receive has returned. If the delivery is
// stored already, fresh is false.
func (w *Intake) Receive(ctx context.Context, row store.Inbox, lane string) (fresh bool, err error) {
	row.ReceivedAt = row.ReceivedAt.UTC().Truncate(time.Microsecond)
	err = w.record(ctx, "receive", func(t *tx) error {
		fresh = false
		switch _, err := t.Inbox(row.ID); {
		case err == nil:
			return nil
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		fresh = true
		if err := t.PutInbox(row); err != nil {
			return err
		}
		return t.SetTimer(store.Timer{Kind: store.TimerInbox, Ref: row.ID, Due: row.ReceivedAt, Lane: lane})
	})
	return fresh, err
}

// Remember stores a delivery that the bot answered immediately, and that changed nothing. Because of the stored row, a
// repetition of the delivery changes nothing either.
func (w *Intake) Remember(ctx context.Context, row store.Inbox) error {
	return w.record(ctx, "remember", func(t *tx) error {
		if _, err := t.Inbox(row.ID); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		row.ReceivedAt, row.HandledAt, row.Payload = row.ReceivedAt.UTC().Truncate(time.Microsecond), t.now, nil
		return t.PutInbox(row)
	})
}

// Defer records that a delivery can't be handled yet, because the bot could not look up the delivery's sender in Slack.
// If the delivery was not deferred before, fresh is true.
func (w *Intake) Defer(ctx context.Context, inbox, cause string) (fresh bool, err error) {
	err = w.update(ctx, "defer", func(t *tx) error {
		row, err := t.Inbox(inbox)
		switch {
		case err != nil:
			return err
		case !row.HandledAt.IsZero():
			return ErrHandled
		}
		d := store.Deferral{Since: t.now, Cause: cause}
		if fresh = row.Deferred == nil; !fresh {
			d.Since = row.Deferred.Since
		}
		if !fresh && *row.Deferred == d {
			return nil
		}
		row.Deferred = &d
		return t.PutInbox(row)
	})
	return fresh, err
}

// Done closes a delivery that changes nothing. The parameter note is the reason, which is stored with the delivery.
// note may be "".
func (w *Intake) Done(ctx context.Context, inbox, note string) error {
	return w.update(ctx, "done", func(t *tx) error { return t.settle(inbox, note) })
}

// audit writes one record into a chain. facts holds names, states and digests. body holds texts that people wrote or
// saw.
func (t *tx) audit(chain string, kind approvers.AuditKind, actor approvers.PersonID, facts map[string]string, body any) error {
	head, err := t.AuditHead(chain)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	rec := approvers.AuditRecord{Chain: chain, At: t.now, Kind: kind, Actor: actor, Facts: facts}
	if body == nil {
		return t.AppendAudit(rec.Link(head), nil)
	}
	raw, ok := body.([]byte)
	if !ok {
		if raw, err = json.Marshal(body); err != nil {
			return fmt.Errorf("audit payload: %w", err)
		}
	}
	payload := &approvers.AuditPayload{Chain: chain, Salt: make([]byte, 16), Body: raw}
	rand.Read(payload.Salt) // crypto/rand never fails
	rec.PayloadHash = payload.Hash()
	rec = rec.Link(head)
	payload.Seq = rec.Seq
	return t.AppendAudit(rec, payload)
}

// Forget deletes counts that are older than counterRetention, and handled deliveries that are older than the parameter
// after. Forget keeps a delivery if the bot may read the delivery's message from Slack again after a gap.
func (w *Intake) Forget(ctx context.Context, after time.Duration) error {
	drop := []func(*tx) (int, error){
		func(t *tx) (int, error) {
			before, err := t.gaps.forgettable(t.now.Add(-after))
			if err != nil {
				return 0, err
			}
			return t.ForgetInbox(before, forgetBatch)
		},
		func(t *tx) (int, error) { return t.PruneCounters(t.now.Add(-counterRetention), forgetBatch) },
	}
	for _, batch := range drop {
		for n := forgetBatch; n == forgetBatch; {
			err := w.update(ctx, "forget", func(t *tx) (err error) {
				n, err = batch(t)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetBatch is the maximum number of rows that one transaction deletes.
const forgetBatch = 1000

// parts groups the methods of a transaction by concern. Each part embeds the transaction, and has the methods of one
// concern. For example, t.outbox.changed(s) is a method about outbox messages.
type parts struct {
	outbox    outboxTx    // the messages that Slack must show
	cards     cardsTx     // the cards of requests: where they are shown, bundles, and card queues
	reposts   repostsTx   // messages that were deleted in Slack
	channels  channelsTx  // channels in which the bot can't write any more, and their open messages
	homes     homesTx     // Home tabs
	requests  requestsTx  // transitions of a request
	timers    timersTx    // the timers that follow from a transition
	records   recordsTx   // the audit records that follow from a transition
	notices   noticesTx   // the cards and notices that follow from a transition
	turns     turnsTx     // conversations, messages and turns
	proposals proposalsTx // calls that the model requests: planning them, asking people, or scheduling the run
	runs      runsTx      // runs and their results
	questions questionsTx // questions of the model and of running tools to people
	previews  previewsTx  // previews by tools
	grants    grantsTx    // grants, and the streaks of approved calls that lead to offers
	people    peopleTx    // absences
	pauses    pausesTx    // pauses
	damage    damageTx    // new records in place of damaged records; the ends of their requests, runs and turns
	restore   restoreTx   // the end of all open work in a restored store
	seals     sealsTx     // signed heads
	reports   reportsTx   // weekly reports
	operators operatorsTx // notices for the operators
	gaps      gapsTx      // gaps in which the bot received nothing
	callers   callersTx   // requests of other agents
}

// The concerns of a transaction.
type (
	outboxTx    struct{ *tx }
	cardsTx     struct{ *tx }
	repostsTx   struct{ *tx }
	channelsTx  struct{ *tx }
	homesTx     struct{ *tx }
	requestsTx  struct{ *tx }
	timersTx    struct{ *tx }
	recordsTx   struct{ *tx }
	noticesTx   struct{ *tx }
	turnsTx     struct{ *tx }
	proposalsTx struct{ *tx }
	runsTx      struct{ *tx }
	questionsTx struct{ *tx }
	previewsTx  struct{ *tx }
	grantsTx    struct{ *tx }
	peopleTx    struct{ *tx }
	pausesTx    struct{ *tx }
	damageTx    struct{ *tx }
	restoreTx   struct{ *tx }
	sealsTx     struct{ *tx }
	reportsTx   struct{ *tx }
	operatorsTx struct{ *tx }
	gapsTx      struct{ *tx }
)

// newParts returns the parts of a transaction.
func newParts(t *tx) parts {
	return parts{
		outbox:    outboxTx{t},
		cards:     cardsTx{t},
		reposts:   repostsTx{t},
		channels:  channelsTx{t},
		homes:     homesTx{t},
		requests:  requestsTx{t},
		timers:    timersTx{t},
		records:   recordsTx{t},
		notices:   noticesTx{t},
		turns:     turnsTx{t},
		proposals: proposalsTx{t},
		runs:      runsTx{t},
		questions: questionsTx{t},
		previews:  previewsTx{t},
		grants:    grantsTx{t},
		people:    peopleTx{t},
		pauses:    pausesTx{t},
		damage:    damageTx{t},
		restore:   restoreTx{t},
		seals:     sealsTx{t},
		reports:   reportsTx{t},
		operators: operatorsTx{t},
		gaps:      gapsTx{t},
		callers:   callersTx{t},
	}
}

// idMaker makes the ids of records. Of two ids with the same time, the one that was made later sorts after the other.
// So two messages that are due at the same moment are sent in the order in which they were made.
type idMaker struct{ made atomic.Uint32 }

// madeBits is the number of bits of an id that count the earlier ids. After 4,096 ids, the count begins again at 0.
const madeBits = 12

// newID returns an id. An id has the kind of the record, the time in milliseconds, the number of earlier ids, and 68
// random bits. So nobody can guess an id. Because of the time, the store keeps records with similar times together.
func (m *idMaker) newID(kind string, now time.Time) string {
	var b [16]byte
	rand.Read(b[:]) // crypto/rand never fails
	random := binary.BigEndian.Uint16(b[6:8]) & (1<<(16-madeBits) - 1)
	made := uint16(m.made.Add(1)-1) << (16 - madeBits)
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16|uint64(made|random))
	return kind + "_" + sortable.EncodeToString(b[:])
}

// sortable is an encoding. Encoded strings sort in the same order as the bytes that they encode.
var sortable = base32.HexEncoding.WithPadding(base32.NoPadding)

func (t *tx) newID(kind string) string { return t.w.ids.newID(kind, t.now) }

// pageOfRequests is the number of requests per transaction when a use case handles all open requests. The number is
// small, because clicks wait until the transaction ends.
const pageOfRequests = 20

// openRequests calls fn for every open request. Each transaction handles up to pageOfRequests requests.
func (w *core) openRequests(ctx context.Context, what string, fn func(*tx, approvers.Request) error) error {
	var after store.RequestCursor
	for more := true; more; {
		var last store.RequestCursor
		err := w.update(ctx, what, func(t *tx) error {
			last = after
			page, err := t.OpenRequests(after, pageOfRequests)
			if err != nil {
				return err
			}
			more = len(page) == pageOfRequests
			for _, r := range page {
				last = store.RequestCursor{CreatedAt: r.CreatedAt, ID: r.ID}
				if err := fn(t, r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		after = last
	}
	return nil
}

// CallsIn lists all calls of a conversation.
func CallsIn(r store.Reader, id string) (all []store.Call, err error) {
	if ofCaller(id) {
		return callOfCaller(r, id)
	}
	messages, err := r.Messages(id, 0)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{"": true}
	for _, m := range messages {
		if seen[m.Turn] {
			continue
		}
		seen[m.Turn] = true
		calls, err := r.Calls(m.Turn)
		if err != nil {
			return nil, err
		}
		all = append(all, calls...)
	}
	return all, nil
}
