package check

import (
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/config/condition"
	"countersign/config/yamldoc"
)

// grants warns about grants that can never be given, grants of calls with masked arguments, and grants of high-risk
// calls with any arguments.
func (c *checker) grants(t approvers.ToolPolicy) {
	if !t.Grants.Allowed() {
		return
	}
	path := "tools." + t.Name + ".grants"
	var possible []outcome
	why := ""
	for _, o := range c.outcomes(t.Name, "") {
		if reason := ungrantable(o); reason == "" {
			possible = append(possible, o)
		} else if why == "" {
			why = reason
		}
	}
	if len(possible) == 0 {
		c.warn(path, "does nothing: "+why, "remove it")
		return
	}
	own, _, _ := c.find(t.Name)
	for _, secret := range approvers.Secrets(t.Secrets, approvers.SecretPaths(own.Schema)) {
		if arg, _, _ := strings.Cut(secret, "."); !t.Blind && !slices.Contains(t.Grants.Same, arg) {
			c.warn(path, fmt.Sprintf("no call with %s can be granted, because it is masked, and the person who grants it would not see later values", secret), "add same: ["+arg+"], or blind: true if nobody has to see it")
		}
	}
	if t.Risk >= approvers.High && len(t.Grants.AtMost)+len(t.Grants.Same) == 0 {
		c.warn(path, fmt.Sprintf("a grant covers calls of %s with any arguments, and it is %s risk", t.Name, t.Risk), "add at_most or same, such as at_most: [amount], same: [currency]")
	}
}

// ungrantable returns the reason why a grant can't cover calls of the outcome, or "".
func ungrantable(o outcome) string {
	switch {
	case o.plan.Verdict == approvers.Refuse:
		return "nobody could allow the call"
	case o.plan.Verdict == approvers.Auto:
		return "calls of " + o.tool + " run without anybody being asked"
	case o.plan.Risk >= approvers.Critical:
		return "critical calls always ask"
	case len(o.plan.Stages) > 1 || o.plan.Stages[0].Quorum > 1:
		return "the call needs more than one person, and a grant counts as one"
	}
	return ""
}

// grantArguments checks the arguments for which grants set bounds. grantArguments compares these arguments with the
// tools' schemas.
func (c *checker) grantArguments() {
	for _, tool := range c.registered {
		t, named := c.policy.Tool(tool.Name, "")
		if !named || !t.Grants.Allowed() || len(tool.Schema) == 0 {
			continue
		}
		arguments := condition.ArgumentShape(tool.Schema)
		path := "tools." + tool.Name + ".grants."
		for i, name := range t.Grants.AtMost {
			at := fmt.Sprintf("%sat_most[%d]", path, i)
			if shape, known := arguments.Field(name); known && shape.Kinds()&condition.KindNumber == 0 {
				c.wrong(at, fmt.Sprintf("%s is %s, and only a number can have a maximum", name, shape.Kinds()), fmt.Sprintf("write same: [%s], or remove it", name))
			}
			c.argument(at, tool.Name, arguments, name)
		}
		for i, name := range t.Grants.Same {
			c.argument(fmt.Sprintf("%ssame[%d]", path, i), tool.Name, arguments, name)
		}
	}
}

// argument reports a name that is not the name of an argument.
func (c *checker) argument(at, tool string, arguments condition.Shape, name string) {
	if missing := noArgument(tool, arguments, []string{name}); missing != nil {
		c.wrong(at, missing.message, missing.hint)
	}
}

// missing describes a field that a schema does not have.
type missing struct{ message, hint, similar string }

// noArgument describes the first of the fields that the schema of a tool's arguments does not have. Each field is a
// field of the field before it, or of each item if that is a list. If the schema may have all the fields, noArgument
// returns nil.
func noArgument(tool string, arguments condition.Shape, fields []string) *missing {
	of, noun, shape := tool, "argument", arguments
	for i, name := range fields {
		shape = shape.EachItem()
		names := shape.Names()
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name+".") }) {
			return nil // a name with a dot in it: it is not clear where the next field begins
		}
		next, known := shape.Field(name)
		if known {
			of, noun, shape = strings.Join(fields[:i+1], "."), "field", next
			continue
		}
		m := &missing{similar: yamldoc.DidYouMean(name, names), hint: "its schema lists none"}
		if len(names) > 0 {
			m.hint = condition.SuggestionOr(m.similar, "its "+noun+"s are "+condition.ListNames(names))
		}
		m.message = fmt.Sprintf("%s has no %s %s", of, noun, condition.FieldName(name))
		return m
	}
	return nil
}
