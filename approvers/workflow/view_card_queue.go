package workflow

import (
	"countersign/approvers"
	"countersign/store"
)

// CardQueueView is a line at an address as its notice shows it.
type CardQueueView struct {
	Waiting int                 // requests that wait
	Open    int                 // undecided cards before them
	First   []approvers.Request // the oldest few of those that wait
}

// firstQueued is how many of those that wait a notice names.
const firstQueued = 3

// viewCardQueue reads what a line's notice shows; nothing if nobody waits any more, or people have been told anew
// since.
func (m *ViewModel) viewCardQueue(r store.Reader, ref string) error {
	address, round := noticed(ref)
	l, _, err := readCardQueue(r, address)
	if err != nil || len(l.Held) == 0 || l.Round != round {
		return err
	}
	m.CardQueue = &CardQueueView{Waiting: l.waiting(), Open: len(l.Open)}
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

// isQueued reports whether a request's card waits in line wherever its stage's people read theirs.
func (m *ViewModel) isQueued(r store.Reader, req approvers.Request) (bool, error) {
	if len(req.QueuedAt) == 0 || req.State != approvers.Pending {
		return false, nil
	}
	for _, address := range addresses(m.Policy, req) {
		l, _, err := readCardQueue(r, address)
		if err != nil || !l.waits(req.ID) {
			return false, err
		}
	}
	return true, nil
}

// viewCards lists the cards that Slack shows of a request: its own, and its bundle.
func viewCards(r store.Reader, req approvers.Request) (cards []store.OutboxMessage, err error) {
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
		if s.TS != "" && (s.State == store.OutboxShown || s.State == store.OutboxWanted) && (isCard(s.Kind) || s.Kind == store.OutboxBundle && s.Bundle == req.Bundle) {
			cards = append(cards, s)
		}
	}
	return cards, nil
}
