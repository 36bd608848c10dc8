package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/bot/installation"
	"countersign/cmd/countersign/cli"
)

// policyChannel is a channel that the policy names. policyChannel lists the channel's uses.
type policyChannel struct {
	name  string // the channel's name in the policy
	uses  []string
	cards bool
}

// channelsIn returns the channels of a policy: those of the agents, of the roles, of the audit, of the report and of
// the operators, in this order.
func channelsIn(p *approvers.Policy) []policyChannel {
	var out []policyChannel
	add := func(name, use string, cards bool) {
		i := slices.IndexFunc(out, func(p policyChannel) bool { return p.name == name })
		if i < 0 {
			i = len(out)
			out = append(out, policyChannel{name: name})
		}
		out[i].uses, out[i].cards = append(out[i].uses, use), out[i].cards || cards
	}
	for _, a := range p.Agents {
		for _, c := range a.Channels {
			if c != "*" {
				add(c, "the agent "+a.Name+" answers", false)
			}
		}
	}
	for _, r := range p.Approvers {
		if r.Cards != "" && r.Cards != "dm" {
			add(r.Cards, "cards for "+r.Title, true)
		}
	}
	if p.Audit.Channel != "" {
		add(p.Audit.Channel, "signed heads of the history", false)
	}
	if p.Report.Channel != "" {
		add(p.Report.Channel, "the weekly report", true)
	}
	if p.Operators.Channel != "" {
		add(p.Operators.Channel, "notices for the operators", true)
	}
	return out
}

// The method "channels" checks whether the bot can post in the channels of the policy.
func (d *Doctor) channels(ctx context.Context, e *installation.Examiner, p *approvers.Policy, in installation.App) {
	d.begin("Channels")
	named := channelsIn(p)
	if len(named) == 0 {
		d.ok("the policy names none: the agents answer wherever they are invited, and cards go by direct message")
		return
	}
	all, err := e.Channels(ctx)
	if err != nil {
		d.unanswered(err, "the bot token", "look at "+settingsPage(in.ID, "oauth"))
		return
	}
	for _, n := range named {
		i := slices.IndexFunc(all, func(c installation.Channel) bool { return c.ID == n.name || "#"+c.Name == n.name })
		uses := strings.Join(n.uses, ", ")
		if i < 0 {
			d.fail(cli.ExitNo, fmt.Sprintf("%s does not exist, or is private and the bot is not in it (%s)", n.name, uses), "create it, or write another one into the policy; then, in the channel: /invite @"+in.User)
			continue
		}
		c := all[i]
		shared := slices.Contains(p.SharedChannels, "#"+c.Name) || slices.Contains(p.SharedChannels, c.ID)
		switch {
		case c.Archived:
			d.fail(cli.ExitNo, fmt.Sprintf("%s is archived (%s)", n.name, uses), "unarchive it and invite the bot, or write another one into the policy")
		case !c.Member:
			d.fail(cli.ExitNo, fmt.Sprintf("the bot is not in %s (%s)", n.name, uses), "in the channel: /invite @"+in.User)
		case c.Shared && n.cards && !shared:
			d.fail(cli.ExitNo, fmt.Sprintf("%s is shared with another organisation, so no cards, reports or notices are posted there (%s)", n.name, uses), "write another one into the policy, or name it under shared_channels")
		case c.Shared:
			d.warn(fmt.Sprintf("%s is shared with another organisation, whose people can read it (%s)", n.name, uses), "")
		default:
			d.ok("%s: %s", n.name, uses)
		}
	}
}
