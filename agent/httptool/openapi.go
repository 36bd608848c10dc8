package httptool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/config"
)

// OpenAPI creates a tool from each operation of a file. OpenAPI makes no connections and reads no other file. Each
// returned error is a [*Problem], which may be a warning. OpenAPI omits an operation that can't become a tool. The
// problem of an omitted operation is a warning, unless the policy names the operation. If lookup is nil, the tools
// can't run, and serve only for inspection.
func OpenAPI(c config.OpenAPI, lookup Lookup) ([]agent.Tool, []error) {
	a := &api{config: c, path: "openapi." + c.Name, lookup: lookup, wanted: slices.Clone(c.Operations)}
	doc, invalid, err := readDocument(c)
	if err != nil {
		return nil, []error{&Problem{Path: a.path + ".file", Message: err.Error(), Hint: "name an OpenAPI 3 description in YAML or JSON"}}
	}
	if invalid != "" {
		a.warn("the file violates the OpenAPI specification: "+invalid, "its operations are read as far as they can be")
	}
	a.doc = doc
	f := &filler{lookup: lookup}
	a.shared = &operation{headers: f.headers(c.Headers), timeout: c.Timeout, limit: c.MaxResult, base: f.text(c.URL), vague: lookup == nil && len(c.URL.Variables()) > 0}
	for _, q := range c.Query {
		a.shared.query = append(a.shared.query, field{name: escape(q.Name.String()), pieces: f.pieces(q.Value, escape)})
	}
	if err := a.shared.connect(a.path, f, c.Allow); err != nil {
		return nil, append(a.errs, err)
	}
	a.operations()
	for _, name := range a.wanted {
		a.wrong("there is no operation "+name, "the operations are "+listed(a.seen))
	}
	for name := range c.Effects {
		if !slices.Contains(a.seen, name) {
			a.errs = append(a.errs, &Problem{Path: a.path + ".effects." + name, Message: "there is no operation " + name, Hint: "the operations are " + listed(a.seen)})
		}
	}
	return a.tools, a.errs
}

// api holds the state of an OpenAPI file's conversion to tools.
type api struct {
	config config.OpenAPI
	path   string
	lookup Lookup
	doc    *document
	shared *operation // the common settings of all operations
	asked  []string   // authentication problems that were reported already
	wanted []string   // operations that the policy names and that are not found yet
	seen   []string   // names of operations
	tools  []agent.Tool
	trial  agent.Registry // used only to check whether a tool can be registered
	errs   []error
}

func (a *api) wrong(message, hint string) {
	a.errs = append(a.errs, &Problem{Path: a.path, Message: message, Hint: hint})
}

func (a *api) warn(message, hint string) {
	p := &Problem{Path: a.path, Message: message, Hint: hint, Warning: true}
	if !slices.ContainsFunc(a.errs, func(e error) bool { return e.Error() == p.Error() }) {
		a.errs = append(a.errs, p)
	}
}

// listed returns a list of names as text. The text has at most 20 names.
func listed(names []string) string {
	if len(names) > 20 {
		return strings.Join(names[:20], ", ") + fmt.Sprintf(" and %d more", len(names)-20)
	}
	return strings.Join(names, ", ")
}

var methods = []string{"get", "head", "post", "put", "patch", "delete", "options", "trace"}

// operations makes a tool from each wanted operation, in the order of the paths.
func (a *api) operations() {
	paths, _ := a.doc.root["paths"].(map[string]any)
	for _, path := range sortedKeys(paths) {
		item, err := a.doc.object(paths[path])
		if err != nil {
			a.warn(path+" was left out: "+err.Error(), "")
			continue
		}
		for _, method := range methods {
			op, ok := item[method].(map[string]any)
			if !ok {
				continue
			}
			if len(a.tools) == maxOperations {
				a.wrong(fmt.Sprintf("the file has more than %d operations", maxOperations), "name those that are wanted: operations: [getPet]")
				return
			}
			a.operation(strings.ToUpper(method), path, item, op)
		}
	}
}

// operation makes a tool from an operation. It skips an operation that the policy does not select, and reports an
// operation that can't become a tool.
func (a *api) operation(method, path string, item, op map[string]any) {
	name, _ := op["operationId"].(string)
	if name == "" {
		name = strings.ToLower(method) + strings.TrimRight("_"+strings.Trim(notPlain.ReplaceAllString(path, "_"), "_"), "_")
	}
	id := name
	name = plainName(name)
	a.seen = append(a.seen, name)
	if len(a.config.Operations) > 0 {
		if !slices.Contains(a.config.Operations, name) && !slices.Contains(a.config.Operations, id) {
			return
		}
		a.wanted = slices.DeleteFunc(a.wanted, func(w string) bool { return w == name || w == id })
	}
	tool, err := a.tool(method, path, name, item, op)
	if err == nil {
		err = a.trial.Register(tool)
	}
	switch {
	case err == nil:
		a.tools = append(a.tools, tool)
	case len(a.config.Operations) > 0:
		a.wrong(fmt.Sprintf("%s %s (%s) can't be a tool: %s", method, path, name, err), "take "+name+" out of operations")
	default:
		a.warn(fmt.Sprintf("%s %s (%s) was left out: %s", method, path, name, err), "")
	}
}

var errMethod = errors.New("its method is not supported")

