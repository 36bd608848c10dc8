package check_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"countersign/config"
	"countersign/config/check"
	"countersign/internal/demo/shop"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// shopTools lists the registered tools for the policies in testdata/findings. These are the tools of the sample shop
// that the policy in the documentation names.
var shopTools = shopToolsNamed("apply_discount", "cancel_account", "delete_account", "issue_refund", "search_orders", "send_email", "update_shipping_address")

// shopToolsNamed returns the sample shop's tools with these names, or all its tools if no name is given.
func shopToolsNamed(names ...string) []check.Tool {
	var out []check.Tool
	for _, t := range shop.New(time.Now).Tools() {
		if len(names) == 0 || slices.Contains(names, t.Name) {
			out = append(out, check.Tool{Name: t.Name, Schema: t.Schema})
		}
	}
	return out
}

// golden compares the output about a file with the golden file beside it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	path = strings.TrimSuffix(path, ".yaml") + ".golden"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the output differs from %s (-want +got; run with -update if it should):\n%s", path, diff)
	}
}

// TestManyTools checks the warning about an agent with more tools than OpenAI's API takes.
func TestManyTools(t *testing.T) {
	f := parse(t, "version: 1\nagents:\n  all: {channels: [\"*\"], tools: [\"*\"]}\n  few: {channels: [\"#few\"], tools: [crm.t1]}\n")
	var tools []check.Tool
	for i := range 129 {
		tools = append(tools, check.Tool{Name: fmt.Sprintf("crm.t%d", i), Source: "crm"})
	}
	const want = "agents.all.tools: offers the model 129 tools, and OpenAI's API takes at most 128 in a request"
	for n, warned := range map[int]int{129: 1, 128: 0} {
		var said strings.Builder
		for _, p := range check.Run(f, tools[:n]).Warnings() {
			said.WriteString(p.Error() + "\n")
		}
		if strings.Count(said.String(), want) != warned || strings.Count(said.String(), "offers the model") != warned {
			t.Errorf("%d tools:\n%s", n, said.String())
		}
	}
}

// TestFindings compares the findings and the report about each file in testdata/findings with a golden file.
func TestFindings(t *testing.T) {
	for _, path := range files(t, "testdata/findings/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := config.ParsePolicy("countersign.yaml", data)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, path, check.Run(f, shopTools).Excerpts()+"\n\n"+reported(check.NewReport(f, shopTools)))
		})
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("no files like %s: %v", pattern, err)
	}
	return found
}

// reported formats a report as text, with one line per call.
func reported(r check.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "usually: %s (observed: %t)\n", r.Usually, r.Observe)
	for _, g := range r.Gates {
		fmt.Fprintf(&b, "waits: %s, %s risk, when %q:", called(g.Tool, g.Agent, g.Known), g.Risk, g.When)
		if g.Refused != "" {
			b.WriteString(" refused, " + g.Refused)
		}
		for _, s := range g.Stages {
			fmt.Fprintf(&b, " [%d of %s %v by %s, then %v%s]", s.Quorum, s.Title, s.Members, strings.Join(s.Cards, " and "), s.Leads, listed(", ", s.Terms))
		}
		b.WriteString(listed("\n  note: ", g.Notes))
		b.WriteByte('\n')
	}
	for _, a := range r.Automatic {
		fmt.Fprintf(&b, "runs: %s, %s risk, limit %d, preview %t, rules %t, observed %t\n", called(a.Tool, a.Agent, a.Known), a.Risk, a.Limit.Count, a.Preview, a.Rules, a.Observe)
	}
	for _, w := range r.Working {
		fmt.Fprintf(&b, "works: %s, %s\n", w.Title, w.Hours)
	}
	for _, c := range r.Clients {
		fmt.Fprintf(&b, "client: %s (%s) of %s: %s; %s\n", c.Name, c.Title, c.Agent, strings.Join(c.Tools, ", "), strings.Join(c.Notes, "; "))
	}
	for _, bound := range r.Bounds {
		fmt.Fprintf(&b, "bound: %s\n", bound)
	}
	return b.String()
}

// listed puts the same text before each part.
func listed(before string, parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(before + p)
	}
	return b.String()
}

func called(tool, agent string, known bool) string {
	if tool == "" {
		tool = "(any other)"
	}
	if !known {
		tool += " (not in the policy)"
	}
	if agent != "" {
		tool += " asked by " + agent
	}
	return tool
}

func parse(t testing.TB, text string) *config.File {
	t.Helper()
	f, err := config.ParsePolicy("countersign.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}
