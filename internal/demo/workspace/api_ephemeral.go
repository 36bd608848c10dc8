package workspace

import (
	"slices"
	"strings"
)

// postEphemeral is chat.postEphemeral. The message is shown to one person, is no part
// of the history and is gone after a restart.
func (s *Server) postEphemeral(c *call) (object, *apiError) {
	ch := s.channels[c.text("channel")]
	if ch == nil {
		ch = s.channelNamed(strings.TrimPrefix(c.text("channel"), "#"))
	}
	if failed := s.mayPost(ch); failed != nil {
		return nil, failed
	}
	u := s.users[c.text("user")]
	switch {
	case c.text("user") == "":
		return nil, refuse("invalid_arguments", "missing required field: user [json-pointer:/user]")
	case u == nil || u.Deleted || !ch.has(u.ID):
		return nil, refuse("user_not_in_channel")
	}
	what, failed := s.readContent(c.arguments, maxPostText, false)
	if failed != nil {
		return nil, failed
	}
	if what.empty() {
		return nil, refuse("no_text")
	}
	m := s.botMessage(what)
	if failed := s.placeInThread(ch, m, c.text("thread_ts"), false); failed != nil {
		return nil, failed
	}
	if !c.lostEphemeral {
		s.showEphemeral(ch, m, u.ID)
	}
	return object{"message_ts": m.TS}, nil
}

func (s *Server) showEphemeral(ch *channel, m *message, to string) {
	m.EphemeralTo = to
	ch.ephemerals = append(ch.ephemerals, m)
	if extra := len(ch.ephemerals) - maxEphemerals; extra > 0 {
		ch.ephemerals = slices.Delete(ch.ephemerals, 0, extra)
	}
	s.feed.send(change{Type: "ephemeral", User: to, Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: []string{to}})
}
