package bot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"countersign/approvers/desk"
	"countersign/internal/redact"
	"countersign/store"
)

// Show makes Slack show a surface as it is now. Errors that pass are returned, and the agenda tries again; what Slack refuses for
// good is marked unreachable, and shown elsewhere where that helps.
func (b *Bot) Show(ctx context.Context, t store.Timer) error {
	sight, err := b.Desk.See(ctx, t.Ref)
	if err == nil {
		sight, err = b.drafted(ctx, sight)
	}
	if errors.Is(err, store.ErrNotFound) {
		return b.Desk.Unreachable(ctx, t.Ref, "what it shows is gone", "")
	}
	if err != nil {
		return err
	}
	s := sight.Surface
	ctx = dueFor(ctx, rankPrecedence[s.Rank], t)
	switch {
	case s.State == store.SurfaceUnreachable:
		if err := b.remove(ctx, s); err != nil {
			return err
		}
		return b.Desk.Unreachable(ctx, s.ID, s.LastError, "")
	case s.State == store.SurfaceGone, s.State == store.SurfaceVanished: // since the timer was read
		return desk.ErrNotDue
	case strings.HasPrefix(s.To, "role:"), strings.HasPrefix(s.To, "group:"):
		return b.expand(ctx, sight)
	case s.Kind == store.SurfaceHome:
		return b.showHome(ctx, sight)
	}
	err = b.showAlone(ctx, sight)
	if code := errorCode(err); gone[code] {
		if code == errNoThread.Err && strings.HasPrefix(s.To, "conversation:") {
			if err := b.Desk.ThreadGone(ctx, sight.Conversation.ID); err != nil {
				return err
			}
		}
		err = b.Desk.Unreachable(ctx, s.ID, redact.Error(err), b.lostPlace(ctx, sight, code))
	}
	if err == nil {
		b.posts.recorded(s.ID)
		if tellsOf(sight) {
			b.showStatus(ctx, s.Ref, s.TS == "" || s.Drafted)
		}
	}
	return err
}

// expand resolves the members of a role or a group, each of whom gets a copy.
func (b *Bot) expand(ctx context.Context, s desk.Sight) error {
	if s.Surface.State == store.SurfaceExpanded {
		return b.Desk.Expand(ctx, s.Surface.ID, []string{""}) // it only clears the timer
	}
	users, err := b.usersAt(ctx, s)
	if errors.Is(err, errNoRole) {
		return b.Desk.Unreachable(ctx, s.Surface.ID, redact.Error(err), "")
	}
	if err != nil {
		return err
	}
	return b.Desk.Expand(ctx, s.Surface.ID, users)
}

var errNoRole = errors.New("the policy has no such approver any more")

// usersAt lists the users whom an address stands for.
func (b *Bot) usersAt(ctx context.Context, s desk.Sight) ([]string, error) {
	if group, ok := strings.CutPrefix(s.Surface.To, "group:"); ok {
		return b.groupUsers(ctx, group, s)
	}
	role, ok := s.Policy.Role(strings.TrimPrefix(s.Surface.To, "role:"))
	if !ok {
		return nil, errNoRole
	}
	return b.roleUsers(ctx, role)
}

// showAlone shows a surface while nobody else changes its message.
func (b *Bot) showAlone(ctx context.Context, sight desk.Sight) error {
	id := sight.Surface.ID
	if err := b.shows.take(ctx, id); err != nil {
		return err
	}
	defer b.shows.done(id)
	err := b.show(ctx, sight)
	if err == nil {
		b.shows.over(id)
	}
	return err
}

// scene is what a surface is drawn from.
func (b *Bot) scene(ctx context.Context, sight desk.Sight) (scene, error) {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return scene{}, err
	}
	view := scene{Sight: sight, url: me.URL, about: aboutTool(b.Tools, sight), calls: b.calls(ctx, sight)}
	if user, own := strings.CutPrefix(sight.Surface.To, "user:"); own {
		view.reader = b.known(user)
	}
	return view, nil
}

