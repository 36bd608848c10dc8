package workspace

import (
	"slices"

	"countersign/internal/demo/workspace/blockkit"
	"countersign/internal/demo/workspace/wire"
)

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

	state  blockkit.State    // what the person entered
	errors map[string]string // of the last refused submission, by block_id
}

// json renders the view as views.open answers it.
func (v *view) json(s *Server) object {
	out := object{
		"id": v.ID, "team_id": s.team.ID, "type": v.Type, "blocks": v.Blocks, "private_metadata": v.PrivateMetadata,
		"callback_id": v.CallbackID, "state": object{"values": v.state.Clone()}, "hash": v.Hash, "title": nil,
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

// readView checks a view payload. kinds are the types that the method accepts.
func (s *Server) readView(raw any, given bool, kinds ...string) (*view, *apiError) {
	o, ok := raw.(object)
	if !given || !ok {
		return nil, refuse("invalid_arguments", "missing required field: view [json-pointer:/view]")
	}
	v := &view{}
	if v.Type, _ = o["type"].(string); !slices.Contains(kinds, v.Type) {
		return nil, refuse("invalid_arguments", "unsupported type: "+v.Type+" [json-pointer:/view/type]")
	}
	if len(wire.Encode(o)) > maxViewBytes {
		return nil, refuse("view_too_large")
	}
	if problems := blockkit.CheckView(o, s.known); len(problems) > 0 {
		return nil, refuse("invalid_arguments", problems...)
	}
	v.PrivateMetadata, _ = o["private_metadata"].(string)
	v.CallbackID, _ = o["callback_id"].(string)
	v.ExternalID, _ = o["external_id"].(string)
	v.Title, _ = o["title"].(object)
	v.Submit, _ = o["submit"].(object)
	v.Close, _ = o["close"].(object)
	v.ClearOnClose, _ = o["clear_on_close"].(bool)
	v.NotifyOnClose, _ = o["notify_on_close"].(bool)
	v.Blocks, _ = o["blocks"].([]any)
	blockkit.AssignIDs(v.Blocks)
	return v, nil
}
