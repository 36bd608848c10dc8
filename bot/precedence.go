package bot

import (
	"context"

	"countersign/store"
)

// precedence says which calls go first where Slack does not take all of them at once.
type precedence int

// The precedences. A call for which none was set is plain.
const (
	urgent precedence = iota // somebody waits for it: forms, and what is asked or answered because of a click
	first                    // what must not wait: critical cards and the like
	plain
	last // what only tells people something
	precedences
)

// rankPrecedence gives surfaces' ranks their precedence.
var rankPrecedence = map[store.Rank]precedence{store.RankFirst: first, store.RankPlain: plain, store.RankLast: last}

// errand is what a call is made for.
type errand struct {
	precedence
	again bool // it was put off before, and has its turn now
	probe bool // it only looks whether Slack answers
}

type errandKey struct{}

// withErrand notes for what the calls under a context are made.
func withErrand(ctx context.Context, e errand) context.Context {
	return context.WithValue(ctx, errandKey{}, e)
}

// dueFor notes that the calls under a context are made because a timer is due.
func dueFor(ctx context.Context, p precedence, t store.Timer) context.Context {
	return withErrand(ctx, errand{precedence: p, again: t.Tries > 0})
}

// errandOf is for what a call is made.
func errandOf(ctx context.Context) errand {
	if e, ok := ctx.Value(errandKey{}).(errand); ok {
		return e
	}
	return errand{precedence: plain}
}
