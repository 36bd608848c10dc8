package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/approvers/desk"
	"countersign/store"
)

// Show makes Slack show a surface as it is now. Errors that pass are returned, and the agenda tries again; what Slack refuses for
// good is marked unreachable, and shown elsewhere where that helps.
func (b *Bot) Show(ctx context.Context, t store.Timer) error {
	sight, err := b.Desk.See(ctx, t.Ref)
	if errors.Is(err, store.ErrNotFound) {
		return b.Desk.Unreachable(ctx, t.Ref, "what it shows is gone")
	}
	if err != nil {
		return err
	}
	s := sight.Surface
	switch {
	case s.State == store.SurfaceUnreachable:
		return b.Desk.Unreachable(ctx, s.ID, s.LastError)
	case strings.HasPrefix(s.To, "role:"), strings.HasPrefix(s.To, "group:"):
		return b.expand(ctx, sight)
	}
	err = b.show(ctx, sight)
	if code := errorCode(err); gone[code] {
		err = b.Desk.Unreachable(ctx, s.ID, err.Error())
	}
	if err == nil {
		b.posting.Delete(s.ID)
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
		return b.Desk.Unreachable(ctx, s.Surface.ID, err.Error())
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

func (b *Bot) show(ctx context.Context, sight desk.Sight) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	d, body, err := draw(scene{Sight: sight, url: me.URL, about: about(b.Tools, sight), calls: b.calls(ctx, sight)})
	if err != nil {
		return err
	}
	s := sight.Surface
	if d.over {
		return b.takeAway(ctx, me, sight, d)
	}
	if s.TS != "" && desk.Same(s, body) {
		return b.Desk.StillShown(ctx, s)
	}
	if s.TS != "" {
		err = b.update(ctx, s, d)
		if !stale[errorCode(err)] {
			if err != nil {
				return err
			}
			return b.Desk.Shown(ctx, s, desk.Posted{Body: body, Shows: d.shows})
		}
		b.Log.Warn("a message can't be changed any more; posting it anew", "surface", string(s.Kind), "request", s.Request, "cause", errorCode(err))
		if _, _, err := b.api.DeleteMessageContext(ctx, s.Channel, s.TS); err != nil { // its buttons do nothing any more; better they are gone
			b.Log.Debug("the old message stays", "cause", err)
		}
		s.TS = ""
	}
	at, err := b.spot(ctx, sight)
	if err != nil {
		return err
	}
	sent := map[int]string{}
	_, tried := b.posting.LoadOrStore(s.ID, true)
	if tried || s.CreatedAt.Before(b.started) { // it may be there already: its answer was lost, or a process stopped before it was recorded
		if sent, err = b.sent(ctx, me, s, at); err != nil {
			return err
		}
	}
	if s.Channel, s.TS, err = b.post(ctx, s, d, at, sent); err != nil {
		return err
	}
	return b.Desk.Shown(ctx, s, desk.Posted{Body: body, Shows: d.shows})
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
