package workflow

import (
	"context"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
	"countersign/store/jobs"
)

const (
	// homeWatched is how long a Home tab follows what changes after somebody looked at it. Then it is shown without
	// buttons: nobody looks, and no button of what is over may stay there.
	homeWatched = 30 * time.Minute
	// homeInterval is how often Home tabs follow what changes, at most; whatever changes meanwhile is shown together.
	homeInterval = time.Second
	// homeShare is added to it for each Home tab that is looked at, so that drawing them never takes more than a part of
	// the time.
	homeShare = 50 * time.Millisecond
	mostHomes = 10_000 // are followed at once
	// homeKept is how many versions of a Home tab are kept: somebody may click on one that is just being replaced.
	homeKept = 8
)

// homeRef is what the outbox message of a person's Home tab refers to.
func homeRef(user string) string { return store.SettingHomes + "/" + user }

// OpenHome has somebody's Home tab shown as it is now, because they look at it. part and page say what they turned to,
// if anything; user is Slack's id.
func (w *Workflow) OpenHome(ctx context.Context, inbox, user, part string, page int) error {
	return w.update(ctx, "open home", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		s, err := t.homeOf(user)
		if err != nil {
			return err
		}
		next := store.Home{At: t.now, ViewHash: s.Home.ViewHash}
		if part != "" { // who opens it anew begins on the first pages
			others := slices.DeleteFunc(slices.Clone(s.Home.Pages), func(p store.HomePage) bool { return p.Part == part })
			next.Pages = append(others, store.HomePage{Part: part, Page: page})
		}
		s.Home, s.State, s.LastError = &next, store.OutboxWanted, ""
		s.Revision++
		if err := t.PutOutboxMessage(s); err != nil {
			return err
		}
		if err := t.SetTimer(store.Timer{Kind: store.TimerHome, Ref: s.ID, Due: t.now.Add(homeWatched)}); err != nil {
			return err
		}
		return t.showNow(s)
	})
}

// homeOf reads the outbox message of somebody's Home tab, or makes it.
func (t *tx) homeOf(user string) (store.OutboxMessage, error) {
	list, err := t.OutboxMessagesOf(homeRef(user))
	if err != nil || len(list) > 0 {
		return append(list, store.OutboxMessage{})[0], err
	}
	s := store.OutboxMessage{Kind: store.OutboxHome, Ref: homeRef(user), To: toUser + user, Home: &store.Home{}}
	if err := t.newOutboxMessage(s); err != nil {
		return s, err
	}
	list, err = t.OutboxMessagesOf(homeRef(user))
	return append(list, store.OutboxMessage{})[0], err
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
	after := homeInterval + time.Duration(len(live))*homeShare
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

// RefreshHomes has the Home tabs that people look at shown as things are now. One that would look the same is not sent
// to Slack again.
func (w *Workflow) RefreshHomes(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "refresh homes", func(t *tx) error {
		if _, still, err := jobs.Reread(t, timer); err != nil || !still {
			return err
		}
		if err := t.ClearTimer(timer.Kind, timer.Ref); err != nil {
			return err
		}
		return t.eachHome(t.changed)
	})
}

// eachHome goes through the Home tabs that people look at.
func (t *tx) eachHome(do func(store.OutboxMessage) error) error {
	live, err := t.Timers(store.TimerHome, mostHomes)
	if err != nil {
		return err
	}
	for _, l := range live {
		s, err := t.OutboxMessage(l.Ref)
		if err != nil {
			return err
		}
		if err := do(s); err != nil {
			return err
		}
	}
	return nil
}

// IdleHome takes the buttons off a Home tab that nobody has looked at for a while.
func (w *Workflow) IdleHome(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "idle home", func(t *tx) error {
		if _, still, err := jobs.Reread(t, timer); err != nil || !still {
			return err // they have looked again
		}
		s, err := t.OutboxMessage(timer.Ref)
		if err != nil {
			return err
		}
		next := *s.Home
		next.Idle, next.Pages = true, nil
		s.Home = &next
		if err := t.PutOutboxMessage(s); err != nil {
			return err
		}
		s.Version++
		if err := t.ClearTimer(timer.Kind, timer.Ref); err != nil {
			return err
		}
		return t.changed(s)
	})
}

// HomeShown records that Slack shows a Home tab: s as it was read, with the view as TS. looks is the hash of how it
// looks.
func (w *Workflow) HomeShown(ctx context.Context, s store.OutboxMessage, p SentMessage, looks string) error {
	return w.update(ctx, "home shown", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		shows, err := t.since(cur, p.Shows)
		if err != nil {
			return err
		}
		home := *cur.Home
		home.ViewHash = looks
		cur.Home, cur.TS, cur.ShownRevision, cur.Hash, cur.LastError = &home, s.TS, s.Revision, hashOf(p.Body), ""
		cur.Posts++
		if err := t.PutRendering(store.Rendering{OutboxMessage: cur.ID, Post: cur.Posts, Hash: cur.Hash, Shows: shows, Body: p.Body, At: t.now}); err != nil {
			return err
		}
		keep := uint64(homeKept)
		if s.Home.Idle {
			keep = 1 // there is nothing left to click
		}
		if cur.Posts > keep {
			if _, err := t.EraseRenderings(cur.ID, cur.Posts-keep+1); err != nil {
				return err
			}
		}
		return t.settled(cur, s.Revision)
	})
}

// HomeUnchanged records that a Home tab would look as Slack shows it already: s as it was read.
func (w *Workflow) HomeUnchanged(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "home unchanged", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		cur.ShownRevision = s.Revision
		return t.settled(cur, s.Revision)
	})
}

// settled ends the showing of an outbox message as it was wanted then, or has it go on where something changed
// meanwhile.
func (t *tx) settled(cur store.OutboxMessage, want uint64) error {
	if cur.Revision != want {
		cur.State = store.OutboxWanted
		if err := t.showNow(cur); err != nil {
			return err
		}
		return t.PutOutboxMessage(cur)
	}
	cur.State = store.OutboxShown
	if err := t.shownAsWanted(cur); err != nil {
		return err
	}
	return t.PutOutboxMessage(cur)
}

// HomeRefused records that Slack will not show somebody's Home tab: s as it was read. It is tried again when they look.
func (w *Workflow) HomeRefused(ctx context.Context, s store.OutboxMessage, why string) error {
	return w.update(ctx, "home refused", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		cur.State, cur.LastError = store.OutboxUnreachable, why
		if err := t.ClearTimer(store.TimerHome, cur.ID); err != nil {
			return err
		}
		if err := t.shownAsWanted(cur); err != nil {
			return err
		}
		return t.PutOutboxMessage(cur)
	})
}
