package workspace

import (
	"slices"
	"strings"
	"time"
)

// threadInfo holds the values that the methods assistant.threads.* set for a thread. The status expires after a short
// time.
type threadInfo struct {
	Title       string   `json:"title,omitempty"`
	PromptTitle string   `json:"prompt_title,omitempty"`
	Prompts     []object `json:"prompts,omitempty"`
	status      string
	loading     []string
	statusUntil int64 // time in microseconds
}

// assistant handles Slack's features for an app that is an agent: threads, their status and prompts, and the button
// that stops the agent.
type assistant struct {
	*core
	accounts *accounts
	channels *channels
	events   *events
	messages *messages
}

// thread returns the thread of an assistant.threads call.
func (a *assistant) thread(c *call) (*channel, *threadInfo, *apiError) {
	ch, failed := a.channels.readable(c.text("channel_id"))
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
func (a *assistant) setStatus(c *call) (object, *apiError) {
	if !c.has("status") {
		return nil, refuse("invalid_arguments", "missing required field: status [json-pointer:/status]")
	}
	ch, info, failed := a.thread(c)
	if failed != nil {
		return nil, failed
	}
	loading := c.words("loading_messages")
	if len(loading) > maxLoading {
		return nil, refuse("invalid_arguments", "no more than 10 items allowed [json-pointer:/loading_messages]")
	}
	info.status, info.loading = strings.TrimSpace(c.text("status")), loading
	info.statusUntil = a.cfg.Now().Add(a.cfg.StatusTTL).UnixMicro()
	a.feed.send(change{Type: "status", Channel: ch.ID, ThreadTS: c.text("thread_ts"), only: a.channels.audience(ch)})
	return object{}, nil
}

// The method "statuses" returns the statuses that a channel shows at the given time, by thread.
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
func (a *assistant) setTitle(c *call) (object, *apiError) {
	if c.text("title") == "" {
		return nil, refuse("invalid_arguments", "missing required field: title [json-pointer:/title]")
	}
	ch, info, failed := a.thread(c)
	if failed != nil {
		return nil, failed
	}
	info.Title = c.text("title")
	a.feed.send(change{Type: "status", Channel: ch.ID, ThreadTS: c.text("thread_ts"), only: a.channels.audience(ch)})
	return object{}, nil
}

// setSuggestedPrompts is assistant.threads.setSuggestedPrompts.
func (a *assistant) setSuggestedPrompts(c *call) (object, *apiError) {
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
	ch, info, failed := a.thread(c)
	if failed != nil {
		return nil, failed
	}
	info.PromptTitle, info.Prompts = c.text("title"), prompts
	a.feed.send(change{Type: "status", Channel: ch.ID, ThreadTS: c.text("thread_ts"), only: a.channels.audience(ch)})
	return object{}, nil
}

// startThread is POST /people/{user}/agent_threads. startThread starts a new thread with the app as an agent. The
// argument "context" names the channel that the person is viewing.
func (a *assistant) startThread(p *personCall) (object, *apiError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, ch, viewed, failed := a.lookingAt(p)
	if failed != nil {
		return nil, failed
	}
	root := a.messages.botMessage(content{text: "New Assistant Thread"})
	root.Subtype, root.ThreadTS = "assistant_app_thread", root.TS
	ch.add(root)
	a.feed.send(change{Type: "message", Channel: ch.ID, TS: root.TS, only: a.channels.audience(ch)})
	a.events.emit("assistant_thread_started", a.threadEvent("assistant_thread_started", u, ch, root.TS, viewed))
	return object{"channel": ch.ID, "thread_ts": root.TS}, nil
}

// look is POST /people/{user}/looks. The person views another channel while the app's pane is open. The argument
// thread_ts names a thread with the app.
func (a *assistant) look(p *personCall) (object, *apiError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, ch, viewed, failed := a.lookingAt(p)
	if failed != nil {
		return nil, failed
	}
	thread := p.text("thread_ts")
	if thread == "" {
		context := object{}
		if viewed != nil {
			context["entities"] = []object{{"type": "slack#/types/channel_id", "value": viewed.ID, "team_id": a.team.ID}}
		}
		a.events.emit("app_context_changed", object{"type": "app_context_changed", "user": u.ID, "channel": ch.ID, "context": context})
		return object{}, nil
	}
	if ch.byTS[thread] == nil {
		return nil, refuse("thread_not_found")
	}
	a.events.emit("assistant_thread_context_changed", a.threadEvent("assistant_thread_context_changed", u, ch, thread, viewed))
	return object{}, nil
}

// lookingAt returns the person, the person's conversation with the app, and the channel that the person views. If the
// person views no channel, viewed is nil.
func (a *assistant) lookingAt(p *personCall) (u *user, dm, viewed *channel, failed *apiError) {
	if u, failed = a.accounts.me(p); failed != nil {
		return nil, nil, nil, failed
	}
	if p.text("context") != "" {
		if viewed, failed = a.channels.channelFor(u, p.text("context")); failed != nil {
			return nil, nil, nil, failed
		}
	}
	dm, failed = a.channels.dmFor(u, a.botUser)
	return u, dm, viewed, failed
}

func (a *assistant) threadEvent(kind string, u *user, ch *channel, thread string, viewed *channel) object {
	context := object{}
	if viewed != nil {
		context = object{"channel_id": viewed.ID, "team_id": a.team.ID, "enterprise_id": nil}
	}
	return object{"type": kind, "assistant_thread": object{"user_id": u.ID, "context": context, "channel_id": ch.ID, "thread_ts": thread}}
}

// stopAgent is POST /people/{user}/stop: Slack's button that stops an agent in a thread. The button ends the streams in
// this thread.
func (a *assistant) stopAgent(p *personCall) (object, *apiError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u, ch, failed := a.channels.inChannel(p)
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
		a.messages.changed(ch, &before, m)
		stopped = append(stopped, m.TS)
	}
	a.events.emit("agent_session_stopped", object{"type": "agent_session_stopped", "channel": ch.ID, "user": u.ID, "thread_ts": thread, "streaming_message_ts": stopped})
	return object{"stopped": stopped}, nil
}
