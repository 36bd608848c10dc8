package approvers

import (
	"slices"
	"strings"
)

// PersonID identifies a person by workspace and user: "T0001/U0002". The operator at the command line is
// "operator:LOGIN". A caller is "caller:NAME".
type PersonID string

// Who returns the id of a Slack user. team is the workspace's id, or the enterprise's id if the workspace belongs to an
// enterprise.
func Who(team, user string) PersonID { return PersonID(team + "/" + user) }

// operatorPrefix is the beginning of the id of a person who acts at the command line.
const operatorPrefix = "operator:"

// Operator returns the id of the person who is logged in at the command line.
func Operator(login string) PersonID { return PersonID(operatorPrefix + login) }

// Login returns the login in an operator's id, or "" for other ids.
func (p PersonID) Login() string {
	login, ok := strings.CutPrefix(string(p), operatorPrefix)
	if !ok {
		return ""
	}
	return login
}

// User returns the Slack user id in a person's id. If the id has no workspace, User returns the whole id.
func (p PersonID) User() string {
	_, user, ok := strings.Cut(string(p), "/")
	if !ok {
		return string(p)
	}
	return user
}

// Identity describes a person with Slack's current data. No field comes from a button or a modal.
type Identity struct {
	ID      PersonID
	Local   string // the person's user id in the workspace, if the enterprise uses another id; otherwise empty
	Name    string
	Email   string   // in lower case; empty if the address is unknown, or if the policy does not accept it as identification
	Groups  []string // ids and handles of those of the person's user groups that the policy names
	Unnamed []string // ids and handles of the policy's user groups whose members Slack refuses to name; they give no authority
	Deleted bool     // deactivated account
	Guest   bool     // single- or multi-channel guest
	Foreign bool     // unknown to the workspace, or from another workspace or enterprise
	Bot     bool
}

// HasUser reports whether a Slack user id is one of the person's ids: the id in the enterprise, or the id in the
// workspace.
func (who Identity) HasUser(user string) bool {
	return user != "" && (user == who.ID.User() || user == who.Local)
}

// Groups lists the user groups whose members are members of the role.
func (r Role) Groups() (groups []string) {
	for _, m := range r.Members {
		if m.Kind == MemberGroup {
			groups = append(groups, m.Value)
		}
	}
	return groups
}

// Holds reports whether the person is a member of the role.
func (r Role) Holds(who Identity) bool {
	for _, m := range r.Members {
		switch m.Kind {
		case MemberUser:
			if who.HasUser(m.Value) {
				return true
			}
		case MemberEmail:
			if who.Email != "" && m.Value == who.Email {
				return true
			}
		case MemberGroup:
			for _, g := range who.Groups {
				if g == m.Value {
					return true
				}
			}
		}
	}
	return false
}

// denyMember returns the denial for a person who is not known as a member of the role: another denial if Slack refuses
// to name the members of one of the role's user groups, and otherwise the given denial.
func (r Role) denyMember(who Identity, denied *Denied) *Denied {
	for _, group := range r.Groups() {
		if slices.Contains(who.Unnamed, group) {
			return &Denied{Code: DeniedUnnamed, Role: denied.Role, Detail: group}
		}
	}
	return denied
}

// denyGroup returns the denial for a person who is not known as a member of the stage's user group. title is the
// stage's name.
func (s Stage) denyGroup(who Identity, title string) *Denied {
	if slices.Contains(who.Unnamed, s.Group) {
		return &Denied{Code: DeniedUnnamed, Role: title, Detail: s.Group}
	}
	return &Denied{Code: DeniedGroup, Role: title}
}

// names reports whether a person may be a member of the role, according to the policy alone. If the policy names
// members of the role by user group or e-mail address, names returns true, because only Slack knows who these members
// are.
func (r Role) names(who Identity) bool {
	for _, m := range r.Members {
		if m.Kind != MemberUser || who.HasUser(m.Value) {
			return true
		}
	}
	return false
}

// trouble returns the reason why a person can't act in any role, or "".
func (who Identity) trouble() Code {
	switch {
	case who.ID == "":
		return DeniedUnidentified
	case who.Deleted:
		return DeniedDeactivated
	case who.Bot:
		return DeniedBot
	case who.Foreign:
		return DeniedForeign
	case who.Guest:
		return DeniedGuest
	}
	return ""
}
