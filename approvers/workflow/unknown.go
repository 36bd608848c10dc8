package workflow

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// maxTries is the maximum number of runs of one execution. An execution runs again only if its last run was
// interrupted (the process stopped, or a pause began), or if an idempotent tool gave no clear answer.
const maxTries = 5

// recover handles an execution whose run was interrupted: the process stopped, or a pause began. If the run can be
// repeated, recover starts the next run and returns true. If not, the outcome is unknown, and the bot asks people. If
// the run's turn was stopped, recover ends the run as cutOff does.
func (t runsTx) recover(e *approvers.Execution) (bool, error) {
	if err := t.questions.cancelElicitations(e.ID, whyStopped); err != nil {
		return false, err
	}
	if stopped, err := isStopped(t, *e); stopped || err != nil {
		return false, errors.Join(err, t.cutOff(*e))
	}
	// After a change of its definition, the tool may no longer be idempotent.
	same := e.Effect == approvers.ReadOnly || t.unlike(e.Tool, e.ToolHash) == ""
	if repeatable(*e) && same {
		return t.start(e, approvers.Execution.Retry)
	}
	why := approvers.LossStopped
	if e.Effect != approvers.Unprotected && e.Owner == t.w.owner {
		why = approvers.LossUnclear // this process made the last try, and got no clear answer
	}
	return false, t.markUnknown(*e, why)
}

// repeatable reports whether the bot may repeat an interrupted run. If a caller runs the call, the bot can't repeat the
// run.
func repeatable(e approvers.Execution) bool {
	if e.Caller != "" {
		return false
	}
	return e.Effect != approvers.Unprotected && e.Tries < maxTries
}

// MarkInterrupted marks the outcome of each interrupted run as unknown, unless the run can be repeated. A running bot
// does this when it claims such a run. MarkInterrupted is for commands that use the store while no bot runs. If all
// interrupted runs can be repeated, MarkInterrupted writes nothing.
func (w *Runs) MarkInterrupted(ctx context.Context) error {
	found := true
	err := w.Store.View(ctx, func(r store.Reader) error {
		cut, err := cutRuns(r)
		found = len(cut) > 0
		return err
	})
	if err != nil || !found {
		return err
	}
	return w.record(ctx, "mark interrupted", func(t *tx) error {
		cut, err := cutRuns(t)
		for _, e := range cut {
			if err := t.runs.markUnknown(e, approvers.LossStopped); err != nil {
				return err
			}
		}
		return err
	})
}

// cutRuns returns the interrupted runs that can't be repeated.
func cutRuns(r store.Reader) (cut []approvers.Execution, err error) {
	timers, err := r.Timers(store.TimerRun, mostRuns)
	if err != nil {
		return nil, err
	}
	for _, timer := range timers {
		e, err := r.Execution(timer.Ref)
		if store.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil && e.State == approvers.ExecutionExecuting && !repeatable(e) {
			cut = append(cut, e)
		}
	}
	return cut, nil
}

// MarkUnknown records that a run ended with an unknown outcome. For example, the tool could not tell whether the call
// took effect, or a pause interrupted the run. The bot asks people for the outcome.
func (w *Runs) MarkUnknown(ctx context.Context, execution string) error {
	return w.record(ctx, "mark unknown", func(t *tx) error {
		e, err := t.Execution(execution)
		if err != nil {
			return err
		}
		p, _, err := settings.ReadPause(t)
		if err != nil {
			return err
		}
		why := approvers.LossUnclear
		if p.On {
			why = approvers.LossPaused
		}
		if stopped, err := isStopped(t, e); stopped || err != nil {
			return errors.Join(err, t.runs.cutOff(e))
		}
		return t.runs.markUnknown(e, why)
	})
}

// markUnknown marks a run's outcome as unknown, and asks people.
func (t runsTx) markUnknown(e approvers.Execution, why approvers.Loss) error {
	if err := t.questions.cancelElicitations(e.ID, whyOver); err != nil {
		return err
	}
	lost, err := e.Lose(why, t.now)
	if err != nil {
		return err
	}
	t.countRun(lost)
	if err := t.PutExecution(lost); err != nil {
		return err
	}
	if err := t.audit(lost.Chain(), approvers.AuditUnknown, "", map[string]string{"execution": lost.ID, "digest": lost.Digest, "why": string(why)}, nil); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerRun, lost.ID); err != nil {
		return err
	}
	if err := t.clearOutcome(lost); err != nil {
		return err
	}
	if err := t.grants.resetStreakOfTool(lost); err != nil {
		return err
	}
	t.note(slog.LevelWarn, "the outcome of a run is unknown; people are asked", "request", lost.Request, "execution", lost.ID, "conversation", lost.Conversation, "tool", lost.Tool)
	return t.askWhatHappened(lost)
}

