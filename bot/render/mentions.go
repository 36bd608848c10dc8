package render

import (
	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// Mention is a person or user group that a card mentions.
type Mention struct{ User, Group string }

func (c Mention) in(p *RichText) {
	if c.Group != "" {
		p.group(c.Group)
		return
	}
	p.Person(approvers.PersonID(c.User), "")
}

// MaxMentions is the maximum number of mentions on a card. For a larger role the policy can name a user group.
const MaxMentions = 8

// MentioningRequest returns the request for which a card mentions people, if it waits. For a bundle it is the first
// request that is decided there.
func MentioningRequest(s view.Model) (approvers.Request, bool) {
	if s.Message.Kind == store.OutboxCard {
		return *s.Request, s.Request.State == approvers.Pending
	}
	if s.Message.Kind == store.OutboxBundle {
		if open := (View{Model: s}).Undecided(); len(open) > 0 {
			return open[0], true
		}
	}
	return approvers.Request{}, false
}
