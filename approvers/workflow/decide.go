package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Decide approves, rejects or modifies a request. Decide returns the new request.
func (w *Requests) Decide(ctx context.Context, c Click) (approvers.Request, error) {
	return w.onRequest(ctx, string(c.Kind), c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := t.requests.decide(r, c)
		if denied != nil {
			return r, nil, denied, nil
		}
		return after, events, nil, t.records.auditDecided(after, c)
	})
}

// currentRequest holds a request in two forms: as stored, and updated to the current tools and policy.
type currentRequest struct {
	stored approvers.Request
	now    approvers.Request
	events []approvers.Event // the events of that update
}

// current reads a request and updates it to the current tools and policy. current does not write the request.
func (t requestsTx) current(id string) (currentRequest, *approvers.Denied, error) {
	r, err := t.Request(id)
	cur := currentRequest{stored: r, now: r}
	if errors.Is(err, store.ErrNotFound) {
		return cur, &approvers.Denied{Code: approvers.DeniedNotFound}, nil
	}
	if err != nil || !r.State.Open() {
		return cur, nil, err
	}
	why, err := t.unrecorded(r)
	if err != nil {
		return cur, nil, err
	}
	if why != "" {
		t.note(slog.LevelError, "a stored request does not match its history; it is voided and does not run", "request", r.ID, "conversation", r.Conversation, "tool", r.Tool, "why", why)
		return t.void(cur, "its record does not match its history, so nothing was run: "+why)
	}
	if why := t.unlike(r.Tool, r.ToolHash); why != "" {
		return t.void(cur, why)
	}
	if why := t.forbidden(r.Facts.Caller, r.Agent, r.Tool); why != "" {
		return t.void(cur, why)
	}
	p, _ := t.policy.Tool(r.Tool, r.Agent)
	args, err := approvers.StrictArgs(r.Args, p.ReadsNumbers())
	if err != nil { // the call was accepted under an earlier policy, which did not read these numbers
		return t.void(cur, "the policy changed: "+plainFault(err))
	}
	cur.now, cur.events = r.Refresh(t.deciding(), args)
	return cur, nil, nil
}

// void voids a request that can't run in its stored form.
func (t requestsTx) void(cur currentRequest, why string) (currentRequest, *approvers.Denied, error) {
	var denied *approvers.Denied
	cur.now, cur.events, denied = cur.stored.Void(t.deciding(), why)
	return cur, denied, nil
}

// unrecorded returns the difference between an open request and its audit records, or "". Damaged audit records count
// as a difference.
func (t requestsTx) unrecorded(r approvers.Request) (string, error) {
	chain, err := t.Audit(r.ID)
	if errors.Is(err, store.ErrDamaged) {
		return "its history is damaged", nil
	}
	if err != nil {
		return "", err
	}
	return r.Unrecorded(chain), nil
}

// applyIfChanged writes a request if the current tools or policy have changed it. A transaction calls applyIfChanged if
// it makes no other change to the request.
func (t requestsTx) applyIfChanged(cur currentRequest) error {
	if cur.stored.State == cur.now.State && cur.stored.Plan.PolicyHash == cur.now.Plan.PolicyHash {
		return nil
	}
	return t.apply(cur.now, cur.events)
}

func (t requestsTx) decide(r approvers.Request, c Click) (approvers.Request, []approvers.Event, *approvers.Denied) {
	m := t.action(c)
	m.Took = decisionTime(r, c.FirstSeen, m.At)
	if denied := r.MayDecide(t.deciding(), m); denied != nil {
		return r, nil, denied // checked before the arguments, so that the denial tells nothing about the arguments
	}
	switch c.Kind {
	case approvers.Approve:
		if !c.Whole {
			return r, nil, &approvers.Denied{Code: approvers.DeniedUnseen}
		}
		return r.Approve(t.deciding(), m)
	case approvers.Reject:
		return r.Reject(t.deciding(), m)
	case approvers.Modify:
		edited, denied := t.edit(r, c.Args)
		if denied != nil {
			return r, nil, denied
		}
		return r.Modify(t.deciding(), m, edited)
	}
	return r, nil, &approvers.Denied{Code: approvers.DeniedNothing}
}

