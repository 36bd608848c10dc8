package desk

import (
	"context"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

const (
	// homeWatched is how long a Home tab follows what changes after somebody looked at it. Then it is shown without buttons: nobody looks, and no button of
	// what is over may stay there.
	homeWatched = 30 * time.Minute
	// homePace is how often Home tabs follow what changes, at most; whatever changes meanwhile is shown together.
	homePace = time.Second
	// homeShare is added to it for each Home tab that is looked at, so that drawing them never takes more than a part of the time.
	homeShare = 50 * time.Millisecond
	mostHomes = 10_000 // are followed at once
	// homeKept is how many versions of a Home tab are kept: somebody may click on one that is just being replaced.
	homeKept = 8
)

// homeRef is what the surface of a person's Home tab refers to.
func homeRef(user string) string { return store.SettingHomes + "/" + user }

// LookHome has somebody's Home tab shown as it is now, because they look at it. part and page say what they turned to, if anything; user is Slack's id.
func (d *Desk) LookHome(ctx context.Context, inbox, user, part string, page int) error {
	return d.update(ctx, "look home", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		s, err := t.homeOf(user)
		if err != nil {
			return err
		}
		next := store.Home{At: t.now, Looks: s.Home.Looks}
		if part != "" { // who opens it anew begins on the first pages
			others := slices.DeleteFunc(slices.Clone(s.Home.Pages), func(p store.HomePage) bool { return p.Part == part })
			next.Pages = append(others, store.HomePage{Part: part, Page: page})
		}
		s.Home, s.State, s.LastError = &next, store.SurfaceWanted, ""
		s.Want++
		if err := t.PutSurface(s); err != nil {
			return err
		}
		if err := t.SetTimer(store.Timer{Kind: store.TimerHome, Ref: s.ID, Due: t.now.Add(homeWatched)}); err != nil {
			return err
		}
		return t.showNow(s)
	})
}

// homeOf reads the surface of somebody's Home tab, or makes it.
func (t *tx) homeOf(user string) (store.Surface, error) {
	list, err := t.SurfacesOf(homeRef(user))
	if err != nil || len(list) > 0 {
		return append(list, store.Surface{})[0], err
	}
	s := store.Surface{Kind: store.SurfaceHome, Ref: homeRef(user), To: toUser + user, Home: &store.Home{}}
	if err := t.want(s); err != nil {
		return s, err
	}
	list, err = t.SurfacesOf(homeRef(user))
	return append(list, store.Surface{})[0], err
}

// followedByHomes has the Home tabs that people look at follow what a transaction changed, a moment later.
func (t *tx) followedByHomes() error {
	if !t.homes {
		return nil
	}
	live, err := t.Timers(store.TimerHome, mostHomes)
	if err != nil || len(live) == 0 {
		return err
	}
	if _, err := t.Timer(store.TimerHomes, store.SettingHomes); err == nil {
		return nil // it is about to
	} else if ignoreNotFound(err) != nil {
		return err
	}
	after := homePace + time.Duration(len(live))*homeShare
	return t.SetTimer(store.Timer{Kind: store.TimerHomes, Ref: store.SettingHomes, Due: t.now.Add(after)})
}

// The changes that Home tabs show.

func (t *tx) PutRequest(r approvers.Request) error {
	t.homes = true
	return t.Tx.PutRequest(r)
}

func (t *tx) PutExecution(e approvers.Execution) error {
	t.homes = true
	return t.Tx.PutExecution(e)
}

func (t *tx) PutGrant(g approvers.Grant) error {
	t.homes = true
	return t.Tx.PutGrant(g)
}

func (t *tx) PutAbsence(a approvers.Absence) error {
	t.homes = true
	return t.Tx.PutAbsence(a)
}

func (t *tx) PutSetting(s store.Setting) error {
	t.homes = t.homes || s.Key == store.SettingPause
	return t.Tx.PutSetting(s)
}

