package workspace

import (
	"strings"
	"unicode/utf8"

	"countersign/internal/demo/workspace/wire"
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
	case strings.TrimSpace(text) == "" && !p.has("files"):
		return nil, refuse("no_text")
	case utf8.RuneCountInString(text) > maxPostText:
		return nil, refuse("msg_too_long")
	}
	thread := p.text("thread_ts")
	if thread != "" && ch.byTS[thread] == nil {
		return nil, refuse("thread_not_found")
	}
	m := &message{TS: s.nextTS(), User: u.ID, Team: u.Team, Text: s.typed(text), ClientMsgID: wire.NewUUID()}
	if failed := s.placeInThread(ch, m, thread, p.flag("reply_broadcast")); failed != nil {
		return nil, failed
	}
	if failed := s.attach(p, m); failed != nil {
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
