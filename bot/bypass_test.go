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

// makers lists the functions of slack-go that make text objects from strings. The value of each entry lists the only
// files that may call the function.
var makers = map[string][]string{
	"NewTextBlockObject":                 {"render/block/blocks.go"},
	"NewRichTextSectionTextElement":      {"render/block/blocks.go", "render/block/rich_text.go", "render/markdown/inline.go"},
	"NewRichTextSectionLinkElement":      {"render/block/rich_text.go", "render/markdown/inline.go"},
	"NewRichTextSectionUserElement":      {"render/block/rich_text.go"},
	"NewRichTextSectionUserGroupElement": {"render/block/rich_text.go"},
	"NewRichTextSectionBroadcastElement": nil,
	"NewRichTextSectionChannelElement":   nil,
	"NewMarkdownBlock":                   nil,
}

// writers lists the functions that add text unchanged. Text from people, models and tools must pass through Visible
// before such a function receives the text. The test treats the exported and the unexported form of a name as equal.
var writers = map[string]bool{
	"say": true, "strong": true, "soft": true, "code": true, "headline": true, "exact": true, "quoted": true, "small": true, "plainText": true, "button": true, "confirm": true,
}

// The map "foreign" lists the fields with text from people, models and tools.
var foreign = map[string]bool{
	"Preview": true, "PreviewFault": true, "Quote": true, "AskerName": true, "Reason": true, "Result": true, "Args": true, "ClosedName": true, "Detail": true, "Problem": true,
	"Description": true, "DelegateName": true, "AuthorName": true, "LastError": true,
}

// cleaners lists the functions that return only visible text.
var cleaners = map[string]bool{
	"visible": true, "oneLine": true, "name": true, "whatHappens": true, "inFull": true, "maskedText": true, "resultText": true, "inWords": true, "person": true,
}

// Text from people, models and tools reaches a block only through the functions that make it visible.
func TestNothingBypassesVisible(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	made, written := 0, 0
	for _, path := range sources(t) {
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
				if !slices.Contains(where, filepath.ToSlash(path)) {
					t.Errorf("%s: %s is called outside of the files that render text", files.Position(call.Pos()), called)
				}
			}
			if writers[unexported(called)] && !ofDomain(call) {
				written++
				for _, arg := range call.Args {
					for _, field := range uncleaned(arg) {
						t.Errorf("%s: %s is written unchanged", files.Position(field.Pos()), field.Sel.Name)
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

// ofDomain reports whether an expression calls package approvers, such as the conversion approvers.Code.
func ofDomain(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "approvers"
}

func unexported(name string) string {
	if name == "" {
		return ""
	}
	return strings.ToLower(name[:1]) + name[1:]
}

// uncleaned returns the fields with text from people, models or tools that an expression uses without a cleaner. The
// function skips fields that are only compared, because the bot does not show them.
func uncleaned(e ast.Expr) (fields []*ast.SelectorExpr) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return !cleaners[unexported(calledFunction(n))]
		case *ast.IndexExpr: // selects one of the bot's own texts
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
