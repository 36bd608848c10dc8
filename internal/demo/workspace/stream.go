package workspace

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"countersign/internal/demo/workspace/blockkit"
)

// stream is the state of a streamed message and its parts. A part has one of three forms: {"kind":"text","text":…},
// {"kind":"task", and the task's fields}, or {"kind":"blocks","blocks":[…]}.
type stream struct {
	Open  bool     `json:"open"`
	Mode  string   `json:"mode"` // timeline or plan
	Parts []object `json:"parts"`
	Title string   `json:"title,omitempty"` // the plan's title
	Last  int64    `json:"last"`            // time of the last append, in microseconds
	// Stopped is true if a person ended the stream. For a stopped stream, only chat.stopStream is allowed.
	Stopped bool `json:"stopped,omitempty"`
}

// The method "with" returns a copy of the stream with additional parts. If the last part is text, new text is appended
// to this part. The fields of a task replace the same fields of the task with the same id.
func (old *stream) with(parts []object) *stream {
	st := *old
	st.Parts = slices.Clone(old.Parts)
	for _, part := range parts {
		last := len(st.Parts) - 1
		switch part["kind"] {
		case "plan":
			st.Title, _ = part["title"].(string)
			continue
		case "text":
			if last >= 0 && st.Parts[last]["kind"] == "text" {
				st.Parts[last] = object{"kind": "text", "text": st.Parts[last]["text"].(string) + part["text"].(string)}
				continue
			}
		case "task":
			if i := slices.IndexFunc(st.Parts, func(p object) bool { return p["kind"] == "task" && p["id"] == part["id"] }); i >= 0 {
				merged := object{}
				for k, v := range st.Parts[i] {
					merged[k] = v
				}
				for k, v := range part {
					merged[k] = v
				}
				st.Parts[i] = merged
				continue
			}
		}
		st.Parts = append(st.Parts, part)
	}
	return &st
}

// render derives the message's text and blocks from the parts. The blocks are markdown blocks, task cards (or one plan
// with all tasks), and the blocks of the parts.
func (m *message) render() {
	st := m.Stream
	m.Text, m.Blocks = "", nil
	var tasks []any
	for i, part := range st.Parts {
		id := fmt.Sprintf("part-%d", i) // the id stays the same after every append
		switch part["kind"] {
		case "text":
			text := part["text"].(string)
			m.Text += text
			m.Blocks = append(m.Blocks, object{"type": "markdown", "block_id": id, "text": text})
		case "task":
			card := taskBlock(part)
			card["block_id"] = id
			if st.Mode == "plan" {
				tasks = append(tasks, card)
			} else {
				m.Blocks = append(m.Blocks, card)
			}
		case "blocks":
			m.Blocks = append(m.Blocks, part["blocks"].([]any)...)
		}
	}
	if len(tasks) > 0 || st.Title != "" {
		title := st.Title
		if title == "" {
			title = "Thinking"
		}
		if tasks == nil {
			tasks = []any{}
		}
		m.Blocks = append([]any{object{"type": "plan", "block_id": "plan", "title": title, "tasks": tasks}}, m.Blocks...)
	}
	blockkit.AssignIDs(m.Blocks)
}

// taskBlock returns the card of a task. Details and output are given as text and shown as rich text.
func taskBlock(part object) object {
	title, _ := part["title"].(string)
	if title == "" {
		title, _ = part["id"].(string)
	}
	card := object{"type": "task_card", "task_id": part["id"], "title": title, "status": "pending"}
	if part["status"] != nil {
		card["status"] = part["status"]
	}
	for _, key := range []string{"details", "output"} {
		switch v := part[key].(type) {
		case string:
			card[key] = blockkit.RichText(v)
		case object:
			card[key] = v
		}
	}
	if part["sources"] != nil {
		card["sources"] = part["sources"]
	}
	return card
}

// streams answers Slack's methods for streamed messages.
type streams struct {
	*core
	accounts *accounts
	channels *channels
	contents *contentReader
	messages *messages
}

