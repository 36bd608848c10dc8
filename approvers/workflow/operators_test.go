package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// operatorsHarness is a harness whose policy names a channel for the operators. Its Slack shows notices.
type operatorsHarness struct {
	*harness
	*testing.T
	posts []string          // the text of each post, in order
	shown map[string]string // the current text of each Slack message, by ts
}

func newOperatorsHarness(t *testing.T) *operatorsHarness {
	o := &operatorsHarness{harness: newWebhookHarness(t), T: t, shown: map[string]string{}}
	o.to("policy-2", "#ops")
	return o
}

// to puts a policy into force that names a channel for the operators.
func (o *operatorsHarness) to(hash, channel string, change ...func(*approvers.Policy)) {
	o.policy.Store(policy(hash, append([]func(*approvers.Policy){withClients, noLead, func(p *approvers.Policy) {
		p.Clients[0].Webhook = &hook
		p.Operators.Channel = channel
	}}, change...)...))
	o.review()
}

func (o *operatorsHarness) review() {
	o.Helper()
	o.ok(o.Outbox.ReviewProblems(o.ctx()))
}

// noticeText lists the problems of a notice. A problem that has ended is in parentheses.
func noticeText(n *settings.OperatorNotice) string {
	var parts []string
	for _, p := range n.Problems {
		part := string(p.Kind) + " " + strings.ReplaceAll(p.Of, "\n", "+")
		if p.How != "" {
			part += " " + p.How
		}
		if !p.Lasts() {
			part = "(" + part + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// waits returns the notices whose delivery is due.
func (o *operatorsHarness) waits() (due []store.OutboxMessage) {
	o.Helper()
	timers := o.timers(store.TimerShow)
	for _, s := range o.messagesOf("operators") {
		if timer, ok := timers[s.ID]; ok && s.State == store.OutboxWanted && !timer.Due.After(o.clock.Now()) {
			due = append(due, s)
		}
	}
	return due
}

// slack shows the notices that are due. As in the bot, a notice without a lasting problem is not posted.
func (o *operatorsHarness) slack() {
	o.Helper()
	for _, s := range o.waits() {
		vm, err := o.Views.Message(o.ctx(), s.ID)
		o.ok(err)
		if s.TS == "" && (o.policy.Load().Operators.Channel == "" || vm.Notice == nil || !vm.Notice.Lasts()) {
			o.ok(o.Outbox.Removed(o.ctx(), s))
			continue
		}
		text := noticeText(vm.Notice)
		if s.TS == "" {
			o.posts = append(o.posts, text)
			s.Channel, s.TS = "C0009", fmt.Sprintf("300.%d", len(o.posts))
		}
		o.shown[s.TS] = text
		o.ok(o.Outbox.Delivered(o.ctx(), s, workflow.SentMessage{Body: []byte(text)}))
	}
}

// pass lets time pass in steps of 5 seconds, so that Slack shows each notice when it is due.
func (o *operatorsHarness) pass(d time.Duration) {
	o.Helper()
	for end := o.clock.Now().Add(d); o.clock.Now().Before(end); {
		o.clock.pass(min(5*time.Second, end.Sub(o.clock.Now())))
		o.slack()
	}
}

func (o *operatorsHarness) wants(what string, posts ...string) {
	o.Helper()
	same(o.T, what, o.posts, append([]string(nil), posts...))
}

// wantsNow checks the current text of the last post.
func (o *operatorsHarness) wantsNow(what, text string) {
	o.Helper()
	same(o.T, what, o.shown[fmt.Sprintf("300.%d", len(o.posts))], text)
}

// switchOff makes the receiver of the client's webhook answer that it wants no more deliveries.
func (o *operatorsHarness) switchOff() error {
	o.Helper()
	id := o.callerAsks(callerCall(o.id("key"), `issue_refund {"amount": 5}`))
	o.approve(lead, id)
	return o.Callers.NotTold(o.ctx(), o.toTell()[0], hook.Target(), workflow.WebhookFailure{Why: "the receiver answered 410", Gone: true})
}

// unseen makes alice ask for something. Slack refuses the card everywhere.
func (o *operatorsHarness) unseen() approvers.Request {
	o.Helper()
	r := o.requestIn(o.sayIn(o.id("thread"), alice, "one").Turn, `issue_refund {"amount":1}`)
	o.refuse(r.ID, lead.ID.User())
	return o.request(r.ID)
}

// sees makes Slack show the refused cards of a request.
func (o *operatorsHarness) sees(r approvers.Request) {
	o.Helper()
	for _, s := range o.messagesOf(r.ID) {
		if s.State == store.OutboxUnreachable {
			o.show(s)
		}
	}
}

const (
	webhookIsOff = "webhook ci"
	cardsUnseen  = "cards role:team-lead"
	toolChanged  = "tool issue_refund changed"
)

// Each problem is posted once, also if the bot starts again or is asked again while the problem lasts. When the problem
// ends, the notice is edited.
func TestOperatorsAreTold(t *testing.T) {
	for _, tt := range []struct {
		name, notice string
		begin        func(*operatorsHarness) (end func())
		repeat       func(*operatorsHarness)
	}{
		{"webhook", webhookIsOff, func(o *operatorsHarness) func() {
			o.ok(o.switchOff())
			return func() { o.ok(o.Callers.ResumeWebhook(o.ctx(), "ci")) }
		}, func(o *operatorsHarness) { o.ok(o.switchOff()) }},
		{"webhook that the policy changes", webhookIsOff, func(o *operatorsHarness) func() {
			o.ok(o.switchOff())
			return func() {
				o.to("policy-3", "#ops", func(p *approvers.Policy) { p.Clients[0].Webhook = &approvers.Webhook{URL: "https://new.example.com"} })
			}
		}, (*operatorsHarness).review},
		{"tool", toolChanged, func(o *operatorsHarness) func() {
			o.tools.drifts("issue_refund", workflow.DriftChanged)
			o.review()
			return func() {
				o.tools.drifts("issue_refund", workflow.DriftUnknown) // after a restart, before the source lists its tools
				o.review()
				o.pass(time.Minute)
				o.wantsNow("before the source lists its tools", toolChanged)
				o.tools.drifts("issue_refund", "")
				o.review()
			}
		}, (*operatorsHarness).review},
		{"card", cardsUnseen, func(o *operatorsHarness) func() {
			first := o.unseen()
			return func() { o.sees(first) }
		}, func(o *operatorsHarness) {
			r := o.unseen()
			o.refuse(r.ID, lead.ID.User())
			o.approve(lead, r.ID) // the lead approves on the Home tab
		}},
		{"card of a decided request", cardsUnseen, func(o *operatorsHarness) func() {
			first := o.unseen()
			return func() { o.reject(lead, first.ID) }
		}, (*operatorsHarness).review},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOperatorsHarness(t)
			o.pass(time.Minute)
			o.wants("without a problem")
			end := tt.begin(o)
			o.slack()
			o.wants("before the end of the delay")
			o.reopen()
			o.review()
			o.pass(10 * time.Second)
			o.wants("when it began", tt.notice)
			for range 3 {
				tt.repeat(o)
				o.reopen()
				o.review()
				o.pass(2 * time.Minute)
			}
			o.wants("while it lasts", tt.notice)
			o.wantsNow("while it lasts", tt.notice)
			end()
			o.pass(5 * time.Second)
			o.wantsNow("when it is over", "("+tt.notice+")")
			o.reopen()
			o.review()
			o.pass(2 * time.Minute)
			o.wants("when it is over", tt.notice)
			same(t, "notices that wait", len(o.waits()), 0)
		})
	}
}

// A notice is stored in the transaction of the change. If this transaction fails, neither the change nor the notice is
// stored.
func TestOperatorsAreToldInTheTransaction(t *testing.T) {
	o := newOperatorsHarness(t)
	lost := errors.New("the process was killed")
	failing := false
	o.ok(o.store.Close())
	o.open(func(s store.Store) store.Store { return killedStore{s, &failing, lost} })
	id := o.callerAsks(callerCall("1", `issue_refund {"amount": 5}`))
	o.approve(lead, id)
	tell := func() error {
		return o.Callers.NotTold(o.ctx(), o.toTell()[0], hook.Target(), workflow.WebhookFailure{Why: "the receiver answered 410", Gone: true})
	}
	failing = true
	if err := tell(); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	failing = false
	if off := !o.webhook().Off.IsZero(); off || len(o.messagesOf("operators")) > 0 {
		t.Errorf("the webhook is off: %v, and there are %d notices", off, len(o.messagesOf("operators")))
	}
	o.ok(tell())
	if off := !o.webhook().Off.IsZero(); !off || len(o.messagesOf("operators")) != 1 {
		t.Errorf("the webhook is off: %v, and there are %d notices", off, len(o.messagesOf("operators")))
	}
	o.pass(time.Minute)
	o.wants("afterwards", webhookIsOff)
}

// killedStore is a store whose process is killed at the end of each transaction, before the commit.
type killedStore struct {
	store.Store
	failing *bool
	err     error
}

func (k killedStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	return k.Store.Update(ctx, func(tx store.Tx) error {
		if err := fn(tx); err != nil || !*k.failing {
			return err
		}
		return k.err
	})
}

// If a new policy names other roles or addresses for a request that reaches nobody, the request stays in its problem.
func TestAPolicyChangesWhileARequestReachesNobody(t *testing.T) {
	for name, left := range map[string]bool{"refused cards": false, "nobody is left": true} {
		t.Run(name, func(t *testing.T) {
			o := newOperatorsHarness(t)
			r := o.unseen()
			want := cardsUnseen
			if left {
				o.gone[lead.ID.User()], o.gone[fin1.ID.User()], o.gone[fin2.ID.User()] = true, true, true
				o.ok(o.People.AccountChanged(o.ctx(), o.command(), lead.ID, []string{"team-lead"}))
				o.due()
				want = "(" + cardsUnseen + "), people team-lead"
			}
			o.to("policy-3", "#ops", leads, func(p *approvers.Policy) { p.Approvers[1].Lead = "finance-director" })
			o.ok(o.Requests.Reevaluate(o.ctx()))
			o.clock.pass(5 * time.Minute)
			o.due() // asks the lead, whose accounts are deactivated, too
			if got := o.request(r.ID); left && (!approvers.HasNobodyLeft(got) || len(got.Roles()) != 2) {
				t.Fatalf("the request waits for %v: %+v", got.Roles(), got.Unreached)
			}
			o.review()
			o.pass(time.Minute)
			o.wants("the policy is new", want)
		})
	}
}

// Problems that begin at the same time share one notice. A later notice is posted a minute after the last one.
func TestBurstOfProblems(t *testing.T) {
	o := newOperatorsHarness(t)
	o.ok(o.switchOff())
	o.pass(5 * time.Second)
	first := o.unseen()
	o.tools.drifts("issue_refund", workflow.DriftChanged)
	o.review()
	o.pass(5 * time.Second)
	o.wants("a burst", webhookIsOff+", "+cardsUnseen+", "+toolChanged)
	o.tools.drifts("cancel_account", workflow.DriftGone)
	o.review()
	o.tools.drifts("search_orders", workflow.DriftUnusable)
	o.review()
	o.pass(55 * time.Second)
	o.wants("before a minute has passed", webhookIsOff+", "+cardsUnseen+", "+toolChanged)
	o.pass(5 * time.Second)
	second := "tool cancel_account gone, tool search_orders unusable"
	o.wants("after a minute", webhookIsOff+", "+cardsUnseen+", "+toolChanged, second)
	o.sees(first)
	o.pass(5 * time.Second)
	same(t, "the first notice", o.shown["300.1"], webhookIsOff+", ("+cardsUnseen+"), "+toolChanged)
	o.wantsNow("the second notice", second)
}

// If a tool that differs from its pin begins to differ in another way, the notice is edited.
func TestDriftChanges(t *testing.T) {
	o := newOperatorsHarness(t)
	o.tools.drifts("issue_refund", workflow.DriftGone)
	o.review()
	o.pass(time.Minute)
	o.tools.drifts("issue_refund", workflow.DriftChanged)
	o.review()
	o.pass(time.Minute)
	o.wants("it changed in another way", "tool issue_refund gone")
	o.wantsNow("it changed in another way", toolChanged)
}

// If a problem comes back within an hour, its last notice is edited. If it comes back later, it is posted again. If a
// problem ends before its notice is posted, it is not posted.
func TestProblemsThatComeBack(t *testing.T) {
	o := newOperatorsHarness(t)
	flips := func(how workflow.DriftKind) {
		o.tools.drifts("issue_refund", how)
		o.review()
	}
	flips(workflow.DriftChanged)
	flips("")
	o.pass(2 * time.Minute)
	o.wants("it was short")
	for range 20 {
		flips(workflow.DriftChanged)
		o.pass(2 * time.Minute)
		flips("")
		o.pass(30 * time.Second)
	}
	flips(workflow.DriftChanged)
	o.pass(time.Minute)
	o.wants("it comes and goes", toolChanged)
	o.wantsNow("it comes and goes", toolChanged)
	flips("")
	o.pass(10 * time.Minute)
	flips(workflow.DriftChanged)
	o.pass(time.Minute)
	o.wants("after an hour", toolChanged, toolChanged)
	same(t, "the first notice", o.shown["300.1"], "("+toolChanged+")")
	if messages := o.messagesOf("operators"); len(messages) != 1 {
		t.Errorf("there are %d outbox messages", len(messages))
	}
}

// A check of /readyz that fails is one problem, until the check succeeds.
func TestOperatorsAreToldOfChecks(t *testing.T) {
	o := newOperatorsHarness(t)
	follow := func(names ...string) {
		t.Helper()
		failed := map[string]workflow.FailedCheck{}
		for _, name := range names {
			failed[name] = workflow.FailedCheck{Since: o.clock.Now(), Why: "no answer at " + o.clock.Now().String()}
		}
		o.ok(o.Outbox.FollowChecks(o.ctx(), failed))
		o.pass(2 * time.Minute)
	}
	follow()
	o.wants("nothing fails")
	for range 3 {
		follow("model")
	}
	follow("model", "rows")
	o.wants("two checks fail", "check model", "check rows")
	follow("rows")
	follow()
	o.wants("all succeed", "check model", "check rows")
	same(t, "the first notice", o.shown["300.1"], "(check model)")
	same(t, "the second notice", o.shown["300.2"], "(check rows)")
}

// Deliveries that are set aside within an hour are one problem, which nobody can end. Later, there is a new notice.
func TestOperatorsAreToldOfDeliveries(t *testing.T) {
	o := newOperatorsHarness(t)
	setAside := func(id string) {
		t.Helper()
		_, err := o.Intake.Receive(o.ctx(), store.Inbox{ID: id, Kind: store.InboxEvent, Payload: []byte("{}"), ReceivedAt: o.clock.Now()}, "")
		o.ok(err)
		o.ok(o.Intake.GiveUp(o.ctx(), id, "it failed too often"))
	}
	later := func(d time.Duration) {
		t.Helper()
		o.pass(d)
		o.ok(o.Outbox.FollowChecks(o.ctx(), nil))
	}
	setAside("one")
	setAside("two")
	later(30 * time.Minute)
	setAside("three")
	later(20 * time.Minute)
	o.wants("within an hour", "delivery ")
	same(t, "the notice", o.shown["300.1"], "delivery ")
	later(time.Hour)
	setAside("four")
	later(time.Minute)
	o.wants("after an hour", "delivery ", "delivery ")
	same(t, "the first notice", o.shown["300.1"], "delivery ")
}

// The transaction that sets damaged records aside also tells the operators. Damage to the notices themselves is handled,
// too.
func TestOperatorsAreToldOfDamage(t *testing.T) {
	o := newOperatorsHarness(t)
	r := o.ask(`issue_refund {"amount":1}`)
	click := o.clickOn(lead, approvers.Approve, r.ID)
	o.spoil("requests", r.ID)
	if _, err := o.Requests.Decide(o.ctx(), click); err == nil {
		t.Error("a damaged request was approved")
	}
	o.pass(time.Minute)
	o.wants("a damaged request", "record ")
	o.spoil("settings", store.SettingOperators)
	o.review()
	o.ok(o.Intake.GiveUp(o.ctx(), "", "it failed too often"))
	o.pass(2 * time.Minute)
	if last := o.posts[len(o.posts)-1]; !strings.Contains(last, "delivery ") {
		t.Errorf("the last notice after the damage is %q", last)
	}
}

// If the cards of many requests reach nobody, there is only one problem. It ends when no such request waits any more.
func TestManyUnseenCards(t *testing.T) {
	o := newOperatorsHarness(t)
	var all []approvers.Request
	for range 60 { // more than the problem can hold
		all = append(all, o.unseen())
	}
	o.pass(2 * time.Minute)
	o.wants("many requests", cardsUnseen)
	for i, r := range all {
		o.wantsNow(fmt.Sprintf("after %d of 60", i), cardsUnseen)
		o.reject(lead, r.ID)
		o.pass(5 * time.Second)
	}
	o.wantsNow("after all", "("+cardsUnseen+")")
	o.wants("after all", cardsUnseen)
}

// If Slack refuses a notice, the bot tries the notice again after growing delays, when the bot is invited, and when the
// policy names another channel. A notice without a lasting problem is not tried again.
func TestOperatorsChannelIsRefused(t *testing.T) {
	o := newOperatorsHarness(t)
	refused := func() {
		t.Helper()
		waits := o.waits()
		if len(waits) != 1 {
			t.Fatalf("%d notices wait", len(waits))
		}
		o.ok(o.Outbox.Unreachable(o.ctx(), waits[0].ID, "not_in_channel", "C0009"))
	}
	o.ok(o.switchOff())
	o.clock.pass(10 * time.Second)
	refused()
	for _, delay := range []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute} {
		o.clock.pass(delay - time.Second)
		o.due()
		same(t, "notices before "+delay.String(), len(o.waits()), 0)
		o.clock.pass(time.Second)
		o.due()
		refused()
	}
	u, err := o.Views.Undelivered(o.ctx())
	o.ok(err)
	if len(u.Refused) != 1 || u.Refused[0].Message.Kind != store.OutboxOperators {
		t.Errorf("/readyz names %+v", u.Refused)
	}
	o.ok(o.Intake.ChannelRestored(o.ctx(), "", "C0009"))
	o.pass(10 * time.Second)
	o.wants("invited", webhookIsOff)

	o.tools.drifts("issue_refund", workflow.DriftChanged)
	o.review()
	o.clock.pass(time.Minute)
	refused()
	o.unseen()
	o.clock.pass(time.Minute)
	refused() // the new problem joins the refused notice
	o.to("policy-3", "#ops-2")
	o.pass(time.Minute)
	o.wants("another channel", webhookIsOff, toolChanged+", "+cardsUnseen)
	same(t, "the new notice goes to", o.messagesOf("operators")[1].To, "channel:#ops-2")

	o.pass(2 * time.Minute)
	o.tools.drifts("search_orders", workflow.DriftGone)
	o.review()
	o.clock.pass(time.Minute)
	refused()
	o.review()
	o.clock.pass(time.Minute)
	same(t, "notices before the delay is over", len(o.waits()), 0)
	o.ok(o.store.Update(o.ctx(), func(tx store.Tx) error { // as a program of an earlier version gives up
		return tx.ClearTimer(store.TimerRepost, o.messagesWith(tx, store.OutboxUnreachable)[0].ID)
	}))
	o.review()
	o.clock.pass(time.Minute)
	refused()
	o.tools.drifts("search_orders", "")
	o.review()
	o.clock.pass(24 * time.Hour)
	o.due()
	o.ok(o.Intake.ChannelRestored(o.ctx(), "", "C0009"))
	o.pass(time.Minute)
	o.wants("over before it was posted", webhookIsOff, toolChanged+", "+cardsUnseen)
}

