package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/render/control"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
)

// outageKinds lists the ways in which Slack can be down. For each kind, the function begin begins an outage, and
// returns a function that ends the outage.
var outageKinds = []struct {
	name  string
	begin func(*synctestHarness) (end func())
	heard bool // events and clicks still reach the bot
}{
	{name: "refuses", begin: func(b *synctestHarness) func() { return b.cut(testkit.NetworkRefuses) }},
	{name: "silent", begin: func(b *synctestHarness) func() { return b.cut(testkit.NetworkSilent) }},
	{name: "fails", begin: func(b *synctestHarness) func() {
		b.becomes(func(apiCall) callFate { return callFails })
		b.ws.DropSockets()
		return func() { b.becomes(nil) }
	}},
	{name: "deaf", begin: func(b *synctestHarness) func() { // Slack carries out each call, but no answer arrives
		b.becomes(func(apiCall) callFate { return callUnheard })
		b.ws.DropSockets()
		return func() { b.becomes(nil) }
	}},
	{name: "fails-but-is-heard", heard: true, begin: func(b *synctestHarness) func() {
		b.becomes(func(apiCall) callFate { return callFails })
		return func() { b.becomes(nil) }
	}},
}

func (b *synctestHarness) cut(s testkit.NetworkState) func() {
	b.slack.SetState(s)
	return func() { b.slack.SetState(testkit.NetworkWorks) }
}

// TestOutages takes Slack down in each way, for ten minutes and for nine and a half hours. When the outage begins, some
// requests wait, and people are making other requests. Slack's answer to one post is lost. Deadlines that pass during
// the outage count, but people's clicks have no effect. In some cases, the bot is restarted during the outage. When
// Slack is back, it must show the current state of all messages. Each message must appear once, and the most important
// messages come first. Expired requests can't be approved, and all other requests can.
//
// COUNTERSIGN_BACKLOG sets the size of the backlog when Slack is back (2 with CI=true). The backlog has this number of
// requests of each kind, and the same number of answers. With COUNTERSIGN_OUTAGES=2, the test tries every kind of
// outage with one process and with three replicas, and with both durations. Without it, each outage lasts ten minutes,
// and two of the kinds are tried with three replicas.
func TestOutages(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	all := testkit.Size(t, "COUNTERSIGN_OUTAGES", 1) > 1
	for i, kind := range outageKinds {
		for _, lasts := range []time.Duration{10 * time.Minute, 9*time.Hour + 30*time.Minute} {
			for _, several := range []bool{false, true} {
				if !all && (lasts > time.Hour || several != (i/2%2 == 1)) {
					continue
				}
				t.Run(fmt.Sprintf("%s %s%s", kind.name, lasts, amongReplicas(several)), func(t *testing.T) {
					testkit.EveryOther(t, "COUNTERSIGN_OUTAGES", i)
					backlog := testkit.Size(t, "COUNTERSIGN_BACKLOG", 2)
					inFakedTime(t, func(b *synctestHarness) { b.setup.unlimited, b.board = false, boardIf(several) }, func(b *synctestHarness) {
						b.ws.SetRealRates(true)
						o := &outage{synctestHarness: b, lasts: lasts, backlog: backlog, heard: kind.heard || b.http, restarts: i%2 == 1}
						o.play(kind.begin)
					})
				})
			}
		}
	}
}

// outage is an outage of Slack, with the requests that it affects.
type outage struct {
	*synctestHarness
	lasts    time.Duration
	backlog  int
	heard    bool
	restarts bool

	began, ended, back time.Time
	names              []string // names of the calls for which there are requests
	meanwhile          string   // thread of a message that the bot received while Slack was down
}

func (o *outage) play(begin func(*synctestHarness) func()) {
	before := o.before()
	o.pass(time.Minute)
	o.began = time.Now()
	end := begin(o.synctestHarness)
	o.during(before)
	end()
	o.ended = time.Now()
	o.after(before)
}