// action converts a click to an approvers.Action.
func (t requestsTx) action(c Click) approvers.Action {
	if c.At.IsZero() {
		c.At = t.now // a click without a time of receipt counts as received now, so that deadlines apply
	}
	return approvers.Action{Who: c.Who, At: c.At, Digest: c.Digest, Stage: c.Stage, Partly: !c.Whole, Typed: c.Typed, Rendering: c.Rendering, Reason: c.Reason}
}

// auditDecided records a decision, and which version of the card the person saw.
func (t recordsTx) auditDecided(r approvers.Request, c Click) error {
	d := r.Decisions[len(r.Decisions)-1]
	body := map[string]any{}
	if c.Reason != "" {
		body["reason"] = c.Reason
	}
	if c.Kind == approvers.Modify {
		body["args"] = string(c.Args)
	}
	facts := map[string]string{
		"kind": string(c.Kind), "role": d.Role, "digest": d.Digest, "shown": c.Digest, "rendering": c.Rendering,
		"channel": c.Channel, "message": c.MessageTS, "received": c.At.UTC().Format(time.RFC3339Nano),
	}
	if d.WithoutToolPreview {
		facts["preview"] = "not there yet"
	}
	if d.Took > 0 {
		facts["took"] = strconv.FormatInt(d.Took.Milliseconds(), 10)
	}
	return t.audit(r.ID, approvers.AuditDecided, c.Who.ID, facts, body)
}

// Click is one person's action on something that Slack shows. The bot does not trust the data in the click itself. The
// bot looks up Who in Slack after the click, and takes Digest and Rendering from the stored rendering on which the
// person clicked.
type Click struct {
	Inbox       string    // id of the delivery, which the use case closes
	At          time.Time // when the bot received the click
	Who         approvers.Identity
	User        string // id of the account that clicked; recorded if Slack could not identify the person
	Request     string // for Decide, Withdraw, and remarks: the request's id
	Turn        string // for WithdrawAll and TryAgain: the turn's id
	Execution   string // for Report and RetryUnknown: the execution's id
	Call        string // for Questions.Answer: the id of the call that asks the question
	Elicitation string // for Respond and Decline: the elicitation's id
	Grant       string // for actions on a grant: the grant's id
	Kind        approvers.DecisionKind
	Reason      string
	Args        json.RawMessage // for approvers.Modify: the exact bytes of the new arguments
	Digest      string          // digest of the execution that the rendering showed
	Stage       string          // digest of the stage that the rendering showed; see store.Shown
	Whole       bool            // the rendering showed the complete arguments
	Typed       bool            // the person typed the value that the approval requires
	FirstSeen   time.Time       // when the clicked message first showed these arguments; zero: unknown
	Rendering   string          // the rendering's hash
	Message     string          // id of the clicked outbox message; empty: a Home tab, or not a click in Slack
	Channel     string          // the channel of the clicked message
	MessageTS   string
}

// click runs the transaction of one click, and closes its delivery. If fn denies the click, the transaction is
// committed, and click returns the denial as an error.
func (w *core) click(ctx context.Context, what string, c Click, fn func(*tx) (*approvers.Denied, error)) error {
	var denied *approvers.Denied
	err := w.update(ctx, what, func(t *tx) error {
		denied = nil
		if err := t.settle(c.Inbox, ""); err != nil {
			return err
		}
		var err error
		denied, err = fn(t)
		return err
	})
	if err == nil && denied != nil {
		return denied
	}
	return err
}

// requestAction is one person's action on a request. requestAction returns the new request with the events of the
// transition, or the reason why the action is denied.
type requestAction func(*tx, approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error)

// onRequest runs one person's action on a request. Before the action, onRequest updates the request to the current
// tools and policy. If the action is denied, onRequest records the denial under the name what. The update is stored
// even if the action is denied. onRequest returns the new request.
func (w *core) onRequest(ctx context.Context, what string, c Click, action requestAction) (approvers.Request, error) {
	var out approvers.Request
	err := w.click(ctx, what, c, func(t *tx) (*approvers.Denied, error) {
		cur, denied, err := t.requests.current(c.Request)
		if err != nil || denied != nil {
			return denied, err
		}
		out = cur.now
		after, events, denied, err := action(t, cur.now)
		if err != nil {
			return nil, err
		}
		if denied != nil {
			return denied, t.requests.denied(what, c, cur, denied)
		}
		out = after
		return nil, t.apply(after, slices.Concat(cur.events, events))
	})
	return out, err
}

