package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// This file handles records that can't be read. An unreadable record fails closed: the request or run of the record
// ends, as if the run had not been allowed. All other work continues. The store sets the damaged record aside. The
// workflow writes a new record in its place, with an end state and the reason. The data of the new record come from the
// audit records and from related records. Slack messages about the record show the end state.

// whyDamaged is the reason that people and the model read. Audit records also contain this reason. If a run has begun,
// or may have begun, the reason is damagedRecord.
const (
	damagedRecord = "its record in the store is damaged"
	whyDamaged    = damagedRecord + ", so nothing was run"
)

// mostDamaged is how many times update may repeat its transaction after closeDamaged has closed a damaged record.
// mostTogether is the maximum number of damaged records that closeDamaged passes to closeAll.
const (
	mostDamaged  = 16
	mostTogether = 64
)

// update runs fn in a transaction. After the commit, update wakes workers and reports events. If fn fails because it
// read a damaged record, update calls closeDamaged and runs fn in a new transaction.
func (w *core) update(ctx context.Context, what string, fn func(*tx) error) error {
	return w.updateBy(ctx, what, w.transact, fn)
}

// record is like update, but for a transaction that only records past events. record commits even if this process can't
// use the policy in force.
func (w *core) record(ctx context.Context, what string, fn func(*tx) error) error {
	err := w.update(ctx, what, fn)
	if errors.Is(err, store.ErrPolicyChanged) {
		err = w.updateBy(ctx, what, w.transactUnder, fn)
	}
	return err
}

// updateBy is update with another function in place of core.transact.
func (w *core) updateBy(ctx context.Context, what string, transact func(context.Context, string, func(*tx) error) error, fn func(*tx) error) error {
	err := transact(ctx, what, fn)
	for n := 0; n < mostDamaged && ctx.Err() == nil; n++ {
		var row *store.DamagedError
		if !errors.As(err, &row) || !w.closeDamaged(ctx, row.Damage, salvaged{}) {
			break
		}
		err = transact(ctx, what, fn)
	}
	return err
}

// salvaged has facts about a store that was salvaged. It is empty for any other store.
type salvaged struct {
	waiting map[string][]string // the result of waitingTurns; nil: call waitingTurns if necessary
	cut     bool                // a chain without gaps may have lost its last records
	older   bool                // see Restoration
}

// closeDamaged closes the request, run, call or turn that a damaged record is about. If closeDamaged reads more damaged
// records, it closes them in the same transaction. Two damaged records may refer to each other. If closeDamaged returns
// true, the failed work can be tried again.
func (w *core) closeDamaged(ctx context.Context, x store.Damage, s salvaged) bool {
	if x.ID == "" {
		return false
	}
	for all := []store.Damage{x}; ; {
		err := w.transactUnder(ctx, "close what is damaged", func(t *tx) error { return t.damage.closeAll(all, s) }) // the damaged record may be the policy in force
		var other *store.DamagedError
		if errors.As(err, &other) && other.ID != "" && len(all) < mostTogether && !slices.ContainsFunc(all, func(d store.Damage) bool {
			return d.Bucket == other.Bucket && d.ID == other.ID && d.Key == other.Key
		}) {
			all = append(all, other.Damage)
			continue
		}
		if err != nil && ctx.Err() == nil {
			w.Log.ErrorContext(ctx, "a damaged record could not be closed; everything that needs it fails", "bucket", x.Bucket, "key", x.Key, "error", err)
		}
		return err == nil
	}
}

// closingOrder lists kinds of records in the order in which they are rebuilt.
var closingOrder = []string{"conversations", "turns", "calls", "executions", "requests"}

