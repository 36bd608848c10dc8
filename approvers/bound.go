package approvers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// Bound is what a grant asks of one argument: a greatest number, or a value.
type Bound struct {
	Arg    string          `json:"arg"`
	AtMost json.RawMessage `json:"at_most,omitempty"` // a number; the argument is between 0 and it
	Equal  json.RawMessage `json:"equal,omitempty"`   // the exact value; empty, with AtMost empty too: the call has no such argument
}

// holds reports whether an argument keeps within the bound. Numbers are compared exactly, as they are written. An argument that is
// not there is only the same as one that was not there.
func (b Bound) holds(value json.RawMessage) bool {
	if b.AtMost == nil {
		return len(value) == 0 && len(b.Equal) == 0 || len(value) > 0 && len(b.Equal) > 0 && EqualArgs(value, b.Equal)
	}
	most, ok := number(b.AtMost)
	got, ok2 := number(value)
	return ok && ok2 && got.Sign() >= 0 && got.Cmp(most) <= 0
}

// number reads a JSON number as people write it: not with an exponent, and not longer than anybody could read.
func number(raw json.RawMessage) (*big.Rat, bool) {
	const longest = 40
	if len(raw) == 0 || len(raw) > longest || !json.Valid(raw) || strings.Trim(string(raw), "-0123456789.") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(string(raw))
}

// members reads the arguments of a call by name.
func members(args json.RawMessage) (map[string]json.RawMessage, bool) {
	if _, err := StrictArgs(args, false); err != nil {
		return nil, false
	}
	values := map[string]json.RawMessage{}
	return values, json.Unmarshal(args, &values) == nil
}

// names are the names of arguments in order.
func names(values map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(values)) }

// bounds are what the policy's terms ask of later calls, from the call at hand: its fixed values, and the greatest numbers, which are the call's own
// where none is given. Its second result says why the call has no such bounds.
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

// within holds the arguments of a call against the grant, whose bounds have to be those that the policy asks for now.
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

// bounded says which bound the grant lacks that the policy asks for, or "".
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

// Free are the arguments that the grant does not bound: they may have any value.
func (g Grant) Free() []string {
	return slices.DeleteFunc(slices.Clone(g.Args), func(arg string) bool {
		return slices.ContainsFunc(g.Bounds, func(b Bound) bool { return b.Arg == arg })
	})
}
