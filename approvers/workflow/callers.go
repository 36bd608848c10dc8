package workflow

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Callers handles the requests of other agents. Another agent that calls a tool through Countersign is a caller. The
// caller's entry in the policy is a client (approvers.Client). The workflow stores each request of a caller as a
// conversation with one turn and one call. See docs/adr/0019-the-gateway.md.
type Callers struct{ *core }

// callersTx has the parts of a transaction that concern callers.
type callersTx struct{ *tx }

// CallerProblem is the error that a caller gets if the caller's action is not possible.
type CallerProblem struct {
	Code    CallerCode
	Detail  string
	Request string        // the id of the request that the problem is about; empty: the problem is about no request
	Again   time.Duration // how long the caller should wait before it tries again; zero: unknown
}

func (p *CallerProblem) Error() string {
	if p.Detail == "" {
		return "caller: " + string(p.Code)
	}
	return "caller: " + string(p.Code) + ": " + p.Detail
}

// CallerCode identifies a CallerProblem.
type CallerCode string

// These are the codes of CallerProblem.
const (
	CallerUnknown      CallerCode = "unauthorized"      // the policy has no client with this name and these credentials
	CallerNotFound     CallerCode = "not_found"         // the caller has no such request
	CallerTool         CallerCode = "tool_not_allowed"  // the policy does not let the caller ask for the tool
	CallerToolBlocked  CallerCode = "tool_blocked"      // nobody may call the tool now
	CallerArgs         CallerCode = "invalid_arguments" // the bot refuses the arguments
	CallerKeyReused    CallerCode = "key_reused"        // the key was used before, with another body
	CallerPending      CallerCode = "too_many_pending"  // too many of the caller's requests wait for a decision
	CallerOften        CallerCode = "too_many_requests" // the caller has reached its limit of requests
	CallerBudget       CallerCode = "budget_used_up"    // the caller has used up its calls for the day
	CallerMode         CallerCode = "wrong_mode"        // the caller can't do this, because Countersign runs the call itself
	CallerClaimed      CallerCode = "already_claimed"   // the approval was used up before
	CallerNotApproved  CallerCode = "not_approved"      // the call may not run now
	CallerOtherArgs    CallerCode = "other_arguments"   // the hash in the claim is not the hash of the current arguments
	CallerNotClaimed   CallerCode = "not_claimed"       // the caller reported an outcome without having claimed the call
	CallerOutcomeKnown CallerCode = "outcome_known"     // the store already has another outcome, or the records of the run are lost
	CallerOver         CallerCode = "already_over"      // too late to withdraw: the call has ended, or its run has begun
	CallerNoQuestion   CallerCode = "no_question"       // the request has no open question with this number
	CallerPaused       CallerCode = "paused"            // everything is paused
)

// CallerCall is a call as a client proposes it.
type CallerCall struct {
	Client  approvers.Client
	Key     string // the client's name for the request; empty: an identical call is the same request until the result is delivered
	Body    string // SHA-256 of the request's body in hex; only with a key
	Mode    approvers.CallerMode
	Tool    string
	Args    json.RawMessage // the exact bytes
	Edits   bool            // the client can use arguments that approvers have changed
	For     string          // id of the Slack user for whom the client says, without proof, that it acts; empty: the client names nobody
	Summary string
	// ClientState is a text that Countersign returns to the client unchanged. Callers.Last uses it to find an earlier
	// request.
	ClientState string
	Waits       bool // only without a key: the caller waits for the result (see when_caller_left in docs/policy.md)
}

// The ids of callers' conversations begin with callerConversation. The fingerprints of their calls begin with
// callerFingerprint.
const (
	callerConversation = "caller_"
	callerFingerprint  = "caller/"
)

// ofCaller reports whether a conversation holds a caller's request, or is the scope of a caller's calls. Slack shows no
// messages of a caller's conversation.
func ofCaller(conversation string) bool {
	return strings.HasPrefix(conversation, callerConversation) || approvers.IsCallerScope(conversation)
}

// callerHash returns a hash of several parts. Different lists of parts are never encoded as the same bytes.
func callerHash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s,", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// conversationOf returns the id of the conversation for a client's key. A call that is repeated with the same key has
// the same conversation.
func conversationOf(client approvers.Client, key string) string {
	parts := []string{"key", client.Name, key}
	if client.ActsFor != "" {
		parts = append(parts, client.ActsFor)
	}
	return callerConversation + callerHash(parts...)[:32]
}

