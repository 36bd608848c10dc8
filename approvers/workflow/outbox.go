package workflow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// add stores a new outbox message and schedules its delivery.
func (t outboxTx) add(s store.OutboxMessage) error {
	if id, ok := strings.CutPrefix(s.To, store.ToConversation); ok && ofCaller(id) {
		return nil // nobody reads it there: the caller reads the state instead
	}
	rank, err := t.rank(s)
	if err != nil {
		return err
	}
	s.ID, s.State, s.Revision, s.CreatedAt, s.Rank = t.newID("s"), store.OutboxWanted, 1, t.now, rank
	s.Process, s.After = t.w.owner, t.w.slack.time()
	if err := t.PutOutboxMessage(s); err != nil {
		return err
	}
	t.refreshed[refresh{ref: s.ID}] = true
	return t.showAt(s, t.now) // its id is new, so it has no timer yet
}

// refresh identifies outbox messages for which the transaction has already scheduled an update: one message, all
// messages of a ref, all messages of a kind and step, or all messages of a bundle. Later changes in the same
// transaction need no second refresh.
type refresh struct {
	ref    string
	kind   store.OutboxKind
	step   int
	bundle string
}

// markRefreshed records a refresh. markRefreshed reports whether it was recorded before.
func (t outboxTx) markRefreshed(what refresh) bool {
	before := t.refreshed[what]
	t.refreshed[what] = true
	return before
}

func (t outboxTx) showNow(s store.OutboxMessage) error {
	due := t.now
	if cur, err := t.Timer(s.Rank.Timer(), s.ID); err == nil && cur.Due.Equal(due) {
		due = due.Add(time.Microsecond) // so that the new timer differs from the one that is being handled
	} else if store.IgnoreNotFound(err) != nil {
		return err
	}
	return t.showAt(s, due)
}

func (t outboxTx) showAt(s store.OutboxMessage, due time.Time) error {
	return t.SetTimer(store.Timer{Kind: s.Rank.Timer(), Ref: s.ID, Due: due, Lane: s.To})
}

// shownAsWanted clears the delivery timer of an outbox message that is up to date.
func (t outboxTx) shownAsWanted(s store.OutboxMessage) error {
	return t.ClearTimer(s.Rank.Timer(), s.ID)
}

// changed schedules an update of an outbox message, because its content has changed. A message that already waits for
// delivery keeps its place in the queue. The bot renders a message when it sends the message, so one edit can show
// several changes.
func (t outboxTx) changed(s store.OutboxMessage) error {
	if s.Kind == store.OutboxDraft || s.State != store.OutboxWanted && s.State != store.OutboxShown || t.markRefreshed(refresh{ref: s.ID}) {
		return nil
	}
	s.State = store.OutboxWanted
	s.Revision++
	if err := t.PutOutboxMessage(s); err != nil {
		return err
	}
	if _, err := t.Timer(s.Rank.Timer(), s.ID); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return t.showNow(s)
}

// changedRef refreshes every outbox message of a ref.
func (t outboxTx) changedRef(ref string) error {
	return t.changedThose(refresh{ref: ref}, func(store.OutboxMessage) bool { return true })
}

// changedTurn refreshes a turn's outbox messages of one kind; step 0 means every step.
func (t outboxTx) changedTurn(turn string, kind store.OutboxKind, step int) error {
	return t.changedThose(refresh{ref: turn, kind: kind, step: step}, func(s store.OutboxMessage) bool {
		return s.Kind == kind && (step == 0 || s.Step == step)
	})
}

// changedThose refreshes the outbox messages of a ref that the function among selects.
func (t outboxTx) changedThose(those refresh, among func(store.OutboxMessage) bool) error {
	if t.markRefreshed(those) {
		return nil
	}
	messages, err := t.OutboxMessagesOf(those.ref)
	if err != nil {
		return err
	}
	for _, s := range messages {
		if !among(s) {
			continue
		}
		if err := t.changed(s); err != nil {
			return err
		}
	}
	return nil
}

// wantCard shows a request's card at every address where the people of its stage read their cards. If an address
// already has the card, wantCard only updates it.
func (t cardsTx) wantCard(r approvers.Request) error {
	for _, to := range t.addresses(r) {
		if err := t.wantQueued(r, to); err != nil {
			return err
		}
	}
	return nil
}

