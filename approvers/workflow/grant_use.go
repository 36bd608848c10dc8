package workflow

import (
	"context"
	"strconv"

	"countersign/approvers"
	"countersign/store"
)

// grantOwners are those who gave grants, as Slack knows them now, by grant.
type grantOwners map[string]approvers.Identity

// grantOwners asks Slack about those whose grants an execution could use, before the transaction that uses one.
// Somebody about whom Slack can't be asked is left out: their grants admit nothing then, and people are asked.
func (w *Workflow) grantOwners(ctx context.Context, execution string) (grantOwners, error) {
	var open []approvers.Grant
	err := w.Store.View(ctx, func(r store.Reader) error {
		open = nil
		e, err := r.Execution(execution)
		if err != nil || e.Request != "" || e.State != approvers.ExecutionNone {
			return ignoreNotFound(err)
		}
		open, err = r.OpenGrants(e.Tool)
		return err
	})
	known := grantOwners{}
	for _, g := range open {
		if g.State != approvers.GrantLive || w.GrantOwner == nil {
			continue
		}
		who, err := w.GrantOwner(ctx, g)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			w.Log.Warn("Slack could not say who gave a grant, so people are asked instead", "tool", g.Tool, "grant", g.ID, "error", err)
			continue
		}
		known[g.ID] = who
	}
	return known, err
}

// expectGrant finds the grant that a call may run under, where people would be asked otherwise; "" for none. It is
// looked at again when the call is to run: only then is a use of it taken.
func (t *tx) expectGrant(c approvers.Call, e approvers.Execution, plan approvers.Plan) (string, error) {
	open, err := t.OpenGrants(e.Tool)
	if err != nil {
		return "", err
	}
	for _, g := range open {
		if g.Admits(t.deciding(), c, e.ToolHash, e.Args, plan) == "" {
			return g.ID, nil
		}
	}
	return "", nil
}

// useGrant takes a use of a grant for a call about which people would be asked, if there is one that admits it now and
// whose giver still stands behind it. It reports false where people have to be asked.
func (t *tx) useGrant(e *approvers.Execution, r approvers.Request, args map[string]any, givers grantOwners) (bool, error) {
	open, err := t.OpenGrants(e.Tool)
	if err != nil || len(open) == 0 {
		return false, err
	}
	for _, g := range open {
		if g.Admits(t.deciding(), r.AsCall(args), e.ToolHash, e.Args, r.Plan) != "" || g.Backs(t.deciding(), r.Plan, givers[g.ID]) != "" {
			continue
		}
		if above, err := t.aboveCap(r.Facts.Requesters); err != nil || above {
			return false, err
		}
		used, err := g.Use(t.now)
		if err != nil {
			return false, err
		}
		e.Grant, e.GrantUse = g.ID, g.Uses-used.Left
		facts := map[string]string{"execution": e.ID, "digest": e.Digest, "use": strconv.Itoa(e.GrantUse), "place": e.Conversation}
		if err := t.applyGrant(used, "used", "", facts); err != nil {
			return false, err
		}
		facts = map[string]string{"what": "used", "grant": g.ID, "use": strconv.Itoa(e.GrantUse), "by": string(g.By), "role": g.Role}
		return true, t.audit(e.Chain(), approvers.AuditGranted, "", facts, nil)
	}
	return false, nil
}

// aboveCap reports whether approving one more request of somebody who asks would take a typed value. A grant does not
// stand for that: so many requests are looked at one by one.
func (t *tx) aboveCap(requesters []approvers.PersonID) (bool, error) {
	most := t.policy.Caps.Requester
	if most.Count == 0 {
		return false, nil
	}
	for _, who := range requesters {
		n, err := t.CounterSum(counterAsked(who), t.now.Add(-most.Per))
		if err != nil || n >= most.Count {
			return true, err
		}
	}
	return false, nil
}
