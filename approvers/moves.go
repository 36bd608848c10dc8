package approvers

import (
	"encoding/json"
	"slices"
	"time"
)

// Deciding is what every decision is checked against: the policy as it is now, the plan of the current arguments under
// that policy, and the time of the transaction.
type Deciding struct {
	Policy *Policy
	Now    time.Time
}

// Refresh brings the request's plan up to a policy that changed while it waited: the union of both plans. A request
// that nobody could allow any more is voided.
func (r Request) Refresh(in Deciding, args map[string]any) Request {
	if r.State != Pending || r.Plan.PolicyHash == in.Policy.Hash {
		return r
	}
	plan := r.Plan.Union(in.Policy, in.Policy.Plan(r.AsCall(args)))
	if plan.Verdict != Refuse {
		if problem := plan.unsatisfiable(in.Policy, r.Tool); problem != "" {
			plan.refuse(problem)
		}
	}
	if plan.Verdict == Refuse {
		r.Plan.PolicyHash = plan.PolicyHash
		return r.close(Voided, "", "", "", "the policy changed: "+plan.Why[len(plan.Why)-1], in.Now)
	}
	outgrown := r.outgrownBy(in.Policy, plan)
	if outgrown {
		r = r.restart()
	}
	was := r.Plan.Stages
	r.Plan = plan
	if outgrown {
		return r.keepHanded(was).begin(in)
	}
	// Whoever was told as a lead of the stage's roles, and is none any more, has no say by that.
	return r.keepLeads(in.Policy).rearm(in)
}

// outgrownBy reports whether what was passed so far is not what the plan asks for: the stages up to now are others, the risk is another,
// or somebody approved who may not any more.
func (r Request) outgrownBy(p *Policy, plan Plan) bool {
	return plan.Risk != r.Plan.Risk || !slices.EqualFunc(plan.Stages[:r.Stage+1], r.Plan.Stages[:r.Stage+1], Stage.Equal) ||
		slices.ContainsFunc(r.Standing(), func(d Decision) bool { return !plan.takes(p, r, d) })
}

// takes reports whether an approval that was given before would still be taken: its giver is not barred, and the role that gave the
// authority still names them, may come to be asked at the stage, and has the tool and, at the last stage, the ceiling. An operator's is taken
// as long as the policy breaks the glass for the tool.
func (plan Plan) takes(p *Policy, r Request, d Decision) bool {
	if d.BreakGlass {
		t, _ := p.Tool(r.Tool, r.Agent)
		return t.BreakGlass
	}
	role, ok := p.Role(d.Role)
	s, last := plan.Stages[d.Stage], d.Stage == len(plan.Stages)-1
	asked := slices.Contains(s.Roles(), role.Name) || p.leadsTo(s, role.Name) || role.MaxRisk >= p.lowestCeiling(s)
	return ok && asked && role.names(d.By) && role.Covers(r.Tool) && (!last || role.MaxRisk >= plan.Risk) && !slices.Contains(plan.barred(), d.By)
}

// restart begins the stages again: approvals so far fall.
func (r Request) restart() Request {
	r.Stage = 0
	r.Decisions = slices.Clone(r.Decisions)
	for i := range r.Decisions {
		r.Decisions[i].Fallen = true
	}
	return r
}

// waits says why nobody can do anything about a request that waits, or nil.
func (r Request) waits(m Move) *Denied {
	switch {
	case r.State != Pending:
		return r.Over()
	case m.At.After(r.ExpiresAt):
		return &Denied{Code: DeniedLate, At: r.ExpiresAt}
	}
	return nil
}

// ready says why a decision on a pending request can't be taken, or nil.
func (r Request) ready(m Move) *Denied {
	if denied := r.waits(m); denied != nil {
		return denied
	}
	if m.Digest != r.Digest {
		return &Denied{Code: DeniedStale}
	}
	return nil
}

// MayDecide says why a person's move on the request can't be taken, whatever it is, or nil. The moves check it themselves.
func (r Request) MayDecide(in Deciding, m Move) *Denied {
	if denied := r.ready(m); denied != nil {
		return denied
	}
	_, denied := r.Authority(in.Policy, m.Who)
	return denied
}

// Approve counts a person's approval, and moves on when the stage has its quorum.
func (r Request) Approve(in Deciding, m Move) (Request, *Denied) {
	if denied := r.ready(m); denied != nil {
		return r, denied
	}
	role, denied := r.Authority(in.Policy, m.Who)
	if denied != nil {
		return r, denied
	}
	if r.counted(m.Who.ID) {
		return r, &Denied{Code: DeniedCounted, Role: r.title(in.Policy)}
	}
	if r.Plan.Risk >= Critical && r.Forecast.unseen(m.At) {
		return r, &Denied{Code: DeniedPreview}
	}
	if r.WantsTyping() && !m.Typed {
		return r, &Denied{Code: DeniedTyped}
	}
	if len(r.Decisions) >= MaxDecisions {
		return r, &Denied{Code: DeniedFull}
	}
	return r.count(in, Approve, role, m), nil
}

