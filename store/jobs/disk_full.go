package jobs

import (
	"context"
	"strings"
	"sync"
	"time"

	"countersign/store"
)

// diskSpace tracks whether the store's disk is full. While the disk is full, the runner starts no handler, because a
// handler could not store its result. Each retry would then repeat the handler's model calls and Slack posts. The bot
// still accepts deliveries from Slack if there is enough space for their rows.
type diskSpace struct {
	mu      sync.Mutex
	since   time.Time     // when a write first found the disk full; zero: the disk has space
	logged  time.Time     // when a full disk was last logged
	next    time.Time     // when the next probe is due
	backoff time.Duration // delay before the next probe
	freed   time.Time     // when a probe last found that the disk is not full any more
}

const (
	firstProbe = time.Second
	lastProbe  = 15 * time.Second
	probeBytes = 64 << 10 // the number of bytes that must be free before work continues
)

// Full returns the time at which a write first found the disk full. If the time is zero, no write has found the disk
// full, or a probe has found free space since then.
func (r *Runner) Full() time.Time {
	r.diskSpace.mu.Lock()
	defer r.diskSpace.mu.Unlock()
	return r.diskSpace.since
}

func (d *diskSpace) isFull() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.since.IsZero()
}

// NoteFull records that a write failed because the disk is full. If the disk was full less than a minute ago, the delay
// between probes continues to grow from its last value.
func (r *Runner) NoteFull(err error) {
	d := &r.diskSpace
	d.mu.Lock()
	defer d.mu.Unlock()
	now := r.Now()
	if d.since.IsZero() {
		d.since = now
		if d.backoff == 0 || now.Sub(d.freed) > time.Minute {
			d.backoff = firstProbe
		}
		d.next = now.Add(d.backoff)
	}
	if now.Sub(d.logged) < sayAgain {
		return
	}
	d.logged = now
	r.Log.Error("the disk is full: nothing is decided and nothing runs until there is space again. Free some space; no restart is needed", "since", d.since, "error", err)
}

// probeDisk tries to write if a probe is due.
func (r *Runner) probeDisk(ctx context.Context) error {
	d := &r.diskSpace
	now := r.Now()
	d.mu.Lock()
	look := !d.since.IsZero() && (!now.Before(d.next) || d.next.Sub(now) > lastProbe) // the second condition is for a clock that was set back
	if look {
		d.backoff = min(2*d.backoff, lastProbe)
		d.next = now.Add(d.backoff)
	}
	d.mu.Unlock()
	if !look {
		return nil
	}
	for _, size := range []int{probeBytes, 0} { // the second write replaces the first value by an empty value, and so frees the space in the file
		if err := r.writeProbe(ctx, size); err != nil {
			if store.Refused(err) { // the disk is still full, or the file is being moved to another disk
				return nil
			}
			return err
		}
	}
	d.mu.Lock()
	since := d.since
	d.since, d.logged, d.freed = time.Time{}, time.Time{}, now
	d.mu.Unlock()
	r.Log.InfoContext(ctx, "there is space on the disk again, and the bot continues", "since", since)
	r.Wake()
	return nil
}

// writeProbe writes a setting of the given size. No code uses the value of this setting.
func (r *Runner) writeProbe(ctx context.Context, size int) error {
	return r.Update(ctx, "look for space", func(t store.Tx, _ time.Time) error {
		s, err := t.Setting(store.SettingDiskSpace)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		s.Key, s.Value = store.SettingDiskSpace, []byte(`"`+strings.Repeat("-", size)+`"`)
		return t.PutSetting(s)
	})
}
