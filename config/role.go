package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

var (
	roleName  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	channelID = regexp.MustCompile(`^[CG][A-Z0-9]{2,}$`)
	// channelName matches Slack's channel names: up to 80 lower-case letters of any script, digits, hyphens and
	// underscores.
	channelName = regexp.MustCompile(`^#[^\s#@,.:;!?'"A-Z]{1,80}$`)
)

// maxTitle limits the length of a title, because a card's first line contains the title.
const maxTitle = 75

func readRole(e yamldoc.Entry) approvers.Role {
	role := approvers.Role{Name: e.Key, Title: titleOf(e.Key), Cards: approvers.CardsDM}
	if !roleName.MatchString(e.Key) {
		e.Wrong("is not a valid name for an approver", "a name has 1 to 64 letters, digits, _ and -; the title can be anything")
	}
	f := e.Value.Fields("title", "members", "max_risk", "can_approve", "cards", "lead", "hours")
	if v, ok := f["title"]; ok {
		role.Title = readTitle(v, role.Title)
	}
	if v, ok := f["members"]; ok {
		items, _ := v.List("[U0001, \"@support\", jo@example.com]")
		for _, item := range items {
			if m, ok := readMember(item); ok {
				role.Members = append(role.Members, m)
			}
		}
	}
	readRiskKey(f, "max_risk", &role.MaxRisk)
	if v, ok := f["can_approve"]; ok {
		role.CanApprove = v.Texts(`[issue_refund], or ["*"] for every tool`, `a tool's name, or "*"`)
	}
	for _, key := range []string{"members", "max_risk", "can_approve"} {
		if e.Value.IsMapping() && !f.Has(key) {
			e.Wrong(key+" is missing", needs[key])
		}
	}
	if v, ok := f["cards"]; ok {
		role.Cards = readCards(v)
	}
	if v, ok := f["lead"]; ok {
		role.Lead, _ = v.Free("the name of another approver")
	}
	if v, ok := f["hours"]; ok {
		role.Hours = readHours(v)
	}
	return role
}

// needs has hints for the required keys of an approver.
var needs = map[string]string{
	"members":     `add who they are: members: [U0001, "@support", jo@example.com]`,
	"max_risk":    "add how risky a call they may allow: max_risk: low, medium, high or critical",
	"can_approve": `add which tools they may allow: can_approve: [issue_refund], or ["*"] for every tool`,
}

func readTitle(v yamldoc.Value, otherwise string) string {
	text, ok := v.Free("a title such as Team Lead")
	if !ok {
		return otherwise
	}
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) > maxTitle || strings.ContainsAny(text, "\n\r\t") {
		v.Wrongf("shorten it", "a title is one line of up to %d characters", maxTitle)
	}
	return text
}

// readCards reads the destination of a role's cards.
func readCards(v yamldoc.Value) string {
	text, ok := v.Text(`a channel such as "#support-approvals", or dm`)
	if ok && text != approvers.CardsDM && !isChannel(text) {
		hint := `write a channel such as "#support-approvals" or C0123ABCD, or dm for a direct message to each member`
		if meant := meantChannel(text); meant != "" {
			hint = meant + ", or dm for a direct message to each member"
		}
		v.Wrong(yamldoc.Quote(text)+" is not a channel", hint)
	}
	return text
}

// readSharedChannels reads the channels that may show cards although other organisations are in these channels.
func readSharedChannels(v yamldoc.Value) []string {
	var out []string
	items, _ := v.List(`["#supplier-desk"]`)
	for _, item := range items {
		text, ok := item.Free(`a channel such as "#supplier-desk"`)
		switch {
		case ok && isChannel(text):
			out = append(out, text)
		case ok:
			item.Wrong(yamldoc.Quote(text)+" is not a channel", yamldoc.OrHint(meantChannel(text), `write a channel such as "#supplier-desk" or C0123ABCD`))
		}
	}
	return out
}

func isChannel(text string) bool { return channelName.MatchString(text) || channelID.MatchString(text) }

// meantChannel returns the hint about a channel's name without # or with capital letters, or "".
func meantChannel(text string) string {
	lower := strings.ToLower(text)
	name := "#" + strings.TrimPrefix(lower, "#")
	if !isChannel(name) || text == "*" {
		return ""
	}
	hint := fmt.Sprintf("write %q if that channel is meant", name)
	if lower != text {
		hint += ", because names are in lower case"
	}
	return hint
}

// titleOf derives a title from a name: support-agent → Support Agent.
func titleOf(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, " ")
}