// denied records a denied action on a request, and writes the request if the current tools or policy have changed it. If
// the clicked card shows an earlier stage or plan, the card is rendered again.
func (t requestsTx) denied(what string, c Click, cur currentRequest, denied *approvers.Denied) error {
	if err := t.applyIfChanged(cur); err != nil {
		return err
	}
	if denied.Code == approvers.DeniedStage {
		if err := t.outbox.drawAgain(c.Message, c, denied); err != nil {
			return err
		}
	}
	return t.auditDenied(cur.now.ID, what, c, denied)
}

// auditDenied records a denied attempt. Each of the first denialsKept attempts of a kind gets a record. A later record
// covers several attempts.
func (t *tx) auditDenied(chain, what string, c Click, denied *approvers.Denied) error {
	x := denial{chain: chain, actor: string(c.Who.ID), what: what, code: string(denied.Code)}
	if c.Who.ID == "" {
		x.user = c.User
	}
	n, recorded, err := t.numberDenial(x)
	if err != nil || !recorded {
		return err
	}
	facts := map[string]string{"kind": what, "code": string(denied.Code), "channel": c.Channel, "message": c.MessageTS}
	if c.Who.ID == "" && c.User != "" {
		facts["user"] = c.User
	}
	if n > denialsKept {
		facts[factTimes] = strconv.Itoa(n)
	}
	return t.audit(chain, approvers.AuditDenied, c.Who.ID, facts, nil)
}

