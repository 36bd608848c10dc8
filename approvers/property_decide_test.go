package approvers_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// drawAction returns a person's action. Slack delivered the click some minutes ago, and the card may show other
// arguments. valid reports whether the action came in time. fresh reports whether the card shows the current arguments.
func (w *propertyFixture) drawAction(t *rapid.T) (who approvers.Identity, m approvers.Action, valid, fresh bool) {
	who = one(t, "who", w.people...)
	m = actionBy(w.r, who, w.now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "ago"))*time.Minute))
	m.Typed, m.Partly = !oneIn(t, 5, "not typed"), oneIn(t, 8, "partly")
	fresh = true
	if oneIn(t, 10, "stale") {
		m.Digest, fresh = "of another card", false
	}
	if m.Stage = approvers.StageDigest(w.r); oneIn(t, 10, "an earlier stage") {
		m.Stage = "of another stage"
	}
	return who, m, w.state == approvers.Pending && !m.At.After(w.r.ExpiresAt), fresh
}

// typing reports whether an approval needs a typed value.
func (w *propertyFixture) typing() bool { return w.need.risk == approvers.Critical || w.r.StepUp != "" }

// The function fails the test if the code under test and the model differ on whether an action is allowed.
func agree(t *rapid.T, what string, who approvers.Identity, denied *approvers.Denied, want bool) {
	if want != (denied == nil) {
		t.Fatalf("%s by %+v: %v; the oracle says allowed: %t", what, who, denied, want)
	}
}

func highest(roles []approvers.Role) (out approvers.Risk) {
	for _, r := range roles {
		out = max(out, r.MaxRisk)
	}
	return out
}

func (w *propertyFixture) approve(t *rapid.T) {
	w.refresh(t)
	who, m, valid, fresh := w.drawAction(t)
	after, _, denied := w.r.Approve(w.deciding(), m)
	if !valid || !fresh || m.Stage != approvers.StageDigest(w.r) {
		agree(t, "approve", who, denied, false)
		return
	}
	roles := w.may(w.policy, who)
	agree(t, "approve", who, denied, len(roles) > 0 && !w.counted(who.ID) && (m.Typed || !w.typing()) &&
		!w.mustSee(w.policy, who.ID) && w.decisionsOf(who.ID) < approvers.MaxDecisions)
	if denied == nil {
		w.given(t, after, who, roles)
	}
	w.settle(t, after)
}

func (w *propertyFixture) decisionsOf(who approvers.PersonID) (n int) {
	for _, d := range w.r.Decisions {
		if d.By == who {
			n++
		}
	}
	return n
}

// given records an approval. given fails the test if the recorded person, role or deadline of the run differs from the
// model.
func (w *propertyFixture) given(t *rapid.T, after approvers.Request, who approvers.Identity, roles []approvers.Role) {
	d := after.Decisions[len(after.Decisions)-1]
	if d.By != who.ID || !slices.ContainsFunc(roles, func(r approvers.Role) bool { return r.Name == d.Role }) {
		t.Fatalf("%s approved as %+v; the oracle says as one of %v", who.ID, d, roles)
	}
	w.decisionOracle.say(word{who: who.ID, yes: true, ceiling: highest(roles), role: d.Role})
	if w.state != approvers.Approved {
		return
	}
	w.runBy = w.now.Add(settings(w.policy, w.call.Tool, w.call.Facts.Agent).RunWithin)
	if !after.RunBy.Equal(w.runBy) {
		t.Fatalf("to be run by %s; the oracle says %s", after.RunBy, w.runBy)
	}
}

// reveal shows the masked values to a random person.
func (w *propertyFixture) reveal(t *rapid.T) {
	w.refresh(t)
	who, m, valid, fresh := w.drawAction(t)
	masked := w.masked(w.policy)
	after, _, denied := w.r.Reveal(w.deciding(), m, masked)
	want := valid && fresh && len(w.may(w.policy, who)) > 0 && len(masked) > 0 && !slices.Contains(w.seen, who.ID)
	agree(t, "reveal", who, denied, want)
	if want {
		w.seen = append(slices.Clone(w.seen), who.ID)
	}
	w.settle(t, after)
}

func (w *propertyFixture) reject(t *rapid.T) {
	w.refresh(t)
	who, m, valid, fresh := w.drawAction(t)
	if oneIn(t, 10, "without a reason") {
		m.Reason = ""
	}
	after, _, denied := w.r.Reject(w.deciding(), m)
	if !valid || !fresh || m.Stage != approvers.StageDigest(w.r) {
		agree(t, "reject", who, denied, false)
		return
	}
	agree(t, "reject", who, denied, len(w.may(w.policy, who)) > 0 && !w.rejected(who.ID) && m.Reason != "" &&
		(w.current().Rejects <= 1 || !w.agreedBefore(who.ID)) && w.decisionsOf(who.ID) < approvers.MaxDecisions)
	if denied == nil {
		w.decisionOracle.say(word{who: who.ID})
	}
	w.settle(t, after)
}

