package bot

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// seen is what somebody clicked on: the version of the surface that was before them, and the state as it is now.
type seen struct {
	mark  mark
	shown store.Rendering
	desk.Sight
}

var (
	// errNotRecorded says that the clicked version is not stored: Slack showed it a moment before we learned of it.
	errNotRecorded = errors.New("the clicked version is not recorded yet")
	// errReplaced says that what was clicked is not what is stored under that name.
	errReplaced = errors.New("what was clicked was replaced")
)

// was is how what was clicked showed the request that it is about.
func (s seen) was() store.Shown {
	if s.Request == nil {
		return store.Shown{}
	}
	return s.shown.Of(s.Request.ID)
}

// seen finds what a mark names, and holds the mark against what was posted under that name.
func (b *Bot) seen(ctx context.Context, m mark) (seen, error) {
	shown, err := b.Desk.Rendering(ctx, m.Surface, m.Post)
	if errors.Is(err, store.ErrNotFound) {
		return seen{}, errNotRecorded
	}
	if err != nil {
		return seen{}, err
	}
	if !bytes.Contains(shown.Body, []byte(`"`+m.String()+`"`)) {
		return seen{}, errReplaced
	}
	sight, err := b.Desk.See(ctx, m.Surface)
	s := seen{mark: m, shown: shown, Sight: sight}
	if sight.Surface.Kind == store.SurfaceBundle {
		s.pick()
	}
	return s, err
}

// clicked handles a click on a button.
func (b *Bot) clicked(ctx context.Context, d delivered, i interaction) error {
	if len(i.Actions) == 0 {
		return fmt.Errorf("%w: no action in it", errPayload)
	}
	if i.View.ID != "" {
		return b.turnPage(ctx, d, i)
	}
	a := i.Actions[0]
	m, err := readMark(a.Value)
	if err != nil {
		return err
	}
	channel, ts := i.message()
	w := whisper{user: i.User.ID, channel: channel, thread: i.Posted.ThreadTS, responseURL: i.ResponseURL}
	s, err := b.seen(ctx, m)
	if err == nil && (s.Surface.Channel != channel || s.Surface.TS != ts) {
		err = errReplaced
	}
	if err != nil {
		return b.unseen(ctx, d, w, err)
	}
	if _, form := formTitles[a.ActionID]; form {
		return b.openForm(ctx, d, i, w, s)
	}
	return b.act(ctx, d, w, s, a.ActionID, desk.Click{Channel: channel, MessageTS: ts})
}

// unseen answers a click on something that can't be found as it was clicked.
func (b *Bot) unseen(ctx context.Context, d delivered, w whisper, err error) error {
	switch {
	case errors.Is(err, errNotRecorded) && d.tries < clickTries:
		return err
	case errors.Is(err, errNotRecorded), errors.Is(err, errReplaced), errors.Is(err, store.ErrNotFound):
		if err := b.Desk.Done(ctx, d.id, err.Error()); err != nil {
			return err
		}
		b.tell(ctx, w, say("Nothing was decided: what you clicked was replaced by a newer version in the meantime. Please look at it again, and click there."))
		return nil
	}
	return err
}

// act does what a button stands for.
func (b *Bot) act(ctx context.Context, d delivered, w whisper, s seen, action string, c desk.Click) error {
	who, err := b.authority(ctx, w.user, s)
	if err != nil {
		return b.unknownClicker(ctx, d, w, err)
	}
	c.Inbox, c.At, c.Who = d.id, d.at, who
	c.Digest, c.Whole, c.Rendering, c.FirstSeen = s.was().Digest, s.was().Whole, s.shown.Hash, s.was().Since
	r := s.Request
	if s.Grant != nil {
		return b.actOnGrant(ctx, w, s, action, c)
	}
	switch action {
	case actApprove:
		c.Request, c.Kind = s.mark.Ref, approvers.Approve
		return b.decide(ctx, w, s, c)
	case actApproveAll:
		c.Kind = approvers.Approve
		return b.decideAll(ctx, w, s, c)
	case actApart:
		c.Request = s.mark.Ref
		var after approvers.Request
		after, err = b.Desk.Unbundle(ctx, c)
		r = &after
	case actWithdraw:
		c.Request = s.mark.Ref
		var after approvers.Request
		after, err = b.Desk.Withdraw(ctx, c)
		r = &after
	case actGoOn:
		c.Turn = s.mark.Ref
		err = b.Desk.GoOn(ctx, c)
	case actTryAgain:
		c.Turn = s.mark.Ref
		err = b.Desk.TryAgain(ctx, c)
	case actDidNot:
		c.Execution = s.mark.Ref
		err = b.Desk.Report(ctx, c, desk.DidNot)
	case actLeave:
		c.Execution = s.mark.Ref
		err = b.Desk.Report(ctx, c, desk.Leave)
	default:
		option, isChoice := choiceOf(action)
		if !isChoice {
			return fmt.Errorf("%w: no button does %q", errPayload, action)
		}
		c.Call = s.mark.Ref
		err = b.Desk.Choose(ctx, c, option)
	}
	return b.answerClick(ctx, w, r, s.Policy, err)
}

func (b *Bot) decide(ctx context.Context, w whisper, s seen, c desk.Click) error {
	r, err := b.Desk.Decide(ctx, c)
	return b.answerClick(ctx, w, &r, s.Policy, err)
}

// answerClick tells a person why their click changed nothing, if so. What it did change they see on the surfaces.
func (b *Bot) answerClick(ctx context.Context, w whisper, r *approvers.Request, p *approvers.Policy, err error) error {
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.tell(ctx, w, denied(d, r, p))
	return nil
}

// authority asks Slack who clicked, with what could give them authority over what they clicked on.
func (b *Bot) authority(ctx context.Context, user string, s seen) (approvers.Identity, error) {
	switch {
	case s.Request != nil:
		return b.clicker(ctx, user, s.Policy, s.Request.Tool, s.Request.Plan.Risk, s.Request)
	case s.Execution != nil:
		return b.clicker(ctx, user, s.Policy, s.Execution.Tool, approvers.Critical, nil)
	case s.Grant != nil:
		return b.clicker(ctx, user, s.Policy, s.Grant.Tool, approvers.Critical, nil)
	case s.Surface.Kind == store.SurfaceBundle:
		return b.clickerOfAll(ctx, user, s)
	}
	return b.who(ctx, user, false)
}

// unknownClicker fails closed: after a few tries to ask Slack the click is refused, and its sender told so.
func (b *Bot) unknownClicker(ctx context.Context, d delivered, w whisper, cause error) error {
	if d.tries < clickTries {
		return cause
	}
	b.Log.Error("Slack could not say who clicked, so the click was refused", "inbox", d.id, "error", cause)
	if err := b.Desk.Done(ctx, d.id, "Slack could not say who clicked"); err != nil {
		return err
	}
	b.tell(ctx, w, unidentified())
	return nil
}
