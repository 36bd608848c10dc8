package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// askPeople shows a question of the model to the requesters. The turn then waits for an answer.
func (t questionsTx) askPeople(call store.Call, args map[string]any) error {
	p, _ := t.policy.Tool(call.Tool, "")
	q := &approvers.ModelQuestion{Options: []string{"Yes", "No"}, ExpiresAt: t.now.Add(p.ExpiresAfter)}
	q.Question, _ = args["question"].(string)
	if options, ok := args["options"].([]any); ok {
		q.Options = nil
		for _, o := range options {
			text, _ := o.(string) // always a string: the schema allows nothing else
			q.Options = append(q.Options, text)
		}
	}
	call.ModelQuestion = q
	if err := t.PutCall(call); err != nil {
		return err
	}
	facts := map[string]string{"tool": call.Tool, "verdict": "inquiry", "conversation": call.Conversation}
	if err := t.audit(call.ID, approvers.AuditProposed, "", facts, []byte(call.Args)); err != nil {
		return err
	}
	if err := t.SetTimer(store.Timer{Kind: store.TimerModelQuestion, Ref: call.ID, Due: q.ExpiresAt}); err != nil {
		return err
	}
	return t.outbox.add(store.OutboxMessage{Kind: store.OutboxModelQuestion, Ref: call.ID, To: store.ToConversation + call.Conversation})
}

// Answer answers a question of the model with one of the question's options. Only a requester can answer the question.
func (w *Questions) Answer(ctx context.Context, c Click, option int) error {
	return w.click(ctx, "choose", c, func(t *tx) (*approvers.Denied, error) {
		call, err := t.Call(c.Call)
		if errors.Is(err, store.ErrNotFound) || err == nil && call.ModelQuestion == nil {
			return &approvers.Denied{Code: approvers.DeniedNotFound}, nil
		}
		if err != nil {
			return nil, err
		}
		turn, err := t.Turn(call.Turn)
		if err != nil {
			return nil, err
		}
		switch {
		case c.Who.ID == "" || c.Who.Deleted || c.Who.Foreign || c.Who.Bot:
			return &approvers.Denied{Code: approvers.DeniedUnidentified}, nil
		case !slices.Contains(turn.Requesters, c.Who.ID):
			return &approvers.Denied{Code: approvers.DeniedNotAsked}, nil
		case call.Outcome != "" || option < 0 || option >= len(call.ModelQuestion.Options):
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		return nil, t.questions.answered(call, c.Who, call.ModelQuestion.Options[option])
	})
}

// answerByWriting treats a message as the answer to the model's question, if possible. The author must be a requester
// who saw the question before writing. The turn must wait for nothing else than the answer to this question. If the
// message is an answer, answerByWriting returns true.
func (t questionsTx) answerByWriting(turn approvers.Turn, m store.Message, u IncomingMessage) (bool, error) {
	if turn.State != approvers.TurnWaiting || !slices.Contains(turn.Requesters, u.Who.ID) {
		return false, nil
	}
	calls, err := t.Calls(turn.ID)
	if err != nil {
		return false, err
	}
	var open []store.Call
	for _, c := range calls {
		if c.Outcome == "" {
			open = append(open, c)
		}
	}
	if len(open) != 1 || open[0].ModelQuestion == nil {
		return false, nil
	}
	messages, err := t.OutboxMessagesOf(open[0].ID)
	if err != nil || !shownBefore(messages, store.OutboxModelQuestion, 0, turn, u) {
		return false, err
	}
	m.State, m.Turn = store.MessageAnswer, turn.ID
	if err := t.PutMessage(m); err != nil {
		return false, err
	}
	return true, t.answered(open[0], u.Who, u.Text)
}

// t.answered gives a person's answer to the model as the call's result.
func (t questionsTx) answered(call store.Call, who approvers.Identity, answer string) error {
	q := *call.ModelQuestion
	q.Answer, q.By, q.Name, q.At = answer, who.ID, who.Name, t.now
	call.ModelQuestion = &q
	body := map[string]any{"answer": answer, "one_of_the_options": slices.Contains(q.Options, answer), "answered_by": who.Name}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if err := t.audit(call.ID, approvers.AuditAnswered, who.ID, map[string]string{"tool": call.Tool}, text); err != nil {
		return err
	}
	return t.settleModelQuestion(call, approvers.OutcomeExecuted, string(text))
}

// Expire ends a question of the model that nobody answered in time. Expire waits until answers that were received
// before the deadline are handled.
func (w *Questions) Expire(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "lapse", func(t *tx) error {
		call, err := t.Call(timer.Ref)
		if err != nil || call.Outcome != "" || call.ModelQuestion == nil {
			return errors.Join(store.IgnoreNotFound(err), t.ClearTimer(store.TimerModelQuestion, timer.Ref))
		}
		if t.now.Before(call.ModelQuestion.ExpiresAt) {
			return t.SetTimer(store.Timer{Kind: store.TimerModelQuestion, Ref: call.ID, Due: call.ModelQuestion.ExpiresAt})
		}
		if early, err := t.handledFirst(timer, call.ModelQuestion.ExpiresAt); early || err != nil {
			return err
		}
		return t.questions.closeModelQuestion(call, approvers.OutcomeExpired, "nobody answered in time")
	})
}

