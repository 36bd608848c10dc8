package desk

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Messages of the bot go: an admin deletes one, retention takes one away. What still matters is posted again when somebody asks (a word in its thread,
// /countersign pending), when people are told again (a reminder, an escalation, other people or other arguments), and in any case before its deadline. The
// rest stays away. Whoever deleted it did not want it there: it does not come back at once.

// reposts are the shares of its time that are left when what vanished is posted again by itself: at the first of them that is still to come.
var reposts = []time.Duration{4, 8, 16}

// Vanished records that Slack does not show a surface any more: s as it was read.
func (d *Desk) Vanished(ctx context.Context, s store.Surface) error {
	return d.update(ctx, "vanished", func(t *tx) error {
		cur, err := t.Surface(s.ID)
		if err != nil || cur.Round != s.Round || cur.TS != s.TS {
			return err // it was posted again since
		}
		return t.vanish(cur)
	})
}

// Replace has a surface posted anew whose message Slack does not let the bot change any more: s as it was read. Until the new one is shown it is
// remembered that the old one is to be deleted, as its buttons do nothing any more.
func (d *Desk) Replace(ctx context.Context, s store.Surface) error {
	return d.update(ctx, "replace", func(t *tx) error {
		cur, err := t.Surface(s.ID)
		if err != nil || cur.Round != s.Round || cur.TS != s.TS {
			return err
		}
		cur.Round++
		cur.Old = cur.TS
		return t.postAgain(cur)
	})
}

// vanish takes in that the message of a surface is gone. What was to be posted again if it is, is so at once.
func (t *tx) vanish(s store.Surface) error {
	if s.State != store.SurfaceShown && s.State != store.SurfaceWanted || s.TS == "" {
		return nil
	}
	life, err := t.life(s)
	if err != nil {
		return err
	}
	t.note(slog.LevelWarn, "Slack does not show this any more", "surface", string(s.Kind), "to", s.To, "request", s.Request, "matters", life.matters)
	if err := t.shownAsWanted(s); err != nil {
		return err
	}
	s.Round++
	switch {
	case s.Drafted && s.Kind != store.SurfaceDraft: // only the draft was taken away: what became of it was not seen yet
		return t.postAgain(s)
	case !life.matters:
		s.State, s.TS = store.SurfaceGone, ""
		return t.PutSurface(s)
	case s.Insist:
		return t.postAgain(s)
	}
	s.State = store.SurfaceVanished
	if err := t.PutSurface(s); err != nil {
		return err
	}
	return t.setOrClear(store.TimerRepost, s.ID, life.next(t.now))
}

// postAgain has what vanished posted again.
func (t *tx) postAgain(s store.Surface) error {
	s.State, s.TS, s.Hash, s.Insist, s.Drafted = store.SurfaceWanted, "", "", false, false
	s.Want++
	if err := t.PutSurface(s); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerRepost, s.ID); err != nil {
		return err
	}
	return t.showNow(s)
}

// again has surfaces posted again that vanished and still matter. Of those that Slack is believed to show, insist has it found out: they are shown anew in
// any case, and one that turns out to be gone then is posted again at once.
func (t *tx) again(surfaces []store.Surface, insist bool) error {
	for _, s := range surfaces {
		cur, err := t.Surface(s.ID) // it may have changed in this transaction
		if err != nil {
			return err
		}
		back, err := t.bringBack(cur)
		if err != nil {
			return err
		}
		if !back && insist && cur.State == store.SurfaceWanted && cur.TS != "" && !cur.Insist {
			cur.Insist = true
			if err := t.PutSurface(cur); err != nil {
				return err
			}
		}
	}
	return nil
}

// bringBack has a surface posted again if it vanished and still matters. It reports whether it did.
func (t *tx) bringBack(s store.Surface) (bool, error) {
	if s.State != store.SurfaceVanished {
		return false, nil
	}
	life, err := t.life(s)
	if err != nil || !life.matters {
		return false, err
	}
	return true, t.postAgain(s)
}

// cardsAgain has the cards of a request posted again that Slack does not show any more.
func (t *tx) cardsAgain(r approvers.Request) error {
	surfaces, err := t.cardsOf(r)
	if err != nil {
		return err
	}
	return t.again(surfaces, true)
}

// cardsOf are the surfaces on which a request is put before people.
func (t *tx) cardsOf(r approvers.Request) (cards []store.Surface, err error) {
	own, err := t.SurfacesOf(r.ID)
	if err != nil {
		return nil, err
	}
	shared, err := t.SurfacesOf(r.Turn)
	if err != nil {
		return nil, err
	}
	for _, s := range append(own, shared...) {
		if isCard(s.Kind) || s.Kind == store.SurfaceBundle && s.Bundle == r.Bundle && r.Bundled() {
			cards = append(cards, s)
		}
	}
	return cards, nil
}

// turnAgain has everything posted again that a waiting turn shows to anybody and that vanished: somebody wrote in its thread.
func (t *tx) turnAgain(turn approvers.Turn) error {
	if turn.State != approvers.TurnWaiting {
		return nil
	}
	calls, err := t.Calls(turn.ID)
	if err != nil {
		return err
	}
	refs := []string{turn.ID}
	for _, c := range calls {
		if c.Step == turn.Step {
			refs = append(refs, c.ID, c.Request, c.Execution)
		}
	}
	for _, ref := range refs {
		if ref == "" {
			continue
		}
		surfaces, err := t.SurfacesOf(ref)
		if err != nil {
			return err
		}
		if err := t.again(surfaces, false); err != nil {
			return err
		}
	}
	return nil
}

