package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Sight is everything that a surface is rendered from, read in one snapshot.
type Sight struct {
	Surface      store.Surface
	Conversation store.Conversation
	Turn         approvers.Turn
	Request      *approvers.Request   // for a card, an escalation, and an unknown outcome that somebody approved
	Execution    *approvers.Execution // the request's current one, or the one whose outcome is unknown
	Call         *store.Call          // the request's or the execution's call, with what the model was told
	Calls        []CallSight          // for a step: its calls in order
	Queued       []store.Message      // for a queued notice: the messages that wait
	Text         string               // what the model said: with a step, or as the answer
	Policy       *approvers.Policy
	Now          time.Time
}

// CallSight is one call of a step, with what it waits for.
type CallSight struct {
	Call      store.Call
	Execution *approvers.Execution
	Request   *approvers.Request
	Cards     []store.Surface // the request's, as far as Slack shows them
}

// See reads what a surface shows.
func (d *Desk) See(ctx context.Context, surface string) (Sight, error) {
	var s Sight
	err := d.Store.View(ctx, func(r store.Reader) error {
		s = Sight{Policy: d.Policy(), Now: d.now()}
		var err error
		if s.Surface, err = r.Surface(surface); err != nil {
			return err
		}
		switch s.Surface.Kind {
		case store.SurfaceCard, store.SurfaceEscalation:
			return s.seeRequest(r, s.Surface.Ref)
		case store.SurfaceUnknown:
			return s.seeUnknown(r, s.Surface.Ref)
		}
		return s.seeTurn(r, s.Surface.Ref)
	})
	return s, err
}

func (s *Sight) seeRequest(r store.Reader, id string) error {
	req, err := r.Request(id)
	if err != nil {
		return err
	}
	e, err := r.Execution(req.Execution)
	if err != nil {
		return err
	}
	call, err := r.Call(req.Call)
	if err != nil {
		return err
	}
	s.Request, s.Execution, s.Call = &req, &e, &call
	return s.seePlace(r, req.Turn)
}

func (s *Sight) seeUnknown(r store.Reader, id string) error {
	e, err := r.Execution(id)
	if err != nil {
		return err
	}
	call, err := r.Call(e.Call)
	if err != nil {
		return err
	}
	s.Execution, s.Call = &e, &call
	if e.Request != "" {
		req, err := r.Request(e.Request)
		if err != nil {
			return err
		}
		s.Request = &req
	}
	return s.seePlace(r, e.Turn)
}

// seePlace reads where it all happens.
func (s *Sight) seePlace(r store.Reader, turn string) (err error) {
	if s.Turn, err = r.Turn(turn); err != nil {
		return err
	}
	s.Conversation, err = r.Conversation(s.Turn.Conversation)
	return err
}

func (s *Sight) seeTurn(r store.Reader, id string) error {
	if err := s.seePlace(r, id); err != nil {
		return err
	}
	messages, err := r.Messages(s.Conversation.ID, 0)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if m.State == store.MessageQueued {
			s.Queued = append(s.Queued, m)
		}
		if m.Turn == id && m.Role == store.RoleAssistant && m.Step == s.Surface.Step {
			s.Text = m.Text
		}
	}
	if s.Surface.Kind != store.SurfaceStep && s.Surface.Kind != store.SurfaceQueued {
		return nil
	}
	calls, err := r.Calls(id)
	if err != nil {
		return err
	}
	step := s.Surface.Step
	if s.Surface.Kind == store.SurfaceQueued {
		step = s.Turn.Step // what the messages wait for
	}
	for _, c := range calls {
		if c.Step != step {
			continue
		}
		sight, err := seeCall(r, c)
		if err != nil {
			return err
		}
		s.Calls = append(s.Calls, sight)
	}
	return nil
}

func seeCall(r store.Reader, c store.Call) (CallSight, error) {
	sight := CallSight{Call: c}
	if c.Execution != "" {
		e, err := r.Execution(c.Execution)
		if err != nil {
			return sight, err
		}
		sight.Execution = &e
	}
	if c.Request == "" {
		return sight, nil
	}
	req, err := r.Request(c.Request)
	if err != nil {
		return sight, err
	}
	sight.Request = &req
	cards, err := r.SurfacesOf(req.ID)
	if err != nil {
		return sight, err
	}
	for _, card := range cards {
		if card.TS != "" {
			sight.Cards = append(sight.Cards, card)
		}
	}
	return sight, nil
}

// Showing finds the surface that a Slack message shows, and the version of it that was posted last.
func (d *Desk) Showing(ctx context.Context, channel, ts string) (s store.Surface, shown store.Rendering, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		if s, err = r.SurfaceAt(channel, ts); err != nil {
			return err
		}
		shown, err = r.Rendering(s.ID, s.Posts)
		return err
	})
	return s, shown, err
}

