package archtest

import (
	"fmt"
	"go/ast"
	"go/constant"
	goimporter "go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// logIDs maps a type to the keys of its ids. If a value of the type is in scope, each log line must have these keys.
var logIDs = map[string][]string{
	module + "/approvers.Request":             {"request", "conversation", "tool"},
	module + "/approvers.Execution":           {"execution", "conversation", "tool"},
	module + "/approvers.Turn":                {"turn", "conversation"},
	module + "/approvers.Client":              {"client"},
	module + "/store.Conversation":            {"conversation"},
	module + "/store.OutboxMessage":           {"message", "request"},
	module + "/store.Inbox":                   {"inbox"},
	module + "/approvers/workflow/view.Model": {"message", "request", "conversation"},
	module + "/bot/render/form.ClickTarget":   {"request", "conversation"},
	module + "/bot.delivered":                 {"inbox"},
	module + "/bot.streamWriter":              {"turn", "conversation"}, // a draft has no request
}

// logIDNames lists the keys that a log line must have if a string with the same name is in scope.
var logIDNames = []string{"request", "conversation", "turn", "execution", "tool", "client", "inbox"}

// withoutID maps the text of a log line to the keys of logIDs that this line need not have.
var withoutID = map[string][]string{
	"the end of a caller's connection could not be recorded":                             {"execution", "conversation", "tool"}, // the bot may not have read them
	"Slack does not show a Home tab; is the Home tab switched on in the app's settings?": {"request", "conversation"},           // a Home tab belongs to a person
}

// personal lists keys whose values identify people. Lines of the level INFO do not have these keys.
var personal = []string{"user", "name", "email", "text"}

var logKey = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

// TestLogs checks each log line of the product: see logs.faults. It also checks that the documentation lists the keys
// of ids.
func TestLogs(t *testing.T) {
	packages := goList(t, nil, "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,Module", "./cmd/...")
	set, lines, unused := token.NewFileSet(), 0, maps.Clone(logIDs)
	from := exported(set, packages)
	for _, p := range packages {
		if !p.own() || within(p.ImportPath, module+"/internal/demo") {
			continue
		}
		files, err := p.parse(set)
		if err != nil {
			t.Fatalf("%s: %v", p.ImportPath, err)
		}
		checked, err := newLogs(set, p.ImportPath, files, from)
		if err != nil {
			t.Fatalf("%s: %v", p.ImportPath, err)
		}
		n, faults := checked.faults()
		lines += n
		for _, fault := range faults {
			t.Error(strings.TrimPrefix(fault, root(t)+"/"))
		}
		for name := range unused {
			if i := strings.LastIndex(name, "."); name[:i] == p.ImportPath && checked.pkg.Scope().Lookup(name[i+1:]) != nil {
				delete(unused, name)
			}
		}
	}
	if lines < 200 {
		t.Errorf("only %d log lines were found", lines)
	}
	for name := range unused {
		t.Errorf("logIDs has the type %s, which does not exist", name)
	}
	page := readPage(t, "docs/operate.md")
	for _, key := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(logIDs))...)))) {
		if !strings.Contains(page, "\n| `"+key+"` | ") {
			t.Errorf("docs/operate.md does not say which id %s is", key)
		}
	}
}

