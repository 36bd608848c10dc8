package workspace

import (
	"unicode/utf8"

	"countersign/internal/demo/workspace/blockkit"
	"countersign/internal/demo/workspace/wire"
)

// content is the part of a call that chat.postMessage, chat.update, chat.postEphemeral and response URLs share.
type content struct {
	text        string
	blocks      []any
	attachments []any
	metadata    object

	hasText, hasBlocks, hasAttachments, hasMetadata bool
}

// contentReader reads the content of messages, and refuses the content that Slack refuses.
type contentReader struct {
	channels *channels
}

// read reads and checks the content of a call. If the parameter cut is true, a text of more than maxText characters is
// cut. Otherwise such a text is an error.
func (r *contentReader) read(a arguments, maxText int, cut bool) (content, *apiError) {
	out := content{text: a.text("text"), hasText: a.has("text")}
	if markdown := a.text("markdown_text"); markdown != "" {
		if out.hasText || a.has("blocks") {
			return out, refuse("markdown_text_conflict")
		}
		if utf8.RuneCountInString(markdown) > blockkit.MaxMarkdownText {
			return out, refuse("msg_blocks_too_long")
		}
		out.text, out.hasText = markdown, true
		out.blocks, out.hasBlocks = []any{object{"type": "markdown", "text": markdown}}, true
		blockkit.AssignIDs(out.blocks)
	}
	if utf8.RuneCountInString(out.text) > maxText {
		if !cut {
			return out, refuse("msg_too_long")
		}
		out.text = string([]rune(out.text)[:maxText])
	}
	if raw, given := a.nested("blocks"); given {
		blocks, failed := r.readBlocks(raw)
		if failed != nil {
			return out, failed
		}
		out.blocks, out.hasBlocks = blocks, true
	}
	if raw, given := a.nested("attachments"); given {
		attachments, failed := r.readAttachments(raw)
		if failed != nil {
			return out, failed
		}
		out.attachments, out.hasAttachments = attachments, true
	}
	if raw, given := a.nested("metadata"); given {
		metadata, failed := readMetadata(raw)
		if failed != nil {
			return out, failed
		}
		out.metadata, out.hasMetadata = metadata, len(metadata) > 0
	}
	return out, nil
}

// The method "empty" reports whether the content has no text, no blocks and no attachments.
func (c content) empty() bool {
	return c.text == "" && len(c.blocks) == 0 && len(c.attachments) == 0
}

// readBlocks checks a message's blocks and assigns missing ids.
func (r *contentReader) readBlocks(raw any) ([]any, *apiError) {
	blocks, ok := raw.([]any)
	if !ok {
		return nil, refuse("invalid_blocks_format")
	}
	if problems := blockkit.CheckBlocks(blocks, r.channels.known); len(problems) > 0 {
		return nil, refuse("invalid_blocks", problems...)
	}
	if blockkit.TooMuchText(blocks) {
		return nil, refuse("msg_blocks_too_long")
	}
	blockkit.AssignIDs(blocks)
	return blocks, nil
}

func (r *contentReader) readAttachments(raw any) ([]any, *apiError) {
	list, ok := raw.([]any)
	if !ok {
		return nil, refuse("invalid_attachments")
	}
	if len(list) > maxAttachments {
		return nil, refuse("too_many_attachments")
	}
	for i, item := range list {
		attachment, ok := item.(object)
		if !ok {
			return nil, refuse("invalid_attachments")
		}
		attachment["id"] = i + 1
		if _, ok := attachment["fallback"]; !ok {
			attachment["fallback"] = "[no preview available]"
		}
		if nested, given := attachment["blocks"]; given {
			blocks, failed := r.readBlocks(nested)
			if failed != nil {
				return nil, failed
			}
			attachment["blocks"] = blocks
		}
	}
	return list, nil
}

func readMetadata(raw any) (object, *apiError) {
	metadata, ok := raw.(object)
	if !ok {
		return nil, refuse("invalid_metadata_format")
	}
	eventType, _ := metadata["event_type"].(string)
	_, hasPayload := metadata["event_payload"].(object)
	_, hasEntities := metadata["entities"]
	if eventType == "" && !hasPayload && !hasEntities { // slack-go sends this if there is no metadata
		return nil, nil
	}
	if !hasEntities && (eventType == "" || !hasPayload) {
		return nil, refuse("invalid_metadata_schema")
	}
	if len(wire.Encode(metadata)) > maxMetadataBytes {
		return nil, refuse("metadata_too_large")
	}
	return metadata, nil
}
