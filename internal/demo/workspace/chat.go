package workspace

import (
	"net/http"
	"slices"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// postMessage is chat.postMessage.
func (s *Server) postMessage(c *call) (object, *apiError) {
	ch, failed := s.channels.target(c.text("channel"))
	if failed != nil {
		return nil, failed
	}
	what, failed := s.readContent(c.arguments, maxPostText, true)
	if failed != nil {
		return nil, failed
	}
	if what.empty() {
		return nil, refuse("no_text")
	}
	m := s.botMessage(what)
	m.Username = ""
	if failed := s.placeInThread(ch, m, c.text("thread_ts"), c.flag("reply_broadcast")); failed != nil {
		return nil, failed
	}
	s.publish(ch, m)
	return object{"channel": ch.ID, "ts": m.TS, "message": m.json()}, nil
}

// botMessage returns a message of the app with the next timestamp.
func (s *Server) botMessage(what content) *message {
	m := &message{
		TS: s.nextTS(), User: s.botUser.ID, Team: s.team.ID, BotID: s.app.BotID, AppID: s.app.ID,
		Text: what.text, Blocks: what.blocks, Attachments: what.attachments, profile: s.profile(),
	}
	if what.hasMetadata {
		m.Metadata = what.metadata
	}
	return m
}

// profile returns the bot_profile of the app's messages.
func (s *Server) profile() object {
	return object{"id": s.app.BotID, "app_id": s.app.ID, "name": s.app.Name, "deleted": false, "team_id": s.team.ID, "icons": object{}, "updated": s.botUser.Updated}
}

// placeInThread makes the new message m a reply. As in Slack, if thread_ts names a reply, the new message goes to the
// thread of this reply. If thread_ts names a deleted message, the new message goes to the channel.
func (s *Server) placeInThread(ch *channel, m *message, threadTS string, broadcast bool) *apiError {
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
func (s *Server) publish(ch *channel, m *message) {
	ch.add(m)
	if m.reply() {
		ch.byTS[m.ThreadTS].ThreadTS = m.ThreadTS
	}
	if m.User != "" && m.topLevel() {
		ch.LastRead[m.User] = m.TS // the author has read the channel
	}
	if info := ch.Threads[m.ThreadTS]; info != nil && m.BotID == s.app.BotID {
		info.status = "" // an answer ends the status
	}
	s.events.sendMessageEvents(ch, m)
	s.feed.send(change{Type: "message", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: s.channels.audience(ch)})
}

// ownMessage returns a message that the app may change. As in Slack, chat.update and chat.delete accept only the id of
// a channel. These methods accept no names and open no DM.
func (s *Server) ownMessage(c *call, otherwise string) (*channel, *message, *apiError) {
	ch := s.channels.byID[c.text("channel")]
	if ch == nil || (!ch.has(s.botUser.ID) && ch.kind() != "channel") {
		return nil, nil, refuse("channel_not_found")
	}
	m := ch.byTS[c.text("ts")]
	switch {
	case m == nil:
		return nil, nil, refuse("message_not_found")
	case m.BotID != s.app.BotID:
		return nil, nil, refuse(otherwise)
	case ch.Archived:
		return nil, nil, refuse("is_inactive")
	}
	return ch, m, nil
}

// updateMessage is chat.update. If the call has text and no blocks, the message loses its blocks. A call without any
// new content fails. A call that would leave the message empty also fails, and changes nothing.
func (s *Server) updateMessage(c *call) (object, *apiError) {
	ch, m, failed := s.ownMessage(c, "cant_update_message")
	if failed != nil {
		return nil, failed
	}
	what, failed := s.readContent(c.arguments, maxUpdateText, false)
	if failed != nil {
		return nil, failed
	}
	if !what.hasText && !what.hasBlocks && !what.hasAttachments && !c.has("metadata") && !c.has("file_ids") {
		return nil, refuse("no_text")
	}
	if m.Stream != nil && m.Stream.Open {
		return nil, refuse("streaming_state_conflict")
	}
	before := *m
	if what.hasText {
		m.Text, m.Blocks = what.text, nil
	}
	if what.hasBlocks {
		m.Blocks = what.blocks
	}
	if what.hasAttachments {
		m.Attachments = what.attachments
	}
	if c.has("metadata") {
		m.Metadata = what.metadata
	}
	if m.Text == "" && len(m.Blocks) == 0 && len(m.Attachments) == 0 && len(m.Files) == 0 {
		*m = before
		return nil, refuse("no_text")
	}
	if !what.hasBlocks {
		m.EditedBy, m.EditedTS = s.botUser.ID, s.nextTS()
	}
	s.changed(ch, &before, m)
	return object{"channel": ch.ID, "ts": m.TS, "text": m.Text, "message": m.json()}, nil
}

// changed notifies the app and the people of a changed message.
func (s *Server) changed(ch *channel, before, m *message) {
	m.earlier = before.earlier.add(before.allBlocks())
	s.events.sendMessageChanged(ch, before, m)
	s.feed.send(change{Type: "message_changed", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: s.channels.audience(ch)})
}

// deleteMessage is chat.delete.
func (s *Server) deleteMessage(c *call) (object, *apiError) {
	ch, m, failed := s.ownMessage(c, "cant_delete_message")
	if failed != nil {
		return nil, failed
	}
	s.erase(ch, m)
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

// erase removes a message. As in Slack, a parent with replies becomes a tombstone, a placeholder for the deleted
// message. The app then gets a change event. When the last reply is deleted, the tombstone is removed, too.
func (s *Server) erase(ch *channel, m *message) {
	if !m.reply() && len(ch.replies(m.TS)) > 0 {
		before := *m
		*m = message{TS: m.TS, ThreadTS: m.TS, Subtype: "tombstone", Text: "This message was deleted.", User: "USLACKBOT"}
		s.events.sendMessageChanged(ch, &before, m)
	} else {
		ch.remove(m)
		s.events.sendMessageDeleted(ch, m)
	}
	s.feed.send(change{Type: "message_deleted", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: s.channels.audience(ch)})
	if parent := ch.byTS[m.ThreadTS]; m.reply() && parent != nil && parent.Subtype == "tombstone" && len(ch.replies(parent.TS)) == 0 {
		s.erase(ch, parent)
	}
}

// postEphemeral is chat.postEphemeral. Only one person sees the message. The message is not part of the history, and is
// lost at a restart.
func (s *Server) postEphemeral(c *call) (object, *apiError) {
	ch := s.channels.byID[c.text("channel")]
	if ch == nil {
		ch = s.channels.named(strings.TrimPrefix(c.text("channel"), "#"))
	}
	if failed := s.channels.mayPost(ch); failed != nil {
		return nil, failed
	}
	u := s.accounts.byID[c.text("user")]
	switch {
	case c.text("user") == "":
		return nil, refuse("invalid_arguments", "missing required field: user [json-pointer:/user]")
	case u == nil || u.Deleted || !ch.has(u.ID):
		return nil, refuse("user_not_in_channel")
	}
	what, failed := s.readContent(c.arguments, maxPostText, false)
	if failed != nil {
		return nil, failed
	}
	if what.empty() {
		return nil, refuse("no_text")
	}
	m := s.botMessage(what)
	if failed := s.placeInThread(ch, m, c.text("thread_ts"), false); failed != nil {
		return nil, failed
	}
	if !c.lostEphemeral {
		s.showEphemeral(ch, m, u.ID)
	}
	return object{"message_ts": m.TS}, nil
}

func (s *Server) showEphemeral(ch *channel, m *message, to string) {
	m.EphemeralTo = to
	ch.ephemerals = append(ch.ephemerals, m)
	if extra := len(ch.ephemerals) - maxEphemerals; extra > 0 {
		ch.ephemerals = slices.Delete(ch.ephemerals, 0, extra)
	}
	s.feed.send(change{Type: "ephemeral", User: to, Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: []string{to}})
}

// getPermalink is chat.getPermalink.
func (s *Server) getPermalink(c *call) (object, *apiError) {
	ch := s.channels.byID[c.text("channel")]
	if ch == nil || (!ch.has(s.botUser.ID) && ch.kind() != "channel") {
		return nil, refuse("channel_not_found")
	}
	m := ch.byTS[c.text("message_ts")]
	if m == nil {
		return nil, refuse("message_not_found")
	}
	return object{"channel": ch.ID, "permalink": permalink(c.base, ch, m)}, nil
}

func permalink(base string, ch *channel, m *message) string {
	link := base + "/archives/" + ch.ID + "/p" + strings.ReplaceAll(m.TS, ".", "")
	if m.reply() {
		link += "?thread_ts=" + m.ThreadTS + "&cid=" + ch.ID
	}
	return link
}

// servePermalink redirects a message's link to its thread on the page.
func (s *Server) servePermalink(w http.ResponseWriter, r *http.Request) {
	p := r.PathValue("p")
	if len(p) < 8 || p[0] != 'p' {
		http.NotFound(w, r)
		return
	}
	ts := p[1:len(p)-6] + "." + p[len(p)-6:]
	if thread := r.URL.Query().Get("thread_ts"); thread != "" {
		ts = thread
	}
	s.mu.Lock()
	reader := s.readerOf(r.PathValue("channel"), ts)
	s.mu.Unlock()
	if reader == "" {
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, "/#/"+reader+"/"+r.PathValue("channel")+"/"+ts, http.StatusFound)
}

// readerOf returns the first person who can read a message. servePermalink shows the message as this person sees it.
func (s *Server) readerOf(channelID, ts string) string {
	ch := s.channels.byID[channelID]
	if ch == nil || ch.byTS[ts] == nil {
		return ""
	}
	for _, id := range s.accounts.ids {
		if u := s.accounts.byID[id]; ch.has(id) && u.person() && !u.Deleted {
			return id
		}
	}
	return ""
}