// TestLogFaults checks that logs.faults finds each kind of fault, and follows the ids that a logger or a function adds.
func TestLogFaults(t *testing.T) {
	const source = `package approvers
import ("context"; "log/slog")
type Request struct{ ID, Conversation, Tool string }
type holder struct{ log *slog.Logger; r *Request }
func ids(r Request, more ...any) []any { return append([]any{"request", r.ID, "conversation", r.Conversation, "tool", r.Tool}, more...) }
func use(r Request, log *slog.Logger) { if log := log.With("tool", r.Tool); true { helped(r, log) } }
func helped(r Request, log *slog.Logger) { log.Info("followed", "request", r.ID, "conversation", r.Conversation) }
func test(ctx context.Context, h holder, log *slog.Logger, turn string) { %s }
`
	packages := goList(t, nil, "-export", "-deps", "-json=ImportPath,Export", "log/slog")
	set := token.NewFileSet()
	from := exported(set, packages)
	tests := []struct{ line, fault string }{
		{`log.InfoContext(ctx, "a", ids(*h.r, "turn", turn)...)`, ""},
		{`log.InfoContext(ctx, "a", append([]any{"turn", turn}, ids(*h.r)...)...)`, ""},
		{`log = log.With(ids(*h.r)...).With("turn", turn); log.WarnContext(ctx, "a")`, ""},
		{`log = h.log.With("turn", turn); log.Log(ctx, slog.LevelInfo, "a", "request", h.r.ID, "conversation", "", "tool", "")`, ""},
		{`log.InfoContext(ctx, "a", ids(*h.r)...)`, `"a" does not have turn, although turn is in scope`},
		{`log.InfoContext(ctx, "a", "turn", turn, "request", h.r.ID, "conversation", "")`, `"a" does not have tool, although h is in scope`},
		{`log.InfoContext(ctx, "a", "turn", "request", "conversation", "", "tool", "")`, `"a" does not have request, although h is in scope`},
		{`log.Error("a", ids(*h.r, "turn", turn)...)`, `"a" is logged without the context ctx: use ErrorContext`},
		{`log.WarnContext(ctx, "a", ids(*h.r, "turn", turn, "in force", 1)...)`, `"a" has the key "in force", which is not in snake case`},
		{`log.WarnContext(ctx, "a", ids(*h.r, "turn", turn, "user", 1)...)`, ""},
		{`log.InfoContext(ctx, "a", ids(*h.r, "turn", turn, "user", 1)...)`, `"a" has the level INFO, and the key user, which identifies a person`},
		{`log.Log(ctx, slog.LevelInfo, "a", ids(*h.r, "turn", turn, "user", 1)...)`, `"a" has the level INFO, and the key user, which identifies a person`},
	}
	for _, tt := range tests {
		file, err := parser.ParseFile(set, "x.go", fmt.Sprintf(source, tt.line), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		l, err := newLogs(set, module+"/approvers", []*ast.File{file}, from)
		if err != nil {
			t.Fatal(err)
		}
		n, faults := l.faults()
		if tt.fault == "" && len(faults) > 0 || tt.fault != "" && (len(faults) != 1 || !strings.HasSuffix(faults[0], ": "+tt.fault)) || n != 2 {
			t.Errorf("%s has %d lines with the faults %q, want %q", tt.line, n, faults, tt.fault)
		}
	}
}

// logs is a type-checked package whose log lines are checked.
type logs struct {
	set   *token.FileSet
	pkg   *types.Package
	files []*ast.File
	info  *types.Info
	keys  map[types.Object][]string // the keys that a logger adds to each line, and the keys that a function returns
}

// exported returns an importer that reads the packages' export data.
func exported(set *token.FileSet, packages []listed) types.Importer {
	return goimporter.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		i := slices.IndexFunc(packages, func(p listed) bool { return p.ImportPath == path })
		if i < 0 {
			return nil, fmt.Errorf("%s was not listed", path)
		}
		return os.Open(packages[i].Export)
	})
}

// newLogs type-checks a package.
func newLogs(set *token.FileSet, path string, files []*ast.File, from types.Importer) (*logs, error) {
	l := &logs{set: set, files: files, keys: map[types.Object][]string{}, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}}
	var err error
	if l.pkg, err = (&types.Config{Importer: from}).Check(path, set, files, l.info); err != nil {
		return nil, err
	}
	for before := -1; before != len(l.keys); { // each pass follows a logger through one more call
		before = len(l.keys)
		for _, f := range files {
			ast.Inspect(f, l.collect)
		}
	}
	return l, nil
}

// collect records the keys of loggers that are assigned or passed, and the keys that functions return.
func (l *logs) collect(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if id, ok := left.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) {
				l.logger(l.info.ObjectOf(id), n.Rhs[i])
			}
		}
	case *ast.CallExpr:
		if f, ok := l.called(n); ok && f.Pkg() == l.pkg {
			for i := range f.Signature().Params().Len() {
				if i < len(n.Args) {
					l.logger(f.Signature().Params().At(i), n.Args[i])
				}
			}
		}
	case *ast.FuncDecl:
		ast.Inspect(n, func(in ast.Node) bool {
			if r, ok := in.(*ast.ReturnStmt); ok && len(r.Results) == 1 && l.info.TypeOf(r.Results[0]).String() == "[]any" {
				l.add(l.info.Defs[n.Name], l.keysIn(r.Results)...)
			}
			return true
		})
	}
	return true
}

// logger records the keys of a logger that a variable gets.
func (l *logs) logger(to types.Object, e ast.Expr) {
	if to != nil && to.Type().String() == "*log/slog.Logger" {
		l.add(to, l.keysOf(e)...)
	}
}

func (l *logs) add(to types.Object, keys ...string) {
	for _, k := range keys {
		if !slices.Contains(l.keys[to], k) {
			l.keys[to] = append(l.keys[to], k)
		}
	}
}

// called returns the function or the method that a call names.
func (l *logs) called(call *ast.CallExpr) (*types.Func, bool) {
	id, ok := call.Fun.(*ast.Ident)
	if sel, is := call.Fun.(*ast.SelectorExpr); is {
		id, ok = sel.Sel, true
	}
	if !ok {
		return nil, false
	}
	f, ok := l.info.Uses[id].(*types.Func)
	return f, ok
}

