package workflow

import (
	"context"
	"strconv"

	"countersign/approvers"
	"countersign/store"
)

// grantOwners holds, by grant, the people who gave it, as Slack knows them now.
type grantOwners map[string]approvers.Identity

// grantOwners asks Slack about the owners of the grants that an execution could use, before the transaction that uses
// one. If Slack can't be asked about an owner, the owner is left out: their grants allow nothing then, and people are
// asked.
func (w *Runs) grantOwners(ctx context.Context, execution string) (grantOwners, error) {
	var open []approvers.Grant
	err := w.Store.View(ctx, func(r store.Reader) error {
		open = nil
		e, err := r.Execution(execution)
		if err != nil || e.Request != "" || e.State != approvers.ExecutionNone {
			return store.IgnoreNotFound(err)
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

// expectGrant finds a grant that allows a call for which people would be asked otherwise; "" if there is none. The
// grant is checked again, and used, only when the call is about to run.
func (t grantsTx) expectGrant(c approvers.Call, e approvers.Execution, plan approvers.Plan) (string, error) {
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

// useGrant uses a grant for a call, if one allows it now and its owner still has the authority. It returns false if
// people have to be asked.
func (t grantsTx) useGrant(e *approvers.Execution, r approvers.Request, args map[string]any, givers grantOwners) (bool, error) {
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

// aboveCap reports whether one more request of these requesters would exceed the policy's cap, so that approving it
// needs a typed value. Grants are not used then: people look at each of so many requests.
func (t grantsTx) aboveCap(requesters []approvers.PersonID) (bool, error) {
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
