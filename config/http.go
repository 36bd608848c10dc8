package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

// Endpoint is a tool that is one HTTP request.
type Endpoint struct {
	Name        string
	Description string
	Method      string // GET, HEAD, POST, PUT, PATCH or DELETE
	Address     Address
	Headers     []Header
	Arguments   json.RawMessage // the JSON Schema of the arguments
	Body        BodyKind
	Result      Result
	Timeout     time.Duration
	Effect      approvers.Effect
	// IdempotencyKey is the header that the execution's id goes along in; empty: none.
	IdempotencyKey string
	Allow          []string // networks and hosts that the address may lead to although they are private
	MaxResult      int      // bytes of text that the model is given
}

// Header is a header of a request. Arguments and variables of the environment may stand in its value.
type Header struct {
	Name  string
	Value Template
}

// BodyKind is how those arguments that stand neither in the address nor in a header become the body.
type BodyKind string

// The kinds of bodies.
const (
	BodyJSON BodyKind = "json"
	BodyForm BodyKind = "form"
	BodyNone BodyKind = "none"
)

// Result is how an answer is read.
type Result struct {
	Pointer string   // a JSON Pointer to what the model is given; empty: all of it
	As      string   // auto, json, text or file
	Status  []Status // which statuses count as done; empty: 200 to 299
}

// Status is a span of HTTP statuses, both ends included.
type Status struct{ From, To int }

// What holds for HTTP tools where the policy says nothing, and the most that it can say.
const (
	httpTimeout        = 30 * time.Second
	httpLongest        = 10 * time.Minute
	httpMaxResult      = 64 << 10
	httpLeastResult    = 1 << 10
	httpMostResult     = 1 << 20
	maxToolDescription = 1024 // the model's interface takes no more characters
)

var (
	httpMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	httpKeys    = []string{"description", "method", "url", "headers", "arguments", "body", "result", "timeout", "effect", "idempotency_key", "allow", "max_result"}
	resultKinds = []string{"auto", "json", "text", "file"}
	fieldName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
)

