package check

import (
	"encoding/json"
	"fmt"
	"slices"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// previews checks the tools that make previews. A tool that makes the previews of another tool must be known, must only
// read, and must run without approval. The argument of a dry run must be one of the tool's arguments.
func (c *checker) previews() {
	for _, t := range c.policy.Tools {
		switch by := t.Preview.By; {
		case by.Tool != "":
			c.companion("tools."+t.Name+".preview.tool", t, by.Tool)
		case by.Argument != "":
			c.dryRun("tools."+t.Name+".preview.dry_run", t.Name, by)
		}
	}
}

// find finds a registered tool. The result named known is false if the registered tools are not known.
func (c *checker) find(name string) (t Tool, found, known bool) {
	i := slices.IndexFunc(c.registered, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return t, false, c.registered != nil
	}
	return c.registered[i], true, true
}

func (c *checker) companion(path string, of approvers.ToolPolicy, name string) {
	t, found, known := c.find(name)
	if known && !found {
		c.wrong(path, fmt.Sprintf("there is no tool %s", name), yamldoc.DidYouMean(name, c.known))
		return
	}
	if t.Effect != "" && t.Effect != approvers.ReadOnly {
		c.wrong(path, fmt.Sprintf("%s is not declared to only read (its effect is %s), but a preview must not change anything", name, t.Effect), "name a tool that only reads, or use dry_run")
		return
	}
	p, named := c.policy.Tool(name, "")
	if !named && !known {
		return // nothing is known about the tool: the policy does not name it, and the registered tools are not known
	}
	if p.Risk > approvers.Low || p.Confirm || asksByRule(p) {
		hint := fmt.Sprintf("add %s: {risk: low} to tools", name)
		if named {
			hint = fmt.Sprintf("give %s risk: low and no confirm, or name another tool", name)
		}
		c.wrong(path, fmt.Sprintf("%s does not run without asking: it is %s", name, riskAlready(p)), hint)
		return
	}
	own, found, _ := c.find(of.Name)
	if !found || len(own.Schema) == 0 || len(t.Schema) == 0 {
		return
	}
	for _, missing := range neededBy(t.Schema) {
		if !slices.Contains(argumentsOf(own.Schema), missing) {
			c.warn(path, fmt.Sprintf("%s needs the argument %s, which %s does not have: no preview would ever be made", name, missing, of.Name), "name another tool")
			return
		}
	}
	if !open(t.Schema) {
		for _, argument := range argumentsOf(own.Schema) {
			if !slices.Contains(argumentsOf(t.Schema), argument) {
				c.warn(path, fmt.Sprintf("%s does not take the argument %s of %s: calls that have it get no preview", name, argument, of.Name), "have it take the same arguments")
			}
		}
	}
}

func (c *checker) dryRun(path, tool string, by approvers.PreviewSource) {
	t, found, known := c.find(tool)
	if !known || !found || len(t.Schema) == 0 {
		return
	}
	var schema struct {
		Properties map[string]struct {
			Type any   `json:"type"`
			Enum []any `json:"enum"`
		} `json:"properties"`
	}
	if json.Unmarshal(t.Schema, &schema) != nil {
		return
	}
	argument, has := schema.Properties[by.Argument]
	var value any
	if err := json.Unmarshal(by.Value, &value); err != nil {
		return
	}
	switch _, isBool := value.(bool); {
	case !has:
		c.wrong(path, fmt.Sprintf("%s has no argument %s, so nothing would keep it from acting", tool, by.Argument), yamldoc.DidYouMean(by.Argument, argumentsOf(t.Schema)))
	case isBool && argument.Type != "boolean", !isBool && !slices.Contains(argument.Enum, value):
		c.wrong(path, fmt.Sprintf("the schema of %s does not say that %s can be %s", tool, by.Argument, by.Value), "it must be declared as boolean, or with the value in its enum")
	case t.Effect == approvers.Unprotected:
		c.warn(path, fmt.Sprintf("%s is called for previews without approval, and only its own %s keeps it from acting, which Countersign can't verify", tool, by.Argument),
			"if a dry run may still act, write a template or name a tool that only reads")
	}
}

// argumentsOf lists the arguments that a schema names.
func argumentsOf(schema json.RawMessage) []string {
	var s struct {
		Properties map[string]any `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// neededBy lists the arguments that a schema requires.
func neededBy(schema json.RawMessage) []string {
	var s struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	return s.Required
}

// The function reports whether a schema may accept arguments that the schema does not name.
func open(schema json.RawMessage) bool {
	var s map[string]any
	if json.Unmarshal(schema, &s) != nil {
		return true
	}
	more, said := s["additionalProperties"]
	return said && more != false || s["patternProperties"] != nil || s["$ref"] != nil || s["allOf"] != nil || s["anyOf"] != nil || s["oneOf"] != nil
}
