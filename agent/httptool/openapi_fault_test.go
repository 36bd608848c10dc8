package httptool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"countersign/agent"
	"countersign/agent/httptool"
	"countersign/config"
)

// head is the beginning of an OpenAPI file, up to its operations.
const head = "openapi: 3.1.0\ninfo: {title: x, version: '1'}\nservers: [{url: https://api.example.com}]\npaths:\n"

// one returns an OpenAPI file with one operation. The operation has the given members.
func one(members string) string {
	return head + "  /it/{id}:\n    post: {operationId: it, responses: {'200': {description: ok}}, " + members + "}\n"
}

const id = "{name: id, in: path, required: true, schema: {type: string}}"

// Errors in a file or an operation are reported. If one operation is left out, the other operations still become tools.
func TestFaultyFiles(t *testing.T) {
	nested := strings.Repeat("{items: ", 250) + "true" + strings.Repeat("}", 250)
	large := make([]string, 3000)
	for i := range large {
		large[i] = fmt.Sprintf("property%d: {type: string, maxLength: %d}", i, i)
	}
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'h'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for _, tt := range []struct{ name, text, policy, want string }{
		{"nothing", "", "", "is not an OpenAPI description"},
		{"a list", "[1]", "", "is not an OpenAPI description"},
		{"no YAML", "a: [", "", "is neither JSON nor YAML"},
		{"Swagger", "swagger: '2.0'\n", "", "uses OpenAPI 2 (Swagger)"},
		{"a later version", "openapi: 4.0.0\n", "", `is of OpenAPI version "4.0.0"`},
		{"a version of a number", "openapi: 3.1\ninfo: {title: x, version: 1}\npaths: {}\n", "", ""},
		{"a key twice", head + "  /a: {}\n  /a: {}\n", "", "twice"},
		{"a key that is not text", "openapi: 3.1.0\n? [a]\n: b\n", "", "a key on line 2 that is not text"},
		{"a bomb", "openapi: 3.1.0\n" + bomb, "", "is too large: it has more than"},
		{"an alias of itself", "openapi: 3.1.0\nx: &a [*a]\n", "", "is"},
		{"a merge of no mapping", "openapi: 3.1.0\nx: {<<: [1]}\n", "", "merge"},
		{"a file elsewhere", one("parameters: [" + id + "], requestBody: {content: {application/json: {schema: {$ref: 'other.yaml#/x'}}}}"), "", "is not an OpenAPI description: "},
		{"a host", one("parameters: [" + id + "], requestBody: {content: {application/json: {schema: {$ref: 'http://169.254.169.254/x'}}}}"), "", "is not an OpenAPI description: "},
		{"a reference to nothing", one("parameters: [" + id + "], requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/None'}}}}"), "", "is not an OpenAPI description: "},
		{"a parameter that is none", one("parameters: [{$ref: '#/components/parameters/none'}]"), "", "is not an OpenAPI description: "},
		{"no server", strings.Replace(one("parameters: ["+id+"]"), "servers: [{url: https://api.example.com}]", "x-a: 1", 1), "", "names no server; write url: in the policy"},
		{"a server without a host", strings.Replace(one("parameters: ["+id+"]"), "https://api.example.com", "/v1", 1), "", `the file's server "/v1" names no host; write url: in the policy`},
		{"a server with a query", strings.Replace(one("parameters: ["+id+"]"), "https://api.example.com", "'https://api.example.com/?a=b'", 1), "", "has more than a path"},
		{"a server in an unusual notation", strings.Replace(one("parameters: ["+id+"]"), "https://api.example.com", "https://0x7f000001", 1), "", "unusual notation"},
		{"a server without encryption", strings.Replace(one("parameters: ["+id+"]"), "https://api", "http://api", 1), "headers: {X: '${API_KEY}'}", "would be sent a secret without encryption"},
		{"a server whose name begins as a loopback address does", strings.Replace(one("parameters: ["+id+"]"), "https://api", "http://127.api", 1), "headers: {X: '${API_KEY}'}", "would be sent a secret without encryption"},
		{"a path without its parameter", one(""), "", "the path's {id} is not a parameter"},
		{"a parameter without its path", one("parameters: [" + id + ", {name: other, in: path, required: true, schema: {type: string}}]"), "", "the parameter other is in the path"},
		{"another place", one("parameters: [" + id + ", {name: x, in: querystring, schema: {type: string}}]"), "", `a parameter "x" is in "querystring"`},
		{"another style", one("parameters: [" + id + ", {name: x, in: query, style: matrix, schema: {type: string}}]"), "", `x has the style "matrix", which is not supported in query`},
		{"deepObject of a list", one("parameters: [" + id + ", {name: x, in: query, style: deepObject, explode: true, schema: {type: array, items: {type: string}}}]"), "", "x has the style deepObject and is not an object"},
		{"pipes of an object", one("parameters: [" + id + ", {name: x, in: query, style: pipeDelimited, schema: {allOf: [{type: object}]}}]"), "", "x is an object in the style pipeDelimited"},
		{"a parameter in XML", one("parameters: [" + id + ", {name: x, in: query, content: {application/xml: {schema: {type: string}}}}]"), "", "x is described by content"},
		{"two parameters of one name", one("parameters: [" + id + ", {name: 'a b', in: query, schema: {}}, {name: 'a?b', in: query, schema: {}}, {name: 'a!b', in: query, schema: {}}]"), "", "two parameters would become the argument a_b_query"},
		{"a body in XML", one("parameters: [" + id + "], requestBody: {content: {application/xml: {schema: {type: string}}}}"), "", "the body is application/xml"},
		{"a form with an encoding", one("parameters: [" + id + "], requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object}, encoding: {a: {style: form}}}}}"), "", "an encoding of its own"},
		{"a dynamic reference", one("parameters: [" + id + "], requestBody: {content: {application/json: {schema: {$dynamicRef: '#x'}}}}"), "", "$dynamicRef"},
		{"a deep schema", one("parameters: [" + id + "], requestBody: {content: {application/json: {schema: " + nested + "}}}"), "", "is too large"},
		{"a large schema", one("parameters: [" + id + "], requestBody: {content: {application/json: {schema: {type: object, properties: {" + strings.Join(large, ", ") + "}}}}}"), "", "KB, and the model is given at most 64"},
		{"an operation that there is not", one("parameters: [" + id + "]"), "operations: [it, that]", "there is no operation that; the operations are it"},
		{"an operation that can't be", one(""), "operations: [it]", "POST /it/{id} (it) can't be a tool: the path's {id} is not a parameter; take it out of operations"},
		{"an effect of nothing", one("parameters: [" + id + "]"), "effects: {that: read-only}", "openapi.it.effects.that: there is no operation that"},
		{"a variable that is missing", one("parameters: [" + id + "]"), "headers: {X: '${NOT_SET}'}", "NOT_SET is not set in the environment"},
		{"no valid description", strings.Replace(one("parameters: ["+id+"]"), "title: x, ", "", 1), "", "the file violates the OpenAPI specification: "},
		{"a certificate", one("parameters: ["+id+"], security: [{c: []}]") + "components: {securitySchemes: {c: {type: mutualTLS}}}\n", "", "a client certificate (mutualTLS)"},
		{"a key in the query", one("parameters: ["+id+"], security: [{c: []}]") + "components: {securitySchemes: {c: {type: apiKey, in: query, name: k}}}\n", "", `add query: {k: "${API_KEY}"}`},
		{"a key in a cookie", one("parameters: ["+id+"], security: [{c: []}]") + "components: {securitySchemes: {c: {type: apiKey, in: cookie, name: k}}}\n", "", `add headers: {Cookie: "k=${API_KEY}"}`},
		{"a name and a password", one("parameters: ["+id+"], security: [{c: []}]") + "components: {securitySchemes: {c: {type: http, scheme: basic}}}\n", "", `add headers: {Authorization: "Basic ${CREDENTIALS}"`},
		{"another scheme", one("parameters: ["+id+"], security: [{c: []}]") + "components: {securitySchemes: {c: {type: http, scheme: digest}}}\n", "", `add headers: {Authorization: "digest ${CREDENTIALS}"}`},
		{"OAuth", one("parameters: ["+id+"], security: [{c: [read]}]") + "components: {securitySchemes: {c: {type: openIdConnect, openIdConnectUrl: https://x.example}}}\n", "", `add headers: {Authorization: "Bearer ${TOKEN}"}`},
		{"a key that is there", one("parameters: ["+id+"], security: [{c: []}]") + "components: {securitySchemes: {c: {type: apiKey, in: query, name: k}}}\n", "query: {k: '${API_KEY}'}", ""},
		{"nobody needs to be known", one("parameters: ["+id+"], security: [{c: []}, {}]") + "components: {securitySchemes: {c: {type: apiKey, in: query, name: k}}}\n", "", ""},
		{"a type that there is not", one("parameters: [{name: id, in: path, required: true, schema: {type: file}}]"), "", "POST /it/{id} (it) was left out: tool not registered: it.it: the schema"},
		{"a name twice", head + "  /a: {get: {operationId: x y, responses: {'200': {description: ok}}}}\n  /b: {get: {operationId: x_y, responses: {'200': {description: ok}}}}\n", "", "GET /b (x_y) was left out: tool not registered: it.x_y: there is a tool of that name already"},
		{"a path that is none", head + "  /a: {$ref: '#/components/none'}\n", "", "is not an OpenAPI description"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, errs := api(t, nil, written(t, tt.text), tt.policy)
			var all strings.Builder
			for _, err := range errs {
				all.WriteString(err.Error() + "\n")
			}
			if tt.want == "" && len(errs) > 0 || !strings.Contains(all.String(), tt.want) {
				t.Errorf("%q, want %q", all.String(), tt.want)
			}
		})
	}
	for path, want := range map[string]string{filepath.Join(t.TempDir(), "none.yaml"): "no such file", t.TempDir(): "is a directory"} {
		if _, errs := api(t, nil, path, ""); len(errs) != 1 || !strings.Contains(errs[0].Error(), "openapi.it.file: can't be read: ") || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%v", errs)
		}
	}
	huge := written(t, "openapi: 3.1.0\n"+strings.Repeat("#", 9<<20))
	if _, errs := api(t, nil, huge, ""); len(errs) != 1 || !strings.Contains(errs[0].Error(), "larger than 8 MB") {
		t.Errorf("%v", errs)
	}
	var many strings.Builder
	many.WriteString(head)
	for i := range 501 {
		fmt.Fprintf(&many, "  /a%d: {get: {responses: {'200': {description: ok}}}}\n", i)
	}
	if tools, errs := api(t, nil, written(t, many.String()), ""); len(tools) != 500 || len(errs) != 1 || !strings.Contains(errs[0].Error(), "more than 500 operations") {
		t.Errorf("%d tools, %v", len(tools), errs)
	}
}

