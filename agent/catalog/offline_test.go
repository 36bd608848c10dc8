package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/agent/pins"
	"countersign/config"
	"countersign/config/yamldoc"
)

// SchemaFindings reports a pattern that can't be checked at the position of the tool's source.
func TestSchemaFindings(t *testing.T) {
	const definition = `{"name":"act","description":"Acts.","inputSchema":{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)"}}}}`
	file, err := config.ParsePolicy("countersign.yaml", []byte("version: 1\nservers:\n  far: {url: 'https://far.example.com/mcp'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := OfflineWith(file, pins.Lock{Pins: []pins.Pin{{Tool: "far.act", Source: "far", Definition: []byte(definition)}}}, "countersign.lock")
	if err != nil {
		t.Fatal(err)
	}
	found := SchemaFindings(file, tools)
	if len(found) != 1 || found[0].Severity != yamldoc.Warning || found[0].Line != 3 || !strings.Contains(found[0].Error(), `far.act: the pattern "^(?!x)" can't be checked here`) {
		t.Errorf("%v", found)
	}
}

// If an operation can't become a tool, Findings reports the position at which the policy names the OpenAPI file.
func TestFindings(t *testing.T) {
	dir := t.TempDir()
	api := "openapi: 3.1.0\ninfo: {title: x, version: '1'}\nservers: [{url: https://api.example.com}]\npaths:\n" +
		"  /a: {get: {operationId: a, responses: {'200': {description: ok}}}}\n" +
		"  /b: {post: {operationId: b, requestBody: {content: {multipart/form-data: {}}}, responses: {'200': {description: ok}}}}\n"
	if err := os.WriteFile(filepath.Join(dir, "api.yaml"), []byte(api), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := config.ParsePolicy(filepath.Join(dir, "countersign.yaml"), []byte("version: 1\nopenapi:\n  it: {file: api.yaml}\n"))
	if err != nil {
		t.Fatal(err)
	}
	found := Findings(file)
	if len(found) != 1 || found[0].Severity != yamldoc.Warning || found[0].Line != 3 || !strings.Contains(found[0].Error(), "POST /b (b) was left out: the body is multipart/form-data") {
		t.Errorf("%v", found)
	}
}
