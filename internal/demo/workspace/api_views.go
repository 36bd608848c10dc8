package workspace

import (
	"slices"

	"countersign/internal/demo/workspace/blockkit"
	"countersign/internal/demo/workspace/wire"
)

// viewsOpen is views.open. It begins a new stack: a modal that was open is gone.
func (s *Server) viewsOpen(c *call) (object, *apiError) {
	t, v, failed := s.triggeredView(c)
	if failed != nil {
		return nil, failed
	}
	t.used = true
	s.stacks[t.user] = nil
	s.showModal(t.user, v)
	return object{"view": v.json(s)}, nil
}

// viewsPush is views.push: on top of the stack in which the trigger arose.
func (s *Server) viewsPush(c *call) (object, *apiError) {
	t, v, failed := s.triggeredView(c)
	if failed != nil {
		return nil, failed
	}
	if !slices.ContainsFunc(s.stacks[t.user], func(open *view) bool { return open.ID == t.viewID }) {
		return nil, refuse("not_found")
	}
	if failed := s.mayPush(t.user); failed != nil {
		return nil, failed
	}
	t.used = true
	s.showModal(t.user, v)
	return object{"view": v.json(s)}, nil
}

// triggeredView reads what views.open and views.push have in common. Bad arguments
// don't use the trigger up.
func (s *Server) triggeredView(c *call) (*trigger, *view, *apiError) {
	raw, given := c.nested("view")
	v, failed := s.readView(raw, given, "modal")
	if failed != nil {
		return nil, nil, failed
	}
	t, failed := s.findTrigger(c)
	if failed != nil {
		return nil, nil, failed
	}
	if v.ExternalID != "" && s.viewWithExternalID(v.ExternalID) != nil {
		return nil, nil, refuse("duplicate_external_id")
	}
	return t, v, nil
}

func (s *Server) mayPush(user string) *apiError {
	switch stack := s.stacks[user]; {
	case len(stack) == 0:
		return refuse("not_found")
	case len(stack) >= maxViewStack:
		return refuse("push_limit_reached")
	}
	return nil
}

// showModal puts a view on top of a person's stack.
func (s *Server) showModal(user string, v *view) {
	stack := s.stacks[user]
	v.ID, v.User, v.Hash = wire.NewID("V"), user, wire.NewHash(s.cfg.Now())
	v.Root = v.ID
	if len(stack) > 0 {
		v.Root, v.Previous = stack[0].ID, stack[len(stack)-1].ID
	}
	v.state = blockkit.NewState(v.Blocks, nil)
	s.stacks[user] = append(stack, v)
	s.feed.send(change{Type: "view", User: user, only: []string{user}})
}

// viewsUpdate is views.update, by view_id or external_id.
func (s *Server) viewsUpdate(c *call) (object, *apiError) {
	raw, given := c.nested("view")
	next, failed := s.readView(raw, given, "modal", "home")
	if failed != nil {
		return nil, failed
	}
	var old *view
	switch id, external := c.text("view_id"), c.text("external_id"); {
	case id != "":
		old = s.viewWithID(id)
	case external != "":
		old = s.viewWithExternalID(external)
	default:
		return nil, refuse("invalid_arguments", "missing required field: view_id [json-pointer:/view_id]")
	}
	if old == nil {
		return nil, refuse("not_found")
	}
	if old.Type != next.Type {
		return nil, refuse("invalid_arguments", "unsupported type: "+next.Type+" [json-pointer:/view/type]")
	}
	if hash := c.text("hash"); hash != "" && hash != old.Hash {
		return nil, refuse("hash_conflict")
	}
	if failed := s.replaceView(old, next); failed != nil {
		return nil, failed
	}
	return object{"view": old.json(s)}, nil
}

// replaceView gives an open view a new content. What the person entered stays where the
// block and the action are still there.
func (s *Server) replaceView(old, next *view) *apiError {
	if next.ExternalID != "" {
		if other := s.viewWithExternalID(next.ExternalID); other != nil && other != old {
			return refuse("duplicate_external_id")
		}
	}
	next.ID, next.User, next.Root, next.Previous = old.ID, old.User, old.Root, old.Previous
	next.Hash = wire.NewHash(s.cfg.Now())
	if next.ExternalID == "" {
		next.ExternalID = old.ExternalID
	}
	next.state = blockkit.NewState(next.Blocks, old.state)
	*old = *next
	kind := "view"
	if old.Type == "home" {
		kind = "home"
	}
	s.feed.send(change{Type: kind, User: old.User, only: []string{old.User}})
	return nil
}

// viewsPublish is views.publish.
func (s *Server) viewsPublish(c *call) (object, *apiError) {
	raw, given := c.nested("view")
	next, failed := s.readView(raw, given, "home")
	if failed != nil {
		return nil, failed
	}
	u := s.users[c.text("user_id")]
	if u == nil || !u.person() {
		return nil, refuse("user_not_found")
	}
	old := s.homes[u.ID]
	if hash := c.text("hash"); hash != "" && (old == nil || hash != old.Hash) {
		return nil, refuse("hash_conflict")
	}
	if old == nil {
		if next.ExternalID != "" && s.viewWithExternalID(next.ExternalID) != nil {
			return nil, refuse("duplicate_external_id")
		}
		old = &view{ID: wire.NewID("V"), User: u.ID, Type: "home"}
		old.Root = old.ID
		s.homes[u.ID] = old
	}
	if failed := s.replaceView(old, next); failed != nil {
		return nil, failed
	}
	return object{"view": old.json(s)}, nil
}

func (s *Server) viewWithID(id string) *view {
	return s.findView(func(v *view) bool { return v.ID == id })
}

func (s *Server) viewWithExternalID(id string) *view {
	return s.findView(func(v *view) bool { return v.ExternalID == id })
}

func (s *Server) findView(is func(*view) bool) *view {
	for _, stack := range s.stacks {
		if i := slices.IndexFunc(stack, is); i >= 0 {
			return stack[i]
		}
	}
	for _, v := range s.homes {
		if is(v) {
			return v
		}
	}
	return nil
}