func (a *api) tool(method, path, name string, item, op map[string]any) (agent.Tool, error) {
	if method == "OPTIONS" || method == "TRACE" {
		return agent.Tool{}, errMethod
	}
	o := *a.shared
	o.tool, o.method, o.placed = a.toolName(name), method, map[string]bool{}
	o.query, o.headers = slices.Clone(o.query), slices.Clone(o.headers)
	reads := method == "GET" || method == "HEAD"
	o.effect = approvers.Unprotected
	switch {
	case reads:
		o.effect = approvers.ReadOnly
	case a.config.IdempotencyKey != "":
		o.key, o.effect = a.config.IdempotencyKey, approvers.Idempotent
	}
	if said, ok := a.config.Effects[name]; ok {
		o.effect = said
	}
	server, err := a.server(&o, item, op)
	if err != nil {
		return agent.Tool{}, err
	}
	schema, err := a.arguments(&o, path, item, op)
	if err != nil {
		return agent.Tool{}, err
	}
	a.security(method, path, op)
	if err := o.aim(a.path); err != nil {
		return agent.Tool{}, err
	}
	risk := approvers.High
	if reads {
		risk = approvers.Low
	}
	idempotent := reads || method == "PUT" || method == "DELETE" // according to the definition of the HTTP methods
	title, _ := op["summary"].(string)
	return agent.Tool{
		Name: o.tool, Description: describe(method, path, op), Schema: schema, Effect: o.effect, Timeout: o.timeout + slack, Run: o.run,
		Definition: a.definition(method, path, server, item, op), Presumed: risk,
		Claims: workflow.Claims{Title: title, ReadOnly: &reads, Idempotent: &idempotent},
	}, nil
}

// toolName returns the operation's name with the API's name in front. A long name is shortened, and a part of the
// name's hash is added to keep the result unique.
func (a *api) toolName(name string) string {
	if !a.config.Bare {
		name = a.config.Name + "." + name
	}
	const longest, short = 64, 8
	if len(name) > longest {
		sum := sha256.Sum256([]byte(name))
		name = name[:longest-short-1] + "_" + hex.EncodeToString(sum[:])[:short]
	}
	return name
}

// describe returns the description of an operation for the model.
func describe(method, path string, op map[string]any) string {
	summary, _ := op["summary"].(string)
	description, _ := op["description"].(string)
	text := strings.TrimSpace(strings.TrimSpace(summary) + "\n" + strings.TrimSpace(description))
	if strings.TrimSpace(summary) == strings.TrimSpace(description) {
		text = strings.TrimSpace(summary)
	}
	if text == "" {
		text = method + " " + path
	}
	if op["deprecated"] == true {
		text = "Deprecated. " + text
	}
	const longest = 1024 // limit of the model's API, in characters
	if r := []rune(text); len(r) > longest {
		text = string(r[:longest-1]) + "…"
	}
	return text
}

// arguments assigns each argument to a part of the request, and returns the schema of all arguments.
func (a *api) arguments(o *operation, path string, item, op map[string]any) (json.RawMessage, error) {
	s := newSchemas(a.doc)
	list, err := a.doc.parameters(item, op)
	if err != nil {
		return nil, err
	}
	properties, required := map[string]any{}, []string{}
	inPath := map[string]piece{}
	for _, raw := range list {
		name, _ := raw["name"].(string)
		in, _ := raw["in"].(string)
		if ignored(name, in, a.config) {
			continue
		}
		p, schema, err := s.parameter(raw)
		if err != nil {
			return nil, err
		}
		if p.argument = plainName(p.name); properties[p.argument] != nil {
			p.argument += "_" + p.in
		}
		if properties[p.argument] != nil {
			return nil, fmt.Errorf("two parameters would become the argument %s", p.argument)
		}
		properties[p.argument], o.placed[p.argument] = schema, true
		if p.required {
			required = append(required, p.argument)
		}
		at := piece{arg: p.argument, style: p.style}
		switch p.in {
		case "path":
			inPath[p.name] = at
		case "query":
			o.query = append(o.query, field{name: escape(p.name), pieces: []piece{at}})
		case "header":
			o.headers = append(o.headers, field{name: p.name, pieces: []piece{at}})
		case "cookie":
			o.cookies = append(o.cookies, field{name: p.name, pieces: []piece{at}})
		}
	}
	if o.path, err = pathPieces(path, inPath); err != nil {
		return nil, err
	}
	b, needed, schema, err := s.body(op)
	if err != nil {
		return nil, err
	}
	if b.kind != noBody && o.method != "GET" && o.method != "HEAD" {
		if b.arg = "body"; properties[b.arg] != nil {
			b.arg = "request_body"
		}
		properties[b.arg], o.body = schema, b
		if needed {
			required = append(required, b.arg)
		}
	}
	for _, w := range s.warnings {
		a.warn(w, "")
	}
	return argumentsSchema(properties, required, s.defs)
}

// pathPieces splits a path's template. pathPieces returns an error if a placeholder has no parameter, or if a parameter
// has no placeholder.
func pathPieces(path string, params map[string]piece) ([]piece, error) {
	var out []piece
	used := map[string]bool{}
	for rest := path; rest != ""; {
		text, after, gap := strings.Cut(rest, "{")
		if text != "" {
			out = append(out, piece{text: literal(text)})
		}
		if !gap {
			break
		}
		name, behind, closed := strings.Cut(after, "}")
		p, known := params[name]
		if !closed || !known {
			return nil, fmt.Errorf("the path's {%.60s} is not a parameter", name)
		}
		out, used[name], rest = append(out, p), true, behind
	}
	for name := range params {
		if !used[name] {
			return nil, fmt.Errorf("the parameter %s is in the path, but the path has no {%s}", name, name)
		}
	}
	return out, nil
}

// literal percent-encodes the literal text of a path. Parts that are already encoded stay unchanged.
func literal(text string) string {
	var b strings.Builder
	for i, c := range []byte(text) {
		hex := c == '%' && i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2])
		if hex || strings.IndexByte(unreserved+"/:@!$&'()*+,;=", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }
