package workflow

import (
	"context"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// ViewModel is everything that an outbox message is rendered from, read in one snapshot.
type ViewModel struct {
	Message      store.OutboxMessage
	Conversation store.Conversation
	Turn         approvers.Turn
	Request      *approvers.Request     // for a card, an escalation, a question, a notice, and an unknown outcome that somebody approved
	Execution    *approvers.Execution   // the request's current one, or the one whose outcome is unknown
	Call         *store.Call            // the request's or the execution's call, with what the model was told
	Later        *approvers.Request     // for a run of which nobody knows how it ended, and its card: by which its call was asked for again
	Earlier      []store.OutboxMessage  // for a request that asks again: where people are asked about the earlier run, as far as Slack shows it
	LeaveAt      time.Time              // for an unknown outcome: when the model is told that nobody knows; zero: it is not any more
	Cards        []store.OutboxMessage  // for a question and a notice: the request's cards, as far as Slack shows them; with Later: its cards
	Absence      *approvers.Absence     // for whoever stands in: the absence that it is about, as it is now
	Calls        []CallView             // for a step: its calls in order; for a bundle: those that it shows
	Grant        *approvers.Grant       // for a grant
	Stalled      string                 // for a grant: why no call can run under it as things are, although it is in force
	CardQueue    *CardQueueView         // for a line's notice; nil: its time is over
	Queued       []store.Message        // for a queued notice: the messages that wait
	MessageEdit  *store.Message         // the turn's last message that was edited or deleted after the model had read it
	Text         string                 // what the model said: with a step, or as the answer
	Steps        []StepSight            // for an answer: the steps that it tells of, in order
	Elicitation  *approvers.Elicitation // what a run asks
	File         *store.File            // for a file that a run brought back
	Data         []byte                 // the file's bytes
	Head         *store.Head            // for the heads in a channel: the newest
	Pause        Pause                  // whether everything is paused
	Policy       *approvers.Policy
	Now          time.Time
}

// CallView is one call of a step, with what it waits for.
type CallView struct {
	Call      store.Call
	Execution *approvers.Execution
	Request   *approvers.Request
	Cards     []store.OutboxMessage // the request's, as far as Slack shows them
	Grant     *approvers.Grant      // the one that it ran under
	Queued    bool                  // its card waits in line
	Asks      bool                  // its run waits for an answer of the person who asked
}

// View reads what an outbox message shows.
func (w *Workflow) View(ctx context.Context, surface string) (ViewModel, error) {
	return w.see(ctx, surface, func(store.Reader, *store.OutboxMessage) error { return nil })
}

// see reads what an outbox message shows. as may have it be another than it is stored.
func (w *Workflow) see(ctx context.Context, surface string, as func(store.Reader, *store.OutboxMessage) error) (ViewModel, error) {
	var m ViewModel
	err := w.Store.View(ctx, func(r store.Reader) error {
		m = ViewModel{Policy: w.Policy(), Now: w.now()}
		var err error
		if m.Message, err = r.OutboxMessage(surface); err != nil {
			return err
		}
		if err := as(r, &m.Message); err != nil {
			return err
		}
		if m.Pause, _, err = paused(r); err != nil {
			return err
		}
		switch m.Message.Kind {
		case store.OutboxPause, store.OutboxHome:
			return nil // it is all that there is to see here
		case store.OutboxHead:
			return m.viewHead(r)
		case store.OutboxCard, store.OutboxEscalation:
			return m.viewRequest(r, m.Message.Ref)
		case store.OutboxQuestion, store.OutboxNotice:
			if err := m.viewRequest(r, m.Message.Ref); err != nil {
				return err
			}
			m.Cards, err = viewCards(r, *m.Request)
			return err
		case store.OutboxUnknown:
			return m.viewUnknown(r, m.Message.Ref)
		case store.OutboxStandIn:
			a, err := r.Absence(approvers.PersonID(m.Message.Ref))
			m.Absence = &a
			return err
		case store.OutboxAttachment:
			return m.viewFile(r, m.Message.Ref, m.Message.Step)
		case store.OutboxElicitation:
			return m.viewElicitation(r, m.Message.Ref)
		case store.OutboxModelQuestion:
			return m.viewModelQuestion(r, m.Message.Ref)
		case store.OutboxGrant:
			return m.viewGrant(w, r, m.Message.Ref)
		case store.OutboxCardQueue:
			return m.viewCardQueue(r, m.Message.Ref)
		}
		return m.viewTurn(r, m.Message.Ref)
	})
	return m, err
}

// TurnView reads how a turn stands: its calls are those of its current step.
func (w *Workflow) TurnView(ctx context.Context, turn string) (ViewModel, error) {
	m := ViewModel{Policy: w.Policy(), Now: w.now(), Message: store.OutboxMessage{Kind: store.OutboxStep, Ref: turn}}
	err := w.Store.View(ctx, func(r store.Reader) (err error) {
		m.Calls = nil
		if m.Pause, _, err = paused(r); err != nil {
			return err
		}
		if err := m.viewChannel(r, turn); err != nil {
			return err
		}
		return m.viewCalls(r, turn, m.Turn.Step)
	})
	return m, err
}

func (m *ViewModel) viewRequest(r store.Reader, id string) error {
	req, err := r.Request(id)
	if err != nil {
		return err
	}
	e, err := r.Execution(req.Execution)
	if err != nil {
		return err
	}
	call, err := r.Call(req.Call)
	if err != nil {
		return err
	}
	mask(m.Policy, &req, &call)
	m.Request, m.Execution, m.Call = &req, &e, &call
	if err := m.viewRetry(r); err != nil {
		return err
	}
	return m.viewChannel(r, req.Turn)
}

func (m *ViewModel) viewUnknown(r store.Reader, id string) error {
	e, err := r.Execution(id)
	if err != nil {
		return err
	}
	call, err := r.Call(e.Call)
	if err != nil {
		return err
	}
	m.Execution, m.Call = &e, &call
	if e.Request != "" {
		req, err := r.Request(e.Request)
		if err != nil {
			return err
		}
		m.Request = &req
	}
	mask(m.Policy, m.Request, m.Call)
	if err := m.viewRetry(r); err != nil {
		return err
	}
	return m.viewChannel(r, e.Turn)
}

// viewChannel reads where it all happens.
func (m *ViewModel) viewChannel(r store.Reader, turn string) (err error) {
	if m.Turn, err = r.Turn(turn); err != nil {
		return err
	}
	m.Conversation, err = r.Conversation(m.Turn.Conversation)
	return err
}

func (s *ViewModel) viewTurn(r store.Reader, id string) error {
	if err := s.viewChannel(r, id); err != nil {
		return err
	}
	messages, err := r.Messages(s.Conversation.ID, 0)
	if err != nil {
		return err
	}
	said := map[int]string{}
	for _, m := range messages {
		if m.State == store.MessageQueued {
			s.Queued = append(s.Queued, m)
		}
		if m.Turn == id && m.MessageEdit != nil {
			s.MessageEdit = &m
		}
		if m.Turn == id && m.Role == store.RoleAssistant {
			said[m.Step] = m.Text
		}
	}
	s.Text = said[s.Message.Step]
	switch s.Message.Kind {
	case store.OutboxStep, store.OutboxBundle, store.OutboxMessageEdit:
		return s.viewCalls(r, id, s.Message.Step)
	case store.OutboxAnswer:
		return s.seeSteps(r, said)
	case store.OutboxQueued:
		return s.viewCalls(r, id, s.Turn.Step) // what the messages wait for
	}
	return nil
}

func (m *ViewModel) viewCalls(r store.Reader, turn string, step int) error {
	calls, err := r.Calls(turn)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.Step != step {
			continue
		}
		vm, err := m.viewCall(r, c)
		if err != nil {
			return err
		}
		if m.Message.Kind != store.OutboxBundle || vm.Request != nil && vm.Request.Bundle == m.Message.Bundle {
			m.Calls = append(m.Calls, vm)
		}
	}
	return nil
}

func (m *ViewModel) viewCall(r store.Reader, c store.Call) (CallView, error) {
	vm := CallView{Call: c}
	mask(m.Policy, nil, &vm.Call)
	if c.Execution != "" {
		e, err := r.Execution(c.Execution)
		if err != nil {
			return vm, err
		}
		vm.Execution = &e
		if vm.Grant, err = grantOf(r, e); err != nil {
			return vm, err
		}
		if vm.Asks, err = asks(r, e); err != nil {
			return vm, err
		}
	}
	if c.Request == "" {
		return vm, nil
	}
	req, err := r.Request(c.Request)
	if err != nil {
		return vm, err
	}
	mask(m.Policy, &req, nil)
	vm.Request = &req
	if vm.Queued, err = m.isQueued(r, req); err != nil {
		return vm, err
	}
	vm.Cards, err = viewCards(r, req)
	return vm, err
}
