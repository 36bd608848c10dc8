package bot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	// errUnknown says that there is no surface of that name.
	errUnknown = errors.New("what was clicked is not known")
	// errUnrecorded says that Slack showed the clicked version without the bot ever having noted it: it stopped in between, or drew it anew before.
	errUnrecorded = errors.New("the clicked version was never recorded")
	// errReplaced says that what was clicked stands on a message that was lost, and posted anew since.
	errReplaced = errors.New("what was clicked was replaced")
	// errCopied says that the button stands on another message than the one that was posted.
	errCopied = errors.New("what was clicked is not the message that was posted")
	// errForged says that the bot never put such a button there.
	errForged = errors.New("what was clicked was made up")
	// errWorkspace says that something came from another workspace, or is for another app.
	errWorkspace = errors.New("it came from another workspace, or for another app")
)

// refusals are the codes with which such clicks are refused.
var refusals = []struct {
	err  error
	code approvers.Code
}{
	{errNotRecorded, approvers.DeniedUnrecorded}, {errUnrecorded, approvers.DeniedUnrecorded}, {errReplaced, approvers.DeniedReplaced},
	{errUnknown, approvers.DeniedNotFound},
	{errCopied, approvers.DeniedCopied}, {errForged, approvers.DeniedForged}, {errMark, approvers.DeniedForged}, {errWorkspace, approvers.DeniedWorkspace},
}

// was is how what was clicked showed the request that it is about.
func (s seen) was() store.Shown {
	if s.Request == nil {
		return store.Shown{}
	}
	return s.shown.Of(s.Request.ID)
}

// seen finds what a mark names, and holds the mark against what was posted under that name: with the button that it belongs to, where that is known.
func (b *Bot) seen(ctx context.Context, m mark, action string) (seen, error) {
	s := seen{mark: m}
	shown, recorded := b.Desk.Rendering(ctx, m.Surface, m.Post) // before the rest, which then knows the message that it was recorded with
	sight, err := b.Desk.See(ctx, m.Surface)
	if errors.Is(err, store.ErrNotFound) {
		return s, errUnknown
	}
	if err != nil {
		return s, err
	}
	s.Sight = sight
	if s.Surface.Kind == store.SurfaceHome { // what it shows is named by its buttons alone
		if err := b.Desk.SeeOn(ctx, &s.Sight, m.Ref); err != nil {
			return s, err
		}
	}
	if errors.Is(recorded, store.ErrNotFound) {
		return s, errNotRecorded
	}
	if recorded != nil {
		return s, recorded
	}
	s.shown = shown
	value := `"` + m.String() + `"`
	switch {
	case bytes.Contains(s.shown.Body, []byte(value)):
	case s.could(m):
		return s, errUnrecorded
	default:
		return s, errForged
	}
	if action != "" && !bytes.Contains(s.shown.Body, []byte(`"action_id":"`+action+`","value":`+value)) {
		return s, errForged
	}
	if s.Surface.Kind == store.SurfaceBundle {
		s.pick()
	}
	return s, nil
}

// could reports whether a drawing of the surface can have had a button with such a mark, though none that is recorded under its number has: one that
// bears another print, and is about something that this surface is for.
func (s seen) could(m mark) bool {
	if bytes.Contains(s.shown.Body, []byte(" "+m.Print+`"`)) {
		return false
	}
	about := []string{s.Surface.Ref, s.Surface.Request, s.Turn.ID}
	if s.Request != nil {
		about = append(about, s.Request.ID)
	}
	if s.Call != nil {
		about = append(about, s.Call.ID, s.Call.Execution)
	}
	for _, c := range s.Calls {
		about = append(about, c.Call.ID, c.Call.Execution, c.Call.Request)
	}
	return slices.Contains(about, m.Ref)
}

