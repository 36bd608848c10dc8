package yamldoc

import "github.com/goccy/go-yaml/ast"

// Readable reports whether the value could be parsed. If it could not be parsed, a problem has been reported.
func (v Value) Readable() bool { return v.node != nil }

// Empty reports whether the key has no value.
func (v Value) Empty() bool {
	_, null := v.node.(*ast.NullNode)
	return null
}

// Kind returns the name of the value's kind for use in a problem, such as "a list".
func (v Value) Kind() string { return kindOf(v.node) }

func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	}
	return "something else"
}

// IsMapping reports whether the value is a mapping.
func (v Value) IsMapping() bool { return isMapping(v.node) }

func isMapping(n ast.Node) bool {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

// IsList reports whether the value is a list.
func (v Value) IsList() bool {
	_, ok := v.node.(*ast.SequenceNode)
	return ok
}

// IsText reports whether the value is text.
func (v Value) IsText() bool {
	switch v.node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return true
	}
	return false
}

// IsNumber reports whether the value is a finite number.
func (v Value) IsNumber() bool {
	switch v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return true
	}
	return false
}

// IsBool reports whether the value is true or false.
func (v Value) IsBool() bool {
	_, ok := v.node.(*ast.BoolNode)
	return ok
}

// Word returns a text that is not written as a block (| or >).
func (v Value) Word() (string, bool) {
	if n, ok := v.node.(*ast.StringNode); ok {
		return n.Value, true
	}
	return "", false
}

// Is reports whether the value is exactly this word.
func (v Value) Is(word string) bool {
	text, ok := v.Word()
	return ok && text == word
}

// Integer returns a whole number as it is written, such as 0x1F.
func (v Value) Integer() (string, bool) {
	if n, ok := v.node.(*ast.IntegerNode); ok {
		return n.GetToken().Value, true
	}
	return "", false
}
