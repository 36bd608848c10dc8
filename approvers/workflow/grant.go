package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Give approves a request, and creates a grant for similar calls. One transaction stores both the approval and the
// grant, because a person decides about them with one click.
func (w *Grants) Give(ctx context.Context, c Click, a approvers.Allowance) (approvers.Request, error) {
	c.Kind = approvers.Approve
	return w.onRequest(ctx, "allow more", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		g, denied := r.Allow(t.deciding(), t.requests.action(c), a)
		if denied != nil {
			return r, nil, denied, nil
		}
		after, events, denied := t.requests.decide(r, c)
		if denied != nil {
			return r, nil, denied, nil
		}
		if err := t.records.auditDecided(after, c); err != nil {
			return r, nil, nil, err
		}
		return after, events, nil, t.grants.give(g)
	})
}

// give handles a grant that a person gave on a card. give puts the grant into force, and shows it in the conversation.
// give also sends a message to the grant's owner, with a button that revokes the grant.
func (t grantsTx) give(g approvers.Grant) error {
	g.ID = t.newID("grant")
	if err := t.replaceLike(g); err != nil {
		return err
	}
	if err := t.applyGrant(g, "given", g.By, nil); err != nil {
		return err
	}
	if err := t.audit(g.Request, approvers.AuditGranted, g.By, map[string]string{"grant": g.ID, "what": "given"}, nil); err != nil {
		return err
	}
	if err := t.outbox.add(store.OutboxMessage{Kind: store.OutboxGrant, Ref: g.ID, To: store.ToConversation + g.Conversation}); err != nil || !onSlack(g.By) {
		return err
	}
	return t.outbox.add(store.OutboxMessage{Kind: store.OutboxGrant, Ref: g.ID, To: store.ToUser + g.By.User()})
}

// replaceLike ends the grants that a new grant replaces.
func (t grantsTx) replaceLike(g approvers.Grant) error {
	open, err := t.OpenGrants(g.Tool)
	if err != nil {
		return err
	}
	for _, was := range open {
		ended, ok := was.Replace(g)
		if !ok {
			continue
		}
		if err := t.applyGrant(ended, "replaced", g.By, map[string]string{"by": g.ID}); err != nil {
			return err
		}
	}
	return nil
}

// applyGrant writes a changed grant and the consequences of the change. The consequences are the grant's timer, an
// audit record, and updates of the messages that show the grant. Every change of a grant goes through applyGrant.
func (t grantsTx) applyGrant(g approvers.Grant, what string, who approvers.PersonID, more map[string]string) error {
	if err := t.PutGrant(g); err != nil {
		return err
	}
	due := g.Until
	if !g.State.Open() {
		due = time.Time{}
	}
	if err := t.timers.setOrClear(store.TimerGrant, g.ID, due); err != nil {
		return err
	}
	facts := map[string]string{
		"what": what, "state": string(g.State), "tool": g.Tool, "agent": g.Agent, "conversation": g.Conversation, "role": g.Role,
		"uses": strconv.Itoa(g.Uses), "left": strconv.Itoa(g.Left), "until": g.Until.Format(time.RFC3339Nano),
	}
	if g.OfferedTo != "" {
		facts["offered_to"] = g.OfferedTo
	}
	maps.Copy(facts, more)
	var body any
	if g.Version == 0 { // a new grant: its bounds are recorded only now, because they never change
		body = map[string]any{"bounds": g.Bounds, "args": g.Args}
	}
	if err := t.audit(approvers.GrantChain(g.ID), approvers.AuditGranted, who, facts, body); err != nil {
		return err
	}
	return t.outbox.changedRef(g.ID)
}

// onGrant handles one person's click on a grant. The function action returns the changed grant, or the denial of the
// click. onGrant records a denial in the grant's audit chain. onGrant returns the changed grant.
func (w *Grants) onGrant(ctx context.Context, what string, c Click, action func(*tx, approvers.Grant) (approvers.Grant, *approvers.Denied)) (approvers.Grant, error) {
	var out approvers.Grant
	err := w.click(ctx, what, c, func(t *tx) (*approvers.Denied, error) {
		g, err := t.Grant(c.Grant)
		if errors.Is(err, store.ErrNotFound) {
			return &approvers.Denied{Code: approvers.DeniedNotFound}, nil
		}
		if err != nil {
			return nil, err
		}
		out = g
		after, denied := action(t, g)
		if denied != nil {
			return denied, t.auditDenied(approvers.GrantChain(g.ID), what, c, denied)
		}
		out = after
		return nil, t.grants.applyGrant(after, what, c.Who.ID, map[string]string{"channel": c.Channel, "message": c.MessageTS, "rendering": c.Rendering})
	})
	return out, err
}

