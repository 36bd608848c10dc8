package wording

import (
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
)

// Bounds describes which calls the grant covers.
func Bounds(g approvers.Grant) *block.RichText {
	var parts []string
	for i, b := range g.Bounds {
		switch {
		case i == block.MaxBoundsTold:
			parts = append(parts, fmt.Sprintf("and %d more", len(g.Bounds)-i))
		case i > block.MaxBoundsTold:
		case b.AtMost != nil:
			parts = append(parts, block.Name(b.Arg)+" from 0 to "+block.Name(string(b.AtMost)))
		case len(b.Equal) == 0:
			parts = append(parts, "no "+block.Name(b.Arg))
		default:
			parts = append(parts, block.Name(b.Arg)+" "+BoundShown(b, g.Secrets))
		}
	}
	p := new(block.RichText)
	if len(parts) > 0 {
		p.Say("Only with ").Strong(strings.Join(parts, ", ")).Say(". ")
	}
	if free := g.Free(); len(free) > 0 {
		p.Say(argument.List(free) + " may have any value.")
	}
	return p
}

// BoundShown returns, in readable form, the value that an argument must have under a grant.
func BoundShown(b approvers.Bound, secrets []string) string {
	if approvers.HoldsSecret(secrets, b.Arg) {
		return argument.Masked(b.Equal)
	}
	return block.Shorten(block.Visible(string(b.Equal)), maxBoundShown)
}

// Left says how many calls may still run under a grant.
func Left(g approvers.Grant) *block.RichText {
	return new(block.RichText).Strong(fmt.Sprintf("%d of %d left.", g.Left, g.Uses))
}

// GrantedTo names the agent whose calls a grant covers.
func GrantedTo(g approvers.Grant) string {
	name, _, _ := strings.Cut(approvers.PersonID(g.Conversation).Caller(), "/")
	return "the client " + block.Name(name)
}
