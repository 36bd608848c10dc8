package audit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// The interval at which the reporter checks whether a report is due, and the delay after a failure. Each attempt to
// make a report reads the whole history.
const (
	reportEvery = time.Minute
	reportAgain = 10 * time.Minute
)

// Reporter creates the weekly report if the policy asks for one. Reporter computes the figures outside of a
// transaction.
type Reporter struct {
	workflow ReportPoster
	store    store.Store
	policy   func() *approvers.Policy
	log      *slog.Logger
}

// ReportPoster knows which report is due, and stores and posts a report, as workflow.History does.
type ReportPoster interface {
	ReportDue(ctx context.Context) (week approvers.Week, due bool, err error)
	PostReport(ctx context.Context, report settings.Report) error
}

// NewReporter returns a reporter. The function policy returns the policy in force.
func NewReporter(wf ReportPoster, db store.Store, policy func() *approvers.Policy, log *slog.Logger) *Reporter {
	return &Reporter{workflow: wf, store: db, policy: policy, log: log}
}

// Run creates reports until ctx ends.
func (r *Reporter) Run(ctx context.Context) error {
	failed := false
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
		err := r.report(ctx)
		if errors.Is(err, store.ErrCommitUnknown) {
			return err
		}
		next.Reset(reportEvery)
		if err != nil {
			next.Reset(reportAgain)
		}
		if err != nil && !failed && ctx.Err() == nil && !errors.Is(err, store.ErrMoved) { // ErrMoved is logged elsewhere
			r.log.ErrorContext(ctx, "the weekly report can't be created; this is tried again", "cause", err)
		}
		failed = err != nil
	}
}

// report makes the report that is due, if any.
func (r *Reporter) report(ctx context.Context) error {
	week, due, err := r.workflow.ReportDue(ctx)
	if err != nil || !due {
		return err
	}
	figures, err := ReadActivity(ctx, r.store, r.policy(), ActivityOptions{Since: week.Since, Until: week.Until})
	left := new(Unread)
	if err != nil && !errors.As(err, &left) {
		return err
	}
	out := figures.weekly(week)
	left.Rows = slices.DeleteFunc(left.Rows, func(x store.Damage) bool { return x.Why == store.WhyLost }) // the salvage has reported these rows
	out.Damaged = len(left.Rows)
	return r.workflow.PostReport(ctx, out)
}

// Limits on the lists of a weekly report.
const (
	mostWaits     = 3
	mostOpposed   = 3
	mostUnopposed = 5
	mostName      = 200 // characters of a name, which may come from a model or a client
)

// weekly sums up the figures for the weekly report. The result contains no people and no reasons.
func (a *Activity) weekly(w approvers.Week) settings.Report {
	out := settings.Report{Week: w.Name(), Since: w.Since, Until: w.Until, End: w.End, BreakGlass: a.BreakGlass, Quiet: len(a.Tools) == 0 && a.BreakGlass == 0}
	for _, t := range a.Tools {
		out.Asked += t.Asked
		out.Approved += t.Approved
		out.Rejected += t.Rejected
		out.Expired += t.Expired
		out.Open += t.Open
		out.Automatic += t.Automatic
		out.Granted += t.Granted
		out.Observed += t.Observed
		out.Unknown += t.Unknown
	}
	var took Durations
	for _, x := range a.Roles {
		took.addAll(x.times)
		out.Timed, out.Quick = out.Timed+x.Timed, out.Quick+x.Quick
		if x.Open.N > 0 {
			out.Waits = append(out.Waits, settings.Wait{Role: shortName(x.Name), Open: x.Open.N, Since: x.Open.Since})
		}
	}
	slices.SortStableFunc(out.Waits, func(a, b settings.Wait) int { return cmp.Or(cmp.Compare(b.Open, a.Open), a.Since.Compare(b.Since)) })
	out.Waits = out.Waits[:min(len(out.Waits), mostWaits)]
	half, _ := took.Within(50)
	most, _ := took.Within(95)
	out.Decided, out.Half, out.Most = took.N, half.Milliseconds(), most.Milliseconds()
	out.Opposed = mostOf(a.Tools, mostOpposed, func(t *ToolFigures) int { return t.Rejected })
	out.Unopposed = mostOf(a.Tools, mostUnopposed, func(t *ToolFigures) int {
		if !t.Unopposed() || t.Name == OtherTools {
			return 0
		}
		return t.Approved
	})
	for _, x := range a.Rules {
		if x.Calls > 0 {
			out.Rules++
			if x.Matched == 0 {
				out.Unmatched++
			}
		}
	}
	return out
}

// mostOf returns the tools with the greatest figures above zero.
func mostOf(tools []*ToolFigures, most int, figure func(*ToolFigures) int) (out []settings.Count) {
	for _, t := range tools {
		if n := figure(t); n > 0 {
			out = append(out, settings.Count{Tool: shortName(t.Name), N: n})
		}
	}
	slices.SortStableFunc(out, func(a, b settings.Count) int { return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Tool, b.Tool)) })
	return out[:min(len(out), most)]
}

func shortName(name string) string {
	if all := []rune(name); len(all) > mostName {
		return string(all[:mostName-1]) + "…"
	}
	return name
}
