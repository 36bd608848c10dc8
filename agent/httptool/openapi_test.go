package httptool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"countersign/agent"
	"countersign/agent/httptool"
	"countersign/approvers"
	"countersign/config"
)

// api makes the tools of a policy with one OpenAPI file. The word SITE in the declaration is replaced by the server's
// address.
func api(t *testing.T, s *site, file, yaml string) ([]agent.Tool, []error) {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	text := "version: 1\nopenapi:\n  it:\n    file: " + path + "\n    allow: [127.0.0.1]\n" + indented(yaml)
	if s != nil {
		text = strings.ReplaceAll(text, "SITE", s.URL)
	}
	f, err := config.ParsePolicy("countersign.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return httptool.OpenAPI(f.OpenAPI[0], lookup)
}

// written writes an OpenAPI file, and returns its path.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "api.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func registered(t *testing.T, tools []agent.Tool) {
	t.Helper()
	var r agent.Registry
	if errs := r.Replace("openapi:it", tools); len(errs) > 0 {
		t.Fatalf("not registered: %v", errs)
	}
}

func named(t *testing.T, tools []agent.Tool, name string) agent.Tool {
	t.Helper()
	i := slices.IndexFunc(tools, func(t agent.Tool) bool { return t.Name == name })
	if i < 0 {
		var names []string
		for _, t := range tools {
			names = append(names, t.Name)
		}
		t.Fatalf("no tool %s among %v", name, names)
	}
	return tools[i]
}

func TestHundredOperations(t *testing.T) {
	var b strings.Builder
	b.WriteString("openapi: 3.1.0\ninfo: {title: Many, version: 1.0}\nservers: [{url: https://api.example.com}]\npaths:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "  /things%d/{id}:\n    get: {operationId: getThing%d, parameters: [{name: id, in: path, required: true, schema: {$ref: '#/components/schemas/Thing%d/properties/id'}}], responses: {'200': {description: ok}}}\n", i, i, i)
	}
	b.WriteString("components:\n  schemas:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "    Thing%d: {type: object, properties: {id: {type: string}, next: {$ref: '#/components/schemas/Thing%d'}}}\n", i, (i+1)%100)
	}
	path, start := written(t, b.String()), time.Now()
	tools, errs := api(t, nil, path, "")
	t.Logf("operations=%d in %s", len(tools), time.Since(start).Round(time.Millisecond))
	if len(tools) != 100 || len(errs) > 0 {
		t.Fatalf("%d tools, %v", len(tools), errs)
	}
	registered(t, tools)
	first := named(t, tools, "it.getThing0")
	if first.Presumed != approvers.Low || first.Effect != approvers.ReadOnly || !json.Valid(first.Definition) {
		t.Errorf("%+v", first)
	}
}