// addresses returns the addresses at which the people of a request's stage read their cards, without repetition: the
// address of each role, or the direct messages of a user group's members.
func (t cardsTx) addresses(r approvers.Request) []string { return view.Addresses(t.policy, r) }

// cardAddress returns where a role's cards go: its channel, or each member's direct messages.
func (t cardsTx) cardAddress(name string) string { return view.CardAddress(t.policy, name) }

// wantAt shows a request at an address, unless the address already shows it.
func (t outboxTx) wantAt(r approvers.Request, kind store.OutboxKind, to, role string) error {
	return t.wantOnce(store.OutboxMessage{Kind: kind, Ref: r.ID, Request: r.ID, To: to, Role: role})
}

// wantOnce creates an outbox message, unless the address already has a similar message.
func (t outboxTx) wantOnce(s store.OutboxMessage) error {
	messages, err := t.OutboxMessagesOf(s.Ref)
	if err != nil {
		return err
	}
	for _, o := range messages {
		if o.To == s.To && o.State != store.OutboxUnreachable && o.State != store.OutboxRemoved && o.Step == s.Step && o.Bundle == s.Bundle && o.Note == s.Note && alike(o.Kind, s.Kind) {
			return nil
		}
	}
	return t.add(s)
}

// wantCurrent refreshes a message everywhere it is shown. If the message is shown nowhere, wantCurrent creates it.
func (t outboxTx) wantCurrent(s store.OutboxMessage) error {
	messages, err := t.OutboxMessagesOf(s.Ref)
	if err != nil {
		return err
	}
	there := false
	for _, o := range messages {
		if o.Kind != s.Kind || o.Step != s.Step || o.State == store.OutboxRemoved {
			continue
		}
		there = true
		if err := t.changed(o); err != nil {
			return err
		}
	}
	if there {
		return nil
	}
	return t.add(s)
}

// alike reports whether messages of two kinds show the same content. A card and an escalation do, because both are the
// request's card.
func alike(a, b store.OutboxKind) bool { return a == b || view.IsCard(a) && view.IsCard(b) }

// If Slack refused a message, elsewhere sends the message to its other addresses.
func (t outboxTx) elsewhere(s store.OutboxMessage) error {
	places, err := t.otherPlaces(s)
	if err != nil {
		return err
	}
	for _, to := range places {
		other := store.OutboxMessage{Kind: s.Kind, Ref: s.Ref, Step: s.Step, Request: s.Request, To: to, Bundle: s.Bundle, Note: s.Note}
		if err := errors.Join(t.cards.expandAgain(s, to), t.wantOnce(other)); err != nil {
			return err
		}
	}
	return nil
}

// otherPlaces returns the other addresses for a refused message. A message for a channel or a group goes to the
// request's roles. A message for the conversation goes to each requester.
func (t outboxTx) otherPlaces(s store.OutboxMessage) (places []string, err error) {
	switch {
	case s.Kind == store.OutboxCardQueue && !strings.HasPrefix(s.To, store.ToUser):
		return t.cards.queueRecipients(s.To), nil
	case s.Kind == store.OutboxBundle && !strings.HasPrefix(s.To, store.ToUser):
		return t.cards.bundlePlaces(s)
	case s.Request != "" && (strings.HasPrefix(s.To, store.ToChannel) || strings.HasPrefix(s.To, store.ToGroup)):
		r, err := t.Request(s.Request)
		if err != nil {
			return nil, err
		}
		for _, role := range r.Roles() {
			places = append(places, store.ToRole+role)
		}
	case s.Kind == store.OutboxElicitation && strings.HasPrefix(s.To, store.ToConversation):
		q, err := t.Elicitation(s.Ref)
		return []string{store.ToUser + q.Asked.User()}, err
	case strings.HasPrefix(s.To, store.ToConversation):
		turn, err := view.TurnOf(t, s)
		if err != nil {
			return nil, err
		}
		tn, err := t.Turn(turn)
		if err != nil {
			return nil, store.IgnoreNotFound(err)
		}
		for _, p := range tn.Requesters {
			if onSlack(p) {
				places = append(places, store.ToUser+p.User())
			}
		}
	}
	return places, nil
}

