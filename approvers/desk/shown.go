package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"

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
	d.slack.saw(s.TS)
	return d.update(ctx, "shown", func(t *tx) error {
		cur, err := t.Surface(s.ID)
		if err != nil {
			return err
		}
		lost := cur.Round != s.Round // Slack showed it for a moment: it has vanished since
		moved := !lost && cur.TS != s.TS
		if !lost {
			cur.Channel, cur.TS, cur.Shown, cur.Hash, cur.LastError, cur.Insist, cur.Old = s.Channel, s.TS, s.Want, hash, "", false, ""
			cur.Drafted = false
			cur.Step = s.Step // of the heads: which one
		}
		shows, err := t.since(cur, p.Shows)
		if err != nil {
			return err
		}
		cur.Posts++
		switch {
		case lost:
		case cur.Want == s.Want:
			cur.State = store.SurfaceShown
			err = t.shownAsWanted(cur)
		default: // whatever became of it meanwhile: Slack takes what is meant for it
			cur.State = store.SurfaceWanted
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
			if !moved {
				continue
			}
			if err := t.linkCard(one.Request); err != nil { // the asker's thread and notices link to the card as soon as there is one
				return err
			}
		}
		if moved {
			if err := t.postedIn(cur); err != nil {
				return err
			}
		}
		return t.goneBefore(s.Channel, s.TS)
	})
}

// goneBefore finds out whether Slack has told that a message is gone before it was recorded that there is one.
func (t *tx) goneBefore(channel, ts string) error {
	gone, err := t.deleted(channel, ts)
	if err != nil || !gone {
		return err
	}
	return t.lost(channel, ts)
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
		if cur.Round != s.Round {
			return nil // it has vanished since
		}
		cur.Shown = s.Want
		return t.settled(cur, s.Want)
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
	if err := t.changedEarlier(r); err != nil {
		return err
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
		return d.Unreachable(ctx, surface, "nobody there can be written to", "")
	}
	return d.update(ctx, "expand", func(t *tx) error {
		s, err := t.Surface(surface)
		if err != nil {
			return err
		}
		if s.State == store.SurfaceExpanded {
			return t.shownAsWanted(s)
		}
		told := users
		if s.Note != store.NoteGlass { // of that whoever is away is told too
			if told, err = t.present(users); err != nil {
				return err
			}
		}
		for _, user := range told {
			if err := t.copyFor(s, user); err != nil {
				return err
			}
		}
		s.State = store.SurfaceExpanded
		if err := t.PutSurface(s); err != nil {
			return err
		}
		return t.shownAsWanted(s)
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

// Gone records that a surface whose time is over is not shown any more: s as it was read. One that has something to show since is posted anew.
func (d *Desk) Gone(ctx context.Context, s store.Surface) error {
	return d.update(ctx, "gone", func(t *tx) error {
		cur, err := t.Surface(s.ID)
		if err != nil {
			return err
		}
		if cur.State == store.SurfaceGone {
			return t.shownAsWanted(cur)
		}
		cur.TS = ""
		if cur.Want != s.Want {
			if err := t.PutSurface(cur); err != nil {
				return err
			}
			return t.showNow(cur)
		}
		cur.State = store.SurfaceGone
		if err := t.PutSurface(cur); err != nil {
			return err
		}
		return t.shownAsWanted(cur)
	})
}

// Unreachable gives a surface up that Slack refused for good. It is shown elsewhere where that helps, and the operator is told. lost is the place that
// the bot lost, if that is the cause; empty: it is another. Of a place the operator is told once, until the bot is back.
func (d *Desk) Unreachable(ctx context.Context, surface, cause, lost string) error {
	return d.update(ctx, "unreachable", func(t *tx) error {
		s, err := t.Surface(surface)
		if errors.Is(err, store.ErrNotFound) {
			for _, kind := range store.ShowTimers {
				if err := t.ClearTimer(kind, surface); err != nil {
					return err
				}
			}
			return nil
		}
		if err != nil {
			return err
		}
		if s.State == store.SurfaceUnreachable {
			if s.Old == "" {
				return t.shownAsWanted(s)
			}
			s.Old = "" // it is deleted, or stays
			return errors.Join(t.PutSurface(s), t.shownAsWanted(s))
		}
		if lost != "" {
			return errors.Join(t.placeLost(lost, cause, true), t.moveAway(lost, s, cause))
		}
		t.note(slog.LevelError, "Slack refused this for good; mend it there or in the policy", "surface", string(s.Kind), "to", s.To, "request", s.Request, "cause", cause)
		return t.giveUp(s, cause)
	})
}