// unsay has a person's earlier decision at the current stage count no more: they have changed their mind.
func (r Request) unsay(who PersonID) Request {
	r.Decisions = slices.Clone(r.Decisions)
	for i, d := range r.Decisions {
		if d.By == who && d.Stage == r.Stage {
			r.Decisions[i].Fallen = true
		}
	}
	return r
}

// agreedBefore reports whether a person's approval of an earlier stage counts.
func (r Request) agreedBefore(who PersonID) bool {
	return slices.ContainsFunc(r.Standing(), func(d Decision) bool { return d.By == who && d.Stage < r.Stage })
}

// MaxDecisions bounds how many decisions a request holds: far above what stages need, and below what people who keep changing their minds
// could pile up. Beyond it the request can only be edited, taken back, or expire.
const MaxDecisions = 60

// count adds an approval and advances through every stage that has its quorum.
func (r Request) count(in Deciding, kind DecisionKind, role Role, m Move) Request {
	r = r.unsay(m.Who.ID)
	r.Decisions = append(r.Decisions, m.decision(kind, role, r, in.Now))
	if r.At(r.Stage) < r.Plan.Stages[r.Stage].Quorum {
		return r
	}
	if r.Stage < len(r.Plan.Stages)-1 {
		r.Stage++
		return r.begin(in)
	}
	r = r.close(Approved, m.Who.ID, m.Who.Name, role.Name, "", in.Now)
	t, _ := in.Policy.Tool(r.Tool, r.Agent)
	r.RunBy = in.Now.Add(t.RunWithin)
	return r
}

// decision is the move as it is kept.
func (m Move) decision(kind DecisionKind, role Role, r Request, now time.Time) Decision {
	return Decision{
		Kind: kind, By: m.Who.ID, Name: m.Who.Name, Role: role.Name, Stage: r.Stage, Digest: r.Digest, Rendering: m.Rendering,
		Reason: m.Reason, At: now, Typed: m.Typed, Took: m.Took, Unforetold: r.Forecast.unseen(m.At),
	}
}

// Reject ends the request, or counts towards the number of rejections that the stage asks for. An approver who approved
// before may still change their mind while it is pending.
func (r Request) Reject(in Deciding, m Move) (Request, *Denied) {
	if denied := r.ready(m); denied != nil {
		return r, denied
	}
	role, denied := r.Authority(in.Policy, m.Who)
	if denied != nil {
		return r, denied
	}
	if m.Reason == "" {
		return r, &Denied{Code: DeniedNoReason}
	}
	if slices.ContainsFunc(r.Against(r.Stage), func(d Decision) bool { return d.By == m.Who.ID }) {
		return r, &Denied{Code: DeniedCounted, Role: r.title(in.Policy), State: Rejected}
	}
	if r.Plan.Stages[r.Stage].Rejects > 1 && r.agreedBefore(m.Who.ID) {
		return r, &Denied{Code: DeniedCounted, Role: r.title(in.Policy)} // nobody is for it and against it; they can take their approval back
	}
	if len(r.Decisions) >= MaxDecisions {
		return r, &Denied{Code: DeniedFull}
	}
	r = r.unsay(m.Who.ID)
	r.Decisions = append(r.Decisions, m.decision(Reject, role, r, in.Now))
	if len(r.Against(r.Stage)) < r.Plan.Stages[r.Stage].Rejects {
		return r, nil
	}
	return r.close(Rejected, m.Who.ID, m.Who.Name, role.Name, m.Reason, in.Now), nil
}

// Edited is a changed call: a new execution with its digest, and the plan that the policy has for it.
type Edited struct {
	Execution    string
	Args         json.RawMessage
	Digest       string
	Preview      string
	PreviewFault string
	Forecast     *Forecast
	Plan         Plan
}