// FreshenHomes has the Home tabs that people look at shown as things are now. One that would look the same is not sent to Slack again.
func (d *Desk) FreshenHomes(ctx context.Context, timer store.Timer) error {
	return d.update(ctx, "freshen homes", func(t *tx) error {
		if _, still, err := asRead(t, timer); err != nil || !still {
			return err
		}
		if err := t.ClearTimer(timer.Kind, timer.Ref); err != nil {
			return err
		}
		return t.eachHome(t.changed)
	})
}

// eachHome goes through the Home tabs that people look at.
func (t *tx) eachHome(do func(store.Surface) error) error {
	live, err := t.Timers(store.TimerHome, mostHomes)
	if err != nil {
		return err
	}
	for _, l := range live {
		s, err := t.Surface(l.Ref)
		if err != nil {
			return err
		}
		if err := do(s); err != nil {
			return err
		}
	}
	return nil
}

// RestHome takes the buttons off a Home tab that nobody has looked at for a while.
func (d *Desk) RestHome(ctx context.Context, timer store.Timer) error {
	return d.update(ctx, "rest home", func(t *tx) error {
		if _, still, err := asRead(t, timer); err != nil || !still {
			return err // they have looked again
		}
		s, err := t.Surface(timer.Ref)
		if err != nil {
			return err
		}
		next := *s.Home
		next.Rests, next.Pages = true, nil
		s.Home = &next
		if err := t.PutSurface(s); err != nil {
			return err
		}
		s.Version++
		if err := t.ClearTimer(timer.Kind, timer.Ref); err != nil {
			return err
		}
		return t.changed(s)
	})
}

// HomeShown records that Slack shows a Home tab: s as it was read, with the view as TS. looks is the hash of how it looks.
func (d *Desk) HomeShown(ctx context.Context, s store.Surface, p Posted, looks string) error {
	return d.update(ctx, "home shown", func(t *tx) error {
		cur, err := t.Surface(s.ID)
		if err != nil {
			return err
		}
		shows, err := t.since(cur, p.Shows)
		if err != nil {
			return err
		}
		home := *cur.Home
		home.Looks = looks
		cur.Home, cur.TS, cur.Shown, cur.Hash, cur.LastError = &home, s.TS, s.Want, hashOf(p.Body), ""
		cur.Posts++
		if err := t.PutRendering(store.Rendering{Surface: cur.ID, Post: cur.Posts, Hash: cur.Hash, Shows: shows, Body: p.Body, At: t.now}); err != nil {
			return err
		}
		keep := uint64(homeKept)
		if s.Home.Rests {
			keep = 1 // there is nothing left to click
		}
		if cur.Posts > keep {
			if _, err := t.EraseRenderings(cur.ID, cur.Posts-keep+1); err != nil {
				return err
			}
		}
		return t.settled(cur, s.Want)
	})
}

// HomeSame records that a Home tab would look as Slack shows it already: s as it was read.
func (d *Desk) HomeSame(ctx context.Context, s store.Surface) error {
	return d.update(ctx, "home same", func(t *tx) error {
		cur, err := t.Surface(s.ID)
		if err != nil {
			return err
		}
		cur.Shown = s.Want
		return t.settled(cur, s.Want)
	})
}

// settled ends the showing of a surface as it was wanted then, or has it go on where something changed meanwhile.
func (t *tx) settled(cur store.Surface, want uint64) error {
	if cur.Want != want {
		cur.State = store.SurfaceWanted
		if err := t.showNow(cur); err != nil {
			return err
		}
		return t.PutSurface(cur)
	}
	cur.State = store.SurfaceShown
	if err := t.shownAsWanted(cur); err != nil {
		return err
	}
	return t.PutSurface(cur)
}

// HomeRefused records that Slack will not show somebody's Home tab: s as it was read. It is tried again when they look.
func (d *Desk) HomeRefused(ctx context.Context, s store.Surface, why string) error {
	return d.update(ctx, "home refused", func(t *tx) error {
		cur, err := t.Surface(s.ID)
		if err != nil {
			return err
		}
		cur.State, cur.LastError = store.SurfaceUnreachable, why
		if err := t.ClearTimer(store.TimerHome, cur.ID); err != nil {
			return err
		}
		if err := t.shownAsWanted(cur); err != nil {
			return err
		}
		return t.PutSurface(cur)
	})
}
