package archtest

import (
	"fmt"
	"slices"
	"strings"
)

const module = "countersign"

// source is one Go file: what it belongs to and what it imports.
type source struct {
	pkg     string // folder below the module's root
	file    string
	test    bool
	imports []string
}

// floors lists each package (and what lies below it) with its height. A lower one may be imported.
var floors = map[string]int{
	"approvers":       0,
	"agent/egress":    5, // the policy file's reader knows how an entry of allow is written
	"store":           10,
	"config":          10,
	"store/bolt":      11,
	"store/storetest": 12,
	"approvers/desk":  20,
	"bot":             30,
	"agent":           30,
	"cmd":             40,
}

// edges lists foreign modules whose types stay in one place. Where tests of other packages need one as a counterpart, they are named.
var edges = []struct {
	module string
	at     string
	also   string // another place
	tests  []string
}{
	{module: "github.com/slack-go/slack", at: "bot", tests: []string{"internal/workspace", "cmd"}},
	{module: "github.com/sashabaranov/go-openai", at: "agent", tests: []string{"internal/scriptedmodel", "cmd"}},
	{module: "go.etcd.io/bbolt", at: "store/bolt", tests: []string{"store", "cmd"}},
	{module: "github.com/kelseyhightower/envconfig", at: "config"},
	{module: "cel.dev/cel-go", at: "config"},
	{module: "github.com/google/cel-go", at: "config"},
	{module: "github.com/spf13/cobra", at: "cmd"},
	{module: "github.com/prometheus", at: "cmd"},
	{module: "github.com/getkin/kin-openapi", at: "agent/httptool"},
	{module: "go.yaml.in/yaml/v3", at: "agent/httptool"},
	{module: "golang.org/x/mod/sumdb", at: "approvers"},
	{module: "github.com/leodido/go-syslog", at: "cmd"},
	{module: "github.com/modelcontextprotocol/go-sdk", at: "agent/mcp", also: "internal/shop", tests: []string{"agent", "cmd"}},
}

// check lists every broken rule.
func check(sources []source) []string {
	var broken []string
	for _, s := range sources {
		for _, imported := range s.imports {
			if fault := s.fault(imported); fault != "" {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s", s.file, imported, fault))
			}
		}
		if _, ok := heightOf(s.pkg); !ok && !within(s.pkg, "internal") {
			broken = append(broken, fmt.Sprintf("%s: package %s stands on no floor; give it one in archtest", s.file, s.pkg))
		}
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

// fault says why a file may not import something, or "".
func (s source) fault(imported string) string {
	target, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		return s.foreignFault(imported)
	}
	switch {
	case within(s.pkg, "bot") && within(target, "agent"), within(s.pkg, "agent") && within(target, "bot"):
		return "bot and agent never know each other" // nor do their tests
	case s.test || target == s.pkg:
		return ""
	case isBackend(target) && !within(s.pkg, "cmd"):
		return "a backend of the store is chosen by cmd; use package store"
	case within(target, "store/storetest"):
		return "the conformance suite is for tests"
	case within(target, "approvers/desk/books"):
		return "what holds between two transactions is checked by tests"
	case (target == "internal/redact" || target == "internal/visible") && (within(s.pkg, "bot") || within(s.pkg, "agent")):
		return "" // whatever an edge writes down goes through it, or shows people of what others wrote
	case within(target, "internal") && !within(s.pkg, "cmd") && !within(s.pkg, "internal"):
		return "the demo's parts are for cmd and tests"
	case within(s.pkg, "internal") && !within(target, "internal"):
		return "the demo's parts know nothing of the product"
	case within(s.pkg, "internal"):
		return ""
	}
	from, _ := heightOf(s.pkg)
	to, ok := heightOf(target)
	if ok && to >= from && family(s.pkg) != family(target) {
		return "imports go down only"
	}
	return ""
}

// foreignFault says why a file may not import what is not ours, or "".
func (s source) foreignFault(imported string) string {
	for _, e := range edges {
		if !within(imported, e.module) || within(s.pkg, e.at) || e.also != "" && within(s.pkg, e.also) {
			continue
		}
		if s.test && slices.ContainsFunc(e.tests, func(pkg string) bool { return within(s.pkg, pkg) }) {
			continue
		}
		return fmt.Sprintf("%s stays in %s", e.module, e.at)
	}
	if s.pkg == "approvers" && !s.test && !slices.Contains(pureImports, imported) {
		return "approvers is pure, and nothing says that this is; if it is, add it to pureImports in archtest"
	}
	return ""
}

// pureImports is what approvers may import. Of io it uses errors and readers that it is given, of time values: forbidden names more.
var pureImports = []string{
	"bytes", "cmp", "crypto/ed25519", "crypto/sha256", "encoding/base64", "encoding/binary", "encoding/hex", "encoding/json", "errors", "fmt", "hash", "io",
	"maps", "math", "math/big", "slices", "strconv", "strings", "time", "unicode", "unicode/utf8", "github.com/go-json-experiment/json/jsontext",
	"golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog",
}

// within reports whether a path is another or lies below it.
func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// isBackend reports whether a package is a backend of the store.
func isBackend(pkg string) bool {
	return within(pkg, "store") && pkg != "store" && !within(pkg, "store/storetest")
}

// heightOf finds the floor of a package, which is that of its longest listed prefix.
func heightOf(pkg string) (int, bool) {
	if f := family(pkg); f != "" {
		return floors[f], true
	}
	return 0, false
}

// family is the listed package that a package is or lies below.
func family(pkg string) string {
	best := ""
	for p := range floors {
		if within(pkg, p) && len(p) > len(best) {
			best = p
		}
	}
	return best
}