// PutBack reschedules a repeatable run that a pause interrupted. The run starts again when the pause ends.
func (w *Runs) PutBack(ctx context.Context, execution string) error {
	return w.update(ctx, "put back", func(t *tx) error {
		e, err := t.Execution(execution)
		if err != nil {
			return err
		}
		if e.State != approvers.ExecutionExecuting || e.Owner != t.w.owner {
			return ErrNotDue
		}
		if err := t.proposals.runNow(e); err != nil {
			return err
		}
		return t.runs.changedStep(e)
	})
}

// mostRuns is the maximum number of runs of earlier processes that Recover reads. Normally, far fewer runs are in
// progress at the same time. A run beyond the limit is recovered when its lease ends.
const mostRuns = 10_000

// Recover finds executions that were interrupted in an earlier process: the store has the execution as running, but
// this process has no handler for the execution. Recover makes these executions and unfinished tool previews due
// immediately. Recover also sets missing timers of absences. shares are the shares of timers that this process has taken
// over. If no other process uses the store, these are all shares.
func (w *Runs) Recover(ctx context.Context, shares store.Shares) error {
	return w.update(ctx, "recover", func(t *tx) error {
		timers, err := t.TimersIn(shares, store.TimerRun, time.Time{}, mostRuns)
		if err != nil {
			return err
		}
		for _, timer := range timers {
			if !timer.Due.After(t.now) || w.running.has(handled{timer.Kind, timer.Ref}) {
				continue
			}
			e, err := t.Execution(timer.Ref)
			if err != nil {
				return err
			}
			if e.State == approvers.ExecutionExecuting {
				timer.Due = t.now
				if err := t.SetTimer(timer); err != nil {
					return err
				}
			}
		}
		return errors.Join(t.previews.recoverPreviews(shares), t.people.recoverAbsences(shares))
	})
}

// Report is a person's report about a run whose outcome is unknown.
type Report string

// These are the possible reports.
const (
	Happened Report = "happened" // the call took effect; Click.Reason has the result
	DidNot   Report = "did_not"
	Leave    Report = "leave" // tell the model that the outcome is unknown
	Asked    Report = "again" // somebody requested another run of the call (see RetryUnknown)
)

// askWhatHappened asks people about a run whose outcome is unknown. The question goes to the conversation, or to the
// owner of the caller. The question also goes to the addresses where the approvers read their cards, and to the person
// who gave the call's grant.
func (t runsTx) askWhatHappened(e approvers.Execution) error {
	places := []string{store.ToConversation + e.Conversation}
	if conv, err := t.Conversation(e.Conversation); err != nil {
		return err
	} else if conv.Caller != nil {
		places = []string{store.ToUser + conv.Caller.Caller.Owner.User()} // the caller's conversation is not in Slack, so the question goes to the caller's owner
	}
	p, _ := t.policy.Tool(e.Tool, "")
	if e.Request != "" {
		r, err := t.Request(e.Request)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil { // a damaged request may be lost
			places = append(places, t.cards.addresses(r)...)
		}
		if to := t.cards.cardAddress(r.ClosedRole); r.ClosedRole != "" && !slices.Contains(places, to) { // if an operator allowed the call, there is no role
			places = append(places, to)
		}
	}
	giver, err := view.GrantOwnerOf(t, e)
	if err != nil {
		return err
	}
	if onSlack(giver) {
		places = append(places, store.ToUser+giver.User())
	}
	for _, to := range places {
		s := store.OutboxMessage{Kind: store.OutboxUnknown, Ref: e.ID, Request: e.Request, To: to}
		if err := t.outbox.add(s); err != nil {
			return err
		}
	}
	if err := t.SetTimer(store.Timer{Kind: store.TimerLeave, Ref: e.ID, Due: t.now.Add(p.ExpiresAfter)}); err != nil {
		return err
	}
	return t.changedStep(e)
}

