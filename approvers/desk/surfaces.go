package desk

import (
	"errors"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Addresses of surfaces. See store.Surface.To.
const (
	toConversation = "conversation:"
	toChannel      = "channel:"
	toUser         = "user:"
	toRole         = "role:"
	toGroup        = "group:"
)

// want makes a new surface and has it shown.
func (t *tx) want(s store.Surface) error {
	rank, err := t.rank(s)
	if err != nil {
		return err
	}
	s.ID, s.State, s.Want, s.CreatedAt, s.Rank = t.newID("s"), store.SurfaceWanted, 1, t.now, rank
	s.Maker, s.After = t.d.owner, t.d.slack.time()
	if err := t.PutSurface(s); err != nil {
		return err
	}
	t.redrawn[redraw{ref: s.ID}] = true
	return t.showNow(s)
}

// Made reports whether it was this process that made a surface. What another made may be posted already without anybody having recorded it.
func (d *Desk) Made(s store.Surface) bool { return s.Maker == d.owner }

// redraw is something that a transaction has shown again: a surface, all surfaces of a ref, or those of one kind and step, or of a bundle. What
// changes later in the transaction is shown with it.
type redraw struct {
	ref    string
	kind   store.SurfaceKind
	step   int
	bundle string
}

// drawn notes what is shown again. It reports whether it was noted before.
func (t *tx) drawn(what redraw) bool {
	before := t.redrawn[what]
	t.redrawn[what] = true
	return before
}

func (t *tx) showNow(s store.Surface) error {
	due := t.now
	if cur, err := t.Timer(s.Rank.Timer(), s.ID); err == nil && cur.Due.Equal(due) {
		due = due.Add(time.Microsecond) // another one than the one that is being handled
	} else if ignoreNotFound(err) != nil {
		return err
	}
	return t.SetTimer(store.Timer{Kind: s.Rank.Timer(), Ref: s.ID, Due: due, Lane: s.To})
}

// shownAsWanted clears the timer of a surface that needs nothing of Slack any more.
func (t *tx) shownAsWanted(s store.Surface) error { return t.ClearTimer(s.Rank.Timer(), s.ID) }

// changed has a surface shown again because what it shows has changed. One that waits to be shown keeps its turn: what is shown then is how it is
// then, so that any number of changes are one message.
func (t *tx) changed(s store.Surface) error {
	if s.Kind == store.SurfaceDraft || s.State != store.SurfaceWanted && s.State != store.SurfaceShown || t.drawn(redraw{ref: s.ID}) {
		return nil
	}
	s.State = store.SurfaceWanted
	s.Want++
	if err := t.PutSurface(s); err != nil {
		return err
	}
	if _, err := t.Timer(s.Rank.Timer(), s.ID); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return t.showNow(s)
}

// changedRef has every surface of something shown again.
func (t *tx) changedRef(ref string) error {
	return t.changedThose(redraw{ref: ref}, func(store.Surface) bool { return true })
}

// changedTurn has a turn's surfaces of one kind shown again; step 0 means every step.
func (t *tx) changedTurn(turn string, kind store.SurfaceKind, step int) error {
	return t.changedThose(redraw{ref: turn, kind: kind, step: step}, func(s store.Surface) bool {
		return s.Kind == kind && (step == 0 || s.Step == step)
	})
}

// changedThose has some surfaces of something shown again.
func (t *tx) changedThose(those redraw, among func(store.Surface) bool) error {
	if t.drawn(those) {
		return nil
	}
	surfaces, err := t.SurfacesOf(those.ref)
	if err != nil {
		return err
	}
	for _, s := range surfaces {
		if !among(s) {
			continue
		}
		if err := t.changed(s); err != nil {
			return err
		}
	}
	return nil
}

// wantCard has the card of a request shown where the people of its stage read their cards. A place that has the card already only shows its
// new state. While a step is proposed, its requests are gathered first: those for the same people are shown in one card.
func (t *tx) wantCard(r approvers.Request) error {
	if t.gathering {
		t.gathered = append(t.gathered, r.ID)
		return nil
	}
	for _, to := range t.addresses(r) {
		if err := t.wantInLine(r, to); err != nil {
			return err
		}
	}
	return nil
}

// addresses are where the people of a request's stage read their cards, each place once: where each of its roles does, or by direct
// message where a user group says who of them it is.
func (t *tx) addresses(r approvers.Request) []string { return addresses(t.policy, r) }

func addresses(p *approvers.Policy, r approvers.Request) []string {
	if r.Stage >= len(r.Plan.Stages) {
		return nil
	}
	stage := r.Plan.Stages[r.Stage]
	if stage.Group != "" {
		return []string{toGroup + stage.Group}
	}
	var out []string
	for _, role := range stage.Roles() {
		if to := cardAddress(p, role); !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// cardAddress is where a role's cards go: its channel, or each member's direct messages.
func (t *tx) cardAddress(name string) string { return cardAddress(t.policy, name) }

func cardAddress(p *approvers.Policy, name string) string {
	if role, ok := p.Role(name); ok && role.Cards != "" && role.Cards != approvers.CardsDM {
		return toChannel + role.Cards
	}
	return toRole + name
}

// wantAt shows a request at an address unless it is shown there already.
func (t *tx) wantAt(r approvers.Request, kind store.SurfaceKind, to, role string) error {
	return t.wantOnce(store.Surface{Kind: kind, Ref: r.ID, Request: r.ID, To: to, Role: role})
}

// wantOnce makes a surface unless there is one like it at the address.
func (t *tx) wantOnce(s store.Surface) error {
	surfaces, err := t.SurfacesOf(s.Ref)
	if err != nil {
		return err
	}
	for _, o := range surfaces {
		if o.To == s.To && o.State != store.SurfaceUnreachable && o.State != store.SurfaceGone && o.Step == s.Step && o.Bundle == s.Bundle && o.Note == s.Note && alike(o.Kind, s.Kind) {
			return nil
		}
	}
	return t.want(s)
}

// wantCurrent has something shown that is taken away when its time is over, or brings it up to date wherever it still is there.
func (t *tx) wantCurrent(s store.Surface) error {
	surfaces, err := t.SurfacesOf(s.Ref)
	if err != nil {
		return err
	}
	there := false
	for _, o := range surfaces {
		if o.Kind != s.Kind || o.Step != s.Step || o.State == store.SurfaceGone {
			continue
		}
		there = true
		if err := t.changed(o); err != nil {
			return err
		}
	}
	if there {
		return nil
	}
	return t.want(s)
}

// alike reports whether two kinds show the same: a card and an escalation both are the request's card.
func alike(a, b store.SurfaceKind) bool { return a == b || isCard(a) && isCard(b) }

func isCard(k store.SurfaceKind) bool { return k == store.SurfaceCard || k == store.SurfaceEscalation }

// elsewhere shows what Slack refused at one address at others, where there are any.
func (t *tx) elsewhere(s store.Surface) error {
	places, err := t.otherPlaces(s)
	if err != nil {
		return err
	}
	for _, to := range places {
		other := store.Surface{Kind: s.Kind, Ref: s.Ref, Step: s.Step, Request: s.Request, To: to, Bundle: s.Bundle, Note: s.Note}
		if err := t.wantOnce(other); err != nil {
			return err
		}
	}
	return nil
}

// otherPlaces are each member of the roles for what was to be in a channel or at a group's members, and each requester for what was to be in
// the conversation.
func (t *tx) otherPlaces(s store.Surface) (places []string, err error) {
	switch {
	case s.Kind == store.SurfaceLine && !strings.HasPrefix(s.To, toUser):
		return t.behind(s.To), nil
	case s.Kind == store.SurfaceBundle && !strings.HasPrefix(s.To, toUser):
		return t.bundlePlaces(s)
	case s.Request != "" && (strings.HasPrefix(s.To, toChannel) || strings.HasPrefix(s.To, toGroup)):
		r, err := t.Request(s.Request)
		if err != nil {
			return nil, err
		}
		for _, role := range r.Roles() {
			places = append(places, toRole+role)
		}
	case s.Kind == store.SurfaceElicit && strings.HasPrefix(s.To, toConversation):
		q, err := t.Elicitation(s.Ref)
		return []string{toUser + q.Asked.User()}, err
	case strings.HasPrefix(s.To, toConversation):
		turn, err := t.turnOf(s)
		if err != nil {
			return nil, err
		}
		tn, err := t.Turn(turn)
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		for _, p := range tn.Requesters {
			places = append(places, toUser+p.User())
		}
	}
	return places, nil
}

// turnOf names the turn that a surface in a conversation belongs to.
func (t *tx) turnOf(s store.Surface) (string, error) {
	switch s.Kind {
	case store.SurfaceUnknown, store.SurfaceAttachment:
		e, err := t.Execution(s.Ref)
		return e.Turn, err
	case store.SurfaceInquiry:
		call, err := t.Call(s.Ref)
		return call.Turn, err
	case store.SurfaceElicit:
		q, err := t.Elicitation(s.Ref)
		return q.Turn, err
	case store.SurfaceQuestion:
		r, err := t.Request(s.Ref)
		return r.Turn, err
	}
	return s.Ref, nil
}
