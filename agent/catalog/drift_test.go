package catalog

import (
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
)

// A tool that differs from its pin is blocked. The operator gets one log message with the differences.
func TestDriftIsTold(t *testing.T) {
	t.Parallel()
	s := openServer(t, "send", "look")
	f := openFixture(t, s.servers("crm", ""))
	f.begin()
	f.until("the tools are there", func() bool { return f.states() == "crm.look new, crm.send new" })
	f.ReportDrift()
	f.ReportDrift()
	if said := f.log.with("a tool is not pinned"); len(said) != 2 {
		t.Errorf("logged about new tools: %v", said)
	}
	if why := fmt.Sprint(f.Pinned(t.Context())); why != "2 tools not as pinned: crm.look (new), crm.send (new); see countersign tools" {
		t.Errorf("/readyz says %s", why)
	}

	f.pinAll()
	f.repin()
	if f.states() != "crm.look same, crm.send same" || f.Pinned(t.Context()) != nil {
		t.Fatalf("after pinning the tools are %s: %v", f.states(), f.Pinned(t.Context()))
	}
	f.ReportDrift()
	if said := f.log.with("a tool is as pinned again"); len(said) != 2 {
		t.Errorf("%v", said)
	}

	s.describe("send", "Sends a letter to the customer.")
	f.until("it drifts", func() bool { return f.states() == "crm.look same, crm.send drifted" })
	f.ReportDrift()
	f.ReportDrift()
	said := f.log.with("the definition of a tool changed, so it is blocked")
	if len(said) != 1 || !strings.Contains(said[0], `- description: \"Does send.\"`) || !strings.Contains(said[0], `+ description: \"Sends a letter to the customer.\"`) {
		t.Errorf("%v", said)
	}
	s.mcp.RemoveTools("look")
	f.until("it is gone", func() bool { return f.states() == "crm.look gone, crm.send drifted" })
	f.ReportDrift()
	if said := f.log.with("is not offered any more"); len(said) != 1 {
		t.Errorf("%v", said)
	}
}

// When the tools change, the policy in force is updated. The updated policy has the new risks from trusted sources,
// and the new list of tools that count as unknown.
func TestToolsAddToThePolicyInForce(t *testing.T) {
	t.Parallel()
	s := openServer(t, "send", "look")
	f := openFixture(t, s.servers("crm", ", trust_annotations: true"))
	f.begin()
	f.until("the tools are there", func() bool { return f.states() == "crm.look new, crm.send new" })
	risk := func(tool string) string {
		p, _ := f.Policy().Tool(tool, "support")
		if p.Confirm {
			return p.Risk.String() + ", asks"
		}
		return p.Risk.String()
	}
	if risk("crm.look") != "critical, asks" {
		t.Errorf("before it is pinned, its risk is %s", risk("crm.look"))
	}
	f.pinAll()
	f.repin()
	if risk("crm.look") != "low" || risk("crm.send") != "critical, asks" {
		t.Errorf("pinned: look is %s, send %s", risk("crm.look"), risk("crm.send"))
	}
	if plan := f.Policy().Plan(approvers.Call{Tool: "crm.look", Facts: approvers.Facts{Agent: "support"}}); !strings.Contains(strings.Join(plan.Why, ";"), "trusts its annotations") {
		t.Errorf("%v", plan.Why)
	}
	s.describe("look", "Looks, and sends what it finds.")
	f.until("it drifts", func() bool { return f.states() == "crm.look drifted, crm.send same" })
	if risk("crm.look") != "critical, asks" {
		t.Errorf("after the drift its risk is %s", risk("crm.look"))
	}
	if _, ok := f.Policy().Distrusts("crm.look"); ok {
		t.Error("a blocked tool can be called")
	}
	f.becomes(s.servers("crm", ", trust_annotations: true") + "defaults: {unpinned_tools: unknown}\ntools: {crm.look: {risk: low}}\n")
	if why, ok := f.Policy().Distrusts("crm.look"); !ok || risk("crm.look") != "critical, asks" {
		t.Errorf("it counts as unknown: %t, %s; its risk is %s", ok, why, risk("crm.look"))
	}
	f.ReportDrift()
	if said := f.log.with("so it counts as an unknown tool and open requests for it are voided"); len(said) != 1 || len(f.log.with("so it is blocked")) != 0 {
		t.Errorf("%v", f.log.with("crm.look"))
	}
	f.pinAll()
	f.repin()
	if _, ok := f.Policy().Distrusts("crm.look"); ok || risk("crm.look") != "low" {
		t.Errorf("after it is pinned again, its risk is %s", risk("crm.look"))
	}
}

func TestWhyPresumed(t *testing.T) {
	f := openFixture(t, "")
	for source, want := range map[string]string{
		"crm":              "its server says that it only reads, and the policy trusts its annotations",
		apiPrefix + "shop": "its OpenAPI file describes it as a request that only reads",
	} {
		s, _ := f.Status()
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