// Refuse rejects and records a click that is not on a current button of the bot. For example, the message is a copy or
// an old version, or the button's value is forged. The parameter named has the ids from the click and from the clicked
// message. If such an id belongs to a request, Refuse adds a record to the request's audit chain. Refuse changes no
// request. The parameter redraw is the id of the outbox message that was clicked, or empty if there is none. The bot
// renders this outbox message again, so that the next click is on a stored version.
func (w *Requests) Refuse(ctx context.Context, c Click, denied *approvers.Denied, redraw string, named ...string) error {
	err := w.update(ctx, "refuse", func(t *tx) error {
		if err := t.settle(c.Inbox, string(denied.Code)); err != nil {
			return err
		}
		if err := t.outbox.drawAgain(redraw, c, denied); err != nil {
			return err
		}
		slices.Sort(named)
		for _, id := range slices.Compact(named) {
			if id == "" {
				continue
			}
			_, err := t.Request(id)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if err := t.auditDenied(id, "click", c, denied); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, ErrHandled) {
		return nil
	}
	return err
}

// drawAgain renders an outbox message again, even if Slack shows the current version. If message is empty, drawAgain
// does nothing. The store keeps every version, so drawAgain limits the number of versions that one person's clicks can
// cause.
func (t outboxTx) drawAgain(message string, c Click, denied *approvers.Denied) error {
	if message == "" {
		return nil
	}
	_, draw, err := t.numberDenial(denial{chain: message, actor: string(c.Who.ID), user: c.User, what: "draw", code: string(denied.Code)})
	if err != nil || !draw {
		return err
	}
	s, err := t.OutboxMessage(message)
	if err != nil {
		return err
	}
	s.Hash = ""
	return t.changed(s)
}

// edit prepares an edit of a request. edit checks the new arguments against the schema, and makes a new execution id,
// digest, preview and plan.
func (t requestsTx) edit(r approvers.Request, args json.RawMessage) (approvers.Edited, *approvers.Denied) {
	tool, _ := t.toolOf(r.Tool, r.ToolHash)
	p, _ := t.policy.Tool(r.Tool, r.Agent)
	values, err := approvers.StrictArgs(args, p.ReadsNumbers())
	if err == nil {
		err = tool.Check(args)
	}
	if err != nil {
		return approvers.Edited{}, &approvers.Denied{
			Code: approvers.DeniedInvalidArgs, Detail: plainFault(err),
		}
	}
	if approvers.EqualArgs(args, r.Args) {
		return approvers.Edited{}, &approvers.Denied{Code: approvers.DeniedUnchanged}
	}
	e := approvers.Edited{Execution: t.newID("exec"), Args: args}
	e.Digest = approvers.Digest(e.Execution, r.Tool, r.ToolHash, args)
	says := t.proposals.preview(tool, r.Agent, args, values, r.Secrets)
	e.Preview, e.MadePreview, e.PreviewFault = says.text, says.made, says.fault
	e.ToolPreview = t.previews.requestToolPreview(r.Tool, r.Agent, e.Digest)
	e.Plan = t.policy.Plan(r.AsCall(values))
	return e, nil
}

// replaceExecution stores a new execution with the edited arguments, and makes it the call's current execution.
func (t requestsTx) replaceExecution(r approvers.Request) error {
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	e := approvers.Execution{
		ID: r.Execution, State: approvers.ExecutionNone, Conversation: r.Conversation, Turn: r.Turn, Call: r.Call,
		Request: r.ID, Asker: r.Facts.Asker, Tool: r.Tool, ToolHash: r.ToolHash, Effect: r.Effect, Args: r.Args, Digest: r.Digest, CreatedAt: t.now,
	}
	if r.Facts.Caller.Decides() {
		e.Caller = r.Facts.Caller.Name
	}
	if r.Retry != nil {
		e.After = r.Retry.Execution
	}
	if err := t.PutExecution(e); err != nil {
		return err
	}
	call.Execution, call.Preview = e.ID, r.Preview
	return t.PutCall(call)
}

// decisionTime returns how long the approvers of a stage could see a request before the decision. The time before the
// stage began does not count. If the parameter shown is zero, the time is unknown, and decisionTime returns 0.
func decisionTime(r approvers.Request, shown, decided time.Time) time.Duration {
	if shown.IsZero() {
		return 0
	}
	if r.StageAt.After(shown) {
		shown = r.StageAt
	}
	return max(time.Millisecond, decided.Sub(shown)) // the click may come before the delivery is recorded
}

// setSince sets the field Since of each element of shows. Since is the time when the message first showed the request
// with its current digest. If the previous version of the message showed the same digest, setSince copies Since from
// the previous version. Otherwise Since is the current time.
func (t outboxTx) setSince(s store.OutboxMessage, shows []store.Shown) ([]store.Shown, error) {
	if len(shows) == 0 {
		return nil, nil
	}
	var before store.Rendering
	if s.Posts > 0 {
		var err error
		if before, err = t.Rendering(s.ID, s.Posts); store.IgnoreNotFound(err) != nil { // old versions of a Home tab may be erased
			return nil, err
		}
	}
	out := make([]store.Shown, len(shows))
	for i, one := range shows {
		one.Since = t.now
		if was := before.Of(one.Request); was.Digest == one.Digest {
			one.Since = was.Since
		}
		out[i] = one
	}
	return out, nil
}

// Revoke takes an approval back before the call runs.
func (w *Requests) Revoke(ctx context.Context, c Click) (approvers.Request, error) {
	return w.onRequest(ctx, "revoke", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Revoke(t.deciding(), t.requests.action(c))
		return after, events, denied, nil
	})
}

// Say records an approver's remark: a question to the requesters, or a comment on the request.
func (w *Requests) Say(ctx context.Context, c Click, kind approvers.RemarkKind) (approvers.Request, error) {
	return w.onRequest(ctx, string(kind), c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Say(t.deciding(), t.requests.action(c), kind)
		if denied != nil {
			return r, nil, denied, nil
		}
		return after, events, nil, t.records.auditRemarked(after, c)
	})
}

// Reply records an answer to a question about a request. Reply notifies the person who asked the question.
func (w *Requests) Reply(ctx context.Context, c Click, question int) (approvers.Request, error) {
	return w.onRequest(ctx, string(approvers.Answer), c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Reply(t.deciding(), t.requests.action(c), question)
		if denied != nil {
			return r, nil, denied, nil
		}
		return after, events, nil, t.records.auditRemarked(after, c)
	})
}

// maxWritten is the maximum length, in characters, of an answer that a person writes in the thread. The form has the
// same limit.
const maxWritten = 500