// fingerprint identifies a call among the calls of its client. Identical calls have the same fingerprint. Calls are
// identical if they have the same tool, mode and person, and arguments with the same JSON value. Calls with a key and
// calls without a key have different fingerprints. So a call without a key can repeat only another call without a key.
// The fingerprint is the Place of the call's conversation, so the store finds the last identical call.
func fingerprint(p CallerCall) string {
	if p.Client.ActsFor != "" {
		p.For = "" // the token already names the person
	}
	return fingerprintWith(p, approvers.CanonicalArgs(p.Args))
}

func fingerprintWith(p CallerCall, args json.RawMessage) string {
	parts := []string{"call", string(p.Mode), p.Tool, string(args), p.For}
	if p.Client.ActsFor != "" {
		parts = append(parts, p.Client.ActsFor)
	}
	if p.Key == "" {
		parts = append(parts, "without a key", "")
	}
	return callerFingerprint + p.Client.Name + "/" + callerHash(parts...)
}

// fingerprints returns the fingerprints that stored calls identical to p may have. Older versions of Countersign made
// the fingerprint from the exact bytes of the arguments, and from the person in on_behalf_of even if the token names
// the person.
func fingerprints(p CallerCall) []string {
	out := []string{fingerprint(p), fingerprintWith(p, p.Args)}
	if p.Client.ActsFor != "" {
		for _, p.For = range []string{"", p.Client.ActsFor} {
			out = append(out, fingerprintWith(p, p.Args), fingerprintWith(p, approvers.CanonicalArgs(p.Args)))
		}
	}
	return slices.Compact(out)
}

// isIdentical reports whether a conversation belongs to a call that is identical to p. A conversation that was rebuilt
// after damage has no hash of the request's body, so isIdentical compares the fingerprints.
func isIdentical(conv store.Conversation, p CallerCall) bool {
	return slices.ContainsFunc(fingerprints(p), func(same string) bool {
		return conv.Place == same || strings.HasPrefix(conv.Place, same+"/")
	})
}

// callOfCaller returns the call of a caller's conversation. There is one kind of conversation without a call: if a
// caller repeats a rejected call with a new key, the key gets a conversation that only refers to the rejected request.
func callOfCaller(r store.Reader, conversation string) ([]store.Call, error) {
	conv, err := r.Conversation(conversation)
	if err != nil || conv.Caller == nil {
		return nil, store.IgnoreNotFound(err)
	}
	call, err := r.Call(conv.Caller.Request)
	if err != nil || call.Conversation != conversation {
		return nil, store.IgnoreNotFound(err)
	}
	return []store.Call{call}, nil
}

// Mend closes the request, run, call or turn whose damaged record made a read fail with err. If Mend returns true, the
// read can be tried again.
func (w *Callers) Mend(ctx context.Context, err error) bool {
	var row *store.DamagedError
	return errors.As(err, &row) && w.closeDamaged(ctx, row.Damage, salvaged{})
}

// Propose stores a client's call, and decides whether the call may run, waits for people, or is refused. If the call
// repeats an earlier call, Propose returns the id of the existing request, and again is true. If people rejected an
// identical call shortly before, Propose returns the id of the rejected request. In this case, again is false if p has
// a key, because this key is new.
func (w *Callers) Propose(ctx context.Context, p CallerCall) (id string, again bool, err error) {
	team := ""
	if w.Team != nil {
		if team, err = w.Team(ctx); err != nil {
			return "", false, fmt.Errorf("propose: %w", err)
		}
	}
	err = w.change(ctx, p.Client, "propose for a caller", func(t *tx) (err error) {
		id, again, err = t.callers.propose(p, team)
		return err
	})
	return id, again, err
}

