package workspace

import (
	"slices"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// conversationsInfo is conversations.info.
func (s *Server) conversationsInfo(c *call) (object, *apiError) {
	ch, failed := s.channels.visible(c.text("channel"))
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

// usersConversations is users.conversations. usersConversations returns the channels of a user that the app can see.
// The default user is the app.
func (s *Server) usersConversations(c *call) (object, *apiError) {
	id := s.botUser.ID
	if other := c.text("user"); other != "" {
		if s.accounts.byID[other] == nil {
			return nil, refuse("user_not_found")
		}
		id = other
	}
	return s.listChannels(c, func(ch *channel) bool {
		return ch.has(id) && (ch.kind() == "channel" || ch.has(s.botUser.ID))
	})
}

// channelTypes maps the channel types of calls to kinds.
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
	for _, id := range s.channels.ids {
		ch := s.channels.byID[id]
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
		list[i] = s.channels.byID[id].json(s.botUser.ID, s.team.ID)
		list[i]["num_members"] = len(s.channels.byID[id].Members)
	}
	return object{"channels": list, "response_metadata": object{"next_cursor": next}}, nil
}

// conversationsMembers is conversations.members.
func (s *Server) conversationsMembers(c *call) (object, *apiError) {
	ch, failed := s.channels.visible(c.text("channel"))
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
	ch, failed := s.channels.visible(c.text("channel"))
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
	s.membership.join(ch, s.botUser, "")
	return object{"channel": ch.json(s.botUser.ID, s.team.ID)}, nil
}

// conversationsOpen is conversations.open. With one user, conversationsOpen opens a DM. With several users,
// conversationsOpen opens a group DM.
func (s *Server) conversationsOpen(c *call) (object, *apiError) {
	if id := c.text("channel"); id != "" {
		ch, failed := s.channels.visible(id)
		if failed != nil {
			return nil, failed
		}
		if !ch.IM && !ch.MPIM {
			return nil, refuse("method_not_supported_for_channel_type")
		}
		return s.opened(c, ch, true), nil
	}
	ids := c.words("users")
	if len(ids) == 0 {
		return nil, refuse("users_list_not_supplied")
	}
	var people []*user
	for _, id := range ids {
		u := s.accounts.byID[id]
		if u == nil {
			return nil, refuse("user_not_found")
		}
		people = append(people, u)
	}
	if len(people) == 1 {
		_, existed := s.channels.dms[pair(s.botUser.ID, people[0].ID)]
		ch, failed := s.channels.dmWith(people[0])
		if failed != nil {
			return nil, failed
		}
		return s.opened(c, ch, existed), nil
	}
	if len(people) > maxGroupPeople {
		return nil, refuse("too_many_users")
	}
	return s.openGroupDM(c, people)
}

func (s *Server) opened(c *call, ch *channel, existed bool) object {
	out := object{"channel": object{"id": ch.ID}}
	if existed {
		out["no_op"], out["already_open"] = true, true
	}
	if c.flag("return_im") {
		out["channel"] = ch.json(s.botUser.ID, s.team.ID)
	}
	return out
}

func (s *Server) openGroupDM(c *call, people []*user) (object, *apiError) {
	members := []string{s.botUser.ID}
	names := []string{s.botUser.Name}
	for _, u := range people {
		switch {
		case u.Deleted:
			return nil, refuse("user_disabled")
		case u.Stranger:
			return nil, refuse("invalid_user_combination")
		case !slices.Contains(members, u.ID):
			members, names = append(members, u.ID), append(names, u.Name)
		}
	}
	slices.Sort(members)
	for _, id := range s.channels.ids {
		ch := s.channels.byID[id]
		if ch.MPIM && slices.Equal(slices.Sorted(slices.Values(ch.Members)), members) {
			return s.opened(c, ch, true), nil
		}
	}
	ch := &channel{
		ID: wire.NewID("G"), Name: "mpdm-" + strings.Join(names, "--") + "-1", MPIM: true, Private: true, Members: members,
		Creator: s.botUser.ID, Created: s.cfg.Now().Unix(),
	}
	s.channels.add(ch)
	s.feed.send(change{Type: "channel", Channel: ch.ID, only: members})
	return s.opened(c, ch, false), nil
}