// clicked handles a click on a button.
func (b *Bot) clicked(ctx context.Context, d delivered, i interaction) error {
	if len(i.Actions) == 0 {
		return fmt.Errorf("%w: no action in it", errPayload)
	}
	if i.View.modal() {
		return b.turnPage(ctx, d, i)
	}
	a := i.Actions[0]
	if strings.HasPrefix(a.ActionID, actHome+"_") {
		return b.turnHome(ctx, d, i)
	}
	if a.ActionID == actPause {
		return b.pauseClicked(ctx, d, i)
	}
	channel, ts := i.message()
	w := whisper{user: i.User.ID, channel: channel, thread: i.Posted.ThreadTS, responseURL: i.ResponseURL}
	c := desk.Click{Channel: channel, MessageTS: ts}
	s, err := b.clickedOn(ctx, i, a, channel, ts)
	if err != nil {
		return b.unseen(ctx, d, w, c, s, err)
	}
	if _, form := formTitles[a.ActionID]; form {
		return b.openForm(ctx, d, i, w, s)
	}
	return b.act(ctx, d, w, s, a.ActionID, c)
}

// clickedOn finds what a click is on: a button of the bot's own, in its own workspace, on the message that the bot posted.
func (b *Bot) clickedOn(ctx context.Context, i interaction, a action, channel, ts string) (seen, error) {
	m, err := readMark(a.Value)
	if err != nil {
		return seen{}, err
	}
	if err := b.here(ctx, i.origin()); err != nil {
		return seen{mark: m}, err
	}
	named := a.ActionID
	if named == actRate { // two marks stand in one element; each is nowhere else
		named = ""
	}
	s, err := b.seen(ctx, m, named)
	switch {
	case err != nil:
		return s, err
	case s.Surface.Kind == store.SurfaceHome:
		if i.View.Type == "home" && s.Surface.To == "user:"+i.User.ID {
			return s, nil
		}
		return s, errCopied
	case s.Surface.Channel == channel && s.Surface.TS == ts:
		return s, nil
	case s.Surface.Round > 0: // its message was lost and posted anew
		return s, errReplaced
	}
	return s, errCopied
}

// unseen refuses a click on something that isn't as it was clicked, and says why. Whoever reads the history of what it names finds that somebody tried.
func (b *Bot) unseen(ctx context.Context, d delivered, w whisper, c desk.Click, s seen, err error) error {
	if errors.Is(err, errNotRecorded) && d.tries < clickTries {
		return err
	}
	for _, r := range refusals {
		if !errors.Is(err, r.err) {
			continue
		}
		who, unknown := b.who(ctx, w.user, false)
		if unknown != nil {
			return b.unknownClicker(ctx, d, w, c, s, unknown)
		}
		c.Inbox, c.At, c.Who, c.User = d.id, d.at, who, w.user
		b.Log.Warn("a click was refused", "inbox", d.id, "user", w.user, "cause", err)
		refused := &approvers.Denied{Code: r.code}
		anew := ""
		if r.code == approvers.DeniedUnrecorded && s.Surface.TS != "" && s.Surface.Channel == c.Channel && s.Surface.TS == c.MessageTS {
			anew = s.Surface.ID
		}
		if err := b.Desk.Refuse(ctx, c, refused, anew, s.named()...); err != nil {
			return err
		}
		b.tell(ctx, w, denied(refused, nil, s.Policy))
		return nil
	}
	return err
}

// named is everything that a click names, or that the message that it is on shows: whoever reads the history of one of them finds what was tried.
func (s seen) named() []string {
	named := []string{s.mark.Ref, s.Surface.Request}
	for _, shown := range s.shown.Shows {
		named = append(named, shown.Request)
	}
	return named
}

