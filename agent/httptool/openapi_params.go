package httptool

import (
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"countersign/config"
)

// parameter describes a parameter of an operation, as far as requests need the description.
type parameter struct {
	name, in string
	argument string // the argument's name in the tool
	required bool
	style    style
}

// parameters merges the parameters of the path and of the operation. A parameter of the operation replaces a
// parameter of the path with the same name in the same part of the request.
func (d *document) parameters(item, op map[string]any) ([]map[string]any, error) {
	var out []map[string]any
	for _, from := range []map[string]any{item, op} {
		list, _ := from["parameters"].([]any)
		for i, p := range list {
			o, err := d.object(p)
			if err != nil {
				return nil, fmt.Errorf("parameter %d: %w", i+1, err)
			}
			out = slices.DeleteFunc(out, func(other map[string]any) bool { return other["name"] == o["name"] && other["in"] == o["in"] })
			out = append(out, o)
		}
	}
	return out, nil
}

// reservedHeaders lists headers that can't be parameters. Some of the headers are defined in other places of an
// OpenAPI file. The HTTP client sets the others.
var reservedHeaders = []string{
	"accept", "content-type", "authorization", "content-length", "host", "connection", "transfer-encoding", "accept-encoding",
}

// ignored reports whether a parameter is left out of the tool's arguments. Reserved headers and the parameters that
// the policy sets are left out.
func ignored(name, in string, c config.OpenAPI) bool {
	switch in {
	case "header":
		return slices.Contains(reservedHeaders, strings.ToLower(name)) || strings.EqualFold(c.IdempotencyKey, name) ||
			slices.ContainsFunc(c.Headers, func(h config.Header) bool { return strings.EqualFold(h.Name, name) })
	case "query":
		return slices.ContainsFunc(c.Query, func(q config.QueryPart) bool { return q.Name.String() == name })
	}
	return false
}

// usualStyles lists the allowed styles for each location of a parameter (path, query, header, cookie). The first
// style is the default.
var usualStyles = map[string][]string{
	"path": {"simple", "label", "matrix"}, "query": {"form", "spaceDelimited", "pipeDelimited", "deepObject"}, "header": {"simple"}, "cookie": {"form"},
}

// parameter reads one parameter, and returns it with the schema of its argument.
func (s *schemas) parameter(o map[string]any) (p parameter, schema any, err error) {
	p.name, _ = o["name"].(string)
	p.in, _ = o["in"].(string)
	p.required = o["required"] == true || p.in == "path"
	p.style.name = p.name
	styles, known := usualStyles[p.in]
	if !known || p.name == "" {
		return p, nil, fmt.Errorf("a parameter %.60q is in %.20q, which is not supported", p.name, p.in)
	}
	in := "the parameter " + p.name
	if content, ok := o["content"].(map[string]any); ok {
		for media, of := range content {
			if m, _, err := mime.ParseMediaType(media); len(content) == 1 && err == nil && isJSON(m) && p.in == "query" {
				p.style = style{kind: "json", name: p.name}
				of, _ := of.(map[string]any)
				schema, err = s.convert(orAny(of["schema"]), 0)
				return p, schema, within(in, err)
			}
		}
		return p, nil, fmt.Errorf("%s is described by content, which is supported only for JSON in a query", in)
	}
	kind, _ := o["style"].(string)
	if kind == "" {
		kind = styles[0]
	}
	if !slices.Contains(styles, kind) {
		return p, nil, fmt.Errorf("%s has the style %.30q, which is not supported in %s", in, kind, p.in)
	}
	explode, said := o["explode"].(bool)
	p.style.kind, p.style.explode = kind, explode || !said && kind == "form"
	if fault := p.unwritable(s.kinds(orAny(o["schema"]))); fault != "" {
		return p, nil, fmt.Errorf("%s %s", in, fault)
	}
	schema, err = s.convert(orAny(o["schema"]), 0)
	if err != nil {
		return p, nil, within(in, err)
	}
	return p, described(schema, o["description"]), nil
}

// orAny returns the given schema. For a missing schema, orAny returns a schema that allows all values.
func orAny(schema any) any {
	if schema == nil {
		return map[string]any{}
	}
	return schema
}

func within(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// described adds a description to a schema that has none.
func described(schema, description any) any {
	o, ok := schema.(map[string]any)
	text, given := description.(string)
	if ok && given && o["description"] == nil {
		o["description"] = text
	}
	return schema
}

// unwritable returns the reason why values of one of the types would be ambiguous in the parameter's style. If no
// type is ambiguous, unwritable returns "".
func (p *parameter) unwritable(kinds []string) string {
	list, object := slices.Contains(kinds, "array"), slices.Contains(kinds, "object")
	switch {
	case p.in == "cookie" && p.style.explode && (list || object):
		return "is a list or an object in a cookie, which has no standard notation"
	case p.style.kind == "deepObject" && (list || !object && len(kinds) > 0):
		return "has the style deepObject and is not an object"
	case strings.HasSuffix(p.style.kind, "Delimited") && object:
		return "is an object in the style " + p.style.kind + ", which has no standard notation"
	}
	return ""
}

// media lists the supported media types of bodies, in order of preference.
var media = []struct {
	is   func(string) bool
	kind bodyKind
}{
	{func(m string) bool { return m == "application/json" }, jsonBody},
	{isJSON, jsonBody},
	{func(m string) bool { return m == "application/x-www-form-urlencoded" }, formBody},
	{func(m string) bool { return m == "text/plain" }, textBody},
	{func(m string) bool { return m == "*/*" || m == "application/*" }, jsonBody},
}

func isJSON(m string) bool {
	return m == "application/json" || strings.HasSuffix(m, "+json") || m == "text/json"
}

// body reads an operation's request body, and returns it with the schema of its argument. If the operation has no
// body, the schema is nil.
func (s *schemas) body(op map[string]any) (b body, required bool, schema any, err error) {
	if op["requestBody"] == nil {
		return body{}, false, nil, nil
	}
	o, err := s.doc.object(op["requestBody"])
	if err != nil {
		return body{}, false, nil, fmt.Errorf("the body: %w", err)
	}
	content, _ := o["content"].(map[string]any)
	names := sortedKeys(content)
	for _, m := range media {
		for _, name := range names {
			kind, _, err := mime.ParseMediaType(name)
			if err != nil || !m.is(kind) {
				continue
			}
			of, _ := content[name].(map[string]any)
			if of["encoding"] != nil && m.kind == formBody {
				return body{}, false, nil, errors.New("the body's form has an encoding of its own, which is not supported")
			}
			b = body{kind: m.kind, mime: name}
			if strings.Contains(kind, "*") {
				b.mime = "application/json"
			}
			if m.kind == textBody {
				b.mime = "text/plain; charset=utf-8"
			}
			schema, err = s.convert(orAny(of["schema"]), 0)
			return b, o["required"] == true, described(schema, o["description"]), within("the body", err)
		}
	}
	return body{}, false, nil, fmt.Errorf("the body is %s; only JSON, a form or plain text is supported", strings.Join(names, " or "))
}
