package main

import (
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/approvers/workflow/settings"
	"countersign/internal/demo/workspaceclient"
	"countersign/internal/testkit"
	"countersign/store"
)

// Faked time begins on Saturday, 1 January 2000. firstMonday is Monday at 09:00 in Berlin.
var firstMonday = time.Date(2000, 1, 3, 8, 0, 0, 0, time.UTC)

// weeks is a harness for tests in which several weeks pass, and the bot posts reports.
type weeks struct {
	*synctestHarness
	channel string
}

// passesWeeks runs a test twice: with one bot that posts reports, and with several such bots.
func passesWeeks(t *testing.T, fn func(weeks)) {
	t.Parallel()
	for _, several := range []bool{false, true} {
		t.Run("bot"+amongReplicas(several), func(t *testing.T) {
			t.Parallel()
			inFakedTime(t, func(b *synctestHarness) {
				b.board = boardIf(several)
				b.policy += "report: {channel: \"#support-approvals\", zone: Europe/Berlin}\n"
			}, func(b *synctestHarness) { fn(weeks{b, "#support-approvals"}) })
		})
	}
}

// sleepUntil stops the bots until shortly before a time. Then the bots run up to this time.
func (b weeks) sleepUntil(at time.Time, before time.Duration) {
	b.Helper()
	b.ok(b.endAll())
	b.pass(time.Until(at.Add(-before)))
	b.start()
	b.pass(before)
}

// reader returns a person who is in the channel.
func (b weeks) reader() string {
	if b.channel == "#supplier-desk" {
		return "ada"
	}
	return "teo"
}

