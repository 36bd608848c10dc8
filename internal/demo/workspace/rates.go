package workspace

import (
	"sync"
	"time"
)

// Slack allows one post per second in a channel, with short bursts, and "several hundred" posts per minute in a
// workspace. Slack does not document the length of a burst and the exact limit of the workspace, so these values are
// our own.
const (
	postEvery   = time.Second
	postBurst   = 5
	postsMinute = 300
)

// rates enforces Slack's published limits if it is enabled. Each method has a number of calls per minute. For
// chat.postMessage, rates also enforces one call per second in each channel.
type rates struct {
	mu    sync.Mutex
	on    bool
	calls map[string][]time.Time // calls of the last minute, by method
	posts map[string]time.Time   // by channel: the time at which the posts so far no longer count against the limit of one per second
}

func newRates(on bool) *rates {
	return &rates{on: on, calls: map[string][]time.Time{}, posts: map[string]time.Time{}}
}

func (r *rates) set(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = on
	clear(r.calls)
	clear(r.posts)
}

// wait returns the seconds that a call has to wait. If wait returns 0, the call is accepted and counted.
func (r *rates) wait(method string, limit tier, channel string, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on {
		return 0
	}
	paid := r.posts[channel]
	if method == "chat.postMessage" {
		if paid.Before(now) {
			paid = now
		}
		if ahead := paid.Sub(now) - (postBurst-1)*postEvery; ahead > 0 {
			return seconds(ahead)
		}
		limit = postsMinute
	}
	recent := r.calls[method]
	for len(recent) > 0 && now.Sub(recent[0]) >= time.Minute {
		recent = recent[1:]
	}
	r.calls[method] = recent
	if len(recent) >= int(limit) {
		return seconds(time.Minute - now.Sub(recent[0]))
	}
	r.calls[method] = append(recent, now)
	if method == "chat.postMessage" {
		r.posts[channel] = paid.Add(postEvery)
	}
	return 0
}

// The function "seconds" returns whole seconds for Retry-After.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

func (r *rates) active() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.on
}