// closeModelQuestion ends a question without an answer.
func (t questionsTx) closeModelQuestion(call store.Call, outcome approvers.Outcome, reason string) error {
	res := approvers.Result{Status: outcome, Tool: call.Tool, Reason: reason, Guidance: "There is no answer. Don't guess one; say what you would need to continue."}
	return t.settleModelQuestion(call, outcome, res.Text())
}

func (t questionsTx) settleModelQuestion(call store.Call, outcome approvers.Outcome, text string) error {
	if err := t.ClearTimer(store.TimerModelQuestion, call.ID); err != nil {
		return err
	}
	if err := t.turns.giveResult(call, outcome, text); err != nil {
		return err
	}
	if err := t.outbox.changedRef(call.ID); err != nil {
		return err
	}
	return t.outbox.changedTurn(call.Turn, store.OutboxStep, call.Step)
}

// These constants limit the questions that a running tool asks.
const (
	MaxElicitations = 5                // the maximum number of questions in one try of a run
	AnswerWithin    = 10 * time.Minute // how long a person has to answer each question
	// maxWaiting limits how many runs may wait for people at the same time, so workers stay free for other runs.
	maxWaiting = 16
)

// Elicit returns one of these errors if a run can't ask a question. Each text is a sentence for the tool. The tool may
// pass the sentence to the model.
var (
	ErrTooManyElicitations = errors.New("the run has asked 5 times already; ask for everything in one form")
	ErrNobodyToAsk         = errors.New("another agent asked for this run, and there is no person to ask")
	ErrTooManyWait         = errors.New("too many runs wait for people's answers at the moment; nobody was asked")
)

// Elicitation is a question of a running tool to the person who asked for the call.
type Elicitation struct {
	From, Text string
	Schema     json.RawMessage // schema of the form; nil: the person visits URL instead
	URL        string
}

// elicitationsUnderWay holds the runs of this process that wait for answers. The key is the elicitation's id.
type elicitationsUnderWay struct {
	mu sync.Mutex
	by map[string]chan struct{}
}

// begin registers a run that waits for an elicitation. The channel over is closed when the elicitation has ended. If
// maxWaiting runs wait already, ok is false.
func (w *elicitationsUnderWay) begin(id string) (over <-chan struct{}, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.by) >= maxWaiting {
		return nil, false
	}
	if w.by == nil {
		w.by = map[string]chan struct{}{}
	}
	done := make(chan struct{})
	w.by[id] = done
	return done, true
}

// w.waiting returns the elicitations that runs wait for.
func (w *elicitationsUnderWay) waiting() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.by))
}

// w.end wakes the runs that wait for the given elicitations.
func (w *elicitationsUnderWay) end(ids ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if done := w.by[id]; done != nil {
			close(done)
			delete(w.by, id)
		}
	}
}

// Elicit asks a question for a run of this process. Slack shows the question to the person who asked for the run's
// call. Elicit waits until the person answers, the deadline passes, or the run ends. Elicit then returns the
// elicitation in its final state. If ctx ends, Elicit cancels the elicitation, with the reason that the function why
// returns.
func (w *Questions) Elicit(ctx context.Context, execution string, ask Elicitation, why func() string) (q approvers.Elicitation, err error) {
	id := w.ids.newID("ask", w.Now())
	over, ok := w.elicitations.begin(id)
	if !ok {
		return q, ErrTooManyWait
	}
	defer w.elicitations.end(id)
	if err := w.update(ctx, "elicit", func(t *tx) error { return t.questions.elicit(id, execution, ask) }); err != nil {
		return q, err
	}
	select {
	case <-over:
	case <-ctx.Done():
		err := w.update(context.WithoutCancel(ctx), "cancel elicitation", func(t *tx) error {
			q, err := t.Elicitation(id)
			if err != nil {
				return err
			}
			return t.questions.endElicitation(q, q.Cancel(why(), t.now))
		})
		if err != nil {
			return q, err
		}
	}
	err = w.Store.View(context.WithoutCancel(ctx), func(r store.Reader) (err error) {
		q, err = r.Elicitation(id)
		return err
	})
	return q, err
}

