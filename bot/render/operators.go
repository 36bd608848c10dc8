package render

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// operatorNotice tells the operators of problems: what happened, and what they can do. When a problem has ended, the
// notice says so.
func operatorNotice(n *settings.OperatorNotice, m store.OutboxMessage, t titles) Rendered {
	p := new(BlockBuilder)
	if n == nil {
		p.Para(Say("The details of this notice are lost."))
	} else {
		lines := problemLines(t, n.Problems)
		for _, line := range lines[:min(len(lines), maxProblemsShown)] {
			p.Para(line)
		}
		if more := len(lines) - maxProblemsShown; more > 0 {
			p.Para(Say("There are " + Plural(more, "more problem") + ". The log and /readyz name them."))
		}
	}
	d := Single(p)
	over := t.policy.Operators.Channel == "" || n == nil || !n.Lasts()
	posted := m.TS != "" || n != nil && n.Posted(m) // the second is true if Slack refused to change the message
	d.Expired = over && !posted
	return d
}

const (
	maxProblemsShown = 10 // paragraphs of a notice
	maxDriftNamed    = 10 // in one paragraph
)

// problemLines returns a paragraph for each problem. Problems that continue come before problems that have ended. If
// several tools of one source have the same problem, they share a paragraph.
func problemLines(t titles, all []settings.Problem) (lines []*RichText) {
	var now, over []*RichText
	done := map[string]bool{}
	for i, p := range all {
		to := &now
		if !p.Lasts() {
			to = &over
		}
		switch p.Kind {
		case settings.ProblemWebhook:
			*to = append(*to, webhookOff(p))
		case settings.ProblemCards:
			*to = append(*to, cardsUnseen(t, p))
		case settings.ProblemPeople:
			*to = append(*to, nobodyLeft(t, p))
		case settings.ProblemTool:
			if key := sameDrift(t, p); !done[key] {
				done[key] = true
				*to = append(*to, toolsDrifted(t, slices.DeleteFunc(slices.Clone(all[i:]), func(o settings.Problem) bool { return sameDrift(t, o) != key })))
			}
		}
	}
	return append(now, over...)
}

// sameDrift returns a key. Two problems of tools share a paragraph if they have the same key.
func sameDrift(t titles, p settings.Problem) string {
	_, distrusted := t.policy.Distrusts(p.Of)
	return fmt.Sprint(p.Kind, " ", p.Source, " ", p.How, " ", p.Lasts(), " ", distrusted)
}

func problemOver(p settings.Problem) *RichText {
	return Say("✅ Over since ").At(p.Until, DayTime).Say(": ")
}

func webhookOff(p settings.Problem) *RichText {
	what := "the webhook of the client " + Name(p.Of)
	if !p.Lasts() {
		return problemOver(p).Say(what + " was switched off.")
	}
	line := Say("⚠️ ").Strong("The"+strings.TrimPrefix(what, "the")+" is switched off").Say(" since ").At(p.Since, DayTime).reason(p.Why, MaxNote)
	return line.Say(" When the receiver works again, switch the webhook on: ").Code("countersign client resume " + Name(p.Of)).Say(".")
}

