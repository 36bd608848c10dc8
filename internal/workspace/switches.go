package workspace

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Inject switches a fault on.
func (s *Server) Inject(f Fault) error {
	if err := f.validate(); err != nil {
		return err
	}
	s.faults.add(f)
	return nil
}

// ClearFaults forgets every fault that has not happened yet, and the rate limits.
func (s *Server) ClearFaults() {
	s.faults.clear()
	s.rates.set(false)
}

// SetRealRates turns Slack's published rate limits on or off.
func (s *Server) SetRealRates(on bool) { s.rates.set(on) }

// DropSockets breaks every socket as a network failure does.
func (s *Server) DropSockets() { s.hub.dropAll() }

// Disconnect asks the app to reconnect, as Slack does every few hours: reason is
// refresh_requested, warning or link_disabled.
func (s *Server) Disconnect(reason string) error {
	if !slices.Contains([]string{"refresh_requested", "warning", "link_disabled"}, reason) {
		return fmt.Errorf("there is no reason %q to disconnect: use refresh_requested, warning or link_disabled", reason)
	}
	s.hub.disconnect(reason)
	return nil
}

// Sockets is how many sockets the app has open.
func (s *Server) Sockets() int { return s.hub.count() }

// UserChange is what is different about a person; nil leaves a thing as it is.
type UserChange struct {
	Deactivated *bool   `json:"deactivated,omitempty"`
	Guest       *bool   `json:"guest,omitempty"`
	SingleGuest *bool   `json:"single_channel_guest,omitempty"`
	Stranger    *bool   `json:"stranger,omitempty"`
	Team        *string `json:"team,omitempty"`
	Title       *string `json:"title,omitempty"`
	Email       *string `json:"email,omitempty"`
	TZ          *string `json:"tz,omitempty"`
	// DND: do not disturb, from and until in Unix seconds; snooze until.
	DNDStart    *int64 `json:"dnd_start,omitempty"`
	DNDEnd      *int64 `json:"dnd_end,omitempty"`
	SnoozeUntil *int64 `json:"snooze_until,omitempty"`
}

// ChangeUser changes a person and tells the app (user_change). A deactivated person
// leaves the user groups, as in Slack.
func (s *Server) ChangeUser(id string, c UserChange) error {
	if c.TZ != nil {
		if _, err := loadZone(*c.TZ); err != nil {
			return fmt.Errorf("%q is no time zone: write an IANA name such as Europe/Berlin", *c.TZ)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[id]
	if u == nil {
		return fmt.Errorf("there is no person %q", id)
	}
	setBool := func(to *bool, from *bool) {
		if from != nil {
			*to = *from
		}
	}
	setText := func(to *string, from *string) {
		if from != nil {
			*to = *from
		}
	}
	setTime := func(to *int64, from *int64) {
		if from != nil {
			*to = *from
		}
	}
	setBool(&u.Deleted, c.Deactivated)
	setBool(&u.Restricted, c.Guest)
	setBool(&u.Ultra, c.SingleGuest)
	u.Restricted = u.Restricted || u.Ultra
	setBool(&u.Stranger, c.Stranger)
	setText(&u.Team, c.Team)
	setText(&u.Title, c.Title)
	setText(&u.Email, c.Email)
	setText(&u.TZ, c.TZ)
	setTime(&u.DND.NextStart, c.DNDStart)
	setTime(&u.DND.NextEnd, c.DNDEnd)
	setTime(&u.DND.SnoozeUntil, c.SnoozeUntil)
	u.DND.Enabled = u.DND.NextEnd > u.DND.NextStart
	now := s.cfg.Now()
	u.Updated = now.Unix()
	s.emit("user_change", object{"type": "user_change", "user": s.userForApp(u), "cache_ts": now.Unix()})
	if u.Deleted {
		s.stacks[u.ID] = nil
		for _, g := range s.groups {
			if slices.Contains(g.Users, u.ID) {
				s.setGroup(g, slices.DeleteFunc(slices.Clone(g.Users), func(id string) bool { return id == u.ID }))
			}
		}
	}
	s.feed.send(change{Type: "people", User: u.ID})
	s.saver.touch()
	return nil
}

// SetGroupUsers gives a user group (by id or handle) its members and tells the app
// (subteam_members_changed).
func (s *Server) SetGroupUsers(group string, users []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.group(group)
	for _, other := range s.groups {
		if other.Handle == strings.TrimPrefix(group, "@") {
			g = other
		}
	}
	if g == nil {
		return fmt.Errorf("there is no user group %q", group)
	}
	for _, id := range users {
		if s.users[id] == nil {
			return fmt.Errorf("there is no person %q", id)
		}
	}
	s.setGroup(g, slices.Clone(users))
	s.feed.send(change{Type: "people"})
	s.saver.touch()
	return nil
}

func (s *Server) setGroup(g *userGroup, users []string) {
	missing := func(from, in []string) []string {
		out := []string{}
		for _, id := range from {
			if !slices.Contains(in, id) {
				out = append(out, id)
			}
		}
		return out
	}
	added, removed := missing(users, g.Users), missing(g.Users, users)
	previous := g.Updated
	g.Users, g.Updated = users, s.cfg.Now().Unix()
	s.emit("subteam_members_changed", object{
		"type": "subteam_members_changed", "subteam_id": g.ID, "team_id": s.team.ID, "date_previous_update": previous,
		"date_update": g.Updated, "added_users": added, "added_users_count": len(added), "removed_users": removed, "removed_users_count": len(removed),
	})
	s.emit("subteam_updated", object{"type": "subteam_updated", "subteam": g.json(s.team.ID, true)})
}

// getFaults is GET /faults: what will still go wrong.
func (s *Server) getFaults(*personCall) (object, *apiError) {
	return object{"faults": s.faults.pending(), "real_rates": s.rates.active(), "sockets": s.hub.count()}, nil
}

// postFault is POST /faults: one switch, named by "fault".
func (s *Server) postFault(p *personCall) (object, *apiError) {
	var err error
	switch name := p.text("fault"); name {
	case "clear":
		s.ClearFaults()
	case "real_rates":
		s.SetRealRates(!p.has("on") || p.flag("on"))
	case "drop_sockets":
		s.DropSockets()
	case "disconnect":
		reason := p.text("reason")
		if reason == "" {
			reason = "refresh_requested"
		}
		err = s.Disconnect(reason)
	case "user":
		var c UserChange
		if err = rebind(p.values["set"], &c); err == nil {
			err = s.ChangeUser(p.text("user"), c)
		}
	case "group":
		err = s.SetGroupUsers(p.text("group"), p.words("users"))
	default:
		var f Fault
		if err = rebind(p.values, &f); err == nil {
			err = s.Inject(f)
		}
	}
	if err != nil {
		return nil, refuse("invalid_fault", err.Error())
	}
	return s.getFaults(p)
}

// rebind reads decoded JSON into a struct; names that it doesn't have are errors.
func rebind(v any, into any) error {
	dec := json.NewDecoder(strings.NewReader(string(encode(v))))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}
