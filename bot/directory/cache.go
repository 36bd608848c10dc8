package directory

import (
	"sync"
	"time"
)

// Cache keeps values for a limited time.
type Cache[T any] struct {
	now     func() time.Time
	keep    time.Duration
	mu      sync.Mutex
	entries map[string]cacheEntry[T]
	asking  map[string]chan struct{} // by key: closed when the current request for the key's value has ended
	era     uint64                   // increases with each forget; an answer that was requested before the last forget is not cached
}

type cacheEntry[T any] struct {
	v     T
	until time.Time
}

func NewCache[T any](now func() time.Time, keep time.Duration) *Cache[T] {
	return &Cache[T]{now: now, keep: keep, entries: map[string]cacheEntry[T]{}, asking: map[string]chan struct{}{}}
}

// maxCacheEntries limits the size of a cache.
const maxCacheEntries = 10_000

// Get returns the value of a key. If the value is not cached, or fresh is set, Get requests it with ask. Calls without
// fresh wait for each other, so that they make one request together. If the request fails, each of them makes its own.
func (m *Cache[T]) Get(key string, fresh bool, ask func() (T, error)) (T, error) {
	m.mu.Lock()
	if !fresh {
		v, ok := m.live(key)
		if other := m.asking[key]; !ok && other != nil {
			m.mu.Unlock()
			<-other
			m.mu.Lock()
			v, ok = m.live(key)
		}
		if ok {
			m.mu.Unlock()
			return v, nil
		}
	}
	era, done := m.era, make(chan struct{})
	m.asking[key] = done
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.asking[key] == done {
			delete(m.asking, key)
		}
		close(done)
	}()
	v, err := ask()
	if err != nil {
		return v, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.era == era {
		if len(m.entries) >= maxCacheEntries {
			clear(m.entries)
		}
		m.entries[key] = cacheEntry[T]{v, m.now().Add(m.keep)}
	}
	return v, nil
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
