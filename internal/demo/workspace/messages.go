package workspace

import (
	"fmt"
	"slices"

	"countersign/internal/demo/workspace/wire"
)

// message is a stored message. Nested values of a message (blocks, reactions, the stream) are replaced as a whole and
// never changed. Therefore a copy of the struct is a copy of the message.
type message struct {
	TS          string     `json:"ts"`
	ThreadTS    string     `json:"thread_ts,omitempty"` // also set on parents that have replies
	Subtype     string     `json:"subtype,omitempty"`
	User        string     `json:"user,omitempty"`
	Team        string     `json:"team,omitempty"`
	BotID       string     `json:"bot_id,omitempty"`
	AppID       string     `json:"app_id,omitempty"`
	Username    string     `json:"username,omitempty"`
	Text        string     `json:"text"`
	Blocks      []any      `json:"blocks,omitempty"`
	Attachments []any      `json:"attachments,omitempty"`
	Metadata    object     `json:"metadata,omitempty"`
	Files       []object   `json:"files,omitempty"`
	Reactions   []reaction `json:"reactions,omitempty"`
	EditedBy    string     `json:"edited_by,omitempty"`
	EditedTS    string     `json:"edited_ts,omitempty"`
	ClientMsgID string     `json:"client_msg_id,omitempty"`
	Stream      *stream    `json:"stream,omitempty"`

	// EphemeralTo is the only person who sees the message. An ephemeral message is not part of the channel's history.
	EphemeralTo string `json:"-"`

	profile object  // the bot_profile of the app that wrote the message
	earlier earlier // earlier versions that pages may still show
}

// allBlocks returns the blocks of the message and of its attachments.
func (m *message) allBlocks() []any {
	blocks := slices.Clone(m.Blocks)
	for _, item := range m.Attachments {
		if attachment, ok := item.(object); ok {
			nested, _ := attachment["blocks"].([]any)
			blocks = append(blocks, nested...)
		}
	}
	return blocks
}

// reply reports whether the message is in a thread and is not the thread's parent.
func (m *message) reply() bool { return m.ThreadTS != "" && m.ThreadTS != m.TS }

// topLevel reports whether the channel itself shows the message.
func (m *message) topLevel() bool { return !m.reply() || m.Subtype == "thread_broadcast" }

// json returns the message in the form of Slack's methods and events, without the counts of a thread's parent (see
// threadJSON).
func (m *message) json() object {
	out := object{"type": "message", "ts": m.TS, "text": m.Text}
	put := func(key, value string) {
		if value != "" {
			out[key] = value
		}
	}
	put("subtype", m.Subtype)
	put("thread_ts", m.ThreadTS)
	put("user", m.User)
	put("team", m.Team)
	put("bot_id", m.BotID)
	put("app_id", m.AppID)
	put("username", m.Username)
	put("client_msg_id", m.ClientMsgID)
	if m.profile != nil {
		out["bot_profile"] = m.profile
	}
	if len(m.Blocks) > 0 {
		out["blocks"] = m.Blocks
	}
	if len(m.Attachments) > 0 {
		out["attachments"] = m.Attachments
	}
	if m.Metadata != nil {
		out["metadata"] = m.Metadata
	}
	if len(m.Files) > 0 {
		out["files"] = m.Files
	}
	if m.EditedTS != "" {
		out["edited"] = object{"user": m.EditedBy, "ts": m.EditedTS}
	}
	if len(m.Reactions) > 0 {
		list := make([]object, len(m.Reactions))
		for i, r := range m.Reactions {
			list[i] = object{"name": r.Name, "count": len(r.Users), "users": append([]string{}, r.Users...)}
		}
		out["reactions"] = list
	}
	if m.EphemeralTo != "" {
		out["is_ephemeral"] = true
	}
	if m.Subtype == "tombstone" {
		out["hidden"] = true
	}
	if m.Stream != nil && m.Stream.Open {
		out["streaming_state"] = "in_progress"
	} else if m.Stream != nil {
		out["streaming_state"] = "completed"
	}
	return out
}

// threadJSON returns the message with the additional fields of replies and of threads' parents.
func (c *channel) threadJSON(m *message) object {
	out := m.json()
	if m.reply() {
		if parent := c.byTS[m.ThreadTS]; parent != nil && parent.User != "" {
			out["parent_user_id"] = parent.User
		}
		return out
	}
	if m.ThreadTS == "" {
		return out
	}
	replies := c.replies(m.TS)
	if len(replies) == 0 {
		return out
	}
	var users []string
	for _, r := range replies {
		if !slices.Contains(users, r.User) {
			users = append(users, r.User)
		}
	}
	out["reply_count"], out["reply_users_count"] = len(replies), len(users)
	out["reply_users"] = users[:min(len(users), 5)]
	out["latest_reply"] = replies[len(replies)-1].TS
	out["is_locked"], out["subscribed"] = false, false
	return out
}

// messages adds, changes and removes messages, and notifies the app and the people of each change. The channels hold
// the messages.
type messages struct {
	*core
	channels *channels
	events   *events
}

