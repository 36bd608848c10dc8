package workspace

// ownMessage finds a message that the app may change. The channel must be given by id: as in Slack, update and delete
// open no DM and accept no names.
func (s *Server) ownMessage(c *call, otherwise string) (*channel, *message, *apiError) {
	ch := s.channels[c.text("channel")]
	if ch == nil || (!ch.has(s.botUser.ID) && ch.kind() != "channel") {
		return nil, nil, refuse("channel_not_found")
	}
	m := ch.byTS[c.text("ts")]
	switch {
	case m == nil:
		return nil, nil, refuse("message_not_found")
	case m.BotID != s.app.BotID:
		return nil, nil, refuse(otherwise)
	case ch.Archived:
		return nil, nil, refuse("is_inactive")
	}
	return ch, m, nil
}

// updateMessage is chat.update. Text without blocks removes the blocks; without text and blocks, the message stays
// unchanged.
func (s *Server) updateMessage(c *call) (object, *apiError) {
	ch, m, failed := s.ownMessage(c, "cant_update_message")
	if failed != nil {
		return nil, failed
	}
	what, failed := s.readContent(c.arguments, maxUpdateText, false)
	if failed != nil {
		return nil, failed
	}
	if !what.hasText && !what.hasBlocks && !what.hasAttachments && !c.has("metadata") && !c.has("file_ids") {
		return nil, refuse("no_text")
	}
	if m.Stream != nil && m.Stream.Open {
		return nil, refuse("streaming_state_conflict")
	}
	before := *m
	if what.hasText {
		m.Text, m.Blocks = what.text, nil
	}
	if what.hasBlocks {
		m.Blocks = what.blocks
	}
	if what.hasAttachments {
		m.Attachments = what.attachments
	}
	if c.has("metadata") {
		m.Metadata = what.metadata
	}
	if m.Text == "" && len(m.Blocks) == 0 && len(m.Attachments) == 0 && len(m.Files) == 0 {
		*m = before
		return nil, refuse("no_text")
	}
	if !what.hasBlocks {
		m.EditedBy, m.EditedTS = s.botUser.ID, s.nextTS()
	}
	s.changed(ch, &before, m)
	return object{"channel": ch.ID, "ts": m.TS, "text": m.Text, "message": m.json()}, nil
}

// changed notifies the app and the people of a changed message.
func (s *Server) changed(ch *channel, before, m *message) {
	s.sendMessageChanged(ch, before, m)
	s.feed.send(change{Type: "message_changed", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: s.audience(ch)})
}

// deleteMessage is chat.delete.
func (s *Server) deleteMessage(c *call) (object, *apiError) {
	ch, m, failed := s.ownMessage(c, "cant_delete_message")
	if failed != nil {
		return nil, failed
	}
	s.erase(ch, m)
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

// erase removes a message. A parent with replies becomes a tombstone, and the app gets a change event; the tombstone
// is removed with its last reply. Both are as in Slack.
func (s *Server) erase(ch *channel, m *message) {
	if !m.reply() && len(ch.replies(m.TS)) > 0 {
		before := *m
		*m = message{TS: m.TS, ThreadTS: m.TS, Subtype: "tombstone", Text: "This message was deleted.", User: "USLACKBOT"}
		s.sendMessageChanged(ch, &before, m)
	} else {
		ch.remove(m)
		s.sendMessageDeleted(ch, m)
	}
	s.feed.send(change{Type: "message_deleted", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: s.audience(ch)})
	if parent := ch.byTS[m.ThreadTS]; m.reply() && parent != nil && parent.Subtype == "tombstone" && len(ch.replies(parent.TS)) == 0 {
		s.erase(ch, parent)
	}
}
