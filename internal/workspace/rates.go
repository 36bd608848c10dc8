package workspace

import (
	"sync"
	"time"
)

// rates enforces Slack's published limits when it is switched on: a method's calls a
// minute, and for chat.postMessage one a second in each channel.
type rates struct {
	mu    sync.Mutex
	on    bool
	calls map[string][]time.Time // the last minute's, by method
	posts map[string]time.Time   // the last post, by channel
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

// wait is how many seconds a call has to wait; 0 lets it pass and counts it.
func (r *rates) wait(method string, limit tier, channel string, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on {
		return 0
	}
	if method == "chat.postMessage" {
		if since := now.Sub(r.posts[channel]); since < time.Second {
			return 1
		}
		limit = 300 // "several hundred a minute" in a workspace
	}
	recent := r.calls[method]
	for len(recent) > 0 && now.Sub(recent[0]) >= time.Minute {
		recent = recent[1:]
	}
	r.calls[method] = recent
	if len(recent) >= int(limit) {
		wait := time.Minute - now.Sub(recent[0])
		return int((wait + time.Second - 1) / time.Second)
	}
	r.calls[method] = append(recent, now)
	if method == "chat.postMessage" {
		r.posts[channel] = now
	}
	return 0
}

func (r *rates) active() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.on
}
