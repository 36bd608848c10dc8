package config

import (
	"path/filepath"
	"time"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// OpenAPI is a file that describes an HTTP API. Its operations become tools.
type OpenAPI struct {
	Name       string
	File       string   // path, relative to the working directory
	Data       []byte   // the file's content; nil: it is read from File
	Fault      error    // why Data could not be read
	URL        Template // the API's address, which replaces the address in the file; empty: the address in the file is used
	Headers    []Header // headers that are sent with every request; they contain no arguments of a call
	Query      []QueryPart
	Operations []string // operations that become tools, by operationId or generated name; empty: all
	Bare       bool     // the tools' names are the operations' names, without the API's name in front
	Timeout    time.Duration
	// Effects has the Effect of operations: whether a second run repeats the effect. By default, an operation that only
	// reads is read-only. All other operations are idempotent if IdempotencyKey is set, and otherwise unprotected.
	Effects        map[string]approvers.Effect
	IdempotencyKey string // the header for the execution's id; empty: none
	Allow          []string
	MaxResult      int // the maximum size of the text for the model, in bytes
}

var openAPIKeys = []string{"file", "url", "headers", "query", "operations", "prefix", "timeout", "effects", "idempotency_key", "allow", "max_result"}

// readOpenAPIs reads the OpenAPI entries.
func readOpenAPIs(v yamldoc.Value) []OpenAPI {
	var out []OpenAPI
	for _, e := range section(v, "the APIs: name: {file: petstore.yaml}") {
		out = append(out, readOpenAPI(e))
	}
	return out
}

func readOpenAPI(e yamldoc.Entry) OpenAPI {
	o := OpenAPI{Name: e.Key, Timeout: httpTimeout, MaxResult: httpMaxResult}
	if !serverName.MatchString(e.Key) {
		e.Wrong("is not a valid name for an API", "a name has 1 to 32 letters, digits, _ and -, and begins with a letter or digit")
	}
	f := e.Value.Fields(openAPIKeys...)
	if !f.Has("file") && e.Value.IsMapping() && f.Readable() {
		e.Wrong("the file is missing", "add file: petstore.yaml, an OpenAPI 3 description beside the policy file")
	}
	if v, ok := f["file"]; ok {
		if path, ok := v.Free("a file's path, such as petstore.yaml"); ok {
			if o.File = path; !filepath.IsAbs(path) {
				o.File = filepath.Join(filepath.Dir(e.Value.File()), path)
			}
		}
	}
	if v, ok := f["headers"]; ok {
		o.Headers = readHeaders(v, false)
	}
	if v, ok := f["query"]; ok {
		o.Query = readFixedQuery(v)
	}
	if v, ok := f["url"]; ok {
		o.URL = readBaseAddress(v, o)
	}
	if v, ok := f["operations"]; ok {
		if o.Operations = v.Texts("[getPet, listPets]", "an operation's id"); len(o.Operations) == 0 && v.Readable() && !v.Empty() {
			v.Wrong("names no operation", "leave it out for all of them, or write a list such as [getPet, listPets]")
		}
	}
	prefix := true
	f.Flag("prefix", &prefix)
	o.Bare = !prefix
	f.Within("timeout", &o.Timeout, httpLongest)
	if v, ok := f["effects"]; ok {
		o.Effects = readEffects(v)
	}
	if v, ok := f["idempotency_key"]; ok {
		o.IdempotencyKey = readHeaderName(v, o.Headers)
	}
	if v, ok := f["allow"]; ok {
		o.Allow = readPermits(v)
	}
	if v, ok := f["max_result"]; ok {
		if n, ok := v.Size(httpLeastResult, httpMostResult); ok {
			o.MaxResult = n
		}
	}
	return o
}

// readFixedQuery reads the query parameters that are added to every request.
func readFixedQuery(v yamldoc.Value) []QueryPart {
	var out []QueryPart
	for _, e := range v.Entries(`a mapping, such as api_key: "${API_KEY}"`) {
		t, ok := readTemplate(e.Value, "a value of the query")
		if WrittenSecret(e.Key, t) {
			e.Value.Hide()
		}
		switch {
		case !ok:
		case len(t.Arguments()) > 0:
			e.Value.Wrong("{"+t.Arguments()[0]+"} names an argument, but arguments can't be used here", "write ${NAME} for a variable of the environment, {{ for a literal brace")
		default:
			out = append(out, QueryPart{Name: Template{{Text: e.Key}}, Value: t})
		}
	}
	return out
}

func readBaseAddress(v yamldoc.Value, o OpenAPI) Template {
	a, ok := readAddress(v)
	switch {
	case !ok:
		return nil
	case len(a.Arguments()) > 0:
		v.Wrong("{"+a.Arguments()[0]+"} names an argument, but arguments can't be used here", "write ${NAME} for a variable of the environment")
		return nil
	case len(a.Query) > 0:
		v.Wrong("has a query", "write the parameters of every request under query:")
		return nil
	case a.Unencrypted() && o.secret():
		v.Wrong("would send a secret without encryption", "write https://")
	}
	return append(a.Base, a.Path...)
}

// secret reports whether requests contain values of the environment.
func (o OpenAPI) secret() bool {
	for _, h := range o.Headers {
		if len(h.Value.Variables()) > 0 {
			return true
		}
	}
	for _, q := range o.Query {
		if len(q.Value.Variables()) > 0 {
			return true
		}
	}
	return false
}
