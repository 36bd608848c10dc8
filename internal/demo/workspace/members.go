package workspace

import "slices"

// joinAs is POST /people/{user}/join, for public channels.
func (s *Server) joinAs(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, failed := s.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := s.channels.channelFor(u, p.text("channel"))
	switch {
	case failed != nil:
		return nil, failed
	case ch.Archived:
		return nil, refuse("is_archived")
	case !ch.has(u.ID):
		s.join(ch, u, "")
	}
	return object{"channel": s.channelSummary(u, ch)}, nil
}

// invite is POST /people/{user}/invite. People and bots can be invited into a channel that the person is in.
func (s *Server) invite(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch, failed := s.channels.inChannelToChange(p, "")
	if failed != nil {
		return nil, failed
	}
	joining, failed := s.chosen(p, func(other *user) (bool, *apiError) {
		if other.Deleted {
			return false, refuse("user_disabled")
		}
		return !ch.has(other.ID), nil
	})
	if failed != nil {
		return nil, failed
	}
	for _, other := range joining {
		s.join(ch, other, u.ID)
	}
	return object{"channel": s.channelSummary(u, ch)}, nil
}

// leaveAs is POST /people/{user}/leave.
func (s *Server) leaveAs(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch, failed := s.channels.inGroup(p, "cant_leave_general")
	if failed != nil {
		return nil, failed
	}
	s.part(ch, u, "")
	return object{}, nil
}

// removeAs is POST /people/{user}/remove. People and bots can be removed from a channel that the person is in.
func (s *Server) removeAs(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch, failed := s.channels.inChannelToChange(p, "cant_kick_from_general")
	if failed != nil {
		return nil, failed
	}
	leaving, failed := s.chosen(p, func(other *user) (bool, *apiError) {
		if other.ID == u.ID {
			return false, refuse("cant_kick_self")
		}
		return ch.has(other.ID), nil
	})
	if failed != nil {
		return nil, failed
	}
	for _, other := range leaving {
		s.part(ch, other, u.ID)
	}
	return object{"channel": s.channelSummary(u, ch)}, nil
}

// chosen returns the users that a call names and that the function pick accepts.
func (s *Server) chosen(p *personCall, pick func(*user) (bool, *apiError)) (picked []*user, failed *apiError) {
	for _, name := range p.words("users") {
		other, failed := s.accounts.anyone(name)
		if failed != nil {
			return nil, failed
		}
		yes, failed := pick(other)
		if failed != nil {
			return nil, failed
		}
		if yes {
			picked = append(picked, other)
		}
	}
	return picked, nil
}

// part removes an account from a channel and notifies the app. If the app itself was removed, the app gets a direct
// message from Slackbot. The app then gets the event channel_left or group_left instead of member_left_channel.
func (s *Server) part(ch *channel, u *user, actor string) {
	hears := append(s.channels.audience(ch), u.ID)
	ch.Members = slices.DeleteFunc(slices.Clone(ch.Members), func(id string) bool { return id == u.ID })
	s.feed.send(change{Type: "channel", Channel: ch.ID, only: hears})
	if u == s.botUser {
		s.events.emit(ch.eventNamed("left"), object{"type": ch.eventNamed("left"), "channel": ch.ID, "actor_id": actor})
		now := s.nextTS()
		s.events.emit("message.im", object{
			"type": "message", "user": "USLACKBOT", "team": s.team.ID, "channel": "DSLACKBOT", "channel_type": "im", "ts": now, "event_ts": now,
			"text": "You have been removed from #" + ch.Name + " by <@" + actor + ">",
		})
		return
	}
	if !ch.has(s.botUser.ID) {
		return
	}
	kind := "C"
	if ch.Private {
		kind = "G"
	}
	s.events.emit("member_left_channel", object{"type": "member_left_channel", "user": u.ID, "channel": ch.ID, "channel_type": kind, "team": u.Team})
}

// join makes an account a member of a channel, and notifies the app.
func (s *Server) join(ch *channel, u *user, inviter string) {
	ch.Members = append(ch.Members, u.ID)
	s.feed.send(change{Type: "channel", Channel: ch.ID, only: s.channels.audience(ch)})
	if !ch.has(s.botUser.ID) {
		return
	}
	kind := "C"
	if ch.Private {
		kind = "G"
	}
	event := object{"type": "member_joined_channel", "user": u.ID, "channel": ch.ID, "channel_type": kind, "team": u.Team}
	if inviter != "" {
		event["inviter"] = inviter
	}
	s.events.emit("member_joined_channel", event)
	s.publish(ch, &message{TS: s.nextTS(), Subtype: "channel_join", User: u.ID, Text: "<@" + u.ID + "> has joined the channel"})
}
