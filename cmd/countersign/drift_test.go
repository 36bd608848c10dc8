package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent/pins"
	"countersign/approvers"
)

// shifting is an MCP server over HTTP whose tools a test describes anew.
type shifting struct {
	*httptest.Server
	mcp *mcp.Server
}

// openShifting opens a server with tools, as NAME: DESCRIPTION.
func openShifting(t *testing.T, tools map[string]string) *shifting {
	t.Helper()
	s := &shifting{mcp: mcp.NewServer(&mcp.Implementation{Name: "shifting", Version: "1"}, nil)}
	for name, description := range tools {
		s.says(name, description)
	}
	s.Server = httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, nil))
	t.Cleanup(func() {
		s.CloseClientConnections() // a stream would never end by itself
		s.Close()
	})
	return s
}

// says describes a tool, and tells whoever is connected.
func (s *shifting) says(name, description string) {
	s.mcp.AddTool(&mcp.Tool{
		Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"}}}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: name == "look"},
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "did " + name}}}, nil
	})
}

func (s *shifting) entry(name, more string) string {
	return fmt.Sprintf("servers:\n  %s: {url: %q, allow: [127.0.0.1]%s}\n", name, s.URL, more)
}

// pinAll pins all that a toolbox is offered, as its operator does.
func (b *boxAt) pinAll() {
	b.Helper()
	var l pins.Lock
	all, _ := b.Status()
	for _, t := range all {
		if t.Definition == nil {
			continue
		}
		p, err := pins.Make(t.Tool.Name, t.Tool.Source, t.Definition, "anna", time.Now())
		if err != nil {
			b.Fatal(err)
		}
		l = l.With(p)
	}
	if err := l.Write(pins.Beside(b.path)); err != nil {
		b.Fatal(err)
	}
}

// stand is how a toolbox's tools stand.
func (b *boxAt) stand() string {
	var out []string
	all, _ := b.Status()
	for _, t := range all {
		if t.State != pins.None {
			out = append(out, t.Tool.Name+" "+string(t.State))
		}
	}
	return strings.Join(out, ", ")
}

// What is not as it was pinned is blocked, and the operator is told of it once, with what changed; a lock file that is
// written while the bot runs holds at once.
func TestDriftIsTold(t *testing.T) {
	t.Parallel()
	s := openShifting(t, map[string]string{"send": "Sends a letter.", "look": "Looks."})
	b := openBox(t, s.entry("crm", ""))
	b.begin()
	b.until("the tools are there", func() bool { return b.stand() == "crm.look new, crm.send new" })
	b.ps.driftReporter.tell()
	b.ps.driftReporter.tell()
	if said := b.log.with("a tool is not pinned"); len(said) != 2 {
		t.Errorf("said of new tools: %v", said)
	}
	if why := fmt.Sprint(b.ps.pinState(t.Context())); why != "2 tools not as pinned: crm.look (new), crm.send (new); see countersign tools" {
		t.Errorf("/readyz says %s", why)
	}
	m := newMetrics(emptyStore(t), metricsPolicy)
	m.registry.MustRegister(blockedTools{b.Registry})
	wantLines(t, scrape(t, m), `countersign_tools_blocked{source="crm"} 2`)

	b.pinAll()
	if b.ps.look(false) {
		t.Error("a lock file is taken that may be half written")
	}
	if !b.ps.look(false) || b.stand() != "crm.look same, crm.send same" || b.ps.pinState(t.Context()) != nil {
		t.Fatalf("pinned, they are %s: %v", b.stand(), b.ps.pinState(t.Context()))
	}
	if b.ps.look(false) || b.ps.look(true) {
		t.Error("the same lock file is news")
	}
	b.ps.driftReporter.tell()
	if said := b.log.with("a tool is what was pinned again"); len(said) != 2 {
		t.Errorf("%v", said)
	}

	s.says("send", "Sends a letter to whoever pays.")
	b.until("it drifts", func() bool { return b.stand() == "crm.look same, crm.send drifted" })
	b.ps.driftReporter.tell()
	b.ps.driftReporter.tell()
	said := b.log.with("the definition of a tool changed, so it is blocked")
	if len(said) != 1 || !strings.Contains(said[0], `- description: \"Sends a letter.\"`) || !strings.Contains(said[0], `+ description: \"Sends a letter to whoever pays.\"`) {
		t.Errorf("%v", said)
	}
	s.mcp.RemoveTools("look")
	b.until("it is gone", func() bool { return b.stand() == "crm.look gone, crm.send drifted" })
	b.ps.driftReporter.tell()
	if said := b.log.with("is not offered any more"); len(said) != 1 {
		t.Errorf("%v", said)
	}
	wantLines(t, scrape(t, m), `countersign_tools_blocked{source="crm"} 2`)
}

