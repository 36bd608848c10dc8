package approvers_test

import (
	"slices"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// broken reports whether an operator approved the call in its current form.
func (w *propertyFixture) broken() bool {
	return slices.ContainsFunc(w.words, func(said word) bool { return said.glass })
}

// drawOperator returns an operator, or a Slack user who tries to act as an operator.
func (w *propertyFixture) drawOperator(t *rapid.T) approvers.Identity {
	return one(t, "operator", append(slices.Clone(w.people), approvers.Operates(approvers.Operator("anna")), approvers.Operates(approvers.Operator("ben")), approvers.Identity{})...)
}

func operates(who approvers.Identity) bool {
	return who.ID == "operator:anna" || who.ID == "operator:ben"
}

func (w *propertyFixture) breakGlass(t *rapid.T) {
	if !oneIn(t, 3, "glass") {
		return
	}
	w.refresh(t)
	_, m, valid, fresh := w.drawAction(t)
	m.Who = w.drawOperator(t)
	if oneIn(t, 10, "without a reason") {
		m.Reason = ""
	}
	after, _, denied := w.r.BreakGlass(w.deciding(), m)
	want := valid && fresh && operates(m.Who) && m.Reason != "" && settings(w.policy, w.call.Tool, w.call.Facts.Agent).BreakGlass
	agree(t, "glass", m.Who, denied, want)
	if want {
		w.words = append(slices.Clone(w.words), word{who: m.Who.ID, yes: true, stage: w.stage, glass: true})
		w.stage, w.state = len(w.need.stages)-1, approvers.Approved
		w.runBy = w.now.Add(settings(w.policy, w.call.Tool, w.call.Facts.Agent).RunWithin)
		if d := after.Decisions[len(after.Decisions)-1]; d.By != m.Who.ID || d.Role != "" || after.ClosedBy != m.Who.ID || !after.RunBy.Equal(w.runBy) {
			t.Fatalf("%s broke the glass as %+v, to be run by %s; the oracle says %s", m.Who.ID, d, after.RunBy, w.runBy)
		}
	}
	w.settle(t, after)
}

func (w *propertyFixture) overrule(t *rapid.T) {
	if !oneIn(t, 5, "overrule") {
		return
	}
	w.refresh(t)
	_, m, valid, _ := w.drawAction(t)
	m.Who = w.drawOperator(t)
	if oneIn(t, 10, "without a reason") {
		m.Reason = ""
	}
	after, _, denied := w.r.Overrule(w.deciding(), m)
	want := (valid || w.state == approvers.Approved) && operates(m.Who) && m.Reason != ""
	agree(t, "overrule", m.Who, denied, want)
	if want {
		w.state = map[approvers.State]approvers.State{approvers.Pending: approvers.Rejected, approvers.Approved: approvers.Revoked}[w.state]
	}
	w.settle(t, after)
}