func (t questionsTx) elicit(id, execution string, ask Elicitation) error {
	if err := ifPaused(t); err != nil {
		return err
	}
	e, err := t.Execution(execution)
	if err != nil {
		return err
	}
	if ofCaller(e.Conversation) {
		return ErrNobodyToAsk
	}
	if stopped, err := isStopped(t, e); err != nil || stopped || e.State != approvers.ExecutionExecuting || e.Owner != t.w.owner {
		return errors.Join(err, ErrNotDue)
	}
	before, err := t.Elicitations(execution)
	if err != nil {
		return err
	}
	asked := 0
	for _, q := range before {
		if q.Try == e.Tries {
			asked++
		}
	}
	if asked >= MaxElicitations {
		return ErrTooManyElicitations
	}
	q := approvers.Elicitation{
		ID: id, State: approvers.ElicitationOpen, Conversation: e.Conversation, Turn: e.Turn, Call: e.Call, Execution: e.ID, Try: e.Tries, Owner: e.Owner, Tool: e.Tool,
		From: ask.From, Text: ask.Text, Schema: ask.Schema, URL: ask.URL, Asked: e.Asker, CreatedAt: t.now, ExpiresAt: t.now.Add(AnswerWithin),
	}
	if err := t.PutElicitation(q); err != nil {
		return err
	}
	facts := map[string]string{"execution": e.ID, "elicitation": q.ID, "asked": string(q.Asked), "tool": q.Tool}
	if err := t.audit(e.Chain(), approvers.AuditElicited, "", facts, map[string]any{"from": q.From, "text": q.Text, "schema": q.Schema, "url": q.URL}); err != nil {
		return err
	}
	if err := t.SetTimer(store.Timer{Kind: store.TimerElicit, Ref: q.ID, Due: q.ExpiresAt}); err != nil {
		return err
	}
	if err := t.setLease(e, q.ExpiresAt); err != nil {
		return err
	}
	if err := t.outbox.add(store.OutboxMessage{Kind: store.OutboxElicitation, Ref: q.ID, To: store.ToConversation + q.Conversation}); err != nil {
		return err
	}
	return t.runs.changedStep(e)
}

// setLease sets the run's timer to from plus the tool's timeout plus lease. When the timer is due, the run counts as
// lost.
func (t questionsTx) setLease(e approvers.Execution, from time.Time) error {
	due := from.Add(lease)
	if tool, ok := t.w.Tools.Tool(e.Tool); ok {
		due = due.Add(tool.Timeout)
	}
	return t.SetTimer(store.Timer{Kind: store.TimerRun, Ref: e.ID, Due: due, PutOff: t.now, Affinity: store.ToConversation + e.Conversation})
}

// Respond records the answer of the person who was asked. values are the values of the form. If the question has no
// form, because the person had to visit a URL, Respond ignores values.
func (w *Questions) Respond(ctx context.Context, c Click, values json.RawMessage) error {
	return w.reply(ctx, "answer elicitation", c, func(t *tx, q approvers.Elicitation) (approvers.Elicitation, *approvers.Denied) {
		if q.Schema != nil {
			if err := w.Admits(q.Schema, values); err != nil {
				return q, &approvers.Denied{Code: approvers.DeniedInvalidArgs, Detail: err.Error()}
			}
		} else {
			values = nil
		}
		return q.Accept(c.Who, values, c.At, t.now)
	})
}

// Decline records that the person who was asked refuses to answer.
func (w *Questions) Decline(ctx context.Context, c Click) error {
	return w.reply(ctx, "decline elicitation", c, func(t *tx, q approvers.Elicitation) (approvers.Elicitation, *approvers.Denied) {
		return q.Decline(c.Who, c.At, t.now)
	})
}

