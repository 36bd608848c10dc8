package archtest

import (
	"fmt"
	"slices"
	"strings"
)

const module = "countersign"

// source is one Go file: its package and its imports.
type source struct {
	pkg     string // directory relative to the module's root
	file    string
	test    bool
	imports []string
}

// layers maps a package to the number of its layer, which is higher for upper layers. A package that is not listed has
// the number of the nearest listed package above it in the directory tree. A package may import only packages with a
// lower number, and packages that belong to the same listed package.
var layers = map[string]int{
	"approvers":                    0,
	"agent/egress":                 5, // in a low layer, because config uses it to parse the policy key allow
	"store":                        10,
	"store/record":                 11, // the JSON of records, for every backend
	"config/yamldoc":               10,
	"config/condition":             12,
	"config/preview":               12,
	"config":                       14,
	"config/check":                 16,
	"store/bolt":                   12,
	"store/postgres":               12,
	"store/storetest":              13,
	"bot/transport":                12, // below the workflow, because it passes deliveries on without interpreting them
	"store/jobs":                   15, // uses package store, and imports no backend
	"approvers/workflow/settings":  18, // the settings that the workflow and its views read
	"approvers/workflow/view":      19,
	"approvers/workflow":           20,
	"approvers/workflow/retention": 21,
	"approvers/audit":              21,
	"bot/slackapi":                 25,
	"bot/bottest":                  25, // fixtures for the tests of bot and of the packages below it
	"bot/render/markdown":          26,
	"bot/render/control":           26,
	"bot/directory":                27,
	"bot/render/block":             27,
	"bot/render/argument":          28,
	"bot/render/wording":           29, // words and parts that several kinds of messages need
	"bot/render/card":              30, // one package for each kind of message; they do not import each other
	"bot/render/form":              30,
	"bot/render/home":              30,
	"bot/render/notice":            30,
	"bot/render/thread":            30,
	"bot/render":                   31,
	"bot":                          32,
	"agent":                        30,
	"agent/catalog":                32, // connects agent to the sources of tools
	"cmd":                          40,
}

// edges lists third-party modules whose types stay in one package. The field tests names additional packages whose
// tests may import the module.
var edges = []struct {
	module string
	at     string
	also   string // other packages that may use the module's types, separated by spaces
	tests  []string
}{
	{module: "github.com/slack-go/slack", at: "bot", tests: []string{"internal/demo/workspace", "cmd"}},
	{module: "github.com/gorilla/websocket", at: "bot/transport", also: "internal/demo/workspace", tests: []string{"internal/demo/workspaceclient"}},
	{module: "github.com/sashabaranov/go-openai", at: "agent", tests: []string{"internal/demo/scriptedmodel", "cmd"}},
	{module: "go.etcd.io/bbolt", at: "store/bolt", tests: []string{"store", "approvers/audit", "approvers/workflow", "cmd"}},
	{module: "github.com/klauspost/compress", at: "store/bolt", tests: []string{"cmd"}},
	{module: "github.com/jackc/pgx", at: "store/postgres", tests: []string{"cmd"}},
	{module: "github.com/pressly/goose", at: "store/postgres"},
	{module: "github.com/kelseyhightower/envconfig", at: "config"},
	{module: "github.com/goccy/go-yaml/ast", at: "config/yamldoc"},
	{module: "github.com/goccy/go-yaml/lexer", at: "config/yamldoc"},
	{module: "github.com/goccy/go-yaml/parser", at: "config/yamldoc"},
	{module: "github.com/goccy/go-yaml/token", at: "config/yamldoc"},
	{module: "cel.dev/cel-go", at: "config/condition"},
	{module: "github.com/google/cel-go", at: "config/condition"},
	{module: "github.com/spf13/cobra", at: "cmd"},
	{module: "github.com/prometheus", at: "cmd", also: "internal/alerts"},
	{module: "go.opentelemetry.io", at: "internal/tracing", tests: []string{"agent", "cmd"}},
	{module: "github.com/go-logr", at: "internal/tracing"}, // the SDK's logger
	{module: "google.golang.org/grpc", at: "internal/tracing"},
	{module: "github.com/getkin/kin-openapi", at: "agent/httptool", also: "internal/testkit/fakegateway", tests: []string{"agent/gateway", "cmd"}},
	{module: "go.yaml.in/yaml/v3", at: "agent/httptool"},
	{module: "golang.org/x/mod/sumdb", at: "approvers"},
	{module: "github.com/go-jose/go-jose", at: "agent/gateway", tests: []string{"cmd"}},
	{module: "github.com/leodido/go-syslog", at: "approvers/audit"},
	{module: "github.com/modelcontextprotocol/go-sdk", at: "agent/mcp", also: "agent/gateway/mcpserver internal/demo/shop", tests: []string{"agent", "cmd"}},
}

