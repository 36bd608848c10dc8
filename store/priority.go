package store

import "context"

// lowPriorityKey is the context key of WithLowPriority.
type lowPriorityKey struct{}

// WithLowPriority returns a context for transactions that nobody waits for. If transactions wait for each other, such a
// transaction lets most others pass.
func WithLowPriority(ctx context.Context) context.Context {
	return context.WithValue(ctx, lowPriorityKey{}, true)
}

// HasLowPriority reports whether WithLowPriority returned the context, or a context from which this context is derived.
func HasLowPriority(ctx context.Context) bool { return ctx.Value(lowPriorityKey{}) != nil }
