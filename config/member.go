package config

import (
	"net/mail"
	"regexp"
	"strings"

	"countersign/approvers"
)

var (
	userID  = regexp.MustCompile(`^[UW][A-Z0-9]{2,}$`)
	groupID = regexp.MustCompile(`^S[A-Z0-9]{2,}$`)
	// groupHandle is Slack's rule for a user group's handle.
	groupHandle = regexp.MustCompile(`^@[^\s@#A-Z]{1,80}$`)
)

// member reads one member: a user id, a user group by handle or id, or an e-mail address.
func (v value) member() (approvers.Member, bool) {
	const hint = `write a user id such as U0123ABCD, a user group such as "@support", or an e-mail address`
	text, ok := v.free(`a user id, "@group" or an e-mail address`)
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
		v.wrong(quote(text)+" is no handle of a user group", "handles are in lower case, without spaces")
	case isEmail(text):
		return approvers.Member{Kind: approvers.MemberEmail, Value: strings.ToLower(text)}, true
	default:
		v.wrong(quote(text)+" names nobody", hint)
	}
	return approvers.Member{}, false
}

// domains reads the domains whose e-mail addresses count.
func (v value) domains() []string {
	var out []string
	items, _ := v.list("[example.com]")
	for _, item := range items {
		text, ok := item.free("a domain such as example.com")
		switch domain := strings.ToLower(text); {
		case ok && isEmail("jo@"+domain):
			out = append(out, domain)
		case ok:
			item.wrong(quote(text)+" is no domain", "write what stands behind the @ of the addresses: example.com")
		}
	}
	return out
}

func isEmail(text string) bool {
	a, err := mail.ParseAddress(text)
	_, domain, _ := strings.Cut(text, "@")
	return err == nil && a.Address == text && strings.Contains(domain, ".")
}