// rank returns the delivery priority of a new outbox message.
func (t outboxTx) rank(s store.OutboxMessage) (store.Rank, error) {
	switch s.Kind {
	case store.OutboxEscalation, store.OutboxUnknown, store.OutboxPause:
		return store.RankFirst, nil
	case store.OutboxCard, store.OutboxQuestion:
		return t.rankOf(s.Ref)
	case store.OutboxBundle:
		requests, err := t.cards.bundled(s)
		if slices.ContainsFunc(requests, isCritical) {
			return store.RankFirst, nil
		}
		return store.RankPlain, err
	case store.OutboxNotice:
		if s.Note == store.NoteBreakGlass {
			return store.RankFirst, nil // urgent: an approval can be revoked only until the run begins
		}
		if s.Note == store.NoteTurn || s.Note == store.NoteInvited { // the notice points to a card that exists already
			return t.rankOf(s.Ref)
		}
	case store.OutboxModelQuestion, store.OutboxElicitation, store.OutboxGrant, store.OutboxHome:
		return store.RankPlain, nil
	case store.OutboxAnswer, store.OutboxFile, store.OutboxProblem, store.OutboxGap: // delivered in the order in which they were created
		return store.RankAnswer, nil
	}
	return store.RankLast, nil
}

// rankOf returns the delivery priority of a message that asks people about a request.
func (t outboxTx) rankOf(request string) (store.Rank, error) {
	r, err := t.Request(request)
	if err != nil {
		return store.RankPlain, err
	}
	if isCritical(r) {
		return store.RankFirst, nil
	}
	return store.RankPlain, nil
}

func isCritical(r approvers.Request) bool { return r.Plan.Risk >= approvers.Critical }

// notify sends one person a direct message about a request. step identifies the question, the edit or the reminder in
// the message.
func (t outboxTx) notify(request string, who approvers.PersonID, note store.Note, step int) error {
	if !onSlack(who) {
		return nil
	}
	return t.add(store.OutboxMessage{Kind: store.OutboxNotice, Ref: request, Request: request, Step: step, To: store.ToUser + who.User(), Note: note})
}

// onSlack reports whether a person can get messages. The operator at the command line can't get any.
func onSlack(who approvers.PersonID) bool { return strings.Contains(string(who), "/") }

// Slack's rate limits may delay a step's message until the turn's answer is posted. In that case the answer describes
// the step, and the step needs no message of its own.

// toldOf ends the delivery of step messages if an answer already describes their steps.
func (t outboxTx) toldOf(answer store.OutboxMessage) error {
	if len(answer.Steps) == 0 {
		return nil
	}
	messages, err := t.OutboxMessagesOf(answer.Ref)
	if err != nil {
		return err
	}
	for _, s := range messages {
		if !view.IsUntold(s) || !slices.Contains(answer.Steps, s.Step) {
			continue
		}
		s.State = store.OutboxRemoved
		if err := t.PutOutboxMessage(s); err != nil {
			return err
		}
		if err := t.shownAsWanted(s); err != nil {
			return err
		}
	}
	return nil
}

// Viewing is a rendering of a request that only one person saw, in a form or on this person's Home tab.
type Viewing struct {
	Request string
	Digest  string // digest of the execution that was shown
	Who     approvers.PersonID
	As      string // "view", "home"
	Body    []byte // text and blocks as JSON
}

// Viewed records what a person saw, once for each person and each body. Viewed returns the body's hash.
func (w *Outbox) Viewed(ctx context.Context, v Viewing) (rendering string, err error) {
	rendering = view.HashOf(v.Body)
	err = w.update(ctx, "viewed", func(t *tx) error {
		known, err := view.WasShown(t, v.Request, v.Who, rendering)
		if err != nil || known {
			return err
		}
		facts := map[string]string{approvers.FactShownAs: v.As, "to": store.ToUser + v.Who.User(), "rendering": rendering, "digest": v.Digest}
		return t.audit(v.Request, approvers.AuditShown, v.Who, facts, v.Body)
	})
	return rendering, err
}