func (t callersTx) propose(p CallerCall, team string) (id string, again bool, err error) {
	client, err := t.client(p.Client)
	if err != nil {
		return "", false, err
	}
	p.Client = client
	if id, err := t.repeated(p); id != "" || err != nil {
		return id, id != "", err
	}
	tool, args, err := t.admissible(p)
	if err != nil {
		return "", false, err
	}
	rejected, err := t.rejected(p, client)
	if err != nil {
		return "", false, err
	}
	if rejected != "" && p.Key == "" {
		return rejected, true, nil
	}
	policy, _ := t.policy.Tool(p.Tool, client.Agent)
	caller := approvers.Caller{
		Name: client.Name, Title: client.Title, Owner: approvers.Who(team, client.Owner), Mode: p.Mode, Edits: p.Edits,
		Starts: p.Waits && !policy.RunsUnawaited,
	}
	switch {
	case client.ActsFor != "":
		caller.For, caller.Proven = approvers.Who(team, client.ActsFor), true
	case p.For != "":
		caller.For = approvers.Who(team, p.For)
	}
	request := t.newID("req")
	conv := store.Conversation{
		ID: conversationOf(client, cmp.Or(p.Key, request)), Place: fingerprint(p), Team: team, Agent: client.Agent, CreatedAt: t.now, LastAt: t.now,
		Caller: &store.CallerRequest{Caller: caller, Request: request, Body: p.Body, Summary: p.Summary, ClientState: p.ClientState, Repeatable: p.Key == ""},
	}
	if rejected != "" { // the new conversation, and so the key, refers to the request that was rejected
		conv.Caller.Request, conv.Place = rejected, conv.Place+"/"+conv.ID
		conv.Caller.Summary, conv.Caller.ClientState = "", "" // this conversation needs neither text, and Erase would not find them here
		t.note(slog.LevelInfo, "a caller repeats a call that was rejected shortly before; nobody is asked again", "client", client.Name, "request", rejected, "conversation", conv.ID, "tool", p.Tool)
		return rejected, false, t.PutConversation(conv)
	}
	turn := approvers.Turn{
		ID: t.newID("turn"), Conversation: conv.ID, Agent: client.Agent, State: approvers.TurnWaiting, Step: 1, Requesters: caller.Requesters(), CreatedAt: t.now,
	}
	conv.Turn = turn.ID
	call := store.Call{
		ID: conv.Caller.Request, Conversation: conv.ID, Turn: turn.ID, Step: turn.Step, ModelID: conv.Caller.Request, Tool: p.Tool, Args: string(p.Args), CreatedAt: t.now,
	}
	if err := t.withinLimits(turn, call, client, caller); err != nil {
		return "", false, err
	}
	if p.Key != "" {
		if err := t.keepLast(p); err != nil {
			return "", false, err
		}
	}
	for _, put := range []func() error{
		func() error { return t.PutConversation(conv) }, func() error { return t.PutTurn(turn) }, func() error { return t.PutCall(call) },
	} {
		if err := put(); err != nil {
			return "", false, err
		}
	}
	call.Version++
	t.happened(Event{Turn: turn.ID, Began: &TurnBegan{Since: t.now, Caller: true}})
	facts, err := t.proposals.askFacts(turn, conv, nil, "")
	if err != nil {
		return "", false, err
	}
	asked, _, err := t.proposals.proposeAdmissible(turn, call, tool, args, facts)
	if err != nil || asked == "" {
		return call.ID, false, err
	}
	return call.ID, false, t.cards.showStep([]string{asked})
}

// t.repeated returns the request that a call repeats, or "". A call with a key repeats the client's request with the
// same key. A call without a key repeats the client's last identical call without a key. After the result of that call
// is delivered, an identical call is a new request. If the person of that call is lost (see Client.Owns), the client
// can't read its result, so an identical call is a new request, too.
func (t callersTx) repeated(p CallerCall) (string, error) {
	if p.Key == "" {
		last, err := t.lastIdentical(p)
		if err != nil || last.Caller == nil || !last.Caller.Delivered.IsZero() {
			return "", err
		}
		return last.Caller.Request, nil
	}
	conv, err := t.Conversation(conversationOf(p.Client, p.Key))
	switch {
	case err != nil:
		return "", store.IgnoreNotFound(err)
	case conv.Caller == nil:
		return "", fmt.Errorf("conversation %s is not a caller's", conv.ID)
	case conv.Caller.Body != p.Body && (conv.Caller.Body != "" || !isIdentical(conv, p)):
		return "", &CallerProblem{Code: CallerKeyReused, Request: conv.Caller.Request}
	}
	return conv.Caller.Request, nil
}

// lastIdentical returns the conversation of the client's last call that is identical to p. If there is none, the
// conversation has no caller. Several calls can have different fingerprints: while an older version of Countersign works
// on the same store, it does not find every call of this version, and stores a repeated call as a new one.
func (t callersTx) lastIdentical(p CallerCall) (last store.Conversation, err error) {
	for _, same := range fingerprints(p) {
		conv, err := t.ConversationAt(same)
		if store.IgnoreNotFound(err) != nil {
			return last, err
		}
		if err == nil && conv.Caller != nil && p.Client.Owns(conv.Caller.Caller) && conv.CreatedAt.After(last.CreatedAt) {
			last = conv
		}
	}
	return last, nil
}

// client checks that the current policy has the client with the same credentials, and returns the client's current
// settings. The credentials were checked earlier, perhaps under another policy.
func (t callersTx) client(c approvers.Client) (approvers.Client, error) {
	now, ok := t.policy.Client(c.Name)
	if !ok || !now.Same(c) {
		return now, &CallerProblem{Code: CallerUnknown}
	}
	now.ActsFor = c.ActsFor
	return now, nil
}

