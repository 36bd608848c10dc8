package workspace

import "slices"

// view is a modal or an App Home.
type view struct {
	ID              string `json:"id"`
	User            string `json:"user"`
	Type            string `json:"type"`
	Hash            string `json:"hash"`
	ExternalID      string `json:"external_id"`
	CallbackID      string `json:"callback_id"`
	PrivateMetadata string `json:"private_metadata"`
	Root            string `json:"root"`
	Previous        string `json:"previous"`
	Title           object `json:"title"`
	Submit          object `json:"submit"`
	Close           object `json:"close"`
	Blocks          []any  `json:"blocks"`
	ClearOnClose    bool   `json:"clear_on_close"`
	NotifyOnClose   bool   `json:"notify_on_close"`

	state  map[string]map[string]object // what the person entered, by block and action
	errors map[string]string            // of the last refused submission, by block
}

// json renders the view as views.open answers it.
func (v *view) json(s *Server) object {
	values := object{}
	for block, actions := range v.state {
		inner := object{}
		for action, state := range actions {
			inner[action] = state
		}
		values[block] = inner
	}
	out := object{
		"id": v.ID, "team_id": s.team.ID, "type": v.Type, "blocks": v.Blocks, "private_metadata": v.PrivateMetadata,
		"callback_id": v.CallbackID, "state": object{"values": values}, "hash": v.Hash, "title": nil,
		"clear_on_close": v.ClearOnClose, "notify_on_close": v.NotifyOnClose, "close": nil, "submit": nil,
		"previous_view_id": nil, "root_view_id": v.Root, "app_id": s.app.ID, "external_id": v.ExternalID,
		"app_installed_team_id": s.team.ID, "bot_id": s.app.BotID,
	}
	if v.Title != nil {
		out["title"] = v.Title
	}
	if v.Submit != nil {
		out["submit"] = v.Submit
	}
	if v.Close != nil {
		out["close"] = v.Close
	}
	if v.Previous != "" {
		out["previous_view_id"] = v.Previous
	}
	return out
}

var (
	modalFields = []string{"type", "title", "blocks", "close", "submit", "private_metadata", "callback_id", "clear_on_close", "notify_on_close", "external_id", "submit_disabled"}
	homeFields  = []string{"type", "blocks", "private_metadata", "callback_id", "external_id", "title", "close", "submit", "clear_on_close", "notify_on_close"}
)

// readView checks a view payload. kind is what the method takes: modal, home, or both.
func (s *Server) readView(raw any, given bool, kinds ...string) (*view, *apiError) {
	o, ok := raw.(object)
	if !given || !ok {
		return nil, refuse("invalid_arguments", "missing required field: view [json-pointer:/view]")
	}
	kind, _ := o["type"].(string)
	check := checker{surface: onModal, known: s.known}
	fields := modalFields
	if kind == "home" {
		check.surface, fields = onHome, homeFields
	}
	if !slices.Contains(kinds, kind) {
		return nil, refuse("invalid_arguments", "unsupported type: "+kind+" [json-pointer:/view/type]")
	}
	if len(encode(o)) > maxViewBytes {
		return nil, refuse("view_too_large")
	}
	check.only("/view", o, fields)
	if kind == "modal" {
		check.plain("/view/title", o["title"], maxModalTitle, true)
		check.plain("/view/submit", o["submit"], maxModalTitle, false)
		check.plain("/view/close", o["close"], maxModalTitle, false)
	}
	v := &view{
		Type:            kind,
		PrivateMetadata: check.str("/view/private_metadata", o["private_metadata"], maxPrivateMetadata, false),
		CallbackID:      check.name("/view/callback_id", o["callback_id"]),
		ExternalID:      check.name("/view/external_id", o["external_id"]),
	}
	v.Title, _ = o["title"].(object)
	v.Submit, _ = o["submit"].(object)
	v.Close, _ = o["close"].(object)
	v.ClearOnClose, _ = o["clear_on_close"].(bool)
	v.NotifyOnClose, _ = o["notify_on_close"].(bool)
	blocks, isList := o["blocks"].([]any)
	if !isList {
		check.report("/view/blocks", "missing required field: blocks")
	}
	check.blocks("/view/blocks", blocks, maxViewBlocks)
	if kind == "modal" && v.Submit == nil && hasInput(blocks) {
		check.report("/view/submit", "missing required field: submit")
	}
	if len(check.problems) > 0 {
		return nil, refuse("invalid_arguments", check.problems...)
	}
	assignIDs(blocks)
	v.Blocks = blocks
	return v, nil
}

func hasInput(blocks []any) bool {
	for _, item := range blocks {
		if b, ok := item.(object); ok && b["type"] == "input" {
			return true
		}
	}
	return false
}
