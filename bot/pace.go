package bot

import (
	"slices"
	"strings"
	"time"
)

// meter counts calls against a limit. What is ranked lower leaves a part of it to what goes before it, so that a card never finds all of it used up by
// answers.
type meter interface {
	// wait is how long it is until a call may be made; zero or less: it may be made now.
	wait(now time.Time, p precedence) time.Duration
	// take counts a call.
	take(at time.Time)
	// spacing is how far apart calls are that wait for one another.
	spacing(p precedence) time.Duration
}

// bucket is a limit of one call in a while, after a short burst.
type bucket struct {
	every time.Duration
	burst int
	paid  time.Time // when the calls so far are paid for, at one in a while
}

// spare is how much of a burst is left to what goes before.
var spare = [precedences]int{plain: 1, last: 2}

func (b *bucket) wait(now time.Time, p precedence) time.Duration {
	return latest(b.paid, now).Sub(now) - time.Duration(b.burst-1-spare[p])*b.every
}

func (b *bucket) take(at time.Time) { b.paid = latest(b.paid, at).Add(b.every) }

func (b *bucket) spacing(precedence) time.Duration { return b.every }

// window is a limit of so many calls in any minute.
type window struct {
	most  int
	calls []time.Time // in order
}

// minute is a little more than one: calls may take less time to Slack than those a minute before them.
const minute = 61 * time.Second

// allowed is how many calls of a precedence and those below it there may be in a minute.
func (w *window) allowed(p precedence) int {
	return max(1, w.most-w.most*[precedences]int{plain: 10, last: 30}[p]/100)
}

func (w *window) wait(now time.Time, p precedence) time.Duration {
	over := slices.IndexFunc(w.calls, func(t time.Time) bool { return now.Sub(t) < minute })
	if over < 0 {
		over = len(w.calls)
	}
	w.calls = slices.Delete(w.calls, 0, over)
	if allowed := w.allowed(p); len(w.calls) >= allowed {
		return w.calls[len(w.calls)-allowed].Add(minute).Sub(now)
	}
	return 0
}

func (w *window) take(at time.Time) {
	i, _ := slices.BinarySearchFunc(w.calls, at, time.Time.Compare)
	w.calls = slices.Insert(w.calls, i, at)
}

func (w *window) spacing(p precedence) time.Duration { return minute / time.Duration(w.allowed(p)) }

// pace is when calls of one kind may be made.
type pace struct {
	key   string                    // the method, and for posts in a channel that
	meter meter                     // nil: no limit is kept
	until time.Time                 // Slack asked not to be called before
	turns [precedences][2]time.Time // the last turn that was given to calls that were put off: for the first time, and again
}

// behind is how much later than what goes first others are tried when the time is over that Slack asked for: it may take one only.
var behind = [precedences]time.Duration{plain: 50 * time.Millisecond, last: 100 * time.Millisecond}

// wait is how long it is until a call may be made. What somebody waits for only waits for what Slack asked.
func (p *pace) wait(now time.Time, e errand) time.Duration {
	wait := p.until.Add(behind[e.precedence]).Sub(now)
	if p.meter != nil && e.precedence != urgent {
		wait = max(wait, p.meter.wait(now, e.precedence))
	}
	return max(wait, 0)
}

// queued reports whether others of the same precedence were put off before a call, and are not through yet.
func (p *pace) queued(now time.Time, e errand) bool {
	return !e.again && p.turns[e.precedence][0].After(now)
}

// turn is when a call that can't be made now has its turn: behind those that were put off before it.
func (p *pace) turn(now time.Time, e errand) time.Time {
	spacing := 100 * time.Millisecond
	if p.meter != nil {
		spacing = p.meter.spacing(e.precedence)
	}
	given := &p.turns[e.precedence][0]
	if e.again {
		given = &p.turns[e.precedence][1]
	}
	*given = latest(now.Add(p.wait(now, e)), given.Add(spacing))
	return *given
}

func (p *pace) take(at time.Time) {
	if p.meter != nil {
		p.meter.take(at)
	}
}

// over reports whether nothing of it matters any more.
func (p *pace) over(now time.Time) bool {
	if b, ok := p.meter.(*bucket); ok && b.paid.After(now) {
		return false
	}
	for _, given := range p.turns {
		if given[0].After(now) || given[1].After(now) {
			return false
		}
	}
	return !p.until.After(now)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// posting is the method whose limit is also one of each channel's.
const posting = "chat.postMessage"

// Slack's limit of posts in a channel: one a second, after a short burst. How short is for us to guess.
const (
	postEvery = 1050 * time.Millisecond
	postBurst = 5
)

// limits are how many calls a minute Slack takes of a method, by its published tiers. Methods that are not named here are only held back when Slack
// refuses them.
var limits = map[string]int{
	posting:                        300, // "several hundred"
	"chat.postEphemeral":           100,
	"chat.update":                  50,
	"chat.delete":                  50,
	"files.getUploadURLExternal":   100,
	"files.completeUploadExternal": 100,
	"chat.startStream":             20,
	"chat.appendStream":            100,
	"chat.stopStream":              20,
	"conversations.open":           50,
	"conversations.info":           50,
	"conversations.list":           20,
	"conversations.history":        50,
	"conversations.replies":        50,
	"users.info":                   100,
	"users.lookupByEmail":          50,
	"usergroups.list":              20,
	"usergroups.users.list":        20,
	"dnd.info":                     50,
	"assistant.threads.setStatus":  600,
}

// published is the limit that Slack publishes for a pace's key; nil: none that we know.
func published(key string) meter {
	method, _, channel := strings.Cut(key, " ")
	if channel {
		return &bucket{every: postEvery, burst: postBurst}
	}
	if most, known := limits[method]; known {
		return &window{most: most}
	}
	return nil
}
