package workspace

import (
	"slices"
	"strings"
	"time"
)

// threadInfo is the data set by assistant.threads.*. Status expires after a short time.
type threadInfo struct {
	Title       string   `json:"title,omitempty"`
	PromptTitle string   `json:"prompt_title,omitempty"`
	Prompts     []object `json:"prompts,omitempty"`
	status      string
	loading     []string
	statusUntil int64 // microseconds
}

// assistantThread returns the thread of an assistant.threads call.
func (s *Server) assistantThread(c *call) (*channel, *threadInfo, *apiError) {
	ch, failed := s.channels.readable(c.text("channel_id"))
	if failed != nil {
		return nil, nil, refuse("channel_not_found")
	}
	ts := c.text("thread_ts")
	if ts != "" {
		m := ch.byTS[ts]
		if m == nil {
			return nil, nil, refuse("invalid_thread_ts")
		}
		if m.reply() {
			return nil, nil, refuse("invalid_thread_ts")
		}
	}
	info := ch.Threads[ts]
	if info == nil {
		info = &threadInfo{}
		ch.Threads[ts] = info
	}
	return ch, info, nil
}

// setStatus is assistant.threads.setStatus. The status ends after StatusTTL, or when the app answers. An empty status
// clears the current status.
func (s *Server) setStatus(c *call) (object, *apiError) {
	if !c.has("status") {
		return nil, refuse("invalid_arguments", "missing required field: status [json-pointer:/status]")
	}
	ch, info, failed := s.assistantThread(c)
	if failed != nil {
		return nil, failed
	}
	loading := c.words("loading_messages")
	if len(loading) > maxLoading {
		return nil, refuse("invalid_arguments", "no more than 10 items allowed [json-pointer:/loading_messages]")
	}
	info.status, info.loading = strings.TrimSpace(c.text("status")), loading
	info.statusUntil = s.cfg.Now().Add(s.cfg.StatusTTL).UnixMicro()
	s.feed.send(change{Type: "status", Channel: ch.ID, ThreadTS: c.text("thread_ts"), only: s.channels.audience(ch)})
	return object{}, nil
}

// statuses returns the statuses that a channel shows at the given time, by thread.
func (c *channel) statuses(now time.Time) object {
	out := object{}
	for ts, info := range c.Threads {
		if info.status != "" && now.UnixMicro() < info.statusUntil {
			loading := info.loading
			if loading == nil {
				loading = []string{}
			}
			out[ts] = object{"text": info.status, "loading_messages": loading}
		}
	}
	return out
}

// setTitle is assistant.threads.setTitle.
func (s *Server) setTitle(c *call) (object, *apiError) {
	if c.text("title") == "" {
		return nil, refuse("invalid_arguments", "missing required field: title [json-pointer:/title]")
	}
	ch, info, failed := s.assistantThread(c)
	if failed != nil {
		return nil, failed
	}
	info.Title = c.text("title")
	s.feed.send(change{Type: "status", Channel: ch.ID, ThreadTS: c.text("thread_ts"), only: s.channels.audience(ch)})
	return object{}, nil
}

// setSuggestedPrompts is assistant.threads.setSuggestedPrompts.
func (s *Server) setSuggestedPrompts(c *call) (object, *apiError) {
	raw, _ := c.nested("prompts")
	list, ok := raw.([]any)
	if !ok || len(list) == 0 {
		return nil, refuse("invalid_arguments", "missing required field: prompts [json-pointer:/prompts]")
	}
	if len(list) > maxPrompts {
		return nil, refuse("invalid_arguments", "no more than 4 items allowed [json-pointer:/prompts]")
	}
	var prompts []object
	for _, item := range list {
		prompt, _ := item.(object)
		title, _ := prompt["title"].(string)
		text, _ := prompt["message"].(string)
		if title == "" || text == "" {
			return nil, refuse("invalid_arguments", "a prompt needs a title and a message [json-pointer:/prompts]")
		}
		prompts = append(prompts, object{"title": title, "message": text})
	}
	ch, info, failed := s.assistantThread(c)
	if failed != nil {
		return nil, failed
	}
	info.PromptTitle, info.Prompts = c.text("title"), prompts
	s.feed.send(change{Type: "status", Channel: ch.ID, ThreadTS: c.text("thread_ts"), only: s.channels.audience(ch)})
	return object{}, nil
}

// startThread is POST /people/{user}/agent_threads. startThread starts a new thread with the app as an agent. The
// argument "context" names the channel that the person is viewing.
func (s *Server) startThread(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, viewed, failed := s.lookingAt(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := s.channels.dmFor(u, s.botUser)
	if failed != nil {
		return nil, failed
	}
	root := s.messages.botMessage(content{text: "New Assistant Thread"})
	root.Subtype, root.ThreadTS = "assistant_app_thread", root.TS
	ch.add(root)
	s.feed.send(change{Type: "message", Channel: ch.ID, TS: root.TS, only: s.channels.audience(ch)})
	s.events.emit("assistant_thread_started", s.threadEvent("assistant_thread_started", u, ch, root.TS, viewed))
	return object{"channel": ch.ID, "thread_ts": root.TS}, nil
}

// look is POST /people/{user}/looks. The person views another channel while the app's pane is open. The argument
// thread_ts names a thread with the app.
func (s *Server) look(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, viewed, failed := s.lookingAt(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := s.channels.dmFor(u, s.botUser)
	if failed != nil {
		return nil, failed
	}
	thread := p.text("thread_ts")
	if thread == "" {
		context := object{}
		if viewed != nil {
			context["entities"] = []object{{"type": "slack#/types/channel_id", "value": viewed.ID, "team_id": s.team.ID}}
		}
		s.events.emit("app_context_changed", object{"type": "app_context_changed", "user": u.ID, "channel": ch.ID, "context": context})
		return object{}, nil
	}
	if ch.byTS[thread] == nil {
		return nil, refuse("thread_not_found")
	}
	s.events.emit("assistant_thread_context_changed", s.threadEvent("assistant_thread_context_changed", u, ch, thread, viewed))
	return object{}, nil
}

// lookingAt returns the person and the channel that the person views. If the person views no channel, the channel is
// nil.
func (s *Server) lookingAt(p *personCall) (*user, *channel, *apiError) {
	u, failed := s.accounts.me(p)
	if failed != nil || p.text("context") == "" {
		return u, nil, failed
	}
	viewed, failed := s.channels.channelFor(u, p.text("context"))
	return u, viewed, failed
}

func (s *Server) threadEvent(kind string, u *user, ch *channel, thread string, viewed *channel) object {
	context := object{}
	if viewed != nil {
		context = object{"channel_id": viewed.ID, "team_id": s.team.ID, "enterprise_id": nil}
	}
	return object{"type": kind, "assistant_thread": object{"user_id": u.ID, "context": context, "channel_id": ch.ID, "thread_ts": thread}}
}

// stopAgent is POST /people/{user}/stop: Slack's button that stops an agent in a thread. The button ends the streams in
// this thread.
func (s *Server) stopAgent(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ch, failed := s.channels.inChannel(p)
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
		s.messages.changed(ch, &before, m)
		stopped = append(stopped, m.TS)
	}
	s.events.emit("agent_session_stopped", object{"type": "agent_session_stopped", "channel": ch.ID, "user": u.ID, "thread_ts": thread, "streaming_message_ts": stopped})
	return object{"stopped": stopped}, nil
}
