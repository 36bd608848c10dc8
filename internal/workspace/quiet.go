package workspace

import "time"

// quiet is when a person doesn't want to be disturbed, in Unix seconds: at a time that comes again each day, and from
// now on until they have had their pause.
type quiet struct {
	Enabled     bool  `json:"enabled"` // the daily time
	NextStart   int64 `json:"next_start"`
	NextEnd     int64 `json:"next_end"`
	SnoozeFrom  int64 `json:"snooze_from"`
	SnoozeUntil int64 `json:"snooze_until"`
}

// snoozed tells whether the person has paused their notifications.
func (q quiet) snoozed(now time.Time) bool { return now.Unix() < q.SnoozeUntil }

// window is the quiet time that is on, or that comes next. Others see a pause as such a time, and nothing else of it: the
// snooze_* properties are for the person alone.
func (q quiet) window(now time.Time, zone *time.Location) (enabled bool, start, end int64) {
	if q.snoozed(now) {
		return true, q.SnoozeFrom, q.SnoozeUntil
	}
	if !q.Enabled {
		return false, 1, 1 // what Slack answers where no schedule is set
	}
	from, until := time.Unix(q.NextStart, 0).In(zone), time.Unix(q.NextEnd, 0).In(zone)
	if gone := now.Sub(until); gone >= 0 {
		days := int(gone / (24 * time.Hour)) // near enough; the clock may be put forward or back in between
		from, until = from.AddDate(0, 0, days), until.AddDate(0, 0, days)
	}
	for !now.Before(until) {
		from, until = from.AddDate(0, 0, 1), until.AddDate(0, 0, 1)
	}
	return true, from.Unix(), until.Unix()
}

// dndStatus is what others learn of a person's quiet time.
func (s *Server) dndStatus(u *user) object {
	enabled, start, end := u.DND.window(s.cfg.Now(), u.zone())
	return object{"dnd_enabled": enabled, "next_dnd_start_ts": start, "next_dnd_end_ts": end}
}

// tellQuiet tells the app and the page that somebody's quiet time is another.
func (s *Server) tellQuiet(u *user) {
	s.emit("dnd_updated_user", object{"type": "dnd_updated_user", "user": u.ID, "dnd_status": s.dndStatus(u)})
	s.feed.send(change{Type: "people", User: u.ID})
}

// snooze pauses a person's notifications until a time, or ends the pause with one that is past.
func (s *Server) snooze(u *user, until int64) {
	before := u.DND
	u.DND.SnoozeFrom, u.DND.SnoozeUntil = s.cfg.Now().Unix(), until
	if before.snoozed(s.cfg.Now()) && u.DND.snoozed(s.cfg.Now()) {
		u.DND.SnoozeFrom = before.SnoozeFrom // it goes on
	}
}