// A lock file that can't be used changes nothing, and is told of once; another one is taken.
func TestBrokenLockIsRefused(t *testing.T) {
	t.Parallel()
	s := openShifting(t, map[string]string{"send": "Sends a letter."})
	b := openBox(t, s.entry("crm", ""))
	b.begin()
	b.until("the tool is there", func() bool { return b.stand() == "crm.send new" })
	b.pinAll()
	b.ps.look(true)
	whole, err := os.ReadFile(pins.Beside(b.path))
	if err != nil {
		t.Fatal(err)
	}
	write(t, pins.Beside(b.path), whole[:len(whole)/2])
	if b.ps.look(true) {
		t.Error("half a lock file was taken")
	}
	b.ps.look(false)
	b.ps.look(false)
	if said := b.log.with("the lock file changed and was refused"); len(said) != 1 {
		t.Errorf("%v", said)
	}
	if why := fmt.Sprint(b.ps.pinState(t.Context())); !strings.Contains(why, "the lock file was refused at ") || !strings.Contains(why, "cut short") || b.stand() != "crm.send same" {
		t.Errorf("%s; the tool is %s", why, b.stand())
	}
	if err := os.Remove(pins.Beside(b.path)); err != nil {
		t.Fatal(err)
	}
	if !b.ps.look(true) || b.stand() != "crm.send new" || strings.Contains(fmt.Sprint(b.ps.pinState(t.Context())), "refused") {
		t.Errorf("without a lock file the tool is %s: %v", b.stand(), b.ps.pinState(t.Context()))
	}
}

// What trusted tools let presume, and which tools count as unknown, is part of the policy in force from the moment in
// which the tools change.
func TestToolsAddToThePolicyInForce(t *testing.T) {
	t.Parallel()
	s := openShifting(t, map[string]string{"send": "Sends a letter.", "look": "Looks."})
	b := openBox(t, s.entry("crm", ", trust_annotations: true"))
	b.begin()
	b.until("the tools are there", func() bool { return b.stand() == "crm.look new, crm.send new" })
	risk := func(tool string) string {
		p, _ := b.ps.active.Load().Tool(tool, "support")
		if p.Confirm {
			return p.Risk.String() + ", asks"
		}
		return p.Risk.String()
	}
	if risk("crm.look") != "critical, asks" {
		t.Errorf("nobody pinned it, and it is %s", risk("crm.look"))
	}
	b.pinAll()
	b.ps.look(true)
	if risk("crm.look") != "low" || risk("crm.send") != "critical, asks" {
		t.Errorf("pinned: look is %s, send %s", risk("crm.look"), risk("crm.send"))
	}
	if plan := b.ps.active.Load().Plan(approvers.Call{Tool: "crm.look", Facts: approvers.Facts{Agent: "support"}}); !strings.Contains(strings.Join(plan.Why, ";"), "trusts its annotations") {
		t.Errorf("%v", plan.Why)
	}
	s.says("look", "Looks, and sends what it finds.")
	b.until("it drifts", func() bool { return b.stand() == "crm.look drifted, crm.send same" })
	if risk("crm.look") != "critical, asks" {
		t.Errorf("drifted, it is %s", risk("crm.look"))
	}
	if _, ok := b.ps.active.Load().Distrusts("crm.look"); ok {
		t.Error("a blocked tool can be called")
	}
	b.becomes(s.entry("crm", ", trust_annotations: true") + "defaults: {unpinned_tools: unknown}\ntools: {crm.look: {risk: low}}\n")
	if why, ok := b.ps.active.Load().Distrusts("crm.look"); !ok || risk("crm.look") != "critical, asks" {
		t.Errorf("it counts as unknown: %t, %s; it is %s", ok, why, risk("crm.look"))
	}
	if b.ps.look(true) {
		t.Error("the policy file is another one each time it is looked at")
	}
	b.pinAll()
	b.ps.look(true)
	if _, ok := b.ps.active.Load().Distrusts("crm.look"); ok || risk("crm.look") != "low" {
		t.Errorf("pinned again it is %s", risk("crm.look"))
	}
}

func TestWhyPresumed(t *testing.T) {
	b := openBox(t, "")
	for source, want := range map[string]string{
		"crm":             "its server says that it only reads, and the policy trusts its annotations",
		apiSource("shop"): "its OpenAPI file describes it as a request that only reads",
	} {
		s, _ := b.Status()
		one := s[0]
		one.Tool.Source, one.Presumed = source, approvers.Low
		if got := whyPresumed(one); got != want {
			t.Errorf("%s: %s", source, got)
		}
		if one.Presumed = approvers.High; source != "crm" && whyPresumed(one) != "its OpenAPI file describes it as a request that changes something" {
			t.Errorf("%s: %s", source, whyPresumed(one))
		}
	}
}
