package desk

import (
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// rank says what a new surface goes before, and what before it.
func (t *tx) rank(s store.Surface) (store.Rank, error) {
	switch s.Kind {
	case store.SurfaceEscalation, store.SurfaceUnknown, store.SurfacePause:
		return store.RankFirst, nil
	case store.SurfaceCard, store.SurfaceQuestion:
		return t.rankOf(s.Ref)
	case store.SurfaceBundle:
		requests, err := t.bundled(s)
		if slices.ContainsFunc(requests, isCritical) {
			return store.RankFirst, nil
		}
		return store.RankPlain, err
	case store.SurfaceNotice:
		if s.Note == store.NoteGlass {
			return store.RankFirst, nil // whoever may take it back has until the run
		}
		if s.Note == store.NoteTurn || s.Note == store.NoteInvited { // it stands for a card that is there already
			return t.rankOf(s.Ref)
		}
	case store.SurfaceInquiry, store.SurfaceElicit, store.SurfaceGrant, store.SurfaceHome:
		return store.RankPlain, nil
	}
	return store.RankLast, nil
}

// rankOf is the rank of what asks people about a request.
func (t *tx) rankOf(request string) (store.Rank, error) {
	r, err := t.Request(request)
	if err != nil {
		return store.RankPlain, err
	}
	if isCritical(r) {
		return store.RankFirst, nil
	}
	return store.RankPlain, nil
}

func isCritical(r approvers.Request) bool { return r.Plan.Risk >= approvers.Critical }
