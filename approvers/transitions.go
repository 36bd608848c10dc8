package approvers

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// DecisionContext holds the part of a transition's input that does not come from the request: the current policy and
// the time of the transaction.
type DecisionContext struct {
	Policy *Policy
	Now    time.Time
}

// Refresh changes the plan of a pending request after a policy change. The result is the union of the old plan and the
// new policy's plan. If nobody can approve the request under this union, Refresh voids the request.
func (r Request) Refresh(in DecisionContext, args map[string]any) (Request, []Event) {
	if r.State != Pending || r.Plan.PolicyHash == in.Policy.Hash {
		return r, nil
	}
	plan := r.Plan.Union(in.Policy, in.Policy.Plan(r.AsCall(args)))
	plan.endWithCeiling(in.Policy, r.Tool)
	if plan.Verdict != Refuse {
		if problem := plan.unsatisfiable(in.Policy, r.Tool); problem != "" {
			plan.refuse(problem)
		}
	}
	if plan.Verdict == Refuse {
		r.Plan.PolicyHash = plan.PolicyHash
		r, events, _ := r.end(Voided, "", "", "", "the policy changed: "+plan.Why[len(plan.Why)-1], in.Now)
		return r, events
	}
	was := r
	if r.outgrownBy(in.Policy, plan) {
		r, events := r.restart()
		r.Plan = plan
		r, started := r.keepHanded(was.Plan.Stages).begin(in, StageReplaced, was)
		return r, append(append([]Event{PlanChanged{Restarted: true}}, events...), started)
	}
	var events []Event
	if !slices.EqualFunc(plan.Stages, r.Plan.Stages, Stage.Equal) {
		events = append(events, PlanChanged{})
	}
	r.Plan = plan
	// Escalation may have added roles that are not leads of the stage's roles under the new policy. keepLeads removes
	// these roles, because their people can't decide as leads.
	r = r.keepLeads(in.Policy)
	if len(r.Joined) != len(was.Joined) {
		events = append(events, LeadsLeft{})
	}
	return r.rearm(in), events
}

// outgrownBy reports whether a new plan invalidates the stages that were passed so far. The result is true if the
// risk differs, or if a stage up to the current one differs. The result is also true if an approval is not valid
// under the new plan.
func (r Request) outgrownBy(p *Policy, plan Plan) bool {
	return plan.Risk != r.Plan.Risk || !slices.EqualFunc(plan.Stages[:r.Stage+1], r.Plan.Stages[:r.Stage+1], Stage.Equal) ||
		slices.ContainsFunc(r.ValidApprovals(), func(d Decision) bool { return !plan.takes(p, r, d) })
}

// takes reports whether an earlier approval is valid under the plan. The plan must not bar the approver. The approver's
// role must name the person and list the tool. The role must be a role of the stage, a lead of such a role, or a role
// that makes its people peers. At the last stage, the role's ceiling must be sufficient. If the policy does not allow
// blind approvals, the approver must have seen the masked values. An operator's approval is valid as long as the policy
// allows break glass for the tool.
func (plan Plan) takes(p *Policy, r Request, d Decision) bool {
	if d.BreakGlass {
		t, _ := p.Tool(r.Tool, r.Agent)
		return t.BreakGlass
	}
	role, ok := p.Role(d.Role)
	s, last := plan.Stages[d.Stage], d.Stage == len(plan.Stages)-1
	asked := slices.Contains(s.Roles(), role.Name) || p.leadsTo(s, role.Name) || role.MaxRisk >= p.lowestCeiling(s)
	blindly := r.Plan.Blind && !plan.Blind && r.MustReveal(p, d.By)
	member := role.names(Identity{ID: d.By, Local: d.Local}) && !slices.Contains(plan.barred(), d.By)
	return ok && asked && !blindly && member && role.Covers(r.Tool) && (!last || role.MaxRisk >= plan.Risk)
}

// restart returns to the first stage. Earlier decisions no longer count.
func (r Request) restart() (Request, []Event) {
	r.Stage = 0
	r.Decisions = slices.Clone(r.Decisions)
	var fell []PersonID
	for i, d := range r.Decisions {
		if !d.Fallen && !slices.Contains(fell, d.By) {
			fell = append(fell, d.By)
		}
		r.Decisions[i].Fallen = true
	}
	if len(fell) == 0 {
		return r, nil
	}
	return r, []Event{DecisionsFell{Of: fell}}
}