// Rendering reads one posted version of a surface.
func (d *Desk) Rendering(ctx context.Context, surface string, post uint64) (shown store.Rendering, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		shown, err = r.Rendering(surface, post)
		return err
	})
	return shown, err
}

// Request reads a request.
func (d *Desk) Request(ctx context.Context, id string) (req approvers.Request, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		req, err = r.Request(id)
		return err
	})
	return req, err
}

// Inbox reads a delivery that is due to be handled.
func (d *Desk) Inbox(ctx context.Context, id string) (row store.Inbox, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		row, err = r.Inbox(id)
		return err
	})
	return row, err
}

// Posted is one version of a surface as it was sent to Slack.
type Posted struct {
	Body   []byte // text and blocks as JSON
	Digest string // of the execution that it showed, if it showed one
	Whole  bool   // the execution's arguments were shown whole
}

// Shown records that Slack shows a surface: s as it was read, with Channel and TS set. Every posted version is kept.
func (d *Desk) Shown(ctx context.Context, s store.Surface, p Posted) error {
	sum := sha256.Sum256(p.Body)
	hash := hex.EncodeToString(sum[:])
	return d.update(ctx, "shown", func(t *tx) error {
		cur, err := t.Surface(s.ID)
		if err != nil {
			return err
		}
		cur.Channel, cur.TS, cur.Shown, cur.Hash, cur.LastError = s.Channel, s.TS, s.Want, hash, ""
		cur.Posts++
		if cur.Want == s.Want {
			cur.State = store.SurfaceShown
			err = t.ClearTimer(store.TimerShow, s.ID)
		} else {
			err = t.showNow(cur)
		}
		if err != nil {
			return err
		}
		if err := t.PutSurface(cur); err != nil {
			return err
		}
		shown := store.Rendering{Surface: s.ID, Post: cur.Posts, Hash: hash, Digest: p.Digest, Whole: p.Whole, Body: p.Body, At: t.now}
		if err := t.PutRendering(shown); err != nil {
			return err
		}
		if s.Request == "" {
			return nil
		}
		facts := map[string]string{"surface": string(s.Kind), "to": s.To, "channel": s.Channel, "message": s.TS, "rendering": hash, "digest": p.Digest}
		if err := t.audit(s.Request, approvers.AuditShown, "", facts, p.Body); err != nil {
			return err
		}
		if cur.Posts > 1 {
			return nil
		}
		return t.linkCard(s.Request) // the asker's thread links to the card as soon as there is one
	})
}

// linkCard has the step of a request shown again, if it still waits.
func (t *tx) linkCard(request string) error {
	r, err := t.Request(request)
	if err != nil || r.State != approvers.Pending {
		return err
	}
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	return t.changedTurn(r.Turn, store.SurfaceStep, call.Step)
}

// Expand turns a surface for a role into one for each of its people. Nobody to show it to counts as unreachable.
func (d *Desk) Expand(ctx context.Context, surface string, users []string) error {
	if len(users) == 0 {
		return d.Unreachable(ctx, surface, "the role has no member who can be written to")
	}
	return d.update(ctx, "expand", func(t *tx) error {
		s, err := t.Surface(surface)
		if err != nil {
			return err
		}
		if s.State == store.SurfaceExpanded {
			return t.ClearTimer(store.TimerShow, surface)
		}
		for _, user := range users {
			one := store.Surface{Kind: s.Kind, Ref: s.Ref, Step: s.Step, Request: s.Request, To: toUser + user, Text: s.Text, Urgent: s.Urgent}
			if err := t.want(one); err != nil {
				return err
			}
		}
		s.State = store.SurfaceExpanded
		if err := t.PutSurface(s); err != nil {
			return err
		}
		return t.ClearTimer(store.TimerShow, surface)
	})
}

// Unreachable gives a surface up that Slack refused for good. It is shown elsewhere where that helps, and the operator is told.
func (d *Desk) Unreachable(ctx context.Context, surface, cause string) error {
	return d.update(ctx, "unreachable", func(t *tx) error {
		s, err := t.Surface(surface)
		if errors.Is(err, store.ErrNotFound) {
			return t.ClearTimer(store.TimerShow, surface)
		}
		if err != nil || s.State == store.SurfaceUnreachable {
			return errors.Join(err, t.ClearTimer(store.TimerShow, surface))
		}
		d.Log.Error("Slack refused this for good; mend it there or in the policy", "surface", string(s.Kind), "to", s.To, "request", s.Request, "cause", cause)
		s.State, s.LastError = store.SurfaceUnreachable, cause
		if err := t.PutSurface(s); err != nil {
			return err
		}
		if err := t.ClearTimer(store.TimerShow, surface); err != nil {
			return err
		}
		return t.elsewhere(s)
	})
}
