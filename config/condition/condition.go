package condition

import (
	"errors"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/ext"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// maxCondition is the longest condition, in bytes.
const maxCondition = 4 << 10

// factNames lists the facts that a condition can read. Each fact of a conversation or of a caller is declared
// separately. So a misspelt name is an error.
const factNames = "args, requester, agent, now, conversation.id, conversation.channel, conversation.dm, " +
	"caller.name, caller.owner, caller.acting_for, caller.proven and caller.mode"

// previewConditions returns the CEL environment of conditions on a preview.
var previewConditions = sync.OnceValues(func() (*cel.Env, error) {
	env, err := conditions()
	if err != nil {
		return nil, err
	}
	return env.Extend(cel.Variable("preview", cel.DynType))
})

// conditions returns the CEL environment. The environment is created when the first condition is compiled.
var conditions = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("requester", cel.StringType),
		cel.Variable("agent", cel.StringType),
		cel.Variable("now", cel.TimestampType),
		cel.Variable("conversation.id", cel.StringType),
		cel.Variable("conversation.channel", cel.StringType),
		cel.Variable("conversation.dm", cel.BoolType),
		cel.Variable("caller.name", cel.StringType),
		cel.Variable("caller.owner", cel.StringType),
		cel.Variable("caller.acting_for", cel.StringType),
		cel.Variable("caller.proven", cel.BoolType),
		cel.Variable("caller.mode", cel.StringType),
		cel.CrossTypeNumericComparisons(true), // args.amount * 2.0 > 500
		ext.Strings(),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	)
})

// Compiled is a compiled condition, with its position in the policy file. Compiled can be checked against a tool's
// schema.
type Compiled struct {
	value    yamldoc.Value
	env      *cel.Env
	text     string
	compiled *cel.Ast
	checked  *ast.AST
	marks    yamldoc.TextMarks
}

// Read reads and compiles a rule's condition. If the condition does not compile, Read reports the error, and the
// Compiled is nil.
func Read(v yamldoc.Value) (approvers.Condition, *Compiled) {
	if v.IsBool() {
		return compile(v, v.Shown(), conditions)
	}
	text, ok := v.Text("a condition such as args.amount > 500")
	if !ok {
		return approvers.Condition{}, nil
	}
	return compile(v, strings.TrimSpace(text), conditions)
}

// ReadPreview reads and compiles a condition that can also read the variable preview. This variable has the content
// of a preview.
func ReadPreview(v yamldoc.Value) approvers.Condition {
	text, ok := v.Text("a condition such as preview.refundable < args.amount")
	if !ok {
		return approvers.Condition{}
	}
	c, _ := compile(v, strings.TrimSpace(text), previewConditions)
	return c
}

func compile(v yamldoc.Value, text string, environment func() (*cel.Env, error)) (approvers.Condition, *Compiled) {
	none := approvers.Condition{Text: text}
	if len(text) > maxCondition {
		v.Wrongf("make several rules of it", "is longer than %d KiB", maxCondition>>10)
		return none, nil
	}
	env, err := environment()
	if err != nil {
		v.Wrong("conditions can't be compiled: "+err.Error(), "")
		return none, nil
	}
	compiled, issues := env.Compile(text)
	if issues.Err() != nil {
		compileProblems(v, text, issues)
		return none, nil
	}
	if !isCondition(v, compiled) {
		return none, nil
	}
	program, err := program(env, compiled)
	if err != nil {
		notReady(v, text, compiled, err)
		return none, nil
	}
	eval := func(f approvers.Facts) (bool, error) { return evaluate(program, f) }
	return approvers.Condition{Text: text, Eval: eval}, &Compiled{v, env, text, compiled, compiled.NativeRep(), v.TextMarks(text)}
}

// notReady reports a condition that compiles but can't be evaluated.
func notReady(v yamldoc.Value, text string, compiled *cel.Ast, err error) {
	var zone errZone
	if !errors.As(err, &zone) {
		v.Wrong("can't be evaluated: "+err.Error(), "docs/policy.md says what a condition can do")
		return
	}
	at := compiled.NativeRep().SourceInfo().GetStartLocation(zone.id)
	v.WrongAt(v.TextMarks(text).At(text, at.Line(), at.Column()), err.Error(), `write a name such as "Europe/Berlin", or an offset such as "+02:00"`)
}

// isCondition reports whether the expression has a boolean value, and has no arithmetic that would fail at every call.
func isCondition(v yamldoc.Value, compiled *cel.Ast) bool {
	if literal := wholeInArithmetic(compiled.NativeRep()); literal != "" {
		v.Wrong("computes with the whole number "+literal+" and an argument, which is a decimal number, and so would fail at every call",
			"write "+literal+".0")
		return false
	}
	if compiled.OutputType() != cel.BoolType {
		v.Wrongf("compare it, such as args.amount > 500 or args.urgent == true, or write has(args.note) to ask whether it is there",
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

// compileProblems reports the compiler's errors. Each error has its position in the file, if the position is known.
func compileProblems(v yamldoc.Value, text string, issues *cel.Issues) {
	marks, syntax := v.TextMarks(text), false
	for _, e := range issues.Errors() {
		message, hint := explainCondition(text, e.Message)
		if strings.HasPrefix(e.Message, "Syntax error") {
			if syntax {
				continue // the first error causes the others
			}
			syntax = true
		}
		v.WrongAt(marks.At(text, e.Location.Line(), e.Location.Column()), message, hint)
	}
}
