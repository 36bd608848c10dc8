package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"countersign/approvers"
	"countersign/internal/demo/workspaceclient"
	"countersign/store"
)

// raceKind is one kind of conflict between the actions of sixteen people.
type raceKind struct {
	name    string
	calls   int // number of calls of one step, which one card shows
	atOnce  int // races at the same time
	run     func(*raceHarness, []*race)
	outcome func(*race) (string, error)
}

var raceKinds = []raceKind{
	{name: "approve", calls: 1, atOnce: 6, run: allApprove, outcome: oneDecided},
	{name: "reject", calls: 1, atOnce: deciders / rejecters, run: someReject, outcome: oneDecided},
	{name: "stages", calls: 1, atOnce: 6, run: inTheirTurn, outcome: twoOfEach},
	{name: "back", calls: 1, atOnce: 6, run: takesBack, outcome: backOrRun},
	{name: "all", calls: 3, atOnce: 6, run: allOrOne, outcome: eachOnce},
}

// gun makes people act on cards at the same time, and counts the acknowledged actions.
func (r *raceHarness) gun(races []*race, people []int, act func(ra *race, i int) error) {
	r.Helper()
	var all sync.WaitGroup
	start := make(chan struct{})
	for _, ra := range races {
		for _, n := range rand.Perm(len(people)) {
			i := people[n]
			all.Go(func() {
				<-start
				err := act(ra, i)
				switch {
				case err == nil:
					ra.mu.Lock()
					ra.clicks++
					ra.mu.Unlock()
				case !errors.Is(err, errNoButton): // the action came after everything was decided
					r.Errorf("what %s did was not acknowledged: %v", r.names[i], err)
				}
			})
		}
	}
	close(start)
	all.Wait()
}

func from(first, last int) (out []int) {
	for i := first; i < last; i++ {
		out = append(out, i)
	}
	return out
}

// errNoButton is the error for a card that does not have the wanted button.
var errNoButton = errors.New("the card has no such button")

// press makes a person press a button of a card. The button is for one request of the card, or for all requests. If the
// bot has updated the card before the click, the person presses the button of the updated card.
func (r *raceHarness) press(ra *race, i int, label, request string) error {
	card := ra.card
	for {
		e, ok := buttonFor(card, label, request)
		if request == "" {
			e, ok = workspaceclient.Button(card.Blocks, label)
		}
		if !ok {
			return fmt.Errorf("%w: %s", errNoButton, label)
		}
		err := r.as(r.names[i]).Press(r.Context(), card, e)
		switch workspaceclient.Code(err) {
		case "unknown_action":
			return fmt.Errorf("%w: %s", errNoButton, label)
		case "invalid_value":
			r.until("a card as it is now", func(s store.Reader) (settled bool, err error) {
				card, settled, err = cardOf(s, ra.requests[0])
				return settled, err
			})
		default:
			return err
		}
	}
}

// form makes a person open a form. The returned function fills in a reason and sends the form.
func (r *raceHarness) form(ra *race, i int, label string) (send func() error) {
	r.Helper()
	if err := r.press(ra, i, label, ra.requests[0].ID); err != nil {
		r.Fatal(err)
	}
	return r.opened(r.as(r.names[i]))
}

// formInDetails opens the form of a button in the details of a request.
func (r *raceHarness) formInDetails(ra *race, i int, label string) (send func() error) {
	r.Helper()
	if err := r.press(ra, i, "Details", ra.requests[0].ID); err != nil {
		r.Fatal(err)
	}
	who := r.as(r.names[i])
	r.wait("the details", func() (bool, error) {
		views, err := who.Views(r.Context())
		if err != nil || len(views) == 0 {
			return false, err
		}
		view := views[len(views)-1]
		button, ok := workspaceclient.Button(view.Blocks, label)
		if !ok {
			return false, nil
		}
		return true, who.PressIn(r.Context(), view, button)
	})
	return r.opened(who)
}

// The method "opened" waits for a form with one field.
func (r *raceHarness) opened(who workspaceclient.Client) (send func() error) {
	r.Helper()
	var view, field string
	r.wait("a form", func() (bool, error) {
		views, err := who.Views(r.Context())
		if err != nil || len(views) == 0 || views[len(views)-1].Submit == nil {
			return false, err
		}
		in, ok := workspaceclient.Input(views[len(views)-1].Blocks, "")
		view, field = views[len(views)-1].ID, in.BlockID
		return ok, nil
	})
	return func() error { return who.Submit(r.Context(), view, map[string]string{field: "because"}) }
}

// look reads the current cards.
func (r *raceHarness) look(races []*race, ready func(approvers.Request) bool) {
	r.Helper()
	for _, ra := range races {
		r.until("a card as it is now", func(s store.Reader) (settled bool, err error) {
			q, err := s.Request(ra.requests[0].ID)
			if err != nil || !ready(q) {
				return false, err
			}
			ra.card, settled, err = cardOf(s, q)
			return settled, err
		})
	}
}

func allApprove(r *raceHarness, races []*race) {
	r.gun(races, from(0, deciders), func(ra *race, i int) error { return r.press(ra, i, "Approve", ra.requests[0].ID) })
}

