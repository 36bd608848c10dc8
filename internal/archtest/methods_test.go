package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// maxMethods is the maximum number of methods of a type, so that a reader can remember all methods.
const maxMethods = 60

// manyMethods lists the types that may have more methods, each with its own limit and the reason.
var manyMethods = map[string]struct {
	limit  int
	reason string
}{
	"approvers.Request":      {100, "a value: each transition, and each question about a request, is a pure function of it"},
	"config/check.checker":   {75, "each check of a policy is one method, and they share the findings"},
	"store/storetest.memory": {90, "implements the contract of the store"},
}

// TestMethods limits the number of methods of each type. For a concrete type, the test counts the methods that are
// declared for the type. For an interface, the test counts the methods in the interface itself. Methods of embedded
// types count only for the embedded types.
func TestMethods(t *testing.T) {
	methods := map[string]int{}
	for _, s := range read(t) {
		if s.test {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), s.file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for name, n := range countMethods(file) {
			methods[s.pkg+"."+name] += n
		}
	}
	for name, n := range methods {
		limit := maxMethods
		if many, ok := manyMethods[name]; ok {
			limit = many.limit
			if n <= maxMethods {
				t.Errorf("%s has only %d methods: remove it from manyMethods", name, n)
			}
		}
		if n > limit {
			t.Errorf("%s has %d methods, more than %d: divide it by concern, or say in manyMethods why it is one type", name, n, limit)
		}
	}
	for name := range manyMethods {
		if methods[name] == 0 {
			t.Errorf("there is no type %s", name)
		}
	}
}

// countMethods returns how many methods a file declares for each type.
func countMethods(file *ast.File) map[string]int {
	found := map[string]int{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
			found[receiver(f.Recv.List[0].Type)]++
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if i, ok := spec.Type.(*ast.InterfaceType); ok {
				for _, m := range i.Methods.List {
					found[spec.Name.Name] += len(m.Names)
				}
			}
		}
		return true
	})
	return found
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func TestCountMethods(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
type a struct{}
func (a) one()
func (x *a) two()
type b[T any] struct{ a }
func (b[T]) one()
type c interface { error; One(); Two() }
func f()
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := countMethods(file)
	for name, want := range map[string]int{"a": 2, "b": 1, "c": 2} {
		if found[name] != want {
			t.Errorf("%s has %d methods, want %d", name, found[name], want)
		}
	}
	if len(found) != 3 {
		t.Errorf("methods of %d types were found, want 3: %v", len(found), found)
	}
}
