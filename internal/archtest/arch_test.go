package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestImports(t *testing.T) {
	sources := read(t)
	seen := map[string]bool{}
	for _, s := range sources {
		seen[family(s.pkg)] = true
	}
	for _, pkg := range []string{"approvers", "approvers/workflow", "store", "store/bolt", "config", "bot", "agent", "cmd"} {
		if !seen[pkg] {
			t.Errorf("no file of %s was read: the test looks at the wrong place", pkg)
		}
	}
	for _, broken := range check(sources) {
		t.Error(broken)
	}
}

func TestBrokenGraphs(t *testing.T) {
	const us = module + "/"
	tests := []struct {
		name     string
		pkg      string
		imported string
		test     bool
		ok       bool
	}{
		{name: "down", pkg: "bot", imported: us + "approvers/workflow", ok: true},
		{name: "down by many layers", pkg: "agent", imported: us + "approvers", ok: true},
		{name: "up", pkg: "approvers", imported: us + "store"},
		{name: "up into its own folder", pkg: "approvers", imported: us + "approvers/workflow"},
		{name: "up from the store", pkg: "store", imported: us + "approvers/workflow"},
		{name: "the workflow in a transport", pkg: "bot/transport", imported: us + "approvers/workflow"},
		{name: "people in a transport", pkg: "bot/transport", imported: us + "approvers"},
		{name: "the kinds of deliveries in a transport", pkg: "bot/transport", imported: us + "store", ok: true},
		{name: "a transport in the bot", pkg: "bot", imported: us + "bot/transport", ok: true},
		{name: "a transport in the agent", pkg: "agent", imported: us + "bot/transport"},
		{name: "words in a card", pkg: "bot/render/card", imported: us + "bot/render/wording", ok: true},
		{name: "a card in a form", pkg: "bot/render/form", imported: us + "bot/render/card"},
		{name: "a card in the words", pkg: "bot/render/wording", imported: us + "bot/render/card"},
		{name: "sideways", pkg: "store", imported: us + "config"},
		{name: "up into cmd", pkg: "bot", imported: us + "cmd/countersign"},
		{name: "bot to agent", pkg: "bot", imported: us + "agent"},
		{name: "agent to bot", pkg: "agent", imported: us + "bot"},
		{name: "bot to agent in a test", pkg: "bot", imported: us + "agent", test: true},
		{name: "below agent to below bot", pkg: "agent/mcp", imported: us + "bot/cards"},
		{name: "within bot", pkg: "bot/cards", imported: us + "bot", ok: true},
		{name: "the catalog over the agent", pkg: "agent/catalog", imported: us + "agent", ok: true},
		{name: "the catalog over a source", pkg: "agent/catalog", imported: us + "agent/mcp", ok: true},
		{name: "the agent under the catalog", pkg: "agent", imported: us + "agent/catalog"},
		{name: "a source under the catalog", pkg: "agent/mcp", imported: us + "agent/catalog"},
		{name: "the catalog beside the bot", pkg: "agent/catalog", imported: us + "bot/render"},
		{name: "cmd joins them", pkg: "cmd/countersign", imported: us + "agent", ok: true},
		{name: "workflow knows no backend", pkg: "approvers/workflow", imported: us + "store/bolt"},
		{name: "nor a later one", pkg: "agent", imported: us + "store/postgres"},
		{name: "its tests do", pkg: "approvers/workflow", imported: us + "store/bolt", test: true, ok: true},
		{name: "retention over the workflow", pkg: "approvers/workflow/retention", imported: us + "approvers/workflow", ok: true},
		{name: "retention in the workflow", pkg: "approvers/workflow", imported: us + "approvers/workflow/retention"},
		{name: "retention in the workflow's tests", pkg: "approvers/workflow", imported: us + "approvers/workflow/retention", test: true, ok: true},
		{name: "cmd chooses the backend", pkg: "cmd/countersign", imported: us + "store/bolt", ok: true},
		{name: "a backend knows the contract", pkg: "store/bolt", imported: us + "store", ok: true},
		{name: "the contract knows no backend", pkg: "store", imported: us + "store/bolt"},
		{name: "the suite in production", pkg: "store/bolt", imported: us + "store/storetest"},
		{name: "the invariants in production", pkg: "cmd/countersign", imported: us + "approvers/workflow/invariants"},
		{name: "the suite in a test", pkg: "store/bolt", imported: us + "store/storetest", test: true, ok: true},
		{name: "the demo in the product", pkg: "bot", imported: us + "internal/demo/workspace"},
		{name: "the demo in a test", pkg: "bot", imported: us + "internal/demo/workspace", test: true, ok: true},
		{name: "the demo in cmd", pkg: "cmd/countersign", imported: us + "internal/demo/workspace", ok: true},
		{name: "the product in the demo", pkg: "internal/demo/shop", imported: us + "agent"},
		{name: "one part of the demo in another", pkg: "internal/demo/workspaceclient", imported: us + "internal/demo/workspace", ok: true},
		{name: "a package without a layer", pkg: "helpers", imported: "fmt"},

		{name: "slack-go at its edge", pkg: "bot", imported: "github.com/slack-go/slack/socketmode", ok: true},
		{name: "slack-go elsewhere", pkg: "agent", imported: "github.com/slack-go/slack"},
		{name: "slack-go in the workspace", pkg: "internal/demo/workspace", imported: "github.com/slack-go/slack"},
		{name: "slack-go in the workspace's tests", pkg: "internal/demo/workspace", imported: "github.com/slack-go/slack", test: true, ok: true},
		{name: "slack-go in the workflow's tests", pkg: "approvers/workflow", imported: "github.com/slack-go/slack", test: true},
		{name: "a name that only begins like it", pkg: "agent", imported: "github.com/slack-go/slackline", ok: true},
		{name: "go-openai in the bot", pkg: "bot", imported: "github.com/sashabaranov/go-openai"},
		{name: "go-openai in cmd", pkg: "cmd/countersign", imported: "github.com/sashabaranov/go-openai"},
		{name: "bbolt in the contract", pkg: "store", imported: "go.etcd.io/bbolt"},
		{name: "bbolt in cmd", pkg: "cmd/countersign", imported: "go.etcd.io/bbolt"},
		{name: "envconfig in cmd", pkg: "cmd/countersign", imported: "github.com/kelseyhightower/envconfig"},
		{name: "MCP at its edge", pkg: "agent/mcp", imported: "github.com/modelcontextprotocol/go-sdk/mcp", ok: true},
		{name: "MCP in the shop", pkg: "internal/demo/shop", imported: "github.com/modelcontextprotocol/go-sdk/mcp", ok: true},
		{name: "MCP in the agent", pkg: "agent", imported: "github.com/modelcontextprotocol/go-sdk/mcp"},
		{name: "MCP in cmd", pkg: "cmd/countersign", imported: "github.com/modelcontextprotocol/go-sdk/mcp"},
		{name: "an MCP server in cmd's tests", pkg: "cmd/countersign", imported: "github.com/modelcontextprotocol/go-sdk/mcp", test: true, ok: true},
		{name: "WebSockets in a transport", pkg: "bot/transport", imported: "github.com/gorilla/websocket", ok: true},
		{name: "WebSockets in the bot", pkg: "bot", imported: "github.com/gorilla/websocket"},
		{name: "the standard library in the client", pkg: "agent/client", imported: "net/http", ok: true},
		{name: "a module in the client", pkg: "agent/client", imported: "golang.org/x/sync/errgroup"},
		{name: "our own package in the client", pkg: "agent/client", imported: us + "approvers"},
		{name: "cobra in the bot", pkg: "bot", imported: "github.com/spf13/cobra"},
		{name: "prometheus in the workflow", pkg: "approvers/workflow", imported: "github.com/prometheus/client_golang/prometheus"},

		{name: "spans in the domain", pkg: "approvers", imported: us + "internal/tracing"},
		{name: "spans in the workflow", pkg: "approvers/workflow", imported: us + "internal/tracing"},
		{name: "spans in the scheduler", pkg: "store/jobs", imported: us + "internal/tracing"},
		{name: "spans in the agent", pkg: "agent/mcp", imported: us + "internal/tracing", ok: true},
		{name: "spans in the bot", pkg: "bot", imported: us + "internal/tracing", ok: true},
		{name: "OpenTelemetry at its edge", pkg: "internal/tracing", imported: "go.opentelemetry.io/otel/trace", ok: true},
		{name: "OpenTelemetry in the workflow", pkg: "approvers/workflow", imported: "go.opentelemetry.io/otel/trace"},
		{name: "OpenTelemetry in the agent", pkg: "agent", imported: "go.opentelemetry.io/otel/trace"},
		{name: "OpenTelemetry in cmd", pkg: "cmd/countersign", imported: "go.opentelemetry.io/otel/sdk/trace"},
		{name: "OpenTelemetry in cmd's tests", pkg: "cmd/countersign", imported: "go.opentelemetry.io/otel/sdk/trace", test: true, ok: true},

		{name: "chance in the domain", pkg: "approvers", imported: "crypto/rand"},
		{name: "files in the domain", pkg: "approvers", imported: "os"},
		{name: "the net in the domain", pkg: "approvers", imported: "net/http"},
		{name: "locks in the domain", pkg: "approvers", imported: "sync"},
		{name: "chance in the domain's tests", pkg: "approvers", imported: "crypto/rand", test: true, ok: true},
		{name: "chance in the workflow", pkg: "approvers/workflow", imported: "crypto/rand", ok: true},
	}
	for _, tt := range tests {
		broken := check([]source{{pkg: tt.pkg, file: tt.pkg + "/x.go", test: tt.test, imports: []string{tt.imported}}})
		if tt.ok != (len(broken) == 0) {
			t.Errorf("%s: %s imports %s: %q", tt.name, tt.pkg, tt.imported, broken)
		}
	}
}

