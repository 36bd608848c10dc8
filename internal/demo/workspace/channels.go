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

// The method "other" returns the other member of a user's DM.
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

// The method "replies" returns the messages of a thread without its parent, oldest first.
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

// channels holds the channels, and checks whether the app or a person may see or use a channel.
type channels struct {
	*core
	accounts *accounts
	byID     map[string]*channel
	ids      []string
	dms      map[[2]string]string // maps a sorted pair of members to the id of their DM
}

// The method "visible" returns a channel. The channel must be public, or the app must be a member. Otherwise the app
// can't see the channel, and the method returns an error.
func (cs *channels) visible(id string) (*channel, *apiError) {
	ch := cs.byID[id]
	if ch == nil || (ch.kind() != "channel" && !ch.has(cs.botUser.ID)) {
		return nil, refuse("channel_not_found")
	}
	return ch, nil
}

// readable is like visible, for methods that read messages. The app must be a member of the channel.
func (cs *channels) readable(id string) (*channel, *apiError) {
	ch, failed := cs.visible(id)
	if failed == nil && !ch.has(cs.botUser.ID) {
		failed = refuse("not_in_channel")
	}
	return ch, failed
}

// target finds the channel for a post of the app. The name is the id or name of a channel, or the id of a person. The
// app must be a member of the channel. For a person, target opens the DM.
func (cs *channels) target(name string) (*channel, *apiError) {
	if name == "" {
		return nil, refuse("channel_not_found")
	}
	if u := cs.accounts.byID[name]; u != nil {
		ch, failed := cs.dmWith(u)
		if failed != nil && !u.Bot {
			failed = refuse("channel_not_found")
		}
		return ch, failed
	}
	ch := cs.byID[name]
	if ch == nil {
		ch = cs.named(strings.TrimPrefix(name, "#"))
	}
	return ch, cs.mayPost(ch)
}

// mayPost returns an error if the app may not write to a channel. As in Slack, the app may write to the DM of a
// deactivated person.
func (cs *channels) mayPost(ch *channel) *apiError {
	switch {
	case ch == nil, !ch.has(cs.botUser.ID) && ch.kind() != "channel":
		return refuse("channel_not_found")
	case !ch.has(cs.botUser.ID):
		return refuse("not_in_channel")
	case ch.Archived:
		return refuse("is_archived")
	}
	return nil
}

// dmWith opens the app's DM with a person.
func (cs *channels) dmWith(u *user) (*channel, *apiError) {
	switch {
	case u.Bot:
		return nil, refuse("cannot_dm_bot")
	case u.Deleted:
		return nil, refuse("user_disabled")
	case u.Stranger:
		return nil, refuse("invalid_user_combination")
	}
	ch, created := cs.openDM(cs.botUser.ID, u.ID)
	if created {
		cs.feed.send(change{Type: "channel", Channel: ch.ID, only: ch.Members})
	}
	return ch, nil
}

func (cs *channels) named(name string) *channel {
	for _, id := range cs.ids {
		if c := cs.byID[id]; c.Name != "" && c.Name == name {
			return c
		}
	}
	return nil
}

// channelFor returns the channel that a person names, if the person may see the channel. People may see the channels
// that they are in, and their DMs with other people. Members who are not guests may also see public channels.
func (cs *channels) channelFor(u *user, name string) (*channel, *apiError) {
	ch := cs.byID[name]
	if ch == nil {
		ch = cs.named(strings.TrimPrefix(name, "#"))
	}
	if ch == nil && !strings.HasPrefix(name, "#") {
		if other, failed := cs.accounts.anyone(name); failed == nil {
			return cs.dmFor(u, other)
		}
	}
	if ch == nil || !cs.sees(u, ch) {
		return nil, refuse("channel_not_found")
	}
	return ch, nil
}

func (cs *channels) dmFor(u, other *user) (*channel, *apiError) {
	if _, open := cs.dms[pair(u.ID, other.ID)]; !open && other.Deleted {
		return nil, refuse("channel_not_found")
	}
	ch, created := cs.openDM(u.ID, other.ID)
	if created {
		cs.feed.send(change{Type: "channel", Channel: ch.ID, only: ch.Members})
	}
	return ch, nil
}

func (cs *channels) sees(u *user, ch *channel) bool {
	return ch.has(u.ID) || (ch.kind() == "channel" && !u.Restricted && !u.Stranger)
}

// audience returns the people who may be told about changes in a channel.
func (cs *channels) audience(ch *channel) []string {
	if ch.kind() != "channel" {
		return ch.Members
	}
	out := make([]string, 0, len(cs.accounts.ids))
	for _, id := range cs.accounts.ids {
		if cs.sees(cs.accounts.byID[id], ch) {
			out = append(out, id)
		}
	}
	return out
}

// memberChannel is like channelFor, but requires that the person is a member of the channel. Only members may write and
// click.
func (cs *channels) memberChannel(u *user, name string) (*channel, *apiError) {
	ch, failed := cs.channelFor(u, name)
	switch {
	case failed != nil:
		return nil, failed
	case !ch.has(u.ID):
		return nil, refuse("not_in_channel")
	}
	return ch, nil
}

func (cs *channels) add(ch *channel) {
	ch.index()
	cs.byID[ch.ID] = ch
	cs.ids = append(cs.ids, ch.ID)
}

func (cs *channels) remove(ch *channel) {
	delete(cs.byID, ch.ID)
	cs.ids = slices.DeleteFunc(slices.Clone(cs.ids), func(id string) bool { return id == ch.ID })
}

// inChannel returns the person and the channel of a request. The person must be a member.
func (cs *channels) inChannel(p *personCall) (*user, *channel, *apiError) {
	u, failed := cs.accounts.me(p)
	if failed != nil {
		return nil, nil, failed
	}
	ch, failed := cs.memberChannel(u, p.text("channel"))
	return u, ch, failed
}

// inGroup returns the person and a channel that the person is in. inGroup refuses direct messages. The parameter
// general is the error code for the general channel. If it is empty, the general channel is allowed.
func (cs *channels) inGroup(p *personCall, general string) (*user, *channel, *apiError) {
	u, ch, failed := cs.inChannel(p)
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
func (cs *channels) inChannelToChange(p *personCall, general string) (*user, *channel, *apiError) {
	u, ch, failed := cs.inGroup(p, general)
	if failed == nil && u.Restricted {
		return nil, nil, refuse("user_is_restricted")
	}
	return u, ch, failed
}

// openDM returns the DM of two people, or of one person with themselves. openDM creates the DM if needed.
func (cs *channels) openDM(a, b string) (c *channel, created bool) {
	key := pair(a, b)
	if id, ok := cs.dms[key]; ok {
		return cs.byID[id], false
	}
	members := []string{a, b}
	if a == b {
		members = members[:1]
	}
	c = &channel{ID: wire.NewID("D"), IM: true, Members: members, Created: cs.cfg.Now().Unix()}
	cs.add(c)
	cs.dms[key] = c.ID
	return c, true
}

func pair(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

// The method "known" reports whether a user, a channel or a conversation exists (see blockkit.Known).
func (cs *channels) known(what, id string) bool {
	if what == "user" {
		return cs.accounts.byID[id] != nil
	}
	ch := cs.byID[id]
	return ch != nil && (what == "conversation" || ch.kind() == "channel")
}
