package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"countersign/agent"
	"countersign/agent/egress"
	"countersign/approvers"
	"countersign/config"
	"countersign/internal/redact"
)

// operation describes the requests of a tool and the evaluation of its responses.
type operation struct {
	tool    string
	method  string
	base    string   // scheme, host and path prefix
	host    *url.URL // scheme and host of base; requests are sent only there
	path    []piece
	query   []field
	headers []field
	cookies []field
	body    body
	placed  map[string]bool // arguments in the path, query, headers or cookies
	key     string          // header for the execution's id
	effect  approvers.Effect
	result  config.Result
	limit   int // the maximum size of the text for the model, in bytes
	timeout time.Duration
	guard   *egress.Guard
	client  *http.Client
	secrets redact.Values
	offline bool // the environment variables are unknown, so the tool can't run
	vague   bool // the address contains a variable, so the host is unknown while offline is set
}

// Problem is a fault in a declaration of the policy, or in an operation of an OpenAPI file.
type Problem struct {
	Path    string // path of the declaration in the policy file, such as http.weather
	Message string
	Hint    string
	Warning bool // the problem does not prevent the use of the other operations
}

func (p *Problem) Error() string {
	s := p.Path + ": " + p.Message
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// errUnknownEnvironment means that the tool can't run, and serves only for inspection.
var errUnknownEnvironment = errors.New("nothing was sent: the values of the environment are not known here")

// slack is the difference between the time limits of a run and of its request. The request ends before the run, so
// the run can report the outcome.
const slack = 5 * time.Second

// Tools creates a tool from each HTTP endpoint in the policy. Tools makes no connections. Each error is a [*Problem].
// Tools omits an endpoint with a problem that is not a warning. If lookup is nil, the tools can't run, and serve only
// for inspection.
func Tools(endpoints []config.Endpoint, lookup Lookup) ([]agent.Tool, []error) {
	var tools []agent.Tool
	var errs []error
	for _, e := range endpoints {
		o, err := newEndpoint(e, lookup)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		tools = append(tools, agent.Tool{
			Name: e.Name, Description: e.Description, Schema: e.Arguments, Effect: e.Effect, Timeout: e.Timeout + slack,
			Run: o.run, Definition: definition(e),
		})
	}
	return tools, errs
}

// newEndpoint returns the operation of a declared endpoint.
func newEndpoint(e config.Endpoint, lookup Lookup) (*operation, error) {
	path := "http." + e.Name
	f := &filler{lookup: lookup}
	raw := func(s string) string { return s }
	o := &operation{
		tool: e.Name, method: e.Method, base: f.text(e.Address.Base), path: f.pieces(e.Address.Path, raw), headers: f.headers(e.Headers),
		placed: map[string]bool{}, key: e.IdempotencyKey, effect: e.Effect, result: e.Result, limit: e.MaxResult, timeout: e.Timeout,
	}
	o.vague = lookup == nil && len(e.Address.Base.Variables()) > 0
	for _, q := range e.Address.Query {
		pieces := f.pieces(q.Value, escape)
		if len(pieces) == 1 && pieces[0].arg != "" {
			pieces[0].style = style{kind: "list", explode: true, name: q.Name.String()}
		}
		o.query = append(o.query, field{name: q.Name.String(), pieces: pieces})
	}
	for _, name := range e.Address.Arguments() {
		o.placed[name] = true
	}
	for _, h := range e.Headers {
		for _, name := range h.Value.Arguments() {
			o.placed[name] = true
		}
	}
	switch e.Body {
	case config.BodyJSON:
		o.body = body{kind: jsonBody, mime: "application/json"}
	case config.BodyForm:
		o.body = body{kind: formBody, mime: "application/x-www-form-urlencoded"}
	}
	if err := o.connect(path, f, e.Allow); err != nil {
		return nil, err
	}
	return o, o.aim(path)
}

// connect sets the HTTP client of an operation. connect also checks the values of environment variables in the
// operation's headers.
func (o *operation) connect(path string, f *filler, allow []string) error {
	if len(f.missing) > 0 {
		return &Problem{Path: path, Message: strings.Join(f.missing, " and ") + " is not set in the environment", Hint: "set it, or take ${" + f.missing[0] + "} out"}
	}
	guard, err := egress.New(allow...)
	if err != nil {
		return &Problem{Path: path + ".allow", Message: err.Error()}
	}
	o.guard, o.client, o.secrets = guard, guard.Client(egress.Options{}), redact.NewValues(f.values)
	o.offline = f.lookup == nil
	for _, h := range o.headers {
		for _, p := range h.pieces {
			if strings.ContainsFunc(p.text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return &Problem{Path: path + ".headers." + h.name, Message: "has a line break or another control character in it", Hint: "check the environment variable in its value"}
			}
		}
	}
	return nil
}

// aim sets the host to which all requests are sent.
func (o *operation) aim(path string) error {
	if o.vague {
		return nil
	}
	var err error
	if o.host, err = url.Parse(o.base); err != nil || o.host.Host == "" {
		return &Problem{Path: path + ".url", Message: "the value from the environment is not a URL of a server", Hint: "write one such as https://api.example.com"}
	}
	err = o.guard.CheckURL(o.host)
	refused := (*egress.Refused)(nil)
	switch {
	case errors.As(err, &refused) && refused.Permit != "":
		return &Problem{Path: path + ".url", Message: err.Error(), Hint: "if that address is right, add allow: [" + refused.Permit + "]"}
	case err != nil:
		return &Problem{Path: path + ".url", Message: err.Error(), Hint: "write an address such as https://api.example.com"}
	}
	return nil
}

// definition returns the declaration of the request, without values of environment variables. The tool's hash covers
// the result. If the declaration changes, approvals for the tool become invalid.
func definition(e config.Endpoint) json.RawMessage {
	query := ""
	for i, q := range e.Address.Query {
		query += fmt.Sprintf("%c%s=%s", "?&"[min(i, 1)], q.Name, q.Value)
	}
	out, err := json.Marshal(struct {
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
		Body    config.BodyKind   `json:"body"`
		Result  config.Result     `json:"result"`
		Key     string            `json:"idempotency_key,omitempty"`
		Allow   []string          `json:"allow,omitempty"`
	}{e.Method, e.Address.Base.String() + e.Address.Path.String() + query, shown(e.Headers), e.Body, e.Result, e.IdempotencyKey, e.Allow})
	return encoded(out, err)
}

// shown returns headers as declared, without values of environment variables and without literal secrets.
func shown(headers []config.Header) map[string]string {
	out := map[string]string{}
	for _, h := range headers {
		if out[h.Name] = h.Value.String(); redact.Header(h.Name) && len(h.Value.Variables()) == 0 {
			out[h.Name] = "(written out)"
		}
	}
	return out
}

// encoded returns out, and panics if err is not nil. Use it for values whose encoding can't fail.
func encoded(out []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return out
}