// waits returns nil if the request waits for people's actions. Otherwise, waits returns the reason why it does not
// wait.
func (r Request) waits(m Action) *Denied {
	switch {
	case r.State != Pending:
		return r.Over()
	case m.At.After(r.ExpiresAt):
		return &Denied{Code: DeniedLate, At: r.ExpiresAt}
	}
	return nil
}

// ready returns why a pending request can't be decided, or nil.
func (r Request) ready(m Action) *Denied {
	if denied := r.waits(m); denied != nil {
		return denied
	}
	if m.Digest != r.Digest {
		return &Denied{Code: DeniedStale}
	}
	return nil
}

// StageDigest identifies the current stage with everything that its card promises: the call's risk, and the stages up to
// the current one with their roles, numbers and times. StageDigest stays the same while people decide at the stage, and
// if a policy adds later stages. It changes with the next stage, and with a policy that changes the risk or one of these
// stages.
func StageDigest(r Request) string {
	text := appendPart(nil, fmt.Sprintf("countersign/stage/v1 %d", r.Plan.Risk))
	for _, s := range r.Plan.Stages[:min(r.Stage+1, len(r.Plan.Stages))] {
		text = appendPart(text, s.String())
		text = appendPart(text, fmt.Sprint(max(s.Rejects, 1), s.ExpiresAfter, s.EscalateAfter))
	}
	return SumOf(text).String()[:16]
}

// Outdated returns the denial of a decision on a card that shows another stage or plan than the current one. The
// parameter shown is the card's StageDigest. If it is empty, nobody knows what the card shows, and Outdated returns nil.
func Outdated(r Request, p *Policy, shown string) *Denied {
	if shown == "" || shown == StageDigest(r) {
		return nil
	}
	return &Denied{Code: DeniedStage, Role: r.title(p)}
}

// MayDecide returns the reason why a person can't make any decision about the request, or nil. The transitions also
// make this check.
func (r Request) MayDecide(in DecisionContext, m Action) *Denied {
	if denied := r.ready(m); denied != nil {
		return denied
	}
	_, denied := r.Authority(in.Policy, m.Who)
	return denied
}

// decider returns the role with which a person may decide about the request, if the person's card shows the current
// stage.
func decider(r Request, in DecisionContext, m Action) (Role, *Denied) {
	if denied := r.ready(m); denied != nil {
		return Role{}, denied
	}
	role, denied := r.Authority(in.Policy, m.Who)
	if denied != nil {
		return Role{}, denied
	}
	return role, Outdated(r, in.Policy, m.Stage)
}

// Approve counts a person's approval. When the stage has its quorum, the next stage starts. After the last stage, the
// request is approved.
func (r Request) Approve(in DecisionContext, m Action) (Request, []Event, *Denied) {
	if denied := r.ready(m); denied != nil {
		return r, nil, denied
	}
	role, denied := r.Authority(in.Policy, m.Who)
	if denied != nil {
		return r, nil, denied
	}
	if r.counted(m.Who.ID) {
		return r, nil, &Denied{Code: DeniedCounted, Role: r.title(in.Policy)}
	}
	if denied := Outdated(r, in.Policy, m.Stage); denied != nil {
		return r, nil, denied
	}
	if r.MustReveal(in.Policy, m.Who.ID) {
		return r, nil, &Denied{Code: DeniedMasked}
	}
	if r.Plan.Risk >= Critical && r.ToolPreview.unseen(m.At) {
		return r, nil, &Denied{Code: DeniedPreview}
	}
	if r.WantsTyping() && !m.Typed {
		return r, nil, &Denied{Code: DeniedTyped}
	}
	if decisionsBy(r, m.Who.ID) >= MaxDecisions {
		return r, nil, &Denied{Code: DeniedFull}
	}
	r, events := r.count(in, Approve, role, m)
	return r, events, nil
}