// The same OpenAPI file in YAML and in JSON gives the same tools.
func TestYAMLAndJSON(t *testing.T) {
	yaml := "openapi: 3.0.3\ninfo: {title: x, version: 1.0}\nx-base: &base {type: integer, minimum: 0x10, maximum: 1e3}\nservers: [{url: https://api.example.com}]\npaths:\n  /a:\n    get:\n      parameters:\n" +
		"        - {name: a, in: query, schema: *base}\n        - {name: b, in: query, schema: {<<: *base, maximum: 1.50}}\n        - {name: c, in: query, schema: {enum: [yes, 2020-01-01, ~, true, +5, .5, 1_000]}}\n      responses: {200: {description: ok}}\n"
	asJSON := `{"openapi": "3.0.3", "info": {"title": "x", "version": "1.0"}, "servers": [{"url": "https://api.example.com"}], "paths": {"/a": {"get": {"parameters": [
		{"name": "a", "in": "query", "schema": {"type": "integer", "minimum": 16, "maximum": 1e3}}, {"name": "b", "in": "query", "schema": {"type": "integer", "minimum": 16, "maximum": 1.50}},
		{"name": "c", "in": "query", "schema": {"enum": ["yes", "2020-01-01", null, true, 5, 0.5, 1000]}}], "responses": {"200": {"description": "ok"}}}}}}`
	a, errsA := api(t, nil, written(t, yaml), "")
	b, errsB := api(t, nil, written(t, "\ufeff"+asJSON), "")
	if len(a) != 1 || len(b) != 1 || string(a[0].Schema) != string(b[0].Schema) || string(a[0].Definition) != string(b[0].Definition) || a[0].Name != "it.get_a" {
		t.Errorf("%v %v\n%s\n%s", errsA, errsB, a[0].Schema, b[0].Schema)
	}
}

