package directory

import (
	"context"
	"sync"
	"time"

	"countersign/bot/slackapi"
)

// Cache keeps values for a limited time. Callers of Get share requests. For each key, one request is under way at a
// time, and at most one other request waits until the first one has ended. Cache is safe for concurrent use.
type Cache[T any] struct {
	now      func() time.Time
	keep     time.Duration
	patience time.Duration // how long a fresh request may wait for its turn within Slack's rate limit
	mu       sync.Mutex
	entries  map[string]cacheEntry[T]
	requests map[string]*request[T] // by key: the newest request that has not ended
	era      uint64                 // increases with each forget; an answer that was requested before the last forget is not cached
}

type cacheEntry[T any] struct {
	v     T
	until time.Time
}

// request is a request for the value of a key. The fields begun, ended and era are protected by Cache.mu. The fields v,
// err and left are set before done is closed.
type request[T any] struct {
	begun bool   // Slack may already have read the data for its answer
	ended bool   // done is closed, or is about to be closed
	era   uint64 // the value of Cache.era when the request began
	done  chan struct{}
	v     T
	err   error
	left  bool // the caller that made the request has given up, so the other callers get no result
}

func NewCache[T any](now func() time.Time, keep time.Duration) *Cache[T] {
	return &Cache[T]{now: now, keep: keep, entries: map[string]cacheEntry[T]{}, requests: map[string]*request[T]{}}
}

// maxCacheEntries limits the size of a cache.
const maxCacheEntries = 10_000

// Get returns the value of a key. If fresh is not set, Get returns the cached value, or the result of a request that is
// under way. If fresh is set, Get returns only the result of a request that began after the call to Get. So Get waits
// until the request that is under way has ended, and calls ask then. All calls to Get that arrive in the meantime share
// the result, and also the error.
func (m *Cache[T]) Get(ctx context.Context, key string, fresh bool, ask func() (T, error)) (v T, err error) {
	for {
		m.mu.Lock()
		if cached, ok := m.live(key); ok && !fresh {
			m.mu.Unlock()
			return cached, nil
		}
		r := m.requests[key]
		if r == nil || r.begun && (fresh || r.era != m.era) {
			before := r
			r = &request[T]{done: make(chan struct{})}
			m.requests[key] = r
			m.mu.Unlock()
			m.lead(ctx, key, r, before, fresh, ask)
			return r.v, r.err
		}
		m.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return v, ctx.Err()
		}
		if !r.left {
			return r.v, r.err
		}
	}
}

// lead makes the request r. If before is not nil, lead first waits until this earlier request for the same key has
// ended. If the rate limit puts a fresh request off for a short time, lead waits for this time. More callers can share
// the request until it begins.
func (m *Cache[T]) lead(ctx context.Context, key string, r, before *request[T], fresh bool, ask func() (T, error)) {
	defer close(r.done)
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		r.ended = true
		switch {
		case m.requests[key] != r:
		case before != nil && !before.ended: // r gave up before its turn
			m.requests[key] = before
		default:
			delete(m.requests, key)
		}
	}()
	r.left = true // r.left stays true if ask panics
	if before != nil {
		select {
		case <-before.done:
		case <-ctx.Done():
			r.err = ctx.Err()
			return
		}
	}
	for waited := time.Duration(0); ; {
		m.begin(r, true)
		r.v, r.err = ask()
		r.left = r.err != nil && ctx.Err() != nil
		delay := slackapi.RetryDelay(r.err)
		if waited += delay; !fresh || delay == 0 || waited > m.patience {
			break
		}
		m.begin(r, false) // the call was not made, or Slack refused it
		if err := slackapi.Sleep(ctx, delay); err != nil {
			r.err, r.left = err, true
			return
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.err == nil && m.era == r.era {
		m.store(key, r.v)
	}
}

// begin records whether a request has begun. If Slack's rate limit stops the request, begun is false, and the request is
// tried again later.
func (m *Cache[T]) begin(r *request[T], begun bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.begun, r.era = begun, m.era
}

// store caches a value. The caller holds the lock.
func (m *Cache[T]) store(key string, v T) {
	if len(m.entries) >= maxCacheEntries {
		clear(m.entries)
	}
	m.entries[key] = cacheEntry[T]{v, m.now().Add(m.keep)}
}

// put caches a value that the caller knows.
func (m *Cache[T]) put(key string, v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store(key, v)
}

// live returns a value that has not expired. The caller holds the lock.
func (m *Cache[T]) live(key string) (v T, ok bool) {
	h, ok := m.entries[key]
	if !ok || !m.now().Before(h.until) {
		return v, false
	}
	return h.v, true
}

// peek returns a value that has not expired.
func (m *Cache[T]) peek(key string) (v T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live(key)
}

// forget drops one key, or all keys if key is empty.
func (m *Cache[T]) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.era++
	if key == "" {
		clear(m.entries)
		return
	}
	delete(m.entries, key)
}
