package policycmd

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"countersign/cmd/countersign/cli"
)

// If a rule reads caller.proven, a person whom a token proves is planned differently from a person whom the client only
// names. The commands explain and check --replay know the difference. If no token of a client can name a person, the
// call is refused.
func TestProvenPerson(t *testing.T) {
	dir := t.TempDir()
	path, fixtures := filepath.Join(dir, "countersign.yaml"), filepath.Join(dir, "fixtures.yaml")
	write(t, path, []byte(strings.Replace(refundPolicy, "args.amount > 500", "caller.proven && caller.acting_for == 'U0100'", 1)+`
clients:
  desk: {oauth: {issuer: "https://login.example.com", subject: desk-id, person: slack}, agent: support, owner: U0005, tools: [issue_refund]}
  ci: {token: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", agent: support, owner: U0005, tools: [issue_refund]}
`))
	for flags, wants := range map[string][]string{
		"--client desk --on-behalf-of U0100 --proven": {"waits for people, critical risk\n", "U0100, for whom the client acts, as its token proves\n"},
		"--client desk --on-behalf-of U0101 --proven": {"waits for people, high risk\n", "U0101, for whom the client acts, as its token proves\n"},
		"--client desk --on-behalf-of U0100":          {"waits for people, high risk\n", "U0100, for whom the client says that it acts\n"},
		"--client ci --on-behalf-of U0100 --proven":   {"the client ci has no oauth with person in the policy, so a token that names a person is refused"},
		"--client desk --proven":                      {"--proven goes with --on-behalf-of"},
	} {
		var out bytes.Buffer
		cmd := Explain(nil)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"--policy", path, "--tool", "issue_refund"}, strings.Fields(flags)...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			out.WriteString(err.Error())
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("with %s, it prints\n%s\nwant %q", flags, out.String(), want)
			}
		}
	}
	write(t, fixtures, []byte(`
- {tool: issue_refund, client: desk, on_behalf_of: U0100, proven: true, expect: {risk: critical}}
- {tool: issue_refund, client: desk, on_behalf_of: U0100, expect: {risk: high}}
- {tool: issue_refund, client: ci, on_behalf_of: U0100, proven: true, expect: {verdict: refuse}}
`))
	var out bytes.Buffer
	if err := replay(t.Context(), &out, path, fixtures, "", nil); cli.Code(err) != cli.ExitDone {
		t.Errorf("the replay prints\n%s", out.String())
	}
}
