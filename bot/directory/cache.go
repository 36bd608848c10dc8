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
	era     uint64 // increases with each forget; an answer that was requested before the last forget is not cached
}

type cacheEntry[T any] struct {
	v     T
	until time.Time
}

func NewCache[T any](now func() time.Time, keep time.Duration) *Cache[T] {
	return &Cache[T]{now: now, keep: keep, entries: map[string]cacheEntry[T]{}}
}

// maxCacheEntries limits the size of a cache.
const maxCacheEntries = 10_000

func (m *Cache[T]) Get(key string, fresh bool, ask func() (T, error)) (T, error) {
	m.mu.Lock()
	h, ok := m.entries[key]
	era := m.era
	m.mu.Unlock()
	if ok && !fresh && m.now().Before(h.until) {
		return h.v, nil
	}
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

// peek returns a value that has not expired.
func (m *Cache[T]) peek(key string) (v T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.entries[key]
	if !ok || !m.now().Before(h.until) {
		return v, false
	}
	return h.v, true
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
