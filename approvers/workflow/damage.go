package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// An unreadable record fails closed: the request or the run that the record describes ends as if it had not been
// allowed. All other work continues. The damaged record is set aside. It is replaced by a record with an end state and
// the reason. The new record is rebuilt from the history and related records. Messages that show the record then show
// this end.

// whyDamaged is the reason that people, the model and the history get.
const whyDamaged = "its record in the store is damaged, so nothing was run"

// mostDamaged limits how many damaged records are closed, one after the other, for one transaction.
const mostDamaged = 16

// update runs fn in a transaction, then wakes workers and reports events to the counters. If fn reads a damaged record,
// update closes that record first.
func (w *core) update(ctx context.Context, what string, fn func(*tx) error) error {
	return w.updateBy(ctx, what, w.transact, fn)
}

// record is like update, for a transaction that only records what has already happened. The function commits even if
// this process can't use the policy in force.
func (w *core) record(ctx context.Context, what string, fn func(*tx) error) error {
	err := w.update(ctx, what, fn)
	if errors.Is(err, store.ErrPolicyChanged) {
		err = w.updateBy(ctx, what, w.transactUnder, fn)
	}
	return err
}

// updateBy is update with a given kind of transaction.
func (w *core) updateBy(ctx context.Context, what string, transact func(context.Context, string, func(*tx) error) error, fn func(*tx) error) error {
	err := transact(ctx, what, fn)
	for n := 0; n < mostDamaged && ctx.Err() == nil; n++ {
		var row *store.DamagedError
		if !errors.As(err, &row) || !w.closeDamaged(ctx, row.Damage, mostDamaged) {
			break
		}
		err = transact(ctx, what, fn)
	}
	return err
}

// closeDamaged closes the subject of a damaged record. If closeDamaged returns true, the failed work can be tried
// again.
func (w *core) closeDamaged(ctx context.Context, x store.Damage, most int) bool {
	if most == 0 || x.Bucket != "messages" && x.ID == "" {
		return false
	}
	fn := func(t *tx) error {
		_, err := t.damage.closeDamaged(x)
		return err
	}
	for {
		err := w.transactUnder(ctx, "close what is damaged", fn) // the damaged record may be the policy in force
		var other *store.DamagedError
		if errors.As(err, &other) && (other.Bucket != x.Bucket || other.ID != x.ID || other.Key != x.Key) && w.closeDamaged(ctx, other.Damage, most-1) {
			continue
		}
		if err != nil && ctx.Err() == nil {
			w.Log.Error("a damaged record could not be closed; everything that needs it fails", "bucket", x.Bucket, "key", x.Key, "error", err)
		}
		return err == nil
	}
}

// closeDamaged closes the subject of one record, and records the closing in the audit.
func (t damageTx) closeDamaged(x store.Damage) (done bool, err error) {
	switch x.Bucket {
	case "messages":
		done, err = t.replaceMessage(x)
	case "requests":
		done, err = t.closeRequest(x.ID)
	case "executions":
		done, err = t.closeRun(x.ID)
	case "calls":
		done, err = t.closeCall(x.ID)
	case "turns":
		done, err = t.closeTurn(x.ID)
	case "conversations":
		done, err = t.closeConversation(x.ID)
	case "inbox":
		if done, err = t.aside(x); done {
			err = t.ClearTimer(store.TimerInbox, x.ID)
		}
	case "settings":
		if x.ID != store.SettingPause { // settings.ReadPause handles a damaged pause
			done, err = t.aside(x)
		}
	default: // without a record, a grant does not apply, a Slack message is not the bot's, and an absence is over
		done, err = t.aside(x)
	}
	if !done || err != nil {
		return false, err
	}
	t.note(slog.LevelError, "a stored record was damaged; it was set aside, and what it belongs to was closed", "bucket", x.Bucket, "key", x.Key, "why", x.Why)
	return true, t.audit(approvers.InstallationChain, approvers.AuditDamaged, "", map[string]string{"bucket": x.Bucket, "key": x.Key, "why": x.Why}, nil)
}

// moveAside sets a record aside if it is damaged.
func (t damageTx) moveAside(bucket, id string) error {
	_, _, err := t.setAsideOf(bucket, id)
	return err
}

func (t damageTx) aside(x store.Damage) (bool, error) {
	_, done, err := t.setAsideOf(x.Bucket, x.ID)
	return done, err
}

