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

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// Endpoint is a tool that is one HTTP request.
type Endpoint struct {
	Name        string
	Description string
	Method      string // GET, HEAD, POST, PUT, PATCH or DELETE
	Address     Address
	Headers     []Header
	Arguments   json.RawMessage // JSON Schema of the arguments
	Body        BodyKind
	Result      Result
	Timeout     time.Duration
	Effect      approvers.Effect
	// IdempotencyKey is the header for the execution's id. If IdempotencyKey is empty, the id is not sent.
	IdempotencyKey string
	Allow          []string // permitted private networks and hosts
	MaxResult      int      // the maximum size of the text for the model, in bytes
}

// Header is a request header. The value of a header may contain arguments and environment variables.
type Header struct {
	Name  string
	Value Template
}

// BodyKind is the format of a request's body. The body contains the arguments that are neither in the address nor in
// a header.
type BodyKind string

// The body formats.
const (
	BodyJSON BodyKind = "json"
	BodyForm BodyKind = "form"
	BodyNone BodyKind = "none"
)

// Result configures how a response is read.
type Result struct {
	Pointer string   // JSON Pointer to the part that the model gets; empty: the model gets everything
	As      string   // auto, json, text or file
	Status  []Status // statuses that mean success; empty: 200 to 299
}

// Status is an inclusive range of HTTP statuses.
type Status struct{ From, To int }

// Defaults and maximums of HTTP tools.
const (
	httpTimeout        = 30 * time.Second
	httpLongest        = 10 * time.Minute
	httpMaxResult      = 64 << 10
	httpLeastResult    = 1 << 10
	httpMostResult     = 1 << 20
	maxToolDescription = 1024 // limit of the model's interface
)

var (
	httpMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	httpKeys    = []string{"description", "method", "url", "headers", "arguments", "body", "result", "timeout", "effect", "idempotency_key", "allow", "max_result"}
	resultKinds = []string{"auto", "json", "text", "file"}
	fieldName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
)