// reply handles one person's action on an elicitation.
func (w *Questions) reply(ctx context.Context, what string, c Click, action func(*tx, approvers.Elicitation) (approvers.Elicitation, *approvers.Denied)) error {
	return w.click(ctx, what, c, func(t *tx) (*approvers.Denied, error) {
		q, err := t.Elicitation(c.Elicitation)
		if errors.Is(err, store.ErrNotFound) {
			return &approvers.Denied{Code: approvers.DeniedNotFound}, nil
		}
		if err != nil {
			return nil, err
		}
		e, err := t.Execution(q.Execution)
		if err != nil {
			return nil, err
		}
		if q.State == approvers.ElicitationOpen && q.Owner != w.owner && store.IsAlone(w.Replica) { // nobody waits for the answer, because the elicitation's process has stopped
			cancelled := q.Cancel(whyStopped, t.now)
			if err := t.questions.endElicitation(q, cancelled); err != nil {
				return nil, err
			}
			q = cancelled
			q.Version++
		}
		after, denied := action(t, q)
		if denied != nil {
			return denied, t.auditDenied(e.Chain(), what, c, denied)
		}
		if err := t.questions.endElicitation(q, after, c.Who.ID); err != nil {
			return nil, err
		}
		if e.State != approvers.ExecutionExecuting {
			return nil, nil
		}
		return nil, t.questions.setLease(e, t.now)
	})
}

// The reasons for cancelling elicitations.
const (
	whyStopped     = "the process stopped while its tool waited"
	whyOver        = "the run ended before anybody answered"
	whyPaused      = "everything was paused"
	whyTurnStopped = "the agent was stopped"
)

// endElicitation writes an elicitation that ended, and the consequences of its end. If the elicitation has ended
// already, endElicitation changes nothing.
func (t questionsTx) endElicitation(before, after approvers.Elicitation, by ...approvers.PersonID) error {
	if before.State != approvers.ElicitationOpen || after.State == before.State {
		return nil
	}
	if err := t.PutElicitation(after); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerElicit, after.ID); err != nil {
		return err
	}
	e, err := t.Execution(after.Execution)
	if err != nil {
		return err
	}
	facts := map[string]string{"execution": e.ID, "elicitation": after.ID, "state": string(after.State)}
	if after.Why != "" {
		facts["why"] = after.Why
	}
	actor := approvers.PersonID("")
	if len(by) > 0 {
		actor = by[0]
	}
	var body any
	if after.Values != nil {
		body = []byte(after.Values)
	}
	if err := t.audit(e.Chain(), approvers.AuditReplied, actor, facts, body); err != nil {
		return err
	}
	t.replied = append(t.replied, after.ID)
	if err := t.outbox.changedRef(after.ID); err != nil {
		return err
	}
	return t.runs.changedStep(e)
}

// cancelElicitations cancels the open elicitations of a run.
func (t questionsTx) cancelElicitations(execution, why string) error {
	list, err := t.Elicitations(execution)
	if err != nil {
		return err
	}
	for _, q := range list {
		if err := t.endElicitation(q, q.Cancel(why, t.now)); err != nil {
			return err
		}
	}
	return nil
}

// cancelAll cancels all open elicitations.
func (t questionsTx) cancelAll(why string) error {
	timers, err := t.Timers(store.TimerElicit, mostRuns)
	if err != nil {
		return err
	}
	for _, timer := range timers {
		q, err := t.Elicitation(timer.Ref)
		if err != nil {
			return err
		}
		if err := t.endElicitation(q, q.Cancel(why, t.now)); err != nil {
			return err
		}
	}
	return nil
}

// Lapse ends an elicitation that nobody answered in time. Lapse waits until answers that were received before the
// deadline are handled.
func (w *Questions) Lapse(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "lapse elicitation", func(t *tx) error {
		q, err := t.Elicitation(timer.Ref)
		if err != nil || q.State != approvers.ElicitationOpen {
			return errors.Join(store.IgnoreNotFound(err), t.ClearTimer(store.TimerElicit, timer.Ref))
		}
		after, expired := q.Expire(t.now)
		if !expired {
			return t.SetTimer(store.Timer{Kind: store.TimerElicit, Ref: q.ID, Due: q.ExpiresAt})
		}
		if early, err := t.handledFirst(timer, q.ExpiresAt); early || err != nil {
			return err
		}
		return t.questions.endElicitation(q, after)
	})
}
