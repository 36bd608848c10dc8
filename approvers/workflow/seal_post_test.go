package workflow_test

import (
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/testkit"
	"countersign/store"
)

// headHarness is a harness whose policy posts signed heads in a channel. The harness acts as Slack for these posts.
type headHarness struct {
	*harness
	*testing.T
	key   approvers.SealKey
	seen  []int // the heads that Slack shows, by their numbers
	round map[uint64]bool
}

func newHeadHarness(t *testing.T) *headHarness {
	o := &headHarness{harness: newHarness(t), T: t, key: newSealKey(t, "countersign-here"), round: map[uint64]bool{}}
	o.to("#audit")
	return o
}

func (o *headHarness) to(channel string) {
	o.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Audit = approvers.AuditPost{Channel: channel, Every: 10 * time.Minute} }))
}

// o.heads returns the outbox message of the signed heads. If the store has no such message, heads returns the zero
// value.
func (o *headHarness) heads() store.OutboxMessage {
	o.Helper()
	all := o.messagesOf("heads")
	if len(all) > 1 {
		o.Fatalf("%d outbox messages show heads", len(all))
	}
	if len(all) == 0 {
		return store.OutboxMessage{}
	}
	return all[0]
}

// o.post posts a head that is due, as the bot does.
func (o *headHarness) post() {
	o.Helper()
	if s := o.heads(); s.State == store.OutboxWanted {
		vm, err := o.Views.Message(o.ctx(), s.ID)
		o.ok(err)
		if s.Rank != store.RankLast || vm.Message.TS != "" {
			o.Errorf("it goes before others (%q), or changes the message %q", s.Rank, vm.Message.TS)
		}
		if o.round[s.Round] {
			o.Errorf("round %d is used twice: its earlier message would be found, and changed", s.Round)
		}
		o.round[s.Round] = true
		vm.Message.Channel, vm.Message.TS = "C0008", fmt.Sprintf("200.%d", vm.Head.Number)
		o.ok(o.Outbox.Delivered(o.ctx(), vm.Message, workflow.SentMessage{Body: []byte(vm.Head.Note)}))
		o.seen = append(o.seen, int(vm.Head.Number))
	}
}

// o.step advances the clock, adds audit records, and seals them.
func (o *headHarness) step(after time.Duration, records int) {
	o.Helper()
	o.clock.pass(after)
	if records > 0 {
		o.record("a", records)
	}
	o.sealAll(o.key)
}

func (o *headHarness) wants(what string, numbers ...int) {
	o.Helper()
	same(o.T, what, o.seen, append([]int(nil), numbers...))
}

// The bot posts a head in the channel when new audit records are sealed, but at most one head per interval of the
// policy. Finally, the channel shows the newest head.
func TestHeadsArePosted(t *testing.T) {
	o := newHeadHarness(t)
	o.to("")
	step := func(after time.Duration, records int) { t.Helper(); o.step(after, records); o.post() }
	step(0, 1)
	o.wants("without a channel")
	o.to("#audit")
	step(time.Second, 0)
	o.wants("as soon as there is one", 1)
	step(time.Second, 0)
	step(time.Second, 3)
	step(5*time.Minute, 1)
	step(4*time.Minute, 0)
	o.wants("before the time is over", 1)
	step(time.Minute, 0)
	o.wants("the newest of those that were made meanwhile", 1, 3)
	for range 10 {
		step(24*time.Hour, 0)
	}
	o.wants("nothing new", 1, 3)
	journal := readStore(o.harness, func(r store.Reader) ([]approvers.JournalEntry, error) { return r.Journal(0, 100) })
	same(t, "records; none is about a head", len(journal), 5)
	o.reopen()
	step(time.Second, 1)
	o.wants("in a new process", 1, 3, 4)
	o.clock.pass(-2 * time.Hour)
	step(0, 1)
	o.wants("after the clock was set back", 1, 3, 4, 5)
	o.to("#other")
	step(time.Second, 0)
	o.wants("in another channel", 1, 3, 4, 5, 5)
	if s := o.heads(); s.To != "channel:#other" {
		t.Errorf("it is at %s", s.To)
	}
	o.wantSealed(7, o.key.Public)
}

// Many heads are sealed while Slack can't be reached. After the outage, the bot posts only one message, with the newest
// head. The store needs the same number of outbox rows for a hundred heads as for one head.
func TestHeadsOfAnOutage(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	o := newHeadHarness(t)
	for range 100 {
		o.step(time.Minute, 1)
	}
	o.post()
	o.wants("after the outage", 100)
	o.step(time.Second, 1)
	o.post()
	o.wants("immediately after that", 100)
	for range 30 {
		o.step(11*time.Minute, 1)
		o.post()
	}
	s := o.heads()
	same(t, "posted", len(o.seen), 31)
	same(t, "the last", []int{o.seen[30], s.Step}, []int{131, 131})
	kept := readStore(o.harness, func(r store.Reader) ([]store.Rendering, error) { return r.Renderings(s.ID) })
	same(t, "renderings that are stored", len(kept), 1)
	same(t, "timers that are left", len(o.timers(store.ShowTimers...)), 0)
}

// If a new head is sealed while an older head is being posted, the next post shows the new head.
func TestHeadSealedWhileOneIsPosted(t *testing.T) {
	o := newHeadHarness(t)
	o.step(0, 1)
	vm, err := o.Views.Message(o.ctx(), o.heads().ID)
	o.ok(err)
	o.step(time.Hour, 1) // the new head is sealed before the post has ended
	vm.Message.Channel, vm.Message.TS = "C0008", "200.1"
	o.ok(o.Outbox.Delivered(o.ctx(), vm.Message, workflow.SentMessage{Body: []byte("1")}))
	if s := o.heads(); s.State != store.OutboxShown || s.Step != 1 {
		t.Errorf("it is %s, with head %d", s.State, s.Step)
	}
	o.step(10*time.Minute, 0)
	o.post()
	o.wants("the next", 2)
}

// A deleted message is not posted again; the next head is posted.
func TestHeadIsDeleted(t *testing.T) {
	o := newHeadHarness(t)
	o.step(0, 1)
	o.post()
	o.ok(o.Outbox.MarkLost(o.ctx(), o.heads()))
	o.step(time.Hour, 0)
	o.post()
	o.wants("nothing new", 1)
	o.step(time.Second, 1)
	o.post()
	o.wants("something new", 1, 2)
}

// If the bot can't write in the channel, it tries again after the interval. When a person invites the bot to the
// channel, the bot tries immediately.
func TestHeadsCanNotBePosted(t *testing.T) {
	o := newHeadHarness(t)
	o.step(0, 1)
	refuse := func() {
		t.Helper()
		s := o.heads()
		same(t, "to be posted", s.State, store.OutboxWanted)
		o.ok(o.Outbox.Unreachable(o.ctx(), s.ID, "not_in_channel", "C0008"))
	}
	refuse()
	o.step(time.Minute, 1)
	same(t, "before the time is over", o.heads().State, store.OutboxUnreachable)
	o.step(9*time.Minute, 0)
	refuse()
	o.ok(o.Intake.ChannelRestored(o.ctx(), "", "C0008"))
	o.post()
	o.wants("let in", 2)
	o.ok(o.Intake.ChannelRestored(o.ctx(), "", "C0009"))
	o.post()
	o.wants("let in elsewhere", 2)
}
