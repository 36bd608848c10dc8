package config

import (
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

const (
	// maxCondition is the longest condition, in bytes.
	maxCondition = 4 << 10
	// conditionCost bounds one evaluation, in steps as CEL counts them. A comparison costs a handful; a long text costs a tenth
	// of its bytes. Beyond it the condition fails, and so counts as matched.
	conditionCost = 100_000
)

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
		ext.Strings(),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	)
})

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
	program, err := env.Program(compiled, cel.CostLimit(conditionCost))
	if err != nil {
		v.wrong("can't be evaluated: "+err.Error(), "")
		return none
	}
	return approvers.Condition{Text: text, Eval: func(f approvers.Facts) (bool, error) { return evaluate(program, f) }}
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

// evaluate computes a condition. A missing argument, a wrong type and too much work are errors, which count as matched.
func evaluate(program cel.Program, f approvers.Facts) (bool, error) {
	args := f.Args
	if args == nil {
		args = map[string]any{}
	}
	out, _, err := program.Eval(map[string]any{
		"args": args, "requester": f.Requester, "agent": f.Agent, "now": f.Now,
		"conversation.id": f.Conversation.ID, "conversation.channel": f.Conversation.Channel, "conversation.dm": f.Conversation.DM,
	})
	if err != nil {
		return false, err
	}
	matched, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("neither true nor false, but %s", out.Type().TypeName())
	}
	return matched, nil
}

// conditionProblems reports what the compiler found, each at its place in the file where that can be told.
func (v value) conditionProblems(text string, issues *cel.Issues) {
	syntax := false
	for _, e := range issues.Errors() {
		message, hint := explainCondition(text, e.Message)
		if strings.HasPrefix(e.Message, "Syntax error") {
			if syntax {
				continue // what follows the first is its echo
			}
			syntax = true
		}
		at := v.within(text, e.Location.Line(), e.Location.Column())
		v.r.wrongAt(at, v.path+": "+message, hint)
	}
}

// within is the place in the file of a place in a condition. Texts with escapes or folded lines are pointed at as a whole.
func (v value) within(text string, line, column int) mark {
	at := v.r.file.at(v.path)
	s, plain := v.node.(*ast.StringNode)
	if plain && line == 1 && s.Token != nil {
		for skip := range 2 { // 1: after the quotation mark
			m := mark{at.line, at.column + skip}
			if strings.HasPrefix(v.r.rest(m), text) {
				return mark{m.line, m.column + column}
			}
		}
	}
	return at
}