// ownHeaders lists headers that the policy can't set, because the HTTP client sets them or because they name the host.
var ownHeaders = []string{
	"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// readEndpoints reads the HTTP tools.
func readEndpoints(v yamldoc.Value) []Endpoint {
	var out []Endpoint
	for _, e := range section(v, `the HTTP tools: name: {description: "…", url: "https://…"}`) {
		out = append(out, readEndpoint(e))
	}
	return out
}

func readEndpoint(e yamldoc.Entry) Endpoint {
	t := Endpoint{Name: e.Key, Method: "GET", Arguments: json.RawMessage(`{"type":"object","properties":{}}`), Timeout: httpTimeout, MaxResult: httpMaxResult}
	if !toolName.MatchString(e.Key) {
		e.Wrong("is not a valid name for a tool", "a name has 1 to 64 letters, digits, _, . and -")
	}
	f := e.Value.Fields(httpKeys...)
	for _, need := range [][2]string{{"description", `description: what it does and when to use it; the model chooses by it`}, {"url", `url: "https://api.example.com/v1/places/{place}"`}} {
		if !f.Has(need[0]) && e.Value.IsMapping() && f.Readable() {
			e.Wrong("the "+need[0]+" is missing", "add "+need[1])
		}
	}
	t.Description = readDescribed(f, "description")
	if m, ok := f.Choice("method", httpMethods); ok {
		t.Method = m
	}
	known := false
	if v, ok := f["url"]; ok {
		t.Address, known = readAddress(v)
	}
	if v, ok := f["headers"]; ok {
		t.Headers = readHeaders(v, true)
	}
	if v, ok := f["arguments"]; ok {
		t.Arguments = readSchema(v)
	}
	t.Body = t.usualBody()
	if b, ok := f.Choice("body", []string{string(BodyJSON), string(BodyForm), string(BodyNone)}); ok {
		t.Body = BodyKind(b)
		if t.Body != BodyNone && (t.Method == http.MethodGet || t.Method == http.MethodHead) {
			f["body"].Wrong("a "+t.Method+" has no body", "remove it, or write method: POST")
		}
	}
	if v, ok := f["result"]; ok {
		t.Result = readResult(v, t.Method)
	}
	f.Within("timeout", &t.Timeout, httpLongest)
	if v, ok := f["idempotency_key"]; ok {
		t.IdempotencyKey = readHeaderName(v, t.Headers)
	}
	t.Effect = t.usualEffect()
	if name, ok := f.Choice("effect", effectNames); ok {
		t.Effect = approvers.Effect(name)
	}
	if v, ok := f["allow"]; ok {
		t.Allow = readPermits(v)
	}
	if v, ok := f["max_result"]; ok {
		if n, ok := v.Size(httpLeastResult, httpMostResult); ok {
			t.MaxResult = n
		}
	}
	if known {
		readPlaced(e, f, t)
	}
	return t
}

// usualBody returns the default body format. The default is JSON for POST, PUT and PATCH. All other methods have no
// body by default.
func (t Endpoint) usualBody() BodyKind {
	if t.Method == http.MethodPost || t.Method == http.MethodPut || t.Method == http.MethodPatch {
		return BodyJSON
	}
	return BodyNone
}

// usualEffect returns the default of the tool's Effect, which says whether a second run repeats the effect.
func (t Endpoint) usualEffect() approvers.Effect {
	switch {
	case t.Method == http.MethodGet || t.Method == http.MethodHead:
		return approvers.ReadOnly
	case t.IdempotencyKey != "":
		return approvers.Idempotent
	}
	return approvers.Unprotected
}

// readPlaced checks that the request uses every argument, that every placeholder names an argument, and that no
// header sends a secret without encryption.
func readPlaced(e yamldoc.Entry, f yamldoc.Fields, t Endpoint) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if len(t.Arguments) == 0 || json.Unmarshal(t.Arguments, &schema) != nil {
		return // already reported
	}
	names := slices.Sorted(maps.Keys(schema.Properties))
	there := "it has no arguments"
	if len(names) > 0 {
		there = "its arguments are " + strings.Join(names, ", ")
	}
	use := func(wrong func(message, hint string), used []string) {
		for _, name := range used {
			if !slices.Contains(names, name) {
				wrong("{"+name+"} is not an argument of "+t.Name, yamldoc.OrHint(yamldoc.DidYouMean(name, names), there+"; add it to arguments, or write {{ for a literal brace"))
			}
		}
	}
	use(f["url"].Wrong, t.Address.Arguments())
	for _, name := range t.Address.Path.Arguments() {
		if slices.Contains(names, name) && !slices.Contains(schema.Required, name) {
			f["url"].Wrong("{"+name+"} is in the path, but the argument is optional", "add "+name+" to required in arguments")
		}
	}
	used := t.Address.Arguments()
	for _, h := range t.Headers {
		use(e.Value.Below("headers."+h.Name).Wrong, h.Value.Arguments())
		used = append(used, h.Value.Arguments()...)
		if len(h.Value.Variables()) > 0 && t.Address.Unencrypted() {
			f["url"].Wrong("would send a secret without encryption", "write https://")
			return
		}
	}
	if t.Body != BodyNone {
		return
	}
	for _, name := range names {
		if !slices.Contains(used, name) {
			f["arguments"].Wrong(name+" is used nowhere", "write {"+name+"} in the URL or in a header, or give the request a body")
		}
	}
}

// readDescribed reads the description of a tool for the model.
func readDescribed(f yamldoc.Fields, key string) string {
	v, ok := f[key]
	if !ok {
		return ""
	}
	text, _ := v.Text("what the tool does and when to use it")
	if n := len([]rune(text)); n > maxToolDescription {
		v.Wrong(fmt.Sprintf("has %d characters", n), fmt.Sprintf("write at most %d", maxToolDescription))
	}
	return text
}