// Modify replaces the arguments. Earlier approvals fall, the plan is made anew, and the editor's own approval
// counts where the editor has the authority for the new plan's first stage and was shown all of the arguments; for what is critical now
// a value has to be typed too, and no preview of it may be on its way.
func (r Request) Modify(in Deciding, m Move, e Edited) (Request, *Denied) {
	if denied := r.ready(m); denied != nil {
		return r, denied
	}
	role, denied := r.Authority(in.Policy, m.Who)
	if denied != nil {
		return r, denied
	}
	if e.Plan.Verdict == Auto {
		t, _ := in.Policy.Tool(r.Tool, r.Agent)
		e.Plan.askAfterEdit(in.Policy, t)
	}
	if e.Plan.Verdict != Ask {
		return r, &Denied{Code: DeniedEdit, Detail: e.Plan.Why[len(e.Plan.Why)-1]}
	}
	r.Edits = append(slices.Clone(r.Edits), Edit{
		By: m.Who.ID, Name: m.Who.Name, Role: role.Name, At: in.Now, Before: r.Args, After: e.Args, Reason: m.Reason,
	})
	r = r.restart()
	r.Execution, r.Args, r.Digest = e.Execution, e.Args, e.Digest
	r.Preview, r.PreviewFault, r.Forecast = e.Preview, e.PreviewFault, e.Forecast
	was := r.Plan.Stages
	r.Plan = e.Plan
	if r.Plan.Routed && role.MaxRisk >= r.Plan.Risk {
		// Whoever was routed to by ceiling may be replaced by the editor, whose ceiling is sufficient.
		r.Plan.Stages = []Stage{{Approver: role.Name, Quorum: 1}}
	}
	r = r.keepHanded(was).begin(in)
	if own, denied := r.Authority(in.Policy, m.Who); denied == nil && !m.Partly && (!r.WantsTyping() || m.Typed) && (r.Plan.Risk < Critical || !r.Forecast.Making()) {
		return r.count(in, Modify, own, m), nil
	}
	edit := m.decision(Modify, role, r, in.Now)
	edit.Fallen = true
	r.Decisions = append(r.Decisions, edit)
	return r, nil
}

// Withdraw takes a request back. A requester can, and somebody whose message waits behind it.
func (r Request) Withdraw(in Deciding, who Identity, waiting bool, reason string) (Request, *Denied) {
	if !r.State.Open() {
		return r, r.Over()
	}
	if who.ID == "" || who.Deleted {
		return r, &Denied{Code: DeniedUnidentified}
	}
	if !waiting && !slices.Contains(r.Facts.Requesters, who.ID) {
		return r, &Denied{Code: DeniedNotRequester}
	}
	return r.close(Withdrawn, who.ID, who.Name, "", reason, in.Now), nil
}

// Revoke takes an approval back before it ran, with a reason: for good. Whoever approved can, and whoever may decide now.
func (r Request) Revoke(in Deciding, m Move) (Request, *Denied) {
	if r.State == Consumed {
		return r, &Denied{Code: DeniedStarted}
	}
	if !r.State.Open() {
		return r, r.Over()
	}
	if code := m.Who.trouble(); code != "" {
		return r, &Denied{Code: code}
	}
	var role string
	for _, d := range r.Standing() {
		if d.By == m.Who.ID {
			role = d.Role
		}
	}
	if own, denied := r.Authority(in.Policy, m.Who); role == "" && r.State == Approved && denied == nil {
		role = own.Name
	}
	if role == "" {
		return r, &Denied{Code: DeniedNotApprover, Role: r.title(in.Policy)}
	}
	if m.Reason == "" {
		return r, &Denied{Code: DeniedNoReason}
	}
	return r.close(Revoked, m.Who.ID, m.Who.Name, role, m.Reason, in.Now), nil
}

// Expire ends a request whose deadline passed: undecided, or approved and not started in time. Where the policy says so, a stage
// that nobody decided goes up first, and the request stays pending. It reports false while no deadline has passed.
func (r Request) Expire(in Deciding) (Request, bool) {
	switch {
	case r.State == Pending && !in.Now.Before(r.ExpiresAt):
		if up, ok := r.goUp(in); ok {
			return up, true
		}
		return r.close(Expired, "", "", "", "nobody decided in time", in.Now), true
	case r.State == Approved && !in.Now.Before(r.RunBy):
		return r.close(Expired, "", "", "", "it was approved but could not be started in time", in.Now), true
	}
	return r, false
}

// Void ends an open request because what it would run has changed.
func (r Request) Void(in Deciding, reason string) (Request, *Denied) {
	if !r.State.Open() {
		return r, r.Over()
	}
	return r.close(Voided, "", "", "", reason, in.Now), nil
}

// Recheck holds an approved request against a policy that changed before it ran. Where the union of both plans asks for
// more than was given, the request is pending again, with a new deadline; where nobody could allow it, it is voided.
func (r Request) Recheck(in Deciding, args map[string]any) Request {
	if r.State != Approved || r.Plan.PolicyHash == in.Policy.Hash {
		return r
	}
	before := r
	r.State = Pending
	r = r.Refresh(in, args)
	if r.State != Pending {
		return r
	}
	if len(r.Plan.Stages) == len(before.Plan.Stages) && !before.outgrownBy(in.Policy, r.Plan) {
		before.Plan = r.Plan
		return before
	}
	r = r.restart()
	r.ClosedBy, r.ClosedName, r.ClosedRole, r.ClosedAt, r.RunBy = "", "", "", time.Time{}, time.Time{}
	return r.begin(in)
}

// Consume uses the approval up: it allows one run, now.
func (r Request) Consume(in Deciding) (Request, *Denied) {
	if r.State != Approved {
		return r, r.Over()
	}
	if !in.Now.Before(r.RunBy) {
		return r, &Denied{Code: DeniedLate, At: r.RunBy}
	}
	r.State = Consumed
	return r, nil
}
