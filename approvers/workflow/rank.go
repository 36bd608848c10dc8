package workflow

import (
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// rank returns the rank with which a new outbox message is delivered.
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
			return store.RankFirst, nil // the people who may revoke it have only until the run
		}
		if s.Note == store.NoteTurn || s.Note == store.NoteInvited { // the notice stands for a card that exists already
			return t.rankOf(s.Ref)
		}
	case store.OutboxModelQuestion, store.OutboxElicitation, store.OutboxGrant, store.OutboxHome:
		return store.RankPlain, nil
	case store.OutboxAnswer, store.OutboxFile, store.OutboxProblem:
		return store.RankAnswer, nil
	}
	return store.RankLast, nil
}

// rankOf returns the rank of a message that asks people about a request.
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
