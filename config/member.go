package config

import (
	"net/mail"
	"regexp"
	"strings"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

var (
	userID  = regexp.MustCompile(`^[UW][A-Z0-9]{2,}$`)
	groupID = regexp.MustCompile(`^S[A-Z0-9]{2,}$`)
	// groupHandle matches Slack's handles of user groups.
	groupHandle = regexp.MustCompile(`^@[^\s@#A-Z]{1,80}$`)
)

// readMember reads one member: a user id, a user group by handle or id, or an e-mail address.
func readMember(v yamldoc.Value) (approvers.Member, bool) {
	const hint = `write a user id such as U0123ABCD, a user group such as "@support", or an e-mail address`
	text, ok := v.Free(`a user id, "@group" or an e-mail address`)
	if !ok {
		return approvers.Member{}, false
	}
	text = strings.TrimSpace(text)
	switch {
	case userID.MatchString(text):
		return approvers.Member{Kind: approvers.MemberUser, Value: text}, true
	case groupID.MatchString(text):
		return approvers.Member{Kind: approvers.MemberGroup, Value: text}, true
	case groupHandle.MatchString(text):
		return approvers.Member{Kind: approvers.MemberGroup, Value: text[1:]}, true
	case strings.HasPrefix(text, "@"):
		v.Wrong(yamldoc.Quote(text)+" is not a handle of a user group", "handles are in lower case, without spaces")
	case isEmail(text):
		return approvers.Member{Kind: approvers.MemberEmail, Value: strings.ToLower(text)}, true
	default:
		v.Wrong(yamldoc.Quote(text)+" names nobody", hint)
	}
	return approvers.Member{}, false
}

// readDomains reads the accepted domains of e-mail addresses.
func readDomains(v yamldoc.Value) []string {
	var out []string
	items, _ := v.List("[example.com]")
	for _, item := range items {
		text, ok := item.Free("a domain such as example.com")
		switch domain := strings.ToLower(text); {
		case ok && isEmail("jo@"+domain):
			out = append(out, domain)
		case ok:
			item.Wrong(yamldoc.Quote(text)+" is not a domain", "write the part of the addresses after the @: example.com")
		}
	}
	return out
}

func isEmail(text string) bool {
	a, err := mail.ParseAddress(text)
	_, domain, _ := strings.Cut(text, "@")
	return err == nil && a.Address == text && strings.Contains(domain, ".")
}