func (b *Bot) show(ctx context.Context, sight desk.Sight) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	view, err := b.scene(ctx, sight)
	if err != nil {
		return err
	}
	d, body, err := draw(view)
	if err != nil {
		return err
	}
	s := sight.Surface
	if err := b.remove(ctx, s); err != nil {
		return err
	}
	if err := b.amongOurselves(ctx, sight); err != nil {
		return err
	}
	if d.over {
		return b.takeAway(ctx, me, sight, d)
	}
	if _, more := b.shows.noted(s.ID); s.TS != "" && !more && desk.Same(s, body) {
		return b.Desk.StillShown(ctx, s)
	}
	if s.TS != "" && !s.Drafted {
		ctx := context.WithoutCancel(ctx) // what is begun is ended and recorded, also where the process stops meanwhile: somebody may click on it at once
		err = b.update(ctx, s, d)
		switch code := errorCode(err); {
		case vanished[code]:
			return b.Desk.Vanished(ctx, s)
		case stale[code]:
			b.Log.Warn("a message can't be changed any more; posting it anew", "surface", string(s.Kind), "request", s.Request, "cause", code)
			return b.Desk.Replace(ctx, s)
		case err != nil:
			return err
		}
		return b.Desk.Shown(ctx, s, desk.Posted{Body: body, Shows: d.shows})
	}
	at, err := b.spot(ctx, sight)
	if err != nil {
		return err
	}
	sent, err := b.lost(ctx, me, s, at)
	if err != nil {
		return err
	}
	if isFile := s.Kind == store.SurfaceFile || s.Kind == store.SurfaceAttachment; isFile && len(sent) == 0 {
		ctx := context.WithoutCancel(ctx)
		if done, err := b.uploaded(ctx, sight, at); err != nil {
			return err
		} else if done {
			if s.Kind == store.SurfaceAttachment {
				if body, err = uploadOf(sight).body(); err != nil {
					return err
				}
			}
			return b.Desk.Shown(ctx, s, desk.Posted{Body: body})
		}
	}
	if s.TS != "" { // the draft's message becomes the first
		sent = maps.Clone(sent)
		if sent == nil {
			sent = map[int]string{}
		}
		sent[0] = s.TS
	}
	ctx = context.WithoutCancel(ctx)
	channel, ts, err := b.post(ctx, s, d, at, sent)
	if code := errorCode(err); s.TS != "" && (vanished[code] || stale[code]) {
		return b.Desk.Replace(ctx, s)
	}
	if err != nil {
		return err
	}
	s.Channel, s.TS = channel, ts
	return b.Desk.Shown(ctx, s, desk.Posted{Body: body, Shows: d.shows})
}

// remove deletes the message that a surface had before, which Slack does not let the bot change any more: its buttons do nothing. Where it can't be
// deleted either, it stays.
func (b *Bot) remove(ctx context.Context, s store.Surface) error {
	if s.Old == "" {
		return nil
	}
	_, _, err := b.api.DeleteMessageContext(ctx, s.Channel, s.Old)
	switch code := errorCode(err); {
	case err == nil, vanished[code]:
	case code == "", failing(code):
		return fmt.Errorf("chat.delete: %w", slow(err))
	default:
		b.Log.Info("a message can neither be changed nor deleted; it stays", "surface", string(s.Kind), "request", s.Request, "cause", code)
	}
	return nil
}

// spot is where a surface is posted.
type spot struct {
	channel string
	thread  string
}

func (b *Bot) spot(ctx context.Context, sight desk.Sight) (spot, error) {
	kind, where, _ := strings.Cut(sight.Surface.To, ":")
	switch kind {
	case "conversation":
		if sight.Conversation.Gone { // Slack would post it to the channel itself
			return spot{}, errNoThread
		}
		return spot{sight.Conversation.Channel, sight.Conversation.Thread}, nil
	case "channel":
		id, err := b.places.channel(ctx, where)
		return spot{channel: id}, err
	case "user":
		id, err := b.places.dm(ctx, where)
		return spot{channel: id}, err
	}
	return spot{}, fmt.Errorf("surface %s has the address %q, which means nothing", sight.Surface.ID, sight.Surface.To)
}
