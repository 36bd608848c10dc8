// Package sdks runs the programs of docs/sdks.md in tests, with the SDKs that are published on npm and scripted models.
package sdks

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/internal/testkit/npm"
)

const untried = "the TypeScript client, and its adapters for the OpenAI Agents SDK, the AI SDK and LangChain, were"

// mostLines is the maximum length of a program in docs/sdks.md, in lines.
const mostLines = 20

// patience is how long a program may take until it ends.
const patience = 2 * time.Minute

// Without is the name of the program that uses the client without an SDK.
const Without = "without"

// Texts returns the programs of docs/sdks.md, by the name of the adapter. root is the root of the repository.
func Texts(t *testing.T, root string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "sdks.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```ts\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		name := Without
		if m := regexp.MustCompile(`countersign-client/(\w+)"`).FindStringSubmatch(block[1]); m != nil {
			name = m[1]
		}
		out[name] = block[1]
		if n := len(strings.FieldsFunc(block[1], func(c rune) bool { return c == '\n' })); n > mostLines {
			t.Errorf("%s: the program has %d lines, more than %d", name, n, mostLines)
		}
	}
	if len(out) != 4 {
		t.Fatalf("the page has %d programs, want 4", len(out))
	}
	return out
}

// Programs is a folder with the compiled client, the compiled programs of docs/sdks.md, and the compiled files of
// agent/client/npmtest/testdata.
type Programs struct {
	Node string // the path of Node.js
	Dir  string
}

// Compile compiles the client and the programs.
func Compile(t *testing.T, root string) Programs {
	t.Helper()
	node, tool := npm.Require(t, untried)
	source := filepath.Join(root, "agent", "client")
	packages := filepath.Join(npm.Installed(t, tool, filepath.Join(source, "npmtest"), "client"), "node_modules")
	p := Programs{node, t.TempDir()}
	modules := filepath.Join(p.Dir, "node_modules")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(modules, 0o755))
	entries, err := os.ReadDir(packages)
	must(err)
	for _, e := range entries {
		must(os.Symlink(filepath.Join(packages, e.Name()), filepath.Join(modules, e.Name())))
	}
	// The client is in a separate directory beside the programs, as it is after an installation.
	lib := filepath.Join(p.Dir, "client")
	must(os.CopyFS(lib, os.DirFS(filepath.Join(source, "typescript"))))
	must(os.Symlink(lib, filepath.Join(modules, "countersign-client")))
	tsc := func(in string) {
		t.Helper()
		cmd := exec.Command(node, filepath.Join(packages, "typescript", "bin", "tsc"))
		cmd.Dir = in
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("tsc: %v\n%s", err, out)
		}
	}
	tsc(lib)
	must(os.CopyFS(p.Dir, os.DirFS(filepath.Join(source, "npmtest", "testdata"))))
	for name, text := range Texts(t, root) {
		must(os.WriteFile(filepath.Join(p.Dir, name+".ts"), []byte(text), 0o644))
	}
	must(os.WriteFile(filepath.Join(p.Dir, "package.json"), []byte(`{"type":"module"}`), 0o644))
	must(os.WriteFile(filepath.Join(p.Dir, "tsconfig.json"), []byte(`{"compilerOptions": {"target": "es2022", "module": "nodenext",
		"lib": ["es2023", "dom", "dom.iterable"], "types": ["node"], "strict": true, "skipLibCheck": true}, "include": ["*.ts"]}`), 0o644))
	tsc(p.Dir)
	return p
}

// Run describes one run of an agent's program. Runs with the same Build share their state, and the record of the tool.
type Run struct {
	Gate, Token string // the gateway's address, and the client's token
	Build       string
	Calls       [][]string // the arguments of the model's calls in each step, as JSON
}

// Host is a process that runs one program again and again, because loading an SDK takes longer than a run.
type Host struct {
	t        *testing.T
	programs Programs
	sdk      string
	cmd      *exec.Cmd
	to       *json.Encoder
	from     *json.Decoder
	errors   bytes.Buffer
}

// Host starts a process that runs an SDK's program from docs/sdks.md. The process ends with the test.
func (p Programs) Host(t *testing.T, sdk string) *Host {
	t.Helper()
	h := &Host{t: t, programs: p, sdk: sdk, cmd: exec.Command(p.Node, "host.js")}
	h.cmd.Dir, h.cmd.Stderr = p.Dir, &h.errors
	in, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.to, h.from = json.NewEncoder(in), json.NewDecoder(out)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Kill)
	return h
}

// Kill kills the process, and the program in it. A second Kill has no effect.
func (h *Host) Kill() {
	_ = h.cmd.Process.Kill() // the process may have ended already
	_ = h.cmd.Wait()         // the error says that the process was killed
}

// Ended is the result of a program.
type Ended struct {
	Out    string // the program's output, and the error with which the program ended
	Failed bool
}

// Start starts the program. The returned function waits for the end of the program. The next program starts after the
// end of this one.
func (h *Host) Start(r Run) (wait func() Ended) {
	h.t.Helper()
	own, err := os.MkdirTemp(h.programs.Dir, r.Build+"-") // Node.js loads a file once, so each run has its own files
	if err != nil {
		h.t.Fatal(err)
	}
	for _, file := range []string{h.sdk + ".js", "app.js", "script.js", h.sdk + "_model.js"} {
		raw, err := os.ReadFile(filepath.Join(h.programs.Dir, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(own, file), raw, 0o644)
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
	calls, err := json.Marshal(r.Calls)
	if err != nil {
		h.t.Fatal(err)
	}
	env := map[string]string{"SDK": h.sdk, "GATE": r.Gate, "TOKEN": r.Token, "BUILD": r.Build, "CALLS": string(calls)}
	if err := h.to.Encode(map[string]any{"file": filepath.Join(own, h.sdk+".js"), "env": env}); err != nil {
		h.t.Fatal(err)
	}
	return func() (e Ended) {
		h.t.Helper()
		bound := time.AfterFunc(patience, func() { _ = h.cmd.Process.Kill() }) // a program that does not end is a fault
		defer bound.Stop()
		if err := h.from.Decode(&e); err != nil {
			h.t.Fatalf("the host of the program: %v\n%s", err, &h.errors)
		}
		e.Out = strings.TrimSpace(e.Out)
		return e
	}
}

// Ran returns the arguments of the tool's runs, one run per line.
func (p Programs) Ran(t *testing.T, build string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.Dir, build+".ran"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}
