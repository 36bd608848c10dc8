package notice

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
	"countersign/store"
)

// Operators draws a notice for the operators about problems: what happened, and what they can do. When a problem has
// ended, the notice says so.
func Operators(n *settings.OperatorNotice, m store.OutboxMessage, t wording.Titles) block.Rendered {
	p := new(block.Builder)
	if n == nil {
		p.Para(block.Say("The details of this notice are lost."))
	} else {
		lines := problemLines(t, n.Problems)
		for _, line := range lines[:min(len(lines), maxProblemsShown)] {
			p.Para(line)
		}
		if more := len(lines) - maxProblemsShown; more > 0 {
			p.Para(block.Say("There are " + block.Plural(more, "more problem") + ". The log and /readyz name them."))
		}
	}
	d := block.Single(p)
	over := t.Policy.Operators.Channel == "" || n == nil || !n.Lasts()
	posted := m.TS != "" || n != nil && n.Posted(m) // n.Posted is true if Slack refused to change the message
	d.Expired = over && !posted
	return d
}

const (
	maxProblemsShown = 10 // maximum number of paragraphs in a notice
	maxDriftNamed    = 10 // maximum number of tools that one paragraph names
)

// problemLines returns a paragraph for each problem. Problems that continue come before problems that have ended. If
// several tools of one source have the same problem, they share a paragraph.
func problemLines(t wording.Titles, all []settings.Problem) (lines []*block.RichText) {
	var now, over []*block.RichText
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
			*to = append(*to, lacksPeople(t, p, "nobody is", "nobody was"))
		case settings.ProblemQuorum:
			*to = append(*to, lacksPeople(t, p, "too few people are", "too few people were"))
		case settings.ProblemCheck:
			*to = append(*to, checkFails(p))
		case settings.ProblemRecord, settings.ProblemDelivery:
			*to = append(*to, setAside(p))
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
func sameDrift(t wording.Titles, p settings.Problem) string {
	_, distrusted := t.Policy.Distrusts(p.Of)
	return fmt.Sprint(p.Kind, " ", p.Source, " ", p.How, " ", p.Lasts(), " ", distrusted)
}

func problemOver(p settings.Problem) *block.RichText {
	return block.Say("✅ Over since ").At(p.Until, block.DayTime).Say(": ")
}

// checkWords says what the checks of /readyz mean: now, and after the problem has ended.
var checkWords = map[string]struct{ now, over, do string }{
	"rows":                     {"The store has damaged rows", "the store had damaged rows", "Find the cause: usually a faulty disk, or somebody who changed rows"},
	"channels":                 {"The bot can't write in channels of the policy", "the bot could not write in channels of the policy", "Nobody can reach the agents there, and cards go to each person by direct message"},
	"model":                    {"The model can't be used", "the model could not be used", "Until it can, the agents give no answers"},
	"seal":                     {"The history is not sealed", "the history was not sealed", "Calls still run, but the last records are not protected against a change of the store"},
	"heads":                    {"Signed heads of the history are not copied", "signed heads of the history were not copied", "Correct the place that the reason names"},
	"renewal of the bot token": {"The bot token is not renewed", "the bot token was not renewed", "When it expires, the bot can't use Slack"},
}

// checkFails describes a check of /readyz that fails.
func checkFails(p settings.Problem) *block.RichText {
	words, known := checkWords[p.Of]
	if !known {
		words.now, words.over, words.do = "A check of /readyz fails ("+block.Name(p.Of)+")", "a check of /readyz failed ("+block.Name(p.Of)+")", "The log may say more"
	}
	if !p.Lasts() {
		return problemOver(p).Say(words.over + ".")
	}
	return block.Say("⚠️ ").Strong(words.now).Say(" since ").At(p.Since, block.DayTime).Reason(p.Why, block.MaxNote).Say(" " + words.do + ". The state now: ").Code("/readyz").Say(".")
}

// setAside describes damaged records or deliveries that were set aside. The description does not change when more of
// them join the problem, or when the problem ends.
func setAside(p settings.Problem) *block.RichText {
	line := block.Say("⚠️ ")
	if p.Kind == settings.ProblemRecord {
		return line.Strong("A damaged record was set aside").Say(" at ").At(p.Since, block.DayTime).Say(": ").Code(block.Name(p.First)).Reason(p.Why, block.MaxNote).
			Say(" Requests, runs and turns that it belonged to have ended. Find the cause: usually a faulty disk, or somebody who changed rows. The log names all such records, and the history has a record of each.")
	}
	return line.Strong("A delivery from Slack was set aside").Say(" at ").At(p.Since, block.DayTime).Say(": ").Code(block.Name(p.First)).Reason(p.Why, block.MaxNote).
		Say(" The person may have to send the message or click again. The log names all such deliveries, and says more.")
}

func webhookOff(p settings.Problem) *block.RichText {
	what := "the webhook of the client " + block.Name(p.Of)
	if !p.Lasts() {
		return problemOver(p).Say(what + " was switched off.")
	}
	line := block.Say("⚠️ ").Strong("The"+strings.TrimPrefix(what, "the")+" is switched off").Say(" since ").At(p.Since, block.DayTime).Reason(p.Why, block.MaxNote)
	return line.Say(" When the receiver works again, switch the webhook on: ").Code("countersign client resume " + block.Name(p.Of)).Say(".")
}

// toolsDrifted describes tools of one source that differ from their pins in the same way.
func toolsDrifted(t wording.Titles, all []settings.Problem) *block.RichText {
	p, source := all[0], " of the source "+block.Name(all[0].Source)
	which, them, definition, their, pin := "the tool "+block.Name(p.Of), "it", "definition", "its", "pin"
	if len(all) > 1 {
		which, them, definition, their, pin = "the tools "+toolNames(all), "them", "definitions", "their", "pins"
	}
	if !p.Lasts() {
		last := slices.MaxFunc(all, func(a, b settings.Problem) int { return a.Until.Compare(b.Until) })
		if workflow.DriftKind(p.How) == workflow.DriftGone {
			return problemOver(last).Say("the source " + block.Name(p.Source) + " did not offer " + which + ".")
		}
		return problemOver(last).Say(which + source + " differed from " + their + " " + pin + ".")
	}
	what := "changed the " + definition + " of " + which
	if workflow.DriftKind(p.How) == workflow.DriftGone {
		what = "does not offer " + which + " any more"
	}
	line := block.Say("⚠️ ").Strong("The source "+block.Name(p.Source)+" "+what).Say(" (noticed ").At(p.Since, block.DayTime).Say("). ")
	_, distrusted := t.Policy.Distrusts(p.Of)
	switch {
	case workflow.DriftKind(p.How) == workflow.DriftGone:
		line.Say("Nobody can call " + them + ". If you expected this, remove the " + pin + ": ").Code("countersign tools pin --source " + block.Name(p.Source) + " --prune")
	case workflow.DriftKind(p.How) == workflow.DriftUnusable:
		line.Say("Countersign can't use the new " + definition + ", so nobody can call " + them + ". Have the source corrected. The reason: ").Code("countersign tools")
	case distrusted:
		line.Say("Until you pin the new " + definition + ", calls follow the policy of unknown tools. ").Add(howToPin(all))
	default:
		line.Say("Until you pin the new " + definition + ", nobody can call " + them + ", and waiting calls are voided. ").Add(howToPin(all))
	}
	return line.Say(".")
}

// howToPin says how to accept changed definitions.
func howToPin(all []settings.Problem) *block.RichText {
	if len(all) > 1 {
		return block.Say("Read the changes: ").Code("countersign tools").Say(". Accept one: ").Code("countersign tools pin NAME")
	}
	return block.Say("Read the change: ").Code("countersign tools show " + block.Name(all[0].Of)).Say(". Accept it: ").Code("countersign tools pin " + block.Name(all[0].Of))
}

// toolNames lists the tools of problems.
func toolNames(all []settings.Problem) string {
	var names []string
	for _, p := range all[:min(len(all), maxDriftNamed)] {
		names = append(names, block.Name(p.Of))
	}
	list := strings.Join(names, ", ")
	if more := len(all) - maxDriftNamed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// cardsUnseen describes cards that reach nobody.
func cardsUnseen(t wording.Titles, p settings.Problem) *block.RichText {
	where := addressTitles(t, p.Of)
	if !p.Lasts() {
		return problemOver(p).Say("cards for " + where + " reached nobody. No request waits for this reason any more.")
	}
	line := block.Say("⚠️ ").Strong("Cards for "+where+" reach nobody").Say(" since ").At(p.Since, block.DayTime).Reason(p.Why, block.MaxNote)
	line.Say(" The first is the request ").Code(p.First).Say(" (" + block.Name(p.Tool) + "). " + wording.MendRefusal(p.Why) + ". I keep trying. All such requests: ")
	return line.Code("countersign pending").Say(".")
}

// lacksPeople describes requests that nobody can decide any more, or for which too few people are left. The parameters
// "is" and "was" begin the sentence about the problem: "is" if the problem continues, and "was" if it has ended.
func lacksPeople(t wording.Titles, p settings.Problem, is, was string) *block.RichText {
	var roles []string
	for _, role := range strings.Split(p.Of, "\n") {
		roles = append(roles, t.Title(role))
	}
	where := strings.Join(roles[:min(len(roles), maxPlacesNamed)], ", ")
	if !p.Lasts() {
		return problemOver(p).Say(was + " left who may decide requests for " + where + ". No request waits for this reason any more.")
	}
	line := block.Say("⚠️ ").Strong(strings.ToUpper(is[:1])+is[1:]+" left who may decide requests for "+where).Say(" since ").At(p.Since, block.DayTime)
	line.Say(". The first is the request ").Code(p.First).Say(" (" + block.Name(p.Tool) + "). Add people to the role in the policy or to its user group, or reject the request with ").Code("countersign decide")
	return line.Say(". I look again every five minutes. All such requests: ").Code("countersign pending").Say(".")
}

// addressTitles returns the names that people see for the addresses of cards.
func addressTitles(t wording.Titles, addresses string) string {
	var titles []string
	for _, to := range strings.Split(addresses, "\n") {
		if name, ok := strings.CutPrefix(to, store.ToChannel); ok {
			titles = append(titles, block.Name(name))
		} else if role, ok := strings.CutPrefix(to, store.ToRole); ok {
			titles = append(titles, t.Title(role)+" (direct messages)")
		} else if group, ok := strings.CutPrefix(to, store.ToGroup); ok {
			titles = append(titles, "the group "+block.Name(group)+" (direct messages)")
		}
	}
	return strings.Join(titles[:min(len(titles), maxPlacesNamed)], ", ")
}

const maxPlacesNamed = 5
