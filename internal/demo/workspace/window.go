package workspace

import "countersign/internal/demo/workspace/wire"

// window is the part of a history that a call asks for.
type window struct {
	oldest, latest string // "" is open
	inclusive      bool
	before         string // where the last page ended
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

// covers tells whether a newest-first page may show the message.
func (w window) covers(ts string) bool { return w.inBounds(ts) && (w.before == "" || ts < w.before) }

// coversReply tells whether an oldest-first page may show the reply.
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
