package workflow

import (
	"time"

	"countersign/approvers"
	"countersign/store"
)

// decisionTime is how long people had before them what somebody decided on. A place may have shown it before its stage
// came up: that does not count.
func decisionTime(r approvers.Request, shown, decided time.Time) time.Duration {
	if shown.IsZero() {
		return 0
	}
	if r.StageAt.After(shown) {
		shown = r.StageAt
	}
	return max(time.Millisecond, decided.Sub(shown)) // a click may come before it is recorded that Slack shows what was clicked
}

// since says of each request that an outbox message shows since when it has shown these arguments: since now, if the
// version before did not.
func (t *tx) since(s store.OutboxMessage, shows []store.Shown) ([]store.Shown, error) {
	if len(shows) == 0 {
		return nil, nil
	}
	var before store.Rendering
	if s.Posts > 0 {
		var err error
		if before, err = t.Rendering(s.ID, s.Posts); ignoreNotFound(err) != nil { // a Home's may be erased
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