// answerByWriting treats a requester's message as an answer to an approver's question, if possible. The question must
// be about a waiting call of the turn, and must have no answer yet. The requester must have seen the question before
// writing. If there are several such questions, answerByWriting chooses the latest question. answerByWriting returns
// the approver who asked the question. If the message answers no question, answerByWriting returns "".
func (t requestsTx) answerByWriting(turn approvers.Turn, m store.Message, u IncomingMessage) (approvers.PersonID, error) {
	if turn.State != approvers.TurnWaiting || u.Text == "" {
		return "", nil
	}
	calls, err := t.Calls(turn.ID)
	if err != nil {
		return "", err
	}
	var asked approvers.Request
	question := -1
	for _, c := range calls {
		if c.Outcome != "" || c.Request == "" {
			continue
		}
		r, err := t.Request(c.Request)
		if err != nil {
			return "", err
		}
		messages, err := t.OutboxMessagesOf(r.ID)
		if err != nil {
			return "", err
		}
		for i, q := range r.Remarks {
			open := r.State == approvers.Pending && q.Kind == approvers.Question && !r.Answered(i)
			if open && shownBefore(messages, store.OutboxQuestion, i, turn, u) && (question < 0 || q.At.After(asked.Remarks[question].At)) {
				asked, question = r, i
			}
		}
	}
	if question < 0 {
		return "", nil
	}
	words := []rune(u.Text)
	if len(words) > maxWritten {
		words = append(words[:maxWritten-1], '…')
	}
	c := Click{Who: u.Who, At: u.At, Reason: string(words), Channel: u.Channel.Channel, MessageTS: u.TS}
	answer := t.action(c)
	answer.Written = u.TS
	after, events, denied := asked.Reply(t.deciding(), answer, question)
	if denied != nil { // for example because the author did not ask for the call
		return "", nil //nolint:nilerr // the message is then handled as an ordinary one
	}
	m.State, m.Turn = store.MessageAnswer, turn.ID
	if err := errors.Join(t.PutMessage(m), t.records.auditRemarked(after, c), t.apply(after, events)); err != nil {
		return "", err
	}
	return asked.Remarks[question].By, nil
}

// shownBefore reports whether Slack showed a question to the author of a message before the author wrote the message.
// The question must still be in Slack, in the turn's conversation or in a direct message to the author. The parameters
// kind and step identify the question. shownBefore compares Slack's timestamps, because the message may arrive late.
func shownBefore(messages []store.OutboxMessage, kind store.OutboxKind, step int, turn approvers.Turn, u IncomingMessage) bool {
	return slices.ContainsFunc(messages, func(s store.OutboxMessage) bool {
		here := s.To == store.ToConversation+turn.Conversation || s.To == store.ToUser+u.Who.ID.User()
		stands := s.State == store.OutboxShown || s.State == store.OutboxWanted && s.TS != ""
		return s.Kind == kind && s.Step == step && here && stands && sentBefore(s.TS, u.TS)
	})
}

// auditRemarked records the last remark of a request.
func (t recordsTx) auditRemarked(r approvers.Request, c Click) error {
	m := r.Remarks[len(r.Remarks)-1]
	facts := map[string]string{"kind": string(m.Kind), "role": m.Role, "remark": strconv.Itoa(len(r.Remarks)), "channel": c.Channel, "message": c.MessageTS}
	if m.Kind == approvers.Answer {
		facts["question"] = strconv.Itoa(m.To + 1)
	}
	return t.audit(r.ID, approvers.AuditRemarked, c.Who.ID, facts, []byte(m.Text))
}

// HandOn adds a colleague of the approver to the current stage, and sends the card to the colleague by direct message.
// The parameter to is the colleague's identity. The bot must look up the identity in Slack just before it calls HandOn.
func (w *Requests) HandOn(ctx context.Context, c Click, to approvers.Identity) (approvers.Request, error) {
	return w.onRequest(ctx, "hand on", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.HandOn(t.deciding(), t.requests.action(c), to)
		return after, events, denied, nil
	})
}

