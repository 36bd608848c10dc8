// Package npmtest tests the client with MCP servers that other authors have published on npm.
package npmtest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/agent"
	"countersign/agent/mcp"
	"countersign/config"
	"countersign/internal/testkit"
	"countersign/internal/testkit/npm"
)

// patience limits the time for one step of a test on a busy machine.
const patience = testkit.Patience

// folder returns the path of Node.js, and the directory with the servers.
func folder(t *testing.T) (node, dir string) {
	t.Helper()
	node, tool := npm.Require(t, "MCP servers from npm were")
	return node, filepath.Join(npm.Installed(t, tool, ".", "mcp-servers"), "node_modules", "@modelcontextprotocol")
}

// started returns the configuration of a server from the directory with the servers. The client starts the server
// with the given arguments.
func started(t *testing.T, name, pkg string, args ...string) config.Server {
	t.Helper()
	node, dir := folder(t)
	return config.Server{
		Name: name, Command: append([]string{node, filepath.Join(dir, pkg, "dist", "index.js")}, args...), Timeout: patience, MaxResult: 1 << 20,
	}
}

// offered runs a client for one server until the test ends. It returns the registered tools by name.
func offered(t *testing.T, s config.Server) map[string]agent.Tool {
	t.Helper()
	tools := make(chan []agent.Tool, 100)
	client := mcp.Open(mcp.Config{Servers: []config.Server{s}, Version: "test", Offer: func(_ string, all []agent.Tool) { tools <- all }})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = client.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	select {
	case all := <-tools:
		var r agent.Registry
		for _, err := range r.Replace(s.Name, all) {
			t.Error(err)
		}
		out := map[string]agent.Tool{}
		for _, one := range all {
			out[one.Name] = one
		}
		if len(out) == 0 || len(r.All()) != len(out) {
			t.Fatalf("%d tools are offered, and %d registered", len(out), len(r.All()))
		}
		return out
	case <-time.After(patience):
		t.Fatalf("the server was not listed: %+v", client.Status())
	}
	return nil
}

// call calls a tool with a complete invocation.
func call(t *testing.T, tool agent.Tool, in agent.Invocation, args string) (string, error) {
	t.Helper()
	if tool.Run == nil {
		t.Fatal("there is no such tool")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	in.Key, in.Args = "exec-1", []byte(args)
	return tool.Run(ctx, in)
}

// must calls a tool. If the call fails, the test fails.
func must(t *testing.T, tool agent.Tool, args string) string {
	t.Helper()
	text, err := call(t, tool, agent.Invocation{}, args)
	if err != nil {
		t.Fatalf("%s %s: %v", tool.Name, args, err)
	}
	return text
}

// TestEverything runs the reference server, which has one tool for each feature of the protocol, over pipes and HTTP.
func TestEverything(t *testing.T) {
	t.Run("pipes", func(t *testing.T) {
		t.Setenv("SLACK_BOT_TOKEN", "xoxb-never-for-servers")
		everything(t, started(t, "every", "server-everything", "stdio"))
	})
	t.Run("HTTP", func(t *testing.T) {
		s := started(t, "every", "server-everything")
		everything(t, config.Server{Name: "every", URL: overHTTP(t, s.Command), Allow: []string{"127.0.0.1"}, Timeout: patience, MaxResult: 1 << 20})
	})
}

// overHTTP starts the reference server at an address.
func overHTTP(t *testing.T, command []string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	cmd := exec.Command(command[0], append(command[1:], "streamableHttp")...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return fmt.Sprintf("http://127.0.0.1:%d/mcp", port) // the client retries until the server listens
}

func everything(t *testing.T, s config.Server) {
	tools := offered(t, s)
	var names []string
	for name := range tools {
		names = append(names, name)
	}
	slices.Sort(names)
	t.Logf("%d tools: %s", len(names), strings.Join(names, " "))

	if got := must(t, tools["every.echo"], `{"message":"<&> ü 1.0"}`); !strings.Contains(got, "<&> ü 1.0") {
		t.Errorf("echo: %q", got)
	}
	if got := must(t, tools["every.get-sum"], `{"a":2,"b":40}`); !strings.Contains(got, "42") {
		t.Errorf("get-sum: %q", got)
	}
	if _, err := call(t, tools["every.get-sum"], agent.Invocation{}, `{"a":"two"}`); err == nil {
		t.Error("get-sum takes a text for a number")
	}
	if got := must(t, tools["every.get-env"], `{}`); s.URL == "" && (strings.Contains(got, "never-for-servers") || !strings.Contains(got, "PATH")) {
		t.Errorf("get-env: %s", got)
	}
	if got := must(t, tools["every.get-structured-content"], `{"location":"New York"}`); strings.Count(got, "temperature") != 1 {
		t.Errorf("structured content: %q", got)
	}

	var files []agent.File
	text, err := call(t, tools["every.get-tiny-image"], agent.Invocation{Attach: func(f agent.File) error {
		files = append(files, f)
		return nil
	}}, `{}`)
	if err != nil || len(files) != 1 || files[0].Type != "image/png" || !bytes.HasPrefix(files[0].Data, []byte("\x89PNG")) || !strings.Contains(text, files[0].Name) {
		t.Errorf("an image: %q, %v, %d files", text, err, len(files))
	}

	var mu sync.Mutex
	var steps []agent.Progress
	if _, err := call(t, tools["every.trigger-long-running-operation"], agent.Invocation{Progress: func(p agent.Progress) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, p)
	}}, `{"duration":1,"steps":4}`); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(steps) == 0 || steps[len(steps)-1].Total != 4 {
		t.Errorf("progress: %+v", steps)
	}
	elicited(t, tools)
	for _, name := range []string{"every.get-resource-reference", "every.get-resource-links", "every.get-annotated-message"} {
		if tools[name].Run == nil {
			t.Errorf("%s is not there any more", name)
		}
	}
	if got := must(t, tools["every.get-resource-links"], `{"count":3}`); strings.Count(got, "link to a resource") != 3 {
		t.Errorf("links: %q", got)
	}
	if got := must(t, tools["every.get-resource-reference"], `{"resourceType":"Text","resourceId":1}`); !strings.Contains(got, "[resource ") {
		t.Errorf("a resource: %q", got)
	}
}

