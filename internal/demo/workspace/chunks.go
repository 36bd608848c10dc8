package workspace

import (
	"unicode/utf8"

	"countersign/internal/demo/workspace/blockkit"
)

// streamParts reads markdown_text and chunks.
func (s *Server) streamParts(c *call) ([]object, *apiError) {
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
		part, failed := s.readChunk(item)
		if failed != nil {
			return nil, failed
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// tooManyBlocks tells whether a stream's chunks hold more blocks than a message may.
func tooManyBlocks(parts []object) bool {
	blocks := 0
	for _, part := range parts {
		list, _ := part["blocks"].([]any)
		blocks += len(list)
	}
	return blocks > blockkit.MaxMessageBlocks
}

func (s *Server) readChunk(item any) (object, *apiError) {
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
		blocks, failed := s.readBlocks(chunk["blocks"])
		if failed != nil {
			return nil, failed
		}
		return object{"kind": "blocks", "blocks": blocks}, nil
	}
	return nil, refuse("invalid_chunks")
}