func (w *propertyFixture) modify(t *rapid.T) {
	w.refresh(t)
	who, m, valid, fresh := w.drawAction(t)
	w.edits++
	before, args := w.r, drawArgs(t)
	after, _, denied := before.Modify(w.deciding(), m, edited(w.policy, before, fmt.Sprint("exec_", w.edits+1), args))
	if !valid || !fresh || m.Stage != approvers.StageDigest(before) {
		agree(t, "modify", who, denied, false)
		return
	}
	roles := w.may(w.policy, who)
	call := w.call
	call.Facts.Args = valuesOf(args)
	need := w.editedNeed(call)
	agree(t, "modify", who, denied, len(roles) > 0 && need.verdict == approvers.Ask && !w.mustSee(w.policy, who.ID))
	if denied != nil {
		return
	}
	edit := after.Edits[len(after.Edits)-1]
	i := slices.IndexFunc(roles, func(r approvers.Role) bool { return r.Name == edit.Role })
	if i < 0 || after.Digest == before.Digest || after.Execution == before.Execution || string(after.Args) != args {
		t.Fatalf("edited as %s to %s: execution %s, digest %s", edit.Role, after.Args, after.Execution, after.Digest)
	}
	if need.routed && roles[i].MaxRisk >= need.risk && !slices.Contains(need.barred(), who.ID) { // if the editor may decide, and the ceiling is sufficient, no other person must approve
		need.stages = []approvers.Stage{{Approver: roles[i].Name, Quorum: 1}}
	}
	was := w.need.stages
	w.need, w.call = need, call
	w.anew(was)
	w.seen = slices.DeleteFunc(w.seen, func(p approvers.PersonID) bool { return p != who.ID })
	if roles = w.may(w.policy, who); len(roles) > 0 && !m.Partly && (m.Typed || !w.typing()) {
		w.given(t, after, who, roles)
	}
	w.settle(t, after)
}

// editedNeed returns the requirements that an edited call must pass. The edited call needs approval even if the
// policy would run the call automatically, because the proposed call needed approval.
func (w *propertyFixture) editedNeed(call approvers.Call) reading {
	need := read(w.policy, call)
	if need.verdict == approvers.Auto {
		need = need.asking(w.policy, call.Tool, settings(w.policy, call.Tool, call.Facts.Agent).Stages)
	}
	return need
}

func valuesOf(args string) map[string]any {
	values := map[string]any{}
	if err := json.Unmarshal([]byte(args), &values); err != nil {
		panic(err)
	}
	return values
}

func (w *propertyFixture) withdraw(t *rapid.T) {
	if !oneIn(t, 2, "rarely") {
		return
	}
	who := one(t, "who", w.people...)
	waiting := oneIn(t, 4, "waits behind it")
	after, _, denied := w.r.Withdraw(w.deciding(), who, waiting, "")
	want := w.open() && who.ID != "" && !who.Deleted && (waiting || slices.Contains(w.call.Requesters, who.ID))
	agree(t, "withdraw", who, denied, want)
	if want {
		w.state = approvers.Withdrawn
	}
	w.settle(t, after)
}

// The method reports whether a run of the request's call is possible.
func (w *propertyFixture) open() bool {
	return w.state == approvers.Pending || w.state == approvers.Approved
}

// revoke takes an approval back. People who approved can revoke their approval. After the last approval, everybody
// who may decide the last stage can also revoke the approval.
func (w *propertyFixture) revoke(t *rapid.T) {
	w.refresh(t)
	who, m, _, _ := w.drawAction(t)
	if oneIn(t, 10, "without a reason") {
		m.Reason = ""
	}
	after, _, denied := w.r.Revoke(w.deciding(), m)
	want := w.open() && full(who) && m.Reason != "" && (w.counted(who.ID) || w.state == approvers.Approved && len(w.may(w.policy, who)) > 0)
	agree(t, "revoke", who, denied, want)
	if want {
		w.state = approvers.Revoked
	}
	w.settle(t, after)
}

func (w *propertyFixture) changePolicy(t *rapid.T) {
	w.policies++
	if oneIn(t, 3, "another one") {
		w.policy = drawPolicy(t, w.policies)
		return
	}
	w.policy, _ = stricter(t, w.policy, w.policies)
}

func (w *propertyFixture) void(t *rapid.T) {
	if !oneIn(t, 5, "rarely") {
		return
	}
	after, _, denied := w.r.Void(w.deciding(), "the definition of the tool changed")
	if (denied == nil) != w.open() {
		t.Fatalf("a %s request was voided: %v", w.state, denied)
	}
	if w.open() {
		w.state = approvers.Voided
	}
	w.settle(t, after)
}

// run does the work of the executor. run checks the approval against the current policy, and then uses the approval.
func (w *propertyFixture) run(t *rapid.T) {
	if w.state == approvers.Approved {
		w.policyIs(w.policy)
	}
	rechecked, _ := w.r.Recheck(w.deciding(), w.call.Facts.Args)
	w.settle(t, rechecked)
	w.check(t)
	after, _, denied := w.r.Consume(w.deciding())
	want := w.state == approvers.Approved && w.now.Before(w.runBy)
	if want && w.broken() && !settings(w.policy, w.call.Tool, w.call.Facts.Agent).BreakGlass {
		t.Fatal("an operator's approval ran although the policy does not allow break glass")
	}
	agree(t, "run", approvers.Identity{}, denied, want)
	if want {
		w.state = approvers.Consumed
	}
	w.settle(t, after)
}
