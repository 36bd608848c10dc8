package config

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"countersign/approvers"
)

var (
	roleName  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	channelID = regexp.MustCompile(`^[CG][A-Z0-9]{2,}$`)
	// channelName is Slack's rule: lower case, digits, hyphens and underscores, up to 80. Other scripts are allowed.
	channelName = regexp.MustCompile(`^#[^\s#@,.:;!?'"A-Z]{1,80}$`)
)

// maxTitle is how long a title may be: it stands in the first line of cards.
const maxTitle = 75

func (r *reader) role(e entry) approvers.Role {
	role := approvers.Role{Name: e.key, Title: titleOf(e.key), Cards: approvers.CardsDM}
	if !roleName.MatchString(e.key) {
		r.wrongAt(e.at, e.value.path+": no approver can be called that", "a name has 1 to 64 letters, digits, _ and -; the title can be anything")
	}
	f := e.value.fields("title", "members", "max_risk", "can_approve", "cards", "lead", "hours")
	if v, ok := f["title"]; ok {
		role.Title = v.title(role.Title)
	}
	if v, ok := f["members"]; ok {
		items, _ := v.list("[U0001, \"@support\", jo@example.com]")
		for _, item := range items {
			if m, ok := item.member(); ok {
				role.Members = append(role.Members, m)
			}
		}
	}
	f.risk("max_risk", &role.MaxRisk)
	if v, ok := f["can_approve"]; ok {
		role.CanApprove = v.texts(`[issue_refund], or ["*"] for every tool`, `a tool's name, or "*"`)
	}
	for _, key := range []string{"members", "max_risk", "can_approve"} {
		if e.value.isMapping() && !f.has(key) {
			r.wrongAt(e.at, e.value.path+": "+key+" is missing", needs[key])
		}
	}
	if v, ok := f["cards"]; ok {
		role.Cards = v.cards()
	}
	if v, ok := f["lead"]; ok {
		role.Lead, _ = v.free("the name of another approver")
	}
	if v, ok := f["hours"]; ok {
		role.Hours = v.hours()
	}
	return role
}

// needs says what to write for a key that every approver has to have.
var needs = map[string]string{
	"members":     `add who they are: members: [U0001, "@support", jo@example.com]`,
	"max_risk":    "add how risky a call they may allow: max_risk: low, medium, high or critical",
	"can_approve": `add which tools they may allow: can_approve: [issue_refund], or ["*"] for every tool`,
}

func (v value) title(otherwise string) string {
	text, ok := v.free("a title such as Team Lead")
	if !ok {
		return otherwise
	}
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) > maxTitle || strings.ContainsAny(text, "\n\r\t") {
		v.wrongf("shorten it", "a title is one line of up to %d characters", maxTitle)
	}
	return text
}

// cards reads where a role's cards go.
func (v value) cards() string {
	text, ok := v.text(`a channel such as "#support-approvals", or dm`)
	if ok && text != approvers.CardsDM && !isChannel(text) {
		hint := `write a channel such as "#support-approvals" or C0123ABCD, or dm for a direct message to each member`
		if isChannel("#" + strings.ToLower(text)) {
			hint = `write "#` + strings.ToLower(text) + `" if that channel is meant, or dm`
		}
		v.wrong(quote(text)+" is no channel", hint)
	}
	return text
}

// sharedChannels reads the channels with people of other organisations in which cards may stand.
func (v value) sharedChannels() []string {
	var out []string
	items, _ := v.list(`["#supplier-desk"]`)
	for _, item := range items {
		text, ok := item.free(`a channel such as "#supplier-desk"`)
		switch {
		case ok && isChannel(text):
			out = append(out, text)
		case ok:
			item.wrong(quote(text)+" is no channel", `write a channel such as "#supplier-desk" or C0123ABCD`)
		}
	}
	return out
}

func isChannel(text string) bool { return channelName.MatchString(text) || channelID.MatchString(text) }

// titleOf makes a title of a name: support-agent → Support Agent.
func titleOf(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, " ")
}
