package workspace

import (
	"encoding/base64"
	"strings"
)

// cutPage cuts a list of ids where the caller's cursor points and returns the next cursor.
// Slack's cursors are opaque; these name the first id of the next page. usual is the
// size of a page whose size the caller left open.
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