// admissible checks whether a client may propose a call. If the client runs the tool itself, Countersign does not need
// a definition of the tool.
func (t callersTx) admissible(p CallerCall) (Tool, map[string]any, error) {
	tool, ok := t.tool(p.Tool)
	if !p.Client.MayUse(t.policy, p.Tool) || ok && tool.Asks {
		return tool, nil, &CallerProblem{Code: CallerTool, Detail: "the policy does not let this client ask for the tool"}
	}
	switch {
	case !ok && p.Mode != approvers.DecideMode:
		return tool, nil, &CallerProblem{Code: CallerTool, Detail: "there is no tool of this name that Countersign could run"}
	case !ok:
		tool = undeclared(p.Tool)
	case tool.Blocked != "":
		return tool, nil, &CallerProblem{Code: CallerToolBlocked, Detail: tool.look()}
	}
	policy, _ := t.policy.Tool(p.Tool, p.Client.Agent)
	args, err := approvers.StrictArgs(p.Args, policy.ReadsNumbers())
	if err == nil {
		err = tool.Check(p.Args)
	}
	if err != nil {
		return tool, nil, &CallerProblem{Code: CallerArgs, Detail: plainFault(err)}
	}
	return tool, args, nil
}

// ToolOf finds the tool of a call by the tool's name and the hash of the tool's definition. A tool without a definition
// in Countersign has the hash approvers.UndeclaredHash.
func ToolOf(tools Tools, name, hash string) (Tool, bool) {
	tool, ok := tools.Tool(name)
	return orUndeclared(tool, ok, name, hash)
}

func orUndeclared(tool Tool, ok bool, name, hash string) (Tool, bool) {
	if !ok && hash == approvers.UndeclaredHash(name) {
		return undeclared(name), true
	}
	return tool, ok
}

// undeclared returns a Tool for a tool that has no definition in Countersign. The caller runs this tool itself.
func undeclared(name string) Tool {
	return Tool{Name: name, Hash: approvers.UndeclaredHash(name), Effect: approvers.Unprotected, Check: func(json.RawMessage) error { return nil }}
}

// toolOf is like ToolOf, but uses the transaction's tools.
func (t *tx) toolOf(name, hash string) (Tool, bool) {
	tool, ok := t.tool(name)
	return orUndeclared(tool, ok, name, hash)
}

// t.rejected returns the client's last request for an identical call if people rejected the request less than
// client.RejectionHolds ago, and the client can read it. In all other cases, rejected returns "".
func (t callersTx) rejected(p CallerCall, client approvers.Client) (string, error) {
	if client.RejectionHolds == 0 {
		return "", nil
	}
	with, without := p, p
	with.Key, without.Key = "any", ""
	for _, same := range slices.Concat(fingerprints(with), fingerprints(without)) {
		conv, err := t.ConversationAt(same)
		if err != nil || conv.Caller == nil || !p.Client.Owns(conv.Caller.Caller) {
			if store.IgnoreNotFound(err) != nil {
				return "", err
			}
			continue
		}
		call, err := t.Call(conv.Caller.Request)
		if store.IgnoreNotFound(err) != nil {
			return "", err
		}
		if err == nil && call.Outcome == approvers.OutcomeRejected && t.now.Sub(call.ReturnedAt) < client.RejectionHolds {
			return call.ID, nil
		}
	}
	return "", nil
}

// withinLimits checks the limits of a client, and counts the call against the client's budget.
func (t callersTx) withinLimits(turn approvers.Turn, call store.Call, client approvers.Client, caller approvers.Caller) error {
	reached, err := t.capReached(client)
	switch {
	case err != nil:
		return err
	case reached != nil:
		return reached
	}
	problem, err := t.proposals.spendCall(turn, call, caller.Identity().ID)
	if err != nil {
		return err
	}
	if problem != "" {
		_, ends := approvers.Day(t.now)
		return &CallerProblem{Code: CallerBudget, Detail: "the tool calls that the client has for a day are used up", Again: ends.Sub(t.now)}
	}
	return nil
}

// capReached returns a problem if the client has reached one of its caps of requests. Otherwise, capReached returns nil.
func (t callersTx) capReached(client approvers.Client) (*CallerProblem, error) {
	known, _, err := settings.ReadCaller(t, client.Name)
	if err != nil {
		return nil, err
	}
	if n := len(known.Pending); n >= client.MaxPending {
		return &CallerProblem{Code: CallerPending, Detail: fmt.Sprintf("%d requests wait for people already", n), Again: 15 * time.Second}, nil
	}
	if client.Requests.Count == 0 {
		return nil, nil
	}
	n, err := t.CounterSum(counterCaller(client.Name), t.now.Add(-client.Requests.Per))
	if err != nil || !client.Requests.Reached(n) {
		return nil, err
	}
	return &CallerProblem{Code: CallerOften, Detail: fmt.Sprintf("the client may ask people %s", client.Requests), Again: time.Minute}, nil
}

