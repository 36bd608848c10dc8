package workspace

import (
	"regexp"
	"slices"
	"strings"
)

// reaction is one emoji on a message and the users who added it.
type reaction struct {
	Name  string   `json:"name"`
	Users []string `json:"users"`
}

var emojiName = regexp.MustCompile(`^[a-z0-9_+'-]+(::skin-tone-[2-6])?$`)

// reactions adds emoji to messages and removes them, for the app and for people.
type reactions struct {
	*core
	channels *channels
	events   *events
}

// add is reactions.add.
func (rs *reactions) add(c *call) (object, *apiError) {
	ch, m, failed := rs.reactable(c)
	if failed != nil {
		return nil, failed
	}
	return object{}, rs.react(ch, m, rs.botUser.ID, c.text("name"))
}

func (rs *reactions) reactable(c *call) (*channel, *message, *apiError) {
	ch, failed := rs.channels.readable(c.text("channel"))
	if failed != nil {
		return nil, nil, failed
	}
	if c.text("timestamp") == "" {
		return nil, nil, refuse("no_item_specified")
	}
	m := ch.byTS[c.text("timestamp")]
	if m == nil {
		return nil, nil, refuse("message_not_found")
	}
	return ch, m, nil
}

// react adds a person's emoji to a message.
func (rs *reactions) react(ch *channel, m *message, user, name string) *apiError {
	name = strings.Trim(name, ":")
	if !emojiName.MatchString(name) {
		return refuse("invalid_name")
	}
	mine := 0
	for _, r := range m.Reactions {
		if !slices.Contains(r.Users, user) {
			continue
		}
		if r.Name == name {
			return refuse("already_reacted")
		}
		mine++
	}
	if mine >= maxReactions {
		return refuse("too_many_emoji")
	}
	next := slices.Clone(m.Reactions)
	i := slices.IndexFunc(next, func(r reaction) bool { return r.Name == name })
	if i < 0 {
		next = append(next, reaction{Name: name})
		i = len(next) - 1
	}
	next[i].Users = append(slices.Clone(next[i].Users), user)
	m.Reactions = next
	rs.reacted("reaction_added", ch, m, user, name)
	return nil
}

// unreact removes a person's emoji from a message.
func (rs *reactions) unreact(ch *channel, m *message, user, name string) *apiError {
	name = strings.Trim(name, ":")
	i := slices.IndexFunc(m.Reactions, func(r reaction) bool { return r.Name == name && slices.Contains(r.Users, user) })
	if i < 0 {
		return refuse("no_reaction")
	}
	next := slices.Clone(m.Reactions)
	next[i].Users = slices.DeleteFunc(slices.Clone(next[i].Users), func(u string) bool { return u == user })
	if len(next[i].Users) == 0 {
		next = slices.Delete(next, i, i+1)
	}
	m.Reactions = next
	rs.reacted("reaction_removed", ch, m, user, name)
	return nil
}

func (rs *reactions) reacted(event string, ch *channel, m *message, user, name string) {
	if ch.has(rs.botUser.ID) {
		rs.events.emit(event, object{
			"type": event, "user": user, "reaction": name, "item_user": m.User,
			"item": object{"type": "message", "channel": ch.ID, "ts": m.TS},
		})
	}
	rs.feed.send(change{Type: "reaction", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: rs.channels.audience(ch)})
}

// remove is reactions.remove.
func (rs *reactions) remove(c *call) (object, *apiError) {
	ch, m, failed := rs.reactable(c)
	if failed != nil {
		return nil, failed
	}
	return object{}, rs.unreact(ch, m, rs.botUser.ID, c.text("name"))
}

// get is reactions.get.
func (rs *reactions) get(c *call) (object, *apiError) {
	ch, m, failed := rs.reactable(c)
	if failed != nil {
		return nil, failed
	}
	return object{"type": "message", "channel": ch.ID, "message": ch.threadJSON(m)}, nil
}

// reactAs is POST /people/{user}/reactions. With "remove", the emoji is removed.
func (rs *reactions) reactAs(p *personCall) (object, *apiError) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	u, ch, failed := rs.channels.inChannel(p)
	if failed != nil {
		return nil, failed
	}
	m := ch.byTS[p.text("ts")]
	switch {
	case m == nil:
		return nil, refuse("message_not_found")
	case p.flag("remove"):
		return object{}, rs.unreact(ch, m, u.ID, p.text("name"))
	}
	return object{}, rs.react(ch, m, u.ID, p.text("name"))
}