// The method "before" makes requests whose deadlines come during the outage and after it. It makes some of the requests
// at the last moment before the outage.
func (o *outage) before() (shown map[string]workspaceclient.Message) {
	for _, n := range []string{"grave old", "plain old", "patient old"} {
		o.says(n + strings.Fields(n)[0])
	}
	o.pass(25 * time.Minute) // requests that expire after half an hour now have five minutes left, and three when the outage begins
	o.names = append(o.names, "oldgrave", "oldplain", "oldpatient")
	var lost atomic.Bool
	o.becomes(func(c apiCall) callFate { // one answer is lost, before the outage begins
		if c.method == "chat.postMessage" && lost.CompareAndSwap(false, true) {
			return callUnheard
		}
		return callFine
	})
	o.says("plain lostpost")
	o.names = append(o.names, "lostpost")
	o.within(time.Minute, "everything is shown", o.idle)
	shown = map[string]workspaceclient.Message{}
	for _, n := range []string{"oldplain", "oldpatient", "lostpost"} {
		shown[n] = o.card(n)
	}
	for i := range o.backlog {
		for _, what := range []string{"plain", "patient", "grave", "alarm"} {
			n := fmt.Sprintf("new%s%d", what, i)
			o.says(fmt.Sprintf("after 70s %s %s", what, n))
			o.names = append(o.names, n)
		}
		o.says(fmt.Sprintf("after 70s say %d", i))
		o.pass(time.Second)
	}
	return shown
}

// The method "during" waits until the time of the outage has passed. In this time, people's clicks have no effect.
func (o *outage) during(shown map[string]workspaceclient.Message) {
	o.pass(2 * time.Minute)
	err := o.approve("teo", "oldplain", shown["oldplain"])
	if o.heard && err != nil || !o.heard && err == nil {
		o.Errorf("a click while Slack is down: %v", err)
	}
	if o.heard {
		o.meanwhile = o.says("say heardmeanwhile")
	}
	if n := o.ready(); n > 0 {
		o.Errorf("%d bots say that they are ready", n)
	}
	if n := len(o.log.with("Slack does not answer")); n != len(o.bots()) {
		o.Errorf("the operator was told %d times that Slack is down", n)
	}
	o.pass(o.lasts/2 - time.Since(o.began))
	if o.heard { // a click after the deadline reaches the bot
		if err := o.approve("teo", "oldplain", shown["oldplain"]); err != nil {
			o.Errorf("a click after the deadline: %v", err)
		}
	}
	if o.restarts {
		o.restart()
	}
	o.pass(o.lasts - time.Since(o.began))
	for _, n := range o.names {
		r := o.asked(n)
		if late := time.Since(r.ExpiresAt); r.State == approvers.Pending && late > 2*time.Minute {
			o.Errorf("%s should have expired %s ago", n, late)
		}
		if r.State == approvers.Expired && (r.ClosedAt.Before(r.ExpiresAt) || r.ClosedAt.Sub(r.ExpiresAt) > 2*time.Minute) {
			o.Errorf("%s expired at %s; its deadline was %s", n, r.ClosedAt, r.ExpiresAt)
		}
	}
	if r := o.request("oldplain"); r.State != approvers.Expired {
		o.Errorf("what was clicked while Slack was down is %s", r.State)
	}
	lines := o.log.all()
	if n := len(lines); n > (150+10*o.backlog)*len(o.bots()) {
		o.Errorf("%d lines were logged:\n%s", n, strings.Join(lines[n-20:], "\n"))
	}
}

