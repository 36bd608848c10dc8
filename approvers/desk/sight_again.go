package desk

import (
	"countersign/approvers"
	"countersign/store"
)

// seeAgain reads by which request a call was asked for again after the run that is looked at, with its cards, and where people are asked about the
// run after which this request asks again.
func (s *Sight) seeAgain(r store.Reader) error {
	if e := s.Execution; e.State == approvers.ExecutionUnknown || e.Loss != "" {
		if s.Call.Execution != e.ID {
			later, err := r.Request(s.Call.Request)
			if err != nil {
				return err
			}
			s.Later = &later
			if s.Cards, err = seeCards(r, later); err != nil {
				return err
			}
		}
		timer, err := r.Timer(store.TimerLeave, e.ID)
		if ignoreNotFound(err) != nil {
			return err
		}
		s.LeaveAt = timer.Due
	}
	if s.Request == nil || s.Request.Again == nil {
		return nil
	}
	surfaces, err := r.SurfacesOf(s.Request.Again.Execution)
	for _, o := range surfaces {
		if o.Kind == store.SurfaceUnknown && o.TS != "" {
			s.Earlier = append(s.Earlier, o)
		}
	}
	return err
}
