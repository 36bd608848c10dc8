package workspace

import (
	"encoding/json"
	"net/http"
	"time"

	"countersign/internal/demo/workspace/wire"
)

// responseURL lets the app answer one person's action up to five times.
type responseURL struct {
	user, channel string
	ts            string // ts of the message in which the person acted; "" for commands
	threadTS      string
	uses          int
	expires       time.Time
}

// responseURLs holds the response URLs of people's actions, and receives the app's answers.
type responseURLs struct {
	*core
	channels *channels
	contents *contentReader
	messages *messages
	live     *shortLived[*responseURL]
}

// create stores a responseURL and returns its URL.
func (rs *responseURLs) create(base string, u responseURL) string {
	now := rs.cfg.Now()
	u.expires = now.Add(responseURLLives * time.Second)
	id := wire.NewSecret()
	rs.live.put(id, &u, u.expires, now)
	return base + "/response/" + id
}

// serve receives the app's answer to an action.
func (rs *responseURLs) serve(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	args, failed := readArguments(r)
	if failed == nil && args.has("payload") { // the form that old clients send
		var inner object
		if json.Unmarshal([]byte(args.text("payload")), &inner) == nil {
			args.values = inner
		}
	}
	if failed == nil {
		rs.mu.Lock()
		failed = rs.respond(r.PathValue("id"), args)
		rs.mu.Unlock()
	}
	switch {
	case failed == nil:
		writeJSON(w, http.StatusOK, object{"ok": true})
	case failed.code == "expired_url" || failed.code == "used_url" || failed.code == "invalid_url":
		writeJSON(w, http.StatusNotFound, failed.body())
	default:
		writeJSON(w, http.StatusBadRequest, failed.body())
	}
}

// respond applies the answer. Only an accepted answer counts as a use of the response URL.
func (rs *responseURLs) respond(id string, args arguments) *apiError {
	u := rs.live.byName[id]
	switch {
	case u == nil:
		return refuse("invalid_url")
	case rs.cfg.Now().After(u.expires):
		return refuse("expired_url")
	case u.uses >= responseURLUses:
		return refuse("used_url")
	}
	what, failed := rs.contents.read(args, maxPostText, true)
	if failed != nil {
		return failed
	}
	ch := rs.channels.byID[u.channel]
	original, ephemeral := rs.original(ch, u)
	switch {
	case args.flag("delete_original"):
		if !what.empty() {
			return refuse("invalid_arguments", "delete_original must be the only attribute [json-pointer:/delete_original]")
		}
		if original == nil {
			return refuse("message_not_found")
		}
		if ephemeral {
			rs.messages.removeEphemeral(ch, original)
		} else {
			rs.messages.erase(ch, original)
		}
	case what.empty():
		return refuse("no_text")
	case args.flag("replace_original") && original != nil:
		rs.replaceOriginal(ch, original, ephemeral, what)
	default:
		failed = rs.answer(ch, u, what, args)
	}
	if failed == nil {
		u.uses++
		rs.saver.touch()
	}
	return failed
}

// The method "original" returns the message in which the person acted. If this message is gone, or is not a message of
// the app, m is nil.
func (rs *responseURLs) original(ch *channel, u *responseURL) (m *message, ephemeral bool) {
	for _, m := range ch.ephemerals {
		if m.TS == u.ts && m.EphemeralTo == u.user {
			return m, true
		}
	}
	if m := ch.byTS[u.ts]; m != nil && m.BotID == rs.app.BotID {
		return m, false
	}
	return nil, false
}

func (rs *responseURLs) replaceOriginal(ch *channel, m *message, ephemeral bool, what content) {
	before := *m
	m.Text, m.Blocks, m.Attachments = what.text, what.blocks, what.attachments
	if ephemeral {
		m.earlier = before.earlier.add(before.allBlocks())
		rs.feed.send(change{Type: "ephemeral", User: m.EphemeralTo, Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: []string{m.EphemeralTo}})
		return
	}
	if what.hasMetadata {
		m.Metadata = what.metadata
	}
	rs.messages.changed(ch, &before, m)
}

// answer posts a new message. If the response_type is in_channel, all members see the message. In all other cases,
// only the person who acted sees it.
func (rs *responseURLs) answer(ch *channel, u *responseURL, what content, args arguments) *apiError {
	m := rs.messages.botMessage(what)
	thread := args.text("thread_ts")
	if thread == "" && args.text("response_type") != "in_channel" {
		thread = u.threadTS // an ephemeral answer appears where the person is looking
	}
	if failed := rs.messages.placeInThread(ch, m, thread, args.flag("reply_broadcast")); failed != nil {
		return failed
	}
	if args.text("response_type") == "in_channel" {
		rs.messages.publish(ch, m)
	} else {
		rs.messages.showEphemeral(ch, m, u.user)
	}
	return nil
}
