package view

import (
	"countersign/approvers"
	"countersign/store"
)

// Flow returns the flow of an outbox message: the person or the client of the gateway that caused the message. The
// delivery to an address alternates between flows, so that many messages of one flow do not delay the messages of
// another flow. Only cards, approvers' questions, notices about requests, and questions about an unknown outcome have a
// flow. Flow returns "" for other messages.
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