// If the policy names no channel for the operators, no problem is stored. When the policy names one, problems that
// already exist are posted.
func TestOperatorsWithoutTheKey(t *testing.T) {
	o := newOperatorsHarness(t)
	o.to("policy-3", "")
	o.ok(o.switchOff())
	o.unseen()
	o.tools.drifts("issue_refund", workflow.DriftChanged)
	o.review()
	o.pass(time.Minute)
	o.wants("without the key")
	if _, err := readSetting(o.harness, store.SettingOperators); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("something is stored: %v", err)
	}
	o.to("policy-4", "#ops")
	o.to("policy-5", "") // the policy drops the channel before the notice is posted
	o.pass(time.Minute)
	o.wants("the key was there for a moment")
	o.to("policy-6", "#ops")
	o.pass(time.Minute)
	o.wants("with the key", webhookIsOff+", "+toolChanged+", "+cardsUnseen)
	o.to("policy-7", "")
	o.ok(o.Callers.ResumeWebhook(o.ctx(), "ci"))
	o.pass(time.Minute)
	o.to("policy-8", "#ops")
	o.pass(time.Minute)
	o.wants("the same problems", webhookIsOff+", "+toolChanged+", "+cardsUnseen)
	o.wantsNow("the same problems", "("+webhookIsOff+"), "+toolChanged+", "+cardsUnseen)
}

