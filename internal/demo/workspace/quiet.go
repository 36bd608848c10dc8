package workspace

import (
	"strings"
	"time"
)

// quiet is a person's do-not-disturb time: a daily schedule and a pause. Times are in Unix seconds.
type quiet struct {
	Enabled     bool  `json:"enabled"` // the daily schedule is on
	NextStart   int64 `json:"next_start"`
	NextEnd     int64 `json:"next_end"`
	SnoozeFrom  int64 `json:"snooze_from"`
	SnoozeUntil int64 `json:"snooze_until"`
}

// snoozed reports whether the person has paused notifications.
func (q quiet) snoozed(now time.Time) bool { return now.Unix() < q.SnoozeUntil }

// window returns the current or next quiet time. Other people see a pause only as a quiet time, because the snooze_*
// properties are visible only to the person.
func (q quiet) window(now time.Time, zone *time.Location) (enabled bool, start, end int64) {
	if q.snoozed(now) {
		return true, q.SnoozeFrom, q.SnoozeUntil
	}
	if !q.Enabled {
		return false, 1, 1 // Slack's answer if there is no schedule
	}
	from, until := time.Unix(q.NextStart, 0).In(zone), time.Unix(q.NextEnd, 0).In(zone)
	if gone := now.Sub(until); gone >= 0 {
		days := int(gone / (24 * time.Hour)) // approximate, because summer time may have begun or ended in between
		from, until = from.AddDate(0, 0, days), until.AddDate(0, 0, days)
	}
	for !now.Before(until) {
		from, until = from.AddDate(0, 0, 1), until.AddDate(0, 0, 1)
	}
	return true, from.Unix(), until.Unix()
}

// dndStatus returns a person's quiet time as other people see it.
func (s *Server) dndStatus(u *user) object {
	enabled, start, end := u.DND.window(s.cfg.Now(), u.zone())
	return object{"dnd_enabled": enabled, "next_dnd_start_ts": start, "next_dnd_end_ts": end}
}

// sendQuiet notifies the app and the page that a person's quiet time has changed.
func (s *Server) sendQuiet(u *user) {
	s.events.emit("dnd_updated_user", object{"type": "dnd_updated_user", "user": u.ID, "dnd_status": s.dndStatus(u)})
	s.feed.send(change{Type: "people", User: u.ID})
}

// snooze pauses a person's notifications until a time, or ends the pause if the time is past.
func (s *Server) snooze(u *user, until int64) {
	before := u.DND
	u.DND.SnoozeFrom, u.DND.SnoozeUntil = s.cfg.Now().Unix(), until
	if before.snoozed(s.cfg.Now()) && u.DND.snoozed(s.cfg.Now()) {
		u.DND.SnoozeFrom = before.SnoozeFrom // the pause continues
	}
}

// dndInfo is dnd.info. The snooze_* properties exist only for the caller's own account. The caller is the bot, so only
// the bot's account has these properties.
func (s *Server) dndInfo(c *call) (object, *apiError) {
	id := c.text("user")
	if id == "" || id == s.botUser.ID {
		out := s.dndStatus(s.botUser)
		out["snooze_enabled"] = false
		return out, nil
	}
	u := s.accounts.byID[id]
	if u == nil {
		return nil, refuse("user_not_found")
	}
	return s.dndStatus(u), nil
}

// dndTeamInfo is dnd.teamInfo. Unknown ids are left out.
func (s *Server) dndTeamInfo(c *call) (object, *apiError) {
	ids := strings.FieldsFunc(c.text("users"), func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case len(ids) == 0:
		return nil, refuse("no_users_provided")
	case len(ids) > maxQuietPeople:
		return nil, refuse("too_many_users")
	}
	users := object{}
	for _, id := range ids {
		if u := s.accounts.byID[id]; u != nil {
			users[id] = s.dndStatus(u)
		}
	}
	return object{"users": users}, nil
}

// longestSnooze is the maximum length of a pause.
const longestSnooze = 31 * 24 * time.Hour

// snoozeAs is POST /people/{user}/snooze. snoozeAs pauses notifications for some minutes, or until a time. If the
// number of minutes is 0, snoozeAs ends the pause.
func (s *Server) snoozeAs(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, failed := s.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	now := s.cfg.Now()
	minutes, inMinutes := p.whole("minutes")
	until, atTime := p.whole("until")
	if inMinutes {
		until = int(now.Unix()) + 60*minutes
	}
	if inMinutes == atTime || minutes < 0 || time.Unix(int64(until), 0).Sub(now) > longestSnooze || (until < int(now.Unix()) && until != 0) {
		return nil, refuse("invalid_snooze")
	}
	s.snooze(u, int64(until))
	s.sendQuiet(u)
	return object{"dnd": s.quietForPage(u)}, nil
}

// quietForPage returns a person's quiet time as shown on the page.
func (s *Server) quietForPage(u *user) object {
	out := s.dndStatus(u)
	out["snooze_enabled"] = u.DND.snoozed(s.cfg.Now())
	return out
}