// countRequest counts a request about which people are asked against the cap of its client. A retry does not count,
// because a person has requested it.
func (t callersTx) countRequest(r approvers.Request) error {
	if r.Facts.Caller == nil || r.Retry != nil || r.State != approvers.Pending {
		return nil
	}
	client, _ := t.policy.Client(r.Facts.Caller.Name)
	if client.Requests.Count == 0 {
		return nil
	}
	return t.AddCounter(store.Counter{Key: counterCaller(client.Name), At: t.now, ID: r.ID, N: 1})
}

// counterCaller returns the key of the counter for a client's requests that people were asked to approve.
func counterCaller(name string) string { return "client/" + name }

// t.own reads a request of the client. If the client has no such request, the error is a CallerProblem with the code
// CallerNotFound.
func (t callersTx) own(client approvers.Client, id string) (store.Conversation, store.Call, error) {
	if _, err := t.client(client); err != nil {
		return store.Conversation{}, store.Call{}, err
	}
	conv, call, err := view.CallerCall(t, client.Name, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !client.Owns(conv.Caller.Caller) {
		err = &CallerProblem{Code: CallerNotFound}
	}
	return conv, call, err
}

// Claim uses up the approval of a call that the client runs itself. The client may run the call only after Claim has
// returned without an error. hash is the SHA-256, in hex, of the arguments with which the client is about to run the
// call.
func (w *Callers) Claim(ctx context.Context, client approvers.Client, id, hash string) error {
	givers, err := w.givers(ctx, client, id)
	if w.Mend(ctx, err) {
		givers, err = w.givers(ctx, client, id)
	}
	if errors.Is(err, store.ErrNotFound) {
		return &CallerProblem{Code: CallerNotFound}
	}
	if err != nil {
		return err
	}
	var problem *CallerProblem
	err = w.change(ctx, client, "claim for a caller", func(t *tx) (err error) {
		problem, err = t.callers.claim(client, id, hash, givers)
		return err
	})
	if err == nil && problem != nil {
		return problem
	}
	return err
}

// givers looks up, in Slack, the owners of the grants that may cover a request's run.
func (w *Callers) givers(ctx context.Context, client approvers.Client, id string) (grantOwners, error) {
	execution := ""
	err := w.Store.View(ctx, func(r store.Reader) error {
		_, call, err := view.CallerCall(r, client.Name, id)
		execution = call.Execution
		return err
	})
	if err != nil {
		return nil, err
	}
	return (&Runs{w.core}).grantOwners(ctx, execution)
}

// claim returns a problem if the call may not run. The problem is not an error, because the transaction must be
// committed. For example, claim may reopen a request because the current policy requires more approvals.
func (t callersTx) claim(client approvers.Client, id, hash string, givers grantOwners) (*CallerProblem, error) {
	conv, call, err := t.own(client, id)
	if err != nil {
		return nil, err
	}
	e, err := t.Execution(call.Execution)
	switch {
	case !conv.Caller.Caller.Decides():
		return &CallerProblem{Code: CallerMode, Request: id}, nil
	case errors.Is(err, store.ErrNotFound) && call.Outcome != "": // the record of the run is lost
		return &CallerProblem{Code: CallerNotApproved, Request: id}, nil
	case err != nil:
		return nil, err
	case e.State != approvers.ExecutionNone && !e.Unrun:
		return &CallerProblem{Code: CallerClaimed, Request: id}, nil
	case call.Outcome != "":
		return &CallerProblem{Code: CallerNotApproved, Request: id}, nil
	case hash != hashOf(e.Args):
		return &CallerProblem{Code: CallerOtherArgs, Request: id}, nil
	}
	if err := ifPaused(t); errors.Is(err, ErrPaused) {
		return &CallerProblem{Code: CallerPaused, Request: id, Again: 15 * time.Second}, nil
	} else if err != nil {
		return nil, err
	}
	if lapsed, err := t.lapsed(call, e); lapsed || err != nil {
		return &CallerProblem{Code: CallerNotApproved, Request: id}, err
	}
	run, err := t.runs.claim(&e, givers)
	if err != nil || run {
		return nil, err
	}
	return &CallerProblem{Code: CallerNotApproved, Request: id}, nil
}

// lapsed ends a call that needs no approval, and that its caller did not claim in time. lapsed returns true if it has
// ended the call.
func (t callersTx) lapsed(call store.Call, e approvers.Execution) (bool, error) {
	if e.Request != "" || call.Outcome != "" {
		return false, nil
	}
	timer, err := t.Timer(store.TimerOutcome, e.ID)
	if err != nil || t.now.Before(timer.Due) {
		return false, store.IgnoreNotFound(err)
	}
	res := approvers.NewResult(approvers.OutcomeExpired, e.Tool, "it was not claimed in time", "")
	return true, t.turns.giveResult(call, approvers.OutcomeExpired, res.Text())
}

func hashOf(args json.RawMessage) string {
	sum := sha256.Sum256(args)
	return hex.EncodeToString(sum[:])
}

// Report records how a client's run ended. If the client reports approvers.ExecutionUnknown, Countersign asks people
// what happened. Until a person answers, the client may report the real outcome. The parameter run is the id of the
// run. Without it, the report is about the call's current run, so it may close a run that was claimed later.
func (w *Callers) Report(ctx context.Context, client approvers.Client, id, run string, state approvers.ExecutionState, text string) error {
	return w.changeBy(ctx, client, "outcome of a caller", w.record, func(t *tx) error {
		conv, call, err := t.callers.own(client, id)
		if err != nil {
			return err
		}
		if !conv.Caller.Caller.Decides() {
			return &CallerProblem{Code: CallerMode, Request: id}
		}
		e, err := t.callers.reportedRun(conv, call, run)
		if errors.Is(err, store.ErrNotFound) && call.Outcome != "" {
			if !mayHaveRun(call) {
				return &CallerProblem{Code: CallerNotClaimed, Detail: "the call was closed before it was claimed", Request: id}
			}
			return &CallerProblem{Code: CallerOutcomeKnown, Detail: "the records of the run are lost, so no outcome can be recorded", Request: id}
		}
		if err != nil {
			return err
		}
		who := conv.Caller.Caller.Identity()
		switch {
		case e.State == state && (e.Result == text || state == approvers.ExecutionUnknown) && !e.Unrun:
			return nil // the caller repeated its report
		case e.State == approvers.ExecutionNone && e.ID != call.Execution: // an approver changed the arguments
			return &CallerProblem{Code: CallerNotClaimed, Request: id}
		case e.State == approvers.ExecutionNone:
			if err := t.callers.claimedAfterBackup(conv, call, e); err != nil || state == approvers.ExecutionUnknown {
				return err
			}
			return t.callers.reportUnknown(who, id, e, state, text)
		case e.Unrun:
			return &CallerProblem{Code: CallerNotClaimed, Request: id}
		case e.State == approvers.ExecutionExecuting && state == approvers.ExecutionUnknown:
			return t.runs.markUnknown(e, approvers.LossUnclear)
		case e.State == approvers.ExecutionExecuting:
			if e, err = e.Finish(state == approvers.ExecutionSucceeded, text, t.now); err != nil {
				return err
			}
			return t.runs.finished(e)
		case e.State == approvers.ExecutionUnknown:
			return t.callers.reportUnknown(who, id, e, state, text)
		}
		return &CallerProblem{Code: CallerOutcomeKnown, Detail: "another outcome is recorded", Request: id}
	})
}

// reportedRun returns the run that a caller's report is about. If the store was restored from a backup in which the call
// was open, a report about a run that was created after the backup is about the current run.
func (t callersTx) reportedRun(conv store.Conversation, call store.Call, run string) (approvers.Execution, error) {
	if run == "" {
		return t.currentRun(call)
	}
	e, err := t.Execution(run)
	if errors.Is(err, store.ErrNotFound) && run != call.Execution {
		var c view.CallerRequest
		c, err = view.ReadCaller(t, conv, call)
		if err = store.IgnoreNotFound(err); err == nil && c.OpenInBackup() {
			return t.currentRun(call)
		}
	}
	if err == nil && e.Call != call.ID {
		err = &CallerProblem{Code: CallerNotClaimed, Detail: "the request has no run with this id", Request: call.ID}
	}
	return e, err
}

// currentRun returns a call's current run, or the earlier run if the current run is a retry that was not claimed. If the
// store was restored from a backup, the retry may have been claimed after the backup.
func (t callersTx) currentRun(call store.Call) (approvers.Execution, error) {
	e, err := t.Execution(call.Execution)
	if err != nil || e.State != approvers.ExecutionNone || e.Request == "" {
		return e, err
	}
	r, err := t.Request(e.Request)
	if err != nil || r.Retry == nil || r.Lost {
		return e, store.IgnoreNotFound(err)
	}
	earlier, err := t.Execution(r.Retry.Execution)
	if errors.Is(err, store.ErrNotFound) {
		return e, nil
	}
	return earlier, err
}

// claimedAfterBackup handles a caller's report about a call that was not claimed according to the store. If the store
// was restored from a backup, the caller may have claimed the call after the backup. claimedAfterBackup then records
// that the run's outcome is unknown, and the call can't be claimed again. In all other cases, claimedAfterBackup
// returns a problem.
func (t callersTx) claimedAfterBackup(conv store.Conversation, call store.Call, e approvers.Execution) error {
	c, err := view.ReadCaller(t, conv, call)
	if err != nil {
		return err
	}
	if !c.Lost() {
		return &CallerProblem{Code: CallerNotClaimed, Request: call.ID}
	}
	started, err := e.Start("", t.now)
	if err != nil { // the arguments were erased
		return &CallerProblem{Code: CallerNotClaimed, Request: call.ID}
	}
	return t.runs.markUnknown(started, approvers.LossRestored)
}

// reportUnknown records a caller's report about a run whose outcome is unknown.
func (t callersTx) reportUnknown(who approvers.Identity, id string, e approvers.Execution, state approvers.ExecutionState, text string) error {
	report := DidNot
	if state == approvers.ExecutionSucceeded {
		report = Happened
	}
	denied, err := t.runs.report(Click{Who: who, Execution: e.ID, Reason: text, At: t.now}, report)
	if err == nil && denied != nil {
		return &CallerProblem{Code: CallerOutcomeKnown, Detail: "another outcome is recorded", Request: id}
	}
	return err
}

// Withdraw ends a request of the client before the call's run begins.
func (w *Callers) Withdraw(ctx context.Context, client approvers.Client, id, reason string) error {
	return w.change(ctx, client, "withdraw for a caller", func(t *tx) error {
		conv, call, err := t.callers.own(client, id)
		if err != nil {
			return err
		}
		if call.Outcome == approvers.OutcomeWithdrawn {
			return nil
		}
		if call.Request != "" {
			r, err := t.Request(call.Request)
			if err != nil {
				return err
			}
			after, events, denied := r.Withdraw(t.deciding(), conv.Caller.Caller.Identity(), false, reason)
			if denied != nil {
				return &CallerProblem{Code: CallerOver, Request: id}
			}
			return t.apply(after, events)
		}
		e, err := t.Execution(call.Execution)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		if call.Outcome != "" || err != nil || e.State != approvers.ExecutionNone {
			return &CallerProblem{Code: CallerOver, Request: id}
		}
		if err := t.ClearTimer(store.TimerRun, e.ID); err != nil {
			return err
		}
		res := approvers.NewResult(approvers.OutcomeWithdrawn, call.Tool, reason, "")
		return t.turns.giveResult(call, approvers.OutcomeWithdrawn, res.Text())
	})
}

// Answer answers an approver's question about a request. The questions of all requests of a call have different numbers,
// so an answer to a question of an earlier request is refused.
func (w *Callers) Answer(ctx context.Context, client approvers.Client, id string, question int, text string) error {
	return w.change(ctx, client, "answer of a caller", func(t *tx) error {
		conv, call, err := t.callers.own(client, id)
		if err != nil {
			return err
		}
		if call.Request == "" {
			return &CallerProblem{Code: CallerNoQuestion, Request: id}
		}
		cur, denied, err := t.requests.current(call.Request)
		if err != nil {
			return err
		}
		c := Click{Who: conv.Caller.Caller.Identity(), At: t.now, Reason: text}
		after, events := cur.now, []approvers.Event(nil)
		if denied == nil {
			after, events, denied = cur.now.Reply(t.deciding(), t.requests.action(c), question-cur.now.Retry.EarlierRemarks())
		}
		if denied != nil {
			return &CallerProblem{Code: CallerNoQuestion, Request: id}
		}
		if err := t.records.auditRemarked(after, c); err != nil {
			return err
		}
		return t.apply(after, slices.Concat(cur.events, events))
	})
}

// Overdue is the handler of store.TimerOutcome. Overdue ends a call that needs no approval, and that its caller did not
// claim in time. If the caller did not report the outcome of a run in time, Overdue asks people what happened.
func (w *Callers) Overdue(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "overdue", func(t *tx) error {
		e, err := t.Execution(timer.Ref)
		if err != nil {
			return errors.Join(store.IgnoreNotFound(err), t.ClearTimer(store.TimerOutcome, timer.Ref))
		}
		switch e.State {
		case approvers.ExecutionExecuting:
			return t.runs.markUnknown(e, approvers.LossUnreported)
		case approvers.ExecutionNone:
			call, err := t.Call(e.Call)
			if err != nil {
				return err
			}
			lapsed, err := t.callers.lapsed(call, e)
			if err != nil || lapsed {
				return err
			}
		}
		return t.ClearTimer(store.TimerOutcome, timer.Ref)
	})
}

