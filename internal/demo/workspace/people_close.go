package workspace

import (
	"encoding/json"
	"slices"

	"countersign/internal/demo/workspace/wire"
)

func (s *Server) setStack(user string, stack []*view) {
	s.stacks[user] = slices.Clone(stack)
	s.feed.send(change{Type: "view", User: user, only: []string{user}})
}

// closeView is POST /people/{user}/views/{view}/close.
func (s *Server) closeView(p *personCall) (object, *apiError) {
	s.mu.Lock()
	payloads, failed := s.closePayloads(p)
	s.mu.Unlock()
	for _, payload := range payloads {
		// The view is closed whatever the app says to it.
		if _, failed := s.askApp("interactive", payload); failed != nil {
			s.log.Info("the app did not acknowledge view_closed")
		}
	}
	if failed != nil {
		return nil, failed
	}
	return object{}, nil
}

// closePayloads closes the view, or the whole stack, and makes a view_closed for each
// view that asked for it.
func (s *Server) closePayloads(p *personCall) ([]json.RawMessage, *apiError) {
	u, failed := s.me(p)
	if failed != nil {
		return nil, failed
	}
	v, failed := s.ownView(u, p.r.PathValue("view"))
	if failed != nil || v.Type != "modal" {
		return nil, refuse("view_not_found")
	}
	stack := s.stacks[u.ID]
	keep := len(stack) - 1
	all := p.flag("all") || v.ClearOnClose
	if all {
		keep = 0
	}
	var out []json.RawMessage
	for _, closed := range slices.Backward(stack[keep:]) {
		if closed.NotifyOnClose {
			payload := s.interaction("view_closed", u)
			payload["view"], payload["is_cleared"] = closed.json(s), all
			out = append(out, wire.Encode(payload))
		}
	}
	s.setStack(u.ID, stack[:keep])
	return out, nil
}