func (t damageTx) setAsideOf(bucket, id string) (of []string, done bool, err error) {
	s, ok := t.Tx.(store.SetAside)
	if !ok {
		return nil, false, nil
	}
	return s.SetAside(bucket, id)
}

// replaceMessage replaces a damaged message with an empty message, which is left out of prompts.
func (t damageTx) replaceMessage(x store.Damage) (bool, error) {
	if x.ID == "" || x.Seq == 0 {
		return false, nil
	}
	m := store.Message{Conversation: x.ID, Seq: x.Seq, Role: store.RoleUser, State: store.MessageGone, At: t.now}
	return true, t.PutMessage(m)
}

// proposedFacts returns the facts of a chain's first record. If the record can't be read, proposedFacts returns nil.
func (t damageTx) proposedFacts(chain string) (facts map[string]string, all []approvers.AuditRecord) {
	all, _ = t.Audit(chain) // an error is ignored: the readable part is enough
	for _, a := range all {
		if a.Kind == approvers.AuditProposed {
			return a.Facts, all
		}
	}
	return nil, all
}

// closeRequest replaces a damaged request with a voided request. If the request's run had begun, the run continues
// independently of the request.
func (t damageTx) closeRequest(id string) (bool, error) {
	of, done, err := t.setAsideOf("requests", id)
	if !done || err != nil {
		return false, err
	}
	facts, chain := t.proposedFacts(id)
	conversation := facts["conversation"]
	if conversation == "" && len(of) > 0 {
		conversation = of[0]
	}
	call, err := t.callOf(facts["call"], conversation, id)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil // nothing waits for it
	}
	if err != nil {
		return false, err
	}
	r, err := t.remake(id, call, facts)
	if err != nil {
		return false, err
	}
	began := slices.ContainsFunc(chain, func(a approvers.AuditRecord) bool { return a.Kind == approvers.AuditExecuting })
	if began || call.Outcome != "" {
		r.State, r.ClosedAt, r.Reason = approvers.Consumed, t.now, whyDamaged
		if !began {
			r.State = approvers.Voided
		}
		if err := t.PutRequest(r); err != nil {
			return false, err
		}
		return true, errors.Join(t.timers.updateTimersFor(r, approvers.RequestClosed{State: r.State}), t.outbox.changedRef(id))
	}
	if err := t.ClearTimer(store.TimerRun, r.Execution); err != nil {
		return false, err
	}
	r, events, denied := r.Void(t.deciding(), whyDamaged)
	if denied != nil {
		return false, denied // can't happen: Void denies only closed requests
	}
	return true, t.apply(r, events)
}

// callOf finds a request's call by the id in the request's history or, if there is none, among the calls of the
// conversation.
func (t damageTx) callOf(id, conversation, request string) (store.Call, error) {
	if id != "" {
		return t.Call(id)
	}
	if conversation != "" {
		calls, err := callsIn(t, conversation)
		for _, c := range calls {
			if c.Request == request {
				return c, nil
			}
		}
		if err != nil {
			return store.Call{}, err
		}
	}
	return store.Call{}, fmt.Errorf("the call of request %q: %w", request, store.ErrNotFound)
}

