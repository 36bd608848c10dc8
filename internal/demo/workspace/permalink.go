package workspace

import "strings"

// getPermalink is chat.getPermalink.
func (s *Server) getPermalink(c *call) (object, *apiError) {
	ch := s.channels[c.text("channel")]
	if ch == nil || (!ch.has(s.botUser.ID) && ch.kind() != "channel") {
		return nil, refuse("channel_not_found")
	}
	m := ch.byTS[c.text("message_ts")]
	if m == nil {
		return nil, refuse("message_not_found")
	}
	return object{"channel": ch.ID, "permalink": permalink(c.base, ch, m)}, nil
}

func permalink(base string, ch *channel, m *message) string {
	link := base + "/archives/" + ch.ID + "/p" + strings.ReplaceAll(m.TS, ".", "")
	if m.reply() {
		link += "?thread_ts=" + m.ThreadTS + "&cid=" + ch.ID
	}
	return link
}
