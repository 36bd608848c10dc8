package workflow

import (
	"countersign/approvers"
	"countersign/store"
)

// viewRetry reads by which request a call was asked for again after the run that is looked at, with its cards, and
// where people are asked about the run after which this request asks again.
func (m *ViewModel) viewRetry(r store.Reader) error {
	if e := m.Execution; e.State == approvers.ExecutionUnknown || e.Loss != "" {
		if m.Call.Execution != e.ID {
			later, err := r.Request(m.Call.Request)
			if err != nil {
				return err
			}
			m.Later = &later
			if m.Cards, err = viewCards(r, later); err != nil {
				return err
			}
		}
		timer, err := r.Timer(store.TimerLeave, e.ID)
		if ignoreNotFound(err) != nil {
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
