package workspace

import "slices"

// startThread is POST /people/{user}/agent_threads: a new thread with the app as an agent. {"context"} is the channel
// that the person looks at.
func (s *Server) startThread(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, viewed, failed := s.lookingAt(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := s.dmFor(u, s.botUser)
	if failed != nil {
		return nil, failed
	}
	root := s.botMessage(content{text: "New Assistant Thread"})
	root.Subtype, root.ThreadTS = "assistant_app_thread", root.TS
	ch.add(root)
	s.feed.send(change{Type: "message", Channel: ch.ID, TS: root.TS, only: s.audience(ch)})
	s.emit("assistant_thread_started", s.threadEvent("assistant_thread_started", u, ch, root.TS, viewed))
	return object{"channel": ch.ID, "thread_ts": root.TS}, nil
}

// look is POST /people/{user}/looks: the person looks at another channel while the app is open beside it: with a
// thread_ts in that thread with the app.
func (s *Server) look(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, viewed, failed := s.lookingAt(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := s.dmFor(u, s.botUser)
	if failed != nil {
		return nil, failed
	}
	thread := p.text("thread_ts")
	if thread == "" {
		context := object{}
		if viewed != nil {
			context["entities"] = []object{{"type": "slack#/types/channel_id", "value": viewed.ID, "team_id": s.team.ID}}
		}
		s.emit("app_context_changed", object{"type": "app_context_changed", "user": u.ID, "channel": ch.ID, "context": context})
		return object{}, nil
	}
	if ch.byTS[thread] == nil {
		return nil, refuse("thread_not_found")
	}
	s.emit("assistant_thread_context_changed", s.threadEvent("assistant_thread_context_changed", u, ch, thread, viewed))
	return object{}, nil
}

// lookingAt is the person and the channel that they look at, if they look at any.
func (s *Server) lookingAt(p *personCall) (*user, *channel, *apiError) {
	u, failed := s.me(p)
	if failed != nil || p.text("context") == "" {
		return u, nil, failed
	}
	viewed, failed := s.channelFor(u, p.text("context"))
	return u, viewed, failed
}

func (s *Server) threadEvent(kind string, u *user, ch *channel, thread string, viewed *channel) object {
	context := object{}
	if viewed != nil {
		context = object{"channel_id": viewed.ID, "team_id": s.team.ID, "enterprise_id": nil}
	}
	return object{"type": kind, "assistant_thread": object{"user_id": u.ID, "context": context, "channel_id": ch.ID, "thread_ts": thread}}
}

// stopAgent is POST /people/{user}/stop: the button with which Slack lets people stop what an agent does in a thread.
// What is being streamed there ends.
func (s *Server) stopAgent(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch, failed := s.inChannel(p)
	if failed != nil {
		return nil, failed
	}
	thread, stopped := p.text("thread_ts"), []string{}
	if ch.byTS[thread] == nil {
		return nil, refuse("thread_not_found")
	}
	for _, m := range append(slices.Clone(ch.replies(thread)), ch.byTS[thread]) {
		if m.Stream == nil || !m.Stream.Open {
			continue
		}
		before := *m
		m.Stream = m.Stream.with(nil)
		m.Stream.Open, m.Stream.Stopped = false, true
		s.changed(ch, &before, m)
		stopped = append(stopped, m.TS)
	}
	s.emit("agent_session_stopped", object{"type": "agent_session_stopped", "channel": ch.ID, "user": u.ID, "thread_ts": thread, "streaming_message_ts": stopped})
	return object{"stopped": stopped}, nil
}