// Revoke ends a grant. Revoke does not stop a run that has begun.
func (w *Grants) Revoke(ctx context.Context, c Click) (approvers.Grant, error) {
	return w.onGrant(ctx, "revoked", c, func(t *tx, g approvers.Grant) (approvers.Grant, *approvers.Denied) {
		return g.Revoke(t.deciding(), c.Who)
	})
}

// Accept accepts the bot's offer of a grant. The grant is then in force.
func (w *Grants) Accept(ctx context.Context, c Click) (approvers.Grant, error) {
	return w.onGrant(ctx, "accepted", c, func(t *tx, g approvers.Grant) (approvers.Grant, *approvers.Denied) {
		return g.Accept(t.deciding(), t.requests.action(c), t.hash(g.Tool))
	})
}

// Decline ends an offer.
func (w *Grants) Decline(ctx context.Context, c Click) (approvers.Grant, error) {
	return w.onGrant(ctx, "declined", c, func(t *tx, g approvers.Grant) (approvers.Grant, *approvers.Denied) {
		return g.Decline(t.deciding(), t.requests.action(c))
	})
}

// hash returns the hash of a tool's current definition. If the tool does not exist, or is blocked, hash returns "".
func (t *tx) hash(tool string) string { return t.w.hash(tool) }

func (w *core) hash(tool string) string {
	known, _ := w.Tools.Tool(tool)
	if known.Blocked != "" {
		return ""
	}
	return known.Hash
}

// Lapse ends a grant, or an offer of a grant, when its time is over. If the bot received an answer to the offer in
// time, the answer is handled before Lapse ends the offer.
func (w *Grants) Lapse(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "lapse", func(t *tx) error {
		g, err := t.Grant(timer.Ref)
		if err != nil || !g.State.Open() {
			return errors.Join(store.IgnoreNotFound(err), t.ClearTimer(store.TimerGrant, timer.Ref))
		}
		ended, over := g.Lapse(t.now)
		if !over {
			return t.SetTimer(store.Timer{Kind: store.TimerGrant, Ref: g.ID, Due: g.Until})
		}
		if g.State == approvers.GrantOffered {
			if early, err := t.handledFirst(timer, g.Until); early || err != nil {
				return err
			}
		}
		return t.grants.applyGrant(ended, "lapsed", "", nil)
	})
}

// Send sends a person one message for each of the given grants. If the person has a message about a grant already, Send
// sends no second message.
func (w *Grants) Send(ctx context.Context, inbox string, who approvers.PersonID, grants []string) error {
	return w.update(ctx, "send grants", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		for _, g := range grants {
			if err := t.outbox.wantOnce(store.OutboxMessage{Kind: store.OutboxGrant, Ref: g, To: store.ToUser + who.User()}); err != nil {
				return err
			}
		}
		return nil
	})
}

