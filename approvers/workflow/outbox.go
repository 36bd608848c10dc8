package workflow

import (
	"errors"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Addresses of outbox messages. See store.OutboxMessage.To.
const (
	toConversation = "conversation:"
	toChannel      = "channel:"
	toUser         = "user:"
	toRole         = "role:"
	toGroup        = "group:"
)

// newOutboxMessage makes a new outbox message and has it shown.
func (t *tx) newOutboxMessage(s store.OutboxMessage) error {
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
	return t.showNow(s)
}

// Made reports whether it was this process that made an outbox message. What another made may be posted already without
// anybody having recorded it.
func (w *Workflow) Made(s store.OutboxMessage) bool { return s.Process == w.owner }

// refresh is something that a transaction has shown again: an outbox message, all outbox messages of a ref, or those of
// one kind and step, or of a bundle. What changes later in the transaction is shown with it.
type refresh struct {
	ref    string
	kind   store.OutboxKind
	step   int
	bundle string
}

// markRefreshed notes what is shown again. It reports whether it was noted before.
func (t *tx) markRefreshed(what refresh) bool {
	before := t.refreshed[what]
	t.refreshed[what] = true
	return before
}

func (t *tx) showNow(s store.OutboxMessage) error {
	due := t.now
	if cur, err := t.Timer(s.Rank.Timer(), s.ID); err == nil && cur.Due.Equal(due) {
		due = due.Add(time.Microsecond) // another one than the one that is being handled
	} else if ignoreNotFound(err) != nil {
		return err
	}
	return t.SetTimer(store.Timer{Kind: s.Rank.Timer(), Ref: s.ID, Due: due, Lane: s.To})
}

// shownAsWanted clears the timer of an outbox message that needs nothing of Slack any more.
func (t *tx) shownAsWanted(s store.OutboxMessage) error { return t.ClearTimer(s.Rank.Timer(), s.ID) }

// changed has an outbox message shown again because what it shows has changed. One that waits to be shown keeps its
// turn: what is shown then is how it is then, so that any number of changes are one message.
func (t *tx) changed(s store.OutboxMessage) error {
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

// changedRef has every outbox message of something shown again.
func (t *tx) changedRef(ref string) error {
	return t.changedThose(refresh{ref: ref}, func(store.OutboxMessage) bool { return true })
}

// changedTurn has a turn's outbox messages of one kind shown again; step 0 means every step.
func (t *tx) changedTurn(turn string, kind store.OutboxKind, step int) error {
	return t.changedThose(refresh{ref: turn, kind: kind, step: step}, func(s store.OutboxMessage) bool {
		return s.Kind == kind && (step == 0 || s.Step == step)
	})
}

// changedThose has some outbox messages of something shown again.
func (t *tx) changedThose(those refresh, among func(store.OutboxMessage) bool) error {
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

// wantCard has the card of a request shown where the people of its stage read their cards. A place that has the card
// already only shows its new state.
func (t *tx) wantCard(r approvers.Request) error {
	for _, to := range t.addresses(r) {
		if err := t.wantQueued(r, to); err != nil {
			return err
		}
	}
	return nil
}

// addresses are where the people of a request's stage read their cards, each place once: where each of its roles does,
// or by direct message where a user group says who of them it is.
func (t *tx) addresses(r approvers.Request) []string { return addresses(t.policy, r) }

func addresses(p *approvers.Policy, r approvers.Request) []string {
	if r.Stage >= len(r.Plan.Stages) {
		return nil
	}
	stage := r.CurrentStage()
	if stage.Group != "" {
		return []string{toGroup + stage.Group}
	}
	var out []string
	for _, role := range stage.Roles() {
		if to := cardAddress(p, role); !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// cardAddress is where a role's cards go: its channel, or each member's direct messages.
func (t *tx) cardAddress(name string) string { return cardAddress(t.policy, name) }

func cardAddress(p *approvers.Policy, name string) string {
	if role, ok := p.Role(name); ok && role.Cards != "" && role.Cards != approvers.CardsDM {
		return toChannel + role.Cards
	}
	return toRole + name
}

// wantAt shows a request at an address unless it is shown there already.
func (t *tx) wantAt(r approvers.Request, kind store.OutboxKind, to, role string) error {
	return t.wantOnce(store.OutboxMessage{Kind: kind, Ref: r.ID, Request: r.ID, To: to, Role: role})
}

// wantOnce makes an outbox message unless there is one like it at the address.
func (t *tx) wantOnce(s store.OutboxMessage) error {
	messages, err := t.OutboxMessagesOf(s.Ref)
	if err != nil {
		return err
	}
	for _, o := range messages {
		if o.To == s.To && o.State != store.OutboxUnreachable && o.State != store.OutboxRemoved && o.Step == s.Step && o.Bundle == s.Bundle && o.Note == s.Note && alike(o.Kind, s.Kind) {
			return nil
		}
	}
	return t.newOutboxMessage(s)
}

// wantCurrent has something shown that is taken away when its time is over, or brings it up to date wherever it still
// is there.
func (t *tx) wantCurrent(s store.OutboxMessage) error {
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
	return t.newOutboxMessage(s)
}

// alike reports whether two kinds show the same: a card and an escalation both are the request's card.
func alike(a, b store.OutboxKind) bool { return a == b || isCard(a) && isCard(b) }

func isCard(k store.OutboxKind) bool { return k == store.OutboxCard || k == store.OutboxEscalation }

// elsewhere shows what Slack refused at one address at others, where there are any.
func (t *tx) elsewhere(s store.OutboxMessage) error {
	places, err := t.otherPlaces(s)
	if err != nil {
		return err
	}
	for _, to := range places {
		other := store.OutboxMessage{Kind: s.Kind, Ref: s.Ref, Step: s.Step, Request: s.Request, To: to, Bundle: s.Bundle, Note: s.Note}
		if err := t.wantOnce(other); err != nil {
			return err
		}
	}
	return nil
}

// otherPlaces are each member of the roles for what was to be in a channel or at a group's members, and each requester
// for what was to be in the conversation.
func (t *tx) otherPlaces(s store.OutboxMessage) (places []string, err error) {
	switch {
	case s.Kind == store.OutboxCardQueue && !strings.HasPrefix(s.To, toUser):
		return t.queueRecipients(s.To), nil
	case s.Kind == store.OutboxBundle && !strings.HasPrefix(s.To, toUser):
		return t.bundlePlaces(s)
	case s.Request != "" && (strings.HasPrefix(s.To, toChannel) || strings.HasPrefix(s.To, toGroup)):
		r, err := t.Request(s.Request)
		if err != nil {
			return nil, err
		}
		for _, role := range r.Roles() {
			places = append(places, toRole+role)
		}
	case s.Kind == store.OutboxElicitation && strings.HasPrefix(s.To, toConversation):
		q, err := t.Elicitation(s.Ref)
		return []string{toUser + q.Asked.User()}, err
	case strings.HasPrefix(s.To, toConversation):
		turn, err := t.turnOf(s)
		if err != nil {
			return nil, err
		}
		tn, err := t.Turn(turn)
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		for _, p := range tn.Requesters {
			places = append(places, toUser+p.User())
		}
	}
	return places, nil
}

// turnOf names the turn that an outbox message in a conversation belongs to.
func (t *tx) turnOf(s store.OutboxMessage) (string, error) {
	switch s.Kind {
	case store.OutboxUnknown, store.OutboxAttachment:
		e, err := t.Execution(s.Ref)
		return e.Turn, err
	case store.OutboxModelQuestion:
		call, err := t.Call(s.Ref)
		return call.Turn, err
	case store.OutboxElicitation:
		q, err := t.Elicitation(s.Ref)
		return q.Turn, err
	case store.OutboxQuestion:
		r, err := t.Request(s.Ref)
		return r.Turn, err
	}
	return s.Ref, nil
}
