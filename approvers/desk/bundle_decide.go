package desk

import (
	"context"

	"countersign/approvers"
	"countersign/store"
)

// DecideAll approves or rejects all requests that a bundle put up for decision, each over its own digest, in one transaction. Where one of them
// can't be decided like that, nothing is decided: the denial comes with the request that stands in the way.
func (d *Desk) DecideAll(ctx context.Context, c Click, shown []store.Shown) (approvers.Request, error) {
	var inTheWay approvers.Request
	err := d.click(ctx, "decide all", c, func(t *tx) (*approvers.Denied, error) {
		inTheWay = approvers.Request{}
		if len(shown) == 0 || c.Kind == approvers.Modify {
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		var moves []decided
		var counted *approvers.Denied
		for _, one := range shown {
			m, denied, err := t.decideOne(c, one, moves)
			switch {
			case err != nil:
				return nil, err
			case denied == nil:
				moves = append(moves, m)
			case denied.Code == approvers.DeniedCounted: // it is as they wish already
				inTheWay, counted = m.now, denied
			default:
				inTheWay = m.now
				return denied, t.deniedAll(c, m, denied)
			}
		}
		if len(moves) == 0 {
			return counted, t.auditDenied(inTheWay.ID, string(c.Kind), c, counted)
		}
		for _, m := range moves {
			if err := t.auditDecided(m.after, m.click); err != nil {
				return nil, err
			}
			if err := t.follow(m.before, m.after); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return inTheWay, err
}

// decided is a decision that is not written yet.
type decided struct {
	click  Click
	before approvers.Request // as stored
	now    approvers.Request // under the tools and the policy as they are now
	after  approvers.Request // as decided
}

// decideOne looks at what a click means for one request of a bundle. It writes nothing.
func (t *tx) decideOne(c Click, one store.Shown, earlier []decided) (decided, *approvers.Denied, error) {
	c.Request, c.Digest, c.Whole, c.Typed, c.FirstSeen = one.Request, one.Digest, one.Whole, false, one.Since
	before, r, denied, err := t.current(one.Request)
	m := decided{click: c, before: before, now: r}
	if err != nil || denied != nil {
		return m, denied, err
	}
	if len(earlier) > 0 && r.State == approvers.Pending && (earlier[0].now.Stage != r.Stage || asked(earlier[0].now) != asked(r)) {
		return m, &approvers.Denied{Code: approvers.DeniedStale}, nil // they are not at the same stage any more
	}
	m.after, denied = t.decide(r, c)
	return m, denied, nil
}

// deniedAll records that a person tried, and what the current policy made of the request that stood in the way.
func (t *tx) deniedAll(c Click, m decided, denied *approvers.Denied) error {
	if m.before.ID == "" {
		return nil
	}
	if err := t.followIfChanged(m.before, m.now); err != nil {
		return err
	}
	return t.auditDenied(m.before.ID, string(c.Kind), c, denied)
}

// Unbundle gives a request of a bundle a card of its own at the same address. Whoever may decide it can.
func (d *Desk) Unbundle(ctx context.Context, c Click) (approvers.Request, error) {
	return d.onRequest(ctx, "unbundle", c, func(t *tx, r approvers.Request) (approvers.Request, *approvers.Denied, error) {
		if r.State != approvers.Pending {
			return r, r.Over(), nil
		}
		if _, denied := r.Authority(t.policy, c.Who); denied != nil {
			return r, denied, nil
		}
		if !r.Bundled() {
			return r, &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		r.Apart = true
		return r, nil, nil
	})
}
