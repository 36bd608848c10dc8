package workspace

import (
	"slices"
	"strings"
)

// getPeople is GET /people.
func (s *Server) getPeople(*personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	people := []object{}
	for _, id := range s.accounts.ids {
		if id != s.botUser.ID {
			person := s.accounts.byID[id].json(now)
			person["dnd"] = s.quietForPage(s.accounts.byID[id])
			people = append(people, person)
		}
	}
	groups := []object{}
	for _, g := range s.groups {
		groups = append(groups, object{"id": g.ID, "handle": g.Handle, "name": g.Name, "users": slices.Clone(g.Users)})
	}
	commands := []object{}
	for _, c := range s.app.Commands {
		commands = append(commands, object{"command": c.Command, "description": c.Description, "usage_hint": c.UsageHint, "should_escape": c.ShouldEscape})
	}
	shortcuts := []object{}
	for _, c := range s.app.Shortcuts {
		shortcuts = append(shortcuts, object{"callback_id": c.CallbackID, "name": c.Name, "type": c.Type})
	}
	return object{
		"team": object{"id": s.team.ID, "name": s.team.Name, "domain": s.team.Domain},
		"hint": s.cfg.Seed.Hint.shown(), "people": people, "bot": s.botUser.json(now), "groups": groups, "commands": commands, "shortcuts": shortcuts,
		"connected": s.hub.Connected(),
	}, nil
}

// getChannels is GET /people/{user}/channels: the person's channels, then their DMs.
func (s *Server) getChannels(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, failed := s.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	list := []object{}
	for _, wantIM := range []bool{false, true} {
		for _, id := range s.channels.ids {
			ch := s.channels.byID[id]
			if (ch.IM || ch.MPIM) == wantIM && ch.has(u.ID) {
				list = append(list, s.channelSummary(u, ch))
			}
		}
	}
	out := object{"channels": list}
	if p.flag("all") {
		others := []object{}
		for _, id := range s.channels.ids {
			if ch := s.channels.byID[id]; !ch.has(u.ID) && s.channels.sees(u, ch) {
				others = append(others, s.channelSummary(u, ch))
			}
		}
		out["others"] = others
	}
	return out, nil
}

// channelSummary returns a channel as listed on the page.
func (s *Server) channelSummary(u *user, ch *channel) object {
	out := ch.json(u.ID, s.team.ID)
	out["num_members"], out["is_member"] = len(ch.Members), ch.has(u.ID)
	if ch.IM {
		other := s.accounts.byID[ch.other(u.ID)]
		out["name"], out["topic"] = other.Name, object{"value": ""}
	}
	unread, mentions := s.unread(u, ch)
	out["unread_count"], out["mention_count"], out["last_read"] = unread, mentions, lastRead(ch, u.ID)
	out["latest_ts"] = ""
	if n := len(ch.Messages); n > 0 {
		out["latest_ts"] = ch.Messages[n-1].TS
	}
	return out
}

func lastRead(ch *channel, user string) string {
	if ts := ch.LastRead[user]; ts != "" {
		return ts
	}
	return "0000000000.000000"
}

// unread counts a person's unseen messages. The result unread is the number of top-level messages. The result mentions
// is the number of messages and replies that mention the person. In a DM, both results include every message.
func (s *Server) unread(u *user, ch *channel) (unread, mentions int) {
	if !ch.has(u.ID) {
		return 0, 0
	}
	after := lastRead(ch, u.ID)
	for _, m := range slices.Backward(ch.Messages) {
		if m.TS <= after {
			break
		}
		if m.User == u.ID || m.Subtype == "channel_join" || m.Subtype == "tombstone" {
			continue
		}
		if m.reply() && m.TS <= ch.LastRead[threadKey(u.ID, m.ThreadTS)] {
			continue
		}
		personal := ch.IM || ch.MPIM
		if m.topLevel() || personal {
			unread++
		}
		if personal || s.mentions(m, u) {
			mentions++
		}
	}
	return unread, mentions
}

func (s *Server) mentions(m *message, u *user) bool {
	found := false
	walkText(m.Text, m.Blocks, func(text string) {
		if strings.Contains(text, "<@"+u.ID+">") || strings.Contains(text, "<@"+u.ID+"|") ||
			strings.Contains(text, "<!here") || strings.Contains(text, "<!channel") || strings.Contains(text, "<!everyone") {
			found = true
		}
		for _, g := range s.groups {
			if slices.Contains(g.Users, u.ID) && strings.Contains(text, "<!subteam^"+g.ID) {
				found = true
			}
		}
	})
	return found
}

// walkText visits a message's text and the mrkdwn of its blocks.
func walkText(text string, v any, visit func(string)) {
	if text != "" {
		visit(text)
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			walkText("", item, visit)
		}
	case object:
		if inner, ok := v["text"].(string); ok && v["type"] == "mrkdwn" {
			visit(inner)
		}
		for _, inner := range v {
			walkText("", inner, visit)
		}
	}
}

// getMessages is GET /people/{user}/channels/{channel}/messages.
func (s *Server) getMessages(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, failed := s.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := s.channels.channelFor(u, p.r.PathValue("channel"))
	if failed != nil {
		return nil, failed
	}
	thread := p.text("thread_ts")
	var list []*message
	if thread == "" {
		for _, m := range ch.Messages {
			if m.topLevel() {
				list = append(list, m)
			}
		}
	} else {
		parent := ch.byTS[thread]
		if parent == nil || parent.reply() {
			return nil, refuse("thread_not_found")
		}
		list = append([]*message{parent}, ch.replies(thread)...)
	}
	for _, m := range ch.ephemerals {
		if m.EphemeralTo == u.ID && (m.ThreadTS == thread || (m.TS == thread)) {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b *message) int { return strings.Compare(a.TS, b.TS) })
	if limit := p.number("limit", 0); limit > 0 && len(list) > limit {
		list = list[len(list)-limit:]
	}
	if p.flag("mark") && ch.has(u.ID) {
		s.markRead(u, ch, thread)
	}
	messages := make([]object, len(list))
	for i, m := range list {
		messages[i] = ch.threadJSON(m)
	}
	out := object{"channel": s.channelSummary(u, ch), "messages": messages, "status": ch.statuses(s.cfg.Now())}
	if info := ch.Threads[thread]; info != nil {
		out["title"], out["prompts_title"], out["prompts"] = info.Title, info.PromptTitle, append([]object{}, info.Prompts...)
	}
	return out, nil
}

// threadKey returns the key of a person's read mark in a thread.
func threadKey(user, thread string) string { return user + " " + thread }

// markRead sets a person's read mark to the newest message of a channel or thread.
func (s *Server) markRead(u *user, ch *channel, thread string) {
	list, key := ch.Messages, u.ID
	if thread != "" {
		list, key = ch.replies(thread), threadKey(u.ID, thread)
	}
	if len(list) == 0 {
		return
	}
	newest := list[len(list)-1].TS
	if max(ch.LastRead[key], ch.LastRead[u.ID]) >= newest {
		return
	}
	ch.LastRead[key] = newest
	s.saver.touch()
	s.feed.send(change{Type: "read", User: u.ID, Channel: ch.ID, only: []string{u.ID}})
}

// Introduce replaces the seed's hint for new users. Call Introduce before the workspace is served.
func (s *Server) Introduce(hint SeedHint) { s.cfg.Seed.Hint = hint }

// shown returns the hint for the page, or nil.
func (h SeedHint) shown() any {
	if h.Title == "" {
		return nil
	}
	return h
}
