package workflow

import (
	"time"

	"countersign/approvers"
	"countersign/store"
)

// decisionTime returns how long the people of a stage could see a request before somebody decided it. The time before
// the stage began does not count.
func decisionTime(r approvers.Request, shown, decided time.Time) time.Duration {
	if shown.IsZero() {
		return 0
	}
	if r.StageAt.After(shown) {
		shown = r.StageAt
	}
	return max(time.Millisecond, decided.Sub(shown)) // the click may be recorded before the message that was clicked
}

// since sets, for each request that an outbox message shows, the time since when it has shown this digest: the time of
// the previous version if that showed the same digest, otherwise now.
func (t outboxTx) since(s store.OutboxMessage, shows []store.Shown) ([]store.Shown, error) {
	if len(shows) == 0 {
		return nil, nil
	}
	var before store.Rendering
	if s.Posts > 0 {
		var err error
		if before, err = t.Rendering(s.ID, s.Posts); store.IgnoreNotFound(err) != nil { // a Home tab's versions may be erased
			return nil, err
		}
	}
	out := make([]store.Shown, len(shows))
	for i, one := range shows {
		one.Since = t.now
		if was := before.Of(one.Request); was.Digest == one.Digest {
			one.Since = was.Since
		}
		out[i] = one
	}
	return out, nil
}