// A change of an operation's request changes the definition of the tool. Other changes of the file do not change the
// definition.
func TestDefinitionsOfOperations(t *testing.T) {
	whole := one("summary: A, parameters: ["+id+", {$ref: '#/components/parameters/P'}], requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/S'}}}}") +
		"  /other: {get: {operationId: other, responses: {'200': {description: ok}}}}\n" +
		"components: {parameters: {P: {name: p, in: query, schema: {type: string}}}, schemas: {S: {properties: {t: {$ref: '#/components/schemas/T'}}}, T: {type: string, maxLength: 5}}}\n"
	of := func(text, policy string) agent.Tool {
		tools, errs := api(t, nil, written(t, text), policy)
		if len(tools) == 0 {
			t.Fatal(errs)
		}
		return named(t, tools, "it.it")
	}
	before := string(of(whole, "").Definition)
	for _, change := range [][2]string{
		{"summary: A", "summary: B"}, {"name: p,", "name: q,"}, {"maxLength: 5", "maxLength: 6"}, {"https://api.example.com", "https://evil.example.com"}, {"/it/{id}", "/that/{id}"},
		{"post:", "put:"}, {"in: query", "in: header"}, {"application/json", "application/x-www-form-urlencoded"}, {"openapi: 3.1.0", "openapi: 3.0.0"},
	} {
		if after := string(of(strings.Replace(whole, change[0], change[1], 1), "").Definition); after == before {
			t.Errorf("%v changes nothing", change)
		}
	}
	for _, policy := range []string{"url: https://b.example.com", "headers: {X: y}", "query: {x: y}", "idempotency_key: K"} {
		if string(of(whole, policy).Definition) == before {
			t.Errorf("%s changes nothing", policy)
		}
	}
	for _, change := range [][2]string{{"description: ok", "description: fine"}, {"operationId: other", "operationId: another"}, {"title: x", "title: y"}} {
		if after := string(of(strings.ReplaceAll(whole, change[0], change[1]), "").Definition); after != before {
			t.Errorf("%v changes\n%s\nto\n%s", change, before, after)
		}
	}
}

