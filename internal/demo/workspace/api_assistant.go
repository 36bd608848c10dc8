package workspace

import "strings"

// assistantThread finds the thread that an assistant.threads method is about.
func (s *Server) assistantThread(c *call) (*channel, *threadInfo, *apiError) {
	ch, failed := s.readable(c.text("channel_id"))
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

// setStatus is assistant.threads.setStatus. The status goes by itself after a while, or
// when the app answers; an empty one clears it.
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
	s.feed.send(change{Type: "status", Channel: ch.ID, ThreadTS: c.text("thread_ts"), only: s.audience(ch)})
	return object{}, nil
}

// statuses are the statuses shown in a channel, by thread.
func (s *Server) statuses(ch *channel) object {
	out := object{}
	now := s.cfg.Now().UnixMicro()
	for ts, info := range ch.Threads {
		if info.status != "" && now < info.statusUntil {
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
	s.feed.send(change{Type: "status", Channel: ch.ID, ThreadTS: c.text("thread_ts"), only: s.audience(ch)})
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
	s.feed.send(change{Type: "status", Channel: ch.ID, ThreadTS: c.text("thread_ts"), only: s.audience(ch)})
	return object{}, nil
}