// remake rebuilds a pending request from its call and its history. The result can only be closed, not decided.
func (t damageTx) remake(id string, call store.Call, facts map[string]string) (approvers.Request, error) {
	r := approvers.Request{
		ID: id, State: approvers.Pending, Conversation: call.Conversation, Turn: call.Turn, Call: call.ID, Tool: call.Tool, ToolHash: facts["tool_hash"],
		Execution: call.Execution, Args: json.RawMessage(call.Args), Digest: facts["digest"], Secrets: call.Secrets, Preview: call.Preview,
		CreatedAt: call.CreatedAt, ExpiresAt: t.now, Damaged: true,
	}
	if !json.Valid(r.Args) {
		r.Args = json.RawMessage("{}")
	}
	_ = r.Plan.Risk.UnmarshalText([]byte(facts["risk"]))
	r.Plan.Verdict = approvers.Ask
	r.Facts.Asker = approvers.PersonID(facts["asker"])
	for who := range strings.SplitSeq(facts["requesters"], ",") {
		if who != "" {
			r.Facts.Requesters = append(r.Facts.Requesters, approvers.PersonID(who))
		}
	}
	r.Plan.Requesters = r.Facts.Requesters
	turn, err := t.Turn(call.Turn)
	if err != nil {
		return r, err
	}
	conv, err := t.Conversation(call.Conversation)
	if err != nil {
		return r, err
	}
	r.Agent = turn.Agent
	r.Facts.Conversation = approvers.ConversationFacts{ID: conv.ID, Channel: conv.Channel, DM: conv.DM}
	if conv.Caller != nil {
		caller := conv.Caller.Caller
		r.Facts.Caller = &caller
	}
	e, err := t.Execution(call.Execution)
	if err == nil {
		r.Effect, r.Args, r.Digest, r.ToolHash = e.Effect, e.Args, e.Digest, e.ToolHash
	} else if store.IgnoreNotFound(err) != nil {
		return r, err
	}
	messages, err := t.OutboxMessagesOf(id)
	if err != nil {
		return r, err
	}
	for _, s := range messages {
		if view.IsCard(s.Kind) && !slices.Contains(r.QueuedAt, s.To) {
			r.QueuedAt = append(r.QueuedAt, s.To)
		}
	}
	return r, nil
}

// closeRun replaces a damaged execution with an ended execution. If the history records the start of a run but not its
// end, the outcome is unknown and people are asked.
func (t damageTx) closeRun(id string) (bool, error) {
	of, done, err := t.setAsideOf("executions", id)
	if !done || err != nil {
		return false, err
	}
	call, found, err := t.callThat(of, func(c store.Call) bool { return c.Execution == id })
	if err != nil {
		return false, err
	}
	if !found {
		return true, t.ClearTimer(store.TimerRun, id) // the execution was replaced by an edit, or its call is unknown
	}
	chain := call.Request
	if chain == "" {
		chain = id
	}
	facts, all := t.proposedFacts(chain)
	e := approvers.Execution{
		ID: id, State: approvers.ExecutionNone, Conversation: call.Conversation, Turn: call.Turn, Call: call.ID, Request: call.Request,
		Asker: approvers.PersonID(facts["asker"]), Tool: call.Tool, ToolHash: facts["tool_hash"], Effect: approvers.Unprotected,
		Args: json.RawMessage(call.Args), CreatedAt: call.CreatedAt, Caller: facts["runs"],
	}
	var r *approvers.Request
	if call.Request != "" {
		if r, err = t.requestOf(call); err != nil {
			return false, err
		}
		if r != nil {
			e.Args, e.ToolHash, e.Effect = r.Args, r.ToolHash, r.Effect
		}
	}
	e.Digest = approvers.Digest(e.ID, e.Tool, e.ToolHash, e.Args)
	for _, a := range all {
		if a.Facts["execution"] != id {
			continue
		}
		switch a.Kind {
		case approvers.AuditExecuting:
			e.State, e.StartedAt, e.Tries = approvers.ExecutionExecuting, a.At, e.Tries+1
		case approvers.AuditUnknown:
			e.State, e.FinishedAt = approvers.ExecutionUnknown, a.At
		case approvers.AuditExecuted:
			e.State, e.FinishedAt = approvers.ExecutionState(a.Facts["state"]), a.At
			if p, err := t.AuditPayload(chain, a.Seq); err == nil {
				e.Result = string(p.Body)
			}
		}
	}
	if e.State == approvers.ExecutionExecuting {
		if err := t.PutExecution(e); err != nil {
			return false, err
		}
		e.Version++
		return true, t.runs.markUnknown(e, approvers.LossUnclear)
	}
	return true, t.endRun(e, r, call)
}

// endRun writes an execution that will not run any more.
func (t damageTx) endRun(e approvers.Execution, r *approvers.Request, call store.Call) error {
	if e.State == approvers.ExecutionNone {
		e.State, e.Unrun, e.Result, e.FinishedAt = approvers.ExecutionFailed, true, whyDamaged, t.now
	}
	if err := t.PutExecution(e); err != nil {
		return err
	}
	if err := errors.Join(t.ClearTimer(store.TimerRun, e.ID), t.runs.clearOutcome(e)); err != nil {
		return err
	}
	if r != nil && r.State.Open() {
		closed, events, denied := r.Void(t.deciding(), whyDamaged)
		if denied != nil {
			return denied // can't happen: Void denies only closed requests
		}
		closed.Damaged = true
		return t.apply(closed, events)
	}
	if call.Outcome == "" && e.State == approvers.ExecutionFailed && e.Unrun {
		return t.proposals.voidCall(call, e, whyDamaged)
	}
	return t.runs.changedStep(e)
}

