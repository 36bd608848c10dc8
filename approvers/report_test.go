package approvers

import (
	"testing"
	"time"
)

// The report of a week is due from Monday 09:00 to Wednesday 09:00 in its zone. This also holds around changes of the
// clock and at the turn of a year.
func TestReportIsDue(t *testing.T) {
	t.Parallel()
	const layout = "2006-01-02 15:04"
	for _, tt := range []struct{ zone, now, want string }{ // now is in UTC; want has the limits of the week in the zone
		{"UTC", "2026-11-23 08:59", ""},
		{"UTC", "2026-11-23 09:00", "2026-11-16 00:00 +0000 to 2026-11-23 00:00 +0000"},
		{"UTC", "2026-11-25 08:59", "2026-11-16 00:00 +0000 to 2026-11-23 00:00 +0000"},
		{"UTC", "2026-11-25 09:00", ""},
		{"UTC", "2026-11-29 23:59", ""},
		{"Europe/Berlin", "2026-11-23 07:59", ""},
		{"Europe/Berlin", "2026-11-23 08:00", "2026-11-16 00:00 +0100 to 2026-11-23 00:00 +0100"},
		{"Europe/Berlin", "2026-11-25 07:59", "2026-11-16 00:00 +0100 to 2026-11-23 00:00 +0100"},
		{"Europe/Berlin", "2026-11-25 08:00", ""},
		{"Europe/Berlin", "2026-10-26 07:59", ""}, // the week has 169 hours: on its Sunday the clock was set back
		{"Europe/Berlin", "2026-10-26 08:00", "2026-10-19 00:00 +0200 to 2026-10-26 00:00 +0100"},
		{"Europe/Berlin", "2026-03-30 06:59", ""}, // the week has 167 hours
		{"Europe/Berlin", "2026-03-30 07:00", "2026-03-23 00:00 +0100 to 2026-03-30 00:00 +0200"},
		{"Pacific/Kiritimati", "2026-11-22 19:00", "2026-11-16 00:00 +1400 to 2026-11-23 00:00 +1400"}, // 09:00 on Monday in this zone
		{"Pacific/Kiritimati", "2026-11-22 18:59", ""},
		{"America/Los_Angeles", "2026-11-23 16:59", ""},
		{"America/Los_Angeles", "2026-11-23 17:00", "2026-11-16 00:00 -0800 to 2026-11-23 00:00 -0800"},
		{"UTC", "2026-01-05 09:00", "2025-12-29 00:00 +0000 to 2026-01-05 00:00 +0000"},
		{"UTC", "2027-03-02 09:00", "2027-02-22 00:00 +0000 to 2027-03-01 00:00 +0000"},
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(layout, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		w, due := ReportPost{Channel: "#approvals", Zone: zone}.Due(now)
		got := ""
		if due {
			got = w.Since.Format(layout+" -0700") + " to " + w.Until.Format(layout+" -0700")
		}
		if got != tt.want {
			t.Errorf("%s UTC in %s: %q; want %q", tt.now, tt.zone, got, tt.want)
		}
		if _, due := (ReportPost{Zone: zone}).Due(now); due {
			t.Errorf("%s UTC in %s: a report is due without a channel", tt.now, tt.zone)
		}
	}
	if w, due := (ReportPost{Channel: "#approvals"}).Due(time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)); !due || w.Name() != "2026-11-16" {
		t.Errorf("without a zone: %s, %v", w.Name(), due)
	}
}
