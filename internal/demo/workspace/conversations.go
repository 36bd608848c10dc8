package workspace

import (
	"slices"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// conversations answers Slack's methods about channels and their history.
type conversations struct {
	*core
	accounts   *accounts
	channels   *channels
	membership *membership
}

// info is conversations.info.
func (cv *conversations) info(c *call) (object, *apiError) {
	ch, failed := cv.channels.visible(c.text("channel"))
	if failed != nil {
		return nil, failed
	}
	out := ch.json(cv.botUser.ID, cv.team.ID)
	if c.flag("include_num_members") {
		out["num_members"] = len(ch.Members)
	}
	if ch.has(cv.botUser.ID) {
		out["last_read"] = lastRead(ch, cv.botUser.ID)
	}
	return object{"channel": out}, nil
}

// list is conversations.list.
func (cv *conversations) list(c *call) (object, *apiError) {
	return cv.listChannels(c, func(ch *channel) bool { return ch.kind() == "channel" || ch.has(cv.botUser.ID) })
}

// usersConversations is users.conversations. usersConversations returns the channels of a user that the app can see.
// The default user is the app.
func (cv *conversations) usersConversations(c *call) (object, *apiError) {
	id := cv.botUser.ID
	if other := c.text("user"); other != "" {
		if cv.accounts.byID[other] == nil {
			return nil, refuse("user_not_found")
		}
		id = other
	}
	return cv.listChannels(c, func(ch *channel) bool {
		return ch.has(id) && (ch.kind() == "channel" || ch.has(cv.botUser.ID))
	})
}

// channelTypes maps the channel types of calls to kinds.
var channelTypes = map[string]string{"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}

func (cv *conversations) listChannels(c *call, include func(*channel) bool) (object, *apiError) {
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
	for _, id := range cv.channels.ids {
		ch := cv.channels.byID[id]
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
		list[i] = cv.channels.byID[id].json(cv.botUser.ID, cv.team.ID)
		list[i]["num_members"] = len(cv.channels.byID[id].Members)
	}
	return object{"channels": list, "response_metadata": object{"next_cursor": next}}, nil
}

// members is conversations.members.
func (cv *conversations) members(c *call) (object, *apiError) {
	ch, failed := cv.channels.visible(c.text("channel"))
	if failed != nil {
		return nil, failed
	}
	ids, next, failed := cutPage(c, ch.Members, 100, 1000)
	if failed != nil {
		return nil, failed
	}
	return object{"members": slices.Clone(ids), "response_metadata": object{"next_cursor": next}}, nil
}

// join is conversations.join.
func (cv *conversations) join(c *call) (object, *apiError) {
	ch, failed := cv.channels.visible(c.text("channel"))
	switch {
	case failed != nil:
		return nil, failed
	case ch.kind() != "channel":
		return nil, refuse("method_not_supported_for_channel_type")
	case ch.Archived:
		return nil, refuse("is_archived")
	case ch.has(cv.botUser.ID):
		return object{"channel": ch.json(cv.botUser.ID, cv.team.ID), "warning": "already_in_channel"}, nil
	}
	cv.membership.join(ch, cv.botUser, "")
	return object{"channel": ch.json(cv.botUser.ID, cv.team.ID)}, nil
}

// open is conversations.open. With one user, the app gets a DM. With several users, the app gets a group DM.
func (cv *conversations) open(c *call) (object, *apiError) {
	if id := c.text("channel"); id != "" {
		ch, failed := cv.channels.visible(id)
		if failed != nil {
			return nil, failed
		}
		if !ch.IM && !ch.MPIM {
			return nil, refuse("method_not_supported_for_channel_type")
		}
		return cv.opened(c, ch, true), nil
	}
	ids := c.words("users")
	if len(ids) == 0 {
		return nil, refuse("users_list_not_supplied")
	}
	var people []*user
	for _, id := range ids {
		u := cv.accounts.byID[id]
		if u == nil {
			return nil, refuse("user_not_found")
		}
		people = append(people, u)
	}
	if len(people) == 1 {
		_, existed := cv.channels.dms[pair(cv.botUser.ID, people[0].ID)]
		ch, failed := cv.channels.dmWith(people[0])
		if failed != nil {
			return nil, failed
		}
		return cv.opened(c, ch, existed), nil
	}
	if len(people) > maxGroupPeople {
		return nil, refuse("too_many_users")
	}
	return cv.openGroupDM(c, people)
}

func (cv *conversations) opened(c *call, ch *channel, existed bool) object {
	out := object{"channel": object{"id": ch.ID}}
	if existed {
		out["no_op"], out["already_open"] = true, true
	}
	if c.flag("return_im") {
		out["channel"] = ch.json(cv.botUser.ID, cv.team.ID)
	}
	return out
}

func (cv *conversations) openGroupDM(c *call, people []*user) (object, *apiError) {
	members := []string{cv.botUser.ID}
	names := []string{cv.botUser.Name}
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
	for _, id := range cv.channels.ids {
		ch := cv.channels.byID[id]
		if ch.MPIM && slices.Equal(slices.Sorted(slices.Values(ch.Members)), members) {
			return cv.opened(c, ch, true), nil
		}
	}
	ch := &channel{
		ID: wire.NewID("G"), Name: "mpdm-" + strings.Join(names, "--") + "-1", MPIM: true, Private: true, Members: members,
		Creator: cv.botUser.ID, Created: cv.cfg.Now().Unix(),
	}
	cv.channels.add(ch)
	cv.feed.send(change{Type: "channel", Channel: ch.ID, only: members})
	return cv.opened(c, ch, false), nil
}
