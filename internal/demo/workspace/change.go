package workspace

import (
	"fmt"
	"slices"
	"strings"
)

// UserChange is a change of a person; nil fields stay as they are.
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

// ChangeUser changes a person and tells the app (user_change, dnd_updated_user). A deactivated person
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
	before := *u
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
	u.DND.Enabled = u.DND.NextEnd > u.DND.NextStart
	if c.SnoozeUntil != nil {
		s.snooze(u, *c.SnoozeUntil)
	}
	if u.DND != before.DND {
		s.tellQuiet(u)
		before.DND = u.DND
	}
	if *u != before {
		now := s.cfg.Now()
		u.Updated = now.Unix()
		s.emit("user_change", object{"type": "user_change", "user": s.userForApp(u), "cache_ts": now.Unix()})
	}
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

// ShareChannel shares a channel with another organization, or ends the sharing, and notifies the app (channel_shared,
// channel_unshared).
func (s *Server) ShareChannel(id string, shared bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[id]
	if ch == nil || ch.IM || ch.MPIM {
		return fmt.Errorf("there is no channel %q", id)
	}
	if ch.Shared == shared {
		return nil
	}
	ch.Shared = shared
	now := s.cfg.Now()
	event := object{"type": "channel_shared", "connected_team_id": "T0999", "channel": id, "event_ts": fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)}
	if !shared {
		event["type"], event["previously_connected_team_id"], event["is_ext_shared"] = "channel_unshared", "T0999", false
		delete(event, "connected_team_id")
	}
	s.emit(event["type"].(string), event)
	s.feed.send(change{Type: "channel"})
	s.saver.touch()
	return nil
}
