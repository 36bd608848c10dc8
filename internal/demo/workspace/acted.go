package workspace

import (
	"slices"

	"countersign/internal/demo/workspace/blockkit"
)

// acted is what a person acted on: a view, or a message in a channel.
type acted struct {
	blocks  []any
	view    *view
	channel *channel
	message *message
}

func (s *Server) actedOn(p *personCall, u *user) (acted, *apiError) {
	if id := p.text("view_id"); id != "" {
		v, failed := s.ownView(u, id)
		if failed != nil {
			return acted{}, failed
		}
		return acted{blocks: v.Blocks, view: v}, nil
	}
	ch, failed := s.memberChannel(u, p.text("channel"))
	if failed != nil {
		return acted{}, failed
	}
	m, failed := s.shownMessage(u, ch, p.text("ts"))
	if failed != nil {
		return acted{}, failed
	}
	blocks := slices.Clone(m.Blocks)
	for _, item := range m.Attachments {
		if attachment, ok := item.(object); ok {
			nested, _ := attachment["blocks"].([]any)
			blocks = append(blocks, nested...)
		}
	}
	return acted{blocks: blocks, channel: ch, message: m}, nil
}

// ownView finds one of the person's views; "home" is the App Home. In a stack of modals
// only the top one can be touched.
func (s *Server) ownView(u *user, id string) (*view, *apiError) {
	if home := s.homes[u.ID]; home != nil && (id == "home" || id == home.ID) {
		return home, nil
	}
	if stack := s.stacks[u.ID]; len(stack) > 0 && stack[len(stack)-1].ID == id {
		return stack[len(stack)-1], nil
	}
	return nil, refuse("view_not_found")
}

func shownTo(e object, user string) bool {
	list, limited := e["visible_to_user_ids"].([]any)
	return !limited || len(list) == 0 || slices.Contains(list, any(user))
}

// remember keeps what a person chose in a message's inputs until the server ends.
func (c *channel) remember(ts, user string, p blockkit.Placed, state object) {
	if c.chosen == nil {
		c.chosen = map[string]blockkit.State{}
	}
	key := ts + "|" + user
	if c.chosen[key] == nil {
		c.chosen[key] = blockkit.State{}
	}
	c.chosen[key].Set(p, state)
}

// messageState returns the state of a message's inputs for one person.
func (s *Server) messageState(where acted, user string) blockkit.State {
	return blockkit.NewState(where.blocks, where.channel.chosen[where.message.TS+"|"+user])
}