// wait sets the timer for a call that needs no approval. The caller has to claim the call before the timer is due.
func (t callersTx) wait(e approvers.Execution, agent string) error {
	p, _ := t.policy.Tool(e.Tool, agent)
	return t.SetTimer(store.Timer{Kind: store.TimerOutcome, Ref: e.ID, Due: t.now.Add(p.RunWithin)})
}

// lease sets the timer for a run. The caller has to report the outcome before the timer is due.
func (t callersTx) lease(e approvers.Execution) error {
	within := time.Hour // used if the client was removed from the policy
	if c, ok := t.policy.Client(e.Caller); ok {
		within = c.OutcomeWithin
	}
	return t.SetTimer(store.Timer{Kind: store.TimerOutcome, Ref: e.ID, Due: t.now.Add(within)})
}

// t.follow adds a request to its caller's list of pending requests, or removes the request from the list. follow also
// wakes the callers that wait for the request.
func (t callersTx) follow(r approvers.Request, _ []approvers.Event) error {
	if r.Facts.Caller == nil {
		return nil
	}
	t.called(r.Call)
	known, s, err := settings.ReadCaller(t, r.Facts.Caller.Name)
	if err != nil {
		return err
	}
	after, changed := known.With(r.ID, r.State == approvers.Pending)
	if !changed {
		return nil
	}
	if s.Value, err = json.Marshal(after); err != nil {
		return err
	}
	return t.PutSetting(s)
}

