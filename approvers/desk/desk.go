package desk

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Errors of the desk's moves. A person who may not do what they tried gets *approvers.Denied instead.
var (
	// ErrNotDue says that there is nothing to do any more: somebody else did it, or the state moved on.
	ErrNotDue = errors.New("desk: nothing to do")
	// ErrHandled says that this delivery was handled before. It changed nothing now.
	ErrHandled = errors.New("desk: this delivery was handled before")
)

// Tools is what the desk needs to know of the tools that can be called.
type Tools interface {
	Tool(name string) (Tool, bool)
	// Fingerprint names all that decides whether a call may run: the tools, their definitions, and which are blocked. It is the same after a restart with the same tools.
	Fingerprint() string
}

// Tool is the pinned definition of a tool.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
	Hash        string // over name, description, schema and effect
	Effect      approvers.Effect
	Timeout     time.Duration
	Previews    bool   // it says itself what a call would do
	Asks        bool   // the people of the conversation answer it, and no function
	Claims      Claims // what its source says of it
	Source      string // of the policy file; empty: it is compiled in
	Blocked     string // why nobody may call it now, as a part of a sentence; empty: it may be called
	// Check holds arguments against the schema. Its error is written for the model and for a person's form.
	Check func(args json.RawMessage) error
}

// Claims are what a tool's source says of the tool's nature. Nobody vouches for them; nil is what it does not say.
type Claims struct {
	Title                                        string
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Words are what the source says of the tool's nature, each as a part of a sentence that begins with "it". They don't have the title.
func (c Claims) Words() []string {
	var out []string
	for _, hint := range []struct {
		says    *bool
		yes, no string
	}{
		{c.ReadOnly, "only reads", "changes something"},
		{c.Destructive, "can destroy something", "destroys nothing"},
		{c.Idempotent, "does nothing more when it runs again", "acts again when it runs again"},
		{c.OpenWorld, "reaches the world outside", "stays within its own data"},
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

// Config is what a desk works with. All fields but Count, Now, Giver and Admits are required.
type Config struct {
	Store  store.Store
	Policy func() *approvers.Policy // the policy in force
	Tools  Tools
	Log    *slog.Logger
	Count  func(Event)      // is told of each event after its commit; nil: nobody counts
	Now    func() time.Time // nil: time.Now
	// Giver asks Slack who gave a grant is now, with the user groups that could give them authority. It is asked before a call runs under the grant.
	// Nil: nobody knows, and people are asked about the call.
	Giver func(context.Context, approvers.Grant) (approvers.Identity, error)
	// Admits holds what somebody filled in against the schema of a form. Its error is written for a person's form. Nil: any object is taken.
	Admits func(schema, values json.RawMessage) error
}

// Desk changes state. It is safe for use by many goroutines.
type Desk struct {
	Config
	owner  string // names this process in executions and surfaces
	bells  bells
	halt   halt
	asking asking
	slack  slackClock

	handling atomic.Int64 // handlers that run now
	room     room

	reconsidering sync.Mutex
}

// New makes a desk.
func New(c Config) *Desk {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Admits == nil {
		c.Admits = func(json.RawMessage, json.RawMessage) error { return nil }
	}
	return &Desk{Config: c, owner: newID("proc", c.Now()), bells: newBells(), halt: halt{under: map[int]underWay{}}}
}

// tx is one transaction of the desk: the store's, with the time and the policy that hold for all of it.
type tx struct {
	store.Tx
	d      *Desk
	now    time.Time
	policy *approvers.Policy
	rings  map[store.TimerKind]bool // kinds that got a timer
	events []Event                  // what becomes true with the commit
	halts  bool                     // everything is paused with the commit
	stops  map[handled]bool         // what somebody stops with the commit
	log    []note                   // what the operator is told when it is true

	replied []string // elicitations that ended: the runs that wait for them are woken

	redrawn map[redraw]bool
	homes   bool // something changed that Home tabs show

	gathering bool     // a step is proposed: its cards are shown when all of its calls are planned
	gathered  []string // requests whose cards wait for that
}

func (t *tx) deciding() approvers.Deciding { return approvers.Deciding{Policy: t.policy, Now: t.now} }

// SetTimer notes the kind, so that its worker is woken after the commit.
func (t *tx) SetTimer(timer store.Timer) error {
	t.rings[timer.Kind] = true
	return t.Tx.SetTimer(timer)
}

// update runs fn in a transaction, and then wakes whoever has something to do and tells whoever counts.
func (d *Desk) update(ctx context.Context, what string, fn func(*tx) error) error {
	var t *tx // of the run that was committed, which is the last
	err := d.Store.Update(ctx, func(s store.Tx) error {
		t = &tx{Tx: s, d: d, now: d.now(), policy: d.Policy(), rings: map[store.TimerKind]bool{}, redrawn: map[redraw]bool{}, stops: map[handled]bool{}}
		if err := fn(t); err != nil {
			return err
		}
		return t.followedByHomes()
	})
	if errors.Is(err, store.ErrFull) {
		d.lacks(err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if t.halts {
		d.halt.now()
	}
	d.halt.these(t.stops)
	d.asking.end(t.replied...)
	d.bells.ring(t.rings)
	d.tell(t.events)
	for _, n := range t.log {
		d.Log.Log(ctx, n.level, n.text, n.facts...)
	}
	return nil
}

// note is one line of the log.
type note struct {
	level slog.Level
	text  string
	facts []any
}

// note tells the operator of something with the commit: a closure may run more than once, or come to nothing.
func (t *tx) note(level slog.Level, text string, facts ...any) {
	t.log = append(t.log, note{level, text, facts})
}

// now is the time as every backend can store it.
func (d *Desk) now() time.Time { return d.Now().UTC().Truncate(time.Microsecond) }

// settle closes the inbox row that a move answers. An empty id is a move that came from elsewhere.
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
	row.HandledAt, row.Payload, row.Note = t.now, nil, note
	if err := t.PutInbox(row); err != nil {
		return err
	}
	return t.ClearTimer(store.TimerInbox, inbox)
}

// Receive makes a delivery durable before Slack is told that it was received. It reports false
// for a delivery that is known already.
func (d *Desk) Receive(ctx context.Context, row store.Inbox, lane string) (fresh bool, err error) {
	row.ReceivedAt = row.ReceivedAt.UTC().Truncate(time.Microsecond)
	err = d.update(ctx, "receive", func(t *tx) error {
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

// Remember notes a delivery that was answered at once and changed nothing, so that it is known when it comes again.
func (d *Desk) Remember(ctx context.Context, row store.Inbox) error {
	return d.update(ctx, "remember", func(t *tx) error {
		if _, err := t.Inbox(row.ID); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		row.ReceivedAt, row.HandledAt, row.Payload = row.ReceivedAt.UTC().Truncate(time.Microsecond), t.now, nil
		return t.PutInbox(row)
	})
}

// Done closes a delivery that changes nothing else. note says why, where that is worth remembering.
func (d *Desk) Done(ctx context.Context, inbox, note string) error {
	return d.update(ctx, "done", func(t *tx) error { return t.settle(inbox, note) })
}

// audit writes one record into a chain. Facts hold names, states and digests; body holds what people wrote or were shown.
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
	rand.Read(payload.Salt) // never fails: crypto/rand
	rec.PayloadHash = payload.Hash()
	rec = rec.Link(head)
	payload.Seq = rec.Seq
	return t.AppendAudit(rec, payload)
}

// Forget drops deliveries that were handled longer ago than the given time, and what is not counted any more.
func (d *Desk) Forget(ctx context.Context, after time.Duration) error {
	drop := []func(*tx) (int, error){
		func(t *tx) (int, error) { return t.ForgetInbox(t.now.Add(-after), forgetBatch) },
		func(t *tx) (int, error) { return t.ForgetTallies(t.now.Add(-tallied), forgetBatch) },
	}
	for _, batch := range drop {
		for n := forgetBatch; n == forgetBatch; {
			err := d.update(ctx, "forget", func(t *tx) (err error) {
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

// forgetBatch bounds how many rows one transaction deletes.
const forgetBatch = 1000