// check returns all violations of the rules for imports.
func check(sources []source) []string {
	var broken []string
	for _, s := range sources {
		for _, imported := range s.imports {
			if fault := s.fault(imported); fault != "" {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s", s.file, imported, fault))
			}
		}
		if _, ok := layerOf(s.pkg); !ok && !within(s.pkg, "internal") {
			broken = append(broken, fmt.Sprintf("%s: package %s has no layer; add it to layers (internal/archtest/rules_test.go)", s.file, s.pkg))
		}
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

// fault returns the reason why a file may not import a package, or "".
func (s source) fault(imported string) string {
	if host, _, _ := strings.Cut(imported, "/"); s.pkg == "agent/client" && !s.test && (host == module || strings.Contains(host, ".")) {
		return "other programs copy agent/client, so it imports only the standard library"
	}
	target, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		return s.foreignFault(imported)
	}
	switch {
	case within(s.pkg, "bot") && within(target, "agent"), within(s.pkg, "agent") && within(target, "bot"):
		return "bot and agent never import each other" // this also applies to their tests
	case s.test || target == s.pkg:
		return ""
	case within(s.pkg, "bot/transport") && target != "store":
		return "a transport imports only store, for the kinds of deliveries"
	case isBackend(target) && !within(s.pkg, "cmd"):
		return "a backend of the store is chosen by cmd; use package store"
	case within(target, "store/storetest"):
		return "the conformance suite is for tests"
	case within(target, "approvers/workflow/invariants"):
		return "the invariants between transactions are for tests"
	case (target == "internal/redact" || target == "internal/visible") && (within(s.pkg, "bot") || within(s.pkg, "agent") || within(s.pkg, "approvers/audit")):
		return "" // these packages may import both, because logs and untrusted texts pass through them
	case target == "internal/tracing" && (within(s.pkg, "bot") || within(s.pkg, "agent")):
		return "" // the workflow must not make spans: it reports events, and cmd makes spans of them
	case target == "internal/owner" && s.pkg == "store/bolt":
		return "" // a rebuilt or copied store must belong to the user that runs the bot
	case within(target, "internal") && !within(s.pkg, "cmd") && !within(s.pkg, "internal"):
		return "the demo's parts are for cmd and tests"
	case within(s.pkg, "internal") && !within(target, "internal"):
		return "the demo's parts do not import the product"
	case within(s.pkg, "internal"):
		return ""
	}
	from, _ := layerOf(s.pkg)
	to, ok := layerOf(target)
	if ok && to >= from && family(s.pkg) != family(target) {
		return "imports go down only"
	}
	return ""
}

// foreignFault returns the reason why a file may not import a package of another module, or "".
func (s source) foreignFault(imported string) string {
	for _, e := range edges {
		if !within(imported, e.module) || within(s.pkg, e.at) || slices.ContainsFunc(strings.Fields(e.also), func(pkg string) bool { return within(s.pkg, pkg) }) {
			continue
		}
		if s.test && slices.ContainsFunc(e.tests, func(pkg string) bool { return within(s.pkg, pkg) }) {
			continue
		}
		return fmt.Sprintf("%s stays in %s", e.module, e.at)
	}
	if s.pkg == "approvers" && !s.test && !slices.Contains(pureImports, imported) {
		return "approvers is pure, and this package is not known to be pure; if it is, add it to pureImports in archtest"
	}
	return ""
}

// pureImports lists the packages that approvers may import. Package approvers uses io only for its errors, and for
// readers that a caller passes in. It uses package time only to compute with times that a caller passes in: approvers
// never reads the clock, and never waits. The map "forbidden" lists the names that approvers may not use.
var pureImports = []string{
	"bytes", "cmp", "crypto/ed25519", "crypto/sha256", "encoding/base64", "encoding/binary", "encoding/hex", "encoding/json", "errors", "fmt", "hash", "io",
	"maps", "math", "math/big", "net/url", "regexp", "slices", "strconv", "strings", "time", "unicode", "unicode/utf8", "github.com/go-json-experiment/json/jsontext",
	"golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog",
}

// The function "within" reports whether a path equals root or lies below it.
func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// isBackend reports whether a package is a backend of the store.
func isBackend(pkg string) bool {
	return within(pkg, "store") && pkg != "store" && !within(pkg, "store/storetest") && !within(pkg, "store/jobs") && !within(pkg, "store/record")
}

// layerOf returns the number in layers for the longest prefix of a package's path that layers lists.
func layerOf(pkg string) (int, bool) {
	if f := family(pkg); f != "" {
		return layers[f], true
	}
	return 0, false
}

// family returns the listed package that a package belongs to.
func family(pkg string) string {
	best := ""
	for p := range layers {
		if within(pkg, p) && len(p) > len(best) {
			best = p
		}
	}
	return best
}
