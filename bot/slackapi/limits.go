package slackapi

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// quota counts calls against a limit. Each priority leaves a part of the limit to higher priorities. So answers never
// use up the calls that cards need.
type quota interface {
	// wait returns how long a call must wait. If the result is zero or less, the call may be made now.
	wait(now time.Time, p Priority) time.Duration
	// take counts a call.
	take(at time.Time)
	// spacing returns the time between two consecutive waiting calls.
	spacing(p Priority) time.Duration
	// setShare sets how many processes share the limit.
	setShare(now time.Time, by sharing)
}

// sharing says how many processes share Slack's limits, and whether this process learns of the others' calls.
type sharing struct {
	processes int
	// told is set if this process receives and counts the calls of the other processes. If told is not set, the process
	// uses only its part of each limit.
	told bool
}

// pace is the rate of a bucket.
type pace struct {
	every time.Duration // the interval between calls after a burst
	burst int           // number of calls in a burst
}

// bucket allows a short burst of calls, then one call per interval. A full bucket allows a whole burst.
type bucket struct {
	whole pace      // the rate of all processes together
	pace            // the rate of this process
	paid  time.Time // when the bucket is full again, if no more calls are counted
	held  time.Time // Slack accepts no call before this time, and then only one call
}

// spare is the number of calls in a burst that a priority leaves to the higher priorities. Each priority may make the
// first call of a burst, even if the burst is not larger than spare.
var spare = [priorities]int{PriorityNormal: 1, PriorityReply: 1, PriorityLast: 2, PriorityTransient: 3}

func (b *bucket) wait(now time.Time, p Priority) time.Duration {
	return latest(b.full(), now).Sub(now) - time.Duration(max(b.burst-1-spare[p], 0))*b.every
}

// full returns when the bucket will be full again.
func (b *bucket) full() time.Time {
	return latest(b.paid, b.held.Add(time.Duration(b.burst-1)*b.every))
}

func (b *bucket) take(at time.Time) { b.paid = latest(b.full(), at).Add(b.every) }

func (b *bucket) spacing(Priority) time.Duration { return b.every }

// setShare divides the burst among the processes, because several of them may begin a burst at the same time. A process
// keeps at least two calls; the second of these is for PriorityFirst. setShare also converts the waiting times of
// already counted calls to the new rate. Without this conversion, urgent calls of one process could wait behind answers
// of another process when the number of processes changes.
func (b *bucket) setShare(now time.Time, by sharing) {
	before := b.every
	b.every, b.burst = b.whole.every, max(b.whole.burst/by.processes, 2)
	if !by.told {
		b.every *= time.Duration(by.processes)
	}
	if owed := b.paid.Sub(now); owed > 0 {
		b.paid = now.Add(time.Duration(float64(owed) * float64(b.every) / float64(before)))
	}
}

// window allows a number of calls in any minute.
type window struct {
	limit int         // Slack's limit
	most  int         // number of calls that this process may make
	calls []time.Time // times of the counted calls, in order
	kept  []time.Time // the time of each reservation, in order
}

// minute is slightly longer than one minute, because some calls take longer than others to reach Slack.
const minute = 61 * time.Second

// allowed returns the number of calls per minute that a priority may use.
func (w *window) allowed(p Priority) int {
	return max(1, w.most-w.most*[priorities]int{PriorityNormal: 10, PriorityReply: 15, PriorityLast: 30, PriorityTransient: 60}[p]/100)
}

func (w *window) wait(now time.Time, p Priority) time.Duration {
	w.calls = lastMinute(w.calls, now)
	calls := w.calls
	if p == PriorityTransient { // this priority never uses a reservation
		calls = slices.SortedFunc(slices.Values(append(lastMinute(slices.Clone(w.kept), now), calls...)), time.Time.Compare)
	}
	if allowed := w.allowed(p); len(calls) >= allowed {
		return calls[len(calls)-allowed].Add(minute).Sub(now)
	}
	return 0
}

// lastMinute drops the times that are older than a minute.
func lastMinute(times []time.Time, now time.Time) []time.Time {
	over := slices.IndexFunc(times, func(t time.Time) bool { return now.Sub(t) < minute })
	if over < 0 {
		over = len(times)
	}
	return slices.Delete(times, 0, over)
}

// room reports whether the limit allows one more call of a priority, in addition to the reserved calls. A reservation
// lasts a minute.
func (w *window) room(now time.Time, p Priority) bool {
	w.calls, w.kept = lastMinute(w.calls, now), lastMinute(w.kept, now)
	return len(w.calls)+len(w.kept) < w.allowed(p)
}

// keep reserves a later call.
func (w *window) keep(now time.Time) { w.kept = append(w.kept, now) }

// use releases a reservation for the call that is made now.
func (w *window) use() { w.kept = w.kept[min(1, len(w.kept)):] }

func (w *window) take(at time.Time) {
	i, _ := slices.BinarySearchFunc(w.calls, at, time.Time.Compare)
	w.calls = slices.Insert(w.calls, i, at)
}

// setShare divides the limit among the processes. If this process counts the calls of the other processes, it may use
// nearly the whole limit. The function reserves only a few calls for the other processes, which may call at the same
// moment.
func (w *window) setShare(_ time.Time, by sharing) {
	w.most = max(w.limit/by.processes, 1)
	if by.told {
		w.most = max(w.most, w.limit-2*(by.processes-1))
	}
}

