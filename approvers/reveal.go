package approvers

import (
	"encoding/json"
	"slices"
	"strings"
)

// A person can approve a call with masked values only after the values were revealed to this person. With the setting
// blind, the policy allows approvals of a tool's calls without a reveal.

// Reveal records that a person saw the masked values of one set of arguments.
type Reveal struct {
	By      PersonID `json:"by"`
	Digest  string   `json:"digest"`
	Secrets []string `json:"secrets"` // the paths of the values that were masked before the reveal
}

// MustReveal reports whether a person must see the request's masked values before the person can approve. If who is "",
// the result is for a person who has seen no values.
func (r Request) MustReveal(p *Policy, who PersonID) bool {
	t, _ := p.Tool(r.Tool, r.Agent)
	if t.Blind && r.Plan.Blind {
		return false
	}
	secrets := Secrets(r.Secrets, t.Secrets)
	return HasSecrets(r.Args, secrets) && !r.revealedTo(who, secrets)
}

// revealedTo reports whether a person was shown the masked values of the current arguments.
func (r Request) revealedTo(who PersonID, secrets []string) bool {
	return slices.ContainsFunc(r.Revealed, func(v Reveal) bool {
		return v.By == who && v.Digest == r.Digest && !slices.ContainsFunc(secrets, func(path string) bool { return !IsSecret(v.Secrets, path) })
	})
}

// Reveal records that a person saw the values of the current arguments at the given secret paths. The person must be
// allowed to decide the request.
func (r Request) Reveal(in DecisionContext, m Action, secrets []string) (Request, []Event, *Denied) {
	if denied := r.MayDecide(in, m); denied != nil {
		return r, nil, denied
	}
	if !HasSecrets(r.Args, secrets) || r.revealedTo(m.Who.ID, secrets) {
		return r, nil, &Denied{Code: DeniedNothing}
	}
	r.Revealed = append(r.withoutReveal(m.Who.ID), Reveal{By: m.Who.ID, Digest: r.Digest, Secrets: secrets})
	return r, []Event{ValuesRevealed{By: m.Who.ID}}, nil
}

func (r Request) withoutReveal(who PersonID) []Reveal {
	return slices.DeleteFunc(slices.Clone(r.Revealed), func(v Reveal) bool { return v.By == who })
}

// revealsAfterEdit returns the reveals that stay valid after an edit. Only the editor's reveals stay valid, because
// the editor saw the masked values and wrote the changes. All other people must see the masked values of the new
// call.
func (r Request) revealsAfterEdit(editor PersonID, digest string) []Reveal {
	for _, v := range r.Revealed {
		if v.By == editor && v.Digest == r.Digest {
			v.Digest = digest
			return []Reveal{v}
		}
	}
	return nil
}

// unrecordedReveal reports whether the request has a reveal that its chain does not record.
func (r Request) unrecordedReveal(chain []AuditRecord) bool {
	return slices.ContainsFunc(r.Revealed, func(v Reveal) bool {
		return !slices.ContainsFunc(chain, func(a AuditRecord) bool {
			shown := a.Kind == AuditShown && a.Facts[FactShownAs] == ShownAsReveal || a.Kind == AuditDecided && a.Facts["kind"] == string(Modify)
			return shown && a.Actor == v.By && a.Facts["digest"] == v.Digest
		})
	})
}

// FactShownAs is the fact of an AuditShown record that says where the request was shown. The value of the fact is the
// kind of an outbox message, "view" (the last page of all arguments), "home" or ShownAsReveal. In records, the name
// of the fact is "surface".
const FactShownAs = "surface"

// ShownAsReveal is the value of FactShownAs for the form that reveals masked values.
const ShownAsReveal = "reveal"

// HasSecrets reports whether arguments have values at secret paths. Unreadable arguments count as arguments with such
// values.
func HasSecrets(args json.RawMessage, secrets []string) bool {
	if len(secrets) == 0 {
		return false
	}
	values, err := StrictArgs(args, false)
	return err != nil || hasSecret(values, secrets, "")
}

func hasSecret(v any, secrets []string, path string) bool {
	if path != "" && IsSecret(secrets, path) {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, one := range v {
			if hasSecret(one, secrets, strings.TrimPrefix(path+"."+name, ".")) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return hasSecret(one, secrets, path) })
	}
	return false
}

// blindly returns the first masked argument that the grant does not fix to one value, or "". Calls under the grant
// could have any value for this argument, and nobody would see the value.
func (g Grant) blindly(t ToolPolicy) string {
	if t.Blind {
		return ""
	}
	secrets := Secrets(g.Secrets, t.Secrets)
	for _, arg := range g.Args {
		fixed := slices.ContainsFunc(g.Bounds, func(b Bound) bool { return b.Arg == arg && b.AtMost == nil })
		if HoldsSecret(secrets, arg) && !fixed {
			return arg
		}
	}
	return ""
}

// masked reports whether the calls under the grant have masked arguments. If the policy allows blind approval, masked
// returns false.
func (g Grant) masked(t ToolPolicy) bool {
	secrets := Secrets(g.Secrets, t.Secrets)
	return !t.Blind && slices.ContainsFunc(g.Args, func(arg string) bool { return HoldsSecret(secrets, arg) })
}
