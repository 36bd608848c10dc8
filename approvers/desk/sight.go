package desk

import (
	"context"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Sight is everything that a surface is rendered from, read in one snapshot.
type Sight struct {
	Surface      store.Surface
	Conversation store.Conversation
	Turn         approvers.Turn
	Request      *approvers.Request     // for a card, an escalation, a question, a notice, and an unknown outcome that somebody approved
	Execution    *approvers.Execution   // the request's current one, or the one whose outcome is unknown
	Call         *store.Call            // the request's or the execution's call, with what the model was told
	Later        *approvers.Request     // for a run of which nobody knows how it ended, and its card: by which its call was asked for again
	Earlier      []store.Surface        // for a request that asks again: where people are asked about the earlier run, as far as Slack shows it
	LeaveAt      time.Time              // for an unknown outcome: when the model is told that nobody knows; zero: it is not any more
	Cards        []store.Surface        // for a question and a notice: the request's cards, as far as Slack shows them; with Later: its cards
	Absence      *approvers.Absence     // for whoever stands in: the absence that it is about, as it is now
	Calls        []CallSight            // for a step: its calls in order; for a bundle: those that it shows
	Grant        *approvers.Grant       // for a grant
	Stalled      string                 // for a grant: why no call can run under it as things are, although it is in force
	Line         *LineSight             // for a line's notice; nil: its time is over
	Queued       []store.Message        // for a queued notice: the messages that wait
	Reworded     *store.Message         // the turn's last message that was edited or deleted after the model had read it
	Text         string                 // what the model said: with a step, or as the answer
	Elicitation  *approvers.Elicitation // what a run asks
	File         *store.File            // for a file that a run brought back
	Data         []byte                 // the file's bytes
	Head         *store.Head            // for the heads in a channel: the newest
	Pause        Pause                  // whether everything is paused
	Policy       *approvers.Policy
	Now          time.Time
}

// CallSight is one call of a step, with what it waits for.
type CallSight struct {
	Call      store.Call
	Execution *approvers.Execution
	Request   *approvers.Request
	Cards     []store.Surface  // the request's, as far as Slack shows them
	Grant     *approvers.Grant // the one that it ran under
	InLine    bool             // its card waits in line
	Asks      bool             // its run waits for an answer of the person who asked
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
		if s.Pause, _, err = paused(r); err != nil {
			return err
		}
		switch s.Surface.Kind {
		case store.SurfacePause, store.SurfaceHome:
			return nil // it is all that there is to see here
		case store.SurfaceHead:
			return s.seeHead(r)
		case store.SurfaceCard, store.SurfaceEscalation:
			return s.seeRequest(r, s.Surface.Ref)
		case store.SurfaceQuestion, store.SurfaceNotice:
			if err := s.seeRequest(r, s.Surface.Ref); err != nil {
				return err
			}
			s.Cards, err = seeCards(r, *s.Request)
			return err
		case store.SurfaceUnknown:
			return s.seeUnknown(r, s.Surface.Ref)
		case store.SurfaceStandIn:
			a, err := r.Absence(approvers.PersonID(s.Surface.Ref))
			s.Absence = &a
			return err
		case store.SurfaceAttachment:
			return s.seeFile(r, s.Surface.Ref, s.Surface.Step)
		case store.SurfaceElicit:
			return s.seeElicitation(r, s.Surface.Ref)
		case store.SurfaceInquiry:
			return s.seeInquiry(r, s.Surface.Ref)
		case store.SurfaceGrant:
			return s.seeGrant(d, r, s.Surface.Ref)
		case store.SurfaceLine:
			return s.seeLine(r, s.Surface.Ref)
		}
		return s.seeTurn(r, s.Surface.Ref)
	})
	return s, err
}

// Standing reads how a turn stands: its calls are those of its current step.
func (d *Desk) Standing(ctx context.Context, turn string) (Sight, error) {
	s := Sight{Policy: d.Policy(), Now: d.now(), Surface: store.Surface{Kind: store.SurfaceStep, Ref: turn}}
	err := d.Store.View(ctx, func(r store.Reader) (err error) {
		s.Calls = nil
		if s.Pause, _, err = paused(r); err != nil {
			return err
		}
		if err := s.seePlace(r, turn); err != nil {
			return err
		}
		return s.seeCalls(r, turn, s.Turn.Step)
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
	veil(s.Policy, &req, &call)
	s.Request, s.Execution, s.Call = &req, &e, &call
	if err := s.seeAgain(r); err != nil {
		return err
	}
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
	veil(s.Policy, s.Request, s.Call)
	if err := s.seeAgain(r); err != nil {
		return err
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
		if m.Turn == id && m.Reworded != nil {
			s.Reworded = &m
		}
		if m.Turn == id && m.Role == store.RoleAssistant && m.Step == s.Surface.Step {
			s.Text = m.Text
		}
	}
	switch s.Surface.Kind {
	case store.SurfaceStep, store.SurfaceBundle, store.SurfaceReworded:
		return s.seeCalls(r, id, s.Surface.Step)
	case store.SurfaceQueued:
		return s.seeCalls(r, id, s.Turn.Step) // what the messages wait for
	}
	return nil
}

func (s *Sight) seeCalls(r store.Reader, turn string, step int) error {
	calls, err := r.Calls(turn)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.Step != step {
			continue
		}
		sight, err := s.seeCall(r, c)
		if err != nil {
			return err
		}
		if s.Surface.Kind != store.SurfaceBundle || sight.Request != nil && sight.Request.Bundle == s.Surface.Bundle {
			s.Calls = append(s.Calls, sight)
		}
	}
	return nil
}

func (s *Sight) seeCall(r store.Reader, c store.Call) (CallSight, error) {
	sight := CallSight{Call: c}
	veil(s.Policy, nil, &sight.Call)
	if c.Execution != "" {
		e, err := r.Execution(c.Execution)
		if err != nil {
			return sight, err
		}
		sight.Execution = &e
		if sight.Grant, err = grantOf(r, e); err != nil {
			return sight, err
		}
		if sight.Asks, err = asks(r, e); err != nil {
			return sight, err
		}
	}
	if c.Request == "" {
		return sight, nil
	}
	req, err := r.Request(c.Request)
	if err != nil {
		return sight, err
	}
	veil(s.Policy, &req, nil)
	sight.Request = &req
	if sight.InLine, err = s.inLine(r, req); err != nil {
		return sight, err
	}
	sight.Cards, err = seeCards(r, req)
	return sight, err
}