// ownHeaders are set by the request itself, or name the host.
var ownHeaders = []string{
	"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// endpoints reads the HTTP tools.
func (r *reader) endpoints(v value) []Endpoint {
	var out []Endpoint
	for _, e := range section(v, `the HTTP tools: name: {description: "…", url: "https://…"}`) {
		out = append(out, r.endpoint(e))
	}
	return out
}

func (r *reader) endpoint(e entry) Endpoint {
	t := Endpoint{Name: e.key, Method: "GET", Arguments: json.RawMessage(`{"type":"object","properties":{}}`), Timeout: httpTimeout, MaxResult: httpMaxResult}
	if !toolName.MatchString(e.key) {
		r.wrongAt(e.at, e.value.path+": no tool can be called that", "a name has 1 to 64 letters, digits, _, . and -")
	}
	f := e.value.fields(httpKeys...)
	for _, need := range [][2]string{{"description", `description: what it does and when to use it; the model chooses by it`}, {"url", `url: "https://api.example.com/v1/places/{place}"`}} {
		if !f.has(need[0]) && e.value.isMapping() && f.readable() {
			r.wrongAt(e.at, e.value.path+": the "+need[0]+" is missing", "add "+need[1])
		}
	}
	t.Description = f.described("description")
	if m, ok := f.choice("method", httpMethods); ok {
		t.Method = m
	}
	known := false
	if v, ok := f["url"]; ok {
		t.Address, known = v.address()
	}
	if v, ok := f["headers"]; ok {
		t.Headers = v.headers(true)
	}
	if v, ok := f["arguments"]; ok {
		t.Arguments = v.schema()
	}
	t.Body = t.usualBody()
	if b, ok := f.choice("body", []string{string(BodyJSON), string(BodyForm), string(BodyNone)}); ok {
		t.Body = BodyKind(b)
		if t.Body != BodyNone && (t.Method == http.MethodGet || t.Method == http.MethodHead) {
			f["body"].wrong("a "+t.Method+" has no body", "remove it, or write method: POST")
		}
	}
	if v, ok := f["result"]; ok {
		t.Result = v.result(t.Method)
	}
	f.within("timeout", &t.Timeout, httpLongest)
	if v, ok := f["idempotency_key"]; ok {
		t.IdempotencyKey = v.headerName(t.Headers)
	}
	t.Effect = t.usualEffect()
	if name, ok := f.choice("effect", effectNames); ok {
		t.Effect = approvers.Effect(name)
	}
	if v, ok := f["allow"]; ok {
		t.Allow = v.allow()
	}
	if v, ok := f["max_result"]; ok {
		if n, ok := v.size(httpLeastResult, httpMostResult); ok {
			t.MaxResult = n
		}
	}
	if known {
		r.placed(e, f, t)
	}
	return t
}

// usualBody is the body where nothing is said: JSON for what writes, if anything is left for it.
func (t Endpoint) usualBody() BodyKind {
	if t.Method == http.MethodPost || t.Method == http.MethodPut || t.Method == http.MethodPatch {
		return BodyJSON
	}
	return BodyNone
}

// usualEffect is what a second run would do, where nothing is said.
func (t Endpoint) usualEffect() approvers.Effect {
	switch {
	case t.Method == http.MethodGet || t.Method == http.MethodHead:
		return approvers.ReadOnly
	case t.IdempotencyKey != "":
		return approvers.Idempotent
	}
	return approvers.Unprotected
}

// placed makes sure that every argument has a place, and every place an argument.
func (r *reader) placed(e entry, f fieldset, t Endpoint) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if len(t.Arguments) == 0 || json.Unmarshal(t.Arguments, &schema) != nil {
		return // that was said
	}
	names := slices.Sorted(maps.Keys(schema.Properties))
	there := "it has no arguments"
	if len(names) > 0 {
		there = "its arguments are " + strings.Join(names, ", ")
	}
	use := func(v value, used []string) {
		for _, name := range used {
			if !slices.Contains(names, name) {
				v.wrong("{"+name+"} is no argument of "+t.Name, orHint(didYouMean(name, names), there+"; add it to arguments, or write {{ for a brace that is meant as it is"))
			}
		}
	}
	use(f["url"], t.Address.Arguments())
	for _, name := range t.Address.Path.Arguments() {
		if slices.Contains(names, name) && !slices.Contains(schema.Required, name) {
			f["url"].wrong("{"+name+"} stands in the path and may be missing", "add "+name+" to required in arguments")
		}
	}
	used := t.Address.Arguments()
	for i, h := range t.Headers {
		use(value{r: r, path: fmt.Sprintf("%s.headers.%s", e.value.path, t.Headers[i].Name)}, h.Value.Arguments())
		used = append(used, h.Value.Arguments()...)
		if len(h.Value.Variables()) > 0 && t.Address.unencrypted() {
			f["url"].wrong("would send a secret without encryption", "write https://")
			return
		}
	}
	if t.Body != BodyNone {
		return
	}
	for _, name := range names {
		if !slices.Contains(used, name) {
			f["arguments"].wrong(name+" is used nowhere", "write {"+name+"} in the address or in a header, or give the request a body")
		}
	}
}

// described reads what the model is told of a tool.
func (f fieldset) described(key string) string {
	v, ok := f[key]
	if !ok {
		return ""
	}
	text, _ := v.text("what the tool does and when to use it")
	if n := len([]rune(text)); n > maxToolDescription {
		v.wrong(fmt.Sprintf("has %d characters", n), fmt.Sprintf("write at most %d", maxToolDescription))
	}
	return text
}

// within reads a time that may not be longer than some other.
func (f fieldset) within(key string, to *time.Duration, longest time.Duration) {
	if v, ok := f[key]; ok && f.duration(key, to) && *to > longest {
		v.wrong(v.shown()+" is too long: the longest is "+span(longest), "write a time such as 10s or 2m")
	}
}

