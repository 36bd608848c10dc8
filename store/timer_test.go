package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"countersign/store"
)

// TestTimerKinds compares TimerKinds with the constants that timer.go declares.
func TestTimerKinds(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "timer.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []store.TimerKind
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "TimerKind" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, store.TimerKind(value))
		}
		return false
	})
	listed := slices.Clone(store.TimerKinds)
	slices.Sort(declared)
	slices.Sort(listed)
	if !slices.Equal(declared, listed) {
		t.Errorf("TimerKinds has %v; declared are %v", listed, declared)
	}
}