// Reveal records that a person saw the masked values of a request, in a form that only this person sees. The parameter
// secrets has the paths of the masked values. The parameter body is the form without the values, and is stored in the
// audit. If the person may decide the request, the request stores the reveal, and the person can then approve the
// request.
func (w *Requests) Reveal(ctx context.Context, c Click, secrets []string, body []byte) error {
	return w.update(ctx, "reveal", func(t *tx) error {
		if err := t.records.auditRevealed(c, body); err != nil {
			return err
		}
		cur, denied, err := t.requests.current(c.Request)
		if err != nil {
			return err
		}
		if denied == nil {
			after, events, denied := cur.now.Reveal(t.deciding(), t.requests.action(c), secrets)
			if denied == nil {
				return t.apply(after, append(cur.events, events...))
			}
		}
		return t.requests.applyIfChanged(cur)
	})
}

// auditRevealed records that a person saw masked values. Each person gets one record for each version of the arguments.
func (t recordsTx) auditRevealed(c Click, body []byte) error {
	records, err := t.Audit(c.Request)
	if err != nil {
		return err
	}
	for _, a := range records {
		if a.Kind == approvers.AuditShown && a.Actor == c.Who.ID && a.Facts[approvers.FactShownAs] == approvers.ShownAsReveal && a.Facts["digest"] == c.Digest {
			return nil
		}
	}
	facts := map[string]string{approvers.FactShownAs: approvers.ShownAsReveal, "to": store.ToUser + c.Who.ID.User(), "rendering": c.Rendering, "digest": c.Digest}
	return t.audit(c.Request, approvers.AuditShown, c.Who.ID, facts, body)
}

// BreakGlass lets the operator approve a call at the command line. The operator's approval replaces all remaining
// stages. The policy in force must allow approvals by the operator. The bot notifies the people of all stages, and
// their leads.
func (w *Requests) BreakGlass(ctx context.Context, c Click) (approvers.Request, error) {
	r, err := w.onRequest(ctx, "break glass", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.BreakGlass(t.deciding(), t.requests.action(c))
		if denied != nil {
			return r, nil, denied, nil
		}
		var left []string
		for _, s := range r.Plan.Stages[r.Stage:] {
			left = append(left, s.String())
		}
		return after, events, nil, t.records.auditOperator(after, c, map[string]string{"break_glass": "true", "stages": strings.Join(left, ",")})
	})
	if err == nil {
		w.Log.WarnContext(ctx, "an operator allowed a call in place of its approvers, who are told",
			"request", r.ID, "conversation", r.Conversation, "tool", r.Tool, "operator", c.Who.ID.Login())
	}
	return r, err
}

// Overrule lets the operator stop a call at the command line before the call's run begins.
func (w *Requests) Overrule(ctx context.Context, c Click) (approvers.Request, error) {
	r, err := w.onRequest(ctx, "overrule", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Overrule(t.deciding(), t.requests.action(c))
		if denied != nil {
			return r, nil, denied, nil
		}
		return after, events, nil, t.records.auditOperator(after, c, map[string]string{})
	})
	if err == nil {
		w.Log.InfoContext(ctx, "an operator stopped a call", "request", r.ID, "conversation", r.Conversation, "tool", r.Tool, "operator", c.Who.ID.Login())
	}
	return r, err
}

// auditOperator records an operator's decision with the digest of the arguments.
func (t recordsTx) auditOperator(r approvers.Request, c Click, facts map[string]string) error {
	facts["kind"], facts["digest"] = string(c.Kind), r.Digest
	return t.audit(r.ID, approvers.AuditDecided, c.Who.ID, facts, map[string]string{"reason": c.Reason})
}

// tellBroken notifies all people concerned that the operator approved a call.
func (t noticesTx) tellBroken(r approvers.Request) error {
	for _, role := range r.Concerned(t.policy) {
		s := store.OutboxMessage{Kind: store.OutboxNotice, Ref: r.ID, Request: r.ID, Step: len(r.Decisions), To: store.ToRole + role, Note: store.NoteBreakGlass}
		if err := t.outbox.add(s); err != nil {
			return err
		}
	}
	for _, i := range r.Invited {
		if err := t.outbox.notify(r.ID, i.Who, store.NoteBreakGlass, len(r.Decisions)); err != nil {
			return err
		}
	}
	return nil
}
