package notice

import (
	"fmt"
	"time"

	"countersign/approvers/workflow/settings"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
	"countersign/store"
)

// WeeklyReport shows the weekly report. Everybody in the channel can read it, so it has no names of people.
func WeeklyReport(r *settings.Report, m store.OutboxMessage, t wording.Titles, now time.Time) block.Rendered {
	p := new(block.Builder)
	if r.Quiet {
		p.Para(block.Say("📊 ").Strong("Approvals, " + reportDays(r)).Say(": there were no calls."))
		reportDamage(p, r)
	} else {
		reportFigures(p, r, t.Title)
	}
	d := block.Single(p)
	over := t.Policy.Report.Channel == "" || !now.Before(r.End)
	d.Expired = over && m.TS == "" // a posted report stays
	return d
}

// reportFigures adds the figures of a report. title returns the title of a role.
func reportFigures(p *block.Builder, r *settings.Report, title func(role string) string) {
	p.Headline("Approvals, " + reportDays(r))
	p.Para(
		block.Say("Requests to people: ").Strong(fmt.Sprint(r.Asked)).Say(fmt.Sprintf(" · approved: %d · rejected: %d · expired: %d", r.Approved, r.Rejected, r.Expired)),
		block.Say(fmt.Sprintf("Waiting at the end of the week: %d", r.Open)),
	)
	p.Para(reportPace(r)...)
	reportList(p, "Where requests wait", len(r.Waits), func(i int) *block.RichText {
		x := r.Waits[i]
		return block.Say(title(x.Role) + ": " + block.Plural(x.Open, "request") + ", the oldest for " + block.RoughDuration(r.Until.Sub(x.Since)))
	})
	reportList(p, "Rejected most often", len(r.Opposed), func(i int) *block.RichText {
		return block.Say(block.Name(r.Opposed[i].Tool) + ": " + times(r.Opposed[i].N))
	})
	reportList(p, "Approved and never rejected: perhaps a grant or a lower risk is enough", len(r.Unopposed), func(i int) *block.RichText {
		return block.Say(block.Name(r.Unopposed[i].Tool) + ": " + block.Plural(r.Unopposed[i].N, "approval"))
	})
	p.Para(reportRest(r)...)
	reportDamage(p, r)
	p.Para(block.Say("The whole report: ").Code("countersign audit report --since " + r.Since.Format(time.RFC3339) + " --until " + r.Until.Format(time.RFC3339)))
}

// reportPace says how fast people decided.
func reportPace(r *settings.Report) (lines []*block.RichText) {
	if r.Decided > 0 {
		lines = append(lines, block.Say(fmt.Sprintf("Decisions: %d · half of them within %s · 95 %% within %s",
			r.Decided, block.RoughDuration(time.Duration(r.Half)*time.Millisecond), block.RoughDuration(time.Duration(r.Most)*time.Millisecond))))
	}
	if r.Quick > 0 {
		lines = append(lines, block.Say(fmt.Sprintf("Approvals within 3 seconds, too soon to have read the card: %d of %d (%d %%)", r.Quick, r.Timed, 100*r.Quick/max(1, r.Timed))))
	}
	return lines
}

// reportRest has a line for each figure that is not zero.
func reportRest(r *settings.Report) (lines []*block.RichText) {
	if r.Unmatched > 0 {
		lines = append(lines, block.Say(fmt.Sprintf("Rules that matched no call (of tools that were called): %d of %d", r.Unmatched, r.Rules)))
	}
	if r.Automatic > 0 {
		line := block.Say("Automatic runs: " + fmt.Sprint(r.Automatic))
		if r.Granted > 0 {
			line.Say(fmt.Sprintf(", of these under a grant: %d", r.Granted))
		}
		lines = append(lines, line)
	}
	for _, x := range []struct {
		what string
		n    int
	}{{"Calls that observe mode held back", r.Observed}, {"Runs with an unknown outcome", r.Unknown}, {"Approved by an operator in place of the approvers", r.BreakGlass}} {
		if x.n > 0 {
			lines = append(lines, block.Say(fmt.Sprintf("%s: %d", x.what, x.n)))
		}
	}
	return lines
}

// reportList adds a paragraph with a bold title and n lines. Without lines, reportList adds nothing.
func reportList(p *block.Builder, title string, n int, line func(int) *block.RichText) {
	if n == 0 {
		return
	}
	lines := []*block.RichText{new(block.RichText).Strong(title)}
	for i := range n {
		lines = append(lines, block.Say("• ").Add(line(i)))
	}
	p.Para(lines...)
}

// reportDamage says how many rows of the history are not counted.
func reportDamage(p *block.Builder, r *settings.Report) {
	if r.Damaged > 0 {
		p.Para(block.Say("⚠️ The history is damaged: " + block.Plural(r.Damaged, "row") + " can't be read, and the figures leave them out. The operator can run ").Code("countersign audit verify").Say("."))
	}
}

// reportDays names the days of a report, such as 16–22 November 2026.
func reportDays(r *settings.Report) string {
	from, to := r.Since, r.Until.Add(-12*time.Hour)
	switch {
	case from.Year() != to.Year():
		return from.Format("2 January 2006") + " – " + to.Format("2 January 2006")
	case from.Month() != to.Month():
		return from.Format("2 January") + " – " + to.Format("2 January 2006")
	}
	return from.Format("2") + "–" + to.Format("2 January 2006")
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
