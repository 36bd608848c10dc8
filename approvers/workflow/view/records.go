package view

import (
	"context"
	"errors"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// Request reads a request.
func (v *Reader) Request(ctx context.Context, id string) (req approvers.Request, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		req, err = r.Request(id)
		mask(v.Policy(), &req, nil)
		return err
	})
	return req, err
}

// RequestsOf lists the requests that a person asked for or took part in, newest first. The list starts after the
// request that the parameter before identifies.
func (v *Reader) RequestsOf(ctx context.Context, who approvers.PersonID, before store.RequestCursor, limit int) (list []approvers.Request, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		list, err = r.RequestsOf(who, before, limit)
		for i := range list {
			mask(v.Policy(), &list[i], nil)
		}
		return err
	})
	return list, err
}

// Chain lists the audit records of a request, oldest first.
func (v *Reader) Chain(ctx context.Context, request string) (records []approvers.AuditRecord, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		records, err = r.Audit(request)
		return err
	})
	return records, err
}

// Execution reads an execution with its exact arguments, without masking.
func (v *Reader) Execution(ctx context.Context, id string) (e approvers.Execution, err error) {
	err = v.store.View(ctx, func(r store.Reader) (err error) {
		e, err = r.Execution(id)
		return err
	})
	return e, err
}

// ErrNoResult means that the conversation has no run with this id, or that the run has no readable result.
var ErrNoResult = errors.New("this conversation has no run of that id with a result; take the id from the note that says what was cut")

// WholeResult returns the complete result of a run. The model may have received only the beginning of the result. If
// the run belongs to another conversation, the error is ErrNoResult.
func (v *Reader) WholeResult(ctx context.Context, conversation, execution string) (result string, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		result = ""
		e, err := r.Execution(execution)
		if errors.Is(err, store.ErrNotFound) || err == nil && (e.Conversation != conversation || e.FinishedAt.IsZero()) {
			return ErrNoResult
		}
		if err != nil {
			return err
		}
		result = e.Result
		files, err := r.Files(execution)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.Whole {
				data, err := r.FileData(execution, f.Index)
				result = string(data)
				return err
			}
		}
		return nil
	})
	return result, err
}

// Elicitation reads a question that a run asked a person.
func (v *Reader) Elicitation(ctx context.Context, id string) (q approvers.Elicitation, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		q, err = r.Elicitation(id)
		return err
	})
	return q, err
}

// Inbox reads a stored delivery by its id.
func (v *Reader) Inbox(ctx context.Context, id string) (row store.Inbox, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		row, err = r.Inbox(id)
		return err
	})
	return row, err
}

// Received reads up to which time the bot has received all messages, and which gap it is reading.
func (v *Reader) Received(ctx context.Context) (out settings.Received, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		out, _, err = settings.ReadReceived(r)
		return err
	})
	return out, err
}

// ConversationsSince lists the conversations that have messages from after a given time. The list has at most limit
// conversations.
func (v *Reader) ConversationsSince(ctx context.Context, at time.Time, limit int) (list []store.Conversation, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		list, err = r.ConversationsSince(at, limit)
		return err
	})
	return list, err
}

// Waiting reports whether the store has an open request.
func (v *Reader) Waiting(ctx context.Context) (waiting bool, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		open, err := r.OpenRequests(store.RequestCursor{}, 1)
		waiting = len(open) > 0
		return err
	})
	return waiting, err
}

// TurnAt returns the id of the current turn in a thread. If the thread has no current turn, TurnAt returns "".
func (v *Reader) TurnAt(ctx context.Context, team, channel, thread string) (turn string, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		conv, err := r.ConversationAt(store.Place(team, channel, thread))
		turn = conv.Turn
		return store.IgnoreNotFound(err)
	})
	return turn, err
}

// HasConversation reports whether there is a conversation in a thread.
func (v *Reader) HasConversation(ctx context.Context, team, channel, thread string) (bool, error) {
	err := v.store.View(ctx, func(r store.Reader) error {
		_, err := r.ConversationAt(store.Place(team, channel, thread))
		return err
	})
	return err == nil, store.IgnoreNotFound(err)
}

// Unseen lists the runs whose outcome people must find out after a restoration from a backup. These are runs that were
// in progress at the time of the backup, except runs of read-only tools, and runs whose outcome was unknown already.
func (v *Reader) Unseen(ctx context.Context) (runs []approvers.Execution, err error) {
	err = v.store.View(ctx, func(r store.Reader) error {
		runs = nil
		for _, kind := range []store.TimerKind{store.TimerRun, store.TimerOutcome, store.TimerLeave} {
			timers, err := r.Timers(kind, maxTimers)
			if err != nil {
				return err
			}
			for _, timer := range timers {
				e, err := r.Execution(timer.Ref)
				if store.IgnoreNotFound(err) != nil {
					return err
				}
				if err == nil && (e.State == approvers.ExecutionUnknown || e.State == approvers.ExecutionExecuting && e.Effect != approvers.ReadOnly) {
					runs = append(runs, e)
				}
			}
		}
		return nil
	})
	return runs, err
}

// Feedback returns the ratings of the answers of each agent in the policy. The keys are the names of the agents.
func (v *Reader) Feedback(ctx context.Context) (map[string]settings.Feedback, error) {
	out := map[string]settings.Feedback{}
	err := v.store.View(ctx, func(r store.Reader) error {
		for _, a := range v.Policy().Agents {
			got, _, err := settings.ReadFeedback(r, a.Name)
			if err != nil {
				return err
			}
			out[a.Name] = got
		}
		return nil
	})
	return out, err
}
