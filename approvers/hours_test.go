package approvers_test

import (
	"testing"
	"time"

	"countersign/approvers"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// weekdays returns working hours from Monday to Friday.
func weekdays(t testing.TB, zoneName string, from, to time.Duration, holidays ...string) *approvers.Hours {
	return &approvers.Hours{
		Zone: zone(t, zoneName), Days: [7]bool{time.Monday: true, time.Tuesday: true, time.Wednesday: true, time.Thursday: true, time.Friday: true},
		From: from, To: to, Holidays: holidays, Outside: approvers.OutsideWaits,
	}
}

// everyDay returns working hours on every day.
func everyDay(t testing.TB, zoneName string, from, to time.Duration) *approvers.Hours {
	h := weekdays(t, zoneName, from, to)
	h.Days = [7]bool{true, true, true, true, true, true, true}
	return h
}

func moment(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

const hour = time.Hour

func TestWorkingTime(t *testing.T) {
	berlin := weekdays(t, "Europe/Berlin", 9*hour, 17*hour, "2026-12-25", "2026-12-28")
	nights := everyDay(t, "Europe/Berlin", 1*hour, 4*hour)
	tests := []struct {
		name  string
		hours *approvers.Hours
		from  string
		after time.Duration
		want  string
	}{
		{"no hours", nil, "2026-11-21T03:00:00Z", hour, "2026-11-21T04:00:00Z"},
		{"within a day", berlin, "2026-11-20T10:00:00+01:00", 30 * time.Minute, "2026-11-20T10:30:00+01:00"},
		{"before the day begins", berlin, "2026-11-20T06:00:00+01:00", 30 * time.Minute, "2026-11-20T09:30:00+01:00"},
		{"to the minute when the day ends", berlin, "2026-11-20T16:30:00+01:00", 30 * time.Minute, "2026-11-20T17:00:00+01:00"},
		{"over the weekend", berlin, "2026-11-20T16:50:00+01:00", 30 * time.Minute, "2026-11-23T09:20:00+01:00"},
		{"begins on a Saturday", berlin, "2026-11-21T12:00:00+01:00", 30 * time.Minute, "2026-11-23T09:30:00+01:00"},
		{"begins when the day ends", berlin, "2026-11-20T17:00:00+01:00", time.Minute, "2026-11-23T09:01:00+01:00"},
		{"over holidays and the weekend between them", berlin, "2026-12-24T16:00:00+01:00", 2 * hour, "2026-12-29T10:00:00+01:00"},
		{"several days", berlin, "2026-11-16T09:00:00+01:00", 20 * hour, "2026-11-18T13:00:00+01:00"},
		{"no time at all, at night", berlin, "2026-11-20T20:00:00+01:00", 0, "2026-11-23T09:00:00+01:00"},
		{"no time at all, at work", berlin, "2026-11-20T12:00:00+01:00", 0, "2026-11-20T12:00:00+01:00"},
		{"asked in another zone, where it is another day", berlin, "2026-11-23T00:30:00-10:00", hour, "2026-11-23T12:30:00+01:00"},
		{"over the change to summer time", berlin, "2026-03-27T16:00:00+01:00", 2 * hour, "2026-03-30T10:00:00+02:00"},
		{"over the change to winter time", berlin, "2026-10-23T16:00:00+02:00", 2 * hour, "2026-10-26T10:00:00+01:00"},
		{"a night that is an hour shorter", nights, "2026-03-29T00:00:00+01:00", 2*hour + time.Minute, "2026-03-30T01:01:00+02:00"},
		{"a night that is an hour longer", nights, "2026-10-25T00:00:00+02:00", 4 * hour, "2026-10-25T04:00:00+01:00"},
		{"until midnight", everyDay(t, "Europe/Berlin", 22*hour, 24*hour), "2026-11-20T23:00:00+01:00", 2 * hour, "2026-11-21T23:00:00+01:00"},
		{"all day long", everyDay(t, "Europe/Berlin", 0, 24*hour), "2026-10-24T12:00:00+02:00", 24 * hour, "2026-10-25T11:00:00+01:00"},
		// In Havana, the clocks change at midnight, so the day of the change has no midnight.
		{"a day without midnight", weekdays(t, "America/Havana", 9*hour, 17*hour), "2026-03-06T16:00:00-05:00", 2 * hour, "2026-03-09T10:00:00-04:00"},
		{"begins on a day without midnight", everyDay(t, "America/Havana", 0, 2*hour), "2026-03-07T20:00:00-05:00", 30 * time.Minute, "2026-03-08T01:30:00-04:00"},
		{"far longer than a year", berlin, "2026-01-05T09:00:00+01:00", 400 * 8 * hour, "2027-07-20T17:00:00+02:00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.hours.After(moment(t, tt.from), tt.after)
			if want := moment(t, tt.want); !got.Equal(want) {
				t.Errorf("%s after %s is %s; want %s", tt.after, tt.from, got, want.UTC())
			}
		})
	}
}

// TestLeftOutHours checks a time of day that a clock change skips. A skipped time counts as the moment of the change,
// both east and west of Greenwich.
func TestLeftOutHours(t *testing.T) {
	for zoneName, change := range map[string]string{"Europe/Berlin": "2026-03-29T03:00:00+02:00", "America/New_York": "2026-03-08T03:00:00-04:00"} {
		at := moment(t, change)
		h := everyDay(t, zoneName, 2*hour+30*time.Minute, 10*hour)
		if h.Open(at.Add(-time.Microsecond)) || !h.Open(at) {
			t.Errorf("%s: works before the change: %t, and at it: %t; want only the latter", zoneName, h.Open(at.Add(-time.Microsecond)), h.Open(at))
		}
		if got := h.After(at.Add(-3*hour), time.Minute); !got.Equal(at.Add(time.Minute)) {
			t.Errorf("%s: a minute is through at %s; want %s", zoneName, got, at.Add(time.Minute).UTC())
		}
		gone := everyDay(t, zoneName, 2*hour+10*time.Minute, 2*hour+50*time.Minute) // the change of clocks skips the whole shift
		if gone.Open(at) || gone.Open(at.Add(-30*time.Minute)) || gone.Open(at.Add(30*time.Minute)) {
			t.Errorf("%s: a shift that does not exist is worked", zoneName)
		}
		if got := gone.After(at.Add(-hour), time.Minute); got.Sub(at) < 20*hour {
			t.Errorf("%s: a minute of a shift that does not exist is through at %s", zoneName, got)
		}
	}
}

func TestOpen(t *testing.T) {
	h := weekdays(t, "Asia/Tokyo", 9*hour, 17*hour, "2026-11-23")
	for at, want := range map[string]bool{
		"2026-11-20T08:59:59+09:00": false, "2026-11-20T09:00:00+09:00": true, "2026-11-20T16:59:59+09:00": true, "2026-11-20T17:00:00+09:00": false,
		"2026-11-21T12:00:00+09:00": false, "2026-11-23T12:00:00+09:00": false, "2026-11-24T01:00:00Z": true,
	} {
		if got := h.Open(moment(t, at)); got != want {
			t.Errorf("works at %s: %t", at, got)
		}
	}
	if !(*approvers.Hours)(nil).Open(start) {
		t.Error("a role without hours does not work")
	}
}

// TestHoursThatNeverCome checks working hours without a working day. All time then counts as working time, so no
// request waits forever.
func TestHoursThatNeverCome(t *testing.T) {
	h := weekdays(t, "UTC", 9*hour, 17*hour)
	h.Days = [7]bool{}
	if got := h.After(start, hour); !got.Equal(start.Add(hour)) {
		t.Errorf("an hour is through at %s", got)
	}
}

// TestWorkingTimeRises checks that a longer working time never ends earlier than a shorter one with the same start.
// TestWorkingTimeRises also checks that working time ends within working hours.
func TestWorkingTimeRises(t *testing.T) {
	h := weekdays(t, "Europe/Berlin", 9*hour, 17*hour, "2026-03-31")
	for at := moment(t, "2026-03-25T00:00:00Z"); at.Before(moment(t, "2026-04-03T00:00:00Z")); at = at.Add(37 * time.Minute) {
		before := at
		for d := time.Minute; d < 40*hour; d += 53 * time.Minute {
			got := h.After(at, d)
			if got.Before(before) || got.Before(at.Add(d)) || !h.Open(got.Add(-time.Microsecond)) {
				t.Fatalf("%s after %s is %s", d, at, got)
			}
			before = got
		}
	}
}
