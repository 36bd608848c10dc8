package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// All weekly reports share one outbox message, as all signed heads do (headRef). Each report is a new round of the
// message. The setting with the report's figures names its week, so each week has one report.
const reportRef = "report"

// reportAgain is the time after which a refused report is posted again.
const reportAgain = time.Hour

// ReportDue returns the week whose report must be made now. If no report must be made, due is false. If Slack refused
// the report of this week, ReportDue posts the same report again.
func (w *History) ReportDue(ctx context.Context) (week approvers.Week, due bool, err error) {
	week, due = w.Policy().Report.Due(w.Now())
	if !due {
		return week, false, nil
	}
	refused := false
	err = w.Store.View(ctx, func(r store.Reader) error {
		due, refused = true, false
		last, _, err := settings.ReadReport(r)
		if errors.Is(err, store.ErrDamaged) {
			return nil // the transaction that stores the report sets the damaged record aside
		}
		if err != nil {
			return err
		}
		due = isNewReport(last, week, w.Now())
		if due {
			return nil
		}
		_, refused, err = refusedReport(r, w.Now(), reportAgain)
		return err
	})
	if err == nil && refused {
		err = w.update(ctx, "report again", func(t *tx) error { return t.reports.again(reportAgain) })
	}
	return week, due, err
}

// isNewReport reports whether a week's report must still be made. A last report about a time in the future does not
// count, because it was made while the clock was wrong.
func isNewReport(last settings.Report, week approvers.Week, now time.Time) bool {
	return last.Week < week.Name() || last.Until.After(now)
}

// refusedReport returns the outbox message of the reports. If Slack refused the message, and its last post was
// scheduled at least the given time ago, refused is true.
func refusedReport(r store.Reader, now time.Time, after time.Duration) (s store.OutboxMessage, refused bool, err error) {
	messages, err := r.OutboxMessagesOf(reportRef)
	if err != nil || len(messages) == 0 {
		return s, false, err
	}
	s = messages[0]
	return s, s.State == store.OutboxUnreachable && !now.Before(s.CreatedAt.Add(after)), nil
}

// PostReport stores a week's report and schedules its post. If the report is not due any more, or another replica made
// it, PostReport does nothing.
func (w *History) PostReport(ctx context.Context, report settings.Report) error {
	return w.update(ctx, "report", func(t *tx) error { return t.reports.post(report) })
}

func (t reportsTx) post(report settings.Report) error {
	week, due := t.policy.Report.Due(t.now)
	last, s, err := settings.ReadReport(t)
	if err != nil || !due || week.Name() != report.Week || !isNewReport(last, week, t.now) {
		return err
	}
	if s.Value, err = json.Marshal(report); err != nil {
		return err
	}
	if err := t.PutSetting(s); err != nil {
		return err
	}
	to := store.ToChannel + t.policy.Report.Channel
	posted, err := t.OutboxMessagesOf(reportRef)
	if err != nil {
		return err
	}
	if len(posted) == 0 {
		return t.outbox.add(store.OutboxMessage{Kind: store.OutboxReport, Ref: reportRef, To: to})
	}
	return t.reposts.postNext(posted[0], to)
}

// again tries to post a refused report in the policy's channel. The report must still be due, and its last post must
// have been scheduled at least the given time ago.
func (t reportsTx) again(after time.Duration) error {
	week, due := t.policy.Report.Due(t.now)
	if !due {
		return nil
	}
	last, _, err := settings.ReadReport(t)
	if err != nil || last.Week != week.Name() {
		return err
	}
	s, refused, err := refusedReport(t, t.now, after)
	if err != nil || !refused {
		return err
	}
	return t.reposts.postNext(s, store.ToChannel+t.policy.Report.Channel)
}
