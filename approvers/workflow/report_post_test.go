package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/internal/testkit/pgserver"
	"countersign/store"
	"countersign/store/postgres"
)

// reportHarness is a harness whose policy asks for weekly reports. The harness begins at 09:00 on a Monday in UTC.
type reportHarness struct {
	*harness
	*testing.T
	seen []string // the weeks of the reports that Slack shows
}

func newReportHarness(t *testing.T) *reportHarness {
	o := &reportHarness{harness: newHarness(t), T: t}
	o.to("#approvals")
	return o
}

func (o *reportHarness) to(channel string) {
	o.policy.Store(policy("policy-2", func(p *approvers.Policy) { p.Report = approvers.ReportPost{Channel: channel} }))
}

// To store a report, interceptor first calls the function in the field before.
type interceptor struct {
	audit.ReportPoster
	before func() error
	done   chan<- error // gets the result of each call
}

func (i interceptor) PostReport(ctx context.Context, report settings.Report) error {
	err := i.before()
	if err == nil {
		err = i.ReportPoster.PostReport(ctx, report)
	}
	i.done <- err
	return err
}

// begin runs a reporter until the function end is called.
func (o *reportHarness) begin(w *workflow.Workflow, s store.Store, before func() error, done chan<- error) (end func()) {
	ctx, stop := context.WithCancel(o.ctx())
	ended := make(chan error, 1)
	r := audit.NewReporter(interceptor{w.History, before, done}, s, o.policy.Load, slog.New(slog.DiscardHandler))
	go func() { ended <- r.Run(ctx) }()
	return func() {
		stop()
		o.ok(<-ended)
	}
}

// report lets the bot make the report that is due. The report must be due.
func (o *reportHarness) report(before func() error) error {
	o.Helper()
	done := make(chan error, 1)
	defer o.begin(o.Workflow, o.store, before, done)()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		o.Fatal("no report is made")
		return nil
	}
}

func nothing() error { return nil }

// due reports whether a report must be made.
func (o *reportHarness) due() bool {
	o.Helper()
	_, due, err := o.History.ReportDue(o.ctx())
	o.ok(err)
	return due
}

// message returns the outbox message of the reports, if it exists.
func (o *reportHarness) message() store.OutboxMessage {
	o.Helper()
	all := o.messagesOf("report")
	if len(all) > 1 {
		o.Fatalf("%d outbox messages show reports", len(all))
	}
	if len(all) == 0 {
		return store.OutboxMessage{}
	}
	return all[0]
}

// post lets Slack show a report that waits for delivery.
func (o *reportHarness) post() {
	o.Helper()
	s := o.message()
	if s.State != store.OutboxWanted {
		return
	}
	vm, err := o.Views.Message(o.ctx(), s.ID)
	o.ok(err)
	if s.Rank != store.RankLast || vm.Message.TS != "" {
		o.Errorf("it goes before others (%q), or changes the message %q", s.Rank, vm.Message.TS)
	}
	vm.Message.Channel, vm.Message.TS = "C0008", fmt.Sprintf("200.%d", len(o.seen)+1)
	o.ok(o.Outbox.Delivered(o.ctx(), vm.Message, workflow.SentMessage{Body: []byte(vm.Report.Week)}))
	o.seen = append(o.seen, vm.Report.Week)
}

func (o *reportHarness) wants(what string, weeks ...string) {
	o.Helper()
	same(o.T, what, o.seen, append([]string(nil), weeks...))
}

const week = 7 * 24 * time.Hour

// Each week has one report. All reports share one outbox message and one stored rendering.
func TestWeeklyReport(t *testing.T) {
	o := newReportHarness(t)
	o.clock.pass(-time.Second)
	same(t, "due before 09:00", o.due(), false)
	o.clock.pass(time.Second)
	o.approve(lead, o.ask(`issue_refund {"amount": 5}`).ID)
	o.ok(o.report(nothing))
	o.post()
	o.wants("on Monday", "2026-02-23")
	for range 2 {
		same(t, "due again", o.due(), false)
		o.to("#elsewhere")
		o.reopen()
	}
	o.clock.pass(week)
	o.ok(o.report(nothing))
	s := o.message()
	same(t, "a changed channel", s.To, "channel:#elsewhere")
	vm, err := o.Views.Message(o.ctx(), s.ID)
	o.ok(err)
	same(t, "figures", []int{vm.Report.Asked, vm.Report.Approved, vm.Report.Automatic, vm.Report.Rejected, vm.Report.Open}, []int{1, 1, 0, 0, 0})
	same(t, "unopposed", vm.Report.Unopposed, []settings.Count{{Tool: "issue_refund", N: 1}})
	o.post()
	o.clock.pass(-2 * week)
	same(t, "due after the clock was set back", o.due(), true) // the stored report is about the future
	o.clock.pass(2 * week)
	o.clock.pass(2 * week)
	o.ok(o.report(nothing))
	o.post()
	o.wants("two weeks later", "2026-02-23", "2026-03-02", "2026-03-16")
	kept := readStore(o.harness, func(r store.Reader) ([]store.Rendering, error) { return r.Renderings(s.ID) })
	same(t, "renderings that are stored", len(kept), 1)
	o.to("")
	o.clock.pass(week)
	same(t, "due without the key", o.due(), false)
}

