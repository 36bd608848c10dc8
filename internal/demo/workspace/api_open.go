package workspace

import (
	"slices"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// conversationsOpen is conversations.open: one user is a DM, several are a group DM.
func (s *Server) conversationsOpen(c *call) (object, *apiError) {
	if id := c.text("channel"); id != "" {
		ch, failed := s.visible(id)
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
		u := s.users[id]
		if u == nil {
			return nil, refuse("user_not_found")
		}
		people = append(people, u)
	}
	if len(people) == 1 {
		_, existed := s.dms[pair(s.botUser.ID, people[0].ID)]
		ch, failed := s.dmWith(people[0])
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
	for _, id := range s.chanIDs {
		ch := s.channels[id]
		if ch.MPIM && slices.Equal(slices.Sorted(slices.Values(ch.Members)), members) {
			return s.opened(c, ch, true), nil
		}
	}
	ch := &channel{
		ID: wire.NewID("G"), Name: "mpdm-" + strings.Join(names, "--") + "-1", MPIM: true, Private: true, Members: members,
		Creator: s.botUser.ID, Created: s.cfg.Now().Unix(),
	}
	s.addChannel(ch)
	s.feed.send(change{Type: "channel", Channel: ch.ID, only: members})
	return s.opened(c, ch, false), nil
}
