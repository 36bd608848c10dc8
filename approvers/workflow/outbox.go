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
		return nil // a caller's conversation shows no messages, because the caller reads the state of its request
	}
	s, err := t.put(s)
	if err != nil {
		return err
	}
	return t.showAt(s, t.now) // the message has a new id, so it has no timer yet
}

// put stores a new outbox message, and does not schedule its delivery.
func (t outboxTx) put(s store.OutboxMessage) (store.OutboxMessage, error) {
	rank, err := t.rank(s)
	if err != nil {
		return s, err
	}
	s.ID, s.State, s.Revision, s.CreatedAt, s.Rank = t.newID("s"), store.OutboxWanted, 1, t.now, rank
	s.Process, s.After = t.w.owner, t.w.slack.time()
	t.refreshed[refresh{ref: s.ID}] = true
	return s, t.PutOutboxMessage(s)
}

// refresh identifies a set of outbox messages: one message, all messages with one Ref, a turn's messages of one kind
// and step, or the messages of a bundle. A transaction records each refresh that it has scheduled, so that it schedules
// no refresh twice.
type refresh struct {
	ref    string
	kind   store.OutboxKind
	step   int
	bundle string
}

// markRefreshed records a refresh. If the transaction has recorded the same refresh before, markRefreshed returns true.
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

// t.changed schedules an update of an outbox message whose content has changed. If the message waits for delivery
// already, it keeps its place in the delivery queue. The bot renders a message just before it sends the message, so one
// update can show several changes.
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

// changedRef schedules an update of all outbox messages with the given Ref.
func (t outboxTx) changedRef(ref string) error {
	return t.changedThose(refresh{ref: ref}, func(store.OutboxMessage) bool { return true })
}

// changedTurn schedules an update of a turn's outbox messages of one kind and step. If step is 0, the messages of all
// steps are updated.
func (t outboxTx) changedTurn(turn string, kind store.OutboxKind, step int) error {
	return t.changedThose(refresh{ref: turn, kind: kind, step: step}, func(s store.OutboxMessage) bool {
		return s.Kind == kind && (step == 0 || s.Step == step)
	})
}

// changedThose schedules an update of the outbox messages that have the Ref those.ref, and for which the callback
// "among" returns true.
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

// wantCard shows a request's card at every address where the approvers of its stage read their cards. If an address has
// the card already, wantCard does nothing there.
func (t cardsTx) wantCard(r approvers.Request) error {
	for _, to := range t.addresses(r) {
		if err := t.wantQueued(r, to); err != nil {
			return err
		}
	}
	return nil
}

// wantInvited shows a request's own card to the invited people who have none, for example because they had only the
// card of the bundle that the request has left.
func (t cardsTx) wantInvited(r approvers.Request) error {
	for _, i := range r.Invited {
		want := t.wantThere
		if i.Away { // only a stand-in's cards wait in a queue
			want = t.wantQueued
		}
		if err := want(r, store.ToUser+i.Who.User()); err != nil {
			return err
		}
	}
	return nil
}