// retractDecision voids a person's earlier decisions at the current stage.
func (r Request) retractDecision(who PersonID) Request {
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
	return slices.ContainsFunc(r.ValidApprovals(), func(d Decision) bool { return d.By == who && d.Stage < r.Stage })
}

// MaxDecisions limits the decisions of one person about a request, so that nobody can change a decision endlessly. The
// limit is well above the number of decisions that edits and changes of the policy ask for. Beyond the limit,
// [Request.Approve] and [Request.Reject] are denied to this person, and other people can still decide.
const MaxDecisions = 20

// decisionsBy returns the number of a person's decisions, including those that no longer count.
func decisionsBy(r Request, who PersonID) (n int) {
	for _, d := range r.Decisions {
		if d.By == who {
			n++
		}
	}
	return n
}

// count adds an approval. If the stage then has its quorum, the request goes to the next stage or is approved.
func (r Request) count(in DecisionContext, kind DecisionKind, role Role, m Action) (Request, []Event) {
	r, decided := r.retractDecision(m.Who.ID).decide(m.decision(kind, role, r, in.Now))
	if !r.Passed(r.Stage) {
		return r, []Event{decided}
	}
	if r.Stage < len(r.Plan.Stages)-1 {
		was := r
		r.Stage++
		r, started := r.begin(in, StagePassed, was)
		return r, []Event{decided, started}
	}
	return r.approved(in, m, role, decided)
}

// decide adds a decision.
func (r Request) decide(d Decision) (Request, Event) {
	r.Decisions = append(slices.Clip(r.Decisions), d)
	return r, DecisionMade{Decision: d}
}

// approved ends the last stage. The call may run now.
func (r Request) approved(in DecisionContext, m Action, role Role, decided Event) (Request, []Event) {
	r = r.close(Approved, m.Who.ID, m.Who.Name, role.Name, "", in.Now)
	t, _ := in.Policy.Tool(r.Tool, r.Agent)
	r.RunBy = in.Now.Add(t.RunWithin)
	return r, []Event{decided, RequestApproved{}}
}

// decision converts the action to a decision that can be stored.
func (m Action) decision(kind DecisionKind, role Role, r Request, now time.Time) Decision {
	return Decision{
		Kind: kind, By: m.Who.ID, Local: m.Who.Local, Name: m.Who.Name, Role: role.Name, Stage: r.Stage, Digest: r.Digest, Rendering: m.Rendering,
		Reason: m.Reason, At: now, Typed: m.Typed, Took: m.Took, WithoutToolPreview: r.ToolPreview.unseen(m.At),
	}
}

// Reject counts a rejection. The request ends when the stage has reached its number of rejections. A person who
// approved may also reject a pending request. There is one exception: if a stage needs several rejections, people who
// approved an earlier stage can't reject at this stage.
func (r Request) Reject(in DecisionContext, m Action) (Request, []Event, *Denied) {
	role, denied := decider(r, in, m)
	if denied != nil {
		return r, nil, denied
	}
	if m.Reason == "" {
		return r, nil, &Denied{Code: DeniedNoReason}
	}
	if slices.ContainsFunc(r.Against(r.Stage), func(d Decision) bool { return d.By == m.Who.ID }) {
		return r, nil, &Denied{Code: DeniedCounted, Role: r.title(in.Policy), State: Rejected}
	}
	if r.CurrentStage().Rejects > 1 && r.agreedBefore(m.Who.ID) {
		return r, nil, &Denied{Code: DeniedCounted, Role: r.title(in.Policy)} // one person's approval and rejection can't both count, but the person can revoke the approval
	}
	if decisionsBy(r, m.Who.ID) >= MaxDecisions {
		return r, nil, &Denied{Code: DeniedFull}
	}
	r, decided := r.retractDecision(m.Who.ID).decide(m.decision(Reject, role, r, in.Now))
	if len(r.Against(r.Stage)) < r.CurrentStage().Rejects {
		return r, []Event{decided}, nil
	}
	r, events, denied := r.end(Rejected, m.Who.ID, m.Who.Name, role.Name, m.Reason, in.Now)
	return r, append([]Event{decided}, events...), denied
}