// Report records a person's report about a run whose outcome is unknown. The call's requesters, the people who could
// have approved the call, the person who gave the call's grant, and the operator may report.
func (w *Runs) Report(ctx context.Context, c Click, what Report) error {
	return w.click(ctx, "report", c, func(t *tx) (*approvers.Denied, error) { return t.runs.report(c, what) })
}

func (t runsTx) report(c Click, what Report) (*approvers.Denied, error) {
	e, denied, err := t.runs.reportable(c)
	if err != nil || denied != nil && denied.Code == approvers.DeniedNotFound {
		return denied, err
	}
	call := store.Call{}
	if denied == nil {
		if call, err = t.Call(e.Call); err != nil {
			return nil, err
		}
		if what == Leave && (call.Outcome != "" || call.Execution != e.ID) {
			denied = &approvers.Denied{Code: approvers.DeniedNothing}
		}
	}
	if denied != nil {
		return denied, t.auditDenied(e.Chain(), "report", c, denied)
	}
	facts := map[string]string{"execution": e.ID, "digest": e.Digest, "report": string(what)}
	if err := t.audit(e.Chain(), approvers.AuditReported, c.Who.ID, facts, []byte(c.Reason)); err != nil {
		return nil, err
	}
	if what == Leave {
		if e, err = e.Leave(c.Who.ID); err != nil {
			return nil, err
		}
		return nil, errors.Join(t.PutExecution(e), t.runs.leave(e))
	}
	if e, err = e.Report(what == Happened, c.Reason, c.Who.ID, t.now); err != nil {
		return nil, err
	}
	if err := t.PutExecution(e); err != nil {
		return nil, err
	}
	t.callers.called(e.Call)
	if err := t.ClearTimer(store.TimerLeave, e.ID); err != nil {
		return nil, err
	}
	if call.Execution != e.ID {
		return nil, t.runs.superseded(e, call)
	}
	return nil, t.runs.returnResult(e)
}

// mayReport returns a denial if a person may not report on an execution. The operator at the command line may always
// report.
func (t runsTx) mayReport(e approvers.Execution, who approvers.Identity) (*approvers.Denied, error) {
	if who.ID.Login() != "" {
		return nil, nil // the operator may report, because the operator can find out whether the tool acted
	}
	turn, err := t.Turn(e.Turn)
	if err != nil {
		return nil, err
	}
	if who.Among(turn.Requesters, ofCaller(e.Conversation)) && !who.Deleted {
		return nil, nil
	}
	if giver, err := view.GrantOwnerOf(t, e); err != nil || who.ID != "" && who.ID == giver && !who.Deleted {
		return nil, err
	}
	if e.Request == "" {
		return &approvers.Denied{Code: approvers.DeniedNotRequester}, nil
	}
	r, err := t.Request(e.Request)
	if err != nil {
		return nil, err
	}
	_, denied := r.Authority(t.policy, who)
	return denied, nil
}

// t.leave tells the model that the outcome of a run is unknown. People may report the outcome later.
func (t runsTx) leave(e approvers.Execution) error {
	if err := t.ClearTimer(store.TimerLeave, e.ID); err != nil {
		return err
	}
	return t.returnResult(e)
}

// LeaveUnknown tells the model that the outcome of a run is unknown, because nobody reported it in time. LeaveUnknown
// waits until reports that were received before the deadline are handled.
func (w *Runs) LeaveUnknown(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "leave", func(t *tx) error {
		e, err := t.Execution(timer.Ref)
		if err != nil || e.State != approvers.ExecutionUnknown {
			return errors.Join(store.IgnoreNotFound(err), t.ClearTimer(store.TimerLeave, timer.Ref))
		}
		p, _ := t.policy.Tool(e.Tool, "")
		deadline := e.FinishedAt.Add(p.ExpiresAfter)
		lost := !timer.Due.After(e.FinishedAt) // then the timer has no deadline: see store.LostTimer
		if lost && deadline.After(t.now) {
			return t.SetTimer(store.Timer{Kind: store.TimerLeave, Ref: e.ID, Due: deadline})
		}
		if !lost && timer.Due.Before(deadline) { // the policy gives more time now than when people were asked
			deadline = timer.Due
		}
		if early, err := t.handledFirst(timer, deadline); early || err != nil {
			return err
		}
		return t.runs.leave(e)
	})
}

