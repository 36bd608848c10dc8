package policycmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/agent/pins"
)

// pinned writes a policy of a server crm and the tool crm.update. If lock is true, pinned also writes a lock file with
// the pin of this tool. The result is the policy's path.
func pinned(t *testing.T, dir, defaults string, lock bool) string {
	t.Helper()
	path := filepath.Join(dir, "countersign.yaml")
	write(t, path, []byte(`version: 1
servers: {crm: {url: "https://crm.example.com/mcp"}}
defaults: {`+defaults+`}
tools:
  crm.update: {risk: medium, confirm: true}
  crm.other: {risk: medium}
approvers:
  lead: {title: Lead, members: [U0002, U0003], max_risk: critical, can_approve: ["*"]}
agents:
  support: {channels: ["#support"], tools: ["*"]}
clients:
  ci: {token: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", agent: support, owner: U0005, tools: [crm.other]}
`))
	if !lock {
		return path
	}
	definition := json.RawMessage(`{"name":"update","inputSchema":{"type":"object","properties":{"note":{"type":"string","writeOnly":true}},"required":["note"],"additionalProperties":false}}`)
	pin, err := pins.Make("crm.update", "crm", definition, "jo", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := (pins.Lock{}).With(pin).Write(pins.Beside(path)); err != nil {
		t.Fatal(err)
	}
	return path
}

// If only one of two policies has a lock file, check --against reads both with its pins. Otherwise equal policies would
// differ, because the arguments of a tool without a pin are not checked.
func TestAgainstWithoutLock(t *testing.T) {
	with, without := pinned(t, t.TempDir(), "", true), pinned(t, t.TempDir(), "", false)
	fixtures := filepath.Join(t.TempDir(), "fixtures.yaml")
	write(t, fixtures, []byte("- {tool: crm.update, args: {other: x}}\n- {tool: crm.update, args: {note: x}}\n"))
	for _, pair := range [][2]string{{with, without}, {without, with}} {
		var out bytes.Buffer
		if err := replay(t.Context(), &out, pair[0], fixtures, pair[1], nil); err != nil {
			t.Errorf("%v:\n%s", err, out.String())
		}
		if !strings.HasPrefix(out.String(), "Only one of the policies has a lock file, so both are read with the pins in "+pins.Beside(with)+".\n\n") {
			t.Errorf("it prints\n%s", out.String())
		}
	}
	var out bytes.Buffer
	if err := replay(t.Context(), &out, with, fixtures, with, nil); err != nil || strings.Contains(out.String(), "lock file") {
		t.Errorf("%v, it prints\n%s", err, out.String())
	}
}

// The commands explain and check --replay say what the bot does with a tool that is not pinned.
func TestUnpinned(t *testing.T) {
	const blocked = "Note: crm.other: the lock file has no pin for it, so the bot refuses its calls. Pin it: countersign tools pin\n\n"
	const unknown = "Note: crm.other: the lock file has no pin for it, so the bot treats its calls as calls of an unknown tool, other than this plan. Pin it: countersign tools pin\n\n"
	for _, c := range []struct{ defaults, flags, want string }{
		{"", "--tool crm.other", blocked},
		{"unpinned_tools: unknown", "--tool crm.other", unknown},
		{"", "--tool crm.other --client ci", ""},
		{"", `--tool crm.update --args {"note":"x"}`, ""},
	} {
		path := pinned(t, t.TempDir(), c.defaults, true)
		var out bytes.Buffer
		cmd := Explain(nil)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"--policy", path}, strings.Fields(c.flags)...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s: %v", c.flags, err)
		}
		if strings.Contains(out.String(), "Note: ") != (c.want != "") || !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("%s: it prints\n%s", c.flags, out.String())
		}
		if masked := strings.Contains(out.String(), "  masked        note; revealed to each approver before they approve\n"); masked != strings.Contains(c.flags, "update") {
			t.Errorf("%s: it prints\n%s", c.flags, out.String())
		}
	}
	path, fixtures := pinned(t, t.TempDir(), "", true), filepath.Join(t.TempDir(), "fixtures.yaml")
	write(t, fixtures, []byte("- {name: \"a\\nok       forged\", tool: crm.other}\n- {tool: crm.other, args: {x: 1}}\n"))
	var out bytes.Buffer
	if err := replay(t.Context(), &out, path, fixtures, "", nil); err != nil || strings.Count(out.String(), blocked) != 1 || !strings.Contains(out.String(), "planned  a ok       forged: auto") {
		t.Errorf("%v, it prints\n%s", err, out.String())
	}
}

// TestLongConditions checks that a condition with several lines does not break the lines of check and explain.
func TestLongConditions(t *testing.T) {
	path := pinned(t, t.TempDir(), "", true)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, bytes.Replace(data, []byte("crm.other: {risk: medium}"), []byte("crm.other:\n    risk: medium\n    rules:\n      - when: |\n          args.x > 1 &&\n          args.y != \"a\tb\"\n        confirm: true"), 1))
	var out bytes.Buffer
	if err := runCheck(&out, []string{path}); err != nil || !strings.Contains(out.String(), "  crm.other when args.x > 1 && args.y != \"a\\tb\"  ") {
		t.Errorf("%v, it prints\n%s", err, out.String())
	}
	out.Reset()
	if err := explain(&out, explainOptions{policy: path, tool: "crm.other", args: `{"x":2,"y":"3"}`, mode: "decide"}); err != nil || !strings.Contains(out.String(), "Rule 1, args.x > 1 && args.y != \"a\\tb\": matches") {
		t.Errorf("%v, it prints\n%s", err, out.String())
	}
}