// requestOf returns the request of a call, or nil if the request was lost and nothing is known about it.
func (t damageTx) requestOf(c store.Call) (*approvers.Request, error) {
	r, err := t.Request(c.Request)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return &r, err
}

// callThat finds the first call in the given conversations for which is returns true.
func (t damageTx) callThat(conversations []string, is func(store.Call) bool) (store.Call, bool, error) {
	for _, id := range conversations {
		calls, err := callsIn(t, id)
		if err != nil {
			return store.Call{}, false, err
		}
		if i := slices.IndexFunc(calls, is); i >= 0 {
			return calls[i], true, nil
		}
	}
	return store.Call{}, false, nil
}

// closeCall replaces a damaged call with a call that has a result. closeCall also closes the call's request and, if the
// run has not begun, the execution.
func (t damageTx) closeCall(id string) (bool, error) {
	of, done, err := t.setAsideOf("calls", id)
	if !done || err != nil || len(of) == 0 {
		return done, err
	}
	turn, err := t.Turn(of[0])
	if err != nil {
		return false, err
	}
	beside, err := t.Calls(turn.ID)
	if err != nil {
		return false, err
	}
	call := store.Call{ID: id, Conversation: turn.Conversation, Turn: turn.ID, Step: turn.Step, ModelID: id, Tool: "unknown", Args: "{}", CreatedAt: t.now}
	for _, c := range beside {
		if c.Step == call.Step {
			call.Index = max(call.Index, c.Index+1)
		}
	}
	runs, err := t.Executions(turn.Conversation)
	if err != nil {
		return false, err
	}
	var e *approvers.Execution
	for _, x := range runs {
		if x.Call == id && (e == nil || x.CreatedAt.After(e.CreatedAt)) {
			e = &x
			call.Tool, call.Args, call.Execution, call.Request, call.CreatedAt = x.Tool, string(x.Args), x.ID, x.Request, x.CreatedAt
		}
	}
	if err := t.PutCall(call); err != nil {
		return false, err
	}
	call.Version++
	if e == nil {
		res := approvers.NewResult(approvers.OutcomeVoided, call.Tool, whyDamaged, "")
		return true, t.turns.giveResult(call, approvers.OutcomeVoided, res.Text())
	}
	if e.State != approvers.ExecutionNone {
		return true, t.returnKnown(*e)
	}
	if call.Request == "" {
		return true, t.endRun(*e, nil, call)
	}
	r, err := t.requestOf(call)
	if err != nil {
		return false, err
	}
	return true, t.endRun(*e, r, call)
}

// returnKnown gives a rebuilt call the result of its finished run.
func (t damageTx) returnKnown(e approvers.Execution) error {
	switch e.State {
	case approvers.ExecutionSucceeded, approvers.ExecutionFailed:
		return t.runs.returnResult(e)
	}
	return t.runs.changedStep(e) // the call gets its result when the run ends, or when people report its outcome
}

// closeTurn replaces a damaged turn with a stopped turn, and closes the turn's open calls.
func (t damageTx) closeTurn(id string) (bool, error) {
	of, done, err := t.setAsideOf("turns", id)
	if !done || err != nil || len(of) == 0 {
		return done, err
	}
	conv, err := t.Conversation(of[0])
	if err != nil {
		return false, err
	}
	calls, err := t.Calls(id)
	if err != nil {
		return false, err
	}
	turn := approvers.Turn{ID: id, Conversation: conv.ID, Agent: conv.Agent, State: approvers.TurnWaiting, CreatedAt: t.now}
	for _, c := range calls {
		turn.Step = max(turn.Step, c.Step)
	}
	turn.Stopping = "A record of this in the store is damaged, so it was stopped. Please ask again."
	if conv.Turn != id {
		turn.State, turn.EndedAt, turn.Problem = approvers.TurnStopped, t.now, turn.Stopping
	}
	if err := t.PutTurn(turn); err != nil {
		return false, err
	}
	open := 0
	for _, c := range calls {
		if c.Outcome != "" {
			continue
		}
		open++
		if err := t.closeOpenCall(c); err != nil {
			return false, err
		}
	}
	if open > 0 || conv.Turn != id {
		return true, nil // the last result stops the turn
	}
	turn.Version++
	return true, t.turns.stop(turn, conv, turn.Stopping, false)
}