// rejecters is the number of people who reject a request. Each of them rejects only one request, because a person with
// an open form can't open a second form.
const rejecters = 4

// someReject makes some people send a form that they opened before. All other people approve.
func someReject(r *raceHarness, races []*race) {
	send := make([]func() error, deciders)
	for i := range min(deciders, rejecters*len(races)) {
		send[i] = r.form(races[i/rejecters], i, "Reject")
	}
	r.gun(races, from(0, deciders), func(ra *race, i int) error {
		if i/rejecters < len(races) && races[i/rejecters] == ra {
			return send[i]()
		}
		return r.press(ra, i, "Approve", ra.requests[0].ID)
	})
}

// oneDecided checks that exactly one person decided. If the decision was an approval, the call must have run.
func oneDecided(ra *race) (string, error) {
	q := ra.requests[0]
	if len(q.Decisions) != 1 || (q.Decisions[0].Kind == approvers.Approve) != (q.State == approvers.Consumed) {
		return "", fmt.Errorf("%s by %+v", q.State, q.Decisions)
	}
	return string(q.State), nil
}

func inTheirTurn(r *raceHarness, races []*race) {
	approve := func(ra *race, i int) error { return r.press(ra, i, "Approve", ra.requests[0].ID) }
	r.gun(races, from(0, deciders/2), approve)
	r.look(races, func(q approvers.Request) bool { return q.Stage == 1 })
	r.gun(races, from(deciders/2, deciders), approve)
}

// twoOfEach checks that two of the first eight people approved. twoOfEach also checks that two of the other eight
// people approved afterwards.
func twoOfEach(ra *race) (string, error) {
	q := ra.requests[0]
	if q.State != approvers.Consumed || len(q.Decisions) != 4 {
		return "", fmt.Errorf("%s by %+v", q.State, q.Decisions)
	}
	for i, d := range q.Decisions {
		if d.Stage != i/2 || d.Role != []string{"first", "second"}[i/2] || i%2 == 1 && d.By == q.Decisions[i-1].By {
			return "", fmt.Errorf("decided as %+v", q.Decisions)
		}
	}
	return string(q.State), nil
}

// takesBack makes the first of two approvers revoke their approval while fifteen other people approve. The first
// approver is a different person in each race.
func takesBack(r *raceHarness, races []*race) {
	for i, ra := range races {
		r.gun([]*race{ra}, []int{i}, func(ra *race, i int) error { return r.press(ra, i, "Approve", ra.requests[0].ID) })
	}
	r.look(races, func(q approvers.Request) bool { return q.At(0) == 1 })
	back := map[*race]func() error{}
	for i, ra := range races {
		back[ra] = r.formInDetails(ra, i, "Take back")
	}
	r.gun(races, from(0, deciders), func(ra *race, i int) error {
		if i < len(races) && races[i] == ra {
			return back[ra]()
		}
		return r.press(ra, i, "Approve", ra.requests[0].ID)
	})
}

// backOrRun accepts two outcomes. In the first outcome, the first approver revoked after one or two approvals. In the
// second outcome, both approvals count, and the call ran.
func backOrRun(ra *race) (string, error) {
	q := ra.requests[0]
	switch first := q.Decisions[0].By; {
	case q.State == approvers.Revoked && q.ClosedBy == first && len(q.Decisions) <= 2:
		return fmt.Sprintf("taken back after %d of 2", len(q.Decisions)), nil
	case q.State == approvers.Consumed && len(q.Decisions) == 2 && q.Decisions[1].By != first:
		return "run", nil
	}
	return "", fmt.Errorf("%s by %s after %+v", q.State, q.ClosedBy, q.Decisions)
}

// allOrOne makes four people approve all calls of a card, and twelve people approve one call each.
func allOrOne(r *raceHarness, races []*race) {
	r.gun(races, from(0, deciders), func(ra *race, i int) error {
		if i%4 > 0 {
			return r.press(ra, i, "Approve", ra.requests[i%len(ra.requests)].ID)
		}
		return r.press(ra, i, "Approve all", "")
	})
}

// eachOnce checks that each call was decided once. eachOnce also checks that only a click on the button "Approve all"
// decided several calls. If one call is decided before the other calls, the bot updates the card, and the card offers
// the remaining calls.
func eachOnce(ra *race) (string, error) {
	clicks := byAll(ra)
	for _, q := range ra.requests {
		if q.State != approvers.Consumed || len(q.Decisions) != 1 {
			return "", fmt.Errorf("%s by %+v", q.State, q.Decisions)
		}
		d := q.Decisions[0]
		var person int
		if _, err := fmt.Sscanf(d.By.User(), "U1%d", &person); err != nil {
			return "", err
		}
		if clicks[clickOf(d)] > 1 && person%4 > 0 {
			return "", fmt.Errorf("%s pressed Approve of one call, and decided %d", d.By, clicks[clickOf(d)])
		}
	}
	switch len(clicks) {
	case 1:
		return "together", nil
	case len(ra.requests):
		return "one by one", nil
	}
	return "one, then the rest together", nil
}