func (w *window) spacing(p Priority) time.Duration { return minute / time.Duration(w.allowed(p)) }

// callLimit decides when calls of one kind may be made.
type callLimit struct {
	key   string             // the method, and the channel for posts
	meter quota              // nil: the limit is unknown
	until time.Time          // Slack asked the bot to make no call before this time
	first time.Time          // until this time a call of PriorityFirst waits in another process
	turns map[line]time.Time // by line: the last time that was assigned to a call that was put off
}

// line identifies one queue of calls that were put off.
type line struct {
	priority Priority
	retry    bool
	flow     string // for posts in a channel
}

// maxLines is the maximum number of lines of a callLimit. At this number, the lines whose time is over are dropped.
const maxLines = 100

// line returns the line in which a call would wait.
func (p *callLimit) line(e CallPriority) line {
	l := line{priority: e.Priority, retry: e.Retry}
	if strings.Contains(p.key, " ") {
		l.flow = e.Flow
	}
	return l
}

// behind is an additional delay for calls of lower priorities, after Slack has asked the bot to wait. Slack may then
// accept only a single call, which must be the most urgent one.
var behind = [priorities]time.Duration{
	PriorityNormal: 50 * time.Millisecond, PriorityReply: 75 * time.Millisecond, PriorityLast: 100 * time.Millisecond, PriorityTransient: 150 * time.Millisecond,
}

// wait returns how long a call must wait. An urgent call waits only if Slack has asked the bot to wait.
func (p *callLimit) wait(now time.Time, e CallPriority) time.Duration {
	wait := p.until.Add(behind[e.Priority]).Sub(now)
	if p.meter != nil && e.Priority != PriorityUrgent {
		wait = max(wait, p.meter.wait(now, e.Priority))
	}
	if e.Priority > PriorityFirst { // without this wait, answers of other processes could repeatedly take the turn of an urgent card
		wait = max(wait, p.first.Sub(now))
	}
	return max(wait, 0)
}

// queued reports whether earlier calls of the same priority and flow wait for their turns.
func (p *callLimit) queued(now time.Time, e CallPriority) bool {
	return !e.Retry && p.turns[p.line(e)].After(now)
}

// turn assigns a time to a call that can't be made now. The time is later than the times of all earlier calls in the
// same line.
func (p *callLimit) turn(now time.Time, e CallPriority) time.Time {
	spacing := 100 * time.Millisecond
	if p.meter != nil {
		spacing = p.meter.spacing(e.Priority)
	}
	l := p.line(e)
	given := latest(now.Add(p.wait(now, e)), p.turns[l].Add(spacing))
	if len(p.turns) >= maxLines {
		maps.DeleteFunc(p.turns, func(_ line, at time.Time) bool { return at.Add(spacing).Before(now) })
	}
	if p.turns == nil {
		p.turns = map[line]time.Time{}
	}
	p.turns[l] = given
	return given
}

func (p *callLimit) take(at time.Time) {
	if p.meter != nil {
		p.meter.take(at)
	}
}

// isIdle reports whether the callLimit can be dropped, because its state has no effect on later calls.
func (p *callLimit) isIdle(now time.Time) bool {
	if b, ok := p.meter.(*bucket); ok && b.full().After(now) {
		return false
	}
	for _, given := range p.turns {
		if given.After(now) {
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

const (
	posting  = "chat.postMessage" // limited in the whole workspace, and in each channel
	changing = "chat.update"
	opening  = "apps.connections.open" // the only method that is called with the app-level token
)

// These values are Slack's limit for posts in a channel: one post per second, after a short burst. Slack does not
// publish the length of the burst. The bot's value is lower than the demo workspace's value, because posts may arrive
// closer together than they were sent.
const (
	postEvery = time.Second
	postBurst = 4
)

// limits lists the calls per minute that Slack allows, by its published tiers. For a method that is not listed, the bot
// applies a limit only after Slack has refused a call.
var limits = map[string]int{
	posting:                        300, // Slack's reference says "several hundred"
	"chat.postEphemeral":           100,
	changing:                       50,
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
	"users.conversations":          50,
	"users.lookupByEmail":          50,
	"usergroups.users.list":        20,
	"dnd.info":                     50,
	"assistant.threads.setStatus":  600,
}

// spreadCalls lists methods whose calls the bot spreads over the minute. All people who wait for the answer share one
// call, so a short wait for each person is better than no call for the rest of the minute. Slack allows 20 calls of
// usergroups.list a minute. The bot makes at most 16, because other commands, such as doctor, count against the limit.
var spreadCalls = map[string]pace{"usergroups.list": {5 * time.Second, 4}}

// published returns Slack's published limit for the key of a callLimit. The result is the whole limit, before it is
// divided among processes. The result is nil if Slack publishes no limit.
func published(key string) quota {
	method, _, channel := strings.Cut(key, " ")
	if channel {
		return &bucket{whole: pace{postEvery, postBurst}, pace: pace{postEvery, postBurst}}
	}
	if p, spread := spreadCalls[method]; spread {
		return &bucket{whole: p, pace: p}
	}
	if most, known := limits[method]; known {
		return &window{limit: most, most: most}
	}
	return nil
}