// readParts reads markdown_text and chunks.
func (st *streams) readParts(c *call) ([]object, *apiError) {
	var parts []object
	if text := c.text("markdown_text"); text != "" {
		if utf8.RuneCountInString(text) > maxStreamText {
			return nil, refuse("msg_blocks_too_long")
		}
		parts = append(parts, object{"kind": "text", "text": text})
	}
	raw, given := c.nested("chunks")
	if !given {
		return parts, nil
	}
	list, ok := raw.([]any)
	if !ok {
		return nil, refuse("invalid_chunks")
	}
	for _, item := range list {
		part, failed := st.readChunk(item)
		if failed != nil {
			return nil, failed
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// tooManyBlocks reports whether a stream's chunks contain more blocks than a message may have.
func tooManyBlocks(parts []object) bool {
	blocks := 0
	for _, part := range parts {
		list, _ := part["blocks"].([]any)
		blocks += len(list)
	}
	return blocks > blockkit.MaxMessageBlocks
}

func (st *streams) readChunk(item any) (object, *apiError) {
	chunk, _ := item.(object)
	text := func(key string) string { v, _ := chunk[key].(string); return v }
	switch chunk["type"] {
	case "markdown_text":
		if text("text") == "" {
			return nil, refuse("invalid_chunks")
		}
		if utf8.RuneCountInString(text("text")) > maxStreamText {
			return nil, refuse("msg_blocks_too_long")
		}
		return object{"kind": "text", "text": text("text")}, nil
	case "task_update":
		status := text("status")
		if text("id") == "" || (status != "" && !blockkit.TaskStatus(status)) {
			return nil, refuse("invalid_chunks")
		}
		out := object{"kind": "task"}
		for _, key := range []string{"id", "title", "status", "details", "output", "sources"} {
			if chunk[key] != nil && chunk[key] != "" {
				out[key] = chunk[key]
			}
		}
		return out, nil
	case "plan_update":
		return object{"kind": "plan", "title": text("title")}, nil
	case "blocks":
		blocks, failed := st.contents.readBlocks(chunk["blocks"])
		if failed != nil {
			return nil, failed
		}
		return object{"kind": "blocks", "blocks": blocks}, nil
	}
	return nil, refuse("invalid_chunks")
}

// startStream is chat.startStream.
func (st *streams) startStream(c *call) (object, *apiError) {
	ch := st.channels.byID[c.text("channel")]
	if failed := st.channels.mayPost(ch); failed != nil {
		return nil, failed
	}
	if !ch.IM {
		recipient := st.accounts.byID[c.text("recipient_user_id")]
		switch {
		case c.text("recipient_user_id") == "":
			return nil, refuse("missing_recipient_user_id")
		case c.text("recipient_team_id") == "":
			return nil, refuse("missing_recipient_team_id")
		case recipient == nil:
			return nil, refuse("user_not_found")
		case c.text("recipient_team_id") != recipient.Team:
			return nil, refuse("team_not_found")
		}
	}
	mode := c.text("task_display_mode")
	if mode == "" {
		mode = "timeline"
	}
	if !slices.Contains([]string{"timeline", "plan"}, mode) {
		return nil, refuse("invalid_arguments", "must be timeline or plan [json-pointer:/task_display_mode]")
	}
	m := st.messages.botMessage(content{})
	m.Stream = &stream{Open: true, Mode: mode, Last: st.cfg.Now().UnixMicro()}
	thread := c.text("thread_ts")
	if failed := st.messages.placeInThread(ch, m, thread, false); failed != nil {
		return nil, failed
	}
	if thread != "" && m.ThreadTS == "" {
		return nil, refuse("thread_not_found")
	}
	parts, failed := st.readParts(c)
	if failed != nil {
		return nil, failed
	}
	m.Stream = m.Stream.with(parts)
	if tooManyBlocks(m.Stream.Parts) {
		return nil, refuse("msg_blocks_too_many")
	}
	m.render()
	st.messages.publish(ch, m)
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

// openStream returns a message that is being streamed. A stream without an append for StreamIdle has ended. If a person
// stopped the stream, openStream returns the message only if finish is true.
func (st *streams) openStream(c *call, finish bool) (*channel, *message, *apiError) {
	ch := st.channels.byID[c.text("channel")]
	if ch == nil || (!ch.has(st.botUser.ID) && ch.kind() != "channel") {
		return nil, nil, refuse("channel_not_found")
	}
	m := ch.byTS[c.text("ts")]
	switch {
	case m == nil:
		return nil, nil, refuse("message_not_found")
	case m.BotID != st.app.BotID:
		return nil, nil, refuse("message_not_owned_by_app")
	case m.Stream != nil && m.Stream.Stopped && finish:
	case m.Stream != nil && m.Stream.Stopped:
		return nil, nil, refuse("stopped_by_user")
	case m.Stream == nil || !m.Stream.Open:
		return nil, nil, refuse("message_not_in_streaming_state")
	case st.cfg.Now().UnixMicro()-m.Stream.Last > st.cfg.StreamIdle.Microseconds():
		m.Stream = m.Stream.with(nil)
		m.Stream.Open = false
		return nil, nil, refuse("message_not_in_streaming_state")
	}
	return ch, m, nil
}

// appendStream is chat.appendStream. The app gets an event only when the stream stops.
func (st *streams) appendStream(c *call) (object, *apiError) {
	ch, m, failed := st.openStream(c, false)
	if failed != nil {
		return nil, failed
	}
	parts, failed := st.readParts(c)
	if failed != nil {
		return nil, failed
	}
	if len(parts) == 0 {
		return nil, refuse("no_text")
	}
	next := m.Stream.with(parts)
	if tooManyBlocks(next.Parts) {
		return nil, refuse("msg_blocks_too_many")
	}
	m.Stream = next
	m.Stream.Last = st.cfg.Now().UnixMicro()
	m.render()
	st.feed.send(change{Type: "message_changed", Channel: ch.ID, TS: m.TS, ThreadTS: m.ThreadTS, only: st.channels.audience(ch)})
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

// stopStream is chat.stopStream. The blocks of the call come after all other blocks.
func (st *streams) stopStream(c *call) (object, *apiError) {
	ch, m, failed := st.openStream(c, true)
	if failed != nil {
		return nil, failed
	}
	parts, failed := st.readParts(c)
	if failed != nil {
		return nil, failed
	}
	what, failed := st.contents.read(arguments{values: object{"blocks": c.values["blocks"], "metadata": c.values["metadata"]}}, maxPostText, true)
	if failed != nil {
		return nil, failed
	}
	if tooManyBlocks(append(slices.Clone(m.Stream.Parts), parts...)) {
		return nil, refuse("msg_blocks_too_many")
	}
	before := *m
	if len(what.blocks) > 0 { // Slack counts these blocks separately from the blocks in the chunks
		parts = append(parts, object{"kind": "blocks", "blocks": what.blocks})
	}
	m.Stream = m.Stream.with(parts)
	m.Stream.Open, m.Stream.Stopped = false, false
	if what.hasMetadata {
		m.Metadata = what.metadata
	}
	m.render()
	st.messages.changed(ch, &before, m)
	return object{"channel": ch.ID, "ts": m.TS, "message": m.json()}, nil
}
