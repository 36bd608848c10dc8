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

	state   blockkit.State    // what the person entered
	errors  map[string]string // error texts of the last refused submission, by block_id
	earlier earlier           // of an App Home
}

// json returns the view in the form of views.open.
func (v *view) json(k *core) object {
	out := object{
		"id": v.ID, "team_id": k.team.ID, "type": v.Type, "blocks": v.Blocks, "private_metadata": v.PrivateMetadata,
		"callback_id": v.CallbackID, "state": object{"values": v.state.Clone()}, "hash": v.Hash, "title": nil,
		"clear_on_close": v.ClearOnClose, "notify_on_close": v.NotifyOnClose, "close": nil, "submit": nil,
		"previous_view_id": nil, "root_view_id": v.Root, "app_id": k.app.ID, "external_id": v.ExternalID,
		"app_installed_team_id": k.team.ID, "bot_id": k.app.BotID,
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
	if problems := blockkit.CheckView(o, s.channels.known); len(problems) > 0 {
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

// viewsOpen is views.open. viewsOpen starts a new stack, and replaces an open modal.
func (s *Server) viewsOpen(c *call) (object, *apiError) {
	t, v, failed := s.triggeredView(c)
	if failed != nil {
		return nil, failed
	}
	t.used = true
	s.stacks[t.user] = nil
	s.showModal(t.user, v)
	return object{"view": v.json(s.core)}, nil
}

// viewsPush is views.push. viewsPush puts the view on the stack in which the trigger was created.
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
	return object{"view": v.json(s.core)}, nil
}

// triggeredView reads the arguments that views.open and views.push share. Invalid arguments do not use up the trigger.
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
	return object{"view": old.json(s.core)}, nil
}

// replaceView replaces the content of an open view. If the new view has an input with the same block_id and action_id,
// the input keeps the value that the person entered.
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
	kind := "view"
	if old.Type == "home" {
		kind, next.earlier = "home", old.earlier.add(old.Blocks)
	}
	*old = *next
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
	u := s.accounts.byID[c.text("user_id")]
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
	return object{"view": old.json(s.core)}, nil
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

func (s *Server) setStack(user string, stack []*view) {
	s.stacks[user] = slices.Clone(stack)
	s.feed.send(change{Type: "view", User: user, only: []string{user}})
}

// ownView returns one of the person's views. The id "home" stands for the App Home. In a stack of modals, only the top
// modal is accessible.
func (s *Server) ownView(u *user, id string) (*view, *apiError) {
	if home := s.homes[u.ID]; home != nil && (id == "home" || id == home.ID) {
		return home, nil
	}
	if stack := s.stacks[u.ID]; len(stack) > 0 && stack[len(stack)-1].ID == id {
		return stack[len(stack)-1], nil
	}
	return nil, refuse("view_not_found")
}

// openHome is GET /people/{user}/home.
func (s *Server) openHome(p *personCall) (object, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, failed := s.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := s.channels.dmFor(u, s.botUser)
	if failed != nil {
		return nil, failed
	}
	event := object{"type": "app_home_opened", "user": u.ID, "channel": ch.ID, "tab": "home"}
	out := object{"view": nil}
	if home := s.homes[u.ID]; home != nil {
		event["view"], out["view"] = home.json(s.core), home.json(s.core)
	}
	if !p.flag("quiet") {
		s.events.emit("app_home_opened", event)
	}
	return out, nil
}
