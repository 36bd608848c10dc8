package desk

import (
	"countersign/approvers"
	"countersign/store"
)

// LineSight is a line at an address as its notice shows it.
type LineSight struct {
	Waiting int                 // requests that wait
	Open    int                 // undecided cards before them
	First   []approvers.Request // the oldest few of those that wait
}

// firstInLine is how many of those that wait a notice names.
const firstInLine = 3

// seeLine reads what a line's notice shows; nothing if nobody waits any more, or people have been told anew since.
func (s *Sight) seeLine(r store.Reader, ref string) error {
	address, round := noticed(ref)
	l, _, err := readLine(r, address)
	if err != nil || len(l.Held) == 0 || l.Round != round {
		return err
	}
	s.Line = &LineSight{Waiting: l.waiting(), Open: len(l.Open)}
	for _, c := range l.Held {
		for _, id := range c.Requests {
			if len(s.Line.First) == firstInLine {
				return nil
			}
			req, err := r.Request(id)
			if err != nil {
				return err
			}
			s.Line.First = append(s.Line.First, req)
		}
	}
	return nil
}

// inLine reports whether a request's card waits in line wherever its stage's people read theirs.
func (s *Sight) inLine(r store.Reader, req approvers.Request) (bool, error) {
	if len(req.Lines) == 0 || req.State != approvers.Pending {
		return false, nil
	}
	for _, address := range addresses(s.Policy, req) {
		l, _, err := readLine(r, address)
		if err != nil || !l.waits(req.ID) {
			return false, err
		}
	}
	return true, nil
}

// seeCards lists the cards that Slack shows of a request: its own, and its bundle.
func seeCards(r store.Reader, req approvers.Request) (cards []store.Surface, err error) {
	surfaces, err := r.SurfacesOf(req.ID)
	if err != nil {
		return nil, err
	}
	if req.Bundled() {
		others, err := r.SurfacesOf(req.Turn)
		if err != nil {
			return nil, err
		}
		surfaces = append(surfaces, others...)
	}
	for _, s := range surfaces {
		if s.TS != "" && (s.State == store.SurfaceShown || s.State == store.SurfaceWanted) && (isCard(s.Kind) || s.Kind == store.SurfaceBundle && s.Bundle == req.Bundle) {
			cards = append(cards, s)
		}
	}
	return cards, nil
}
