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

	state   blockkit.State    // the values that the person entered
	errors  map[string]string // error texts of the last refused submission, by block_id
	earlier earlier           // earlier versions of an App Home
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

// views holds the modals and App Homes, and answers Slack's methods for views.
type views struct {
	*core
	accounts *accounts
	channels *channels
	events   *events
	triggers *triggers
	homes    map[string]*view
	stacks   map[string][]*view // open modals by person, the top one last
}

// read checks a view payload. kinds are the types that the method accepts.
func (vs *views) read(raw any, given bool, kinds ...string) (*view, *apiError) {
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
	if problems := blockkit.CheckView(o, vs.channels.known); len(problems) > 0 {
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

// open is views.open. The view starts a new stack, and replaces an open modal.
func (vs *views) open(c *call) (object, *apiError) {
	t, v, failed := vs.triggered(c)
	if failed != nil {
		return nil, failed
	}
	t.used = true
	vs.discard(t.user)
	vs.showModal(t.user, v)
	return object{"view": v.json(vs.core)}, nil
}

// push is views.push. The view goes on top of the stack in which the trigger was created.
func (vs *views) push(c *call) (object, *apiError) {
	t, v, failed := vs.triggered(c)
	if failed != nil {
		return nil, failed
	}
	if !slices.ContainsFunc(vs.stacks[t.user], func(open *view) bool { return open.ID == t.viewID }) {
		return nil, refuse("not_found")
	}
	if failed := vs.mayPush(t.user); failed != nil {
		return nil, failed
	}
	t.used = true
	vs.showModal(t.user, v)
	return object{"view": v.json(vs.core)}, nil
}

// The method "triggered" reads the arguments that views.open and views.push share. Invalid arguments do not use up the
// trigger.
func (vs *views) triggered(c *call) (*trigger, *view, *apiError) {
	raw, given := c.nested("view")
	v, failed := vs.read(raw, given, "modal")
	if failed != nil {
		return nil, nil, failed
	}
	t, failed := vs.triggers.find(c)
	if failed != nil {
		return nil, nil, failed
	}
	if v.ExternalID != "" && vs.withExternalID(v.ExternalID) != nil {
		return nil, nil, refuse("duplicate_external_id")
	}
	return t, v, nil
}

func (vs *views) mayPush(user string) *apiError {
	switch stack := vs.stacks[user]; {
	case len(stack) == 0:
		return refuse("not_found")
	case len(stack) >= maxViewStack:
		return refuse("push_limit_reached")
	}
	return nil
}

// showModal puts a view on top of a person's stack.
func (vs *views) showModal(user string, v *view) {
	stack := vs.stacks[user]
	v.ID, v.User, v.Hash = wire.NewID("V"), user, wire.NewHash(vs.cfg.Now())
	v.Root = v.ID
	if len(stack) > 0 {
		v.Root, v.Previous = stack[0].ID, stack[len(stack)-1].ID
	}
	v.state = blockkit.NewState(v.Blocks, nil)
	vs.stacks[user] = append(stack, v)
	vs.feed.send(change{Type: "view", User: user, only: []string{user}})
}

// update is views.update, by view_id or external_id.
func (vs *views) update(c *call) (object, *apiError) {
	raw, given := c.nested("view")
	next, failed := vs.read(raw, given, "modal", "home")
	if failed != nil {
		return nil, failed
	}
	var old *view
	switch id, external := c.text("view_id"), c.text("external_id"); {
	case id != "":
		old = vs.withID(id)
	case external != "":
		old = vs.withExternalID(external)
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
	if failed := vs.replace(old, next); failed != nil {
		return nil, failed
	}
	return object{"view": old.json(vs.core)}, nil
}

// replace replaces the content of an open view. If the new view has an input with the same block_id and action_id,
// the input keeps the value that the person entered.
func (vs *views) replace(old, next *view) *apiError {
	if next.ExternalID != "" {
		if other := vs.withExternalID(next.ExternalID); other != nil && other != old {
			return refuse("duplicate_external_id")
		}
	}
	next.ID, next.User, next.Root, next.Previous = old.ID, old.User, old.Root, old.Previous
	next.Hash = wire.NewHash(vs.cfg.Now())
	if next.ExternalID == "" {
		next.ExternalID = old.ExternalID
	}
	next.state = blockkit.NewState(next.Blocks, old.state)
	kind := "view"
	if old.Type == "home" {
		kind, next.earlier = "home", old.earlier.add(old.Blocks)
	}
	*old = *next
	vs.feed.send(change{Type: kind, User: old.User, only: []string{old.User}})
	return nil
}

// publish is views.publish.
func (vs *views) publish(c *call) (object, *apiError) {
	raw, given := c.nested("view")
	next, failed := vs.read(raw, given, "home")
	if failed != nil {
		return nil, failed
	}
	u := vs.accounts.byID[c.text("user_id")]
	if u == nil || !u.person() {
		return nil, refuse("user_not_found")
	}
	old := vs.homes[u.ID]
	if hash := c.text("hash"); hash != "" && (old == nil || hash != old.Hash) {
		return nil, refuse("hash_conflict")
	}
	if old == nil {
		if next.ExternalID != "" && vs.withExternalID(next.ExternalID) != nil {
			return nil, refuse("duplicate_external_id")
		}
		old = &view{ID: wire.NewID("V"), User: u.ID, Type: "home"}
		old.Root = old.ID
		vs.homes[u.ID] = old
	}
	if failed := vs.replace(old, next); failed != nil {
		return nil, failed
	}
	return object{"view": old.json(vs.core)}, nil
}

func (vs *views) withID(id string) *view {
	return vs.find(func(v *view) bool { return v.ID == id })
}

func (vs *views) withExternalID(id string) *view {
	return vs.find(func(v *view) bool { return v.ExternalID == id })
}

func (vs *views) find(is func(*view) bool) *view {
	for _, stack := range vs.stacks {
		if i := slices.IndexFunc(stack, is); i >= 0 {
			return stack[i]
		}
	}
	for _, v := range vs.homes {
		if is(v) {
			return v
		}
	}
	return nil
}

// discard removes a person's modals, and does not notify the page.
func (vs *views) discard(user string) { vs.stacks[user] = nil }

func (vs *views) setStack(user string, stack []*view) {
	vs.stacks[user] = slices.Clone(stack)
	vs.feed.send(change{Type: "view", User: user, only: []string{user}})
}

// The method "own" returns one of the person's views. The id "home" stands for the App Home. In a stack of modals, only
// the top modal is accessible.
func (vs *views) own(u *user, id string) (*view, *apiError) {
	if home := vs.homes[u.ID]; home != nil && (id == "home" || id == home.ID) {
		return home, nil
	}
	if stack := vs.stacks[u.ID]; len(stack) > 0 && stack[len(stack)-1].ID == id {
		return stack[len(stack)-1], nil
	}
	return nil, refuse("view_not_found")
}

// openHome is GET /people/{user}/home.
func (vs *views) openHome(p *personCall) (object, *apiError) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	u, failed := vs.accounts.me(p)
	if failed != nil {
		return nil, failed
	}
	ch, failed := vs.channels.dmFor(u, vs.botUser)
	if failed != nil {
		return nil, failed
	}
	event := object{"type": "app_home_opened", "user": u.ID, "channel": ch.ID, "tab": "home"}
	out := object{"view": nil}
	if home := vs.homes[u.ID]; home != nil {
		event["view"], out["view"] = home.json(vs.core), home.json(vs.core)
	}
	if !p.flag("quiet") {
		vs.events.emit("app_home_opened", event)
	}
	return out, nil
}