// toolsDrifted describes tools of one source that differ from their pins in the same way.
func toolsDrifted(t titles, all []settings.Problem) *RichText {
	p, source := all[0], " of the source "+Name(all[0].Source)
	which, them, definition, their, pin := "the tool "+Name(p.Of), "it", "definition", "its", "pin"
	if len(all) > 1 {
		which, them, definition, their, pin = "the tools "+toolNames(all), "them", "definitions", "their", "pins"
	}
	if !p.Lasts() {
		last := slices.MaxFunc(all, func(a, b settings.Problem) int { return a.Until.Compare(b.Until) })
		if workflow.DriftKind(p.How) == workflow.DriftGone {
			return problemOver(last).Say("the source " + Name(p.Source) + " did not offer " + which + ".")
		}
		return problemOver(last).Say(which + source + " differed from " + their + " " + pin + ".")
	}
	what := "changed the " + definition + " of " + which
	if workflow.DriftKind(p.How) == workflow.DriftGone {
		what = "does not offer " + which + " any more"
	}
	line := Say("⚠️ ").Strong("The source "+Name(p.Source)+" "+what).Say(" (noticed ").At(p.Since, DayTime).Say("). ")
	_, distrusted := t.policy.Distrusts(p.Of)
	switch {
	case workflow.DriftKind(p.How) == workflow.DriftGone:
		line.Say("Nobody can call " + them + ". If you expected this, remove the " + pin + ": ").Code("countersign tools pin --source " + Name(p.Source) + " --prune")
	case workflow.DriftKind(p.How) == workflow.DriftUnusable:
		line.Say("Countersign can't use the new " + definition + ", so nobody can call " + them + ". Have the source corrected. The reason: ").Code("countersign tools")
	case distrusted:
		line.Say("Until you pin the new " + definition + ", calls follow the policy of unknown tools. ").add(howToPin(all))
	default:
		line.Say("Until you pin the new " + definition + ", nobody can call " + them + ", and waiting calls are voided. ").add(howToPin(all))
	}
	return line.Say(".")
}

// howToPin says how to accept changed definitions.
func howToPin(all []settings.Problem) *RichText {
	if len(all) > 1 {
		return Say("Read the changes: ").Code("countersign tools").Say(". Accept one: ").Code("countersign tools pin NAME")
	}
	return Say("Read the change: ").Code("countersign tools show " + Name(all[0].Of)).Say(". Accept it: ").Code("countersign tools pin " + Name(all[0].Of))
}

// toolNames lists the tools of problems.
func toolNames(all []settings.Problem) string {
	var names []string
	for _, p := range all[:min(len(all), maxDriftNamed)] {
		names = append(names, Name(p.Of))
	}
	list := strings.Join(names, ", ")
	if more := len(all) - maxDriftNamed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// cardsUnseen describes cards that reach nobody.
func cardsUnseen(t titles, p settings.Problem) *RichText {
	where := addressTitles(t, p.Of)
	if !p.Lasts() {
		return problemOver(p).Say("cards for " + where + " reached nobody. No request waits for this reason any more.")
	}
	line := Say("⚠️ ").Strong("Cards for "+where+" reach nobody").Say(" since ").At(p.Since, DayTime).reason(p.Why, MaxNote)
	line.Say(" The first is the request ").Code(p.First).Say(" (" + Name(p.Tool) + "). " + MendRefusal(p.Why) + ". I keep trying. All such requests: ")
	return line.Code("countersign pending").Say(".")
}

// nobodyLeft describes requests that nobody is left to decide.
func nobodyLeft(t titles, p settings.Problem) *RichText {
	var roles []string
	for _, role := range strings.Split(p.Of, "\n") {
		roles = append(roles, t.title(role))
	}
	who := strings.Join(roles[:min(len(roles), maxPlacesNamed)], ", ")
	if !p.Lasts() {
		return problemOver(p).Say("nobody was left who may decide requests for " + who + ". No request waits for this reason any more.")
	}
	line := Say("⚠️ ").Strong("Nobody is left who may decide requests for "+who).Say(" since ").At(p.Since, DayTime)
	line.Say(". The first is the request ").Code(p.First).Say(" (" + Name(p.Tool) + "). Add people to the role in the policy or to its user group, or reject the request with ").Code("countersign decide")
	return line.Say(". I look again every five minutes. All such requests: ").Code("countersign pending").Say(".")
}

// addressTitles names the addresses of cards.
func addressTitles(t titles, addresses string) string {
	var titles []string
	for _, to := range strings.Split(addresses, "\n") {
		if name, ok := strings.CutPrefix(to, store.ToChannel); ok {
			titles = append(titles, Name(name))
		} else if role, ok := strings.CutPrefix(to, store.ToRole); ok {
			titles = append(titles, t.title(role)+" (direct messages)")
		} else if group, ok := strings.CutPrefix(to, store.ToGroup); ok {
			titles = append(titles, "the group "+Name(group)+" (direct messages)")
		}
	}
	return strings.Join(titles[:min(len(titles), maxPlacesNamed)], ", ")
}

const maxPlacesNamed = 5
