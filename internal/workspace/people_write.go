package workspace

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// say is POST /people/{user}/messages.
func (s *Server) say(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch, failed := s.inChannel(p)
	if failed != nil {
		return nil, failed
	}
	if ch.Archived {
		return nil, refuse("is_archived")
	}
	text := p.text("text")
	switch {
	case strings.TrimSpace(text) == "":
		return nil, refuse("no_text")
	case utf8.RuneCountInString(text) > maxPostText:
		return nil, refuse("msg_too_long")
	}
	thread := p.text("thread_ts")
	if thread != "" && ch.byTS[thread] == nil {
		return nil, refuse("thread_not_found")
	}
	m := &message{TS: s.nextTS(), User: u.ID, Team: u.Team, Text: s.typed(text), ClientMsgID: newUUID()}
	if failed := s.placeInThread(ch, m, thread, p.flag("reply_broadcast")); failed != nil {
		return nil, failed
	}
	s.publish(ch, m)
	return object{"channel": ch.ID, "ts": m.TS, "message": ch.threadJSON(m)}, nil
}

// inChannel finds the person and the channel of a request that writes.
func (s *Server) inChannel(p *personCall) (*user, *channel, *apiError) {
	u, failed := s.me(p)
	if failed != nil {
		return nil, nil, failed
	}
	ch, failed := s.memberChannel(u, p.text("channel"))
	return u, ch, failed
}

// ownWritten finds a message that the person wrote.
func (s *Server) ownWritten(p *personCall) (*user, *channel, *message, *apiError) {
	u, ch, failed := s.inChannel(p)
	if failed != nil {
		return nil, nil, nil, failed
	}
	m := ch.byTS[p.text("ts")]
	switch {
	case m == nil:
		return nil, nil, nil, refuse("message_not_found")
	case m.User != u.ID || m.Subtype == "channel_join":
		return nil, nil, nil, refuse("not_yours")
	}
	return u, ch, m, nil
}

// editOwn is POST /people/{user}/edit.
func (s *Server) editOwn(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch, m, failed := s.ownWritten(p)
	if failed != nil {
		return nil, failed
	}
	text := p.text("text")
	if strings.TrimSpace(text) == "" {
		return nil, refuse("no_text")
	}
	before := *m
	m.Text, m.EditedBy, m.EditedTS = s.typed(text), u.ID, s.nextTS()
	s.changed(ch, &before, m)
	return object{"channel": ch.ID, "ts": m.TS, "message": ch.threadJSON(m)}, nil
}

// deleteOwn is POST /people/{user}/delete.
func (s *Server) deleteOwn(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ch, m, failed := s.ownWritten(p)
	if failed != nil {
		return nil, failed
	}
	s.erase(ch, m)
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

// reactAs is POST /people/{user}/reactions; remove takes the emoji away.
func (s *Server) reactAs(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch, failed := s.inChannel(p)
	if failed != nil {
		return nil, failed
	}
	m := ch.byTS[p.text("ts")]
	switch {
	case m == nil:
		return nil, refuse("message_not_found")
	case p.flag("remove"):
		return object{}, s.unreact(ch, m, u.ID, p.text("name"))
	}
	return object{}, s.react(ch, m, u.ID, p.text("name"))
}

// joinAs is POST /people/{user}/join: into a public channel.
func (s *Server) joinAs(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, failed := s.me(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := s.channelFor(u, p.text("channel"))
	switch {
	case failed != nil:
		return nil, failed
	case ch.Archived:
		return nil, refuse("is_archived")
	case !ch.has(u.ID):
		s.join(ch, u, "")
	}
	return object{"channel": s.channelSummary(u, ch)}, nil
}

// invite is POST /people/{user}/invite: others, bots too, into a channel that one is in.
func (s *Server) invite(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch, failed := s.inChannel(p)
	switch {
	case failed != nil:
		return nil, failed
	case ch.IM || ch.MPIM:
		return nil, refuse("method_not_supported_for_channel_type")
	case u.Restricted:
		return nil, refuse("user_is_restricted")
	}
	var joining []*user
	for _, name := range p.words("users") {
		other, failed := s.anyone(name)
		switch {
		case failed != nil:
			return nil, failed
		case other.Deleted:
			return nil, refuse("user_disabled")
		case !ch.has(other.ID):
			joining = append(joining, other)
		}
	}
	for _, other := range joining {
		s.join(ch, other, u.ID)
	}
	return object{"channel": s.channelSummary(u, ch)}, nil
}

// leaveAs is POST /people/{user}/leave.
func (s *Server) leaveAs(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch, failed := s.inChannel(p)
	switch {
	case failed != nil:
		return nil, failed
	case ch.IM || ch.MPIM:
		return nil, refuse("method_not_supported_for_channel_type")
	case ch.General:
		return nil, refuse("cant_leave_general")
	}
	hears := append(s.audience(ch), u.ID)
	ch.Members = slices.DeleteFunc(slices.Clone(ch.Members), func(id string) bool { return id == u.ID })
	if ch.has(s.botUser.ID) {
		kind := "C"
		if ch.Private {
			kind = "G"
		}
		s.emit("member_left_channel", object{"type": "member_left_channel", "user": u.ID, "channel": ch.ID, "channel_type": kind, "team": u.Team})
	}
	s.feed.send(change{Type: "channel", Channel: ch.ID, only: hears})
	return object{}, nil
}
