// Package conformance tests the client with the conformance suite of the Model Context Protocol. For each scenario,
// the suite acts as a server, and starts this test binary as the client.
package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"countersign/agent"
	"countersign/agent/mcp"
	"countersign/config"
	"countersign/internal/testkit"
	"countersign/internal/testkit/npm"
)

// driverKey is an environment variable. If the variable is set, this test binary runs as the client of a scenario.
const driverKey = "MCP_CONFORMANCE_DRIVER"

func TestMain(m *testing.M) {
	if os.Getenv(driverKey) != "" {
		if err := drive(os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// drive connects to the scenario's server and calls each of its tools, as the bot does.
func drive(address string) error {
	ctx, stop := context.WithTimeout(context.Background(), 25*time.Second)
	defer stop()
	s := config.Server{Name: "suite", URL: address, Timeout: 20 * time.Second, MaxResult: 1 << 20, Allow: []string{"127.0.0.0/8", "::1/128"}}
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if raw := os.Getenv("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &given); err != nil {
			return err
		}
	}
	if given.ClientID != "" {
		issuer, err := issuerOf(ctx, address)
		if err != nil {
			return err
		}
		s.OAuth = &config.OAuth{Issuer: issuer, ClientID: given.ClientID, ClientSecret: given.ClientSecret}
	}
	offered := make(chan []agent.Tool, 100)
	client := mcp.Open(mcp.Config{Servers: []config.Server{s}, Version: "conformance", Offer: func(_ string, tools []agent.Tool) { offered <- tools }})
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- client.Run(running) }()
	defer func() {
		end()
		<-ended
	}()
	select {
	case tools := <-offered:
		for _, t := range tools {
			args := `{}`
			if strings.HasSuffix(t.Name, "add_numbers") {
				args = `{"a":2,"b":3}`
			}
			text, err := t.Run(ctx, agent.Invocation{Key: "exec-" + t.Name, Args: []byte(args), Ask: acceptAll})
			fmt.Println(t.Name, text, err)
		}
	case <-ctx.Done():
		return fmt.Errorf("the server was not listed: %+v", client.Status())
	}
	return nil
}

// acceptAll accepts a form without values.
func acceptAll(context.Context, agent.Form) (agent.Reply, error) {
	return agent.Reply{Action: agent.ReplyAccepted, Values: []byte(`{}`)}, nil
}

// scenarios lists the scenarios of the suite that apply to a client without a person at a browser. docs/mcp.md lists
// the other scenarios, with the reasons.
var scenarios = []string{"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "auth/client-credentials-basic"}

const tries = 3

func TestScenarios(t *testing.T) {
	testkit.SkipIfShort(t)
	node, tool := npm.Require(t, "the conformance suite was")
	dir := npm.Installed(t, tool, ".", "mcp-conformance")
	// The suite needs a newer Node.js than other tests. The suite's npm package includes such a Node.js for some
	// machines.
	for _, machine := range []string{"x64", runtime.GOARCH} {
		if newer := filepath.Join(dir, "node_modules", "node-"+runtime.GOOS+"-"+machine, "bin", "node"); runs(newer) {
			node = newer
		}
	}
	passed := 0
	for _, name := range scenarios {
		t.Run(name, func(t *testing.T) {
			var n int
			var problems []string
			for range tries { // repeated, because checks of times may fail on a busy machine
				n, problems = scenario(t, node, dir, name)
				if len(problems) == 0 {
					break
				}
			}
			for _, p := range problems {
				t.Error(p)
			}
			t.Logf("%d checks passed", n)
			passed += n
		})
	}
	t.Logf("%d scenarios, %d checks passed", len(scenarios), passed)
}

// scenario runs one scenario. It returns the number of passed checks and the list of failures.
func scenario(t *testing.T, node, dir, name string) (int, []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
		"client", "--command", self, "--scenario", name, "--timeout", "30000", "--output-dir", out)
	cmd.Env = append(os.Environ(), driverKey+"=1")
	said, err := cmd.CombinedOutput()
	n, problems := checks(t, out)
	if err != nil || n == 0 {
		problems = append(problems, fmt.Sprintf("%d checks passed; %v\n%s", n, err, said))
	}
	return n, problems
}

// checks counts the passed checks in the suite's output, and lists the failed checks.
func checks(t *testing.T, dir string) (n int, failed []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var found []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(raw, &found); err != nil {
			return err
		}
		for _, c := range found {
			switch c.Status {
			case "SUCCESS":
				n++
			case "INFO", "WARNING":
			default:
				failed = append(failed, c.ID+": "+c.Status+": "+c.ErrorMessage)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, failed
}

// runs reports whether a program is installed and works on this machine.
func runs(path string) bool { return exec.Command(path, "--version").Run() == nil }
