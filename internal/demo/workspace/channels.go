package workspace

import (
	"slices"
	"strings"

	"countersign/internal/demo/workspace/blockkit"
	"countersign/internal/demo/workspace/wire"
)

// channel is a channel, a DM (IM) or a group DM (MPIM).
type channel struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Topic    string   `json:"topic"`
	Purpose  string   `json:"purpose"`
	Creator  string   `json:"creator"`
	Created  int64    `json:"created"`
	Private  bool     `json:"private"`
	Archived bool     `json:"archived"`
	General  bool     `json:"general"`
	Shared   bool     `json:"shared"`
	IM       bool     `json:"im"`
	MPIM     bool     `json:"mpim"`
	Members  []string `json:"members"`

	// Messages holds all messages, replies included, oldest first.
	Messages []*message `json:"messages"`
	// LastRead holds the newest ts that a person has seen. A key is a person or, for replies, a person and a thread
	// (see threadKey).
	LastRead map[string]string `json:"last_read"`
	// Threads is the data that an assistant set for a thread, by the thread's ts.
	Threads map[string]*threadInfo `json:"threads"`

	byTS       map[string]*message
	byThread   map[string][]*message // replies without the parent, oldest first
	ephemerals []*message            // messages shown to one person; lost at a restart, as in Slack
	// chosen holds the choices in messages' inputs, by message and person.
	chosen map[string]blockkit.State
}

func (c *channel) index() {
	c.byTS = make(map[string]*message, len(c.Messages))
	c.byThread = map[string][]*message{}
	for _, m := range c.Messages {
		c.byTS[m.TS] = m
		if m.reply() {
			c.byThread[m.ThreadTS] = append(c.byThread[m.ThreadTS], m)
		}
	}
	if c.LastRead == nil {
		c.LastRead = map[string]string{}
	}
	if c.Threads == nil {
		c.Threads = map[string]*threadInfo{}
	}
}

func (c *channel) has(user string) bool { return slices.Contains(c.Members, user) }

// kind returns the channel_type of events.
func (c *channel) kind() string {
	switch {
	case c.IM:
		return "im"
	case c.MPIM:
		return "mpim"
	case c.Private:
		return "group"
	default:
		return "channel"
	}
}

// eventNamed returns the name of an event about a whole channel. The events of private and public channels have
// different names.
func (c *channel) eventNamed(what string) string {
	if c.Private {
		return "group_" + what
	}
	return "channel_" + what
}

// other returns the second member of a DM.
func (c *channel) other(user string) string {
	for _, m := range c.Members {
		if m != user {
			return m
		}
	}
	return user // the DM with oneself
}

func (c *channel) add(m *message) {
	c.Messages = append(c.Messages, m)
	c.byTS[m.TS] = m
	if m.reply() {
		c.byThread[m.ThreadTS] = append(c.byThread[m.ThreadTS], m)
	}
}

func (c *channel) remove(m *message) {
	same := func(other *message) bool { return other == m }
	delete(c.byTS, m.TS)
	c.Messages = slices.DeleteFunc(c.Messages, same)
	if m.reply() {
		c.byThread[m.ThreadTS] = slices.DeleteFunc(c.byThread[m.ThreadTS], same)
	}
}

// replies returns the messages of a thread without its parent, oldest first.
func (c *channel) replies(threadTS string) []*message { return c.byThread[threadTS] }

// json renders the channel as conversations.info does for viewer.
func (c *channel) json(viewer, team string) object {
	out := object{
		"id": c.ID, "created": c.Created, "is_archived": c.Archived, "is_im": c.IM, "is_mpim": c.MPIM,
		"is_channel": !c.IM && !c.MPIM && !c.Private, "is_group": c.Private && !c.MPIM && !c.IM,
		"is_private": c.Private || c.IM || c.MPIM, "is_org_shared": false, "is_shared": c.Shared,
		"is_ext_shared": c.Shared, "context_team_id": team, "updated": c.Created * 1000,
	}
	if c.IM {
		out["user"], out["is_open"] = c.other(viewer), true
		return out
	}
	out["name"], out["name_normalized"], out["creator"] = c.Name, c.Name, c.Creator
	out["is_general"], out["is_member"] = c.General, c.has(viewer)
	out["topic"] = object{"value": c.Topic, "creator": c.Creator, "last_set": c.Created}
	out["purpose"] = object{"value": c.Purpose, "creator": c.Creator, "last_set": c.Created}
	out["is_pending_ext_shared"], out["pending_shared"] = false, []string{}
	out["shared_team_ids"], out["previous_names"], out["unlinked"] = []string{team}, []string{}, 0
	return out
}

// visible returns a channel. The channel must be public, or the app must be a member. Otherwise the app can't see the
// channel, and visible returns an error.
func (s *Server) visible(id string) (*channel, *apiError) {
	ch := s.channels[id]
	if ch == nil || (ch.kind() != "channel" && !ch.has(s.botUser.ID)) {
		return nil, refuse("channel_not_found")
	}
	return ch, nil
}