// messagesWith lists the notices in a state.
func (o *operatorsHarness) messagesWith(r store.Reader, state store.OutboxState) []store.OutboxMessage {
	o.Helper()
	all, err := r.OutboxMessagesOf("operators")
	o.ok(err)
	return slices.DeleteFunc(all, func(s store.OutboxMessage) bool { return s.State != state })
}

func readSetting(h *harness, key string) (s store.Setting, err error) {
	h.ok(h.store.View(h.ctx(), func(r store.Reader) error {
		s, err = r.Setting(key)
		return nil
	}))
	return s, err
}

// A deleted notice is not posted again.
func TestDeletedNotice(t *testing.T) {
	o := newOperatorsHarness(t)
	o.ok(o.switchOff())
	o.pass(time.Minute)
	o.ok(o.Outbox.MarkLost(o.ctx(), o.messagesOf("operators")[0]))
	o.review()
	o.pass(2 * time.Hour)
	o.ok(o.Callers.ResumeWebhook(o.ctx(), "ci"))
	o.pass(time.Minute)
	o.wants("deleted", webhookIsOff)
	o.ok(o.switchOff())
	o.pass(time.Minute)
	o.wants("again", webhookIsOff, webhookIsOff)
}

// The store keeps few notices and outbox messages, however many problems there were.
func TestNoticesAreBounded(t *testing.T) {
	o := newOperatorsHarness(t)
	for i := range 130 {
		o.tools.drifts(fmt.Sprintf("tool_%03d", i), workflow.DriftChanged)
		o.review()
	}
	o.pass(2 * time.Minute)
	if len(o.posts) != 2 || strings.Count(o.posts[0], "tool_") != 100 || strings.Count(o.posts[1], "tool_") != 30 {
		t.Errorf("%d posts: %q", len(o.posts), o.posts)
	}
	for i := range 130 {
		o.tools.drifts(fmt.Sprintf("tool_%03d", i), "")
	}
	o.review()
	for i := range 40 {
		o.clock.pass(2 * time.Hour)
		o.slack()
		o.tools.drifts(fmt.Sprintf("tool_%03d", i), workflow.DriftChanged)
		o.review()
		o.pass(time.Minute)
		o.tools.drifts(fmt.Sprintf("tool_%03d", i), "")
		o.review()
	}
	same(t, "posts", len(o.posts), 42)
	if n := len(o.messagesOf("operators")); n > 2 {
		t.Errorf("%d outbox messages", n)
	}
	for i := range 60 { // these problems last
		o.clock.pass(2 * time.Hour)
		o.tools.drifts(fmt.Sprintf("lasting_%03d", i), workflow.DriftChanged)
		o.review()
		o.pass(time.Minute)
	}
	if n := len(o.messagesOf("operators")); n > 50 {
		t.Errorf("%d outbox messages", n)
	}
	if slices.Contains(o.posts[42:], o.posts[41]) {
		t.Error("a problem was posted twice")
	}
}

// Two replicas with the same PostgreSQL database see the same problems at the same time. Only one of them stores and
// posts each problem.
func TestOperatorsOfTwoReplicas(t *testing.T) {
	t.Parallel()
	server := newDatabase(t)
	o := newOperatorsHarness(t)
	o.ok(o.store.Close())
	o.database = server.URL("postgres")
	o.open(nil)
	other := newOperatorsHarness(t)
	other.ok(other.store.Close())
	other.database = o.database
	other.open(nil)
	both := func() {
		t.Helper()
		var done sync.WaitGroup
		errs := make(chan error, 2)
		for _, w := range []*operatorsHarness{o, other} {
			done.Go(func() { errs <- w.Outbox.ReviewProblems(w.ctx()) })
		}
		done.Wait()
		o.ok(<-errs)
		o.ok(<-errs)
	}
	var posts []string
	for i := range 5 {
		tool := fmt.Sprintf("tool_%d", i)
		o.tools.drifts(tool, workflow.DriftChanged)
		other.tools.drifts(tool, workflow.DriftChanged)
		both()
		o.pass(2 * time.Minute)
		other.clock.pass(2 * time.Minute)
		posts = append(posts, "tool "+tool+" changed")
		o.wants("both see "+tool, posts...)
	}
}