// headers reads the headers of a request. Arguments may stand in them where there are any.
func (v value) headers(arguments bool) []Header {
	var out []Header
	for _, e := range v.entries(`a mapping, such as Authorization: "Bearer ${API_TOKEN}"`) {
		if message, hint := badHeader(e.key); message != "" {
			v.r.wrongAt(e.at, e.value.path+": "+message, hint)
			continue
		}
		if slices.ContainsFunc(out, func(h Header) bool { return strings.EqualFold(h.Name, e.key) }) {
			v.r.wrongAt(e.at, e.value.path+": is given twice, in another spelling", "keep one of them")
			continue
		}
		t, ok := e.value.template("a header's value")
		switch {
		case !ok:
		case strings.ContainsFunc(t.String(), func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			e.value.wrong("has a line break or another control character in it", "write it on one line")
		case !arguments && len(t.Arguments()) > 0:
			e.value.wrong("{"+t.Arguments()[0]+"} stands for an argument, and there are none here", "write ${NAME} for a variable of the environment, {{ for a brace that is meant as it is")
		default:
			out = append(out, Header{Name: e.key, Value: t})
		}
	}
	return out
}

// badHeader says why a header can't be set, or "".
func badHeader(name string) (message, hint string) {
	switch {
	case !fieldName.MatchString(name):
		return quote(name) + " is no header's name", "a header's name has letters, digits, - and _"
	case slices.Contains(ownHeaders, strings.ToLower(name)):
		return name + " is set by the request itself", "remove it"
	}
	return "", ""
}

// headerName reads the name of a header that is not among others.
func (v value) headerName(others []Header) string {
	name, ok := v.free("a header's name, such as Idempotency-Key")
	if !ok {
		return ""
	}
	message, hint := badHeader(name)
	if slices.ContainsFunc(others, func(h Header) bool { return strings.EqualFold(h.Name, name) }) {
		message, hint = name+" is among the headers already", "remove it there; its value is the execution's id"
	}
	if message != "" {
		v.wrong(message, hint)
		return ""
	}
	return name
}

// schema reads the JSON Schema of arguments. That it compiles is found when the tool is registered.
func (v value) schema() json.RawMessage {
	const like = "a JSON Schema, such as {type: object, properties: {place: {type: string}}, required: [place]}"
	if _, text := v.node.(*ast.StringNode); !text && !v.isMapping() {
		if v.node != nil {
			v.wrong("is "+kindOf(v.node)+", and a schema is needed", "write "+like)
		}
		return nil
	}
	raw := v.arguments()
	var schema struct {
		Type       any             `json:"type"`
		Properties json.RawMessage `json:"properties"`
	}
	var properties map[string]json.RawMessage
	switch err := json.Unmarshal(raw, &schema); {
	case err != nil:
		v.wrong("is no JSON Schema: "+plainJSON(err), "write "+like)
		return nil
	case schema.Type != "object":
		v.wrong("a call's arguments are an object, and the schema does not say so", "write "+like)
		return nil
	case len(schema.Properties) > 0 && json.Unmarshal(schema.Properties, &properties) != nil:
		v.wrong("properties is no mapping", "write "+like)
		return nil
	}
	return raw
}

// plainJSON is what json says is wrong, without Go's names for things.
func plainJSON(err error) string {
	return strings.TrimPrefix(err.Error(), "json: ")
}

// result reads how an answer is read.
func (v value) result(method string) Result {
	out := Result{}
	f := v.fields("pointer", "as", "status")
	if p, ok := f["pointer"]; ok {
		text, read := p.free("a JSON Pointer such as /current/temperature")
		if read && (!strings.HasPrefix(text, "/") || badEscape.MatchString(text)) {
			p.wrong(quote(text)+" is no JSON Pointer", "write one such as /items/0/name, with ~1 for a slash in a name and ~0 for ~")
		}
		out.Pointer = text
	}
	if as, ok := f.choice("as", resultKinds); ok {
		out.As = as
		if out.Pointer != "" && as != "json" && as != "auto" {
			f["as"].wrong("a pointer reads JSON, and no "+as, "remove one of them")
		}
	}
	if s, ok := f["status"]; ok {
		items, list := s.list("[200, 404], or [2xx]")
		for _, item := range items {
			if st, ok := item.status(); ok {
				out.Status = append(out.Status, st)
			}
		}
		if list && len(items) == 0 {
			s.wrong("is empty: no answer would count", "write [2xx], or leave it out")
		}
	}
	if method == "HEAD" && (out.Pointer != "" || out.As != "") {
		v.wrong("the answer to a HEAD has no body", "write method: GET")
	}
	return out
}

// badEscape is a ~ that JSON Pointer knows no meaning of.
var badEscape = regexp.MustCompile(`~([^01]|$)`)

var statusClass = regexp.MustCompile(`^[2-5]xx$`)

// status reads an HTTP status, or a class of them.
func (v value) status() (Status, bool) {
	if n, ok := v.node.(*ast.StringNode); ok && statusClass.MatchString(n.Value) {
		from := int(n.Value[0]-'0') * 100
		return Status{from, from + 99}, true
	}
	n, ok := v.whole(200, 599)
	return Status{n, n}, ok
}
