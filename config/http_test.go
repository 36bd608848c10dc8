package config_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/yamldoc"
)

func text(s string) config.Template     { return config.Template{{Text: s}} }
func argument(s string) config.Template { return config.Template{{Argument: s}} }

// TestKeysOfHTTP checks that every key of http and openapi is read correctly. It also checks the default of each key
// that is left out.
func TestKeysOfHTTP(t *testing.T) {
	f, err := config.ParsePolicy(filepath.Join("dir", "countersign.yaml"), []byte(`
version: 1
http:
  least: {description: Reads., url: "https://api.example.com"}
  most:
    description: Writes.
    method: PATCH
    url: "${BASE}:8080/v1/{a}/x?b={b}&c=d${E}&f"
    headers: {X-A: "v {c}{{y}}$${d}", Authorization: "Bearer ${TOKEN}"}
    arguments: {type: object, properties: {a: {type: string}, b: {type: number, minimum: 1.10}, c: {}, rest: {}}, required: [a]}
    body: form
    result: {pointer: /a~1b/0, as: json, status: [200, 4xx]}
    timeout: 90s
    effect: read-only
    idempotency_key: X-Key
    allow: [10.0.0.0/8, "crm.internal:8080", "::1"]
    max_result: 1MB
  keyed: {description: Writes., method: POST, url: "https://api.example.com/x", idempotency_key: X-Key, arguments: '{"type": "object", "properties": {"z": {}, "a": {}}}'}
  unkeyed: {description: Writes., method: DELETE, url: "http://127.0.0.1:8080/{id}", headers: {A: "${TOKEN}"}, arguments: {type: object, properties: {id: {}}, required: [id]}}
openapi:
  least: {file: pets.yaml}
  most: {file: /etc/pets.yaml, url: "https://api.example.com/v1", headers: {A: "${B}"}, query: {k: "x${K}"}, operations: [a, b], prefix: false, timeout: 2m, effects: {a: idempotent}, idempotency_key: Key, allow: ["fd00::/8"], max_result: 2KB}
`))
	if err != nil {
		t.Fatal(err)
	}
	none := json.RawMessage(`{"type":"object","properties":{}}`)
	want := []config.Endpoint{
		{Name: "least", Description: "Reads.", Method: "GET", Address: config.Address{Base: text("https://api.example.com")}, Arguments: none, Body: config.BodyNone, Timeout: 30 * time.Second, Effect: approvers.ReadOnly, MaxResult: 64 << 10},
		{
			Name: "most", Description: "Writes.", Method: "PATCH",
			Address: config.Address{
				Base: config.Template{{Variable: "BASE"}, {Text: ":8080"}}, Path: config.Template{{Text: "/v1/"}, {Argument: "a"}, {Text: "/x"}},
				Query: []config.QueryPart{{Name: text("b"), Value: argument("b")}, {Name: text("c"), Value: config.Template{{Text: "d"}, {Variable: "E"}}}, {Name: text("f")}},
			},
			Headers:   []config.Header{{Name: "X-A", Value: config.Template{{Text: "v "}, {Argument: "c"}, {Text: "{y}${d}"}}}, {Name: "Authorization", Value: config.Template{{Text: "Bearer "}, {Variable: "TOKEN"}}}},
			Arguments: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number","minimum":1.10},"c":{},"rest":{}},"required":["a"]}`), Body: config.BodyForm,
			Result: config.Result{Pointer: "/a~1b/0", As: "json", Status: []config.Status{{From: 200, To: 200}, {From: 400, To: 499}}}, Timeout: 90 * time.Second, Effect: approvers.ReadOnly,
			IdempotencyKey: "X-Key", Allow: []string{"10.0.0.0/8", "crm.internal:8080", "::1"}, MaxResult: 1 << 20,
		},
		{Name: "keyed", Description: "Writes.", Method: "POST", Address: config.Address{Base: text("https://api.example.com"), Path: text("/x")}, Arguments: json.RawMessage(`{"type": "object", "properties": {"z": {}, "a": {}}}`), Body: config.BodyJSON, Timeout: 30 * time.Second, Effect: approvers.Idempotent, IdempotencyKey: "X-Key", MaxResult: 64 << 10},
		{
			Name: "unkeyed", Description: "Writes.", Method: "DELETE", Address: config.Address{Base: text("http://127.0.0.1:8080"), Path: config.Template{{Text: "/"}, {Argument: "id"}}},
			Headers:   []config.Header{{Name: "A", Value: config.Template{{Variable: "TOKEN"}}}},
			Arguments: json.RawMessage(`{"type":"object","properties":{"id":{}},"required":["id"]}`), Body: config.BodyNone, Timeout: 30 * time.Second, Effect: approvers.Unprotected, MaxResult: 64 << 10,
		},
	}
	if diff := cmp.Diff(want, f.HTTP); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	apis := []config.OpenAPI{
		{Name: "least", File: filepath.Join("dir", "pets.yaml"), Timeout: 30 * time.Second, MaxResult: 64 << 10},
		{
			Name: "most", File: "/etc/pets.yaml", URL: config.Template{{Text: "https://api.example.com"}, {Text: "/v1"}}, Headers: []config.Header{{Name: "A", Value: config.Template{{Variable: "B"}}}},
			Query: []config.QueryPart{{Name: text("k"), Value: config.Template{{Text: "x"}, {Variable: "K"}}}}, Operations: []string{"a", "b"}, Bare: true, Timeout: 2 * time.Minute,
			Effects: map[string]approvers.Effect{"a": approvers.Idempotent}, IdempotencyKey: "Key", Allow: []string{"fd00::/8"}, MaxResult: 2 << 10,
		},
	}
	if diff := cmp.Diff(apis, f.OpenAPI); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	most := f.HTTP[1].Address
	if got := most.Base.String() + most.Path.String(); got != "${BASE}:8080/v1/{a}/x" {
		t.Errorf("written as %s", got)
	}
	if got := f.HTTP[1].Headers[0].Value.String(); got != "v {c}{{y}}$${d}" {
		t.Errorf("written as %s", got)
	}
	if got := most.Query[1].Value.Variables(); len(got) != 1 || got[0] != "E" {
		t.Errorf("names %v", got)
	}
}

