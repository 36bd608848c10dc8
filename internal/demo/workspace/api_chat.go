package workspace

import (
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// postMessage is chat.postMessage.
func (s *Server) postMessage(c *call) (object, *apiError) {
	ch, failed := s.targetChannel(c.text("channel"))
	if failed != nil {
		return nil, failed
	}
	what, failed := s.readContent(c.arguments, maxPostText, true)
	if failed != nil {
		return nil, failed
	}
	if what.empty() {
		return nil, refuse("no_text")
	}
	m := s.botMessage(what)
	m.Username = ""
	if failed := s.placeInThread(ch, m, c.text("thread_ts"), c.flag("reply_broadcast")); failed != nil {
		return nil, failed
	}
	s.publish(ch, m)
	return object{"channel": ch.ID, "ts": m.TS, "message": m.json()}, nil
}

// botMessage makes a message by the app with the next timestamp.
func (s *Server) botMessage(what content) *message {
	m := &message{
		TS: s.nextTS(), User: s.botUser.ID, Team: s.team.ID, BotID: s.app.BotID, AppID: s.app.ID,
		Text: what.text, Blocks: what.blocks, Attachments: what.attachments, profile: s.profile(),
	}
	if what.hasMetadata {
		m.Metadata = what.metadata
	}
	return m
}

// profile is how the app's messages name it.
func (s *Server) profile() object {
	return object{"id": s.app.BotID, "app_id": s.app.ID, "name": s.app.Name, "deleted": false, "team_id": s.team.ID, "icons": object{}, "updated": s.botUser.Updated}
}

// targetChannel finds the channel for a post of the app: a channel by id or name that the app is a member of, or a
// person by id, whose DM is then opened.
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

// mayPost returns an error if the app may not write to a channel. The DM of a deactivated person accepts messages
// that nobody reads, as in Slack.
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

// placeInThread makes a message a reply. If thread_ts names a reply, the message goes to that reply's thread; if it
// names nothing (the parent was deleted), to the channel itself. Both are as in Slack.
func (s *Server) placeInThread(ch *channel, m *message, threadTS string, broadcast bool) *apiError {
	if threadTS == "" {
		return nil
	}
	if _, ok := wire.ParseTS(threadTS); !ok {
		return refuse("invalid_thread_ts")
	}
	parent := ch.byTS[threadTS]
	if parent != nil && parent.reply() {
		parent = ch.byTS[parent.ThreadTS]
	}
	if parent == nil {
		return nil
	}
	m.ThreadTS = parent.TS
	if broadcast {
		m.Subtype = "thread_broadcast"
	}
	return nil
}

// publish adds a message to its channel and notifies the app and the people.
func (s *Server) publish(ch *channel, m *message) {
	ch.add(m)
	if m.reply() {
		ch.byTS[m.ThreadTS].ThreadTS = m.ThreadTS
	}
	if m.User != "" && m.topLevel() {
		ch.LastRead[m.User] = m.TS // the author has read the channel
	}
	if info := ch.Threads[m.ThreadTS]; info != nil && m.BotID == s.app.BotID {
		info.status = "" // an answer ends the status
	}
	s.sendMessageEvents(ch, m)
	s.feed.send(change{Type: "message", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: s.audience(ch)})
}