// If the process is killed after it computed a report's figures and before it stored them, the next process makes the
// report. No report is made if, at this moment, a new policy asks for no reports, or the time for posting the report
// ends.
func TestWeeklyReportIsInterrupted(t *testing.T) {
	killed := errors.New("killed")
	o := newReportHarness(t)
	if err := o.report(func() error { return killed }); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	same(t, "the message", o.message(), store.OutboxMessage{})
	o.reopen()
	o.ok(o.report(nothing))
	o.post()
	o.wants("after a crash", "2026-02-23")

	o.clock.pass(week)
	o.ok(o.report(func() error { o.to(""); return nil }))
	o.post()
	o.to("#approvals")
	o.ok(o.report(func() error { o.clock.pass(2 * 24 * time.Hour); return nil }))
	o.post()
	o.wants("without the key, and late", "2026-02-23")
	same(t, "due late", o.due(), false)
}

// If Slack refuses a report, the bot posts the report again after an hour, in the channel that the policy names then.
// When a person invites the bot to a channel, the bot posts the report immediately. The report's figures stay the same.
// After two days, the bot stops trying.
func TestWeeklyReportIsRefused(t *testing.T) {
	o := newReportHarness(t)
	o.ok(o.report(nothing))
	refuse := func() {
		t.Helper()
		s := o.message()
		same(t, "to be posted", s.State, store.OutboxWanted)
		o.ok(o.Outbox.Unreachable(o.ctx(), s.ID, "not_in_channel", "C0008"))
	}
	refuse()
	o.ask(`issue_refund {"amount": 5}`)
	o.clock.pass(59 * time.Minute)
	o.due()
	same(t, "before an hour has passed", o.message().State, store.OutboxUnreachable)
	o.to("#approvals-2")
	o.clock.pass(time.Minute)
	same(t, "to be computed again", o.due(), false)
	same(t, "it goes to", o.message().To, "channel:#approvals-2")
	refuse()
	o.ok(o.Intake.ChannelRestored(o.ctx(), "", "C0008"))
	o.post()
	o.wants("let in", "2026-02-23")
	o.ok(o.Intake.ChannelRestored(o.ctx(), "", "C0009"))
	o.due()
	o.post()
	o.wants("let in elsewhere", "2026-02-23")

	o.clock.pass(week)
	o.ok(o.report(nothing))
	refuse()
	o.clock.pass(2 * 24 * time.Hour)
	o.due()
	o.ok(o.Intake.ChannelRestored(o.ctx(), "", "C0008"))
	same(t, "after two days", o.message().State, store.OutboxUnreachable)
}

// A deleted report is not posted again.
func TestWeeklyReportIsDeleted(t *testing.T) {
	o := newReportHarness(t)
	o.ok(o.report(nothing))
	o.post()
	o.ok(o.Outbox.MarkLost(o.ctx(), o.message()))
	o.due()
	o.post()
	o.wants("deleted", "2026-02-23")
	o.clock.pass(week)
	o.ok(o.report(nothing))
	o.post()
	o.wants("the next week", "2026-02-23", "2026-03-02")
}

// If audit records are damaged, the report has the figures of the other records. If the stored report is damaged, the
// bot makes it again.
func TestWeeklyReportOfADamagedStore(t *testing.T) {
	o := &reportHarness{harness: newBareHarness(t, t.TempDir()), T: t}
	o.to("#approvals")
	calls := o.propose(o.say(alice, "please").Turn, `issue_refund {"amount": 5}`, `issue_refund {"amount": 6}`)
	o.clock.pass(week)
	o.spoil("audit", calls[1].Request+"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01")
	o.ok(o.report(nothing))
	report := func() settings.Report {
		return readStore(o.harness, func(r store.Reader) (settings.Report, error) {
			p, _, err := settings.ReadReport(r)
			return p, err
		})
	}
	same(t, "requests, and damaged rows", []int{report().Asked, report().Damaged}, []int{1, 1})
	o.spoil("settings", store.SettingReport)
	same(t, "due", o.due(), true)
	o.ok(o.report(nothing))
	same(t, "the week", report().Week, "2026-03-02")
}

// Two replicas with the same PostgreSQL database compute the same report at the same time. Only one of them stores and
// posts the report.
func TestWeeklyReportOfTwoReplicas(t *testing.T) {
	t.Parallel()
	server := newDatabase(t)
	o := newReportHarness(t)
	o.ok(o.store.Close())
	o.database = server.URL("postgres")
	o.open(nil)
	other := newReportHarness(t)
	other.ok(other.store.Close())
	other.database = o.database
	other.open(nil)
	o.ask(`issue_refund {"amount": 5}`)
	for n := range 3 {
		if n > 0 {
			o.clock.pass(week)
			other.clock.pass(week)
		}
		var both sync.WaitGroup
		both.Add(2)
		meet := func() error {
			both.Done()
			both.Wait()
			return nil
		}
		done := make(chan error, 2)
		ends := []func(){o.begin(o.Workflow, o.store, meet, done), other.begin(other.Workflow, other.store, meet, done)}
		for range 2 {
			select {
			case err := <-done:
				o.ok(err)
			case <-time.After(time.Minute):
				t.Fatal("a replica makes no report")
			}
		}
		for _, end := range ends {
			end()
		}
		s := o.message()
		if s.Round != uint64(n) || s.State != store.OutboxWanted {
			t.Fatalf("week %d: the message is %s, in round %d", n, s.State, s.Round)
		}
		same(t, "due in the other replica", other.due(), false)
		o.post()
	}
	o.wants("three weeks", "2026-02-23", "2026-03-02", "2026-03-09")
}

// newDatabase starts a PostgreSQL server whose database has the tables of an empty store.
func newDatabase(t *testing.T) *pgserver.Server {
	t.Helper()
	server := pgserver.New(t, "fsync=off", "full_page_writes=off", "autovacuum=off")
	db, err := postgres.Open(t.Context(), server.URL("postgres"), postgres.Options{Create: true})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return server
}