// readHeaders reads request headers. The values may contain arguments if the tool has arguments.
func readHeaders(v yamldoc.Value, arguments bool) []Header {
	var out []Header
	for _, e := range v.Entries(`a mapping, such as Authorization: "Bearer ${API_TOKEN}"`) {
		if message, hint := badHeader(e.Key); message != "" {
			e.Wrong(message, hint)
			continue
		}
		if slices.ContainsFunc(out, func(h Header) bool { return strings.EqualFold(h.Name, e.Key) }) {
			e.Wrong("is given twice, in another spelling", "keep one of them")
			continue
		}
		t, ok := readTemplate(e.Value, "a header's value")
		if WrittenSecret(e.Key, t) {
			e.Value.Hide()
		}
		switch {
		case !ok:
		case strings.ContainsFunc(t.String(), func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			e.Value.Wrong("has a line break or another control character in it", "write it on one line")
		case !arguments && len(t.Arguments()) > 0:
			e.Value.Wrong("{"+t.Arguments()[0]+"} names an argument, but arguments can't be used here", "write ${NAME} for a variable of the environment, {{ for a literal brace")
		default:
			out = append(out, Header{Name: e.Key, Value: t})
		}
	}
	return out
}

// badHeader returns the reason why the policy can't set a header, or "".
func badHeader(name string) (message, hint string) {
	switch {
	case !fieldName.MatchString(name):
		return yamldoc.Quote(name) + " is not a header's name", "a header's name has letters, digits, - and _"
	case slices.Contains(ownHeaders, strings.ToLower(name)):
		return name + " is set by the request itself", "remove it"
	}
	return "", ""
}

// readHeaderName reads a header name. The name must differ from the names in others.
func readHeaderName(v yamldoc.Value, others []Header) string {
	name, ok := v.Free("a header's name, such as Idempotency-Key")
	if !ok {
		return ""
	}
	message, hint := badHeader(name)
	if slices.ContainsFunc(others, func(h Header) bool { return strings.EqualFold(h.Name, name) }) {
		message, hint = name+" is among the headers already", "remove it there; its value is the execution's id"
	}
	if message != "" {
		v.Wrong(message, hint)
		return ""
	}
	return name
}

// readSchema reads the JSON Schema of the arguments. The schema is compiled later, at registration.
func readSchema(v yamldoc.Value) json.RawMessage {
	const like = "a JSON Schema, such as {type: object, properties: {place: {type: string}}, required: [place]}"
	if !v.IsText() && !v.IsMapping() {
		if v.Readable() {
			v.Wrong("is "+v.Kind()+", and a schema is needed", "write "+like)
		}
		return nil
	}
	before := v.ProblemCount()
	raw := readArguments(v)
	if v.ProblemCount() > before {
		return nil
	}
	var schema struct {
		Type       any             `json:"type"`
		Properties json.RawMessage `json:"properties"`
	}
	var properties map[string]json.RawMessage
	switch err := json.Unmarshal(raw, &schema); {
	case err != nil:
		v.Wrong("is not a JSON Schema: "+plainJSON(err), "write "+like)
		return nil
	case schema.Type != "object":
		v.Wrong("a call's arguments are an object, and the schema does not say so", "write "+like)
		return nil
	case len(schema.Properties) > 0 && json.Unmarshal(schema.Properties, &properties) != nil:
		v.Wrong("properties is not a mapping", "write "+like)
		return nil
	}
	return raw
}

// plainJSON returns the message of a JSON error without terms of the Go language.
func plainJSON(err error) string {
	return strings.TrimPrefix(err.Error(), "json: ")
}

// readResult reads the settings for reading a response.
func readResult(v yamldoc.Value, method string) Result {
	out := Result{}
	f := v.Fields("pointer", "as", "status")
	if p, ok := f["pointer"]; ok {
		text, read := p.Free("a JSON Pointer such as /current/temperature")
		if read && (!strings.HasPrefix(text, "/") || badEscape.MatchString(text)) {
			p.Wrong(yamldoc.Quote(text)+" is not a JSON Pointer", "write one such as /items/0/name, with ~1 for a slash in a name and ~0 for ~")
		}
		out.Pointer = text
	}
	if as, ok := f.Choice("as", resultKinds); ok {
		out.As = as
		if out.Pointer != "" && as != "json" && as != "auto" {
			f["as"].Wrong("a pointer works only with JSON, not with "+as, "remove one of them")
		}
	}
	if s, ok := f["status"]; ok {
		items, list := s.List("[200, 404], or [2xx]")
		for _, item := range items {
			if st, ok := readStatus(item); ok {
				out.Status = append(out.Status, st)
			}
		}
		if list && len(items) == 0 {
			s.Wrong("is empty: no response would count as a success", "write [2xx], or leave it out")
		}
	}
	if method == "HEAD" && (out.Pointer != "" || out.As != "") {
		v.Wrong("the response to HEAD has no body", "write method: GET")
	}
	return out
}

// badEscape matches an invalid ~ escape in a JSON Pointer.
var badEscape = regexp.MustCompile(`~([^01]|$)`)

var statusClass = regexp.MustCompile(`^[2-5]xx$`)

// readStatus reads an HTTP status, or a class of statuses.
func readStatus(v yamldoc.Value) (Status, bool) {
	if class, ok := v.Word(); ok && statusClass.MatchString(class) {
		from := int(class[0]-'0') * 100
		return Status{from, from + 99}, true
	}
	n, ok := v.Whole(200, 599)
	return Status{n, n}, ok
}