// keysOf returns the keys that a logger adds to each line.
func (l *logs) keysOf(logger ast.Expr) []string {
	switch e := logger.(type) {
	case *ast.Ident:
		return slices.Clone(l.keys[l.info.ObjectOf(e)])
	case *ast.CallExpr:
		if f, ok := l.called(e); ok && f.FullName() == "(*log/slog.Logger).With" {
			return append(l.keysOf(e.Fun.(*ast.SelectorExpr).X), l.keysIn(e.Args)...)
		}
	}
	return nil
}

// keysIn returns the keys in the arguments of a log line. An argument may also be a list of keys and values, or a call
// that returns such a list.
func (l *logs) keysIn(args []ast.Expr) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch e := args[i].(type) {
		case *ast.CompositeLit:
			out = append(out, l.keysIn(e.Elts)...)
			continue
		case *ast.CallExpr:
			if id, ok := e.Fun.(*ast.Ident); ok && id.Name == "append" {
				out = append(out, l.keysIn(e.Args)...)
				continue
			}
			if f, ok := l.called(e); ok && l.keys[f] != nil {
				out = append(append(out, l.keys[f]...), l.keysIn(e.Args)...)
				continue
			}
		}
		if v := l.info.Types[args[i]].Value; v != nil && v.Kind() == constant.String {
			out = append(out, constant.StringVal(v))
			i++ // the value
		}
	}
	return out
}

// logFuncs maps each function that writes a log line to the index of the line's text in the function's arguments. The
// attributes follow the text.
var logFuncs = map[string]int{
	"(*log/slog.Logger).Debug": 0, "(*log/slog.Logger).Info": 0, "(*log/slog.Logger).Warn": 0, "(*log/slog.Logger).Error": 0,
	"(*log/slog.Logger).DebugContext": 1, "(*log/slog.Logger).InfoContext": 1, "(*log/slog.Logger).WarnContext": 1, "(*log/slog.Logger).ErrorContext": 1,
	"(*log/slog.Logger).Log": 2, "(*" + module + "/approvers/workflow.tx).note": 1,
}

// faults returns the number of log lines, and the faults that they have. A log line has these faults:
//   - A context is in scope, but the line does not get it. So the line would not have the ids of the trace.
//   - A value of logIDs or logIDNames is in scope, but the line does not have its ids. A value that is a field of
//     another value in scope counts, too.
//   - A key is not in the form of the other keys.
//   - The line has the level INFO, and a key that identifies a person.
func (l *logs) faults() (lines int, faults []string) {
	for _, f := range l.files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := l.called(call)
			if !ok {
				return true
			}
			at, ok := logFuncs[f.FullName()]
			if !ok {
				return true
			}
			lines++
			text := ""
			if v := l.info.Types[call.Args[at]].Value; v != nil {
				text = constant.StringVal(v)
			}
			say := func(format string, args ...any) {
				faults = append(faults, fmt.Sprintf("%s: %q %s", l.set.Position(call.Pos()), text, fmt.Sprintf(format, args...)))
			}
			keys := append(l.keysOf(call.Fun.(*ast.SelectorExpr).X), l.keysIn(call.Args[at+1:])...)
			level := f.Name() + types.ExprString(call.Args[max(at-1, 0)])
			for _, k := range keys {
				if !logKey.MatchString(k) {
					say("has the key %q, which is not in snake case", k)
				}
				if strings.Contains(level, "Info") && slices.Contains(personal, k) {
					say("has the level INFO, and the key %s, which identifies a person", k)
				}
			}
			for _, v := range l.inScope(call.Pos()) {
				if v.Type().String() == "context.Context" && at == 0 {
					say("is logged without the context %s: use %sContext", v.Name(), f.Name())
				}
				for _, id := range idsOf(v) {
					if !slices.Contains(keys, id) && !slices.Contains(withoutID[text], id) {
						say("does not have %s, although %s is in scope", id, v.Name())
						keys = append(keys, id) // one fault is enough
					}
				}
			}
			return true
		})
	}
	return lines, faults
}

// inScope returns the parameters and local variables that a position can use.
func (l *logs) inScope(pos token.Pos) []*types.Var {
	var out []*types.Var
	for s := l.pkg.Scope().Innermost(pos); s != nil && s.Parent() != l.pkg.Scope(); s = s.Parent() {
		for _, name := range s.Names() {
			if v, ok := s.Lookup(name).(*types.Var); ok && v.Pos() < pos {
				out = append(out, v)
			}
		}
	}
	return out
}

// idsOf returns the keys of the ids in a variable.
func idsOf(v *types.Var) []string {
	t := dereferenced(v.Type())
	if ids := logIDs[t.String()]; ids != nil {
		return ids
	}
	var out []string
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if u.Kind() == types.String && slices.Contains(logIDNames, v.Name()) {
			out = append(out, v.Name())
		}
	case *types.Struct:
		for f := range u.Fields() {
			out = append(out, logIDs[dereferenced(f.Type()).String()]...)
		}
	}
	return out
}

func dereferenced(t types.Type) types.Type {
	if p, ok := t.(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}