// The method "after" checks the outcome of all requests when Slack is back.
func (o *outage) after(shown map[string]workspaceclient.Message) {
	took := o.within(time.Minute, "the bot notices that Slack is back", func() bool { return o.ready() == len(o.bots()) })
	o.back = time.Now()
	stale := 0
	for n, m := range shown { // cards that Slack still shows in their old state
		if r := o.request(n); r.State == approvers.Expired {
			if err := o.approve("teo", n, m); err == nil {
				stale++
			} else if workspaceclient.Code(err) != "unknown_action" { // the button was already removed
				o.Errorf("a click on %s: %v", n, err)
			}
		}
	}
	o.within(20*time.Minute, "everything is shown", o.idle)
	settled := time.Since(o.ended)
	o.eachShownOnce()
	o.nothingLive()
	o.order()
	o.reminders()
	o.books()
	o.decideAll()
	if o.meanwhile != "" {
		messages, err := o.as("sam").Messages(o.ctx, "#support", o.meanwhile)
		o.ok(err)
		if len(messages) < 2 || !strings.Contains(messages[len(messages)-1].Text, "You said heardmeanwhile") {
			o.Errorf("what was heard while Slack was down was not answered: %v", messages)
		}
	}
	if r := o.request("oldplain"); r.State != approvers.Expired || o.runs["oldplain"] > 0 {
		o.Errorf("what was approved too late is %s, and ran %d times", r.State, o.runs["oldplain"])
	}
	for n, times := range o.runs {
		if r := o.request(n); times != 1 || r.State != approvers.Consumed {
			o.Errorf("%s ran %d times and is %s", n, times, r.State)
		}
	}
	o.Logf("down for %s, noticed after %s, all shown after %s; %d posts, %d ran, %d clicks too late, %d calls to Slack meanwhile, %d lines logged", o.lasts, took,
		settled, len(o.made(o.ended, isPost)), len(o.runs), stale, len(o.made(o.began, func(c apiCall) bool { return c.at.Before(o.ended) })), len(o.log.all()))
}

func isPost(c apiCall) bool { return c.method == "chat.postMessage" && c.done && c.outboxID != "" }

// eachShownOnce checks that no message was posted twice, and that every message that Slack should show is shown.
func (o *outage) eachShownOnce() {
	posted := map[string]int{}
	for _, c := range o.made(time.Time{}, isPost) {
		posted[fmt.Sprint(c.outboxID, " ", c.part)]++
	}
	for what, times := range posted {
		if times != 1 {
			o.Errorf("%s was posted %d times", what, times)
		}
	}
	for _, s := range o.outbox() {
		switch {
		case s.State == store.OutboxShown && posted[s.ID+" 0"] == 1, s.State == store.OutboxExpanded, s.State == store.OutboxRemoved:
		default:
			o.Errorf("%s to %s is %s, posted %d times: %s", s.Kind, s.To, s.State, posted[s.ID+" 0"], s.LastError)
		}
	}
	if o.heard && len(o.log.with("set aside")) > 1 { // one click during the outage may be set aside
		o.Errorf("deliveries were set aside: %q", o.log.with("set aside"))
	}
}

// nothingLive checks that no message has a button of onlyWaiting for a finished request.
func (o *outage) nothingLive() {
	for _, s := range o.outbox() {
		if s.TS == "" || s.State == store.OutboxRemoved {
			continue
		}
		var last store.Rendering
		o.view(func(r store.Reader) (err error) {
			last, err = r.Rendering(s.ID, s.Posts)
			return err
		})
		var drawn struct{ Blocks json.RawMessage }
		if err := json.Unmarshal(last.Body, &drawn); err != nil {
			o.Errorf("%s: %v", s.Kind, err)
		}
		for _, n := range o.names {
			r := o.request(n)
			for _, e := range workspaceclient.Elements(drawn.Blocks) {
				if !r.State.Open() && onlyWaiting[e.ActionID] && strings.HasPrefix(e.Value, r.ID+" ") {
					o.Errorf("the button %q for %s, which is %s, is left on a %s", e.Text.Text, n, r.State, s.Kind)
				}
			}
		}
	}
}

