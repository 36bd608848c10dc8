package workspace

import (
	"strings"
	"unicode/utf8"

	"countersign/internal/demo/workspace/wire"
)

// writing handles people's actions on messages: people write, edit and delete messages.
type writing struct {
	*core
	channels *channels
	events   *events
	notation *notation
	messages *messages
	files    *files
}

// say is POST /people/{user}/messages.
func (wr *writing) say(p *personCall) (object, *apiError) {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	u, ch, failed := wr.channels.inChannel(p)
	if failed != nil {
		return nil, failed
	}
	if ch.Archived {
		return nil, refuse("is_archived")
	}
	text := p.text("text")
	switch {
	case strings.TrimSpace(text) == "" && !p.has("files"):
		return nil, refuse("no_text")
	case utf8.RuneCountInString(text) > maxPostText:
		return nil, refuse("msg_too_long")
	}
	thread := p.text("thread_ts")
	if thread != "" && ch.byTS[thread] == nil {
		return nil, refuse("thread_not_found")
	}
	m := &message{TS: wr.nextTS(), User: u.ID, Team: u.Team, Text: wr.notation.typed(text), ClientMsgID: wire.NewUUID()}
	if failed := wr.messages.placeInThread(ch, m, thread, p.flag("reply_broadcast")); failed != nil {
		return nil, failed
	}
	if failed := wr.files.attach(p, m); failed != nil {
		return nil, failed
	}
	wr.messages.publish(ch, m)
	return object{"channel": ch.ID, "ts": m.TS, "message": ch.threadJSON(m)}, nil
}

// The method "written" returns the message that a person wants to change or delete.
func (wr *writing) written(p *personCall) (*user, *channel, *message, *apiError) {
	u, ch, failed := wr.channels.inChannel(p)
	if failed != nil {
		return nil, nil, nil, failed
	}
	m := ch.byTS[p.text("ts")]
	if m == nil {
		return nil, nil, nil, refuse("message_not_found")
	}
	return u, ch, m, nil
}

// The method "by" reports whether a person wrote the message.
func (m *message) by(u *user) bool { return m.User == u.ID && m.Subtype != "channel_join" }

// editOwn is POST /people/{user}/edit.
func (wr *writing) editOwn(p *personCall) (object, *apiError) {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	u, ch, m, failed := wr.written(p)
	switch {
	case failed != nil:
		return nil, failed
	case !m.by(u):
		return nil, refuse("not_yours")
	}
	text := p.text("text")
	if strings.TrimSpace(text) == "" {
		return nil, refuse("no_text")
	}
	before := *m
	m.Text, m.EditedBy, m.EditedTS = wr.notation.typed(text), u.ID, wr.nextTS()
	wr.messages.changed(ch, &before, m)
	wr.events.sendMention(ch, m)
	return object{"channel": ch.ID, "ts": m.TS, "message": ch.threadJSON(m)}, nil
}

// deleteAs is POST /people/{user}/delete. Admins may delete all messages, including the app's.
func (wr *writing) deleteAs(p *personCall) (object, *apiError) {
	wr.mu.Lock()
	defer wr.mu.Unlock()
	u, ch, m, failed := wr.written(p)
	switch {
	case failed != nil:
		return nil, failed
	case m.Subtype == "tombstone":
		return nil, refuse("message_not_found")
	case !u.Admin && !m.by(u):
		return nil, refuse("not_yours")
	}
	wr.messages.erase(ch, m)
	return object{"channel": ch.ID, "ts": m.TS}, nil
}
