package workspace

import "slices"

// visible finds a channel that the app can see: every public one, and the others it is
// a member of.
func (s *Server) visible(id string) (*channel, *apiError) {
	ch := s.channels[id]
	if ch == nil || (ch.kind() != "channel" && !ch.has(s.botUser.ID)) {
		return nil, refuse("channel_not_found")
	}
	return ch, nil
}

// conversationsInfo is conversations.info.
func (s *Server) conversationsInfo(c *call) (object, *apiError) {
	ch, failed := s.visible(c.text("channel"))
	if failed != nil {
		return nil, failed
	}
	out := ch.json(s.botUser.ID, s.team.ID)
	if c.flag("include_num_members") {
		out["num_members"] = len(ch.Members)
	}
	if ch.has(s.botUser.ID) {
		out["last_read"] = lastRead(ch, s.botUser.ID)
	}
	return object{"channel": out}, nil
}

// conversationsList is conversations.list.
func (s *Server) conversationsList(c *call) (object, *apiError) {
	return s.listChannels(c, func(ch *channel) bool { return ch.kind() == "channel" || ch.has(s.botUser.ID) })
}

// usersConversations is users.conversations: the channels that a user (the app itself
// where none is named) is a member of, as far as the app can see them.
func (s *Server) usersConversations(c *call) (object, *apiError) {
	id := s.botUser.ID
	if other := c.text("user"); other != "" {
		if s.users[other] == nil {
			return nil, refuse("user_not_found")
		}
		id = other
	}
	return s.listChannels(c, func(ch *channel) bool {
		return ch.has(id) && (ch.kind() == "channel" || ch.has(s.botUser.ID))
	})
}

// channelTypes are the kinds of channels as calls name them.
var channelTypes = map[string]string{"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}

func (s *Server) listChannels(c *call, include func(*channel) bool) (object, *apiError) {
	types := c.words("types")
	if len(types) == 0 {
		types = []string{"public_channel"}
	}
	var kinds []string
	for _, t := range types {
		if channelTypes[t] == "" {
			return nil, refuse("invalid_types")
		}
		kinds = append(kinds, channelTypes[t])
	}
	var ids []string
	for _, id := range s.chanIDs {
		ch := s.channels[id]
		if ch.Archived && c.flag("exclude_archived") {
			continue
		}
		if slices.Contains(kinds, ch.kind()) && include(ch) {
			ids = append(ids, id)
		}
	}
	ids, next, failed := cutPage(c, ids, 100, 1000)
	if failed != nil {
		return nil, failed
	}
	list := make([]object, len(ids))
	for i, id := range ids {
		list[i] = s.channels[id].json(s.botUser.ID, s.team.ID)
		list[i]["num_members"] = len(s.channels[id].Members)
	}
	return object{"channels": list, "response_metadata": object{"next_cursor": next}}, nil
}

// conversationsMembers is conversations.members.
func (s *Server) conversationsMembers(c *call) (object, *apiError) {
	ch, failed := s.visible(c.text("channel"))
	if failed != nil {
		return nil, failed
	}
	ids, next, failed := cutPage(c, ch.Members, 100, 1000)
	if failed != nil {
		return nil, failed
	}
	return object{"members": slices.Clone(ids), "response_metadata": object{"next_cursor": next}}, nil
}

// conversationsJoin is conversations.join.
func (s *Server) conversationsJoin(c *call) (object, *apiError) {
	ch, failed := s.visible(c.text("channel"))
	switch {
	case failed != nil:
		return nil, failed
	case ch.kind() != "channel":
		return nil, refuse("method_not_supported_for_channel_type")
	case ch.Archived:
		return nil, refuse("is_archived")
	case ch.has(s.botUser.ID):
		return object{"channel": ch.json(s.botUser.ID, s.team.ID), "warning": "already_in_channel"}, nil
	}
	s.join(ch, s.botUser, "")
	return object{"channel": ch.json(s.botUser.ID, s.team.ID)}, nil
}

// join makes somebody a member of a channel and says so.
func (s *Server) join(ch *channel, u *user, inviter string) {
	ch.Members = append(ch.Members, u.ID)
	s.feed.send(change{Type: "channel", Channel: ch.ID, only: s.audience(ch)})
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
	s.emit("member_joined_channel", event)
	s.publish(ch, &message{TS: s.nextTS(), Subtype: "channel_join", User: u.ID, Text: "<@" + u.ID + "> has joined the channel"})
}