// botMessage returns a message of the app with the next timestamp.
func (ms *messages) botMessage(what content) *message {
	m := &message{
		TS: ms.nextTS(), User: ms.botUser.ID, Team: ms.team.ID, BotID: ms.app.BotID, AppID: ms.app.ID,
		Text: what.text, Blocks: what.blocks, Attachments: what.attachments, profile: ms.profile(),
	}
	if what.hasMetadata {
		m.Metadata = what.metadata
	}
	return m
}

// profile returns the bot_profile of the app's messages.
func (ms *messages) profile() object {
	return object{"id": ms.app.BotID, "app_id": ms.app.ID, "name": ms.app.Name, "deleted": false, "team_id": ms.team.ID, "icons": object{}, "updated": ms.botUser.Updated}
}

// placeInThread makes the new message m a reply. As in Slack, if thread_ts names a reply, the new message goes to the
// thread of this reply. If thread_ts names a deleted message, the new message goes to the channel.
func (ms *messages) placeInThread(ch *channel, m *message, threadTS string, broadcast bool) *apiError {
	if threadTS == "" {
		return nil
	}
	if _, ok := wire.ParseTS(threadTS); !ok {
		return refuse("invalid_thread_ts")
	}
	parent := ch.byTS[threadTS]
	if parent != nil && parent.reply() {
		parent = ch.byTS[parent.ThreadTS]
	}
	if parent == nil {
		return nil
	}
	m.ThreadTS = parent.TS
	if broadcast {
		m.Subtype = "thread_broadcast"
	}
	return nil
}

// publish adds a message to its channel and notifies the app and the people.
func (ms *messages) publish(ch *channel, m *message) {
	ch.add(m)
	if m.reply() {
		ch.byTS[m.ThreadTS].ThreadTS = m.ThreadTS
	}
	if m.User != "" && m.topLevel() {
		ch.LastRead[m.User] = m.TS // the author has read the channel
	}
	if info := ch.Threads[m.ThreadTS]; info != nil && m.BotID == ms.app.BotID {
		info.status = "" // an answer ends the status
	}
	ms.events.sendMessageEvents(ch, m)
	ms.feed.send(change{Type: "message", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: ms.channels.audience(ch)})
}

// The method "changed" notifies the app and the people of a changed message.
func (ms *messages) changed(ch *channel, before, m *message) {
	m.earlier = before.earlier.add(before.allBlocks())
	ms.events.sendMessageChanged(ch, before, m)
	ms.feed.send(change{Type: "message_changed", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: ms.channels.audience(ch)})
}

// erase removes a message. As in Slack, a parent with replies becomes a tombstone, a placeholder for the deleted
// message. The app then gets a change event. When the last reply is deleted, the tombstone is removed, too.
func (ms *messages) erase(ch *channel, m *message) {
	if !m.reply() && len(ch.replies(m.TS)) > 0 {
		before := *m
		*m = message{TS: m.TS, ThreadTS: m.TS, Subtype: "tombstone", Text: "This message was deleted.", User: "USLACKBOT"}
		ms.events.sendMessageChanged(ch, &before, m)
	} else {
		ch.remove(m)
		ms.events.sendMessageDeleted(ch, m)
	}
	ms.feed.send(change{Type: "message_deleted", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: ms.channels.audience(ch)})
	if parent := ch.byTS[m.ThreadTS]; m.reply() && parent != nil && parent.Subtype == "tombstone" && len(ch.replies(parent.TS)) == 0 {
		ms.erase(ch, parent)
	}
}

func (ms *messages) showEphemeral(ch *channel, m *message, to string) {
	m.EphemeralTo = to
	ch.ephemerals = append(ch.ephemerals, m)
	if extra := len(ch.ephemerals) - maxEphemerals; extra > 0 {
		ch.ephemerals = slices.Delete(ch.ephemerals, 0, extra)
	}
	ms.feed.send(change{Type: "ephemeral", User: to, Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: []string{to}})
}

func (ms *messages) removeEphemeral(ch *channel, m *message) {
	for i, other := range ch.ephemerals {
		if other == m {
			ch.ephemerals = append(ch.ephemerals[:i:i], ch.ephemerals[i+1:]...)
			break
		}
	}
	ms.feed.send(change{Type: "message_deleted", User: m.EphemeralTo, Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: []string{m.EphemeralTo}})
}

// The method "shown" returns the message of a channel with the timestamp ts, if the person can see the message. The
// message may be ephemeral.
func (ms *messages) shown(u *user, ch *channel, ts string) (*message, *apiError) {
	if i := slices.IndexFunc(ch.ephemerals, func(m *message) bool { return m.TS == ts && m.EphemeralTo == u.ID }); i >= 0 {
		return ch.ephemerals[i], nil
	}
	if m := ch.byTS[ts]; m != nil {
		return m, nil
	}
	return nil, refuse("message_not_found")
}

// stored returns a message by the id of its channel and its ts.
func (ms *messages) stored(channel, ts string) (*channel, *message, error) {
	ch := ms.channels.byID[channel]
	if ch == nil || ch.byTS[ts] == nil {
		return nil, nil, fmt.Errorf("there is no message %s in %q", ts, channel)
	}
	return ch, ch.byTS[ts], nil
}
