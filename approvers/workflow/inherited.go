package workflow

import (
	"context"
	"errors"
	"sync"
	"time"

	"countersign/store"
)

// Before this process posts an outbox message, it must know whether another process may have posted the message without
// recording that. Such a message is searched for in Slack first, which costs calls that Slack limits. So when this
// process gets shares, it lists the messages that wait for delivery in them. Only these may have been posted by the
// earlier owner, because a message of which Slack shows the current version does not wait.

// inherited has, for each share of this process, the outbox messages that waited when the process got it.
type inherited struct {
	mu     sync.Mutex
	shares map[int]inheritance
}

// inheritance has the outbox messages that waited in a share.
type inheritance struct {
	listed   time.Time // by the clock of Replica.Since
	messages map[string]bool
}

// mostInherited limits how many messages of a rank are listed.
const mostInherited = 10_000

// inherit lists the outbox messages that wait in shares which this process has got. If there are too many, or they
// can't be read, the clocks decide: see Made.
func (w *Outbox) inherit(ctx context.Context, shares store.Shares) error {
	var lists map[int]inheritance
	err := w.Store.View(ctx, func(r store.Reader) error {
		lists = map[int]inheritance{}
		for share := range store.ShareCount {
			if shares.Has(share) {
				lists[share] = inheritance{listed: time.Now(), messages: map[string]bool{}}
			}
		}
		for _, rank := range store.Ranks {
			timers, err := r.TimersIn(shares, rank.Timer(), time.Time{}, mostInherited)
			if err != nil {
				return err
			}
			if len(timers) == mostInherited {
				clear(lists)
				return nil
			}
			for _, t := range timers {
				lists[t.Share()].messages[t.Ref] = true
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	if err == nil {
		w.inherited.put(lists)
	}
	return nil
}

func (i *inherited) put(lists map[int]inheritance) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shares == nil {
		i.shares = map[int]inheritance{}
	}
	for share, list := range lists {
		i.shares[share] = list
	}
}

// has reports whether a message waited when this process got its share. It knows this only if the list was made after
// the process got the share for the last time.
func (i *inherited) has(share int, since time.Time, message string) (waited, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	list, listed := i.shares[share]
	return list.messages[message], listed && list.listed.After(since)
}

// Made reports whether no other process can have posted an outbox message without recording that. Otherwise another
// process could do so until the time since, by the clock of this process; zero: until this process started.
func (w *Outbox) Made(s store.OutboxMessage) (made bool, since time.Time) {
	if store.IsAlone(w.Replica) {
		return s.Process == w.owner, since
	}
	share := store.Timer{Kind: s.Rank.Timer(), Ref: s.ID, Lane: s.To}.Share()
	since, ok := w.Replica.Since(share)
	if !ok {
		return false, time.Now()
	}
	if waited, known := w.inherited.has(share, since, s.ID); known {
		return !waited, since
	}
	after := since
	if s.Process != w.owner {
		after = since.Add(clocksDiffer)
	}
	return s.CreatedAt.After(after), since
}

// clocksDiffer is the greatest tolerated difference between the clocks of replicas.
const clocksDiffer = time.Minute