// The method "reports" returns the reports in the channel, the oldest first.
func (b weeks) reports() (texts []string) {
	b.Helper()
	messages, err := b.as(b.reader()).Messages(b.ctx, b.channel, "")
	b.ok(err)
	for _, m := range messages {
		if strings.Contains(m.Text, "Approvals, ") {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// The method "wants" checks how many reports are in the channel. The last one must contain the given texts.
func (b weeks) wants(what string, n int, lines ...string) {
	b.Helper()
	all := b.reports()
	if len(all) != n {
		b.Fatalf("%s: %d reports are in the channel, by %s; want %d:\n%s", what, len(all), time.Now().UTC(), n, strings.Join(all, "\n\n"))
	}
	for _, line := range lines {
		if !strings.Contains(all[n-1], line) {
			b.Errorf("%s: the report lacks %q:\n%s", what, line, all[n-1])
		}
	}
}

// reportState returns the week of the stored report, and the state of the report's outbox message.
func (b weeks) reportState() (week string, state store.OutboxState) {
	b.Helper()
	b.view(func(r store.Reader) error {
		report, _, err := settings.ReadReport(r)
		messages, err2 := r.OutboxMessagesOf("report")
		if week = report.Week; len(messages) > 0 {
			state = messages[0].State
		}
		if len(messages) > 1 {
			b.Errorf("there are %d outbox messages of reports", len(messages))
		}
		return errors.Join(err, err2)
	})
	return week, state
}

// decides lets somebody make a request, and teo decide it. If the parameter reason is not empty, teo rejects the
// request.
func (b weeks) decides(n, reason string) {
	b.Helper()
	b.says("plain " + n)
	r := b.asked(n)
	b.within(time.Minute, "the card of "+n, b.idle)
	b.pass(20 * time.Second)
	m := b.card(n)
	if reason == "" {
		b.ok(b.approve("teo", n, m))
	} else {
		e, ok := buttonFor(m, "Reject", r.ID)
		if !ok {
			b.Fatalf("there is no button to reject:\n%s", m.Text)
		}
		b.ok(b.as("teo").Press(b.ctx, m, e))
		var form []workspaceclient.View
		b.within(time.Minute, "a form", func() bool {
			var err error
			form, err = b.as("teo").Views(b.ctx)
			b.ok(err)
			return len(form) > 0 && form[0].Submit != nil
		})
		b.ok(b.as("teo").Submit(b.ctx, form[0].ID, map[string]string{"reason": reason}))
	}
	b.within(time.Minute, "the end of "+n, func() bool { return b.idle() && b.request(n).State != r.State })
}

// Each Monday, the bot posts one report about the week before. If Slack or the bot is down at that time, the report
// comes later. If this would be more than two days later, the bot does not post the report.
func TestWeeklyReports(t *testing.T) {
	testkit.SkipIfShort(t)
	const week = 7 * 24 * time.Hour
	const reason = "the-secret-reason"
	passesWeeks(t, func(b weeks) {
		b.decides("1", "")
		b.decides("2", reason)
		b.says("plain 3") // nobody decides the request
		b.asked("3")
		b.sleepUntil(firstMonday.Add(-10*time.Hour), time.Minute)
		b.says("patient 4") // the request waits for a day
		b.asked("4")
		b.sleepUntil(firstMonday.Add(-time.Minute), time.Minute)
		b.wants("before 09:00", 0)
		b.pass(3 * time.Minute)
		b.wants("after 09:00", 1, "Approvals, 27 December 1999 – 2 January 2000",
			"Requests to people: 4 · approved: 1 · rejected: 1 · expired: 1", "Waiting at the end of the week: 1", "Lead: 1 request, the oldest for 1 hour",
			"plain: once", "Decisions: 2 · half of them within", "--since 1999-12-27T00:00:00+01:00 --until 2000-01-03T00:00:00+01:00")
		for _, secret := range []string{reason, "Sam", "Teo", "U0001", "U0002"} {
			if strings.Contains(b.reports()[0], secret) {
				b.Errorf("the report contains %q:\n%s", secret, b.reports()[0])
			}
		}
		b.restart()
		b.sleepUntil(firstMonday.Add(24*time.Hour), 5*time.Minute)
		b.wants("the same week", 1)

		b.sleepUntil(firstMonday.Add(week-10*time.Minute), time.Minute)
		back := b.cut(testkit.NetworkRefuses)
		b.pass(20 * time.Minute)
		b.wants("Slack is down on Monday", 1)
		b.restart()
		b.pass(10 * time.Minute)
		back()
		b.pass(10 * time.Minute)
		b.wants("Slack is back", 2, "Approvals, 3–9 January 2000", "Requests to people: 0 · approved: 0 · rejected: 0 · expired: 1")

		if b.board != nil {
			return
		}
		b.sleepUntil(firstMonday.Add(2*week+48*time.Hour-time.Minute), 10*time.Second)
		b.wants("the bot was down on Monday and Tuesday", 3, "Approvals, 10–16 January 2000: there were no calls.")

		b.sleepUntil(firstMonday.Add(3*week+48*time.Hour+10*time.Minute), 10*time.Minute)
		b.wants("the bot was down for more than two days", 3)
		if week, _ := b.reportState(); week != "2000-01-10" {
			b.Errorf("there is a report about %s", week)
		}

		b.sleepUntil(firstMonday.Add(4*week-time.Minute), time.Minute)
		back = b.cut(testkit.NetworkRefuses)
		b.pass(10 * time.Minute)
		b.ok(b.endAll())
		b.pass(2 * 24 * time.Hour)
		b.start()
		back()
		b.pass(10 * time.Minute)
		b.wants("Slack was down for more than two days", 3)
		if week, state := b.reportState(); week != "2000-01-24" || state != store.OutboxRemoved {
			b.Errorf("the report about %s is %s", week, state)
		}

		b.sleepUntil(firstMonday.Add(5*week-time.Minute), time.Minute)
		var posted atomic.Bool
		b.becomes(func(c apiCall) callFate { // after the post, the bot can't find out whether the report is there
			switch {
			case posted.Load():
				return callFails
			case c.method == "chat.postMessage":
				posted.Store(true)
				return callUnheard
			}
			return callFine
		})
		b.pass(2 * time.Minute)
		b.ok(b.endAll())
		b.becomes(nil)
		b.pass(3 * 24 * time.Hour) // the report is in Slack, but the bot has not recorded that
		b.start()
		b.pass(10 * time.Minute)
		b.wants("nobody heard that it was posted", 4, "Approvals, 31 January – 6 February 2000: there were no calls.")
		if _, state := b.reportState(); state != store.OutboxShown {
			b.Errorf("the posted report is %s", state)
		}

		b.sleepUntil(firstMonday.Add(6*week+5*time.Minute), 10*time.Minute)
		b.wants("after all that", 5, "Approvals, 7–13 February 2000: there were no calls.")
	})
}

// A channel that is shared with another organisation gets the report only if the policy names the channel in
// shared_channels.
func TestWeeklyReportInASharedChannel(t *testing.T) {
	t.Parallel()
	for allowed, n := range map[string]int{"": 0, "shared_channels: [\"#supplier-desk\"]\n": 1} {
		inFakedTime(t, func(b *synctestHarness) {
			b.policy += allowed + "report: {channel: \"#supplier-desk\"}\n"
		}, func(b *synctestHarness) {
			w := weeks{b, "#supplier-desk"}
			w.sleepUntil(firstMonday.Add(time.Hour+5*time.Minute), 10*time.Minute) // 09:00 in UTC is an hour later than in Berlin
			w.wants("allowed by "+allowed, n)
			want := store.OutboxUnreachable
			if n > 0 {
				want = store.OutboxShown
			}
			if _, state := w.reportState(); state != want {
				b.Errorf("allowed by %q: the report is %s", allowed, state)
			}
			if told := strings.Count(strings.Join(b.log.all(), "\n"), "shared with another organisation, so it shows no cards"); told != 1-n {
				b.Errorf("allowed by %q: the log says %d times that the channel is shared", allowed, told)
			}
		})
	}
}

// If Slack refuses the kinds of blocks that the report has, the report is posted in a simpler form.
func TestWeeklyReportInASimplerForm(t *testing.T) {
	t.Parallel()
	inRefusingSlack(t, func(b *synctestHarness, slack *refusingWhen) {
		text := b.policy + "report: {channel: \"#support-approvals\"}\n"
		b.usePolicy(text)
		var refused atomic.Int32
		slack.refuses(func(method string, form url.Values) string {
			if method == "chat.postMessage" && strings.Contains(form.Get("blocks"), `"rich_text"`) {
				refused.Add(1)
				return "invalid_blocks"
			}
			return ""
		})
		w := weeks{b, "#support-approvals"}
		w.sleepUntil(firstMonday.Add(30*time.Minute), time.Minute)
		b.says("patient 1")
		b.asked("1")
		w.sleepUntil(firstMonday.Add(7*24*time.Hour+time.Hour+5*time.Minute), 10*time.Minute)
		w.wants("without rich text", 1, "Approvals, 3–9 January 2000", "Requests to people: 1")
		if refused.Load() == 0 {
			b.Error("Slack refused nothing")
		}
	})
}
