package workspace

import (
	"fmt"
	"slices"
)

// archiveAs is POST /people/{user}/archive.
func (s *Server) archiveAs(p *personCall) (object, *apiError) {
	return s.changeChannel(p, func(u *user, ch *channel) *apiError {
		if ch.Archived {
			return refuse("already_archived")
		}
		ch.Archived = true
		s.sendChannelEvent(ch, "archive", object{"user": u.ID, "is_moved": 0})
		return nil
	})
}

// unarchiveAs is POST /people/{user}/unarchive. As in Slack, the person who unarchives a public channel is its only
// member afterwards, so people must invite the app. A private channel keeps its members.
func (s *Server) unarchiveAs(p *personCall) (object, *apiError) {
	return s.changeChannel(p, func(u *user, ch *channel) *apiError {
		if !ch.Archived {
			return refuse("not_archived")
		}
		if ch.Archived = false; !ch.Private {
			ch.Members = []string{u.ID}
		}
		by := "user"
		if ch.Private { // Slack has two names for this field
			by = "actor_id"
		}
		s.sendChannelEvent(ch, "unarchive", object{by: u.ID})
		return nil
	})
}

// deleteChannelAs is POST /people/{user}/delete_channel, for admins only.
func (s *Server) deleteChannelAs(p *personCall) (object, *apiError) {
	return s.changeChannel(p, func(u *user, ch *channel) *apiError {
		if !u.Admin {
			return refuse("not_an_admin")
		}
		delete(s.channels, ch.ID)
		s.chanIDs = slices.DeleteFunc(slices.Clone(s.chanIDs), func(id string) bool { return id == ch.ID })
		s.sendChannelEvent(ch, "deleted", object{})
		return nil
	})
}

func (s *Server) changeChannel(p *personCall, change func(*user, *channel) *apiError) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch, failed := s.inChannelToChange(p, "cant_archive_general")
	if failed != nil {
		return nil, failed
	}
	if failed := change(u, ch); failed != nil {
		return nil, failed
	}
	return object{"channel": ch.ID}, nil
}

// inGroup returns the person and a channel that the person is in. inGroup refuses direct messages. general is the error
// code for the general channel. If general is empty, the general channel is allowed.
func (s *Server) inGroup(p *personCall, general string) (*user, *channel, *apiError) {
	u, ch, failed := s.inChannel(p)
	switch {
	case failed != nil:
		return nil, nil, failed
	case ch.IM || ch.MPIM:
		return nil, nil, refuse("method_not_supported_for_channel_type")
	case ch.General && general != "":
		return nil, nil, refuse(general)
	}
	return u, ch, nil
}

// inChannelToChange is like inGroup, but refuses guests.
func (s *Server) inChannelToChange(p *personCall, general string) (*user, *channel, *apiError) {
	u, ch, failed := s.inGroup(p, general)
	if failed == nil && u.Restricted {
		return nil, nil, refuse("user_is_restricted")
	}
	return u, ch, failed
}

// sendChannelEvent notifies the app and the people of an event that concerns the channel as a whole.
func (s *Server) sendChannelEvent(ch *channel, what string, event object) {
	s.feed.send(change{Type: "channel", Channel: ch.ID, only: s.audience(ch)})
	if ch.Private && !ch.has(s.botUser.ID) {
		return
	}
	event["type"], event["channel"] = ch.eventNamed(what), ch.ID
	s.emit(ch.eventNamed(what), event)
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