// t.called records that a call has changed. After the commit, each caller that waits for the call is woken. called
// ignores calls of Countersign's own agent.
func (t callersTx) called(call string) {
	if strings.HasPrefix(call, "req_") {
		t.changedCalls[call] = true
	}
}

// t.end ends the turn of a caller's request after the request's call got its result. A damaged conversation may be lost.
func (t callersTx) end(turn approvers.Turn) error {
	turn, err := turn.Think()
	if err != nil {
		return err
	}
	if turn, err = turn.Answer(t.now); err != nil {
		return err
	}
	if err := t.PutTurn(turn); err != nil {
		return err
	}
	t.happened(Event{Turn: turn.ID, Over: &turn})
	conv, err := t.Conversation(turn.Conversation)
	if err != nil {
		return store.IgnoreNotFound(err)
	}
	conv.Turn, conv.LastAt = "", t.now
	return t.PutConversation(conv)
}

// PublishReceiptKey adds the public key of this process to the keys that verify receipts.
func (w *Callers) PublishReceiptKey(ctx context.Context, id string, public []byte) error {
	return w.record(ctx, "publish the key of receipts", func(t *tx) error {
		keys, s, err := settings.ReadReceiptKeys(t)
		if err != nil {
			return err
		}
		if s.Value, err = json.Marshal(keys.With(settings.ReceiptKey{ID: id, Public: public, Since: t.now})); err != nil {
			return err
		}
		return t.PutSetting(s)
	})
}

