package check_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"countersign/config"
	"countersign/config/yamldoc"
)

const schemaFile = "../../docs/countersign.schema.json"

func policySchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate validates a policy file against the schema, as an editor does. The function returns errNotYAML if the YAML
// parser refuses the file.
func validate(s *jsonschema.Schema, data []byte) error {
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return errNotYAML
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return errNotYAML
	}
	return s.Validate(value)
}

var errNotYAML = errors.New("not YAML")

// TestSchemaTakesPolicies checks that the schema accepts every readable policy of the documentation and the test data.
func TestSchemaTakesPolicies(t *testing.T) {
	s := policySchema(t)
	policies := map[string]string{}
	for _, path := range append(files(t, "testdata/findings/*.yaml"), files(t, "../../cmd/countersign/*.yaml")...) {
		policies[path] = read(t, path)
	}
	for _, path := range files(t, "../../docs/*.md") {
		for i, block := range yamlBlock.FindAllStringSubmatch(read(t, path), -1) {
			policies[fmt.Sprintf("%s, example %d", path, i+1)] = block[1]
		}
	}
	taken := 0
	for name, text := range policies {
		if _, err := config.ParsePolicy("p.yaml", []byte(text)); err != nil {
			continue // not a policy: fixtures, or a part of a policy
		}
		taken++
		if err := validate(s, []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if taken < 40 {
		t.Errorf("only %d policies were tried", taken)
	}
}

// onlyReader lists the broken policies that only the reader refuses. The schema accepts these policies, because a
// schema is applied to only one YAML document.
var onlyReader = []string{"two_documents"}

// TestSchemaRefusesBrokenPolicies checks broken files with errors that a schema can detect. The schema must refuse each
// file.
func TestSchemaRefusesBrokenPolicies(t *testing.T) {
	s := policySchema(t)
	var missed []string
	for _, path := range files(t, "../testdata/bad/*.yaml") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if validate(s, data) == nil {
			missed = append(missed, strings.TrimSuffix(filepath.Base(path), ".yaml"))
		}
	}
	if diff := cmp.Diff(onlyReader, missed); diff != "" {
		t.Errorf("the files that the schema takes differ (-want +got):\n%s", diff)
	}
}

// TestSchemaRefusesOneMistake checks that the schema finds a single mistake in an otherwise correct policy.
func TestSchemaRefusesOneMistake(t *testing.T) {
	s := policySchema(t)
	const tools, roles, agents = "tools: {t: {%s}}", "approvers: {a: {members: [U0001], max_risk: high, can_approve: [t], %s}}", "agents: {s: {tools: [t], %s}}"
	for _, c := range []struct{ at, right, wrong string }{
		{"mode: %s", "observe", "watch"},
		{"defaults: {%s}", "expires_after: 1d12h", "expires_after: 30"},
		{"defaults: {%s}", "remind_after: never", "remind_after: always"},
		{"defaults: {%s}", "reminders: 0", "reminders: 101"},
		{"defaults: {%s}", "unpinned_tools: unknown", "unpinned_tools: allow"},
		{"caps: {%s}", "requester: 20/h", "requester: 20"},
		{"budgets: {%s}", "calls: 5", ""},
		{"retention: {%s}", "conversations: 1y30d", "records: 7y"},
		{"audit: {%s}", `channel: "#a"`, "every: 10m"},
		{tools, "risk: high", "confirm: true"},
		{tools, "risk: high", "risk: hihg"},
		{tools, "risk: low, max_auto: 5/h", "risk: low, max_auto: 5/week"},
		{tools, "risk: low, max_auto: 5/h", "risk: low, max_auto: 5"},
		{tools, "risk: low, preview: {tool: look}", "risk: low, preview: {within: 5s}"},
		{tools, "risk: low, preview: {tool: look}", "risk: low, preview: {tool: look, dry_run: x}"},
		{tools, "risk: low, rules: [{when: true, confirm: true}]", "risk: low, rules: [{when: true}]"},
		{tools, "risk: low, rules: [{when: true, confirm: true}]", "risk: low, rules: [{confirm: true}]"},
		{tools, "risk: low, stages: [a, {approvers: [a, b], quorum: 2}]", "risk: low, stages: []"},
		{tools, "risk: low, stages: [{approver: a}]", "risk: low, stages: [{approver: a, approvers: [b]}]"},
		{tools, "risk: low, stages: [{group: \"@g\"}]", "risk: low, stages: [{quorum: 2}]"},
		{tools, "risk: low, grants: {uses: 1, within: 1h}", "risk: low, grants: {uses: 1}"},
		{roles, `hours: {zone: UTC, from: "09:00", to: "17:00"}`, `hours: {zone: UTC, from: "09:00"}`},
		{roles, `hours: {zone: UTC, from: "09:00", to: "17:00"}`, `hours: {zone: UTC, from: 9, to: "17:00"}`},
		{agents, "max_steps: 50", "max_steps: 51"},
		{agents, "overrides: {t: {confirm: true}}", "overrides: {t: {}}"},
		{agents, "prompts: [{title: a, message: b}]", "prompts: [{title: a}]"},
		{"servers: {s: {%s}}", "command: [x]", "command: [x], url: https://example.com"},
		{"servers: {s: {%s}}", "command: [x], effects: {t: read-only}", "command: [x], effects: {t: none}"},
		{"http: {h: {description: d, %s}}", "url: https://example.com", "method: GET"},
		{"http: {h: {description: d, url: https://example.com, %s}}", "max_result: 4KB", "max_result: 4"},
		{"http: {h: {description: d, url: https://example.com, %s}}", "result: {status: [2xx, 404]}", "result: {status: [9xx]}"},
		{"openapi: {o: {%s}}", "file: x.yaml", "prefix: false"},
	} {
		for _, text := range []string{c.right, c.wrong} {
			data := fmt.Appendf(nil, "version: 1\n"+c.at+"\n", text)
			_, refused := config.ParsePolicy("p.yaml", data)
			broken := validate(s, data)
			if errors.Is(broken, errNotYAML) || (refused != nil) != (text == c.wrong) || (broken != nil) != (text == c.wrong) {
				t.Errorf("%s\nthe reader: %v\nthe schema: %v", data, refused, broken)
			}
		}
	}
}

// TestSchemaHasTheKeys checks that each mapping of the schema has exactly the keys that the reader accepts.
func TestSchemaHasTheKeys(t *testing.T) {
	s := policySchema(t)
	defs := func(name string) *jsonschema.Schema {
		return s.Properties[name].AdditionalProperties.(*jsonschema.Schema).Ref
	}
	tool, role, agent, server, http := defs("tools"), defs("approvers"), defs("agents"), defs("servers"), defs("http")
	stage := tool.Properties["stages"].Ref.Items2020.AnyOf[1].Ref
	preview := tool.Properties["preview"].AnyOf[2].Ref
	rule := tool.Properties["rules"].Items2020.Ref
	for path, c := range map[string]struct {
		schema *jsonschema.Schema
		text   string
	}{
		"":                 {s, "qqqq: 1"},
		"defaults":         {s.Properties["defaults"], "defaults: {qqqq: 1}"},
		"unknown_tool":     {s.Properties["defaults"].Properties["unknown_tool"], "defaults: {unknown_tool: {qqqq: 1}}"},
		"caps":             {s.Properties["caps"], "caps: {qqqq: 1}"},
		"budgets":          {s.Properties["budgets"].Ref, "budgets: {qqqq: 1}"},
		"retention":        {s.Properties["retention"], "retention: {qqqq: 1}"},
		"audit":            {s.Properties["audit"], "audit: {qqqq: 1}"},
		"report":           {s.Properties["report"], "report: {qqqq: 1}"},
		"operators":        {s.Properties["operators"], "operators: {qqqq: 1}"},
		"tools":            {tool, "tools: {x: {qqqq: 1}}"},
		"tools preview":    {preview, "tools: {x: {preview: {qqqq: 1}}}"},
		"tools rules":      {rule, "tools: {x: {rules: [{qqqq: 1}]}}"},
		"tools stages":     {stage, "tools: {x: {stages: [{qqqq: 1}]}}"},
		"tools trust":      {tool.Properties["trust"], "tools: {x: {trust: {qqqq: 1}}}"},
		"tools grants":     {tool.Properties["grants"], "tools: {x: {grants: {qqqq: 1}}}"},
		"approvers":        {role, "approvers: {x: {qqqq: 1}}"},
		"approvers hours":  {role.Properties["hours"], "approvers: {x: {hours: {qqqq: 1}}}"},
		"agents":           {agent, "agents: {x: {qqqq: 1}}"},
		"agents prompts":   {agent.Properties["prompts"].Items2020, "agents: {x: {prompts: [{qqqq: 1}]}}"},
		"clients":          {defs("clients"), "clients: {x: {qqqq: 1}}"},
		"clients caps":     {defs("clients").Properties["caps"], "clients: {x: {caps: {qqqq: 1}}}"},
		"clients oauth":    {defs("clients").Properties["oauth"], "clients: {x: {oauth: {qqqq: 1}}}"},
		"clients webhook":  {defs("clients").Properties["webhook"], "clients: {x: {webhook: {qqqq: 1}}}"},
		"agents overrides": {agent.Properties["overrides"].AdditionalProperties.(*jsonschema.Schema).Ref, "agents: {x: {overrides: {x: {qqqq: 1}}}}"},
		"servers":          {server, "servers: {x: {qqqq: 1}}"},
		"servers oauth":    {server.Properties["oauth"], "servers: {x: {oauth: {qqqq: 1}}}"},
		"http":             {http, "http: {x: {qqqq: 1}}"},
		"http result":      {http.Properties["result"], "http: {x: {result: {qqqq: 1}}}"},
		"openapi":          {defs("openapi"), "openapi: {x: {qqqq: 1}}"},
	} {
		_, err := config.ParsePolicy("p.yaml", []byte("version: 1\n"+c.text+"\n"))
		var problems yamldoc.Problems
		if !errors.As(err, &problems) {
			t.Fatalf("%s: %v", path, err)
		}
		var keys, have []string
		for _, p := range problems {
			if list, ok := strings.CutPrefix(p.Hint, "the keys here are "); ok {
				keys = strings.Split(list, ", ")
			}
		}
		for key := range c.schema.Properties {
			have = append(have, key)
		}
		slices.Sort(keys)
		slices.Sort(have)
		if diff := cmp.Diff(keys, have); diff != "" {
			t.Errorf("%q: the keys of the schema differ (-reader +schema):\n%s", path, diff)
		}
	}
}