// closeOpenCall closes an open call whose turn can't continue. closeOpenCall does not touch a run that has begun,
// because such a run ends by itself.
func (t damageTx) closeOpenCall(c store.Call) error {
	if c.Execution == "" {
		res := approvers.NewResult(approvers.OutcomeVoided, c.Tool, whyDamaged, "")
		return t.turns.giveResult(c, approvers.OutcomeVoided, res.Text())
	}
	e, err := t.Execution(c.Execution)
	if err != nil {
		return err
	}
	if e.State != approvers.ExecutionNone {
		return nil
	}
	if c.Request == "" {
		return t.endRun(e, nil, c)
	}
	r, err := t.requestOf(c)
	if err != nil {
		return err
	}
	return t.endRun(e, r, c)
}

// closeConversation replaces a damaged conversation with a conversation that is rebuilt from its address and its
// current turn.
func (t damageTx) closeConversation(id string) (bool, error) {
	of, done, err := t.setAsideOf("conversations", id)
	if !done || err != nil || len(of) == 0 {
		return done, err
	}
	if ofCaller(id) {
		return true, t.remakeCallersConversation(id, of[0])
	}
	place := strings.SplitN(of[0], "/", 3)
	if len(place) < 3 {
		return true, nil
	}
	conv := store.Conversation{ID: id, Place: of[0], Team: place[0], Channel: place[1], Thread: place[2], DM: strings.HasPrefix(place[1], "D"), CreatedAt: t.now, LastAt: t.now}
	messages, err := t.Messages(id, 0)
	if err != nil {
		return false, err
	}
	for _, m := range messages {
		conv.Messages = max(conv.Messages, m.Seq)
		if m.Turn == "" {
			continue
		}
		turn, err := t.Turn(m.Turn)
		if store.IgnoreNotFound(err) != nil {
			return false, err
		}
		conv.Agent = turn.Agent
		if err == nil && !turn.Ended() {
			conv.Turn = turn.ID
		}
	}
	return true, t.PutConversation(conv)
}

// remakeCallersConversation replaces the damaged conversation of a caller's request. The new conversation is rebuilt
// from the run and the history. If the conversation has no run, its key no longer stands for a request.
func (t damageTx) remakeCallersConversation(id, place string) error {
	runs, err := t.Executions(id)
	if err != nil || len(runs) == 0 {
		return err
	}
	e := slices.MaxFunc(runs, func(a, b approvers.Execution) int { return a.CreatedAt.Compare(b.CreatedAt) })
	call, err := t.Call(e.Call)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(place, callerPlace), "/")
	client, _ := t.policy.Client(name)
	caller := approvers.Caller{Name: name, Title: cmp.Or(client.Title, name), Mode: approvers.ExecuteMode}
	if e.Caller != "" {
		caller.Mode = approvers.DecideMode
	}
	facts, _ := t.proposedFacts(e.Chain())
	for who := range strings.SplitSeq(facts["requesters"], ",") {
		if who := approvers.PersonID(who); caller.Owner == "" && who.Caller() == "" {
			caller.Owner = who
		}
	}
	if call.Request != "" {
		r, err := t.requestOf(call)
		if err != nil {
			return err
		}
		if r != nil && r.Facts.Caller != nil {
			caller = *r.Facts.Caller
		}
	}
	team, _, _ := strings.Cut(string(caller.Owner), "/")
	conv := store.Conversation{
		ID: id, Place: place, Team: team, Agent: client.Agent, CreatedAt: call.CreatedAt, LastAt: t.now,
		Caller: &store.CallerRequest{Caller: caller, Request: call.ID},
	}
	if call.Outcome == "" {
		conv.Turn = call.Turn
	}
	if err := t.PutConversation(conv); err != nil {
		return err
	}
	if call.Outcome != "" || call.Request != "" || e.State != approvers.ExecutionNone {
		return nil
	}
	return t.endRun(e, nil, call) // for whom the caller acts is lost, and people may have to be asked before it runs
}