// showGrants schedules an update of all messages that show an open grant, and of the watched Home tabs. showGrants is
// called after a change of the policy.
func (w *Requests) showGrants(ctx context.Context) error {
	return w.update(ctx, "re-evaluate", func(t *tx) error {
		t.showHomes = true
		open, err := t.OpenGrants("")
		if err != nil {
			return err
		}
		for _, g := range open {
			if err := t.outbox.changedRef(g.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// grantOwners maps a grant's id to the identity of the grant's owner, from Slack's current data. The owner is the
// person who gave the grant.
type grantOwners map[string]approvers.Identity

// grantOwners looks up, in Slack, the owners of the grants that may cover an execution. grantOwners must be called
// before the transaction that uses the grant, because a transaction must not do I/O. If the look-up of an owner fails,
// the result lacks this owner. The bot then does not use the owner's grants, so people have to approve the call.
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
			w.Log.WarnContext(ctx, "Slack could not be asked about the person who gave a grant, so the grant is not used and approvers are asked",
				"execution", execution, "tool", g.Tool, "grant", g.ID, "error", err)
			continue
		}
		known[g.ID] = who
	}
	return known, err
}

// expectGrant returns the id of a grant that covers a call, or "" if people must approve the call. expectGrant does not
// count a use of the grant. Just before the run, useGrant checks the grant again and counts the use.
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

// useGrant finds a grant for a call, and counts a use of the grant. The grant must cover the call, and the grant's
// owner must have the authority for the call now. If people have to approve the call, useGrant returns false.
func (t grantsTx) useGrant(e *approvers.Execution, r approvers.Request, args map[string]any, givers grantOwners) (bool, error) {
	open, err := t.OpenGrants(e.Tool)
	if err != nil || len(open) == 0 {
		return false, err
	}
	for _, g := range open {
		if g.Admits(t.deciding(), r.AsCall(args), e.ToolHash, e.Args, r.Plan) != "" || g.Backs(t.deciding(), r.Plan, givers[g.ID]) != "" {
			continue
		}
		if above, err := t.aboveCap(countedPeople(r.Facts)); err != nil || above {
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

// aboveCap reports whether one more request of these requesters would exceed the policy's cap on requests. Above the
// cap, an approval needs a typed value, because people must look at each call. So grants are not used above the cap.
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

// extendStreak adds a successful run to its tool's streak of approved calls. An unsuccessful run ends the streak. When
// the streak is long enough, extendStreak offers a grant. The grant comes into force only if a person accepts the
// offer.
func (t grantsTx) extendStreak(e approvers.Execution) error {
	if e.State != approvers.ExecutionSucceeded {
		return t.resetStreakOfTool(e)
	}
	if e.Request == "" {
		return nil // nobody approved the call
	}
	turn, err := t.Turn(e.Turn)
	if err != nil {
		return err
	}
	trust, s, err := t.trust(turn.Agent, e.Tool)
	if err != nil {
		return err
	}
	if p, known := t.policy.Tool(e.Tool, turn.Agent); trust.Row == 0 && (!known || !p.Trusts()) {
		return nil // there is no streak, and the policy proposes no grants, so the request is not read
	}
	r, err := t.Request(e.Request)
	if err != nil {
		return err
	}
	if r.Facts.Caller != nil {
		return nil // grants are offered only for calls of Countersign's own agent
	}
	grown, offer, offered := trust.Grow(t.deciding(), r)
	if grown.Row == 0 && trust.Row == 0 && !offered {
		return nil
	}
	if err := t.putTrust(s, grown); err != nil || !offered {
		return err
	}
	return t.offer(offer)
}

// resetStreakOfTool ends a tool's streak after an unsuccessful run.
func (t grantsTx) resetStreakOfTool(e approvers.Execution) error {
	turn, err := t.Turn(e.Turn)
	if err != nil {
		return err
	}
	return t.resetStreak(turn.Agent, e.Tool, time.Time{})
}

// resetStreak ends the streak of a tool's calls that were approved unchanged. If the parameter before is not zero,
// resetStreak keeps a streak with a later call.
func (t grantsTx) resetStreak(agent, tool string, before time.Time) error {
	trust, s, err := t.trust(agent, tool)
	if err != nil || trust.Row == 0 || !before.IsZero() && !trust.At.Before(before) {
		return err
	}
	return t.putTrust(s, approvers.Trust{})
}

// ResetStreak does the same for package retention, because a streak has values of its calls' arguments.
func (t Tx) ResetStreak(agent, tool string, before time.Time) error {
	return t.grants.resetStreak(agent, tool, before)
}

// trust reads the streak of an agent's approved calls to a tool.
func (t grantsTx) trust(agent, tool string) (trust approvers.Trust, s store.Setting, err error) {
	s, err = t.Setting(store.SettingTrust + agent + "/" + tool)
	s.Key = store.SettingTrust + agent + "/" + tool
	if err != nil {
		return trust, s, store.IgnoreNotFound(err)
	}
	return trust, s, json.Unmarshal(s.Value, &trust)
}

func (t grantsTx) putTrust(s store.Setting, trust approvers.Trust) error {
	raw, err := json.Marshal(trust)
	if err != nil {
		return err
	}
	s.Value = raw
	return t.PutSetting(s)
}

// t.offer sends the offer of a grant to the members of the role that may accept the offer. If a similar grant exists,
// offer does nothing.
func (t grantsTx) offer(g approvers.Grant) error {
	open, err := t.OpenGrants(g.Tool)
	if err != nil {
		return err
	}
	for _, o := range open {
		if o.Agent == g.Agent && o.Conversation == "" {
			return nil
		}
	}
	g.ID = t.newID("grant")
	if err := t.applyGrant(g, "offered", "", map[string]string{"row": strconv.Itoa(g.Row)}); err != nil {
		return err
	}
	return t.outbox.add(store.OutboxMessage{Kind: store.OutboxGrant, Ref: g.ID, To: store.ToRole + g.OfferedTo})
}
