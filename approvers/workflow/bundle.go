package workflow

import (
	"context"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// A bundle is several requests of one step that share a card. These constants limit the calls on this card. The limits
// are small, because people have to read the whole card. A phone shows about maxBundleSize characters between the
// headline and the buttons.
const (
	maxBundled     = 4
	maxBundledSize = 400 // bytes of one call's arguments and preview; a longer call has its own card
	maxBundleSize  = 800 // bytes of all calls together
)

// showStep shows the cards of a step's new requests. Requests to the same people at the same address share a card.
func (t cardsTx) showStep(ids []string) error {
	var groups [][]approvers.Request
	for _, id := range ids {
		r, err := t.Request(id)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(groups, func(g []approvers.Request) bool { return t.together(g[0], r) })
		if i < 0 {
			groups = append(groups, []approvers.Request{r})
		} else {
			groups[i] = append(groups[i], r)
		}
	}
	for _, g := range groups {
		for _, b := range bundles(g) {
			if err := t.bundle(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// together reports whether two requests of a step may be shown in one card. A request with masked values has its own
// card, because people reveal the masked values before they approve the request.
func (t cardsTx) together(a, b approvers.Request) bool {
	if a.MustReveal(t.policy, "") || b.MustReveal(t.policy, "") {
		return false
	}
	return size(a) <= maxBundledSize && size(b) <= maxBundledSize && a.CurrentStage().AsksLike(b.CurrentStage())
}

// size returns the space that a request needs on a card, in bytes.
func size(r approvers.Request) int { return len(r.Args) + len(r.Preview) }

// bundles divides a group of requests among cards. Each card gets about the same number of requests.
func bundles(group []approvers.Request) [][]approvers.Request {
	cards := (len(group) + maxBundled - 1) / maxBundled
	most := (len(group) + cards - 1) / cards
	var out [][]approvers.Request
	var card []approvers.Request
	total := 0
	for _, r := range group {
		if len(card) == most || len(card) > 0 && total+size(r) > maxBundleSize {
			out, card, total = append(out, card), nil, 0
		}
		card, total = append(card, r), total+size(r)
	}
	return append(out, card)
}

// bundle shows the given requests in one card. A single request does not become a bundle.
func (t cardsTx) bundle(card []approvers.Request) error {
	name := ""
	if len(card) > 1 {
		name = t.newID("bundle")
	}
	for i := range card {
		if card[i].Bundle = name; name == "" {
			continue
		}
		if err := t.PutRequest(card[i]); err != nil {
			return err
		}
	}
	for _, r := range card {
		if err := t.wantCard(r); err != nil {
			return err
		}
	}
	return nil
}

// wantBundle shows the card of a request's bundle at an address.
func (t cardsTx) wantBundle(r approvers.Request, to string) error {
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	return t.outbox.wantOnce(store.OutboxMessage{Kind: store.OutboxBundle, Ref: r.Turn, Step: call.Step, To: to, Bundle: r.Bundle})
}

// leaveBundle takes a request out of its bundle if the request's arguments were edited, or if the request has moved to
// other approvers. The request then has its own card, and the bundle's card only says that the request has left.
func leaveBundle(r approvers.Request, events []approvers.Event) (approvers.Request, []approvers.Event) {
	if !r.Bundled() || r.State != approvers.Pending {
		return r, events
	}
	changed := slices.ContainsFunc(events, func(e approvers.Event) bool {
		if started, ok := e.(approvers.StageStarted); ok {
			return started.Reassigned(r)
		}
		_, edited := e.(approvers.ArgsEdited)
		return edited
	})
	if !changed {
		return r, events
	}
	r.Apart = true
	return r, append(events, approvers.RequestUnbundled{})
}

// changedBundle schedules an update of the card of the request's bundle, at each of its addresses.
func (t cardsTx) changedBundle(r approvers.Request) error {
	if r.Bundle == "" {
		return nil
	}
	return t.outbox.changedThose(refresh{ref: r.Turn, bundle: r.Bundle}, func(s store.OutboxMessage) bool { return s.Bundle == r.Bundle })
}

// t.bundled returns the requests of a bundle's card. The requests are in the order of their calls.
func (t cardsTx) bundled(s store.OutboxMessage) (out []approvers.Request, err error) {
	calls, err := t.Calls(s.Ref)
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		if c.Request == "" || c.Step != s.Step {
			continue
		}
		r, err := t.Request(c.Request)
		if err != nil {
			return nil, err
		}
		if r.Bundle == s.Bundle {
			out = append(out, r)
		}
	}
	return out, nil
}

// bundlePlaces returns the addresses of the roles that a bundle's requests wait for. A message to the address of a role
// goes to each member of the role.
func (t cardsTx) bundlePlaces(s store.OutboxMessage) (places []string, err error) {
	requests, err := t.bundled(s)
	if err != nil {
		return nil, err
	}
	for _, r := range requests {
		if !r.Bundled() {
			continue
		}
		for _, role := range r.Roles() {
			places = append(places, store.ToRole+role)
		}
		return places, nil
	}
	return nil, nil
}

// DecideAll approves or rejects all undecided requests of a bundle in one transaction. Each decision covers the digest
// of its own request. DecideAll skips a request if the person's decision on it counts already. If any other request
// can't be decided, DecideAll decides none of the requests, and returns this one.
func (w *Requests) DecideAll(ctx context.Context, c Click, shown []store.Shown) (approvers.Request, error) {
	var inTheWay approvers.Request
	err := w.click(ctx, "decide all", c, func(t *tx) (*approvers.Denied, error) {
		inTheWay = approvers.Request{}
		if len(shown) == 0 || c.Kind == approvers.Modify {
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		var decisions []decided
		var counted *approvers.Denied
		for _, one := range shown {
			m, denied, err := t.requests.decideOne(c, one, decisions)
			switch {
			case err != nil:
				return nil, err
			case denied == nil:
				decisions = append(decisions, m)
			case denied.Code == approvers.DeniedCounted: // the person's decision on this request already counts
				inTheWay, counted = m.now, denied
			default:
				inTheWay = m.now
				if m.stored.ID == "" {
					return denied, nil
				}
				return denied, t.requests.denied(string(c.Kind), c, m.currentRequest, denied)
			}
		}
		if len(decisions) == 0 {
			return counted, t.auditDenied(inTheWay.ID, string(c.Kind), c, counted)
		}
		for _, m := range decisions {
			if err := t.records.auditDecided(m.after, m.click); err != nil {
				return nil, err
			}
			if err := t.apply(m.after, m.allEvents()); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return inTheWay, err
}

// decided holds the effect of a decision that is not written yet.
type decided struct {
	click Click
	currentRequest
	after approvers.Request // the request after the decision
	since []approvers.Event // the decision's events
}

// allEvents returns the events that update the stored request, followed by the decision's events.
func (d decided) allEvents() []approvers.Event { return slices.Concat(d.events, d.since) }

// decideOne determines the effect of a click on one request of a bundle. decideOne writes nothing.
func (t requestsTx) decideOne(c Click, one store.Shown, earlier []decided) (decided, *approvers.Denied, error) {
	c.Request, c.Digest, c.Stage, c.Whole, c.Typed, c.FirstSeen = one.Request, one.Digest, one.Stage, one.Whole, false, one.Since
	cur, denied, err := t.current(one.Request)
	m, r := decided{click: c, currentRequest: cur}, cur.now
	if err != nil || denied != nil {
		return m, denied, err
	}
	if len(earlier) > 0 && r.State == approvers.Pending && (earlier[0].now.Stage != r.Stage || !earlier[0].now.CurrentStage().AsksLike(r.CurrentStage())) {
		if denied := approvers.Outdated(r, t.policy, one.Stage); denied != nil {
			return m, denied, nil
		}
		return m, &approvers.Denied{Code: approvers.DeniedStale}, nil // the requests are no longer at the same stage
	}
	m.after, m.since, denied = t.decide(r, c)
	return m, denied, nil
}

// Unbundle takes a request out of its bundle. The request gets its own card, at the address of the bundle's card. Each
// person who may decide the request may unbundle it.
func (w *Requests) Unbundle(ctx context.Context, c Click) (approvers.Request, error) {
	return w.onRequest(ctx, "unbundle", c, func(t *tx, r approvers.Request) (approvers.Request, []approvers.Event, *approvers.Denied, error) {
		after, events, denied := r.Unbundle(t.deciding(), c.Who)
		return after, events, denied, nil
	})
}