// Unbundle gives a request of a bundle its own card. Each person who may decide the request can unbundle it.
func (r Request) Unbundle(in DecisionContext, who Identity) (Request, []Event, *Denied) {
	if r.State != Pending {
		return r, nil, r.Over()
	}
	if _, denied := r.Authority(in.Policy, who); denied != nil {
		return r, nil, denied
	}
	if !r.Bundled() {
		return r, nil, &Denied{Code: DeniedNothing}
	}
	r.Apart = true
	return r, []Event{RequestUnbundled{}}, nil
}

// Editable reports whether approvers can change the arguments. A caller may be unable to use changed arguments.
func (f AskFacts) Editable() bool { return f.Caller == nil || f.Caller.Edits }

// Edited is an edited call: a new execution with its digest, and its plan.
type Edited struct {
	Execution    string
	Args         json.RawMessage
	Digest       string
	Preview      string
	MadePreview  bool
	PreviewFault string
	ToolPreview  *ToolPreview
	Plan         Plan
}

// Modify replaces the arguments. Earlier decisions no longer count, and the call gets a new plan. The editor must have
// seen the masked values. The editor's own approval counts if the editor has the authority for the new plan's first
// stage and saw all arguments. If the approval needs a typed value, the editor must also have typed the value. If the
// edited call is critical, the tool preview must not be pending.
func (r Request) Modify(in DecisionContext, m Action, e Edited) (Request, []Event, *Denied) {
	role, denied := decider(r, in, m)
	if denied != nil {
		return r, nil, denied
	}
	if !r.Facts.Editable() {
		return r, nil, &Denied{Code: DeniedNoEdits}
	}
	if r.MustReveal(in.Policy, m.Who.ID) {
		return r, nil, &Denied{Code: DeniedMasked}
	}
	if e.Plan.Verdict == Auto {
		t, _ := in.Policy.Tool(r.Tool, r.Agent)
		e.Plan.askAfterEdit(in.Policy, t)
	}
	if e.Plan.Verdict != Ask {
		return r, nil, &Denied{Code: DeniedEdit, Detail: e.Plan.Why[len(e.Plan.Why)-1]}
	}
	was := r
	edit := Edit{By: m.Who.ID, Name: m.Who.Name, Role: role.Name, At: in.Now, Before: r.Args, After: e.Args, Reason: m.Reason}
	r.Edits = append(slices.Clone(r.Edits), edit)
	r, fell := r.restart()
	events := append([]Event{ArgsEdited{Edit: edit}}, fell...)
	r.Revealed = r.revealsAfterEdit(m.Who.ID, e.Digest)
	r.Execution, r.Args, r.Digest = e.Execution, e.Args, e.Digest
	r.Preview, r.MadePreview, r.PreviewFault, r.ToolPreview = e.Preview, e.MadePreview, e.PreviewFault, e.ToolPreview
	r.Plan = e.Plan
	if r.Plan.Routed && role.MaxRisk >= r.Plan.Risk && (r.Plan.SelfOK || !bars(r, m.Who)) {
		// Routing chose the stage's role by ceiling, and by who may decide the edited call. The editor may decide it,
		// and the editor's role has a sufficient ceiling, so the editor's role may replace the stage's role.
		r.Plan.Stages = []Stage{{Approver: role.Name, Quorum: 1}}
	}
	r, started := r.keepHanded(was.Plan.Stages).begin(in, StageEdited, was)
	events = append(events, started)
	if own, denied := r.Authority(in.Policy, m.Who); denied == nil && !m.Partly && (!r.WantsTyping() || m.Typed) && (r.Plan.Risk < Critical || !r.ToolPreview.Making()) {
		r, counted := r.count(in, Modify, own, m)
		return r, append(events, counted...), nil
	}
	d := m.decision(Modify, role, r, in.Now)
	d.Fallen = true
	r, decided := r.decide(d)
	return r, append(events, decided), nil
}

// Withdraw ends a request because a person withdraws it. The person is a requester, or a person whose message waits for
// the end of the request.
func (r Request) Withdraw(in DecisionContext, who Identity, waiting bool, reason string) (Request, []Event, *Denied) {
	if !r.State.Open() {
		return r, nil, r.Over()
	}
	if who.ID == "" || who.Deleted {
		return r, nil, &Denied{Code: DeniedUnidentified}
	}
	if !waiting && !asked(r, who) {
		return r, nil, &Denied{Code: DeniedNotRequester}
	}
	return r.end(Withdrawn, who.ID, who.Name, "", reason, in.Now)
}

