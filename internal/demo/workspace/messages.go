package workspace

import "slices"

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

	profile object  // of the app that wrote it
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

// shownMessage returns a message that a person can see. The message may be ephemeral.
func (s *Server) shownMessage(u *user, ch *channel, ts string) (*message, *apiError) {
	if i := slices.IndexFunc(ch.ephemerals, func(m *message) bool { return m.TS == ts && m.EphemeralTo == u.ID }); i >= 0 {
		return ch.ephemerals[i], nil
	}
	if m := ch.byTS[ts]; m != nil {
		return m, nil
	}
	return nil, refuse("message_not_found")
}
