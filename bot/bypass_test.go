package bot

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// makers are the client's functions that make text of a string. They are called where texts are rendered, and nowhere else.
var makers = map[string][]string{
	"NewTextBlockObject":                 {"page.go"},
	"NewRichTextSectionTextElement":      {"page.go", "prose.go", "inline.go", "markdown.go"},
	"NewRichTextSectionLinkElement":      {"prose.go", "inline.go"},
	"NewRichTextSectionUserElement":      {"prose.go"},
	"NewRichTextSectionUserGroupElement": {"prose.go"},
	"NewRichTextSectionBroadcastElement": nil,
	"NewRichTextSectionChannelElement":   nil,
	"NewMarkdownBlock":                   nil,
}

// writers take text as it stands: what others wrote has to have passed through Visible.
var writers = map[string]bool{
	"say": true, "strong": true, "soft": true, "code": true, "headline": true, "exact": true, "quoted": true, "small": true, "plainText": true, "button": true, "confirm": true,
}

// foreign are the fields that hold what people, models and tools wrote.
var foreign = map[string]bool{
	"Preview": true, "PreviewFault": true, "Quote": true, "AskerName": true, "Reason": true, "Result": true, "Args": true, "ClosedName": true, "Detail": true, "Problem": true,
	"Description": true, "DelegateName": true, "AuthorName": true, "LastError": true,
}

// cleaners give back only what can be seen.
var cleaners = map[string]bool{
	"Visible": true, "oneLine": true, "name": true, "whatHappens": true, "inFull": true, "ArgumentText": true, "maskedText": true, "resultText": true, "inWords": true, "person": true, "titleOf": true,
}

// No block's text is made of what somebody wrote but through the one place that makes all of it visible.
func TestNothingBypassesVisible(t *testing.T) {
	files := token.NewFileSet()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	made, written := 0, 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			called := calledFunction(call)
			if where, is := makers[called]; is {
				made++
				if !slices.Contains(where, path) {
					t.Errorf("%s: %s is called outside of the files that render text", files.Position(call.Pos()), called)
				}
			}
			if writers[called] {
				written++
				for _, arg := range call.Args {
					for _, field := range uncleaned(arg) {
						t.Errorf("%s: %s is written as it stands", files.Position(field.Pos()), field.Sel.Name)
					}
				}
			}
			return true
		})
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "MarkdownType" {
				t.Errorf("%s: mrkdwn in a block", files.Position(s.Pos()))
			}
			return true
		})
	}
	if made < 5 || written < 300 {
		t.Errorf("only %d makers and %d writers were found", made, written)
	}
	t.Logf("texts written=%d", written)
}

func calledFunction(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// uncleaned lists the fields in an expression that hold what others wrote and pass through no cleaner there. What is only compared is not shown.
func uncleaned(e ast.Expr) (fields []*ast.SelectorExpr) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return !cleaners[calledFunction(n)]
		case *ast.IndexExpr: // picks one of our own texts
			return false
		case *ast.BinaryExpr:
			return n.Op == token.ADD
		case *ast.SelectorExpr:
			if foreign[n.Sel.Name] {
				fields = append(fields, n)
			}
		}
		return true
	})
	return fields
}
