package workspace

import (
	"fmt"
	"slices"

	"countersign/internal/demo/workspace/blockkit"
)

// stream is what a message keeps while it is being streamed, and what it was made of.
// A part is {"kind":"text","text":…}, {"kind":"task", and the task's fields} or
// {"kind":"blocks","blocks":[…]}.
type stream struct {
	Open  bool     `json:"open"`
	Mode  string   `json:"mode"` // timeline or plan
	Parts []object `json:"parts"`
	Title string   `json:"title,omitempty"` // of the plan
	Last  int64    `json:"last"`            // microseconds
	// Stopped says that a person ended it; only chat.stopStream is left then.
	Stopped bool `json:"stopped,omitempty"`
}

// with is a copy of the stream with further parts: text joins the text before it, a
// task replaces the one with its id.
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

// render writes the stream's parts as the message's text and blocks: markdown, task
// cards (or one plan that holds them all), further blocks.
func (m *message) render() {
	st := m.Stream
	m.Text, m.Blocks = "", nil
	var tasks []any
	for i, part := range st.Parts {
		id := fmt.Sprintf("part-%d", i) // the same after every append
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

// taskBlock is a task's card; details and output are given as text and shown as rich
// text.
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