// RetryUnknown requests another run of a call whose outcome is unknown. RetryUnknown creates a new execution and a new
// request. People must approve the new request, even if the current policy lets the call run without approval. The
// outcome of the earlier run stays unknown, and people can report it later. The call can have only one result. The
// result comes from the new request. Therefore RetryUnknown is denied if the call has a result, or if an earlier retry
// is open. Each person who may report the outcome may also request a retry.
func (w *Runs) RetryUnknown(ctx context.Context, c Click) error {
	return w.click(ctx, "ask again", c, func(t *tx) (*approvers.Denied, error) {
		e, denied, err := t.runs.reportable(c)
		if err != nil {
			return nil, err
		}
		if denied == nil {
			denied, err = t.runs.retryUnknown(e, c)
		}
		if denied == nil || denied.Code == approvers.DeniedNotFound || err != nil {
			return denied, err
		}
		return denied, t.auditDenied(e.Chain(), "ask again", c, denied)
	})
}

// reportable reads the execution that a click names. People can report only an outcome that is unknown. In all other
// cases, and if this person may not report it, reportable returns a denial.
func (t runsTx) reportable(c Click) (approvers.Execution, *approvers.Denied, error) {
	e, err := t.Execution(c.Execution)
	if errors.Is(err, store.ErrNotFound) {
		return e, &approvers.Denied{Code: approvers.DeniedNotFound}, nil
	}
	if err != nil {
		return e, nil, err
	}
	switch e.State {
	case approvers.ExecutionUnknown:
	case approvers.ExecutionNone, approvers.ExecutionExecuting:
		return e, &approvers.Denied{Code: approvers.DeniedUnfinished}, nil
	default:
		return e, &approvers.Denied{Code: approvers.DeniedResolved, By: e.ReportedBy, At: e.FinishedAt}, nil
	}
	denied, err := t.mayReport(e, c.Who)
	return e, denied, err
}

func (t runsTx) retryUnknown(e approvers.Execution, c Click) (*approvers.Denied, error) {
	call, err := t.Call(e.Call)
	if err != nil {
		return nil, err
	}
	if call.Execution != e.ID {
		r, err := t.Request(call.Request)
		if err != nil || r.Retry == nil { // the request was rebuilt after damage, and the records of the retry are lost, too
			return r.Over(), err
		}
		return &approvers.Denied{Code: approvers.DeniedAgain, By: r.Retry.By, At: r.Retry.At}, nil
	}
	if call.Outcome != "" {
		return &approvers.Denied{Code: approvers.DeniedReturned}, nil
	}
	turn, err := t.Turn(call.Turn)
	if err != nil {
		return nil, err
	}
	tool, args, problem := t.stillAdmissible(turn.Agent, e)
	if problem != "" {
		return &approvers.Denied{Code: approvers.DeniedNotAgain, Detail: problem}, nil
	}
	r, err := t.newRetry(turn, call, e, c.Who)
	if err != nil {
		return nil, err
	}
	if c := r.Facts.Caller; c != nil && c.PersonLost {
		return &approvers.Denied{Code: approvers.DeniedNotAgain, Detail: "the record of the person for whom the agent asked is lost"}, nil
	}
	r.Effect = tool.Effect
	if r.Plan = t.policy.RetryPlan(r.AsCall(args)); r.Plan.Verdict != approvers.Ask {
		return &approvers.Denied{Code: approvers.DeniedNotAgain, Detail: r.Plan.Why[len(r.Plan.Why)-1]}, nil
	}
	call.Secrets = t.proposals.secrets(tool, turn.Agent)
	says := t.proposals.preview(tool, turn.Agent, e.Args, args, call.Secrets)
	r.Preview, r.MadePreview, r.PreviewFault = says.text, says.made, says.fault
	call.Preview = r.Preview
	again := t.proposals.newExecution(call, tool, e.Args)
	again.Asker, again.After, again.Caller = e.Asker, e.ID, e.Caller
	call.Execution = again.ID
	if err := t.ClearTimer(store.TimerLeave, e.ID); err != nil {
		return nil, err
	}
	if err := t.proposals.ask(call, again, r); err != nil {
		return nil, err
	}
	facts := map[string]string{"execution": e.ID, "digest": e.Digest, "report": string(Asked), "again": again.ID}
	if err := t.audit(e.Chain(), approvers.AuditReported, c.Who.ID, facts, nil); err != nil {
		return nil, err
	}
	if err := t.changedStep(e); err != nil {
		return nil, err
	}
	return nil, t.turns.tellIfQueued(turn)
}