// readable is like visible, for methods that read messages. The app must be a member of the channel.
func (s *Server) readable(id string) (*channel, *apiError) {
	ch, failed := s.visible(id)
	if failed == nil && !ch.has(s.botUser.ID) {
		failed = refuse("not_in_channel")
	}
	return ch, failed
}

// targetChannel finds the channel for a post of the app. The target is the id or name of a channel, or the id of a
// person. The app must be a member of the channel. For a person, targetChannel opens the DM.
func (s *Server) targetChannel(target string) (*channel, *apiError) {
	if target == "" {
		return nil, refuse("channel_not_found")
	}
	if u := s.users[target]; u != nil {
		ch, failed := s.dmWith(u)
		if failed != nil && !u.Bot {
			failed = refuse("channel_not_found")
		}
		return ch, failed
	}
	ch := s.channels[target]
	if ch == nil {
		ch = s.channelNamed(strings.TrimPrefix(target, "#"))
	}
	return ch, s.mayPost(ch)
}

// mayPost returns an error if the app may not write to a channel. As in Slack, the app may write to the DM of a
// deactivated person.
func (s *Server) mayPost(ch *channel) *apiError {
	switch {
	case ch == nil, !ch.has(s.botUser.ID) && ch.kind() != "channel":
		return refuse("channel_not_found")
	case !ch.has(s.botUser.ID):
		return refuse("not_in_channel")
	case ch.Archived:
		return refuse("is_archived")
	}
	return nil
}

// dmWith opens the app's DM with a person.
func (s *Server) dmWith(u *user) (*channel, *apiError) {
	switch {
	case u.Bot:
		return nil, refuse("cannot_dm_bot")
	case u.Deleted:
		return nil, refuse("user_disabled")
	case u.Stranger:
		return nil, refuse("invalid_user_combination")
	}
	ch, created := s.openDM(s.botUser.ID, u.ID)
	if created {
		s.feed.send(change{Type: "channel", Channel: ch.ID, only: ch.Members})
	}
	return ch, nil
}

func (s *Server) channelNamed(name string) *channel {
	for _, id := range s.chanIDs {
		if c := s.channels[id]; c.Name != "" && c.Name == name {
			return c
		}
	}
	return nil
}

// channelFor returns the channel that a person names, if the person may see the channel. People may see the channels
// that they are in, and their DMs with other people. Members who are not guests may also see public channels.
func (s *Server) channelFor(u *user, name string) (*channel, *apiError) {
	ch := s.channels[name]
	if ch == nil {
		ch = s.channelNamed(strings.TrimPrefix(name, "#"))
	}
	if ch == nil && !strings.HasPrefix(name, "#") {
		if other, failed := s.anyone(name); failed == nil {
			return s.dmFor(u, other)
		}
	}
	if ch == nil || !s.sees(u, ch) {
		return nil, refuse("channel_not_found")
	}
	return ch, nil
}

func (s *Server) dmFor(u, other *user) (*channel, *apiError) {
	if _, open := s.dms[pair(u.ID, other.ID)]; !open && other.Deleted {
		return nil, refuse("channel_not_found")
	}
	ch, created := s.openDM(u.ID, other.ID)
	if created {
		s.feed.send(change{Type: "channel", Channel: ch.ID, only: ch.Members})
	}
	return ch, nil
}

func (s *Server) sees(u *user, ch *channel) bool {
	return ch.has(u.ID) || (ch.kind() == "channel" && !u.Restricted && !u.Stranger)
}

// audience returns the people who may learn about changes in a channel.
func (s *Server) audience(ch *channel) []string {
	if ch.kind() != "channel" {
		return ch.Members
	}
	out := make([]string, 0, len(s.userIDs))
	for _, id := range s.userIDs {
		if s.sees(s.users[id], ch) {
			out = append(out, id)
		}
	}
	return out
}

// memberChannel is like channelFor, but requires that the person is a member of the channel. Only members may write and
// click.
func (s *Server) memberChannel(u *user, name string) (*channel, *apiError) {
	ch, failed := s.channelFor(u, name)
	switch {
	case failed != nil:
		return nil, failed
	case !ch.has(u.ID):
		return nil, refuse("not_in_channel")
	}
	return ch, nil
}

func (s *Server) addChannel(c *channel) {
	c.index()
	s.channels[c.ID] = c
	s.chanIDs = append(s.chanIDs, c.ID)
}

// openDM returns the DM of two people, or of one person with themselves. openDM creates the DM if needed.
func (s *Server) openDM(a, b string) (c *channel, created bool) {
	key := pair(a, b)
	if id, ok := s.dms[key]; ok {
		return s.channels[id], false
	}
	members := []string{a, b}
	if a == b {
		members = members[:1]
	}
	c = &channel{ID: wire.NewID("D"), IM: true, Members: members, Created: s.cfg.Now().Unix()}
	s.addChannel(c)
	s.dms[key] = c.ID
	return c, true
}

func pair(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

// known reports whether a user, a channel or a conversation exists (see blockkit.Known).
func (s *Server) known(what, id string) bool {
	if what == "user" {
		return s.users[id] != nil
	}
	ch := s.channels[id]
	return ch != nil && (what == "conversation" || ch.kind() == "channel")
}
