package approvers

import (
	"slices"
	"time"
)

// Hours are a role's working hours. Outside of these hours, the time limits of the role's stages do not run.
type Hours struct {
	Zone     *time.Location
	Days     [7]bool       // by time.Weekday
	From, To time.Duration // time of day, as a duration since midnight; From is before To, and To is at most 24 h
	Holidays []string      // dates in Zone: "2026-12-25"
	Outside  Outside
}

// Outside is the treatment of a request that arrives outside of working hours.
type Outside string

// The treatments of a request that arrives outside of working hours.
const (
	OutsideWaits     Outside = "wait"     // the time limits of the stage do not run until the role works again
	OutsideEscalates Outside = "escalate" // the lead is notified immediately
)

// maxDays is the number of dates that After looks at. If these dates have too little working time, After counts all
// time after the last working time that it found. If After found no working time, it counts all time after the start.
const maxDays = 3 * 366

// Open reports whether the role works at the given time.
func (h *Hours) Open(t time.Time) bool {
	if h == nil {
		return true
	}
	from, to, works := h.day(t.In(h.Zone).Date())
	return works && !t.Before(from) && t.Before(to)
}

// day returns the working time of a date in h's zone.
func (h *Hours) day(y int, m time.Month, d int) (from, to time.Time, works bool) {
	noon := time.Date(y, m, d, 12, 0, 0, 0, h.Zone) // not midnight, because a clock change can skip midnight
	if !h.Days[noon.Weekday()] || slices.Contains(h.Holidays, noon.Format(time.DateOnly)) {
		return from, to, false
	}
	return h.at(y, m, d, h.From), h.at(y, m, d, h.To), true
}

// at returns the moment at which a clock in h's zone shows the given time of day on the given date. If a clock change
// skips this time of day, at returns the moment of the change.
func (h *Hours) at(y int, m time.Month, d int, since time.Duration) time.Time {
	t := time.Date(y, m, d, 0, 0, int(since/time.Second), 0, h.Zone)
	asked := time.Date(y, m, d, 0, 0, int(since/time.Second), 0, time.UTC)
	_, offset := t.Zone()
	start, end := t.ZoneBounds()
	switch got := t.Add(time.Duration(offset) * time.Second); {
	case got.After(asked):
		return start
	case got.Before(asked):
		return end
	}
	return t
}

// After returns the time at which d of working time has passed since t. Without hours, all time is working time.
func (h *Hours) After(t time.Time, d time.Duration) time.Time {
	if h == nil {
		return t.Add(d)
	}
	y, m, day := t.In(h.Zone).Date()
	for i := range maxDays {
		from, to, works := h.day(y, m, day+i)
		if !works || !t.Before(to) {
			continue
		}
		if t.Before(from) {
			t = from
		}
		left := to.Sub(t)
		if d <= left {
			return t.Add(d).UTC()
		}
		d -= left
		t = to
	}
	return t.Add(d).UTC()
}
