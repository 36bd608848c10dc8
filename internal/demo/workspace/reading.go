package workspace

import (
	"slices"
	"strings"
)

// reading returns the data that the page shows to a person: people, channels and messages.
type reading struct {
	*core
	accounts   *accounts
	channels   *channels
	groups     *userGroups
	quietTimes *quietTimes
}

// getPeople is GET /people.
func (rd *reading) getPeople(*personCall) (object, *apiError) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	now := rd.cfg.Now()
	people := []object{}
	for _, id := range rd.accounts.ids {
		if id != rd.botUser.ID {
			person := rd.accounts.byID[id].json(now)
			person["dnd"] = rd.quietTimes.forPage(rd.accounts.byID[id])
			people = append(people, person)
		}
	}
	groups := []object{}
	for _, g := range rd.groups.list {
		groups = append(groups, object{"id": g.ID, "handle": g.Handle, "name": g.Name, "users": slices.Clone(g.Users)})
	}
	commands := []object{}
	for _, c := range rd.app.Commands {
		commands = append(commands, object{"command": c.Command, "description": c.Description, "usage_hint": c.UsageHint, "should_escape": c.ShouldEscape})
	}
	shortcuts := []object{}
	for _, c := range rd.app.Shortcuts {
		shortcuts = append(shortcuts, object{"callback_id": c.CallbackID, "name": c.Name, "type": c.Type})
	}
	return object{
		"team": object{"id": rd.team.ID, "name": rd.team.Name, "domain": rd.team.Domain},
		"hint": rd.cfg.Seed.Hint.shown(), "people": people, "bot": rd.botUser.json(now), "groups": groups, "commands": commands, "shortcuts": shortcuts,
		"connected": rd.hub.Connected(),
	}, nil
}

// getChannels is GET /people/{user}/channels: the person's channels, then their DMs.
func (rd *reading) getChannels(p *personCall) (object, *apiError) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	u, failed := rd.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	list := []object{}
	for _, wantIM := range []bool{false, true} {
		for _, id := range rd.channels.ids {
			ch := rd.channels.byID[id]
			if (ch.IM || ch.MPIM) == wantIM && ch.has(u.ID) {
				list = append(list, rd.channelSummary(u, ch))
			}
		}
	}
	out := object{"channels": list}
	if p.flag("all") {
		others := []object{}
		for _, id := range rd.channels.ids {
			if ch := rd.channels.byID[id]; !ch.has(u.ID) && rd.channels.sees(u, ch) {
				others = append(others, rd.channelSummary(u, ch))
			}
		}
		out["others"] = others
	}
	return out, nil
}

// channelSummary returns a channel as listed on the page.
func (rd *reading) channelSummary(u *user, ch *channel) object {
	out := ch.json(u.ID, rd.team.ID)
	out["num_members"], out["is_member"] = len(ch.Members), ch.has(u.ID)
	if ch.IM {
		other := rd.accounts.byID[ch.other(u.ID)]
		out["name"], out["topic"] = other.Name, object{"value": ""}
	}
	unread, mentions := rd.unread(u, ch)
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

// The method "unread" counts a person's unseen messages. The result unread is the number of top-level messages. The
// result mentions is the number of messages and replies that mention the person. In a DM, both results include every
// message.
func (rd *reading) unread(u *user, ch *channel) (unread, mentions int) {
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
		if personal || rd.mentions(m, u) {
			mentions++
		}
	}
	return unread, mentions
}

func (rd *reading) mentions(m *message, u *user) bool {
	found := false
	walkText(m.Text, m.Blocks, func(text string) {
		if strings.Contains(text, "<@"+u.ID+">") || strings.Contains(text, "<@"+u.ID+"|") ||
			strings.Contains(text, "<!here") || strings.Contains(text, "<!channel") || strings.Contains(text, "<!everyone") {
			found = true
		}
		for _, g := range rd.groups.list {
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
func (rd *reading) getMessages(p *personCall) (object, *apiError) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	u, failed := rd.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := rd.channels.channelFor(u, p.r.PathValue("channel"))
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
		rd.markRead(u, ch, thread)
	}
	messages := make([]object, len(list))
	for i, m := range list {
		messages[i] = ch.threadJSON(m)
	}
	out := object{"channel": rd.channelSummary(u, ch), "messages": messages, "status": ch.statuses(rd.cfg.Now())}
	if info := ch.Threads[thread]; info != nil {
		out["title"], out["prompts_title"], out["prompts"] = info.Title, info.PromptTitle, append([]object{}, info.Prompts...)
	}
	return out, nil
}

// threadKey returns the key of a person's read mark in a thread.
func threadKey(user, thread string) string { return user + " " + thread }

// markRead sets a person's read mark to the newest message of a channel or thread.
func (rd *reading) markRead(u *user, ch *channel, thread string) {
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
	rd.saver.touch()
	rd.feed.send(change{Type: "read", User: u.ID, Channel: ch.ID, only: []string{u.ID}})
}

// The method "shown" returns the hint for the page, or nil.
func (h SeedHint) shown() any {
	if h.Title == "" {
		return nil
	}
	return h
}
