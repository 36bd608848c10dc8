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

// The method "snoozed" reports whether the person has paused notifications.
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

// quietTimes changes the times in which people do not want to be disturbed, and tells the app and the page about these
// times.
type quietTimes struct {
	*core
	accounts *accounts
	events   *events
}

// status returns a person's quiet time as other people see it.
func (q *quietTimes) status(u *user) object {
	enabled, start, end := u.DND.window(q.cfg.Now(), u.zone())
	return object{"dnd_enabled": enabled, "next_dnd_start_ts": start, "next_dnd_end_ts": end}
}

// send notifies the app and the page that a person's quiet time has changed.
func (q *quietTimes) send(u *user) {
	q.events.emit("dnd_updated_user", object{"type": "dnd_updated_user", "user": u.ID, "dnd_status": q.status(u)})
	q.feed.send(change{Type: "people", User: u.ID})
}

// snooze pauses a person's notifications until a time, or ends the pause if the time is past.
func (q *quietTimes) snooze(u *user, until int64) {
	before := u.DND
	u.DND.SnoozeFrom, u.DND.SnoozeUntil = q.cfg.Now().Unix(), until
	if before.snoozed(q.cfg.Now()) && u.DND.snoozed(q.cfg.Now()) {
		u.DND.SnoozeFrom = before.SnoozeFrom // the pause continues
	}
}

// info is dnd.info. The snooze_* properties exist only for the caller's own account. The caller is the bot, so only
// the bot's account has these properties.
func (q *quietTimes) info(c *call) (object, *apiError) {
	id := c.text("user")
	if id == "" || id == q.botUser.ID {
		out := q.status(q.botUser)
		out["snooze_enabled"] = false
		return out, nil
	}
	u := q.accounts.byID[id]
	if u == nil {
		return nil, refuse("user_not_found")
	}
	return q.status(u), nil
}

// teamInfo is dnd.teamInfo. Unknown ids are left out.
func (q *quietTimes) teamInfo(c *call) (object, *apiError) {
	ids := strings.FieldsFunc(c.text("users"), func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case len(ids) == 0:
		return nil, refuse("no_users_provided")
	case len(ids) > maxQuietPeople:
		return nil, refuse("too_many_users")
	}
	users := object{}
	for _, id := range ids {
		if u := q.accounts.byID[id]; u != nil {
			users[id] = q.status(u)
		}
	}
	return object{"users": users}, nil
}

// longestSnooze is the maximum length of a pause.
const longestSnooze = 31 * 24 * time.Hour

// snoozeAs is POST /people/{user}/snooze. snoozeAs pauses notifications for some minutes, or until a time. If the
// number of minutes is 0, snoozeAs ends the pause.
func (q *quietTimes) snoozeAs(p *personCall) (object, *apiError) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u, failed := q.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	now := q.cfg.Now()
	minutes, inMinutes := p.whole("minutes")
	until, atTime := p.whole("until")
	if inMinutes {
		until = int(now.Unix()) + 60*minutes
	}
	if inMinutes == atTime || minutes < 0 || time.Unix(int64(until), 0).Sub(now) > longestSnooze || (until < int(now.Unix()) && until != 0) {
		return nil, refuse("invalid_snooze")
	}
	q.snooze(u, int64(until))
	q.send(u)
	return object{"dnd": q.forPage(u)}, nil
}

// forPage returns a person's quiet time as shown on the page.
func (q *quietTimes) forPage(u *user) object {
	out := q.status(u)
	out["snooze_enabled"] = u.DND.snoozed(q.cfg.Now())
	return out
}
