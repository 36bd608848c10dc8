package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"countersign/approvers/workflow/view"
	"countersign/store"
)

// ClickTarget is the subject of a click: the version of the outbox message that the person saw, and the current state.
type ClickTarget struct {
	Token ButtonToken
	Shown store.Rendering
	view.Model
}

// ShownRequest returns how the clicked version showed its request.
func (s ClickTarget) ShownRequest() store.Shown {
	if s.Request == nil {
		return store.Shown{}
	}
	return s.Shown.Of(s.Request.ID)
}

// MayHaveShown reports whether an unrecorded drawing of the outbox message could have contained a button with token m.
// That is so if m has a fingerprint other than the recorded version's and is about a subject of this outbox message.
func (s ClickTarget) MayHaveShown(m ButtonToken) bool {
	if bytes.Contains(s.Shown.Body, []byte(" "+m.Print+`"`)) {
		return false
	}
	about := []string{s.Message.Ref, s.Message.Request, s.Turn.ID}
	if s.Request != nil {
		about = append(about, s.Request.ID)
	}
	if s.Call != nil {
		about = append(about, s.Call.ID, s.Call.Execution)
	}
	for _, c := range s.Calls {
		about = append(about, c.Call.ID, c.Call.Execution, c.Call.Request)
	}
	return slices.Contains(about, m.Ref)
}

// Named returns everything that a click names or that the clicked message shows. The attempt then appears in the
// history of each of them.
func (s ClickTarget) Named() []string {
	named := []string{s.Token.Ref, s.Message.Request}
	for _, shown := range s.Shown.Shows {
		named = append(named, shown.Request)
	}
	return named
}

// RenderingHash returns the hash of what was shown: the message, or on a Home tab the part about the request.
func (s ClickTarget) RenderingHash() string {
	if s.Message.Kind != store.OutboxHome || s.Request == nil {
		return s.Shown.Hash
	}
	sum := sha256.Sum256(s.ItemBody())
	return hex.EncodeToString(sum[:])
}

// ItemBody returns the part of a Home tab that shows the request, as a message of its own. The rest of the tab is about
// other requests and does not belong in this one's history.
func (s ClickTarget) ItemBody() []byte {
	var whole struct {
		Blocks []json.RawMessage `json:"blocks"`
	}
	item := struct {
		Text   string            `json:"text"`
		Blocks []json.RawMessage `json:"blocks"`
	}{}
	if json.Unmarshal(s.Shown.Body, &whole) == nil {
		for _, b := range whole.Blocks {
			var named struct {
				ID string `json:"block_id"`
			}
			if json.Unmarshal(b, &named) == nil && strings.HasPrefix(named.ID, s.Request.ID+":") {
				item.Blocks = append(item.Blocks, b)
			}
		}
	}
	body, err := json.Marshal(item)
	if err != nil { // it was parsed from JSON above
		return nil
	}
	return body
}
