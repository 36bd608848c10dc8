package evidence

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"countersign/approvers"
)

// tally follows the plans and the decisions of a request, and says which decisions count.
type tally struct {
	votes        []vote
	stage        int    // from 1
	risk, stages string // of the last plan
}

// vote is a decision.
type vote struct {
	Entry
	stage  int
	counts bool
}

func (v vote) is(kind approvers.DecisionKind) bool { return v.Facts["kind"] == string(kind) }

// tallied follows all records of the story.
func (s Story) tallied() *tally {
	t := &tally{stage: 1}
	for _, e := range s.Entries {
		t.take(e)
	}
	return t
}

// take adds the next record.
func (t *tally) take(e Entry) {
	switch e.Kind {
	case approvers.AuditProposed:
		t.plan(e)
	case approvers.AuditDecided:
		t.decided(e)
	case approvers.AuditReplanned:
		if t.restarts(e) {
			t.restart(e)
		}
		t.plan(e)
	case approvers.AuditAdvanced:
		if t.stage, _ = strconv.Atoi(e.Facts["stage"]); t.stage == 1 {
			t.restart(e)
		}
		t.plan(e)
	case approvers.AuditReopened:
		t.drop(func(vote) bool { return true })
		t.stage = 1
		t.plan(e)
	case approvers.AuditApproved:
		t.approved(e)
	}
}

// plan notes the plan that a record names.
func (t *tally) plan(e Entry) {
	t.risk, t.stages = cmp.Or(e.Facts["risk"], t.risk), cmp.Or(e.Facts[approvers.FactStages], t.stages)
}

// decided adds a decision. The decision replaces earlier decisions of the same person at this stage. An edit replaces
// all earlier decisions.
func (t *tally) decided(e Entry) {
	v := vote{Entry: e, stage: t.stage, counts: true}
	t.drop(func(old vote) bool { return v.is(approvers.Modify) || old.Actor == v.Actor && old.stage == v.stage })
	t.votes = append(t.votes, v)
}

// drop marks decisions that no longer count.
func (t *tally) drop(which func(vote) bool) {
	for i, v := range t.votes {
		t.votes[i].counts = v.counts && !which(v)
	}
}

// restarts reports whether the stages started again with a new plan. Records of older versions do not say so. Then
// restarts compares the plans: the stages started again if the risk differs, or a stage up to the current one. If the
// record shows no difference at all, they started again for another reason, such as the roles of an approver.
func (t *tally) restarts(e Entry) bool {
	if restarted, recorded := e.Facts[approvers.FactRestarted]; recorded {
		return restarted == "true"
	}
	upTo := func(stages string) []string {
		all := strings.Split(stages, ",")
		return all[:min(t.stage, len(all))]
	}
	after := e.Facts[approvers.FactStages]
	return e.Facts["risk"] != t.risk || after == t.stages || !slices.Equal(upTo(after), upTo(t.stages))
}

// restart returns to the first stage. Of the earlier decisions, only one of the record's own transaction still counts.
// The record of this decision precedes the records of the new plan and the new stage.
func (t *tally) restart(e Entry) {
	t.stage = 1
	n := len(t.votes)
	own := n > 0 && t.votes[n-1].counts && t.votes[n-1].At.Equal(e.At)
	t.drop(func(vote) bool { return true })
	if own {
		t.votes[n-1].stage, t.votes[n-1].counts = 1, true
	}
}

// approved counts exactly the approvals that the record names.
func (t *tally) approved(e Entry) {
	ids, recorded := e.Facts[approvers.FactValidApprovals]
	if !recorded {
		return
	}
	t.drop(func(v vote) bool { return !v.is(approvers.Reject) })
	for id := range strings.SplitSeq(ids, ",") {
		for i, v := range slices.Backward(t.votes) {
			if string(v.Actor) == id && !v.is(approvers.Reject) {
				t.votes[i].counts = true
				break
			}
		}
	}
}

// allowed returns the approvals that count. An edit counts, unless the record of the approval does not name the editor.
func (t *tally) allowed() []vote {
	return t.which(func(_ int, v vote) bool { return v.counts && !v.is(approvers.Reject) })
}

// against returns the rejections that count.
func (t *tally) against() []vote {
	return t.which(func(_ int, v vote) bool { return v.counts && v.is(approvers.Reject) })
}

// edited returns the edit that made the current arguments, if the edit does not count as an approval.
func (t *tally) edited() []vote {
	return t.which(func(i int, v vote) bool { return !v.counts && i == t.lastEdit() })
}

// lapsed returns the other decisions.
func (t *tally) lapsed() []vote {
	return t.which(func(i int, v vote) bool { return !v.counts && i != t.lastEdit() })
}

// lastEdit returns the index of the last edit, or -1.
func (t *tally) lastEdit() int {
	for i, v := range slices.Backward(t.votes) {
		if v.is(approvers.Modify) {
			return i
		}
	}
	return -1
}

func (t *tally) which(takes func(int, vote) bool) (out []vote) {
	for i, v := range t.votes {
		if takes(i, v) {
			out = append(out, v)
		}
	}
	return out
}
