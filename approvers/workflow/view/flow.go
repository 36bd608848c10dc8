package view

import (
	"countersign/approvers"
	"countersign/store"
)

// Flow returns the flow of an outbox message: the person or the client of the gateway that caused the message. Messages
// to the same address are delivered in turns, one of each flow, so that one flow does not delay the others. Only
// messages that ask people something have a flow. For all other messages, Flow returns "".
func Flow(r store.Reader, s store.OutboxMessage) (string, error) {
	m := Model{Message: s}
	switch s.Kind {
	case store.OutboxCard, store.OutboxEscalation, store.OutboxQuestion, store.OutboxNotice:
		req, err := r.Request(s.Ref)
		if err != nil {
			return "", err
		}
		m.Request = &req
	case store.OutboxUnknown:
		e, err := r.Execution(s.Ref)
		if err != nil {
			return "", err
		}
		m.Execution = &e
	case store.OutboxBundle:
		var err error
		if m.Turn, err = r.Turn(s.Ref); err != nil {
			return "", err
		}
	}
	return m.Flow(), nil
}

// Flow returns the flow of m.Message; see the function Flow.
func (m *Model) Flow() string {
	var who approvers.PersonID
	switch m.Message.Kind {
	case store.OutboxCard, store.OutboxEscalation, store.OutboxQuestion, store.OutboxNotice:
		who = m.Request.Facts.Asker
	case store.OutboxUnknown:
		who = m.Execution.Asker
	case store.OutboxBundle:
		if len(m.Turn.Requesters) > 0 {
			who = m.Turn.Requesters[0]
		}
	}
	return string(who)
}