// The test reads a file of OpenAPI version 3.0. It checks which operations become tools, with their names and
// schemas. For the other operations, it checks the reported problems.
func TestPetstore(t *testing.T) {
	tools, errs := api(t, nil, "testdata/petstore30.yaml", "headers: {Authorization: 'Bearer ${API_TOKEN}'}\n")
	registered(t, tools)
	var names, said []string
	for _, tool := range tools {
		names = append(names, fmt.Sprintf("%s %s %s", tool.Name, tool.Effect, tool.Presumed))
	}
	for _, err := range errs {
		var p *httptool.Problem
		if !errors.As(err, &p) || !p.Warning || p.Path != "openapi.it" {
			t.Errorf("no warning: %v", err)
		}
		said = append(said, err.Error())
	}
	wantNames := []string{
		"it.log_in_ unprotected high", "it.addNote unprotected high", "it.listPets read-only low", "it.addPet unprotected high", "it.getPet read-only low",
		"it.replacePet unprotected high", "it.deletePet unprotected high", "it.get_search_style.label_matrix_list read-only low",
	}
	if diff := cmp.Diff(wantNames, names); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	wantSaid := []string{
		`openapi.it: GET /odd (oddCookie) was left out: the parameter c is a list or an object in a cookie, which has no standard notation`,
		`openapi.it: OPTIONS /odd (optionsOdd) was left out: its method is not supported`,
		`openapi.it: the pattern "^(?!x)[a-z]+$" can't be checked here, and only the server checks it`,
		`openapi.it: operations such as PUT /pets/{petId} require authentication, and the policy has none for them; add headers: {X-Api-Key: "${API_KEY}"}`,
		`openapi.it: POST /pets/{petId}/photo (uploadPhoto) was left out: the body is multipart/form-data; only JSON, a form or plain text is supported`,
	}
	if diff := cmp.Diff(wantSaid, said); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	want := map[string]string{
		"it.listPets": `{"additionalProperties":false,"properties":{
			"X-Trace":{"items":{"type":"string"},"type":"array"},
			"colours":{"items":{"type":"string"},"type":"array"},
			"filter":{"properties":{"age":{"type":"integer"},"name":{"type":"string"}},"type":"object"},
			"ids":{"items":{"format":"int64","type":"integer"},"type":"array"},
			"limit":{"default":20,"description":"How many.","exclusiveMinimum":0,"maximum":100,"type":"integer"},
			"session":{"type":"string"},
			"sizes":{"items":{"type":"string"},"type":"array"},
			"tags":{"items":{"type":"string"},"type":"array"},
			"where":{"properties":{"a":{"type":"number"}},"type":"object"}},"type":"object"}`,
		"it.addPet": `{"$defs":{
			"Category":{"properties":{"name":{"type":"string"},"parent":{"$ref":"#/$defs/Category"}},"type":"object"},
			"NewPet":{"properties":{"born":{"default":"2020-01-01","format":"date","type":"string"},"category":{"$ref":"#/$defs/Category"},"code":{"type":"string"},
				"kind":{"enum":["cat","dog",null],"type":["string","null"]},"name":{"minLength":1,"type":"string"},"weight":{"multipleOf":0.01,"type":["number","null"]}},"required":["name"],"type":"object"}},
			"additionalProperties":false,"properties":{"body":{"$ref":"#/$defs/NewPet","description":"The new pet."}},"required":["body"],"type":"object"}`,
		"it.getPet": `{"additionalProperties":false,"properties":{"petId":{"format":"int64","maximum":9223372036854775807,"minimum":1,"type":"integer"},
			"verbose":{"description":"With everything.","type":"boolean"}},"required":["petId"],"type":"object"}`,
		"it.get_search_style.label_matrix_list": `{"additionalProperties":false,"properties":{"body":{"type":"string"},"list":{"items":{"type":"string"},"type":"array"},"list_query":{"type":"string"},
			"matrix":{"items":{"type":"string"},"type":"array"},"odd_name_":{"type":"string"},"style.label":{"type":"string"}},"required":["style.label","matrix","list"],"type":"object"}`,
		"it.log_in_": `{"additionalProperties":false,"properties":{"body":{"properties":{"groups":{"items":{"type":"string"},"type":"array"},"name":{"type":"string"},
			"password":{"format":"password","type":"string","writeOnly":true}},"required":["name"],"type":"object"}},"type":"object"}`,
	}
	for name, schema := range want {
		if diff := cmp.Diff(plainText(schema), plainText(string(named(t, tools, name).Schema))); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	if got := named(t, tools, "it.replacePet"); got.Description != "Deprecated. Replace a pet" || got.Claims.Title != "Replace a pet" || *got.Claims.ReadOnly || !*got.Claims.Idempotent {
		t.Errorf("%+v", got)
	}
	if got := named(t, tools, "it.listPets").Description; got != "List pets\nAll pets that the filters leave." {
		t.Errorf("%q", got)
	}
	if got := named(t, tools, "it.getPet").Description; got != "GET /pets/{petId}" {
		t.Errorf("%q", got)
	}
	if d := string(named(t, tools, "it.getPet").Definition); !strings.Contains(d, `"server":"https://eu.pets.example.com/v3"`) || strings.Contains(d, "S3cr3t") {
		t.Errorf("%s", d)
	}
}

// plainText returns a text without line ends and tabs.
func plainText(s string) string {
	return strings.NewReplacer("\n", "", "\t", "").Replace(s)
}

// The test checks how the request encodes the arguments in each style.
func TestStyles(t *testing.T) {
	s := serve(t, status(200))
	tools, _ := api(t, s, "testdata/petstore30.yaml", "url: SITE/base\nheaders: {Authorization: 'Bearer ${API_TOKEN}', Cookie: own=1}\nquery: {key: '${API_KEY}'}\nidempotency_key: Idempotency-Key\n")
	key := "key=k3y%26with%3Dodd%20chars"
	for _, tt := range []struct {
		tool, args, target, body, media string
		header                          map[string]string
	}{
		{tool: "it.listPets", args: `{"tags":["a,b","c"],"ids":[1,9223372036854775807],"colours":["r|b","g"],"sizes":["x l","m"],"filter":{"age":3,"name":"a&b"},"where":{"a":1.10},"limit":5,"X-Trace":["a","b"],"session":"s1"}`,
			target: "/base/pets?" + key + "&tags=a%2Cb&tags=c&ids=1,9223372036854775807&colours=r%7Cb%7Cg&sizes=x%20l%20m&filter%5Bage%5D=3&filter%5Bname%5D=a%26b&where=%7B%22a%22%3A1.10%7D&limit=5",
			header: map[string]string{"X-Trace": "a,b", "Cookie": "own=1; session=s1", "Authorization": "Bearer " + environment["API_TOKEN"], "Idempotency-Key": ""}},
		{tool: "it.listPets", args: `{}`, target: "/base/pets?" + key, header: map[string]string{"Cookie": "own=1"}},
		{tool: "it.addPet", args: `{"body":{ "name":"Rex","weight":1.10 }}`, target: "/base/pets?" + key, body: `{ "name":"Rex","weight":1.10 }`, media: "application/json", header: map[string]string{"Idempotency-Key": "exec_1"}},
		{tool: "it.replacePet", args: `{"petId":7,"body":{"name":"x"}}`, target: "/base/pets/7?" + key, body: `{"name":"x"}`, media: "application/merge-patch+json"},
		{tool: "it.replacePet", args: `{"petId":7}`, target: "/base/pets/7?" + key},
		{tool: "it.deletePet", args: `{"petId":7}`, target: "/base/pets/7?" + key},
		{tool: "it.get_search_style.label_matrix_list", args: `{"style.label":"a b","matrix":["x","y;z"],"list":["1","2,3"],"list_query":"q","odd_name_":"o","body":"h"}`,
			target: "/base/search/.a%20b/;matrix=x;matrix=y%3Bz/1,2%2C3?" + key + "&list=q&odd%5Bname%5D=o", header: map[string]string{"body": "h"}},
		{tool: "it.log_in_", args: `{"body":{"name":"a b","password":"p&q","groups":["x","y"]}}`, target: "/base/login?" + key, body: "name=a+b&password=p%26q&groups=x&groups=y", media: "application/x-www-form-urlencoded"},
		{tool: "it.addNote", args: `{"body":"Grüße"}`, target: "/base/notes?" + key, body: "Grüße", media: "text/plain; charset=utf-8"},
	} {
		if _, _, err := run(t, named(t, tools, tt.tool), tt.args); err != nil {
			t.Errorf("%s: %v", tt.tool, err)
			continue
		}
		got, _ := s.last()
		if got.Target != tt.target || got.Body != tt.body || got.Header.Get("Content-Type") != tt.media {
			t.Errorf("%s sent %s %s %s\nwant %s %s %s", tt.tool, got.Target, got.Header.Get("Content-Type"), got.Body, tt.target, tt.media, tt.body)
		}
		for name, want := range tt.header {
			if got.Header.Get(name) != want {
				t.Errorf("%s sent %s: %q, want %q", tt.tool, name, got.Header.Get(name), want)
			}
		}
	}
	if tool := named(t, tools, "it.addPet"); tool.Effect != approvers.Idempotent {
		t.Errorf("%s", tool.Effect)
	}
	_, before := s.last()
	for _, tt := range [][2]string{
		{"it.listPets", `{"session":"a;b"}`}, {"it.listPets", `{"X-Trace":["a\r\nb"]}`}, {"it.listPets", `{"filter":{"a":{"b":1}}}`}, {"it.getPet", `{}`}, {"it.getPet", `{"petId":"../x"}`},
		{"it.get_search_style.label_matrix_list", `{"style.label":"a","matrix":["x"],"list":["..","x/y"]}`}, {"it.get_search_style.label_matrix_list", `{"style.label":"a","matrix":["x"],"list":[".."]}`},
		{"it.get_search_style.label_matrix_list", `{"style.label":"a","matrix":[],"list":["x"]}`}, {"it.log_in_", `{"body":{"name":{"a":1}}}`}, {"it.addNote", `{"body":{}}`}, {"it.log_in_", `{"body":[1]}`},
	} {
		if _, _, err := run(t, named(t, tools, tt[0]), tt[1]); err == nil || !strings.HasPrefix(err.Error(), "nothing was sent: ") {
			t.Errorf("%s %s: %v", tt[0], tt[1], err)
		}
	}
	if got, n := s.last(); n != before {
		t.Errorf("sent %+v", got)
	}
}

func TestBookings(t *testing.T) {
	tools, errs := api(t, nil, "testdata/bookings31.yaml", "prefix: false\neffects: {book: idempotent}\n")
	if len(errs) > 0 || len(tools) != 2 {
		t.Fatalf("%d tools, %v", len(tools), errs)
	}
	registered(t, tools)
	book := named(t, tools, "book")
	want := `{"$defs":{"Guest":{"$defs":{"Name":{"maxLength":80,"type":"string"}},"properties":{"name":{"$ref":"#/$defs/Name"},"plus":{"$ref":"#/$defs/Guest"}},"type":["object","null"]},
		"Name":{"maxLength":80,"type":"string"}},"additionalProperties":false,"properties":{
		"body":{"properties":{"amount":{"const":1.10,"type":"number"},"anything":true,
			"either":{"else":{"$ref":"#/$defs/Guest","description":"beside a reference"},"if":{"type":"string"},"then":{"minLength":1}},
			"from":{"format":"date-time","type":"string"},
			"guests":{"items":{"$ref":"#/$defs/Guest"},"prefixItems":[{"$ref":"#/$defs/Guest"}],"type":"array"},
			"people":{"exclusiveMinimum":0,"type":"integer"}},"required":["from","people"],"type":"object","unevaluatedProperties":false},
		"dry_run":{"type":["boolean","null"]},"room":{"type":"string"}},"required":["room","body"],"type":"object"}`
	if diff := cmp.Diff(plainText(want), string(book.Schema)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if book.Effect != approvers.Idempotent || !strings.Contains(string(book.Definition), `"server":"https://bookings.example.com/api/"`) {
		t.Errorf("%s %s", book.Effect, book.Definition)
	}
	if d := string(named(t, tools, "rooms").Definition); !strings.Contains(d, `"server":"https://rooms.example.com"`) {
		t.Errorf("%s", d)
	}

	s := serve(t, status(200))
	tools, _ = api(t, s, "testdata/bookings31.yaml", "url: SITE/api/\n")
	if _, _, err := run(t, named(t, tools, "it.book"), `{"room":"a b","dry_run":null,"body":{"from":"2026-01-01T00:00:00Z","people":1}}`); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.last(); got.Target != "/api/rooms/a%20b/bookings" || got.Body != `{"from":"2026-01-01T00:00:00Z","people":1}` {
		t.Errorf("%+v", got)
	}
	if _, _, err := run(t, named(t, tools, "it.rooms"), `{"near":{"lat":52.50,"lon":-1}}`); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.last(); got.Target != "/api/rooms?lat=52.50&lon=-1" {
		t.Errorf("%+v", got)
	}
}

// The test checks requests against the table of styles in the OpenAPI specification.
func TestTableOfStyles(t *testing.T) {
	s := serve(t, status(200))
	const (
		text   = `"blue"`
		list   = `["blue","black","brown"]`
		object = `{"R":100,"G":200,"B":150}`
	)
	for _, tt := range []struct{ style, in, explode, value, want string }{
		{"matrix", "path", "false", text, ";color=blue"}, {"matrix", "path", "false", list, ";color=blue,black,brown"}, {"matrix", "path", "false", object, ";color=R,100,G,200,B,150"},
		{"matrix", "path", "true", list, ";color=blue;color=black;color=brown"}, {"matrix", "path", "true", object, ";R=100;G=200;B=150"},
		{"label", "path", "false", text, ".blue"}, {"label", "path", "false", list, ".blue,black,brown"}, {"label", "path", "false", object, ".R,100,G,200,B,150"},
		{"label", "path", "true", list, ".blue.black.brown"}, {"label", "path", "true", object, ".R=100.G=200.B=150"},
		{"simple", "path", "false", list, "blue,black,brown"}, {"simple", "path", "false", object, "R,100,G,200,B,150"}, {"simple", "path", "true", object, "R=100,G=200,B=150"},
		{"form", "query", "false", text, "?color=blue"}, {"form", "query", "false", list, "?color=blue,black,brown"}, {"form", "query", "false", object, "?color=R,100,G,200,B,150"},
		{"form", "query", "true", list, "?color=blue&color=black&color=brown"}, {"form", "query", "true", object, "?R=100&G=200&B=150"},
		{"spaceDelimited", "query", "false", list, "?color=blue%20black%20brown"}, {"pipeDelimited", "query", "false", list, "?color=blue%7Cblack%7Cbrown"},
		{"deepObject", "query", "true", object, "?color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"},
		{"simple", "header", "false", object, "R,100,G,200,B,150"}, {"simple", "header", "true", object, "R=100,G=200,B=150"}, {"form", "cookie", "false", text, "color=blue"},
	} {
		path := "/x/"
		if tt.in == "path" {
			path += "{color}"
		}
		file := written(t, head+fmt.Sprintf("  %s:\n    get: {operationId: it, responses: {'200': {description: ok}}, parameters: [{name: color, in: %s, required: true, style: %s, explode: %s, schema: {}}]}\n", path, tt.in, tt.style, tt.explode))
		tools, errs := api(t, s, file, "url: SITE\n")
		if len(tools) != 1 {
			t.Errorf("%v: %v", tt, errs)
			continue
		}
		if _, _, err := run(t, tools[0], `{"color":`+tt.value+`}`); err != nil {
			t.Errorf("%v: %v", tt, err)
			continue
		}
		got, _ := s.last()
		sent := map[string]string{"path": strings.TrimPrefix(got.Target, "/x/"), "query": strings.TrimPrefix(got.Target, "/x/"), "header": got.Header.Get("color"), "cookie": got.Header.Get("Cookie")}[tt.in]
		if sent != tt.want {
			t.Errorf("%v: sent %s", tt, sent)
		}
	}
}

// References within a file are followed, except endless recursive references.
func TestReferences(t *testing.T) {
	for name, yaml := range map[string]string{
		"to itself":        "a: {$ref: '#/components/schemas/a'}",
		"to one another":   "a: {$ref: '#/components/schemas/b'}\n    b: {$ref: '#/components/schemas/a'}",
		"through a list":   "a: {anyOf: [{type: string}, {$ref: '#/components/schemas/a/anyOf/0'}]}",
		"with odd letters": "a: {$ref: '#/components/schemas/x~1y%20z'}\n    'x/y z': {type: string}",
	} {
		text := one("parameters: ["+id+"], requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/a'}}}}") + "components:\n  schemas:\n    " + yaml + "\n"
		tools, errs := api(t, nil, written(t, text), "")
		if len(tools)+len(errs) == 0 {
			t.Errorf("%s: neither a tool nor an error", name)
		}
		if len(tools) == 1 {
			registered(t, tools)
		}
		if len(tools) == 0 && !strings.HasPrefix(name, "to ") {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// A read-only property is not required in a request, even if another part of allOf requires it.
func TestReadOnlyInAllOf(t *testing.T) {
	base := "    base: {type: object, required: [id, kind], properties: {id: {$ref: '#/components/schemas/id'}, at: {type: string, readOnly: true}, name: {type: string}, kind: {type: string}}}\n" +
		"    id: {type: string, readOnly: true}\n"
	for _, pet := range []string{
		"    pet: {allOf: [{$ref: '#/components/schemas/base'}, {type: object, required: [id, name]}]}\n",
		"    pet: {allOf: [{$ref: '#/components/schemas/base'}], required: [id, at, name]}\n",
		"    pet: {allOf: [{allOf: [{required: [at, name]}]}, {$ref: '#/components/schemas/base'}]}\n",
	} {
		text := one("parameters: ["+id+"], requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/pet'}}}}") + "components:\n  schemas:\n" + base + pet
		tools, errs := api(t, nil, written(t, text), "")
		if len(errs) > 0 || len(tools) != 1 {
			t.Fatalf("%s: %v", pet, errs)
		}
		var r agent.Registry
		if errs := r.Replace("openapi.it", tools); len(errs) > 0 {
			t.Fatal(errs)
		}
		tool, _ := r.Tool(tools[0].Name)
		for body, want := range map[string]string{
			`{"name":"a","kind":"b"}`:          "",
			`{"name":"a"}`:                     "body.kind: is missing",
			`{"kind":"b"}`:                     "body.name: is missing",
			`{"id":"1","name":"a","kind":"b"}`: "body.id: is not known; the fields are kind, name",
		} {
			got := ""
			if err := tool.Check(json.RawMessage(`{"id":"1","body":` + body + `}`)); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s%s: %q, want %q", pet, body, got, want)
			}
		}
	}
}
