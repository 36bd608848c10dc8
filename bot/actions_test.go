package bot

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/store"
)

// The map "elsewhere" lists the buttons that neither clickHandler.act nor formOpener.form handles. The value is the
// function that handles the button.
var elsewhere = map[string]string{
	"ActHome": "clickHandler.handle", "ActPause": "clickHandler.handle", "ActLink": "action.linkOnly",
	"ActRevoke": "grantHandler.clicked", "ActAccept": "grantHandler.clicked", "ActDecline": "grantHandler.clicked",
}

// The map "unnamed" lists the buttons that no function compares by name, with the reason for each.
var unnamed = map[string]string{
	"ActPage":      "each button in a modal turns a page",
	"ActChoose":    "it is a prefix, which thread.ChoiceOf reads",
	"ActDetailsOf": "it is a prefix, which control.ActionOf reads",
}

// neverSubmitted lists the forms that only show content, with the reason for each.
var neverSubmitted = map[string]string{"ActReveal": "it has no submit button"}

// TestEveryActionIsHandled compares the action IDs of render/control/control.go with the functions that handle them.
// The bot handles a button in one of two ways. clickHandler.act performs the button's action directly. Or the button
// opens a form: formOpener.form draws the form, and submissionHandler.handle handles its submission. Most forms of
// form.People are handled by submitPeople, which handle calls.
func TestEveryActionIsHandled(t *testing.T) {
	t.Parallel()
	named := namedActions(t)
	actions := actionIDs(t)
	if len(actions) < 30 {
		t.Fatalf("render/control/control.go has only the actions %v", actions)
	}
	for name, id := range actions {
		if _, opens := form.Titles[id]; opens {
			if form.People[id] == nil && !named["formOpener.form"][name] {
				t.Errorf("%s opens a form, which formOpener does not draw", name)
			}
			if neverSubmitted[name] == "" && !named["submissionHandler.handle"][name] {
				t.Errorf("%s opens a form, which submissionHandler does not handle", name)
			}
			if form.People[id] != nil && id != control.ActAllow && !named["submissionHandler.submitPeople"][name] {
				t.Errorf("%s opens a form about a request, which submitPeople does not handle", name)
			}
			continue
		}
		handler := elsewhere[name]
		if handler == "" {
			handler = "clickHandler.act"
		}
		if unnamed[name] == "" && !named[handler][name] {
			t.Errorf("%s is not handled by %s", name, handler)
		}
	}
}

// actionIDs returns the action IDs of render/control/control.go, by name.
func actionIDs(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("render/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, path := range files {
		for _, d := range parse(t, path).Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				spec := s.(*ast.ValueSpec)
				if name := spec.Names[0].Name; strings.HasPrefix(name, "Act") {
					if path != "render/control/control.go" {
						t.Errorf("%s is in %s and not with the other action IDs", name, path)
					}
					if out[name], err = strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	return out
}

// namedActions maps each method of this package to the actions that the method compares or maps.
func namedActions(t *testing.T) map[string]map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]bool{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, d := range parse(t, path).Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			named := map[string]bool{}
			note := func(exprs ...ast.Expr) {
				for _, e := range exprs {
					if s, ok := e.(*ast.SelectorExpr); ok {
						named[s.Sel.Name] = true
					}
				}
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CaseClause:
					note(n.List...)
				case *ast.KeyValueExpr:
					note(n.Key)
				case *ast.BinaryExpr:
					if n.Op == token.EQL || n.Op == token.ADD { // compares or extends an action ID
						note(n.X, n.Y)
					}
				}
				return true
			})
			receiver := fn.Recv.List[0].Type
			if pointer, ok := receiver.(*ast.StarExpr); ok {
				receiver = pointer.X
			}
			if of, ok := receiver.(*ast.Ident); ok {
				out[of.Name+"."+fn.Name.Name] = named
			}
		}
	}
	return out
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestUnknownForm checks that the modal for an action without a form can't be submitted.
func TestUnknownForm(t *testing.T) {
	t.Parallel()
	r := bottest.Request(`{"amount":49.99}`)
	s := form.ClickTarget{Model: bottest.ViewModel(r), Shown: store.Rendering{Shows: []store.Shown{{Request: r.ID, Digest: r.Digest}}}}
	who := approvers.Identity{ID: approvers.Who("T0001", "U0002")}
	if known := new(formOpener).form(control.ActReject, s, who); known.Submit == nil {
		t.Fatalf("this person gets no form at all: %+v", known)
	}
	v := new(formOpener).form("a new one", s, who)
	if v.Submit != nil || v.CallbackID != "" || len(v.Blocks.BlockSet) == 0 {
		t.Errorf("got %+v", v)
	}
	for _, b := range v.Blocks.BlockSet {
		if b.BlockType() == slack.MBTInput {
			t.Errorf("the refusal has an input: %+v", b)
		}
	}
}
