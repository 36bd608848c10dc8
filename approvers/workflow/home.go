package workflow

import (
	"context"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
	"countersign/store/jobs"
)

const (
	// homeWatched is how long the bot updates a Home tab after the person opened the tab. When this time is over, the
	// bot removes the tab's buttons and stops the updates. Without updates, a button could remain on the tab after its
	// item has ended.
	homeWatched = 30 * time.Minute
	// homeInterval is the shortest time between two updates of the Home tabs. Changes within this time are shown
	// together.
	homeInterval = time.Second
	// The interval between updates is homeInterval plus homeShare for each watched Home tab. So rendering Home tabs
	// takes only a part of the bot's working time, even if many tabs are watched.
	homeShare = 50 * time.Millisecond
	mostHomes = 10_000 // limits the Home tabs that are watched simultaneously
	// homeKept is the number of versions of a Home tab that the store keeps. The bot needs earlier versions, because a
	// person may click on a version that the bot has just replaced.
	homeKept = 8
)

// Open schedules an update of a Home tab that a person has opened. If the person chose another page of a list on the
// tab, part names the list, and page is the number of the page. user is the person's user id in Slack.
func (w *Homes) Open(ctx context.Context, inbox, user, part string, page int) error {
	return w.update(ctx, "open home", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		s, err := t.homes.homeOf(user)
		if err != nil {
			return err
		}
		next := store.Home{At: t.now, ViewHash: s.Home.ViewHash}
		if part != "" { // a tab that is opened again starts with the first page of each list
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
		return t.outbox.showNow(s)
	})
}

// homeOf reads the outbox message of a person's Home tab, or creates it.
func (t homesTx) homeOf(user string) (store.OutboxMessage, error) {
	list, err := t.OutboxMessagesOf(store.HomeRef(user))
	if err != nil || len(list) > 0 {
		return append(list, store.OutboxMessage{})[0], err
	}
	s := store.OutboxMessage{Kind: store.OutboxHome, Ref: store.HomeRef(user), To: store.ToUser + user, Home: &store.Home{}}
	if err := t.outbox.add(s); err != nil {
		return s, err
	}
	list, err = t.OutboxMessagesOf(store.HomeRef(user))
	return append(list, store.OutboxMessage{})[0], err
}

// followedByHomes schedules an update of the watched Home tabs if the transaction changed data that Home tabs show.
func (t homesTx) followedByHomes() error {
	if !t.showHomes {
		return nil
	}
	live, err := t.Timers(store.TimerHome, mostHomes)
	if err != nil || len(live) == 0 {
		return err
	}
	if _, err := t.Timer(store.TimerHomes, store.SettingHomes); err == nil {
		return nil // the update is scheduled already
	} else if store.IgnoreNotFound(err) != nil {
		return err
	}
	after := homeInterval + time.Duration(len(live))*homeShare
	return t.SetTimer(store.Timer{Kind: store.TimerHomes, Ref: store.SettingHomes, Due: t.now.Add(after), PutOff: t.now})
}

// The methods below write to the store's transaction. The methods also set showHomes if Home tabs show the record.

func (t *tx) PutRequest(r approvers.Request) error {
	t.showHomes = true
	return t.Tx.PutRequest(r)
}

func (t *tx) PutExecution(e approvers.Execution) error {
	t.showHomes = true
	return t.Tx.PutExecution(e)
}

func (t *tx) PutGrant(g approvers.Grant) error {
	t.showHomes = true
	return t.Tx.PutGrant(g)
}

func (t *tx) PutAbsence(a approvers.Absence) error {
	t.showHomes = true
	return t.Tx.PutAbsence(a)
}

func (t *tx) PutSetting(s store.Setting) error {
	t.showHomes = t.showHomes || s.Key == store.SettingPause
	return t.Tx.PutSetting(s)
}

// Refresh updates the watched Home tabs. The bot does not send a tab to Slack if its content is unchanged.
func (w *Homes) Refresh(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "refresh homes", func(t *tx) error {
		if _, still, err := jobs.Reread(t, timer); err != nil || !still {
			return err
		}
		if err := t.ClearTimer(timer.Kind, timer.Ref); err != nil {
			return err
		}
		return t.homes.eachHome(t.outbox.changed)
	})
}

