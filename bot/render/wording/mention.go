package wording

import (
	"countersign/approvers"
	"countersign/bot/render/block"
)

// Mention is a person or user group that a card mentions.
type Mention struct{ User, Group string }

// In adds the mention to a text.
func (c Mention) In(p *block.RichText) {
	if c.Group != "" {
		p.Group(c.Group)
		return
	}
	p.Person(approvers.PersonID(c.User), "")
}