// elicited tests an accepted form, a visit to an address, and a declined form.
func elicited(t *testing.T, tools map[string]agent.Tool) {
	t.Helper()
	tool, ok := tools["every.trigger-elicitation-request"]
	if !ok {
		t.Error("the server asks nothing, although it is told that people can be asked")
		return
	}
	var asked []agent.Form
	text, err := call(t, tool, agent.Invocation{Ask: func(_ context.Context, f agent.Form) (agent.Reply, error) {
		asked = append(asked, f)
		return agent.Reply{Action: agent.ReplyAccepted, Values: []byte(`{"name":"Ada Lovelace"}`)}, nil
	}}, `{}`)
	if err != nil || len(asked) != 1 || !strings.Contains(text, "Ada Lovelace") {
		t.Errorf("an answered question: %q, %v, %+v", text, err, asked)
	}
	asked = nil
	if _, err := call(t, tools["every.trigger-url-elicitation"], agent.Invocation{Ask: func(_ context.Context, f agent.Form) (agent.Reply, error) {
		asked = append(asked, f)
		return agent.Reply{Action: agent.ReplyAccepted}, nil
	}}, `{"url":"https://example.com/sign-in","message":"Sign in first"}`); err != nil || len(asked) != 1 || asked[0].URL != "https://example.com/sign-in" {
		t.Errorf("an address to visit: %v, %+v", err, asked)
	}
	text, err = call(t, tool, agent.Invocation{Ask: func(context.Context, agent.Form) (agent.Reply, error) {
		return agent.Reply{Action: agent.ReplyDeclined}, nil
	}}, `{}`)
	if err != nil || !strings.Contains(text, "decline") {
		t.Errorf("a declined question: %q, %v", text, err)
	}
}

// TestFilesystem tests the server that reads and writes a folder. The server's claims must not lower a risk, unless the
// configuration trusts them.
func TestFilesystem(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := started(t, "files", "server-filesystem", dir)
	tools := offered(t, s)
	path := filepath.Join(dir, "note.txt")
	must(t, tools["files.write_file"], fmt.Sprintf(`{"path":%q,"content":"signed"}`, path))
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "signed" {
		t.Errorf("%q, %v", raw, err)
	}
	if got := must(t, tools["files.read_text_file"], fmt.Sprintf(`{"path":%q}`, path)); got == "" || !strings.Contains(got, "signed") {
		t.Errorf("%q", got)
	}
	if _, err := call(t, tools["files.read_text_file"], agent.Invocation{}, `{"path":"/etc/passwd"}`); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("a file outside of the folder: %v", err)
	}
	read := tools["files.read_text_file"]
	if read.Claims.ReadOnly == nil || !*read.Claims.ReadOnly || read.Presumed != 0 || read.Effect != "unprotected" {
		t.Errorf("%+v", read.Claims)
	}
	s.TrustAnnotations = true
	trusted := offered(t, s)["files.read_text_file"]
	if trusted.Presumed.String() != "low" || trusted.Effect != "read-only" {
		t.Errorf("%v %v", trusted.Presumed, trusted.Effect)
	}
}

// TestMemory tests the server that stores facts.
func TestMemory(t *testing.T) {
	s := started(t, "memory", "server-memory")
	s.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}
	tools := offered(t, s)
	must(t, tools["memory.create_entities"], `{"entities":[{"name":"Ada","entityType":"person","observations":["countersigns"]}]}`)
	if got := must(t, tools["memory.search_nodes"], `{"query":"Ada"}`); !strings.Contains(got, "countersigns") {
		t.Errorf("%q", got)
	}
}
