package condition

import (
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"countersign/config/yamldoc"
)

var undeclared = regexp.MustCompile(`undeclared reference to '([^']*)'`)

var mixedNumbers = regexp.MustCompile(`applied to '\((int, double|double, int)\)'`)

// explainCondition translates the compiler's message into a message that tells the author of the policy what to write.
func explainCondition(text, said string) (message, hint string) {
	if m := undeclared.FindStringSubmatch(said); m != nil {
		return explainName(m[1], text)
	}
	switch {
	case mixedNumbers.MatchString(said):
		return "combines a whole number with a decimal one", "write 2.0 for 2, and double(…) around what is whole, such as double(size(args.items))"
	case strings.Contains(said, "no matching overload"):
		return "compares or combines things of different types: " + said, `numbers are compared with numbers, text with "text"`
	case strings.Contains(said, "token recognition error at: '=") || strings.Contains(said, "at: '= "):
		return "a single = compares nothing", "write == for equal"
	case strings.Contains(said, "input 'and'"), strings.Contains(said, "input 'or'"), strings.Contains(said, "input 'not'"):
		return "and, or and not are not operators of CEL", "write && for and, || for or, ! for not"
	case strings.Contains(said, "<EOF>' expecting"):
		return "the condition ends too early", "is a value or a bracket missing at the end?"
	case strings.Contains(said, "invalid matches argument"):
		return "the pattern is not a regular expression", `look at its brackets; to match a bracket itself write "\\("`
	case strings.Contains(said, "token recognition error"):
		return "has a character that can't be here", `names have letters a-z, digits and _; write args["naïve"] for others`
	}
	said = strings.TrimPrefix(said, "Syntax error: ")
	said, _, _ = strings.Cut(said, " expecting {")
	return "is not valid CEL: " + said, "write a condition such as args.amount > 500"
}

func explainName(name, text string) (message, hint string) {
	message = fmt.Sprintf("%s is not a name that a condition can use", yamldoc.Quote(name))
	switch {
	case strings.HasPrefix(name, "conversation"):
		return message, "write conversation.id, conversation.channel or conversation.dm"
	case strings.HasPrefix(name, "caller"):
		return message, "write caller.name, caller.owner, caller.acting_for, caller.proven or caller.mode"
	case strings.Contains(name, "."):
		return message, "a condition can read " + factNames
	case strings.Contains(text, name+"("):
		return fmt.Sprintf("there is no function %s here", name), "docs/policy.md lists the functions"
	}
	return message, fmt.Sprintf("write args.%s if the argument is meant, or %q if it is text", name, name)
}

// arithmetic holds the operators that CEL defines only for two numbers of the same type. Comparisons accept mixed
// types.
var arithmetic = map[string]bool{operators.Add: true, operators.Subtract: true, operators.Multiply: true, operators.Divide: true}

// wholeInArithmetic finds a whole number in arithmetic with an argument. Such arithmetic fails. Numbers in arguments
// are decimal, and CEL does not mix whole and decimal numbers in arithmetic.
func wholeInArithmetic(checked *ast.AST) string {
	found := ""
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if found != "" || e.Kind() != ast.CallKind || !arithmetic[e.AsCall().FunctionName()] {
			return
		}
		args := e.AsCall().Args()
		if len(args) != 2 {
			return
		}
		for i, a := range args {
			other := args[1-i]
			if a.Kind() != ast.LiteralKind || checked.GetType(other.ID()).Kind() != types.DynKind {
				continue
			}
			if n, ok := a.AsLiteral().(types.Int); ok {
				found = fmt.Sprint(int64(n))
			}
		}
	}))
	return found
}
