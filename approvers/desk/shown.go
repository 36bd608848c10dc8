package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"countersign/approvers"
	"countersign/store"
)

// Posted is one version of a surface as it was sent to Slack.
type Posted struct {
	Body  []byte        // text and blocks as JSON
	Shows []store.Shown // the requests that it showed; since when is found out here
}

// Shown records that Slack shows a surface: s as it was read, with Channel and TS set. Every posted version is kept.
func (d *Desk) Shown(ctx context.Context, s store.Surface, p Posted) error {
	hash := hashOf(p.Body)
	return d.update(ctx, "shown", func(t *tx) error {
		cur, err := t.Surface(s.ID)
		if err != nil {
			return err
		}
		cur.Channel, cur.TS, cur.Shown, cur.Hash, cur.LastError = s.Channel, s.TS, s.Want, hash, ""
		shows, err := t.since(cur, p.Shows)
		if err != nil {
			return err
		}
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
		shown := store.Rendering{Surface: s.ID, Post: cur.Posts, Hash: hash, Shows: shows, Body: p.Body, At: t.now}
		if err := t.PutRendering(shown); err != nil {
			return err
		}
		for _, one := range p.Shows {
			if one.Request == "" {
				continue // a run that nobody was asked about
			}
			facts := map[string]string{
				"surface": string(s.Kind), "to": s.To, "channel": s.Channel, "message": s.TS, "rendering": hash, "digest": one.Digest,
			}
			if err := t.audit(one.Request, approvers.AuditShown, "", facts, p.Body); err != nil {
				return err
			}
			if cur.Posts > 1 {
				continue
			}
			if err := t.linkCard(one.Request); err != nil { // the asker's thread and notices link to the card as soon as there is one
				return err
			}
		}
		return nil
	})
}

// hashOf names one version of a surface.
func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Same reports whether Slack shows exactly this of a surface already. What has buttons is never the same: they name their version.
func Same(s store.Surface, body []byte) bool { return s.Hash != "" && s.Hash == hashOf(body) }

// StillShown records that nothing of what a surface shows has changed: s as it was read.
func (d *Desk) StillShown(ctx context.Context, s store.Surface) error {
	return d.update(ctx, "still shown", func(t *tx) error {
		cur, err := t.Surface(s.ID)
		if err != nil {
			return err
		}
		if cur.Shown = s.Want; cur.Want != s.Want {
			if err := t.showNow(cur); err != nil {
				return err
			}
			return t.PutSurface(cur)
		}
		cur.State = store.SurfaceShown
		if err := t.ClearTimer(store.TimerShow, s.ID); err != nil {
			return err
		}
		return t.PutSurface(cur)
	})
}

// linkCard has the step of a request and what people were told of it shown again, if it still waits.
func (t *tx) linkCard(request string) error {
	r, err := t.Request(request)
	if err != nil || r.State != approvers.Pending {
		return err
	}
	surfaces, err := t.SurfacesOf(request)
	if err != nil {
		return err
	}
	for _, s := range surfaces {
		if s.Kind != store.SurfaceNotice {
			continue
		}
		if err := t.changed(s); err != nil {
			return err
		}
	}
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	return t.changedTurn(r.Turn, store.SurfaceStep, call.Step)
}

// Expand turns a surface for a role or a group into one for each of its people who is not away, or for all where everybody is. Nobody to show
// it to counts as unreachable.
func (d *Desk) Expand(ctx context.Context, surface string, users []string) error {
	if len(users) == 0 {
		return d.Unreachable(ctx, surface, "nobody there can be written to")
	}
	return d.update(ctx, "expand", func(t *tx) error {
		s, err := t.Surface(surface)
		if err != nil {
			return err
		}
		if s.State == store.SurfaceExpanded {
			return t.ClearTimer(store.TimerShow, surface)
		}
		here, err := t.present(users)
		if err != nil {
			return err
		}
		for _, user := range here {
			if err := t.copyFor(s, user); err != nil {
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

// copyFor makes one person's copy of a surface. Somebody in several of a stage's roles gets one card.
func (t *tx) copyFor(s store.Surface, user string) error {
	one := store.Surface{Kind: s.Kind, Ref: s.Ref, Step: s.Step, Request: s.Request, To: toUser + user, Role: s.Role, Bundle: s.Bundle, Note: s.Note}
	surfaces, err := t.SurfacesOf(s.Ref)
	if err != nil {
		return err
	}
	for _, o := range surfaces {
		if o.To == one.To && o.Kind == s.Kind && o.Step == s.Step && o.Bundle == s.Bundle && o.Note == s.Note && !o.CreatedAt.Before(s.CreatedAt) {
			return nil
		}
	}
	return t.want(one)
}

// Gone records that a surface whose time is over is not shown any more.
func (d *Desk) Gone(ctx context.Context, surface string) error {
	return d.update(ctx, "gone", func(t *tx) error {
		s, err := t.Surface(surface)
		if err != nil {
			return err
		}
		s.State = store.SurfaceGone
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
