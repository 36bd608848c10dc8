package config

import (
	"path/filepath"
	"time"

	"countersign/approvers"
)

// OpenAPI is a file that describes an HTTP API, each operation of which becomes a tool.
type OpenAPI struct {
	Name       string
	File       string   // the path, from where the policy file is read
	URL        Template // where the API is, in place of what the file says; empty: as the file says
	Headers    []Header // sent with every request; no arguments stand in them
	Query      []QueryPart
	Operations []string // those that become tools, by operationId or the name that was made for them; empty: all
	Bare       bool     // the tools are called as the operations are, without the name before them
	Timeout    time.Duration
	// Effects is what a second run of an operation would do. Where nothing is said, what reads is read-only and all else unprotected, or idempotent where there is an IdempotencyKey.
	Effects        map[string]approvers.Effect
	IdempotencyKey string // the header that the execution's id goes along in; empty: none
	Allow          []string
	MaxResult      int // bytes of text that the model is given
}

var openAPIKeys = []string{"file", "url", "headers", "query", "operations", "prefix", "timeout", "effects", "idempotency_key", "allow", "max_result"}

// openAPIs reads the files that describe APIs.
func (r *reader) openAPIs(v value) []OpenAPI {
	var out []OpenAPI
	for _, e := range section(v, "the APIs: name: {file: petstore.yaml}") {
		out = append(out, r.openAPI(e))
	}
	return out
}

func (r *reader) openAPI(e entry) OpenAPI {
	o := OpenAPI{Name: e.key, Timeout: httpTimeout, MaxResult: httpMaxResult}
	if !serverName.MatchString(e.key) {
		r.wrongAt(e.at, e.value.path+": no API can be called that", "a name has 1 to 32 letters, digits, _ and -, and begins with a letter or digit")
	}
	f := e.value.fields(openAPIKeys...)
	if !f.has("file") && e.value.isMapping() && f.readable() {
		r.wrongAt(e.at, e.value.path+": the file is missing", "add file: petstore.yaml, an OpenAPI 3 description beside the policy file")
	}
	if v, ok := f["file"]; ok {
		if path, ok := v.free("a file's path, such as petstore.yaml"); ok {
			if o.File = path; !filepath.IsAbs(path) {
				o.File = filepath.Join(filepath.Dir(r.file.Name), path)
			}
		}
	}
	if v, ok := f["headers"]; ok {
		o.Headers = v.headers(false)
	}
	if v, ok := f["query"]; ok {
		o.Query = v.fixedQuery()
	}
	if v, ok := f["url"]; ok {
		o.URL = v.baseAddress(o)
	}
	if v, ok := f["operations"]; ok {
		if o.Operations = v.texts("[getPet, listPets]", "an operation's id"); len(o.Operations) == 0 && v.node != nil && !v.empty() {
			v.wrong("names no operation", "leave it out for all of them, or write a list such as [getPet, listPets]")
		}
	}
	prefix := true
	f.flag("prefix", &prefix)
	o.Bare = !prefix
	f.within("timeout", &o.Timeout, httpLongest)
	if v, ok := f["effects"]; ok {
		o.Effects = v.effects()
	}
	if v, ok := f["idempotency_key"]; ok {
		o.IdempotencyKey = v.headerName(o.Headers)
	}
	if v, ok := f["allow"]; ok {
		o.Allow = v.allow()
	}
	if v, ok := f["max_result"]; ok {
		if n, ok := v.size(httpLeastResult, httpMostResult); ok {
			o.MaxResult = n
		}
	}
	return o
}

// fixedQuery reads what is added to the query of every request.
func (v value) fixedQuery() []QueryPart {
	var out []QueryPart
	for _, e := range v.entries(`a mapping, such as api_key: "${API_KEY}"`) {
		t, ok := e.value.template("a value of the query")
		switch {
		case !ok:
		case len(t.Arguments()) > 0:
			e.value.wrong("{"+t.Arguments()[0]+"} stands for an argument, and there are none here", "write ${NAME} for a variable of the environment, {{ for a brace that is meant as it is")
		default:
			out = append(out, QueryPart{Name: Template{{Text: e.key}}, Value: t})
		}
	}
	return out
}

// baseAddress reads where an API is.
func (v value) baseAddress(o OpenAPI) Template {
	a, ok := v.address()
	switch {
	case !ok:
		return nil
	case len(a.Arguments()) > 0:
		v.wrong("{"+a.Arguments()[0]+"} stands for an argument, and there are none here", "write ${NAME} for a variable of the environment")
		return nil
	case len(a.Query) > 0:
		v.wrong("has a query", "write what goes into every query into query:")
		return nil
	case a.unencrypted() && o.secret():
		v.wrong("would send a secret without encryption", "write https://")
	}
	return append(a.Base, a.Path...)
}

// secret reports whether something of the environment is sent along.
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
