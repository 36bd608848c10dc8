package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
	"countersign/internal/demo/shop"
)

// FuzzParsePolicy checks that any file is refused with problems, or gives a policy. Each problem names the file. With
// the policy, check, report and planning work without a panic.
func FuzzParsePolicy(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.yaml", "check/testdata/*/*.yaml", "../cmd/countersign/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	schema, err := os.ReadFile("condition/testdata/typed/schema.json")
	if err != nil {
		f.Fatal(err)
	}
	tools := []check.Tool{{Name: "refund", Schema: schema}}
	for _, tool := range shop.New(time.Now).Tools() {
		tools = append(tools, check.Tool{Name: tool.Name, Schema: tool.Schema})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := config.ParsePolicy("f.yaml", data)
		if err != nil {
			placed(t, err)
			return
		}
		if text := check.Run(file, tools).Excerpts(); !utf8.ValidString(text) {
			t.Fatalf("the finding is not text: %q", text)
		}
		_ = check.NewReport(file, []check.Tool{{Name: "x"}})
		for _, tool := range file.Policy.Tools {
			if !tool.Risk.Valid() {
				t.Fatalf("a tool without a risk: %+v", tool)
			}
			args := map[string]any{"amount": 5.0, "currency": "USD", "order_id": "x"}
			plan := file.Policy.Plan(approvers.Call{Tool: tool.Name, Facts: approvers.Facts{Args: args}})
			if !plan.Risk.Valid() {
				t.Fatalf("a plan without a risk: %+v", plan)
			}
			if tool.Preview.Render != nil {
				if text, err := tool.Preview.Render(args); err == nil && utf8.RuneCountInString(text) > 600 {
					t.Fatalf("a preview of %d characters", utf8.RuneCountInString(text))
				}
			}
		}
		for _, role := range file.Policy.Approvers {
			if !role.MaxRisk.Valid() {
				t.Fatalf("an approver without a ceiling: %+v", role)
			}
		}
	})
}

// FuzzParseFixtures checks that any file is refused with problems, or gives fixtures. Each problem names the file. Each
// fixture has a tool, a line and arguments.
func FuzzParseFixtures(f *testing.F) {
	for _, seed := range []string{
		"- {tool: issue_refund, args: {amount: 600}, expect: {verdict: ask}}\n",
		"- name: n\n  tool: t\n  args: '{\"a\":1}'\n  requester: U0100\n  authors: [U0002]\n  at: 2026-12-24T18:00:00Z\n  dm: true\n  expect: {risk: high, who: [], why: x}\n",
		"- &a {tool: x, args: &b {c: *b}}\n- *a\n- <<: *a\n  tool: y\n",
		"- {tool: x, args: {a: .inf, b: 0x1F, c: !!str 5, ? {d: 1} : 2}}\n",
		"- tool: |\n    x\n  args: >-\n    {}\n", "tool: x\n", "- 5\n", "- tool: >", "[]", "- {tool: x\n", "\t- x\n", "--- []\n--- []\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fixtures, err := config.ParseFixtures("f.yaml", data)
		if err != nil {
			placed(t, err)
			return
		}
		if len(fixtures) == 0 {
			t.Fatal("neither fixtures nor problems")
		}
		for _, x := range fixtures {
			if x.Tool == "" || x.Line < 1 || x.Args == nil {
				t.Fatalf("%+v", x)
			}
			_, _ = approvers.StrictArgs(x.Args, true)
		}
	})
}

// placed checks that an error is a list of problems, each with the name of the file. A problem with a line also has a
// column.
func placed(t *testing.T, err error) {
	t.Helper()
	var problems yamldoc.Problems
	if !errors.As(err, &problems) || len(problems.Errors()) == 0 {
		t.Fatalf("refused without a problem: %v", err)
	}
	for _, p := range problems {
		if p.Message == "" || p.File != "f.yaml" || (p.Line > 0 && p.Column < 1) {
			t.Fatalf("%+v", p)
		}
	}
	if !utf8.ValidString(problems.Excerpts()) {
		t.Fatalf("the message is not text: %q", problems.Excerpts())
	}
}