// spokenUnder has a surface posted again in whose thread somebody wrote: Slack keeps a thread whose first message was deleted.
func (t *tx) spokenUnder(channel, thread string) error {
	if thread == "" {
		return nil
	}
	s, err := t.SurfaceAt(channel, thread)
	if err != nil {
		return ignoreNotFound(err)
	}
	return t.again([]store.Surface{s}, false)
}

// Repost posts again what vanished, because its deadline is near.
func (d *Desk) Repost(ctx context.Context, timer store.Timer) error {
	return d.update(ctx, "repost", func(t *tx) error {
		s, err := t.Surface(timer.Ref)
		if errors.Is(err, store.ErrNotFound) || err == nil && s.State != store.SurfaceVanished {
			return t.ClearTimer(store.TimerRepost, timer.Ref)
		}
		if err != nil {
			return err
		}
		life, err := t.life(s)
		switch {
		case err != nil:
			return err
		case !life.matters:
			s.State, s.TS = store.SurfaceGone, ""
			return errors.Join(t.PutSurface(s), t.ClearTimer(store.TimerRepost, s.ID))
		case t.now.Before(life.first()): // the deadline was put off since
			return t.SetTimer(store.Timer{Kind: store.TimerRepost, Ref: s.ID, Due: life.first()})
		}
		return t.postAgain(s)
	})
}

// life says whether a surface still matters to anybody, and how long it will.
type life struct {
	matters     bool
	from, until time.Time // until when; zero: until somebody does something
}

// first is when it is posted again by itself at the earliest.
func (l life) first() time.Time { return l.at(reposts[0]) }

func (l life) at(share time.Duration) time.Time { return l.until.Add(-l.until.Sub(l.from) / share) }

// next is when it is posted again by itself after now; zero: not any more.
func (l life) next(now time.Time) time.Time {
	if l.until.IsZero() {
		return time.Time{}
	}
	for _, share := range reposts {
		if at := l.at(share); at.After(now) {
			return at
		}
	}
	return time.Time{}
}

// life looks up whether a surface still matters: people are asked something on it, or could take something back.
func (t *tx) life(s store.Surface) (life, error) {
	switch s.Kind {
	case store.SurfaceCard, store.SurfaceEscalation:
		return t.lifeOf(s.Ref)
	case store.SurfaceQuestion:
		r, err := t.Request(s.Ref)
		if err != nil || slices.ContainsFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == s.Step }) {
			return life{}, err
		}
		return t.lifeOf(s.Ref)
	case store.SurfaceBundle:
		requests, err := t.bundled(s)
		return shortest(requests), err
	case store.SurfaceStep:
		return t.lifeOfStep(s)
	case store.SurfaceInquiry:
		call, err := t.Call(s.Ref)
		if err != nil || call.Outcome != "" || call.Inquiry == nil {
			return life{}, err
		}
		return life{matters: true, from: call.CreatedAt, until: call.Inquiry.ExpiresAt}, nil
	case store.SurfaceElicit:
		q, err := t.Elicitation(s.Ref)
		if err != nil || q.State != approvers.ElicitationOpen {
			return life{}, err
		}
		return life{matters: true, from: q.CreatedAt, until: q.ExpiresAt}, nil
	case store.SurfaceUnknown:
		e, err := t.Execution(s.Ref)
		if err != nil || e.State != approvers.ExecutionUnknown {
			return life{}, err
		}
		timer, err := t.Timer(store.TimerLeave, e.ID) // none: the model was told that nobody knows, and people may still report
		return life{matters: true, from: e.FinishedAt, until: timer.Due}, ignoreNotFound(err)
	}
	return life{}, nil
}

func (t *tx) lifeOf(request string) (life, error) {
	r, err := t.Request(request)
	return shortest([]approvers.Request{r}), err
}

// lifeOfStep is that of what the step waits for.
func (t *tx) lifeOfStep(s store.Surface) (life, error) {
	calls, err := t.Calls(s.Ref)
	if err != nil {
		return life{}, err
	}
	var open []approvers.Request
	waits := false
	for _, c := range calls {
		if c.Step != s.Step || c.Outcome != "" {
			continue
		}
		waits = true
		if c.Request == "" {
			continue
		}
		r, err := t.Request(c.Request)
		if err != nil {
			return life{}, err
		}
		open = append(open, r)
	}
	l := shortest(open)
	l.matters = waits
	return l, nil
}

// shortest is the life of what shows several requests: until the first of those that are open falls due.
func shortest(requests []approvers.Request) (l life) {
	for _, r := range requests {
		from, until := r.StageAt, r.ExpiresAt
		switch {
		case !r.State.Open():
			continue
		case r.State == approvers.Approved:
			from, until = r.ClosedAt, r.RunBy
		}
		if !l.matters || until.Before(l.until) {
			l = life{matters: true, from: from, until: until}
		}
	}
	return l
}
