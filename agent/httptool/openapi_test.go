package httptool_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/agent"
	"countersign/agent/httptool"
	"countersign/approvers"
	"countersign/config"
)

// described reads a policy with one API. FILE in the declaration is replaced; SITE too, by the server's address.
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

// written puts a description into a file.
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
	tools, errs := api(t, nil, written(t, b.String()), "")
	if len(tools) != 100 || len(errs) > 0 {
		t.Fatalf("%d tools, %v", len(tools), errs)
	}
	registered(t, tools)
	first := named(t, tools, "it.getThing0")
	if first.Presumed != approvers.Low || first.Effect != approvers.ReadOnly || !json.Valid(first.Definition) {
		t.Errorf("%+v", first)
	}
	t.Logf("%s\n%s", first.Schema, first.Definition)
}