// showJoined shows a request's card to people who may decide the current stage and have no card. For example, such a
// person joined a user group, or was absent, when the card went to the members by direct message. The card of each role
// or group of these people goes to the current members again. People who have the card get no second card: if they got
// the card before their turn began, the card asks them again.
func (t cardsTx) showJoined(r approvers.Request, people []approvers.Presence) error {
	messages, err := t.reposts.cardsOf(r)
	if err != nil {
		return err
	}
	var joined []approvers.Identity
	for _, p := range people {
		since, may := r.TurnOf(t.policy, p.Who)
		card, has := hasCard(messages, atPerson(p.Who))
		switch {
		case !may || p.Away:
		case !has:
			joined = append(joined, p.Who)
		case card.CreatedAt.Before(since) && card.AskedAt.Before(since):
			if err := t.askAgain(card); err != nil {
				return err
			}
		}
	}
	for _, s := range messages {
		if s.State == store.OutboxExpanded && slices.ContainsFunc(joined, func(who approvers.Identity) bool { return t.isFor(r, s.To, who) }) {
			if err := t.tryAgain(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasCard reports whether a person has a card of a request in the person's direct messages, and returns this card. The
// parameter cards has the request's cards (cardsOf), and "is" reports whether an address is for the person. The card
// may be the request's own card, an escalation, or the card of the bundle to which the request still belongs. A card
// from an earlier stage counts, because the bot updates it. A card that Slack refused also counts: the bot tries this
// card again, and does not replace it.
func hasCard(cards []store.OutboxMessage, is func(to string) bool) (card store.OutboxMessage, has bool) {
	i := slices.IndexFunc(cards, func(s store.OutboxMessage) bool { return s.State != store.OutboxRemoved && is(s.To) })
	if i < 0 {
		return card, false
	}
	return cards[i], true
}

// withCards returns the people with the times at which they got their cards. Some people have no card, although the
// card of their role or group was sent to its members earlier. For these people, the time is now, because showJoined
// sends the card to them.
func (t cardsTx) withCards(r approvers.Request, cards []store.OutboxMessage, people []approvers.Presence) []approvers.Presence {
	out := slices.Clone(people)
	for i := range out {
		who := out[i].Who
		if card, has := hasCard(cards, atPerson(who)); has {
			out[i].CardAt = card.CreatedAt
			continue
		}
		if slices.ContainsFunc(cards, func(s store.OutboxMessage) bool {
			return (s.State == store.OutboxExpanded || s.ShownRevision > 0) && t.isFor(r, s.To, who)
		}) {
			out[i].CardAt = t.now
		}
	}
	return out
}

// hadCard reports whether one of the given cards is at an address. If there is such a card, hadCard makes it ask the
// person again.
func (t cardsTx) hadCard(cards []store.OutboxMessage, to string) (bool, error) {
	card, has := hasCard(cards, func(other string) bool { return other == to })
	if !has {
		return false, nil
	}
	return true, t.askAgain(card)
}

// askAgain records that an existing card asks its person again, for example in a later stage. If Slack refused the
// card, askAgain tries the card again.
func (t cardsTx) askAgain(card store.OutboxMessage) error {
	card.AskedAt = t.now
	if card.State == store.OutboxUnreachable {
		return t.tryAgain(card)
	}
	return t.PutOutboxMessage(card)
}

// isFor reports whether an address is a role or the user group of the request's current stage, and the person is a
// member.
func (t cardsTx) isFor(r approvers.Request, to string, who approvers.Identity) bool {
	if group, ok := strings.CutPrefix(to, store.ToGroup); ok {
		return group == r.CurrentStage().Group && slices.Contains(who.Groups, group)
	}
	name, ok := strings.CutPrefix(to, store.ToRole)
	role, known := t.policy.Role(name)
	return ok && known && slices.Contains(r.Roles(), name) && role.Holds(who)
}

// t.addresses returns the addresses at which the approvers of a request's stage read their cards. A role has one card
// address. The members of a user group read their cards by direct message. Each address is listed once.
func (t cardsTx) addresses(r approvers.Request) []string { return view.Addresses(t.policy, r) }

// cardAddress returns the address of a role's cards: the role's channel, or the direct messages of the role's members.
func (t cardsTx) cardAddress(name string) string { return view.CardAddress(t.policy, name) }

// wantAt shows a request at an address. If the address shows the request already, wantAt does nothing.
func (t outboxTx) wantAt(r approvers.Request, kind store.OutboxKind, to, role string) error {
	return t.wantOnce(store.OutboxMessage{Kind: kind, Ref: r.ID, Request: r.ID, To: to, Role: role})
}

// wantOnce creates an outbox message. If the address has a similar message already, wantOnce does nothing.
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

// wantCurrent schedules an update of all messages with the same Ref, kind and step as s. If there is no such message,
// wantCurrent creates s.
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

// alike reports whether messages of two kinds show the same content. For example, a card and an escalation both show
// the request's card.
func alike(a, b store.OutboxKind) bool { return a == b || view.IsCard(a) && view.IsCard(b) }

// elsewhere sends a refused message to its other addresses.
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
// request's roles. A message for the conversation goes to each requester. A tool's question goes only to the person who
// was asked.
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
		if s.Note == store.NoteTurn || s.Note == store.NoteInvited { // the notice asks a person to decide
			return t.rankOf(s.Ref)
		}
	case store.OutboxModelQuestion, store.OutboxElicitation, store.OutboxGrant, store.OutboxHome, store.OutboxOperators:
		return store.RankPlain, nil
	case store.OutboxAnswer, store.OutboxFile, store.OutboxProblem, store.OutboxGap: // delivered in the order in which they were created
		return store.RankAnswer, nil
	}
	return store.RankLast, nil
}

// rankOf returns the delivery priority of a message that asks people to decide a request.
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

// notify sends one person a direct message about a request. The parameter step identifies the question, the edit or the
// reminder in the message.
func (t outboxTx) notify(request string, who approvers.PersonID, note store.Note, step int) error {
	if !onSlack(who) {
		return nil
	}
	return t.add(store.OutboxMessage{Kind: store.OutboxNotice, Ref: request, Request: request, Step: step, To: store.ToUser + who.User(), Note: note})
}

// onSlack reports whether a person can get messages. The operator at the command line and callers can't get messages.
func onSlack(who approvers.PersonID) bool { return strings.Contains(string(who), "/") }

// Slack's rate limits may delay the message about a step until the turn's answer is posted. The answer then describes
// the step, so the bot does not post the message about the step.

// toldOf cancels the delivery of messages about steps, if the answer describes these steps.
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

// Viewing is a rendering of a request in a form or on a Home tab. Only one person saw this rendering.
type Viewing struct {
	Request string
	Digest  string // digest of the execution that was shown
	Who     approvers.PersonID
	As      string // where the person saw the rendering: "view" (a form) or "home" (a Home tab)
	Body    []byte // text and blocks as JSON
}

// Viewed records which body a person saw. Each combination of a person and a body is recorded once. Viewed returns the
// hash of the body.
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

// Looked closes the delivery of a click that only opened a form. The parameter redraw is the id of the clicked outbox
// message if the message shows an earlier stage or plan. The message is then rendered again. Otherwise redraw is empty.
func (w *Outbox) Looked(ctx context.Context, c Click, redraw string) error {
	return w.update(ctx, "looked", func(t *tx) error {
		if err := t.settle(c.Inbox, ""); err != nil {
			return err
		}
		return t.outbox.drawAgain(redraw, c, &approvers.Denied{Code: approvers.DeniedStage})
	})
}
