package evidence

import (
	"strings"
	"unicode"

	"countersign/approvers"
)

// client returns the id of the client that asked for the call. If the model asked for the call, client returns "".
func (s Story) client() approvers.PersonID {
	proposed, _ := s.first(approvers.AuditProposed)
	if asker := approvers.PersonID(proposed.Facts["asker"]); asker.Caller() != "" {
		return asker
	}
	return ""
}

// runner returns the id of the client that claimed the call and runs the tool. If Countersign runs the tool, or nobody
// has claimed the call, runner returns "".
func (s Story) runner() approvers.PersonID {
	started, _ := s.first(approvers.AuditExecuting)
	if runs := started.Facts["runs"]; runs != "" {
		return approvers.CallerID(runs)
	}
	return ""
}

// The requesters of a client's call are the client, the client's owner, and the person for whom the client provably
// acts (approvers.Caller.Requesters). The functions owner and person read these people from the facts of the proposal.
// If the owner is also this person, the requesters have the owner only once. The fact "for" has the person, but records
// of version 0.1.0 do not have this fact.
func owner(proposed map[string]string) approvers.PersonID { return requester(proposed, 1) }

func person(proposed map[string]string) approvers.PersonID {
	if proposed["proven"] == "true" {
		return approvers.PersonID(proposed["for"])
	}
	return requester(proposed, 2)
}

func requester(proposed map[string]string, n int) approvers.PersonID {
	if ids := strings.Split(proposed["requesters"], ","); n < len(ids) {
		return approvers.PersonID(ids[n])
	}
	return ""
}

// askers returns the rows of the summary that say who asked for the call, and who runs the tool.
func (s Story) askers(proposed map[string]string) [][2]string {
	client := s.client()
	if client == "" {
		return [][2]string{{"Asked by", s.everybody(proposed["requesters"])}}
	}
	rows := [][2]string{{"Asked by", s.who(client)}}
	if id := person(proposed); id != "" {
		rows = append(rows, [2]string{"On behalf of", s.who(id)})
	}
	rows = append(rows, [2]string{"Owner of the client", s.who(owner(proposed))})
	if runner := s.runner(); runner != "" {
		rows = append(rows, [2]string{"Tool run by", s.who(runner) + ", not by Countersign"})
	}
	return rows
}

// capitalized returns a text with a capital letter at its beginning.
func capitalized(text string) string {
	r := []rune(text)
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}
