package view

import (
	"context"
	"errors"
	"slices"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// Message reads the data from which an outbox message is rendered.
func (v *Reader) Message(ctx context.Context, message string) (Model, error) {
	return v.read(ctx, message, func(store.Reader, *store.OutboxMessage) error { return nil })
}

// Answer reads the data from which an answer is rendered. The parameter steps lists the steps that the answer must
// describe, because they have no message of their own.
func (v *Reader) Answer(ctx context.Context, answer string, steps []int) (Model, error) {
	return v.read(ctx, answer, func(r store.Reader, s *store.OutboxMessage) error {
		messages, err := r.OutboxMessagesOf(s.Ref)
		if err != nil {
			return err
		}
		for _, step := range messages {
			if IsUntold(step) && slices.Contains(steps, step.Step) && !slices.Contains(s.Steps, step.Step) {
				s.Steps = append(s.Steps, step.Step)
			}
		}
		slices.Sort(s.Steps)
		return nil
	})
}

// read reads the data from which an outbox message is rendered. A callback can change the outbox message before read
// reads the other data.
func (v *Reader) read(ctx context.Context, message string, as func(store.Reader, *store.OutboxMessage) error) (Model, error) {
	var m Model
	err := v.store.View(ctx, func(r store.Reader) error {
		m = Model{Policy: v.Policy(), Now: v.now()}
		var err error
		if m.Message, err = r.OutboxMessage(message); err != nil {
			return err
		}
		if err := as(r, &m.Message); err != nil {
			return err
		}
		if m.Pause, _, err = settings.ReadPause(r); err != nil {
			return err
		}
		switch m.Message.Kind {
		case store.OutboxPause, store.OutboxHome:
			return nil // package bot reads the other content of a Home tab; a message about a pause has no other content
		case store.OutboxHead:
			return m.readHead(r)
		case store.OutboxReport:
			return m.readReport(r)
		case store.OutboxOperators:
			return m.readNotice(r)
		case store.OutboxCard, store.OutboxEscalation:
			return m.readRequest(r, m.Message.Ref)
		case store.OutboxQuestion, store.OutboxNotice:
			if err := m.readRequest(r, m.Message.Ref); err != nil {
				return err
			}
			m.Cards, err = readCards(r, *m.Request)
			return err
		case store.OutboxUnknown:
			return m.readUnknown(r, m.Message.Ref)
		case store.OutboxStandIn:
			a, err := r.Absence(approvers.PersonID(m.Message.Ref))
			m.Absence = &a
			return err
		case store.OutboxAttachment:
			return m.readFile(r, m.Message.Ref, m.Message.Step)
		case store.OutboxElicitation:
			return m.readElicitation(r, m.Message.Ref)
		case store.OutboxModelQuestion:
			return m.readModelQuestion(r, m.Message.Ref)
		case store.OutboxGrant:
			return m.readGrant(v.hash, r, m.Message.Ref)
		case store.OutboxCardQueue:
			return m.readCardQueue(r, m.Message.Ref)
		}
		return m.readTurn(r, m.Message.Ref)
	})
	return m, err
}

// Turn reads the state of a turn, with the calls of its current step.
func (v *Reader) Turn(ctx context.Context, turn string) (Model, error) {
	m := Model{Policy: v.Policy(), Now: v.now(), Message: store.OutboxMessage{Kind: store.OutboxStep, Ref: turn}}
	err := v.store.View(ctx, func(r store.Reader) (err error) {
		m.Calls = nil
		if m.Pause, _, err = settings.ReadPause(r); err != nil {
			return err
		}
		if err := m.readChannel(r, turn); err != nil {
			return err
		}
		return m.readCalls(r, turn, m.Turn.Step)
	})
	return m, err
}

// AddNamed adds a request or a grant to the model. ref is the id in a button of the message. If ref is not the id of a
// request or a grant, AddNamed adds nothing.
func (v *Reader) AddNamed(ctx context.Context, m *Model, ref string) error {
	err := v.store.View(ctx, func(r store.Reader) error {
		out := *m
		err := out.readRequest(r, ref)
		if errors.Is(err, store.ErrNotFound) {
			err = out.readGrant(v.hash, r, ref)
		}
		*m = out
		return err
	})
	return store.IgnoreNotFound(err)
}

func (m *Model) readRequest(r store.Reader, id string) error {
	req, err := r.Request(id)
	if err != nil {
		return err
	}
	e, err := readRun(r, req.Execution)
	if err != nil {
		return err
	}
	call, err := r.Call(req.Call)
	if err != nil {
		return err
	}
	mask(m.Policy, &req, &call)
	m.Request, m.Execution, m.Call = &req, e, &call
	if err := m.readRetry(r); err != nil {
		return err
	}
	return m.readChannel(r, req.Turn)
}

// readRun reads an execution. If there is no execution, or its record is lost, the result is nil.
func readRun(r store.Reader, id string) (*approvers.Execution, error) {
	e, err := r.Execution(id)
	if err != nil {
		return nil, store.IgnoreNotFound(err)
	}
	return &e, nil
}

func (m *Model) readUnknown(r store.Reader, id string) error {
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
	if err := m.readRetry(r); err != nil {
		return err
	}
	return m.readChannel(r, e.Turn)
}

// readChannel reads a turn and the turn's conversation.
func (m *Model) readChannel(r store.Reader, turn string) (err error) {
	if m.Turn, err = r.Turn(turn); err != nil {
		return err
	}
	m.Conversation, err = r.Conversation(m.Turn.Conversation)
	return err
}

func (s *Model) readTurn(r store.Reader, id string) error {
	if err := s.readChannel(r, id); err != nil {
		return err
	}
	messages, err := r.Messages(s.Conversation.ID, 0)
	if err != nil {
		return err
	}
	s.Turn.CanRetry = s.Turn.CanRetry && NewestTurn(messages) == id
	said := map[int]string{}
	for _, m := range messages {
		if m.State == store.MessageQueued {
			s.Queued = append(s.Queued, m)
		}
		if m.Gap != nil {
			s.Gap = m.Gap
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
		return s.readCalls(r, id, s.Message.Step)
	case store.OutboxAnswer:
		return s.readSteps(r, said)
	case store.OutboxQueued:
		return s.readCalls(r, id, s.Turn.Step) // the calls for which the messages wait
	}
	return nil
}

// NewestTurn returns the newest turn of a conversation that has taken a message. If no turn has taken a message,
// NewestTurn returns "". A person can resume only this turn: the calls of an older turn would follow from messages whose
// authors are not its requesters. The first message of each turn counts, because in stores of 0.1.0 a turn has also
// taken the message that stopped it. This message may be newer than the messages of the next turn.
func NewestTurn(messages []store.Message) (newest string) {
	seen := map[string]bool{}
	for _, m := range messages {
		if m.Role == store.RoleUser && m.State == store.MessageTaken && !seen[m.Turn] {
			seen[m.Turn], newest = true, m.Turn
		}
	}
	return newest
}

func (m *Model) readCalls(r store.Reader, turn string, step int) error {
	calls, err := r.Calls(turn)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.Step != step {
			continue
		}
		vm, err := m.readCall(r, c)
		if err != nil {
			return err
		}
		if m.Message.Kind != store.OutboxBundle || vm.Request != nil && vm.Request.Bundle == m.Message.Bundle {
			m.Calls = append(m.Calls, vm)
		}
	}
	return nil
}

func (m *Model) readCall(r store.Reader, c store.Call) (Call, error) {
	e, err := readRun(r, c.Execution)
	vm := Call{Call: c, Execution: e}
	mask(m.Policy, nil, &vm.Call)
	if err != nil {
		return vm, err
	}
	if e != nil {
		if vm.Grant, err = GrantOf(r, *e); err != nil {
			return vm, err
		}
		if vm.Asks, err = awaitsAnswer(r, *e); err != nil {
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
	vm.Cards, err = readCards(r, req)
	return vm, err
}

// readSteps reads the steps that an answer describes.
func (m *Model) readSteps(r store.Reader, said map[int]string) error {
	for _, n := range m.Message.Steps {
		step := Model{Policy: m.Policy, Now: m.Now, Message: store.OutboxMessage{Kind: store.OutboxStep}}
		if err := step.readCalls(r, m.Message.Ref, n); err != nil {
			return err
		}
		m.Steps = append(m.Steps, Step{Step: n, Text: said[n], Calls: step.Calls})
	}
	return nil
}

// readElicitation reads the question that a run asked.
func (m *Model) readElicitation(r store.Reader, id string) error {
	q, err := r.Elicitation(id)
	if err != nil {
		return err
	}
	call, err := r.Call(q.Call)
	if err != nil {
		return err
	}
	mask(m.Policy, nil, &call)
	m.Elicitation, m.Call = &q, &call
	return m.readChannel(r, q.Turn)
}

// awaitsAnswer reports whether a run waits for a person's answer.
func awaitsAnswer(r store.Reader, e approvers.Execution) (bool, error) {
	if e.State != approvers.ExecutionExecuting {
		return false, nil
	}
	list, err := r.Elicitations(e.ID)
	return slices.ContainsFunc(list, func(q approvers.Elicitation) bool { return q.State == approvers.ElicitationOpen }), err
}

// readModelQuestion reads a question that the model asked.
func (m *Model) readModelQuestion(r store.Reader, id string) error {
	call, err := r.Call(id)
	if err != nil {
		return err
	}
	m.Call = &call
	return m.readChannel(r, call.Turn)
}

// readFile reads a file that a run returned, with its bytes.
func (m *Model) readFile(r store.Reader, execution string, index int) error {
	e, err := r.Execution(execution)
	if err != nil {
		return err
	}
	call, err := r.Call(e.Call)
	if err != nil {
		return err
	}
	mask(m.Policy, nil, &call)
	m.Execution, m.Call = &e, &call
	files, err := r.Files(execution)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Index != index {
			continue
		}
		m.File = &f
		if m.Data, err = r.FileData(execution, index); err != nil {
			return err
		}
		return m.readChannel(r, e.Turn)
	}
	return store.ErrNotFound // the file was erased
}

// readHead reads the newest head.
func (m *Model) readHead(r store.Reader) error {
	last, err := r.LastHead()
	m.Head, m.Message.Step = &last, int(last.Number)
	return err
}

// readReport reads the newest weekly report.
func (m *Model) readReport(r store.Reader) error {
	report, s, err := settings.ReadReport(r)
	if err == nil && s.Version == 0 {
		return store.ErrNotFound
	}
	m.Report = &report
	return err
}

func (m *Model) readNotice(r store.Reader) error {
	o, _, err := settings.ReadOperators(r)
	if n := o.Notice(m.Message.ID); n != nil {
		m.Notice = n
	}
	return err
}

// readRetry reads records about a retry, which is another run of a call whose outcome is unknown. If the model is about
// a run with an unknown outcome, readRetry reads the request for the retry and the request's cards. If the model is
// about the request for a retry, readRetry reads the messages that ask people about the earlier run.
func (m *Model) readRetry(r store.Reader) error {
	if e := m.Execution; e != nil && (e.State == approvers.ExecutionUnknown || e.Loss != "") {
		if m.Call.Execution != e.ID {
			later, err := r.Request(m.Call.Request)
			if err != nil {
				return err
			}
			m.Later = &later
			if m.Cards, err = readCards(r, later); err != nil {
				return err
			}
		}
		timer, err := r.Timer(store.TimerLeave, e.ID)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		m.LeaveAt = timer.Due
	}
	if m.Request == nil || m.Request.Retry == nil {
		return nil
	}
	messages, err := r.OutboxMessagesOf(m.Request.Retry.Execution)
	for _, o := range messages {
		if o.Kind == store.OutboxUnknown && o.TS != "" {
			m.Earlier = append(m.Earlier, o)
		}
	}
	return err
}
