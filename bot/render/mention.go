package render

import "countersign/approvers"

// Mention is a person or user group that a card mentions.
type Mention struct{ User, Group string }

func (c Mention) in(p *RichText) {
	if c.Group != "" {
		p.group(c.Group)
		return
	}
	p.Person(approvers.PersonID(c.User), "")
}