// callersWaiting has the callers that wait in this process for changes of their requests. The outer keys of the map are
// the ids of the calls. The inner keys are the channels of the callers that wait. The value for a channel is the client
// whose connection holds the call (see Hold), or nil. A caller reads the request after each wake-up, so a wake-up
// without a change does no harm.
type callersWaiting struct {
	mu sync.Mutex
	by map[string]map[chan struct{}]*approvers.Client
}

// Watch returns a channel that gets a value after changes of a request. One value may stand for several changes, or for
// none. To end the watch, the function that called Watch must call stop.
func (w *Callers) Watch(id string) (changed <-chan struct{}, stop func()) {
	return w.waiting.add(id, nil)
}

// Hold is like Watch, for a connection on which the client waits for the result of its request. If this process handles
// an approval during the watch, the transaction of the decision starts the call, so Start need not be called. The
// function that calls Hold must have checked that the request belongs to the client.
func (w *Callers) Hold(client approvers.Client, id string) (changed <-chan struct{}, stop func()) {
	return w.waiting.add(id, &client)
}

func (x *callersWaiting) add(id string, client *approvers.Client) (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by == nil {
		x.by = map[string]map[chan struct{}]*approvers.Client{}
	}
	if x.by[id] == nil {
		x.by[id] = map[chan struct{}]*approvers.Client{}
	}
	x.by[id][c] = client
	return c, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.by[id], c)
		if len(x.by[id]) == 0 {
			delete(x.by, id)
		}
	}
}

// holders returns the clients whose connections hold a call.
func (x *callersWaiting) holders(id string) (clients []approvers.Client) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.by[id] {
		if c != nil {
			clients = append(clients, *c)
		}
	}
	return clients
}

// wake wakes the callers that wait for a request.
func (x *callersWaiting) wake(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for c := range x.by[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// wakeAll wakes all callers that wait.
func (x *callersWaiting) wakeAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, waiting := range x.by {
		for c := range waiting {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}