// eachHome runs a callback for each watched Home tab.
func (t homesTx) eachHome(do func(store.OutboxMessage) error) error {
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

// EraseHomes erases the stored versions of the watched Home tabs, and returns the number of erased versions. The next
// update sends these Home tabs to Slack again, even if their content is unchanged.
func (t Tx) EraseHomes() (erased int, err error) {
	t.showHomes = true
	return erased, t.homes.eachHome(func(s store.OutboxMessage) error {
		n, err := t.EraseRenderings(s.ID, 0)
		if err != nil {
			return err
		}
		erased += n
		again := *s.Home
		again.ViewHash = ""
		s.Home = &again
		return t.PutOutboxMessage(s.KeepFromNow())
	})
}

// Idle empties a Home tab that the person has not opened for homeWatched: the tab then shows no requests.
func (w *Homes) Idle(ctx context.Context, timer store.Timer) error {
	return w.update(ctx, "idle home", func(t *tx) error {
		if _, still, err := jobs.Reread(t, timer); err != nil || !still {
			return err // the person has opened the tab again
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
		return t.outbox.changed(s)
	})
}

// Shown records that Slack shows a Home tab. s is the outbox message that was rendered, with the Slack view's id as TS.
// The parameter looks is a hash of the visible content and of the stages of the shown requests.
func (w *Homes) Shown(ctx context.Context, s store.OutboxMessage, p SentMessage, looks string) error {
	return w.update(ctx, "home shown", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		shows, err := t.outbox.setSince(cur, p.Shows)
		if err != nil {
			return err
		}
		home := *cur.Home
		home.ViewHash = looks
		cur.Home, cur.TS, cur.ShownRevision, cur.Hash, cur.LastError = &home, s.TS, s.Revision, view.HashOf(p.Body), ""
		cur.Posts++
		if s.Home.Idle { // this version shows no requests, so the store keeps no version of the tab
			if _, err := t.EraseRenderings(cur.ID, 0); err != nil {
				return err
			}
			return t.homes.settled(cur, s.Revision)
		}
		if s.Revision < cur.KeepFrom {
			home.ViewHash = "" // so that the bot sends and stores the next version, even if it is equal
			return t.homes.settled(cur, s.Revision)
		}
		if err := t.PutRendering(store.Rendering{OutboxMessage: cur.ID, Post: cur.Posts, Hash: cur.Hash, Shows: shows, Body: p.Body, At: t.now}); err != nil {
			return err
		}
		if cur.Posts > homeKept {
			if _, err := t.EraseRenderings(cur.ID, cur.Posts-homeKept+1); err != nil {
				return err
			}
		}
		return t.homes.settled(cur, s.Revision)
	})
}

// Unchanged records that a Home tab needs no update, because its new rendering equals the version in Slack. s is the
// outbox message that was rendered.
func (w *Homes) Unchanged(ctx context.Context, s store.OutboxMessage) error {
	return w.update(ctx, "home unchanged", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		cur.ShownRevision = s.Revision
		return t.homes.settled(cur, s.Revision)
	})
}

// settled records the delivery of a Home tab or of another outbox message. The parameter want is the revision that was
// delivered. If the content changed during the delivery, settled schedules the next delivery.
func (t homesTx) settled(cur store.OutboxMessage, want uint64) error {
	if cur.Revision != want {
		cur.State = store.OutboxWanted
		if err := t.outbox.showNow(cur); err != nil {
			return err
		}
		return t.PutOutboxMessage(cur)
	}
	cur.State = store.OutboxShown
	if err := t.outbox.shownAsWanted(cur); err != nil {
		return err
	}
	return t.PutOutboxMessage(cur)
}

// Refused records that Slack refused to show a Home tab. s is the outbox message that was rendered. The bot tries again
// when the person opens the tab.
func (w *Homes) Refused(ctx context.Context, s store.OutboxMessage, why string) error {
	return w.update(ctx, "home refused", func(t *tx) error {
		cur, err := t.OutboxMessage(s.ID)
		if err != nil {
			return err
		}
		cur.State, cur.LastError = store.OutboxUnreachable, why
		if err := t.ClearTimer(store.TimerHome, cur.ID); err != nil {
			return err
		}
		if _, err := t.EraseRenderings(cur.ID, 0); err != nil { // Erase would not find the texts of earlier versions
			return err
		}
		if err := t.outbox.shownAsWanted(cur); err != nil {
			return err
		}
		return t.PutOutboxMessage(cur)
	})
}