// order checks that the most important messages are shown within seconds, even if many other messages wait. Several
// such messages for one channel follow each other as fast as Slack accepts posts in the channel. A message that tells a
// lead about a request may be created after Slack is back. The time of such a message is then measured from its
// creation.
func (o *outage) order() {
	wanted, answers := map[string]time.Time{}, map[string]bool{}
	for _, s := range o.outbox() {
		switch s.Rank {
		case store.RankFirst:
			wanted[s.ID] = o.wanted(s)
		case store.RankLast:
			answers[s.ID] = true
		}
	}
	posts := o.made(o.ended, func(c apiCall) bool { return isPost(c) && !wanted[c.outboxID].IsZero() })
	rest := o.made(o.ended, func(c apiCall) bool { return isPost(c) && answers[c.outboxID] })
	if len(rest) == 0 || len(posts) == 0 {
		o.Fatalf("%d critical posts and %d others after the outage", len(posts), len(rest))
	}
	// A replica does not know which messages wait in the other replicas. Therefore posts of other replicas may come
	// first, with any rank.
	before, wait := posts, 2*time.Second
	if o.board != nil {
		before, wait = o.made(o.ended, isPost), replicas*2*time.Second
	}
	var longest time.Duration
	for _, c := range posts {
		since, ahead := wanted[c.outboxID], 0
		for _, other := range before {
			if other.channel == c.channel && !other.at.Before(since) && other.at.Before(c.at) {
				ahead++
			}
		}
		took := c.at.Sub(since)
		longest = max(longest, took)
		if most := wait + time.Duration(ahead)*1100*time.Millisecond; took > most {
			o.Errorf("a critical post came after %s, with %d others before it in its place; want %s at most", took, ahead, most)
		}
		if since.Equal(o.back) && c.at.After(rest[len(rest)-1].at) {
			o.Errorf("a critical post came %s after Slack was back, and no answer after it", took)
		}
	}
	o.Logf("%d critical posts, each after %s at most", len(posts), longest.Round(time.Millisecond))
}

// The method "wanted" returns the time from which Slack could have shown an outbox message. Usually, the result is the
// time at which the message was created. For a copy, the result is the time at which the original message was created.
// If Slack came back later, the result is the time at which Slack came back.
func (o *outage) wanted(s store.OutboxMessage) time.Time {
	made := s.CreatedAt
	for _, other := range o.outbox() {
		if other.State == store.OutboxExpanded && other.Kind == s.Kind && other.Ref == s.Ref && other.Note == s.Note && other.CreatedAt.Before(made) {
			made = other.CreatedAt
		}
	}
	if made.Before(o.back) {
		return o.back
	}
	return made
}

// The method "reminders" checks the reminders in the first minute after Slack is back. People must get no reminder of a
// finished request, and at most one reminder of each waiting request.
func (o *outage) reminders() {
	states := map[string]approvers.State{}
	for _, n := range o.names {
		r := o.request(n)
		states[r.ID] = r.State
	}
	told := map[string]int{}
	reminders := map[string]store.OutboxMessage{}
	for _, s := range o.outbox() {
		if s.Note == store.NoteReminder {
			reminders[s.ID] = s
		}
	}
	for _, c := range o.made(o.ended, isPost) {
		s, ok := reminders[c.outboxID]
		if !ok || c.at.Sub(o.back) > time.Minute {
			continue
		}
		told[s.Request+" "+s.To]++
		if states[s.Request] != approvers.Pending || told[s.Request+" "+s.To] > 1 {
			o.Errorf("%s is reminded %d times of a request that is %s", s.To, told[s.Request+" "+s.To], states[s.Request])
		}
	}
}

// decideAll approves the waiting requests that Teo may approve, on the current cards.
func (o *outage) decideAll() {
	for _, n := range o.names {
		r := o.request(n)
		if r.State != approvers.Pending || strings.Contains(n, "grave") || strings.Contains(n, "alarm") {
			continue
		}
		if err := o.approve("teo", n, o.card(n)); err != nil {
			o.Errorf("%s can't be approved: %v", n, err)
		}
		o.within(time.Minute, n+" is consumed", func() bool { return o.request(n).State == approvers.Consumed })
		o.pass(2 * time.Second)
	}
	o.within(5*time.Minute+time.Duration(o.backlog)*30*time.Second, "everything is shown", o.idle)
	o.nothingLive()
}

// onlyWaiting lists the buttons that only a waiting request may have.
var onlyWaiting = map[string]bool{
	control.ActApprove: true, control.ActTyped: true, control.ActReject: true, control.ActModify: true, control.ActAsk: true, control.ActAnswer: true,
	control.ActHandOn: true, control.ActWithdraw: true, control.ActApart: true,
}
