package approvers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// Bound limits one argument of the calls under a grant: a greatest number, or an exact value.
type Bound struct {
	Arg    string          `json:"arg"`
	AtMost json.RawMessage `json:"at_most,omitempty"` // a number; the argument is between 0 and it
	Equal  json.RawMessage `json:"equal,omitempty"`   // the exact value; if both are empty, the call has no such argument
}

// holds reports whether an argument keeps within the bound. It compares numbers exactly, as they are written. A missing
// argument matches only a bound without a value.
func (b Bound) holds(value json.RawMessage) bool {
	if b.AtMost == nil {
		return len(value) == 0 && len(b.Equal) == 0 || len(value) > 0 && len(b.Equal) > 0 && EqualArgs(value, b.Equal)
	}
	most, ok := number(b.AtMost)
	got, ok2 := number(value)
	return ok && ok2 && got.Sign() >= 0 && got.Cmp(most) <= 0
}

// number parses a JSON number as people write it: without an exponent, and short enough to read.
func number(raw json.RawMessage) (*big.Rat, bool) {
	const longest = 40
	if len(raw) == 0 || len(raw) > longest || !json.Valid(raw) || strings.Trim(string(raw), "-0123456789.") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(string(raw))
}

// members returns the arguments of a call by name.
func members(args json.RawMessage) (map[string]json.RawMessage, bool) {
	if _, err := StrictArgs(args, false); err != nil {
		return nil, false
	}
	values := map[string]json.RawMessage{}
	return values, json.Unmarshal(args, &values) == nil
}

// names returns the names of arguments, sorted.
func names(values map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(values)) }

// bounds returns the bounds that the policy's terms set for later calls, derived from this call: its fixed values, and
// the greatest numbers, which default to the call's own. The second result says why the call has no such bounds, or is
// "".
func (g GrantTerms) bounds(values, atMost map[string]json.RawMessage) ([]Bound, string) {
	var out []Bound
	for _, arg := range g.AtMost {
		b := Bound{Arg: arg, AtMost: values[arg]}
		if given, ok := atMost[arg]; ok {
			b.AtMost = given
		}
		if _, ok := number(b.AtMost); !ok || !b.holds(values[arg]) {
			return nil, fmt.Sprintf("%s has to be a number from 0 to the one allowed, in this call too", arg)
		}
		out = append(out, b)
	}
	for _, arg := range g.Same {
		out = append(out, Bound{Arg: arg, Equal: values[arg]})
	}
	return out, ""
}

// within returns why the arguments of a call are outside the grant, or "". The grant needs all bounds that the policy
// asks for now.
func (g Grant) within(terms GrantTerms, args json.RawMessage) string {
	values, ok := members(args)
	if !ok {
		return "the arguments can't be read"
	}
	if why := g.bounded(terms); why != "" {
		return why
	}
	if !slices.Equal(names(values), g.Args) {
		return "it is for calls with other arguments"
	}
	for _, b := range g.Bounds {
		if !b.holds(values[b.Arg]) {
			return fmt.Sprintf("%s is beyond it", b.Arg)
		}
	}
	return ""
}

// bounded returns which bound required by the policy the grant lacks, or "".
func (g Grant) bounded(terms GrantTerms) string {
	for _, name := range terms.AtMost {
		if !slices.ContainsFunc(g.Bounds, func(b Bound) bool { return b.Arg == name && b.AtMost != nil }) {
			return fmt.Sprintf("it does not bound %s, as the policy asks now", name)
		}
	}
	for _, name := range terms.Same {
		if !slices.ContainsFunc(g.Bounds, func(b Bound) bool { return b.Arg == name && b.AtMost == nil }) {
			return fmt.Sprintf("it does not fix %s, as the policy asks now", name)
		}
	}
	return ""
}

// Free returns the arguments that the grant does not bound. They may have any value.
func (g Grant) Free() []string {
	return slices.DeleteFunc(slices.Clone(g.Args), func(arg string) bool {
		return slices.ContainsFunc(g.Bounds, func(b Bound) bool { return b.Arg == arg })
	})
}
