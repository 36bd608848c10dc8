package form

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/control"
	"countersign/bot/render/wording"
	"countersign/store"
)

// ClickTarget is the subject of a click: the version of the outbox message that the person saw, and the current state.
type ClickTarget struct {
	Token control.ButtonToken
	Shown store.Rendering
	view.Model
	About About // additional data for Details…
}

// ShownRequest returns the record of how the clicked version showed the request.
func (s ClickTarget) ShownRequest() store.Shown {
	if s.Request == nil {
		return store.Shown{}
	}
	return s.Shown.Of(s.Request.ID)
}

// Outdated returns the denial of a decision if the clicked version shows an earlier stage or plan of the request.
// Otherwise Outdated returns nil.
func (s ClickTarget) Outdated() *approvers.Denied {
	return approvers.Outdated(*s.Request, s.Policy, s.ShownRequest().Stage)
}

// MayHaveShown reports whether the token may come from an unrecorded version of the outbox message. Slack may have
// shown such a version, but the store has no record of it. The token's fingerprint must differ from the recorded
// version's fingerprint, and the token's subject must belong to this outbox message.
func (s ClickTarget) MayHaveShown(token control.ButtonToken) bool {
	if bytes.Contains(s.Shown.Body, []byte(" "+token.Print+`"`)) {
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
	return slices.Contains(about, token.Ref)
}

// MayBeErased reports whether a version of the outbox message was erased with the texts of its request. The store no
// longer has the token's version, so MayBeErased compares the token with the message: the message must have had this
// version, and must show the token's request. The request must have ended, and must have no arguments, as after an
// erasure.
func (s ClickTarget) MayBeErased(token control.ButtonToken) bool {
	if s.Request == nil || s.Request.State.Open() || string(s.Request.Args) != "{}" || s.Message.Kind == store.OutboxHome {
		return false
	}
	named := s.Request.ID == token.Ref || s.Execution != nil && s.Execution.ID == token.Ref
	return named && token.Post <= s.Message.Posts
}

// Named returns the ids of the record that the clicked button names, of the message's request, and of the requests that
// the clicked version shows. If the click is refused, the refusal is recorded in the history of each request among
// them.
func (s ClickTarget) Named() []string {
	named := []string{s.Token.Ref, s.Message.Request}
	for _, shown := range s.Shown.Shows {
		named = append(named, shown.Request)
	}
	return named
}

// RenderingHash returns the hash of the shown content. The shown content is the message or, on a Home tab, the part
// about the request.
func (s ClickTarget) RenderingHash() string {
	if s.Message.Kind != store.OutboxHome || s.Request == nil {
		return s.Shown.Hash
	}
	sum := sha256.Sum256(s.ItemBody())
	return hex.EncodeToString(sum[:])
}

// ItemBody returns the part of a Home tab that shows the request, as a message of its own. The rest of the tab is about
// other requests, and does not belong in this request's history.
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
	if err != nil { // can't happen: the item was parsed from JSON
		return nil
	}
	return body
}

// SelectRequest selects the request of the bundle to which the button belongs. If the button is for all requests,
// SelectRequest selects none.
func (s *ClickTarget) SelectRequest() {
	for _, c := range s.Calls {
		if c.Request.ID == s.Token.Ref {
			s.Request, s.Execution, s.Call = c.Request, c.Execution, &c.Call
		}
	}
}

// Offered returns the calls that the clicked version of a bundle offered for decision.
func (s ClickTarget) Offered() (calls []view.Call) {
	for _, c := range s.Calls {
		if c.Request != nil && slices.ContainsFunc(s.Shown.Shows, func(o store.Shown) bool { return o.Request == c.Request.ID }) {
			calls = append(calls, c)
		}
	}
	return calls
}

// About has the data that Details… shows about a request in addition to the request's state.
type About struct {
	WorkspaceURL string
	Tool         wording.ToolDescription
	History      []approvers.AuditRecord
}

// Precheck returns the reason why a person can't decide a request now. Precheck only gives early feedback, because the
// workflow checks again when the form is submitted.
func Precheck(r approvers.Request, s ClickTarget, who approvers.Identity) *approvers.Denied {
	if r.State != approvers.Pending {
		return r.Over()
	}
	if s.ShownRequest().Digest != r.Digest {
		return &approvers.Denied{Code: approvers.DeniedStale}
	}
	if _, d := r.Authority(s.Policy, who); d != nil {
		return d
	}
	return s.Outdated()
}
