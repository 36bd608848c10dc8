package workflow_test

import (
	"errors"
	"fmt"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

// raceKinds lists the ways in which the actions of sixteen people can conflict.
var raceKinds = []raceKind{
	{
		name: "all approve", calls: []string{`cancel_account {}`},
		act:     func(r *raceHarness, ra *race, i int) error { return r.decide(ra, i, 0, approvers.Approve) },
		outcome: oneDecided,
	},
	{
		name: "half approve, half reject", calls: []string{`cancel_account {}`},
		act: func(r *raceHarness, ra *race, i int) error {
			return r.decide(ra, i, 0, []approvers.DecisionKind{approvers.Approve, approvers.Reject}[i%2])
		},
		outcome: oneDecided,
	},
	{
		name: "two of eight, then two of eight", calls: []string{`issue_refund {"amount":1}`},
		act:     inTheirTurn,
		outcome: twoOfEach,
	},
	{
		name: "the first of two takes it back, fifteen approve", calls: []string{`apply_discount {}`},
		before: func(r *raceHarness, ra *race) {
			r.ok(r.decide(ra, 0, 0, approvers.Approve))
			<-ra.answered
		},
		act: takesBack, outcome: backOrRun,
	},
	{
		name: "four approve all of a card, twelve one each", calls: []string{`update_address {"n":1}`, `update_address {"n":2}`, `update_address {"n":3}`},
		act: allOrOne, outcome: eachOnce,
	},
}

// oneDecided checks that exactly one person decided, and that all other people were told who decided.
func oneDecided(r *raceHarness, ra *race) (string, error) {
	won, err := ra.won()
	q := r.request(ra.requests[0].ID)
	if err != nil || won != 1 || len(q.Decisions) != 1 || ra.denied != len(sixteen)-1 {
		return "", fmt.Errorf("%d won, %d decisions, %d denied: %w", won, len(q.Decisions), ra.denied, err)
	}
	for i, err := range ra.errs {
		var denied *approvers.Denied
		if errors.As(err, &denied) && (denied.Code != approvers.DeniedResolved || denied.By != q.Decisions[0].By || denied.At.IsZero()) {
			return "", fmt.Errorf("%s is told %+v: %w", sixteen[i].Name, *denied, denied)
		}
	}
	approved := q.Decisions[0].Kind == approvers.Approve
	if approved != (q.State == approvers.Consumed && ra.ran == 1) || !approved && (q.State != approvers.Rejected || ra.ran > 0) {
		return "", fmt.Errorf("%s by %+v, ran %d times", q.State, q.Decisions[0], ra.ran)
	}
	return string(q.Decisions[0].Kind), nil
}

// inTheirTurn makes a person approve. A person of the second stage tries again until the stage begins. If a person
// tries many times, the audit does not have a record of each denial.
func inTheirTurn(r *raceHarness, ra *race, i int) error {
	for {
		err := r.decide(ra, i, 0, approvers.Approve)
		var denied *approvers.Denied
		if i < len(sixteen)/2 || !errors.As(err, &denied) || denied.Code != approvers.DeniedNotMember {
			return err
		}
		for r.request(ra.requests[0].ID).Stage == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// twoOfEach checks that two of the first eight people approved, and then two of the second eight people.
func twoOfEach(r *raceHarness, ra *race) (string, error) {
	won, err := ra.won(approvers.DeniedNotMember)
	q := r.request(ra.requests[0].ID)
	if err != nil || won != 4 || len(q.Decisions) != 4 || q.State != approvers.Consumed || ra.ran != 1 {
		return "", fmt.Errorf("%d won, %d decisions, %s, ran %d times: %w", won, len(q.Decisions), q.State, ra.ran, err)
	}
	for i, d := range q.Decisions {
		if d.Stage != i/2 || d.Role != []string{"first", "second"}[i/2] || i%2 == 1 && d.By == q.Decisions[i-1].By {
			return "", fmt.Errorf("decided as %+v", q.Decisions)
		}
	}
	return "two of each", nil
}

// takesBack makes the first person revoke an approval. The other people approve at the same time or just before.
func takesBack(r *raceHarness, ra *race, i int) error {
	if i > 0 {
		return r.decide(ra, i, 0, approvers.Approve)
	}
	for range ra.others {
		<-ra.answered
	}
	q := ra.requests[0]
	_, err := r.Requests.Revoke(r.ctx(), workflow.Click{At: r.clock.Now(), Who: sixteen[0], Request: q.ID, Digest: q.Digest, Whole: true, Reason: "because"})
	return ra.told(err)
}

// backOrRun accepts two outcomes. In the first outcome, the approval was revoked and the call did not run. In the
// second outcome, the call ran once, and the person who revoked was told that the revocation came too late.
func backOrRun(r *raceHarness, ra *race) (string, error) {
	won, err := ra.won(approvers.DeniedStarted)
	q := r.request(ra.requests[0].ID)
	if err != nil {
		return "", err
	}
	var denied *approvers.Denied
	late := errors.As(ra.errs[0], &denied) && denied.Code == approvers.DeniedStarted
	switch {
	case q.State == approvers.Revoked && ra.errs[0] == nil && ra.ran == 0 && q.ClosedBy == sixteen[0].ID && len(q.Decisions) == won:
		return fmt.Sprintf("taken back after %d of 2", len(q.Decisions)), nil
	case q.State == approvers.Consumed && late && ra.ran == 1 && won == 1 && len(q.Decisions) == 2:
		return "run", nil
	}
	return "", fmt.Errorf("%s by %s, ran %d times, %d won, %d decisions, taken back: %w", q.State, q.ClosedBy, ra.ran, won, len(q.Decisions), ra.errs[0])
}

// allOrOne makes four people approve all calls of a card at once. The other twelve people approve one call each.
func allOrOne(r *raceHarness, ra *race, i int) error {
	if i%4 > 0 {
		return r.decide(ra, i, i%len(ra.requests), approvers.Approve)
	}
	_, err := r.Requests.DecideAll(r.ctx(), workflow.Click{At: r.clock.Now(), Who: sixteen[i], Kind: approvers.Approve, Reason: "because", Rendering: "all"}, ra.shown)
	for _, q := range ra.requests {
		if err == nil {
			r.claim(ra, q)
		}
	}
	return ra.told(err)
}

// eachOnce checks that each call was decided once and ran once. A click on all calls must have decided all calls or
// none.
func eachOnce(r *raceHarness, ra *race) (string, error) {
	won, err := ra.won()
	if err != nil {
		return "", err
	}
	together := map[approvers.PersonID]int{}
	alone := 0
	for _, q := range ra.requests {
		q = r.request(q.ID)
		if q.State != approvers.Consumed || len(q.Decisions) != 1 {
			return "", fmt.Errorf("%s with %d decisions", q.State, len(q.Decisions))
		}
		if d := q.Decisions[0]; d.Rendering == "all" {
			together[d.By]++
		} else {
			alone++
		}
	}
	all := len(together) == 1 && alone == 0 && won == 1
	if one := len(together) == 0 && alone == len(ra.requests) && won == alone; ra.ran != len(ra.requests) || !all && !one {
		return "", fmt.Errorf("%d won, %v decided all, %d one; %d ran", won, together, alone, ra.ran)
	}
	if all {
		return "together", nil
	}
	return "one by one", nil
}
