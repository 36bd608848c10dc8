package workspace

import "slices"

// readable is visible for methods that read messages: the app must be a member.
func (s *Server) readable(id string) (*channel, *apiError) {
	ch, failed := s.visible(id)
	if failed == nil && !ch.has(s.botUser.ID) {
		failed = refuse("not_in_channel")
	}
	return ch, failed
}

// conversationsHistory is conversations.history: the top level, newest first.
func (s *Server) conversationsHistory(c *call) (object, *apiError) {
	ch, failed := s.readable(c.text("channel"))
	if failed != nil {
		return nil, failed
	}
	window, failed := readWindow(c, 999)
	if failed != nil {
		return nil, failed
	}
	list := []object{}
	next := ""
	for _, m := range slices.Backward(ch.Messages) {
		if !m.topLevel() || !window.covers(m.TS) {
			continue
		}
		if len(list) == window.limit {
			next = writeCursor(list[len(list)-1]["ts"].(string))
			break
		}
		list = append(list, s.historyJSON(c, ch, m))
	}
	out := object{"messages": list, "has_more": next != "", "pin_count": 0, "channel_actions_ts": nil, "channel_actions_count": 0}
	if next != "" {
		out["response_metadata"] = object{"next_cursor": next}
	}
	return out, nil
}

// conversationsReplies is conversations.replies: the parent, then its replies, oldest
// first.
func (s *Server) conversationsReplies(c *call) (object, *apiError) {
	ch, failed := s.readable(c.text("channel"))
	if failed != nil {
		return nil, failed
	}
	parent := ch.byTS[c.text("ts")]
	if parent == nil {
		return nil, refuse("thread_not_found")
	}
	if parent.reply() { // Slack answers with that one reply
		return object{"messages": []object{s.historyJSON(c, ch, parent)}, "has_more": false}, nil
	}
	window, failed := readWindow(c, 1000)
	if failed != nil {
		return nil, failed
	}
	list := []object{}
	if window.before == "" {
		list = append(list, s.historyJSON(c, ch, parent))
	}
	next := ""
	for _, m := range ch.replies(parent.TS) {
		if !window.coversReply(m.TS) {
			continue
		}
		if len(list) == window.limit {
			next = writeCursor(list[len(list)-1]["ts"].(string))
			break
		}
		list = append(list, s.historyJSON(c, ch, m))
	}
	out := object{"messages": list, "has_more": next != ""}
	if next != "" {
		out["response_metadata"] = object{"next_cursor": next}
	}
	return out, nil
}

// historyJSON leaves metadata out unless it is asked for, as Slack does.
func (s *Server) historyJSON(c *call, ch *channel, m *message) object {
	out := ch.threadJSON(m)
	if !c.flag("include_all_metadata") {
		delete(out, "metadata")
	}
	return out
}
