package workspace

import "slices"

// startStream is chat.startStream.
func (s *Server) startStream(c *call) (object, *apiError) {
	ch := s.channels[c.text("channel")]
	if failed := s.mayPost(ch); failed != nil {
		return nil, failed
	}
	if !ch.IM {
		recipient := s.users[c.text("recipient_user_id")]
		switch {
		case c.text("recipient_user_id") == "":
			return nil, refuse("missing_recipient_user_id")
		case c.text("recipient_team_id") == "":
			return nil, refuse("missing_recipient_team_id")
		case recipient == nil:
			return nil, refuse("user_not_found")
		case c.text("recipient_team_id") != recipient.Team:
			return nil, refuse("team_not_found")
		}
	}
	mode := c.text("task_display_mode")
	if mode == "" {
		mode = "timeline"
	}
	if !slices.Contains([]string{"timeline", "plan"}, mode) {
		return nil, refuse("invalid_arguments", "must be timeline or plan [json-pointer:/task_display_mode]")
	}
	m := s.botMessage(content{})
	m.Stream = &stream{Open: true, Mode: mode, Last: s.cfg.Now().UnixMicro()}
	thread := c.text("thread_ts")
	if failed := s.placeInThread(ch, m, thread, false); failed != nil {
		return nil, failed
	}
	if thread != "" && m.ThreadTS == "" {
		return nil, refuse("thread_not_found")
	}
	parts, failed := s.streamParts(c)
	if failed != nil {
		return nil, failed
	}
	m.Stream = m.Stream.with(parts)
	if tooManyBlocks(m.Stream.Parts) {
		return nil, refuse("msg_blocks_too_many")
	}
	m.render()
	s.publish(ch, m)
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

// openStream finds a message that is being streamed. A stream that had no append for
// too long is over. One that a person stopped can only be finished.
func (s *Server) openStream(c *call, finish bool) (*channel, *message, *apiError) {
	ch := s.channels[c.text("channel")]
	if ch == nil || (!ch.has(s.botUser.ID) && ch.kind() != "channel") {
		return nil, nil, refuse("channel_not_found")
	}
	m := ch.byTS[c.text("ts")]
	switch {
	case m == nil:
		return nil, nil, refuse("message_not_found")
	case m.BotID != s.app.BotID:
		return nil, nil, refuse("message_not_owned_by_app")
	case m.Stream != nil && m.Stream.Stopped && finish:
	case m.Stream != nil && m.Stream.Stopped:
		return nil, nil, refuse("stopped_by_user")
	case m.Stream == nil || !m.Stream.Open:
		return nil, nil, refuse("message_not_in_streaming_state")
	case s.cfg.Now().UnixMicro()-m.Stream.Last > s.cfg.StreamIdle.Microseconds():
		m.Stream = m.Stream.with(nil)
		m.Stream.Open = false
		return nil, nil, refuse("message_not_in_streaming_state")
	}
	return ch, m, nil
}

// appendStream is chat.appendStream. The app hears of the whole text when it stops.
func (s *Server) appendStream(c *call) (object, *apiError) {
	ch, m, failed := s.openStream(c, false)
	if failed != nil {
		return nil, failed
	}
	parts, failed := s.streamParts(c)
	if failed != nil {
		return nil, failed
	}
	if len(parts) == 0 {
		return nil, refuse("no_text")
	}
	next := m.Stream.with(parts)
	if tooManyBlocks(next.Parts) {
		return nil, refuse("msg_blocks_too_many")
	}
	m.Stream = next
	m.Stream.Last = s.cfg.Now().UnixMicro()
	m.render()
	s.feed.send(change{Type: "message_changed", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: s.audience(ch)})
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

// stopStream is chat.stopStream. Its blocks stand at the bottom.
func (s *Server) stopStream(c *call) (object, *apiError) {
	ch, m, failed := s.openStream(c, true)
	if failed != nil {
		return nil, failed
	}
	parts, failed := s.streamParts(c)
	if failed != nil {
		return nil, failed
	}
	what, failed := s.readContent(arguments{values: object{"blocks": c.values["blocks"], "metadata": c.values["metadata"]}}, maxPostText, true)
	if failed != nil {
		return nil, failed
	}
	if tooManyBlocks(append(slices.Clone(m.Stream.Parts), parts...)) {
		return nil, refuse("msg_blocks_too_many")
	}
	before := *m
	if len(what.blocks) > 0 { // which Slack counts apart
		parts = append(parts, object{"kind": "blocks", "blocks": what.blocks})
	}
	m.Stream = m.Stream.with(parts)
	m.Stream.Open, m.Stream.Stopped = false, false
	if what.hasMetadata {
		m.Metadata = what.metadata
	}
	m.render()
	s.changed(ch, &before, m)
	return object{"channel": ch.ID, "ts": m.TS, "message": m.json()}, nil
}
