package render

import (
	"fmt"
	"strings"
	"time"

	"countersign/approvers"
)

// bounds describes which calls the grant covers.
func bounds(g approvers.Grant) *RichText {
	var parts []string
	for i, b := range g.Bounds {
		switch {
		case i == maxBoundsTold:
			parts = append(parts, fmt.Sprintf("and %d more", len(g.Bounds)-i))
		case i > maxBoundsTold:
		case b.AtMost != nil:
			parts = append(parts, Name(b.Arg)+" from 0 to "+Name(string(b.AtMost)))
		case len(b.Equal) == 0:
			parts = append(parts, "no "+Name(b.Arg))
		default:
			parts = append(parts, Name(b.Arg)+" "+boundShown(b, g.Secrets))
		}
	}
	p := new(RichText)
	if len(parts) > 0 {
		p.Say("Only with ").Strong(strings.Join(parts, ", ")).Say(". ")
	}
	if free := g.Free(); len(free) > 0 {
		p.Say(ArgumentList(free) + " may be anything.")
	}
	return p
}

// boundShown returns, in readable form, the value that an argument must have under a grant.
func boundShown(b approvers.Bound, secrets []string) string {
	if approvers.HoldsSecret(secrets, b.Arg) {
		return masked(b.Equal)
	}
	return shorten(Visible(string(b.Equal)), maxBoundShown)
}

func left(g approvers.Grant) *RichText {
	return new(RichText).Strong(fmt.Sprintf("%d of %d left.", g.Left, g.Uses))
}

// formatPeriod formats a duration for people: "1 hour 30 minutes".
func formatPeriod(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		long time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / unit.long; n > 0 {
			parts = append(parts, Plural(int(n), unit.name))
			d -= n * unit.long
		}
	}
	return strings.Join(parts, " ")
}

// grantedTo names the agent whose calls a grant covers.
func grantedTo(g approvers.Grant) string {
	name, _, _ := strings.Cut(approvers.PersonID(g.Conversation).Caller(), "/")
	return "the client " + Name(name)
}