// stillAdmissible checks the arguments of an earlier run against the current tool and policy. problem is a sentence for
// people, or "".
func (t runsTx) stillAdmissible(agent string, e approvers.Execution) (Tool, map[string]any, string) {
	tool, ok := t.toolOf(e.Tool, e.ToolHash)
	if a, has := t.policy.Agent(agent); !ok || !has || !a.Offers(e.Tool) {
		return tool, nil, "the agent has no such tool any more"
	}
	if tool.Blocked != "" {
		return tool, nil, tool.look()
	}
	p, _ := t.policy.Tool(e.Tool, agent)
	args, err := approvers.StrictArgs(e.Args, p.ReadsNumbers())
	if err == nil {
		err = tool.Check(e.Args)
	}
	if err != nil {
		return tool, nil, "the tool does not take these arguments any more: " + plainFault(err)
	}
	return tool, args, ""
}

// newRetry returns the request for a retry. The new request has the requesters of the call, and the arguments with the
// approvers' edits. If the earlier request was in a bundle, the new request gets its own card at the same address.
func (t runsTx) newRetry(turn approvers.Turn, call store.Call, e approvers.Execution, who approvers.Identity) (r approvers.Request, err error) {
	conv, err := t.Conversation(call.Conversation)
	if err != nil {
		return r, err
	}
	r.Facts, err = t.proposals.askFactsOf(call, turn, conv)
	if err != nil {
		return r, err
	}
	r.Agent, r.Tool, r.CreatedAt = turn.Agent, e.Tool, t.now
	r.Retry = &approvers.Retry{Execution: e.ID, LostAt: e.FinishedAt, By: who.ID, Name: who.Name, At: t.now}
	if e.Request == "" {
		return r, nil
	}
	earlier, err := t.Request(e.Request)
	r.Edits, r.Bundle, r.Apart = earlier.Edits, earlier.Bundle, earlier.Bundle != ""
	r.Retry.Remarks = earlier.Retry.EarlierRemarks() + len(earlier.Remarks)
	for _, p := range earlier.Facts.Requesters { // the turn may have been rebuilt after damage
		if !slices.Contains(r.Facts.Requesters, p) {
			r.Facts.Requesters = append(r.Facts.Requesters, p)
		}
	}
	return r, err
}

// changedEarlier schedules an update of the messages about the earlier run of a retry.
func (t runsTx) changedEarlier(r approvers.Request) error {
	if r.Retry == nil {
		return nil
	}
	e, err := t.Execution(r.Retry.Execution)
	if err != nil {
		return err
	}
	if e.Request != "" {
		if err := t.outbox.changedRef(e.Request); err != nil {
			return err
		}
	}
	return t.outbox.changedRef(e.ID)
}

// t.superseded handles a person's report about a run whose call is being retried. If the report says that the run
// succeeded, the open retry is voided and the model gets the reported result. In all other cases, the messages about
// the retry are updated.
func (t runsTx) superseded(e approvers.Execution, call store.Call) error {
	r, err := t.Request(call.Request)
	if err != nil {
		return err
	}
	if r.Retry != nil && r.Retry.Execution == e.ID {
		found := *r.Retry
		found.Found, found.FoundBy = e.State, e.ReportedBy
		r.Retry = &found
		if err := t.PutRequest(r); err != nil {
			return err
		}
		r.Version++
	}
	if e.State != approvers.ExecutionSucceeded || !r.State.Open() {
		return errors.Join(t.pauses.showAgain(r), t.changedStep(e))
	}
	var before *approvers.Request
	if e.Request != "" {
		earlier, err := t.Request(e.Request)
		if err != nil {
			return err
		}
		before = &earlier
	}
	outcome, text := approvers.RunResult(t.policy, e, before)
	if err := t.turns.giveResult(call, outcome, text); err != nil {
		return err
	}
	void, events, denied := r.Void(t.deciding(), "somebody reported that the earlier run of it happened")
	if denied != nil {
		return denied // can't happen: Void denies only closed requests
	}
	if err := t.apply(void, events); err != nil {
		return err
	}
	return t.changedStep(e)
}
