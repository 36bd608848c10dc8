package view

import (
	"slices"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// CardQueue is the content of the notice about a card queue: the requests at an address that wait until other cards are
// decided.
type CardQueue struct {
	Waiting int                 // how many requests wait
	Open    int                 // how many cards are open, which means that nobody has decided them
	First   []approvers.Request // the oldest few requests that wait
}

// firstQueued is the number of waiting requests that the notice about a card queue names.
const firstQueued = 3

// readCardQueue reads the content of a queue's notice. If the queue is empty or has a newer notice, m.CardQueue stays
// nil.
func (m *Model) readCardQueue(r store.Reader, ref string) error {
	address, round := settings.ParseCardQueueNotice(ref)
	l, _, err := settings.ReadCardQueue(r, address)
	if err != nil || len(l.Held) == 0 || l.Round != round {
		return err
	}
	m.CardQueue = &CardQueue{Waiting: l.Waiting(), Open: len(l.Open)}
	for _, c := range l.Held {
		for _, id := range c.Requests {
			if len(m.CardQueue.First) == firstQueued {
				return nil
			}
			req, err := r.Request(id)
			if err != nil {
				return err
			}
			m.CardQueue.First = append(m.CardQueue.First, req)
		}
	}
	return nil
}

// isQueued reports whether a request waits in the queue of every address of its stage.
func (m *Model) isQueued(r store.Reader, req approvers.Request) (bool, error) {
	if len(req.QueuedAt) == 0 || req.State != approvers.Pending {
		return false, nil
	}
	for _, address := range Addresses(m.Policy, req) {
		l, _, err := settings.ReadCardQueue(r, address)
		if err != nil || !l.Waits(req.ID) {
			return false, err
		}
	}
	return true, nil
}

// readCards lists the cards of a request that are in Slack: its own cards, and the cards of its bundle.
func readCards(r store.Reader, req approvers.Request) (cards []store.OutboxMessage, err error) {
	messages, err := r.OutboxMessagesOf(req.ID)
	if err != nil {
		return nil, err
	}
	if req.Bundled() {
		others, err := r.OutboxMessagesOf(req.Turn)
		if err != nil {
			return nil, err
		}
		messages = append(messages, others...)
	}
	for _, s := range messages {
		if s.TS != "" && (s.State == store.OutboxShown || s.State == store.OutboxWanted) && (IsCard(s.Kind) || s.Kind == store.OutboxBundle && s.Bundle == req.Bundle) {
			cards = append(cards, s)
		}
	}
	return cards, nil
}

// Addresses returns the addresses at which the approvers of a request's stage read their cards. A role has one card
// address. The members of a user group read their cards by direct message. Each address is listed once.
func Addresses(p *approvers.Policy, r approvers.Request) []string {
	if r.Stage >= len(r.Plan.Stages) {
		return nil
	}
	stage := r.CurrentStage()
	if stage.Group != "" {
		return []string{store.ToGroup + stage.Group}
	}
	var out []string
	for _, role := range stage.Roles() {
		if to := CardAddress(p, role); !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// CardAddress returns the address of a role's cards: the role's channel, or the direct messages of the role's members.
func CardAddress(p *approvers.Policy, name string) string {
	if role, ok := p.Role(name); ok && role.Cards != "" && role.Cards != approvers.CardsDM {
		return store.ToChannel + role.Cards
	}
	return store.ToRole + name
}

// IsCard reports whether outbox messages of a kind show a request's card. These kinds are OutboxCard and
// OutboxEscalation.
func IsCard(k store.OutboxKind) bool { return k == store.OutboxCard || k == store.OutboxEscalation }
