package approvers

import (
	"slices"
	"time"
)

// Hours are a role's working hours. Outside of them the clocks of its stages stand still.
type Hours struct {
	Zone     *time.Location
	Days     [7]bool       // by time.Weekday
	From, To time.Duration // since midnight, by the wall clock; From is before To, which is at most 24 h
	Holidays []string      // dates in Zone: "2026-12-25"
	Outside  Outside
}

// Outside says what happens to a request that comes outside of working hours.
type Outside string

// What happens outside of working hours.
const (
	OutsideWaits     Outside = "wait"     // the clocks stand still until the role works again
	OutsideEscalates Outside = "escalate" // the lead is told at once
)

// maxDays bounds how many days are looked at for the next working time: more than a year of holidays is no plan.
const maxDays = 400

// Open reports whether the role works at a time.
func (h *Hours) Open(t time.Time) bool {
	if h == nil {
		return true
	}
	from, to, works := h.day(t.In(h.Zone))
	return works && !t.Before(from) && t.Before(to)
}

// day is the working time of the day that a time in h's zone lies in.
func (h *Hours) day(t time.Time) (from, to time.Time, works bool) {
	if !h.Days[t.Weekday()] || slices.Contains(h.Holidays, t.Format(time.DateOnly)) {
		return from, to, false
	}
	y, m, d := t.Date()
	at := func(since time.Duration) time.Time { // by the wall clock: an hour that a change of clocks leaves out is not worked
		return time.Date(y, m, d, int(since.Hours()), int(since.Minutes())%60, int(since.Seconds())%60, 0, h.Zone)
	}
	return at(h.From), at(h.To), true
}

// After is when so much working time will have passed since a time. Without hours, time is working time.
func (h *Hours) After(t time.Time, d time.Duration) time.Time {
	if h == nil {
		return t.Add(d)
	}
	local := t.In(h.Zone)
	for range maxDays {
		from, to, works := h.day(local)
		if works && t.Before(to) {
			if t.Before(from) {
				t = from
			}
			if left := to.Sub(t); d <= left {
				return t.Add(d).UTC()
			} else if left > 0 {
				d -= left
			}
			t = to
		}
		y, m, day := local.Date()
		local = time.Date(y, m, day+1, 0, 0, 0, 0, h.Zone)
		if local.After(t) {
			t = local
		}
	}
	return t.Add(d).UTC()
}
