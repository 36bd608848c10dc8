package retention

import (
	"context"
	"errors"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// eraseTurns erases the turns that ended before the time in the parameter before, in conversations that have later
// messages. eraseTurns counts the turns.
func eraseTurns(ctx context.Context, wf *workflow.Workflow, before time.Time, done *Removed) error {
	var damaged damagedOnes
	seen := map[string]bool{}
	for from, more := before, true; more; {
		var page []store.Conversation
		err := wf.Store.View(ctx, func(r store.Reader) (err error) {
			page, err = r.ConversationsSince(from, len(seen)+pageSize)
			return err
		})
		if err != nil {
			return err
		}
		more = len(page) == len(seen)+pageSize
		latest := from
		for _, c := range page {
			latest = c.LastAt
			known := seen[c.ID]
			seen[c.ID] = true
			if known || !c.CreatedAt.Before(before) {
				continue
			}
			err := eraseTurnsIn(ctx, wf, c, before, done)
			if err != nil && !store.OnlyDamaged(err) {
				return err
			}
			if err != nil {
				damaged.add(err)
			}
		}
		if latest.After(from) { // the conversations with this time are read again, because a page may end between them
			from = latest
			clear(seen)
		}
	}
	return damaged.err("conversations with old turns")
}

// oldTurn is a turn that can be erased.
type oldTurn struct {
	store.TurnRecords
	chains   []string
	requests []approvers.Request
}

// eraseTurnsIn erases the old turns of a conversation, each in several short transactions: first the texts of its audit
// records, then the other records. As for eraseConversation, the turns are chosen before the transactions. If the
// conversation changes meanwhile, the next Enforce erases the other turns.
func eraseTurnsIn(ctx context.Context, wf *workflow.Workflow, c store.Conversation, before time.Time, done *Removed) error {
	var turns []oldTurn
	err := wf.Store.View(ctx, func(r store.Reader) (err error) {
		if c, err = r.Conversation(c.ID); err != nil {
			return store.IgnoreNotFound(err)
		}
		turns, err = oldTurns(r, c, before)
		return err
	})
	if err != nil {
		return err
	}
	for _, turn := range turns {
		for over := false; !over; {
			part := turn.chains[:min(len(turn.chains), textBatch)]
			changed := false
			err := wf.Update(ctx, "retain turns", func(t workflow.Tx) error {
				over = false
				now, err := t.Conversation(c.ID)
				if changed = err != nil || now.Version != c.Version; changed {
					return store.IgnoreNotFound(err)
				}
				if len(part) > 0 {
					return eraseTexts(t, part)
				}
				if err := resetStreaks(t, turn.requests, before); err != nil {
					return err
				}
				over, err = t.EraseTurn(turn.TurnRecords, batchSize)
				return err
			})
			if err != nil || changed {
				return err
			}
			turn.chains = turn.chains[len(part):]
		}
		done.Turns++
	}
	return nil
}

// oldTurns returns the turns of a conversation that can be erased, oldest first. The first of them also gets the old
// messages that belong to no turn, such as a message that was deleted before the model received it.
func oldTurns(r store.Reader, c store.Conversation, before time.Time) (old []oldTurn, err error) {
	messages, err := r.Messages(c.ID, 0)
	if err != nil {
		return nil, err
	}
	of := map[string][]store.Message{}
	var ids []string
	for _, m := range messages {
		if m.Turn != "" && of[m.Turn] == nil {
			ids = append(ids, m.Turn)
		}
		of[m.Turn] = append(of[m.Turn], m)
	}
	if len(ids) == 0 || !of[ids[0]][0].At.Before(before) {
		return nil, nil
	}
	requests, err := r.Requests(c.ID)
	if err != nil {
		return nil, err
	}
	runs, err := r.Executions(c.ID)
	if err != nil {
		return nil, err
	}
	grants, err := r.OpenGrants("")
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		turn, err := r.Turn(id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		calls, err := r.Calls(id)
		if err != nil {
			return nil, err
		}
		x := work{
			turn: turn, messages: of[id], calls: calls,
			requests: slices.DeleteFunc(slices.Clone(requests), func(q approvers.Request) bool { return q.Turn != id }),
			runs:     slices.DeleteFunc(slices.Clone(runs), func(e approvers.Execution) bool { return e.Turn != id }),
		}
		if id != c.Turn && x.endedBefore(before) && !x.isGranted(grants) {
			old = append(old, x.old())
		}
	}
	if len(old) > 0 {
		for _, m := range of[""] {
			if m.State != store.MessageQueued && m.At.Before(before) {
				old[0].Messages = append(old[0].Messages, m.Seq)
			}
		}
	}
	return old, nil
}

// work has the records of a turn.
type work struct {
	turn     approvers.Turn
	messages []store.Message
	calls    []store.Call
	requests []approvers.Request
	runs     []approvers.Execution
}

// endedBefore reports whether all work of the turn ended before a time. A run whose outcome is unknown has not ended.
func (x work) endedBefore(before time.Time) bool {
	young := !x.turn.Ended() || !x.turn.EndedAt.Before(before)
	for _, m := range x.messages {
		young = young || !m.At.Before(before) || m.State == store.MessageQueued
	}
	for _, c := range x.calls {
		young = young || c.Outcome == "" || !c.ReturnedAt.Before(before)
	}
	for _, q := range x.requests {
		young = young || q.State.Open() || !q.ClosedAt.Before(before)
	}
	for _, e := range x.runs {
		young = young || e.State == approvers.ExecutionExecuting || e.State == approvers.ExecutionUnknown || !e.FinishedAt.Before(before)
	}
	return !young
}

// isGranted reports whether an open grant was given on the card of one of the turn's requests, or allowed one of the
// turn's runs.
func (x work) isGranted(grants []approvers.Grant) bool {
	return slices.ContainsFunc(grants, func(g approvers.Grant) bool {
		return slices.ContainsFunc(x.requests, func(q approvers.Request) bool { return q.ID == g.Request }) ||
			slices.ContainsFunc(x.runs, func(e approvers.Execution) bool { return e.Grant == g.ID })
	})
}

func (x work) old() oldTurn {
	out := oldTurn{TurnRecords: store.TurnRecords{ID: x.turn.ID}, chains: chainsOf(x.calls, x.requests, x.runs), requests: x.requests}
	for _, m := range x.messages {
		out.Messages = append(out.Messages, m.Seq)
	}
	for _, q := range x.requests {
		out.Requests = append(out.Requests, q.ID)
	}
	for _, e := range x.runs {
		out.Executions = append(out.Executions, e.ID)
	}
	return out
}
