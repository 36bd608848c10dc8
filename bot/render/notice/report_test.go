package notice

import (
	"testing"
	"time"

	"countersign/approvers/workflow/settings"
)

func TestDaysOfTheWeeklyReport(t *testing.T) {
	t.Parallel()
	day := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }
	for want, from := range map[string]time.Time{
		"16–22 November 2026": day(2026, 11, 16), "30 November – 6 December 2026": day(2026, 11, 30), "28 December 2026 – 3 January 2027": day(2026, 12, 28),
	} {
		if got := reportDays(&settings.Report{Since: from, Until: from.AddDate(0, 0, 7)}); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