// act does what a button stands for.
func (b *Bot) act(ctx context.Context, d delivered, w whisper, s seen, action string, c desk.Click) error {
	who, err := b.authority(ctx, w.user, s, action)
	if err != nil {
		return b.unknownClicker(ctx, d, w, c, s, err)
	}
	c.Inbox, c.At, c.Who, c.User = d.id, d.at, who, w.user
	c.Digest, c.Whole, c.Rendering, c.FirstSeen = s.was().Digest, s.was().Whole, s.rendering(), s.was().Since
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
	case actRate:
		return b.rated(ctx, w, s, c)
	case actStop:
		c.Turn = s.mark.Ref
		err = b.Desk.Halt(ctx, c)
	case actTryAgain:
		c.Turn = s.mark.Ref
		err = b.Desk.TryAgain(ctx, c)
	case actDidNot:
		c.Execution = s.mark.Ref
		return b.answerReport(ctx, w, s, b.Desk.Report(ctx, c, desk.DidNot))
	case actAskAgain:
		c.Execution = s.mark.Ref
		return b.answerReport(ctx, w, s, b.Desk.AskAgain(ctx, c))
	case actBack:
		return b.backClicked(ctx, w, c)
	case actResume:
		return b.answerPause(ctx, w, s.Policy, b.Desk.ResumeBy(ctx, c))
	case actVisited:
		c.Elicitation = s.mark.Ref
		err = b.Desk.Respond(ctx, c, nil)
	case actNoAnswer:
		c.Elicitation = s.mark.Ref
		err = b.Desk.Decline(ctx, c)
	case actLeave:
		c.Execution = s.mark.Ref
		return b.answerReport(ctx, w, s, b.Desk.Report(ctx, c, desk.Leave))
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

// authority asks Slack who clicked, with what could give them authority over what they clicked on. Whoever changes arguments may raise the risk by it, so
// then Slack is asked anew in any case.
func (b *Bot) authority(ctx context.Context, user string, s seen, action string) (approvers.Identity, error) {
	switch {
	case s.Request != nil && action == actModify:
		return b.clicker(ctx, user, s.Policy, s.Request.Tool, approvers.Critical, s.Request)
	case s.Request != nil:
		return b.clicker(ctx, user, s.Policy, s.Request.Tool, stakes(s.Policy, s.Request), s.Request)
	case s.Execution != nil:
		return b.clicker(ctx, user, s.Policy, s.Execution.Tool, approvers.Critical, nil)
	case s.Grant != nil:
		return b.clicker(ctx, user, s.Policy, s.Grant.Tool, approvers.Critical, nil)
	case s.Surface.Kind == store.SurfaceBundle:
		return b.clickerOfAll(ctx, user, s)
	case s.Surface.Kind == store.SurfacePause:
		return b.pauser(ctx, user, s.Policy)
	}
	return b.who(ctx, user, false)
}

// unknownClicker fails closed: after a few tries to ask Slack the click is refused and recorded, and its sender told so.
func (b *Bot) unknownClicker(ctx context.Context, d delivered, w whisper, c desk.Click, s seen, cause error) error {
	if passes(d, cause) {
		return cause
	}
	if err := b.refuseUnknown(ctx, d, w, c, s, cause); err != nil {
		return err
	}
	b.tell(ctx, w, unidentified())
	return nil
}

// passes reports whether it may be tried again to find out who clicked: Slack could not be reached, or asks to wait. What it refuses to say, as where a scope
// is missing, it refuses the next time too.
func passes(d delivered, cause error) bool {
	code := errorCode(cause)
	refused := code != "" && !failing(code) && !isPutOff(cause) || errors.Is(cause, errAboutAnother)
	return !refused && d.tries < clickTries
}

// refuseUnknown records that nobody can say who clicked.
func (b *Bot) refuseUnknown(ctx context.Context, d delivered, w whisper, c desk.Click, s seen, cause error) error {
	b.Log.Error("Slack could not say who clicked, so the click was refused", "inbox", d.id, "user", w.user, "error", cause)
	c.Inbox, c.At, c.User = d.id, d.at, w.user
	return b.Desk.Refuse(ctx, c, &approvers.Denied{Code: approvers.DeniedUnidentified}, "", s.named()...)
}
