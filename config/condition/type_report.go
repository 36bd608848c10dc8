package condition

import (
	"fmt"
	"strings"
	"unicode"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"countersign/config/yamldoc"
)

// The method reports a finding once. If the finding was already reported, the method does nothing.
func (t *typing) say(s yamldoc.Severity, at yamldoc.Mark, message, hint string) {
	if !t.said[message] {
		t.said[message] = true
		t.report(s, at, message, hint)
	}
}

// offset returns the position of an expression in the condition's text. The result is the position of the operator,
// the dot or the bracket.
func (t *typing) offset(e ast.Expr) int {
	at, ok := t.checked.SourceInfo().GetOffsetRange(e.ID())
	if !ok {
		return 0
	}
	return int(at.Start)
}

func (t *typing) place(e ast.Expr) yamldoc.Mark { return t.marks.Offset(t.offset(e)) }

// start returns where an expression begins.
func (t *typing) start(e ast.Expr) yamldoc.Mark {
	for {
		switch {
		case e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly():
			e = e.AsSelect().Operand()
		case e.Kind() == ast.CallKind && len(operandsOf(e.AsCall())) > 0 && (e.AsCall().IsMemberFunction() || e.AsCall().FunctionName() == operators.Index):
			e = operandsOf(e.AsCall())[0]
		default:
			return t.place(e)
		}
	}
}

// fieldPlace returns the position of a field's name, which follows the dot. For has(), fieldPlace searches from the
// operand on.
func (t *typing) fieldPlace(e ast.Expr) yamldoc.Mark {
	text, field := []rune(t.text), []rune(e.AsSelect().FieldName())
	from := t.offset(e)
	if e.AsSelect().IsTestOnly() {
		from = t.offset(e.AsSelect().Operand()) + 1
	}
	for i := from; i < len(text); i++ {
		if text[i] != '.' {
			continue
		}
		for i++; i < len(text) && unicode.IsSpace(text[i]); i++ {
		}
		if strings.HasPrefix(string(text[min(i, len(text)):]), string(field)) {
			return t.marks.Offset(i)
		}
	}
	return t.place(e)
}

// called returns the name of a term for a message.
func (t term) called() string {
	switch {
	case t.about != "":
		return t.about
	case t.name != "":
		return t.name
	case t.literal != nil:
		return fmt.Sprint(t.literal.Value())
	}
	return "what is computed here"
}
