package desk

import (
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// What goes into one card. Slack takes 50 blocks and some 12,000 characters in a message; whoever decides reads all of it.
const (
	maxBundled     = 6
	maxBundledSize = 600  // of one call's arguments and its preview, in bytes: a longer one has a card of its own
	maxBundleSize  = 2400 // of all of them
)

// showStep has the cards of a step's new requests shown: those that ask the same people at the same address in one card.
func (t *tx) showStep(ids []string) error {
	var groups [][]approvers.Request
	for _, id := range ids {
		r, err := t.Request(id)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(groups, func(g []approvers.Request) bool { return together(g[0], r) })
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

// together reports whether two requests of a step may be shown in one card.
func together(a, b approvers.Request) bool {
	return size(a) <= maxBundledSize && size(b) <= maxBundledSize && asked(a) == asked(b)
}

// size is how much of a card a request takes.
func size(r approvers.Request) int { return len(r.Args) + len(r.Preview) }

// bundles cuts a group into cards that are about equally full.
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

// bundle has one card shown for several requests.
func (t *tx) bundle(card []approvers.Request) error {
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

// wantBundle shows a request in its bundle.
func (t *tx) wantBundle(r approvers.Request, to string) error {
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	return t.wantOnce(store.Surface{Kind: store.SurfaceBundle, Ref: r.Turn, Step: call.Step, To: to, Bundle: r.Bundle})
}

// parted has a request leave its bundle that is not what it was when the bundle was made: its arguments were changed, or others are asked.
// The card of its own shows what was changed, and calls those who are asked now.
func parted(before, r approvers.Request) approvers.Request {
	if before.Bundled() && r.State == approvers.Pending && (before.Execution != r.Execution || asked(before) != asked(r)) {
		r.Apart = true
	}
	return r
}

// changedBundle has the bundle that a request belongs to shown again.
func (t *tx) changedBundle(r approvers.Request) error {
	if r.Bundle == "" {
		return nil
	}
	return t.changedThose(redraw{ref: r.Turn, bundle: r.Bundle}, func(s store.Surface) bool { return s.Bundle == r.Bundle })
}

// bundled are the requests that a bundle's card was made for, in order of their calls.
func (t *tx) bundled(s store.Surface) (out []approvers.Request, err error) {
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

// bundlePlaces are each member of the roles that a bundle asks.
func (t *tx) bundlePlaces(s store.Surface) (places []string, err error) {
	requests, err := t.bundled(s)
	if err != nil {
		return nil, err
	}
	for _, r := range requests {
		if !r.Bundled() {
			continue
		}
		for _, role := range r.Roles() {
			places = append(places, toRole+role)
		}
		return places, nil
	}
	return nil, nil
}
