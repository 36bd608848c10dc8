package check

import (
	"fmt"
	"slices"
	"strings"

	"countersign/config/condition"
	"countersign/config/preview"
	"countersign/config/yamldoc"
)

// argumentNames compares the names of arguments in grants, secrets and previews with the tools' schemas.
type argumentNames struct{ *checker }

// secrets checks the masked arguments. If a name is similar to the name of an argument, it is probably misspelt, and
// the argument would be shown to everybody. secrets then reports an error, unless another entry masks the argument.
func (c argumentNames) secrets() {
	for _, tool := range c.registered {
		t, named := c.policy.Tool(tool.Name, "")
		if !named || len(t.Secrets) == 0 || len(tool.Schema) == 0 || slices.Contains(t.Secrets, "*") {
			continue
		}
		arguments := condition.ArgumentShape(tool.Schema)
		for i, secret := range t.Secrets {
			at := fmt.Sprintf("tools.%s.secrets[%d]", tool.Name, i)
			missing := noArgument(tool.Name, arguments, strings.Split(secret, "."))
			switch {
			case missing == nil:
			case missing.similar != "" && !masked(t.Secrets, missing.similar):
				c.wrong(at, missing.message+", so nothing of this name is masked", missing.hint)
			default:
				c.warn(at, missing.message+", so this masks nothing", missing.hint)
			}
		}
	}
}

// masked reports whether entries of secrets name an argument, or a value that contains it.
func masked(secrets []string, argument string) bool {
	return slices.ContainsFunc(secrets, func(s string) bool { return strings.HasPrefix(argument+".", s+".") })
}

// previews warns about arguments that a template reads, but that the tool does not have. Every call would lack its
// preview.
func (c argumentNames) previews() {
	for _, tool := range c.registered {
		t, named := c.policy.Tool(tool.Name, "")
		if !named || t.Preview.Text == "" || len(tool.Schema) == 0 {
			continue
		}
		arguments := condition.ArgumentShape(tool.Schema)
		path := "tools." + tool.Name + ".preview"
		if c.file.Document.Has(path + ".text") {
			path += ".text"
		}
		for _, fields := range preview.Arguments(t.Preview.Text) {
			if missing := noArgument(tool.Name, arguments, fields); missing != nil {
				c.warnOnce(path, missing.message, missing.hint)
			}
		}
	}
}

// grants checks the arguments for which grants set bounds.
func (c argumentNames) grants() {
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
			c.known(at, tool.Name, arguments, name)
		}
		for i, name := range t.Grants.Same {
			c.known(fmt.Sprintf("%ssame[%d]", path, i), tool.Name, arguments, name)
		}
	}
}

// known reports a name that is not the name of an argument.
func (c argumentNames) known(at, tool string, arguments condition.Shape, name string) {
	if missing := noArgument(tool, arguments, []string{name}); missing != nil {
		c.wrong(at, missing.message, missing.hint)
	}
}

// missing describes a field that a schema does not have. If the schema has a field with a similar name, similar is the
// path with this name.
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
		m := &missing{hint: "its schema lists none"}
		if similar := yamldoc.Similar(name, names); similar != "" {
			m.similar = strings.Join(slices.Concat(fields[:i], []string{similar}, fields[i+1:]), ".")
		}
		if len(names) > 0 {
			m.hint = condition.SuggestionOr(yamldoc.DidYouMean(name, names), "its "+noun+"s are "+condition.ListNames(names))
		}
		m.message = fmt.Sprintf("%s has no %s %s", of, noun, condition.FieldName(name))
		return m
	}
	return nil
}
