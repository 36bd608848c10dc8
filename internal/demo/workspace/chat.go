package workspace

import (
	"net/http"
	"strings"
)

// chat answers Slack's methods for messages.
type chat struct {
	*core
	accounts *accounts
	channels *channels
	contents *contentReader
	messages *messages
}

// postMessage is chat.postMessage.
func (h *chat) postMessage(c *call) (object, *apiError) {
	ch, failed := h.channels.target(c.text("channel"))
	if failed != nil {
		return nil, failed
	}
	what, failed := h.contents.read(c.arguments, maxPostText, true)
	if failed != nil {
		return nil, failed
	}
	if what.empty() {
		return nil, refuse("no_text")
	}
	m := h.messages.botMessage(what)
	m.Username = ""
	if failed := h.messages.placeInThread(ch, m, c.text("thread_ts"), c.flag("reply_broadcast")); failed != nil {
		return nil, failed
	}
	h.messages.publish(ch, m)
	return object{"channel": ch.ID, "ts": m.TS, "message": m.json()}, nil
}

// ownMessage returns the message that a call names, if the app may change it. For a message of another author, the
// error code is the parameter otherwise. As in Slack, chat.update and chat.delete accept only the id of a channel.
// These methods accept no names and open no DM.
func (h *chat) ownMessage(c *call, otherwise string) (*channel, *message, *apiError) {
	ch := h.channels.byID[c.text("channel")]
	if ch == nil || (!ch.has(h.botUser.ID) && ch.kind() != "channel") {
		return nil, nil, refuse("channel_not_found")
	}
	m := ch.byTS[c.text("ts")]
	switch {
	case m == nil:
		return nil, nil, refuse("message_not_found")
	case m.BotID != h.app.BotID:
		return nil, nil, refuse(otherwise)
	case ch.Archived:
		return nil, nil, refuse("is_inactive")
	}
	return ch, m, nil
}

// updateMessage is chat.update. If the call has text and no blocks, the message loses its blocks. A call without any
// new content fails. A call that would leave the message empty also fails, and changes nothing.
func (h *chat) updateMessage(c *call) (object, *apiError) {
	ch, m, failed := h.ownMessage(c, "cant_update_message")
	if failed != nil {
		return nil, failed
	}
	what, failed := h.contents.read(c.arguments, maxUpdateText, false)
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
		m.EditedBy, m.EditedTS = h.botUser.ID, h.nextTS()
	}
	h.messages.changed(ch, &before, m)
	return object{"channel": ch.ID, "ts": m.TS, "text": m.Text, "message": m.json()}, nil
}

// deleteMessage is chat.delete.
func (h *chat) deleteMessage(c *call) (object, *apiError) {
	ch, m, failed := h.ownMessage(c, "cant_delete_message")
	if failed != nil {
		return nil, failed
	}
	h.messages.erase(ch, m)
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

// postEphemeral is chat.postEphemeral. Only one person sees the message. The message is not part of the history, and is
// lost at a restart.
func (h *chat) postEphemeral(c *call) (object, *apiError) {
	ch := h.channels.byID[c.text("channel")]
	if ch == nil {
		ch = h.channels.named(strings.TrimPrefix(c.text("channel"), "#"))
	}
	if failed := h.channels.mayPost(ch); failed != nil {
		return nil, failed
	}
	u := h.accounts.byID[c.text("user")]
	switch {
	case c.text("user") == "":
		return nil, refuse("invalid_arguments", "missing required field: user [json-pointer:/user]")
	case u == nil || u.Deleted || !ch.has(u.ID):
		return nil, refuse("user_not_in_channel")
	}
	what, failed := h.contents.read(c.arguments, maxPostText, false)
	if failed != nil {
		return nil, failed
	}
	if what.empty() {
		return nil, refuse("no_text")
	}
	m := h.messages.botMessage(what)
	if failed := h.messages.placeInThread(ch, m, c.text("thread_ts"), false); failed != nil {
		return nil, failed
	}
	if !c.lostEphemeral {
		h.messages.showEphemeral(ch, m, u.ID)
	}
	return object{"message_ts": m.TS}, nil
}

// getPermalink is chat.getPermalink.
func (h *chat) getPermalink(c *call) (object, *apiError) {
	ch := h.channels.byID[c.text("channel")]
	if ch == nil || (!ch.has(h.botUser.ID) && ch.kind() != "channel") {
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
func (h *chat) servePermalink(w http.ResponseWriter, r *http.Request) {
	p := r.PathValue("p")
	if len(p) < 8 || p[0] != 'p' {
		http.NotFound(w, r)
		return
	}
	ts := p[1:len(p)-6] + "." + p[len(p)-6:]
	if thread := r.URL.Query().Get("thread_ts"); thread != "" {
		ts = thread
	}
	h.mu.Lock()
	reader := h.readerOf(r.PathValue("channel"), ts)
	h.mu.Unlock()
	if reader == "" {
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, "/#/"+reader+"/"+r.PathValue("channel")+"/"+ts, http.StatusFound)
}

// readerOf returns the first person who can read a message. servePermalink shows the message as this person sees it.
func (h *chat) readerOf(channelID, ts string) string {
	ch := h.channels.byID[channelID]
	if ch == nil || ch.byTS[ts] == nil {
		return ""
	}
	for _, id := range h.accounts.ids {
		if u := h.accounts.byID[id]; ch.has(id) && u.person() && !u.Deleted {
			return id
		}
	}
	return ""
}