// forbidden maps the path of a package to some of its names. A pure package may not use these names, because they read
// the clock, wait, or do I/O.
var forbidden = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"fmt":  {"Print", "Println", "Printf", "Scan", "Scanln", "Scanf"},
}

// impure lists the forbidden uses in a file of a pure package.
func impure(set *token.FileSet, file *ast.File) []string {
	var found []string
	say := func(n ast.Node, what string) { found = append(found, set.Position(n.Pos()).String()+": "+what) }
	for _, i := range file.Imports {
		if i.Name != nil { // forbidden lists only the default names of imports
			say(i, "imports "+i.Path.Value+" under another name")
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			say(n, "starts a goroutine")
		case *ast.SelectStmt, *ast.ChanType:
			say(n, "uses a channel")
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
				say(n, "prints")
			}
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			for _, name := range forbidden[identOr(pkg, ok)] {
				if n.Sel.Name == name {
					say(n, "uses "+pkg.Name+"."+name)
				}
			}
		}
		return true
	})
	return found
}

func identOr(id *ast.Ident, ok bool) string {
	if !ok || id.Obj != nil { // a local variable with the name of a package
		return ""
	}
	return id.Name
}

func TestApproversIsPure(t *testing.T) {
	n := 0
	for _, s := range read(t) {
		if s.pkg != "approvers" || s.test {
			continue
		}
		n++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(root(t), s.file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range impure(set, file) {
			t.Error(fault)
		}
	}
	if n == 0 {
		t.Error("no file of approvers was read")
	}
}

func TestImpureFiles(t *testing.T) {
	for body, want := range map[string]bool{
		`func f() time.Time { return time.Now() }`:                         true,
		`var clock = time.Now`:                                             true,
		`func f(t time.Time) bool { return time.Since(t) > 0 }`:            true,
		`func f() { go f() }`:                                              true,
		`var c chan int`:                                                   true,
		`func f() { select {} }`:                                           true,
		`func f() { fmt.Println("x") }`:                                    true,
		`func f() { println("x") }`:                                        true,
		`func f(t time.Time) time.Time { return t.Add(time.Minute) }`:      false,
		`import clock "time"; var now = clock.Now`:                         true,
		`func f() string { return fmt.Sprint("x") }`:                       false,
		`type c struct{ Now int }; func f(time c) int { return time.Now }`: false,
	} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "x.go", "package approvers\nimport (\"fmt\"; \"time\")\n"+body, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(impure(set, file)) > 0; got != want {
			t.Errorf("%s: found %t, want %t", body, got, want)
		}
	}
}

// root returns the module's root directory.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// read reads the imports of every Go file of the repository, except files in testdata, node_modules and hidden
// directories.
func read(t *testing.T) []source {
	t.Helper()
	top := root(t)
	var out []source
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != top && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		s := source{pkg: strings.TrimSuffix(rel[:strings.LastIndex("/"+rel, "/")], "/"), file: rel, test: strings.HasSuffix(rel, "_test.go")}
		for _, i := range file.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, name)
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
