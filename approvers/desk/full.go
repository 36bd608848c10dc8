package desk

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"countersign/store"
)

// room notes whether the disk below the store is full. As long as it is the agenda rests: what it would do could not be written down, so that a model would
// be asked, and messages posted, over and over for nothing. Deliveries are still tried, one by one: a small one may fit.
type room struct {
	mu    sync.Mutex
	since time.Time     // when a write was refused first; zero: there is room
	said  time.Time     // when the log said so last
	next  time.Time     // when it is looked again
	rest  time.Duration // and how long after that
	freed time.Time     // when there was room again
}

const (
	firstRest = time.Second
	lastRest  = 15 * time.Second
	sayAgain  = 5 * time.Minute
	tryRoom   = 64 << 10 // bytes: less than this is no room to work in
)

// Full says since when the disk below the store is full, as far as it is known; zero: it is not.
func (d *Desk) Full() time.Time {
	d.room.mu.Lock()
	defer d.room.mu.Unlock()
	return d.room.since
}

func (r *room) lacking() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.since.IsZero()
}

// lacks notes that a write was refused. Where that comes again soon after there was room, the next look waits longer.
func (d *Desk) lacks(err error) {
	r := &d.room
	r.mu.Lock()
	defer r.mu.Unlock()
	now := d.now()
	if r.since.IsZero() {
		r.since = now
		if r.rest == 0 || now.Sub(r.freed) > time.Minute {
			r.rest = firstRest
		}
		r.next = now.Add(r.rest)
	}
	if now.Sub(r.said) < sayAgain {
		return
	}
	r.said = now
	d.Log.Error("the disk is full: nothing is decided and nothing runs until there is space again. Free some; nothing needs to be started again", "since", r.since, "error", err)
}

// lookForRoom tries, when it is time, whether there is space again to write.
func (d *Desk) lookForRoom(ctx context.Context) error {
	r := &d.room
	now := d.now()
	r.mu.Lock()
	look := !r.since.IsZero() && (!now.Before(r.next) || r.next.Sub(now) > lastRest) // the clock was set back
	if look {
		r.rest = min(2*r.rest, lastRest)
		r.next = now.Add(r.rest)
	}
	r.mu.Unlock()
	if !look {
		return nil
	}
	for _, size := range []int{tryRoom, 0} { // what was taken up is given back within the file
		if err := d.fill(ctx, size); err != nil {
			if errors.Is(err, store.ErrFull) {
				return nil
			}
			return err
		}
	}
	r.mu.Lock()
	since := r.since
	r.since, r.said, r.freed = time.Time{}, time.Time{}, now
	r.mu.Unlock()
	d.Log.Info("there is space on the disk again, and everything goes on", "full since", since)
	d.Wake()
	return nil
}

// fill writes a setting of so many bytes, which nobody reads.
func (d *Desk) fill(ctx context.Context, size int) error {
	return d.update(ctx, "look for space", func(t *tx) error {
		s, err := t.Setting(store.SettingRoom)
		if ignoreNotFound(err) != nil {
			return err
		}
		s.Key, s.Value = store.SettingRoom, []byte(`"`+strings.Repeat("-", size)+`"`)
		return t.PutSetting(s)
	})
}