// closeAll handles damaged records in three steps. The first step sets all damaged records aside. The second step
// rebuilds the records. If this step reads another damaged record that comes later in closingOrder, closeAll handles
// this record, too. The third step ends the requests, runs and turns of the rebuilt records. Requests end first: if a
// request is voided, its history has shown that its run had not begun, so its call is voided too.
func (t damageTx) closeAll(all []store.Damage, s salvaged) error {
	t.cut = s.cut
	t.older = s.older
	type damaged struct {
		store.Damage
		of []string // the ids of the records to which the damaged record belongs
	}
	inOrder := func(a, b damaged) int {
		return cmp.Compare(slices.Index(closingOrder, a.Bucket), slices.Index(closingOrder, b.Bucket))
	}
	var aside []damaged
	for _, x := range all {
		of, done, err := t.moveAside(x)
		if err != nil {
			return err
		}
		if done {
			aside = append(aside, damaged{x, of})
		}
	}
	slices.SortStableFunc(aside, inOrder)
	var requests, others []func() error // these functions end records
	for i := 0; i < len(aside); i++ {
		x := aside[i]
		var within []string // the requests and runs that belong to the record and were set aside
		for _, d := range aside {
			if (d.Bucket == "requests" || d.Bucket == "executions") && slices.Contains(d.of, x.ID) {
				within = append(within, d.ID)
			}
		}
		end, err := t.rebuild(x.Damage, x.of, within, s.waiting)
		var other *store.DamagedError
		if errors.As(err, &other) && other.ID != "" && inOrder(x, damaged{Damage: other.Damage}) < 0 {
			// Without this branch, closeDamaged would start again for each of a conversation's lost runs.
			of, done, moved := t.moveAside(other.Damage)
			if moved == nil && done {
				aside = append(aside, damaged{other.Damage, of})
				slices.SortStableFunc(aside[i:], inOrder)
				i-- // x comes again
				continue
			}
			err = cmp.Or(moved, err)
		}
		if err != nil {
			return err
		}
		switch {
		case end == nil:
		case x.Bucket == "requests":
			requests = append(requests, end)
		default:
			others = append(others, end)
		}
		t.note(slog.LevelError, "a stored record was damaged; it was set aside, and what it belongs to was closed", "bucket", x.Bucket, "key", x.Key, "why", x.Why)
		if err := t.audit(approvers.InstallationChain, approvers.AuditDamaged, "", map[string]string{"bucket": x.Bucket, "key": x.Key, "why": x.Why}, nil); err != nil {
			return err
		}
		if err := t.operators.happened(settings.ProblemRecord, x.Bucket+" "+x.Key, x.Why); err != nil {
			return err
		}
	}
	for _, end := range slices.Concat(requests, others) {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// moveAside sets a record aside if the record is damaged. moveAside also returns the ids of the records to which the
// damaged record belongs.
func (t damageTx) moveAside(x store.Damage) (of []string, done bool, err error) {
	switch {
	case x.Bucket == "messages":
		done, err = t.replaceMessage(x)
		return nil, done, err
	case x.Bucket == "settings" && x.ID == store.SettingPause: // settings.ReadPause handles a damaged pause
		return nil, false, nil
	}
	return t.setAside(x.Bucket, x.ID)
}

func (t damageTx) setAside(bucket, id string) (of []string, done bool, err error) {
	s, ok := t.Tx.(store.SetAside)
	if !ok {
		return nil, false, nil
	}
	return s.SetAside(bucket, id)
}

// rebuild replaces a record that was set aside. The parameter of has the ids of the records to which it belongs. The
// parameter within has the ids of the requests and runs that belong to it and were set aside. The result end is a
// function that ends the record's request, run or turn. closeAll calls end after all damaged records are rebuilt. end may
// be nil.
func (t damageTx) rebuild(x store.Damage, of, within []string, waiting map[string][]string) (end func() error, err error) {
	owner := ""
	if len(of) > 0 {
		owner = of[0]
	}
	switch x.Bucket {
	case "requests":
		return t.rebuildRequest(x.ID, owner)
	case "executions":
		return t.rebuildRun(x.ID, owner)
	case "calls":
		return t.rebuildCall(x.ID, owner)
	case "turns":
		return t.rebuildTurn(x.ID, owner)
	case "conversations":
		if ofCaller(x.ID) {
			return t.rebuildCallersConversation(x.ID, owner, within)
		}
		return t.rebuildConversation(x.ID, owner, waiting)
	case "inbox":
		return nil, t.ClearTimer(store.TimerInbox, x.ID)
	}
	return nil, nil // without a record, a grant does not apply, a Slack message is not the bot's, and an absence is over
}

// replaceMessage replaces a damaged message with an empty message. Prompts do not contain empty messages.
func (t damageTx) replaceMessage(x store.Damage) (bool, error) {
	if x.ID == "" || x.Seq == 0 {
		return false, nil
	}
	m := store.Message{Conversation: x.ID, Seq: x.Seq, Role: store.RoleUser, State: store.MessageGone, At: t.now}
	return true, t.PutMessage(m)
}

// proposedFacts reads a call's audit chain. facts has the facts of the record about the proposal. If this record can't
// be read, facts is nil. all has all readable records of the chain.
func (t damageTx) proposedFacts(chain string) (facts map[string]string, all []approvers.AuditRecord) {
	all, _ = t.Audit(chain) // an error is ignored: the readable part is enough
	for _, a := range all {
		if a.Kind == approvers.AuditProposed {
			return a.Facts, all
		}
	}
	return nil, all
}

// mayHaveRun reports whether a call with a result was run, or may have been run.
func mayHaveRun(c store.Call) bool {
	return c.Outcome == approvers.OutcomeExecuted || c.Outcome == approvers.OutcomeUnknown || c.Outcome == approvers.OutcomeError && !c.Unrun
}

// rebuildRequest replaces a damaged request with a voided request. If the request's run has begun, or may have begun,
// the new request is consumed instead, and the run is not affected. If the store is older than its last commit, the run
// of an open call may have begun. The function that rebuildRequest returns then closes the call.
func (t damageTx) rebuildRequest(id, conversation string) (func() error, error) {
	facts, chain := t.proposedFacts(id)
	call, err := t.callOf(facts["call"], cmp.Or(facts["conversation"], conversation), id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, t.timers.updateTimersFor(approvers.Request{ID: id}, approvers.RequestClosed{}) // its call is lost, too
	}
	if err != nil {
		return nil, err
	}
	r, err := t.remake(id, call, facts)
	if err != nil {
		return nil, err
	}
	began, err := t.mayHaveBegun(r, call, chain)
	if err != nil {
		return nil, err
	}
	older := t.older && call.Outcome == ""
	switch {
	case began || older:
		r.State, r.ClosedAt, r.Reason = approvers.Consumed, t.now, damagedRecord
	case call.Outcome != "":
		r.State, r.ClosedAt, r.Reason = approvers.Voided, t.now, whyDamaged
	}
	return func() error {
		r, err := t.Request(id)
		if err != nil {
			return err
		}
		if r.State.Open() {
			return t.voidRequest(r)
		}
		if older {
			call, err := t.Call(call.ID)
			if err != nil {
				return err
			}
			if err := t.closeCall(call); err != nil {
				return err
			}
		}
		return errors.Join(t.timers.updateTimersFor(r, approvers.RequestClosed{State: r.State}), t.outbox.changedRef(id))
	}, t.PutRequest(r)
}

// mayHaveBegun reports whether the run of a damaged request has begun, or may have begun. The chain has the request's
// audit records.
func (t damageTx) mayHaveBegun(r approvers.Request, call store.Call, chain []approvers.AuditRecord) (bool, error) {
	began := false
	for _, a := range chain {
		began = a.Kind == approvers.AuditExecuting || began && (a.Kind != approvers.AuditExecuted || a.Facts["unrun"] == "")
	}
	e, err := t.Execution(r.Execution)
	switch {
	case err == nil: // the stored run also counts, because audit records may be lost
		return began || e.State != approvers.ExecutionNone && !e.Unrun, nil
	case !errors.Is(err, store.ErrNotFound):
		return false, err
	// The run is lost, too. rebuildRun has rebuilt nothing (see closingOrder), because it did not find the call.
	case call.Execution == "": // rebuildCall has rebuilt the call
		return began || !t.complete(r.ID), nil
	}
	return began || mayHaveRun(call), nil
}

// voidRequest voids an open request. This ends the request's call.
func (t damageTx) voidRequest(r approvers.Request) error {
	if err := t.ClearTimer(store.TimerRun, r.Execution); err != nil {
		return err
	}
	closed, events, denied := r.Void(t.deciding(), whyDamaged)
	if denied != nil {
		return denied // can't happen: Void denies only requests that have ended
	}
	closed.Damaged = true
	return t.apply(closed, events)
}

// callOf finds the call of a request. id is the call's id from the request's audit records. If id is empty, callOf
// searches the calls of the conversation.
func (t damageTx) callOf(id, conversation, request string) (store.Call, error) {
	if id != "" {
		return t.Call(id)
	}
	if conversation != "" {
		calls, err := t.callsIn(conversation)
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

// remake rebuilds a pending request from its call and its audit records. The rebuilt request can be closed, but not
// decided.
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
	r.Facts.Requesters = peopleIn(facts["requesters"])
	r.Plan.Requesters = r.Facts.Requesters
	turn, err := t.Turn(call.Turn)
	if err != nil {
		return r, err
	}
	conv, err := t.Conversation(call.Conversation)
	if errors.Is(err, store.ErrNotFound) && ofCaller(call.Conversation) { // the conversation was lost before
		conv, err = store.Conversation{ID: call.Conversation, Caller: &store.CallerRequest{Caller: t.callerFrom("", facts)}}, nil
	}
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
	earlier := facts["after"]
	if earlier == "" && e.Request == id {
		earlier = e.After
	}
	if r.Retry, err = t.retryOf(earlier); err != nil {
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

// retryOf rebuilds what a request records about the earlier run of its call. The person who asked again comes from the
// audit records of the earlier run. If the request is not a retry, or the earlier run is lost, the result is nil.
func (t damageTx) retryOf(earlier string) (*approvers.Retry, error) {
	if earlier == "" {
		return nil, nil
	}
	e, err := t.Execution(earlier)
	if err != nil {
		return nil, store.IgnoreNotFound(err)
	}
	retry := &approvers.Retry{Execution: e.ID, LostAt: e.FinishedAt}
	_, chain := t.proposedFacts(e.Chain())
	for _, a := range chain {
		if a.Kind == approvers.AuditReported && a.Facts["execution"] == e.ID && a.Facts["report"] == string(Asked) {
			retry.By, retry.At = a.Actor, a.At
		}
	}
	return retry, nil
}

// rebuildRun replaces a damaged execution with an ended execution. If the run has begun, or may have begun, and no
// record shows its end, the outcome is unknown. The bot then asks people about the outcome.
func (t damageTx) rebuildRun(id, conversation string) (func() error, error) {
	call, found, err := t.callThat(conversation, func(c store.Call) bool { return c.Execution == id })
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, t.ClearTimer(store.TimerRun, id) // the execution was replaced by an edit, or its call is unknown
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
	r, err := t.requestOf(call)
	if err != nil {
		return nil, err
	}
	if r != nil {
		e.Args, e.ToolHash, e.Effect = r.Args, r.ToolHash, r.Effect
	}
	e.Digest = approvers.Digest(e.ID, e.Tool, e.ToolHash, e.Args)
	if e = t.recorded(e, all); e.State == approvers.ExecutionNone {
		e = t.presumed(e, call, r)
	}
	return func() error {
		e, err := t.Execution(id)
		if err != nil {
			return err
		}
		if e.State == approvers.ExecutionExecuting {
			return t.runs.markUnknown(e, approvers.LossDamaged)
		}
		call, err := t.Call(e.Call)
		if err != nil {
			return err
		}
		return t.endRun(e, call)
	}, t.PutExecution(e)
}

// t.recorded returns the execution e with the state and the result that its audit records contain.
func (t damageTx) recorded(e approvers.Execution, chain []approvers.AuditRecord) approvers.Execution {
	for _, a := range chain {
		if a.Facts["execution"] != e.ID {
			continue
		}
		switch a.Kind {
		case approvers.AuditExecuting:
			e.State, e.StartedAt, e.Tries = approvers.ExecutionExecuting, a.At, e.Tries+1
		case approvers.AuditUnknown:
			e.State, e.FinishedAt = approvers.ExecutionUnknown, a.At
		case approvers.AuditExecuted:
			e.State, e.FinishedAt, e.Unrun = approvers.ExecutionState(a.Facts["state"]), a.At, a.Facts["unrun"] != ""
			if p, err := t.AuditPayload(e.Chain(), a.Seq); err == nil {
				e.Result = string(p.Body)
			}
		}
	}
	return e
}

// complete reports whether certainly no record of an audit chain is lost.
func (t damageTx) complete(chain string) bool {
	all, err := t.Audit(chain)
	return err == nil && len(all) > 0 && !t.cut && approvers.VerifyChain(all) == nil
}

// presumed returns the state of a lost run of whose start there is no audit record. If the chain is complete, or the
// stored request is not consumed, the run has not begun. Otherwise, the state comes from the call's result. If the call
// has no result, the run may have begun, so presumed returns the state executing.
func (t damageTx) presumed(e approvers.Execution, call store.Call, r *approvers.Request) approvers.Execution {
	switch {
	case t.complete(e.Chain()) || r != nil && r.State != approvers.Consumed:
	case call.Outcome == approvers.OutcomeExecuted:
		e.State, e.FinishedAt = approvers.ExecutionSucceeded, call.ReturnedAt
	case call.Outcome == approvers.OutcomeError:
		e.State, e.FinishedAt, e.Unrun = approvers.ExecutionFailed, call.ReturnedAt, call.Unrun
	case call.Outcome == "" || call.Outcome == approvers.OutcomeUnknown:
		e.State, e.StartedAt, e.Tries = approvers.ExecutionExecuting, call.CreatedAt, 1
	}
	return e
}

// endRun stores an execution that must not run any more, and ends its call and its request. If the store is older than
// its last commit, and the call has no result, the execution may have begun: see keepRecorded.
func (t damageTx) endRun(e approvers.Execution, call store.Call) error {
	if t.older && e.State == approvers.ExecutionNone && call.Outcome == "" {
		if err := t.ClearTimer(store.TimerRun, e.ID); err != nil {
			return err
		}
		if err := t.restore.keepRecorded(e.ID, Restoration{older: true}); err != nil {
			return err
		}
		e, err := t.Execution(e.ID)
		if err != nil {
			return err
		}
		return errors.Join(t.runs.clearOutcome(e), t.returnKnown(e))
	}
	if e.State == approvers.ExecutionNone {
		e.State, e.Unrun, e.Result, e.FinishedAt = approvers.ExecutionFailed, true, whyDamaged, t.now
	}
	if err := t.PutExecution(e); err != nil {
		return err
	}
	if err := errors.Join(t.ClearTimer(store.TimerRun, e.ID), t.runs.clearOutcome(e)); err != nil {
		return err
	}
	r, err := t.requestOf(call)
	if err != nil {
		return err
	}
	if r != nil && r.State.Open() && !t.older { // loseRequests closes the open requests of an older store
		return t.voidRequest(*r)
	}
	if call.Outcome == "" && e.State == approvers.ExecutionFailed && e.Unrun {
		return t.proposals.voidCall(call, e, whyDamaged)
	}
	return t.runs.changedStep(e)
}

// requestOf returns the request of a call. If the call has no request, or the request was lost, requestOf returns nil.
func (t damageTx) requestOf(c store.Call) (*approvers.Request, error) {
	if c.Request == "" {
		return nil, nil
	}
	r, err := t.Request(c.Request)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return &r, err
}

// callsIn lists the calls of a conversation like CallsIn. If the messages of the conversation's current turn are lost,
// CallsIn does not find this turn, so callsIn adds the calls of this turn.
func (t damageTx) callsIn(conversation string) ([]store.Call, error) {
	calls, err := CallsIn(t, conversation)
	if err != nil || ofCaller(conversation) {
		return calls, err
	}
	conv, err := t.Conversation(conversation)
	if err != nil || conv.Turn == "" || slices.ContainsFunc(calls, func(c store.Call) bool { return c.Turn == conv.Turn }) {
		return calls, store.IgnoreNotFound(err)
	}
	current, err := t.Calls(conv.Turn)
	return append(calls, current...), err
}

// callThat returns the first call of a conversation for which the given function returns true.
func (t damageTx) callThat(conversation string, is func(store.Call) bool) (store.Call, bool, error) {
	calls, err := t.callsIn(conversation)
	if err != nil {
		return store.Call{}, false, err
	}
	if i := slices.IndexFunc(calls, is); i >= 0 {
		return calls[i], true, nil
	}
	return store.Call{}, false, nil
}

// rebuildCall replaces a damaged call. If the call's run has not begun, rebuildCall ends the call, its execution and
// its request. If the run has ended, the call gets the run's result. If the run and the request are lost, the outcome of
// the call is unknown, unless the request's history shows that the run had not begun.
func (t damageTx) rebuildCall(id, of string) (func() error, error) {
	turn, err := t.Turn(of)
	if err != nil {
		return nil, store.IgnoreNotFound(err)
	}
	beside, err := t.Calls(turn.ID)
	if err != nil {
		return nil, err
	}
	call := store.Call{ID: id, Conversation: turn.Conversation, Turn: turn.ID, Step: turn.Step, ModelID: id, Tool: "unknown", Args: "{}", CreatedAt: t.now}
	for _, c := range beside {
		if c.Step == call.Step {
			call.Index = max(call.Index, c.Index+1)
		}
	}
	requests, err := t.Requests(turn.Conversation)
	if err != nil {
		return nil, err
	}
	for _, r := range requests {
		if r.Call == id {
			call.Tool, call.Args, call.Secrets = r.Tool, string(r.Args), r.Secrets
			call.Execution, call.Request, call.CreatedAt = r.Execution, r.ID, r.CreatedAt
		}
	}
	runs, err := t.Executions(turn.Conversation)
	if err != nil {
		return nil, err
	}
	var newest time.Time
	for _, e := range runs {
		if e.Call == id && (newest.IsZero() || e.CreatedAt.After(newest)) {
			newest = e.CreatedAt
			call.Tool, call.Args, call.Execution, call.Request, call.CreatedAt = e.Tool, string(e.Args), e.ID, e.Request, e.CreatedAt
		}
	}
	return func() error {
		call, err := t.Call(id)
		if err != nil {
			return err
		}
		return t.closeCall(call)
	}, t.PutCall(call)
}

// closeCall closes a call that has no result. If the call's run has begun, closeCall does not change the run, because
// the run ends by itself. If the run is lost, it is unknown whether the call was run. (If the request's history shows
// that the run had not begun, closeAll has voided the request before, so the call has a result.)
func (t damageTx) closeCall(c store.Call) error {
	if c.Outcome != "" {
		return nil
	}
	e, err := t.Execution(c.Execution)
	switch {
	case errors.Is(err, store.ErrNotFound) && t.hadNoRun(c):
		res := approvers.NewResult(approvers.OutcomeVoided, c.Tool, whyDamaged, "")
		return t.turns.giveResult(c, approvers.OutcomeVoided, res.Text())
	case errors.Is(err, store.ErrNotFound):
		res := approvers.NewResult(approvers.OutcomeUnknown, c.Tool, "its records in the store are lost, so nobody knows whether it was run", "")
		return t.turns.giveResult(c, approvers.OutcomeUnknown, res.Text())
	case err != nil:
		return err
	case e.State != approvers.ExecutionNone:
		return t.returnKnown(e)
	}
	return t.endRun(e, c)
}

// hadNoRun reports whether a call certainly had no run: the call was a question of the model, or had an error. Any other
// call had a run, or a request with a run. A rebuilt call without a run does not show this, because they may be lost.
func (t damageTx) hadNoRun(c store.Call) bool {
	facts, _ := t.proposedFacts(c.ID)
	return c.ModelQuestion != nil || c.Execution == "" && (facts["verdict"] == "inquiry" || facts["verdict"] == "error")
}

// returnKnown gives a rebuilt call the result of its finished run.
func (t damageTx) returnKnown(e approvers.Execution) error {
	switch e.State {
	case approvers.ExecutionSucceeded, approvers.ExecutionFailed:
		return t.runs.returnResult(e)
	}
	return t.runs.changedStep(e) // the call gets its result when the run ends, or when people report its outcome
}

// requestersOf returns the requesters of a turn whose record is damaged. They are a caller's requesters, or the authors
// of the messages that the turn handles. The audit records of the turn's calls also name people who chose *Try again*,
// and authors whose messages an earlier turn did not answer. Requesters may ask again for the turn's calls, and can't
// approve these calls.
func (t damageTx) requestersOf(id string, conv store.Conversation, calls []store.Call) ([]approvers.PersonID, error) {
	var out []approvers.PersonID
	add := func(people ...approvers.PersonID) {
		for _, p := range people {
			if p != "" && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	if conv.Caller != nil {
		add(conv.Caller.Caller.Requesters()...)
	}
	messages, err := t.Messages(conv.ID, 0)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if m.Role == store.RoleUser && m.Turn == id {
			add(m.Author)
		}
	}
	for _, c := range calls {
		facts, _ := t.proposedFacts(cmp.Or(c.Request, c.Execution, c.ID))
		add(peopleIn(facts["requesters"])...)
	}
	return out, nil
}

// peopleIn reads the people from a fact that personFacts has written.
func peopleIn(fact string) []approvers.PersonID {
	var out []approvers.PersonID
	for who := range strings.SplitSeq(fact, ",") {
		if who != "" {
			out = append(out, approvers.PersonID(who))
		}
	}
	return out
}

// rebuildTurn replaces a damaged turn with a stopped turn, and closes the turn's open calls.
func (t damageTx) rebuildTurn(id, of string) (func() error, error) {
	conv, err := t.Conversation(of)
	if err != nil {
		return nil, store.IgnoreNotFound(err)
	}
	calls, err := t.Calls(id)
	if err != nil {
		return nil, err
	}
	turn := approvers.Turn{ID: id, Conversation: conv.ID, Agent: conv.Agent, State: approvers.TurnWaiting, CreatedAt: t.now}
	if turn.Requesters, err = t.requestersOf(id, conv, calls); err != nil {
		return nil, err
	}
	for _, c := range calls {
		turn.Step = max(turn.Step, c.Step)
	}
	turn.Stopping = "A record of this in the store is damaged, so it was stopped. Please ask again."
	if conv.Turn != id {
		turn.State, turn.EndedAt, turn.Problem = approvers.TurnStopped, t.now, turn.Stopping
	}
	return func() error { return t.stopTurn(id) }, t.PutTurn(turn)
}

// stopTurn closes the open calls of a turn. The result of the last call stops the turn.
func (t damageTx) stopTurn(id string) error {
	calls, err := t.Calls(id)
	if err != nil {
		return err
	}
	open := 0
	for _, c := range calls {
		if c.Outcome != "" {
			continue
		}
		open++
		if err := t.closeCall(c); err != nil {
			return err
		}
	}
	turn, err := t.Turn(id)
	if err != nil || open > 0 || turn.Ended() {
		return err
	}
	return t.turns.stopStored(turn, turn.Stopping, false)
}

// closeCalls closes the open calls of a waiting turn that nothing else would close, and returns the turn.
func (t damageTx) closeCalls(turn approvers.Turn) (approvers.Turn, error) {
	calls, err := t.Calls(turn.ID)
	if err != nil {
		return turn, err
	}
	for _, c := range calls {
		if c.Outcome != "" {
			continue
		}
		if err := t.closeCall(c); err != nil {
			return turn, err
		}
		e, err := t.Execution(c.Execution)
		if err == nil && e.State == approvers.ExecutionUnknown {
			err = t.runs.leave(e)
		}
		if store.IgnoreNotFound(err) != nil {
			return turn, err
		}
	}
	return t.Turn(turn.ID)
}

// rebuildConversation replaces a damaged conversation. The data of the new conversation come from the conversation's
// address and its current turn. The conversation's messages, runs and timers name its turns.
func (t damageTx) rebuildConversation(id, place string, waiting map[string][]string) (func() error, error) {
	parts := strings.SplitN(place, "/", 3)
	if len(parts) < 3 {
		return nil, nil
	}
	conv := store.Conversation{ID: id, Place: place, Team: parts[0], Channel: parts[1], Thread: parts[2], DM: strings.HasPrefix(parts[1], "D"), CreatedAt: t.now, LastAt: t.now}
	messages, err := t.Messages(id, 0)
	if err != nil {
		return nil, err
	}
	runs, err := t.Executions(id)
	if err != nil && !errors.Is(err, store.ErrDamaged) { // damaged runs are closed later, and are not needed here
		return nil, err
	}
	var turns []string
	for _, m := range messages {
		conv.Messages, turns = max(conv.Messages, m.Seq), append(turns, m.Turn)
	}
	for _, e := range runs {
		turns = append(turns, e.Turn)
	}
	if waiting == nil {
		if waiting, err = waitingTurns(t); err != nil {
			return nil, err
		}
	}
	for _, id := range append(turns, waiting[id]...) {
		if id == "" {
			continue
		}
		turn, err := t.Turn(id)
		if store.IgnoreNotFound(err) != nil {
			return nil, err
		}
		conv.Agent = cmp.Or(turn.Agent, conv.Agent)
		if err == nil && !turn.Ended() {
			conv.Turn = turn.ID
		}
	}
	return nil, t.PutConversation(conv)
}

// waitingTurns lists the ids of the turns that have a timer, by conversation. It reads the timers of all turns.
func waitingTurns(r store.Reader) (map[string][]string, error) {
	timers, err := r.Timers(store.TimerThink, math.MaxInt32)
	waiting := map[string][]string{}
	for _, timer := range timers {
		conversation := strings.TrimPrefix(timer.Affinity, store.ToConversation)
		waiting[conversation] = append(waiting[conversation], timer.Ref)
	}
	return waiting, err
}

// restorePeople sets the people of a caller from the facts of the record about the proposal. Records of version 0.1.0
// have the person for whom the caller acts only if a token proved the person: as a requester besides the caller's owner.
func restorePeople(c *approvers.Caller, facts map[string]string) {
	for who := range strings.SplitSeq(facts["requesters"], ",") {
		switch who := approvers.PersonID(who); {
		case who.Caller() != "":
			c.Name = cmp.Or(c.Name, who.Caller())
		case c.Owner == "":
			c.Owner = who
		default:
			c.For, c.Proven = who, true
		}
	}
	switch who := facts["for"]; who {
	case "":
		c.PersonLost = !c.Proven
	case forNobody:
	default:
		c.For, c.Proven = approvers.PersonID(who), facts["proven"] == "true"
	}
}

// callerFrom returns the caller of a call. The data come from the facts of the record about the proposal, and from the
// policy. If name is empty, the facts have the caller's name.
func (t damageTx) callerFrom(name string, facts map[string]string) approvers.Caller {
	c := approvers.Caller{Name: name, Mode: approvers.ExecuteMode}
	if facts["runs"] != "" {
		c.Mode = approvers.DecideMode
	}
	restorePeople(&c, facts)
	client, _ := t.policy.Client(c.Name)
	c.Title = cmp.Or(client.Title, c.Name)
	return c
}

// callWithin finds the call of lost requests and runs, and reads the facts of the record about its proposal. lost has
// the ids of the requests and runs. The first request of a caller's call has the id of the call.
func (t damageTx) callWithin(lost []string) (store.Call, map[string]string, error) {
	for _, id := range lost {
		facts, _ := t.proposedFacts(id)
		if c, err := t.Call(cmp.Or(facts["call"], id)); !errors.Is(err, store.ErrNotFound) {
			return c, facts, err
		}
	}
	return store.Call{}, nil, store.ErrNotFound
}

// rebuildCallersConversation replaces the damaged conversation of a caller's request. The data of the new conversation
// come from the run, the request and the audit records. If there is neither a run nor a request, the data come from the
// call, which the lost run or the lost request names. If the call is lost, too, nothing is rebuilt. If the caller then
// repeats the call with the same key, the call is a new request.
func (t damageTx) rebuildCallersConversation(id, place string, lost []string) (func() error, error) {
	runs, err := t.Executions(id)
	if err != nil {
		return nil, err
	}
	requests, err := t.Requests(id)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(place, callerFingerprint), "/")
	client, _ := t.policy.Client(name)
	conv := store.Conversation{ID: id, Place: place, Agent: client.Agent, CreatedAt: t.now, LastAt: t.now}
	var caller approvers.Caller
	call, turn := "", ""
	if len(runs) > 0 {
		e := slices.MaxFunc(runs, func(a, b approvers.Execution) int { return a.CreatedAt.Compare(b.CreatedAt) })
		facts, _ := t.proposedFacts(e.Chain())
		if caller = t.callerFrom(name, facts); e.Caller != "" {
			caller.Mode = approvers.DecideMode
		}
		call, turn, conv.CreatedAt = e.Call, e.Turn, e.CreatedAt
	} else if len(requests) == 0 {
		c, facts, err := t.callWithin(lost)
		if err != nil {
			return nil, store.IgnoreNotFound(err)
		}
		caller = t.callerFrom(name, facts)
		call, turn, conv.CreatedAt = c.ID, c.Turn, c.CreatedAt
	}
	if len(requests) > 0 {
		r := slices.MaxFunc(requests, func(a, b approvers.Request) int { return a.CreatedAt.Compare(b.CreatedAt) })
		if r.Facts.Caller != nil {
			caller = *r.Facts.Caller
		}
		call, turn, conv.CreatedAt = r.Call, r.Turn, r.CreatedAt
	}
	conv.Team, _, _ = strings.Cut(string(caller.Owner), "/")
	client.Name = caller.Name
	if caller.Proven {
		client.ActsFor = caller.For.User()
	}
	conv.Caller = &store.CallerRequest{Caller: caller, Request: call, Repeatable: id == conversationOf(client, call)}
	stored, err := t.Turn(turn)
	if store.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err == nil && !stored.Ended() {
		conv.Turn = turn
	}
	return func() error {
		// The store no longer knows which change the webhook got last, so the webhook may get the latest change again.
		if err := t.SetTimer(store.Timer{Kind: store.TimerWebhook, Ref: call, Due: t.now, Lane: caller.Name}); err != nil {
			return err
		}
		call, err := t.Call(call)
		if err != nil || call.Outcome != "" || call.Request != "" {
			return store.IgnoreNotFound(err)
		}
		e, err := t.Execution(call.Execution)
		if err != nil || e.State != approvers.ExecutionNone {
			return store.IgnoreNotFound(err)
		}
		return t.endRun(e, call) // the person for whom the caller acts may be lost, so the call may need approval
	}, t.PutConversation(conv)
}
