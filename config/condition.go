package config

import (
	"errors"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/ext"

	"countersign/approvers"
)

// maxCondition is the longest condition, in bytes.
const maxCondition = 4 << 10

// The facts that a condition can read. A conversation's are declared one by one, so that a misspelt one is an error.
const factNames = "args, requester, agent, now, conversation.id, conversation.channel and conversation.dm"

// conditions is the CEL environment. It is made once, by the first condition that is compiled.
var conditions = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("requester", cel.StringType),
		cel.Variable("agent", cel.StringType),
		cel.Variable("now", cel.TimestampType),
		cel.Variable("conversation.id", cel.StringType),
		cel.Variable("conversation.channel", cel.StringType),
		cel.Variable("conversation.dm", cel.BoolType),
		cel.CrossTypeNumericComparisons(true), // args.amount * 2.0 > 500
		ext.Strings(),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	)
})

// condition is a compiled condition with what is needed to hold it against a tool's schema.
type condition struct {
	text    string
	checked *ast.AST
	places  places
}

// condition compiles a rule's condition.
func (v value) condition() approvers.Condition {
	if v.isBool() {
		return v.compile(v.node.GetToken().Value)
	}
	text, ok := v.text("a condition such as args.amount > 500")
	if !ok {
		return approvers.Condition{}
	}
	return v.compile(strings.TrimSpace(text))
}

func (v value) compile(text string) approvers.Condition {
	none := approvers.Condition{Text: text}
	if len(text) > maxCondition {
		v.wrongf("make several rules of it", "is longer than %d KiB", maxCondition>>10)
		return none
	}
	env, err := conditions()
	if err != nil {
		v.wrong("conditions can't be compiled: "+err.Error(), "")
		return none
	}
	compiled, issues := env.Compile(text)
	if issues.Err() != nil {
		v.conditionProblems(text, issues)
		return none
	}
	if !v.isCondition(compiled) {
		return none
	}
	program, err := program(env, compiled)
	if err != nil {
		v.notReady(text, compiled, err)
		return none
	}
	v.r.file.conditions[v.path] = condition{text, compiled.NativeRep(), v.places(text)}
	return approvers.Condition{Text: text, Eval: func(f approvers.Facts) (bool, error) { return evaluate(program, f) }}
}

// notReady reports a condition that compiles and still can't be evaluated.
func (v value) notReady(text string, compiled *cel.Ast, err error) {
	var zone errZone
	if !errors.As(err, &zone) {
		v.wrong("can't be evaluated: "+err.Error(), "docs/policy.md says what a condition can do")
		return
	}
	at := compiled.NativeRep().SourceInfo().GetStartLocation(zone.id)
	v.r.wrongAt(v.places(text).at(text, at.Line(), at.Column()), v.path+": "+err.Error(), `write a name such as "Europe/Berlin", or an offset such as "+02:00"`)
}

// isCondition makes sure that the expression is true or false, and computes with nothing that would fail at every call.
func (v value) isCondition(compiled *cel.Ast) bool {
	if literal := wholeInArithmetic(compiled.NativeRep()); literal != "" {
		v.wrong("computes with the whole number "+literal+" and an argument, which is a decimal number, and so would fail at every call",
			"write "+literal+".0")
		return false
	}
	if compiled.OutputType() != cel.BoolType {
		v.wrongf("compare it, such as args.amount > 500 or args.urgent == true, or write has(args.note) to ask whether it is there",
			"the condition is neither true nor false, but %s", typeName(compiled.OutputType()))
		return false
	}
	return true
}

func typeName(t *cel.Type) string {
	switch t.Kind() {
	case cel.DynKind:
		return "an argument's value"
	case cel.IntKind, cel.UintKind, cel.DoubleKind:
		return "a number"
	case cel.StringKind:
		return "text"
	}
	return "of type " + t.String()
}

// conditionProblems reports what the compiler found, each at its place in the file where that can be told.
func (v value) conditionProblems(text string, issues *cel.Issues) {
	places, syntax := v.places(text), false
	for _, e := range issues.Errors() {
		message, hint := explainCondition(text, e.Message)
		if strings.HasPrefix(e.Message, "Syntax error") {
			if syntax {
				continue // what follows the first is its echo
			}
			syntax = true
		}
		v.r.wrongAt(places.at(text, e.Location.Line(), e.Location.Column()), v.path+": "+message, hint)
	}
}