// TestFinding checks that a finding about one of the policy's sources has a position in the policy.
func TestFinding(t *testing.T) {
	f, err := config.ParsePolicy("p.yaml", []byte("version: 1\nhttp:\n  a: {description: x, url: \"https://example.com\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Finding(yamldoc.Warning, "http.a.url", "is odd", "write another").Error(); got != "p.yaml:3:28: warning: http.a.url: is odd; write another" {
		t.Error(got)
	}
}

// If a key contains a line break, a problem that names the key has only one line.
func TestProblemOnOneLine(t *testing.T) {
	_, err := config.ParsePolicy("p.yaml", []byte("version: 1\nhttp:\n  x: {description: d, url: \"https://a.example/\", headers: {\"X-A\\r\\nX-B\": y}}\n"))
	if err == nil || strings.ContainsAny(err.Error(), "\r\n") || !strings.Contains(err.Error(), `X-A\r\nX-B: `) {
		t.Errorf("%v", err)
	}
}

// TestLargeSchema checks that a schema that is too large is one error, and not also another error.
func TestLargeSchema(t *testing.T) {
	_, err := config.ParsePolicy("p.yaml", []byte("version: 1\nhttp:\n  a: {description: x, method: POST, url: \"https://example.com\", arguments: {description: "+strings.Repeat("x", 70_000)+", type: object}}\n"))
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "http.a.arguments: is longer than 64 KiB; ") {
		t.Errorf("%v", err)
	}
}

// TestSchemaAsBlock checks that the schema of the arguments can be JSON in a block of text.
func TestSchemaAsBlock(t *testing.T) {
	f, err := config.ParsePolicy("p.yaml", []byte("version: 1\nhttp:\n  a:\n    description: x\n    method: POST\n    url: \"https://example.com\"\n    arguments: |\n      {\"type\": \"object\"}\n"))
	if err != nil || strings.TrimSpace(string(f.HTTP[0].Arguments)) != `{"type": "object"}` {
		t.Errorf("%v: %+v", err, f)
	}
}