func TestLongNames(t *testing.T) {
	long := strings.Repeat("operation", 10)
	text := head + "  /a: {get: {operationId: " + long + "A, responses: {'200': {description: ok}}}}\n  /b: {get: {operationId: " + long + "B, responses: {'200': {description: ok}}}}\n" +
		"  /: {get: {summary: " + strings.Repeat("ü", 2000) + ", responses: {'200': {description: ok}}}}\n"
	tools, errs := api(t, nil, written(t, text), "")
	if len(tools) != 3 || len(errs) > 0 {
		t.Fatalf("%d tools, %v", len(tools), errs)
	}
	registered(t, tools)
	if len(tools[1].Name) != 64 || tools[1].Name == tools[2].Name || tools[0].Name != "it.get" || len([]rune(tools[0].Description)) != 1024 {
		t.Errorf("%s %s %s", tools[0].Name, tools[1].Name, tools[2].Name)
	}
}

// FuzzOpenAPI reads any file, and registers its tools, without a panic. Each error is one line of valid text.
func FuzzOpenAPI(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add(one("parameters: [" + id + "]"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, fmt.Sprintf("%d.yaml", os.Getpid()))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		tools, errs := httptool.OpenAPI(config.OpenAPI{Name: "it", File: path, Timeout: 1e9, MaxResult: 1 << 10}, lookup)
		for _, err := range errs {
			if !utf8.ValidString(err.Error()) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
		}
		var r agent.Registry
		r.Replace("openapi:it", tools)
	})
}
