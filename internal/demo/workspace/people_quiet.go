package workspace

import "time"

// longestSnooze is the maximum length of a pause.
const longestSnooze = 31 * 24 * time.Hour

// snoozeAs is POST /people/{user}/snooze: no notifications for some minutes, or until a time; 0 ends the pause.
func (s *Server) snoozeAs(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, failed := s.me(p)
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
	s.tellQuiet(u)
	return object{"dnd": s.quietForPage(u)}, nil
}

// quietForPage returns a person's quiet time as shown on the page.
func (s *Server) quietForPage(u *user) object {
	out := s.dndStatus(u)
	out["snooze_enabled"] = u.DND.snoozed(s.cfg.Now())
	return out
}