// Revoke ends a request permanently before its call runs. A reason is required. People whose approval counts can
// revoke the request. When the request is approved, all people who may decide its last stage can also revoke the
// request.
func (r Request) Revoke(in DecisionContext, m Action) (Request, []Event, *Denied) {
	if r.State == Consumed && !r.Damaged {
		return r, nil, &Denied{Code: DeniedStarted}
	}
	if !r.State.Open() {
		return r, nil, r.Over()
	}
	if code := m.Who.trouble(); code != "" {
		return r, nil, &Denied{Code: code}
	}
	var role string
	for _, d := range r.ValidApprovals() {
		if d.By == m.Who.ID {
			role = d.Role
		}
	}
	if own, denied := r.Authority(in.Policy, m.Who); role == "" && r.State == Approved && denied == nil {
		role = own.Name
	}
	if role == "" {
		return r, nil, &Denied{Code: DeniedNotApprover, Role: r.title(in.Policy)}
	}
	if m.Reason == "" {
		return r, nil, &Denied{Code: DeniedNoReason}
	}
	return r.end(Revoked, m.Who.ID, m.Who.Name, role, m.Reason, in.Now)
}

// Expire ends a request after its deadline. Either nobody decided the request in time, or an approved call did not
// start in time. There is one exception: if the policy escalates on expiry and there is another lead, an undecided
// request stays pending and goes to this lead. Expire returns false if no deadline has passed.
func (r Request) Expire(in DecisionContext) (Request, []Event, bool) {
	switch {
	case r.State == Pending && !in.Now.Before(r.ExpiresAt):
		if up, lead, ok := r.goUp(in); ok {
			return up, []Event{Escalated{Lead: lead}}, true
		}
		r, events, _ := r.end(Expired, "", "", "", expiryReason(r), in.Now)
		return r, events, true
	case r.State == Approved && !in.Now.Before(r.RunBy):
		r, events, _ := r.end(Expired, "", "", "", "it was approved but could not be started in time", in.Now)
		return r, events, true
	}
	return r, nil, false
}

// Void ends an open request whose call may not run any more. The parameter reason says why.
func (r Request) Void(in DecisionContext, reason string) (Request, []Event, *Denied) {
	if !r.State.Open() {
		return r, nil, r.Over()
	}
	return r.end(Voided, "", "", "", reason, in.Now)
}

// Recheck checks an approved request, whose call has not run, after a policy change. If the approvals don't suffice
// under the union of the old and the new plan, the request becomes pending again, with a new deadline, and earlier
// decisions no longer count. If nobody could approve the request, Recheck voids the request.
func (r Request) Recheck(in DecisionContext, args map[string]any) (Request, []Event) {
	if r.State != Approved || r.Plan.PolicyHash == in.Policy.Hash {
		return r, nil
	}
	was := r
	r.State = Pending
	r, events := r.Refresh(in, args)
	if r.State != Pending {
		return r, events
	}
	if len(r.Plan.Stages) == len(was.Plan.Stages) && !was.outgrownBy(in.Policy, r.Plan) {
		was.Plan = r.Plan
		return was, nil
	}
	_, fell := was.restart()
	r, _ = r.restart()
	r.ClosedBy, r.ClosedName, r.ClosedRole, r.ClosedAt, r.RunBy = "", "", "", time.Time{}, time.Time{}
	r, started := r.begin(in, StageReopened, was)
	return r, append(append([]Event{RequestReopened{}}, fell...), started)
}

// Consume uses up the approval for one run.
func (r Request) Consume(in DecisionContext) (Request, []Event, *Denied) {
	if r.State != Approved {
		return r, nil, r.Over()
	}
	if !in.Now.Before(r.RunBy) {
		return r, nil, &Denied{Code: DeniedLate, At: r.RunBy}
	}
	if r.agreed() != "" {
		return r, nil, &Denied{Code: DeniedNothing}
	}
	r.State = Consumed
	return r, []Event{RequestConsumed{}}, nil
}
