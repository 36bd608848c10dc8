package invariants

import (
	"errors"
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// timersNameSomething finds timers of work that has ended. The timer of a run may remain after the run's request has
// ended, because the next claim of the run clears the timer.
func timersNameSomething(r store.Reader) error {
	wanted := func(ref string) (bool, error) {
		s, err := r.OutboxMessage(ref)
		return s.State == store.OutboxWanted, err
	}
	alive := map[store.TimerKind]func(ref string) (bool, error){
		store.TimerShowFirst: wanted, store.TimerShow: wanted, store.TimerShowAnswer: wanted, store.TimerShowLast: wanted,
		store.TimerInbox: func(ref string) (bool, error) {
			row, err := r.Inbox(ref)
			return row.HandledAt.IsZero(), err
		},
		store.TimerThink: func(ref string) (bool, error) {
			turn, err := r.Turn(ref)
			return turn.State == approvers.TurnQueued || turn.State == approvers.TurnThinking, err
		},
		store.TimerRun: func(ref string) (bool, error) {
			e, err := r.Execution(ref)
			return e.State == approvers.ExecutionNone || e.State == approvers.ExecutionExecuting, err
		},
		store.TimerExpire: func(ref string) (bool, error) {
			req, err := r.Request(ref)
			return req.State.Open(), err
		},
		store.TimerEscalate: func(ref string) (bool, error) {
			req, err := r.Request(ref)
			return req.State == approvers.Pending && !req.EscalateAt.IsZero(), err
		},
		store.TimerRemind: func(ref string) (bool, error) {
			req, err := r.Request(ref)
			return req.State == approvers.Pending && !req.RemindNext().IsZero(), err
		},
		store.TimerPreview: func(ref string) (bool, error) {
			req, err := r.Request(ref)
			return req.State == approvers.Pending && req.ToolPreview.Making(), err
		},
		store.TimerAvailability: func(ref string) (bool, error) {
			req, err := r.Request(ref)
			return req.State == approvers.Pending, err
		},
		store.TimerAway: func(ref string) (bool, error) {
			_, err := r.Absence(approvers.PersonID(ref))
			return err == nil, err
		},
		store.TimerGrant: func(ref string) (bool, error) {
			g, err := r.Grant(ref)
			return g.State.Open(), err
		},
		store.TimerModelQuestion: func(ref string) (bool, error) {
			call, err := r.Call(ref)
			return call.ModelQuestion != nil && call.Outcome == "", err
		},
		store.TimerElicit: func(ref string) (bool, error) {
			q, err := r.Elicitation(ref)
			if err != nil || q.State != approvers.ElicitationOpen {
				return false, err
			}
			e, err := r.Execution(q.Execution)
			return e.State == approvers.ExecutionExecuting, err
		},
		store.TimerChannel: func(ref string) (bool, error) {
			s, err := r.Setting(store.SettingChannelState + ref)
			return strings.Contains(string(s.Value), `"lost":true`), err
		},
		store.TimerHome: func(ref string) (bool, error) {
			s, err := r.OutboxMessage(ref)
			return s.Home != nil && !s.Home.Idle, err
		},
		store.TimerRepost: func(ref string) (bool, error) {
			s, err := r.OutboxMessage(ref)
			return s.State == store.OutboxLost || s.State == store.OutboxUnreachable || s.State == store.OutboxExpanded, err
		},
		store.TimerLeftover: func(ref string) (bool, error) {
			s, err := r.OutboxMessage(ref)
			return len(s.Leftovers) > 0, err
		},
		store.TimerLeave: func(ref string) (bool, error) {
			e, err := r.Execution(ref)
			return e.State == approvers.ExecutionUnknown, err
		},
		store.TimerOutcome: func(ref string) (bool, error) {
			e, err := r.Execution(ref)
			return e.Caller != "" && (e.State == approvers.ExecutionExecuting || e.State == approvers.ExecutionNone && e.Request == ""), err
		},
		store.TimerWebhook: func(ref string) (bool, error) {
			call, err := r.Call(ref)
			if err != nil {
				return false, err
			}
			conv, err := r.Conversation(call.Conversation)
			return conv.Caller != nil, err
		},
		store.TimerPause: func(ref string) (bool, error) { return ref == store.SettingPause, nil },
		store.TimerCatchUp: func(string) (bool, error) {
			now, _, err := settings.ReadReceived(r)
			return now.Gap != nil, err
		},
		store.TimerHomes: func(ref string) (bool, error) { return ref == store.SettingHomes, nil },
	}
	var faults []error
	for _, kind := range store.TimerKinds {
		isAlive := alive[kind]
		if isAlive == nil {
			faults = append(faults, fmt.Errorf("this package has no rule for timers of the kind %s", kind))
			continue
		}
		timers, err := r.Timers(kind, most)
		if err != nil {
			return err
		}
		for _, t := range timers {
			ok, err := isAlive(t.Ref)
			if err != nil {
				return err
			}
			if !ok {
				faults = append(faults, fmt.Errorf("a timer of the kind %s is left for %s, which is over", kind, t.Ref))
			}
			if err := inConversation(r, t); err != nil {
				faults = append(faults, err)
			}
		}
	}
	return errors.Join(faults...)
}

// inConversation returns an error if the timer of a turn or a run does not have the affinity of its conversation.
// Because of the affinity, one replica does all work of a conversation.
func inConversation(r store.Reader, t store.Timer) error {
	conversation := ""
	switch t.Kind {
	case store.TimerThink:
		turn, err := r.Turn(t.Ref)
		if err != nil {
			return store.IgnoreNotFound(err)
		}
		conversation = turn.Conversation
	case store.TimerRun:
		e, err := r.Execution(t.Ref)
		if err != nil {
			return store.IgnoreNotFound(err)
		}
		conversation = e.Conversation
	default:
		return nil
	}
	if want := store.ToConversation + conversation; t.Affinity != want {
		return fmt.Errorf("a timer %s of %s has the affinity %q instead of %q", t.Kind, t.Ref, t.Affinity, want)
	}
	return nil
}

// requestsHaveTimers finds open requests that lack one of their timers. requestsHaveTimers also finds open requests
// whose turn does not wait, or whose execution has begun or has another digest.
func requestsHaveTimers(r store.Reader) error {
	requests, err := r.OpenRequests(store.RequestCursor{}, most)
	if err != nil {
		return err
	}
	var faults []error
	for _, req := range requests {
		if _, err := r.Timer(store.TimerExpire, req.ID); err != nil {
			faults = append(faults, fmt.Errorf("%s request %s never expires: %w", req.State, req.ID, err))
		}
		if req.State == approvers.Approved && !req.Facts.Caller.Begins() {
			if _, err := r.Timer(store.TimerRun, req.Execution); err != nil {
				faults = append(faults, fmt.Errorf("approved request %s is never run: %w", req.ID, err))
			}
		}
		if req.State == approvers.Pending && !req.EscalateAt.IsZero() {
			if _, err := r.Timer(store.TimerEscalate, req.ID); err != nil {
				faults = append(faults, fmt.Errorf("request %s is never escalated: %w", req.ID, err))
			}
		}
		if req.State == approvers.Pending && !req.RemindNext().IsZero() {
			if _, err := r.Timer(store.TimerRemind, req.ID); err != nil {
				faults = append(faults, fmt.Errorf("request %s has no reminder: %w", req.ID, err))
			}
		}
		turn, err := r.Turn(req.Turn)
		if err != nil {
			return err
		}
		if turn.State != approvers.TurnWaiting {
			faults = append(faults, fmt.Errorf("request %s is %s in a turn that is %s", req.ID, req.State, turn.State))
		}
		e, err := r.Execution(req.Execution)
		if err != nil {
			return err
		}
		if e.State != approvers.ExecutionNone || e.Digest != req.Digest {
			faults = append(faults, fmt.Errorf("request %s is %s, but its execution is %s or has another digest", req.ID, req.State, e.State))
		}
	}
	return errors.Join(faults...)
}
