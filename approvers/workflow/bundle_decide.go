package workflow

import (
	"context"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// DecideAll approves or rejects all requests of a bundle that are up for decision, each by its own digest, in one
// transaction. If one of them can't be decided, none is, and the denial is returned with that request.
func (w *Requests) DecideAll(ctx context.Context, c Click, shown []store.Shown) (approvers.Request, error) {
	var inTheWay approvers.Request
	err := w.click(ctx, "decide all", c, func(t *tx) (*approvers.Denied, error) {
		inTheWay = approvers.Request{}
		if len(shown) == 0 || c.Kind == approvers.Modify {
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		var moves []decided
		var counted *approvers.Denied
		for _, one := range shown {
			m, denied, err := t.requests.decideOne(c, one, moves)
			switch {
			case err != nil:
				return nil, err
			case denied == nil:
				moves = append(moves, m)
			case denied.Code == approvers.DeniedCounted: // already decided as this person wishes
				inTheWay, counted = m.now, denied
			default:
				inTheWay = m.now
				return denied, t.requests.deniedAll(c, m, denied)
			}
		}
		if len(moves) == 0 {
			return counted, t.auditDenied(inTheWay.ID, string(c.Kind), c, counted)
		}
		for _, m := range moves {
			if err := t.records.auditDecided(m.after, m.click); err != nil {
				return nil, err
			}
			if err := t.apply(m.after, m.allEvents()); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return inTheWay, err
}

// decided is a decision before it is written.
type decided struct {
	click Click
	standing
	after approvers.Request // as decided
	since []approvers.Event // by the decision
}

// allEvents returns all events since the request was stored.
func (d decided) allEvents() []approvers.Event { return slices.Concat(d.events, d.since) }

// decideOne determines the effect of a click on one request of a bundle. It writes nothing.
func (t requestsTx) decideOne(c Click, one store.Shown, earlier []decided) (decided, *approvers.Denied, error) {
	c.Request, c.Digest, c.Whole, c.Typed, c.FirstSeen = one.Request, one.Digest, one.Whole, false, one.Since
	cur, denied, err := t.current(one.Request)
	m, r := decided{click: c, standing: cur}, cur.now
	if err != nil || denied != nil {
		return m, denied, err
	}
	if len(earlier) > 0 && r.State == approvers.Pending && (earlier[0].now.Stage != r.Stage || !earlier[0].now.CurrentStage().AsksLike(r.CurrentStage())) {
		return m, &approvers.Denied{Code: approvers.DeniedStale}, nil // they are no longer at the same stage
	}
	m.after, m.since, denied = t.decide(r, c)
	return m, denied, nil
}

// deniedAll records the attempt, and the current policy's effect on the request that can't be decided.
func (t requestsTx) deniedAll(c Click, m decided, denied *approvers.Denied) error {
	if m.stored.ID == "" {
		return nil
	}
	if err := t.applyIfChanged(m.standing); err != nil {
		return err
	}
	return t.auditDenied(m.stored.ID, string(c.Kind), c, denied)
}

// Unbundle gives a request of a bundle its own card at the same address. Everybody who may decide it can.
func (w *Requests) Unbundle(ctx context.Context, c Click) (approvers.Request, error) {
	return w.onRequest(ctx, "unbundle", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Unbundle(t.deciding(), c.Who)
		return after, events, denied, nil
	})
}
