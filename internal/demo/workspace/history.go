package workspace

import (
	"encoding/base64"
	"slices"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// history is conversations.history. The answer has the channel's top-level messages, newest first.
func (cv *conversations) history(c *call) (object, *apiError) {
	ch, failed := cv.channels.readable(c.text("channel"))
	if failed != nil {
		return nil, failed
	}
	window, failed := readWindow(c, 999)
	if failed != nil {
		return nil, failed
	}
	list := []object{}
	next := ""
	for _, m := range slices.Backward(ch.Messages) {
		if !m.topLevel() || !window.covers(m.TS) {
			continue
		}
		if len(list) == window.limit {
			next = writeCursor(list[len(list)-1]["ts"].(string))
			break
		}
		list = append(list, historyJSON(c, ch, m))
	}
	out := object{"messages": list, "has_more": next != "", "pin_count": 0, "channel_actions_ts": nil, "channel_actions_count": 0}
	if next != "" {
		out["response_metadata"] = object{"next_cursor": next}
	}
	return out, nil
}

// replies is conversations.replies. The answer has the parent, and then its replies, oldest first.
func (cv *conversations) replies(c *call) (object, *apiError) {
	ch, failed := cv.channels.readable(c.text("channel"))
	if failed != nil {
		return nil, failed
	}
	parent := ch.byTS[c.text("ts")]
	if parent == nil {
		return nil, refuse("thread_not_found")
	}
	if parent.reply() { // for a reply's ts, Slack answers with only that reply
		return object{"messages": []object{historyJSON(c, ch, parent)}, "has_more": false}, nil
	}
	window, failed := readWindow(c, 1000)
	if failed != nil {
		return nil, failed
	}
	list := []object{}
	if window.before == "" {
		list = append(list, historyJSON(c, ch, parent))
	}
	next := ""
	for _, m := range ch.replies(parent.TS) {
		if !window.coversReply(m.TS) {
			continue
		}
		if len(list) == window.limit {
			next = writeCursor(list[len(list)-1]["ts"].(string))
			break
		}
		list = append(list, historyJSON(c, ch, m))
	}
	out := object{"messages": list, "has_more": next != ""}
	if next != "" {
		out["response_metadata"] = object{"next_cursor": next}
	}
	return out, nil
}

// historyJSON returns a message. The message has its metadata only if the call asks for metadata.
func historyJSON(c *call, ch *channel, m *message) object {
	out := ch.threadJSON(m)
	if !c.flag("include_all_metadata") {
		delete(out, "metadata")
	}
	return out
}

// window is the part of a history that a call requests.
type window struct {
	oldest, latest string // "": no bound
	inclusive      bool
	before         string // position at which the last page ended
	limit          int
}

func readWindow(c *call, most int) (window, *apiError) {
	w := window{inclusive: c.flag("inclusive"), limit: c.number("limit", 100)}
	if w.limit < 1 || w.limit > most {
		return w, refuse("invalid_limit")
	}
	for _, bound := range []struct {
		name  string
		field *string
		code  string
	}{{"oldest", &w.oldest, "invalid_ts_oldest"}, {"latest", &w.latest, "invalid_ts_latest"}} {
		text := c.text(bound.name)
		if text == "" || text == "now" || text == "0" {
			continue
		}
		micros, ok := wire.ParseTS(text)
		if !ok {
			return w, refuse(bound.code)
		}
		*bound.field = wire.FormatTS(micros)
	}
	if cursor := c.text("cursor"); cursor != "" {
		ts, ok := readCursor(cursor)
		if !ok {
			return w, refuse("invalid_cursor")
		}
		w.before = ts
	}
	return w, nil
}

// The method "covers" reports whether a page that lists the newest message first may contain the message.
func (w window) covers(ts string) bool { return w.inBounds(ts) && (w.before == "" || ts < w.before) }

// coversReply reports whether a page that lists the oldest reply first may contain the reply.
func (w window) coversReply(ts string) bool {
	return w.inBounds(ts) && (w.before == "" || ts > w.before)
}

func (w window) inBounds(ts string) bool {
	switch {
	case w.oldest != "" && (ts < w.oldest || (ts == w.oldest && !w.inclusive)):
		return false
	case w.latest != "" && (ts > w.latest || (ts == w.latest && !w.inclusive)):
		return false
	}
	return true
}

// cutPage returns one page of a list of ids and the next cursor. A cursor encodes the first id of the next page. As in
// Slack, clients can't interpret the cursor. The parameter usual is the default size of a page.
func cutPage(c *call, ids []string, usual, limitMax int) ([]string, string, *apiError) {
	limit := c.number("limit", 0)
	if limit < 0 || limit > limitMax {
		return nil, "", refuse("invalid_limit")
	}
	if limit == 0 {
		limit = usual
	}
	from := 0
	if cursor := c.text("cursor"); cursor != "" {
		id, ok := readCursor(cursor)
		if !ok {
			return nil, "", refuse("invalid_cursor")
		}
		for from = 0; from < len(ids) && ids[from] != id; from++ {
		}
		if from == len(ids) {
			return nil, "", refuse("invalid_cursor")
		}
	}
	to := min(from+limit, len(ids))
	next := ""
	if to < len(ids) {
		next = writeCursor(ids[to])
	}
	return ids[from:to], next, nil
}

func writeCursor(id string) string {
	return base64.StdEncoding.EncodeToString([]byte("next:" + id))
}

func readCursor(cursor string) (string, bool) {
	raw, err := base64.StdEncoding.DecodeString(cursor)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(raw), "next:")
}
