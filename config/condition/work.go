package condition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// CEL counts the steps of a function only after the call, when the result already exists. For example, a condition can
// split a text of 60 KB into characters, and join the characters with the text as the separator. The result would have
// 3.6 GB before the first step is counted. So a function has a price if its work depends on its input. The evaluation
// pays the price before the call. The price depends on the sizes of the input and the result. The price of a list or
// object is paid when the list or object is made. So no value is larger than the whole budget. Reading a value takes
// limited time, for example when an error's text contains the value.

// conditionWork limits the bytes that one evaluation may read and create. The limit is 64 times the size of the largest
// arguments.
const conditionWork = 4 << 20

const (
	itemWork  = 16   // cost of a value in addition to its text, in bytes
	runeWork  = 5    // cost of each byte of a text that a function splits into characters; it covers the characters and the result
	regexStep = 2    // how many steps of a regular expression cost one byte
	scanStep  = 16   // how many comparisons of single characters cost one byte
	zoneWork  = 1024 // cost of a time zone lookup
	// maxPattern is the maximum length of a computed regular expression, in bytes. A short expression can also be
	// expensive: the 7 bytes x{1000} make 1000 steps.
	maxPattern = 256
)

// workName is the variable of an evaluation's budget. No condition can contain this name.
const workName = "@work"

// budget is the remaining work of one evaluation.
type budget struct{ left int }

// spend deducts n bytes of work. If fewer bytes are left, the function ends the evaluation with an error. As with CEL's
// own limit, the condition can't catch this error.
func (b *budget) spend(n int) {
	if b == nil {
		return // a constant part, computed when the policy is read
	}
	if b.left -= n; n < 0 || b.left < 0 {
		b.left = 0
		panic(interpreter.EvalCancelledError{Cause: interpreter.MemoryLimitExceeded, Message: fmt.Sprintf("it would go through more than %d MiB", conditionWork>>20)})
	}
}

// budgetOf returns the budget of a frame's evaluation.
func budgetOf(f *interpreter.ExecutionFrame) *budget {
	found, _ := f.ResolveName(workName)
	b, _ := found.(*budget)
	return b
}

// deep spends the size of a value including its content. The function stops when the budget is used up.
func (b *budget) deep(v ref.Val) {
	if b == nil {
		return
	}
	b.spend(itemWork + length(v))
	switch v := v.(type) {
	case traits.Lister:
		for i := range listLen(v) {
			b.deep(v.Get(types.Int(i)))
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			b.deep(key)
			if item, ok := v.Find(key); ok {
				b.deep(item)
			}
		}
	}
}

// length returns the length of a text. For any other value, the function returns 0.
func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

func listLen(l traits.Lister) int {
	n, _ := l.Size().(types.Int)
	return int(n)
}

func contains(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		return true
	}
	return false
}

func text(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

// A price is a function that spends the cost of a call. The cost is the number of bytes that the called function will
// read and create.
type price func(b *budget, args []ref.Val) error

// linear spends the price of functions that process their texts by character. The result of such a function is at
// most a few times as long as the texts.
func linear(b *budget, args []ref.Val) error {
	for _, a := range args {
		b.spend(itemWork + runeWork*length(a))
	}
	return nil
}

// prices has the prices of functions that can have a large result or a long run time for small inputs.
var prices = map[string]price{
	operators.Add:     addPrice,
	overloads.Matches: matchesPrice,
	"format":          formatPrice,
	"indexOf":         searchPrice,
	"join":            joinPrice,
	"lastIndexOf":     searchPrice,
	"replace":         replacePrice,
	"split":           splitPrice,
}

// modest lists functions whose work and result are at most a few times the size of their input.
var modest = []string{
	operators.Equals, operators.NotEquals, operators.In, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.Negate, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo,
	overloads.TypeConvertBool, overloads.TypeConvertBytes, overloads.TypeConvertDouble, overloads.TypeConvertDuration, overloads.TypeConvertDyn,
	overloads.TypeConvertInt, overloads.TypeConvertString, overloads.TypeConvertTimestamp, overloads.TypeConvertType, overloads.TypeConvertUint,
	overloads.Contains, overloads.StartsWith, overloads.EndsWith, overloads.Size,
	"charAt", "lowerAscii", "upperAscii", "reverse", "strings.quote", "substring", "trim",
}

// priceOf returns the price of a function, or nil if the function has no price. A condition can call a function without
// a price only if unpriced or timeParts lists the function.
func priceOf(function string) price {
	switch {
	case prices[function] != nil:
		return prices[function]
	case function == operators.Equals || function == operators.NotEquals:
		return comparePrice
	case function == operators.In:
		return inPrice
	case slices.Contains(modest, function):
		return linear
	}
	return nil
}

// unpriced lists functions with constant work, and functions that CEL's planner replaces.
var unpriced = []string{
	operators.LogicalNot, operators.LogicalAnd, operators.LogicalOr, operators.Conditional, operators.Index,
	operators.NotStrictlyFalse, "__not_strictly_false__", operators.OldIn, "in", // two of them under their old names
}

// timeParts lists the functions that read a part of a time, with or without a time zone.
var timeParts = []string{
	overloads.TimeGetFullYear, overloads.TimeGetMonth, overloads.TimeGetDayOfYear, overloads.TimeGetDate, overloads.TimeGetDayOfMonth,
	overloads.TimeGetDayOfWeek, overloads.TimeGetHours, overloads.TimeGetMinutes, overloads.TimeGetSeconds, overloads.TimeGetMilliseconds,
}

// addPrice spends the price of a sum: the length of both texts, or the content of both lists. A macro extends its list
// in place, so only the added part has a price.
func addPrice(b *budget, args []ref.Val) error {
	if _, grows := args[0].(traits.MutableLister); grows {
		b.spend(itemWork * 2) // the price of the added part was paid when the part was made
		return nil
	}
	for _, a := range args {
		if contains(a) {
			b.deep(a)
		} else {
			b.spend(itemWork + length(a))
		}
	}
	return nil
}

// comparePrice spends the price of comparing both sides completely.
func comparePrice(b *budget, args []ref.Val) error {
	if !contains(args[0]) || !contains(args[1]) {
		b.spend(itemWork + min(length(args[0]), length(args[1])))
		return nil
	}
	b.deep(args[0])
	b.deep(args[1])
	return nil
}

// inPrice spends the price of comparing a value with each item of a list. For an object, inPrice spends the price of
// a lookup.
func inPrice(b *budget, args []ref.Val) error {
	b.deep(args[0])
	if l, ok := args[1].(traits.Lister); ok {
		b.deep(l)
	}
	return nil
}

// matchesPrice spends the price of matching with a computed regular expression.
func matchesPrice(b *budget, args []ref.Val) error {
	pattern := text(args[1])
	if len(pattern) > maxPattern {
		return fmt.Errorf("a regular expression that is computed has at most %d bytes", maxPattern)
	}
	size, err := types.RegexProgramSize(pattern)
	if err != nil {
		return err
	}
	b.spend(8*itemWork*size + regexWork(length(args[0]), size))
	return nil
}

func regexWork(length, program int) int { return itemWork + length + length*program/regexStep }

// searchPrice spends the price of indexOf, which compares at each position.
func searchPrice(b *budget, args []ref.Val) error {
	n, m := length(args[0]), length(args[1])
	b.spend(itemWork + runeWork*(n+m) + max(n-m, 0)*m/scanStep)
	return nil
}

// replacePrice spends the size of the text with all replacements.
func replacePrice(b *budget, args []ref.Val) error {
	s, old, with := text(args[0]), text(args[1]), text(args[2])
	b.spend(itemWork + len(s) + len(old) + len(with))
	n := strings.Count(s, old)
	if len(args) > 3 {
		if most, ok := args[3].(types.Int); ok && most >= 0 {
			n = min(n, int(min(most, types.Int(len(s)+1))))
		}
	}
	b.spend(len(s) + n*max(len(with)-len(old), 0))
	return nil
}

// splitPrice spends the size of the list of all parts.
func splitPrice(b *budget, args []ref.Val) error {
	s, by := text(args[0]), text(args[1])
	b.spend(itemWork + len(s) + len(by))
	b.spend(2 * itemWork * (strings.Count(s, by) + 1))
	return nil
}

// joinPrice spends the size of all texts of a list and of the separators between them.
func joinPrice(b *budget, args []ref.Val) error {
	l, ok := args[0].(traits.Lister)
	if !ok {
		return nil // no such overload
	}
	between := 0
	if len(args) > 1 {
		between = length(args[1])
	}
	for i := range listLen(l) {
		item, ok := l.Get(types.Int(i)).(types.String)
		if !ok {
			return fmt.Errorf("join: item %d of the list is not a text", i+1)
		}
		b.spend(itemWork + len(item) + between)
	}
	return nil
}

// formatPrice spends the largest possible size of the text with all values formatted. A number takes at most about
// 400 digits. A text takes at most 4 bytes for each of its bytes.
func formatPrice(b *budget, args []ref.Val) error {
	b.spend(itemWork + length(args[0]))
	l, ok := args[1].(traits.Lister)
	if !ok {
		return nil
	}
	for i := range listLen(l) {
		b.spend(512)
		for range 4 {
			b.deep(l.Get(types.Int(i)))
		}
	}
	return nil
}

// paid returns the options with which a program pays for its work.
func paid(env *cel.Env) ([]cel.ProgramOption, error) {
	bound := map[string]*functions.Overload{}
	for _, f := range env.Functions() {
		all, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			bound[o.Operator] = o
		}
	}
	return []cel.ProgramOption{cel.CostLimit(conditionCost), cel.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		switch i := i.(type) {
		case interpreter.InterpretableConstructor:
			return paidConstructor(i), nil
		case interpreter.InterpretableCall:
			return paidCall(i, bound)
		}
		return i, nil
	})}, nil
}

// constructor is a list or an object that a condition builds from computed parts.
type constructor struct {
	interpreter.InterpretableConstructor
}

// Exec creates the value from references to its parts, and pays for its content.
func (c constructor) Exec(f *interpreter.ExecutionFrame) ref.Val {
	v := c.InterpretableConstructor.Exec(f)
	if !types.IsUnknownOrError(v) {
		budgetOf(f).deep(v)
	}
	return v
}

func (c constructor) Eval(a interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(a, c.Exec)
}

func paidConstructor(c interpreter.InterpretableConstructor) interpreter.InterpretableV2 {
	for _, part := range c.InitVals() {
		if _, fixed := part.(interpreter.InterpretableConst); !fixed {
			return constructor{c}
		}
	}
	return c
}

// call is a function call whose price is spent in advance.
type call struct {
	interpreter.InterpretableCall
	args  []interpreter.InterpretableV2
	price price
	made  func(args []ref.Val) ref.Val
}

func paidCall(c interpreter.InterpretableCall, bound map[string]*functions.Overload) (interpreter.InterpretableV2, error) {
	name := c.Function()
	if slices.Contains(unpriced, name) {
		return c, nil
	}
	out := call{InterpretableCall: c, args: c.Args(), price: priceOf(name)}
	var fixed interpreter.InterpretableConst
	if len(out.args) == 2 {
		fixed, _ = out.args[1].(interpreter.InterpretableConst)
	}
	switch {
	case slices.Contains(timeParts, name):
		if fixed != nil || len(out.args) < 2 {
			return c, nil // not counted, because the zone is looked up when the condition is compiled
		}
		out.price = func(b *budget, _ []ref.Val) error { b.spend(zoneWork); return nil }
	case name == overloads.Matches && fixed != nil:
		if pattern, ok := fixed.Value().(types.String); ok {
			return paidMatch(c, string(pattern))
		}
		return c, nil // no such overload
	case out.price == nil:
		return nil, fmt.Errorf("%s can't be used here", name)
	}
	switch name {
	case operators.Equals:
		out.made = func(args []ref.Val) ref.Val { return types.Equal(args[0], args[1]) }
	case operators.NotEquals:
		out.made = func(args []ref.Val) ref.Val { return types.Bool(types.Equal(args[0], args[1]) != types.True) }
	default:
		f := bound[c.OverloadID()]
		if f == nil {
			f = bound[name]
		}
		if f == nil {
			return nil, fmt.Errorf("%s can't be used here", name)
		}
		out.made = func(args []ref.Val) ref.Val { return invoke(f, c, args) }
	}
	return out, nil
}

// Exec computes the arguments, spends the price, and calls the function.
func (c call) Exec(f *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(c.args))
	for i, a := range c.args {
		if args[i] = a.Exec(f); types.IsUnknownOrError(args[i]) {
			return args[i]
		}
	}
	var out ref.Val
	if err := c.price(budgetOf(f), args); err != nil {
		out = types.NewErrWithNodeID(c.ID(), "%s", err)
	} else {
		out = types.LabelErrNode(c.ID(), c.made(args))
	}
	if steps := f.CostTracker(); steps != nil {
		steps.EvalVarArgs(f, c.ID(), c, args, out)
	}
	return out
}

func (c call) Eval(a interpreter.Activation) ref.Val { return interpreter.EvalActivation(a, c.Exec) }

// invoke calls a function in the same way as CEL's planner.
func invoke(f *functions.Overload, c interpreter.InterpretableCall, args []ref.Val) ref.Val {
	if f.OperandTrait != 0 && !args[0].Type().HasTrait(f.OperandTrait) {
		return types.NewErrWithNodeID(c.ID(), "no such overload: %s", c.Function())
	}
	switch {
	case len(args) == 1 && f.Unary != nil:
		return f.Unary(args[0])
	case len(args) == 2 && f.Binary != nil:
		return f.Binary(args[0], args[1])
	case f.Function != nil:
		return f.Function(args...)
	}
	return types.NewErrWithNodeID(c.ID(), "no such overload: %s", c.Function())
}

// match is a call with a literal regular expression. The type match is not an InterpretableCall, because CEL would
// replace such a call with its own implementation.
type match struct{ call call }

func (m match) ID() int64                                  { return m.call.ID() }
func (m match) Exec(f *interpreter.ExecutionFrame) ref.Val { return m.call.Exec(f) }
func (m match) Eval(a interpreter.Activation) ref.Val      { return m.call.Eval(a) }

func paidMatch(c interpreter.InterpretableCall, pattern string) (interpreter.InterpretableV2, error) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	size, err := types.RegexProgramSize(pattern)
	if err != nil {
		return nil, err
	}
	return match{call{
		InterpretableCall: c, args: c.Args(),
		price: func(b *budget, args []ref.Val) error { b.spend(regexWork(length(args[0]), size)); return nil },
		made: func(args []ref.Val) ref.Val {
			s, ok := args[0].(types.String)
			if !ok {
				return types.MaybeNoSuchOverloadErr(args[0])
			}
			return types.Bool(compiled.MatchString(string(s)))
		},
	}}, nil
}

// mayGrow reports whether a condition's work can exceed a few times the size of its arguments. The result is true if
// the condition iterates over a list, or builds a value from other values. The result is also true if the condition
// calls a function that can make a large result from small inputs.
func mayGrow(e ast.Expr) bool {
	found := false
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind, ast.StructKind, ast.MapKind:
			found = true
		case ast.ListKind:
			found = found || slices.ContainsFunc(e.AsList().Elements(), func(e ast.Expr) bool { return e.Kind() != ast.LiteralKind })
		case ast.CallKind:
			found = found || growing(e.AsCall())
		}
	}))
	return found
}

// growing reports whether the work of a single call can exceed a few times the size of its arguments.
func growing(c ast.CallExpr) bool {
	name := c.FunctionName()
	args := c.Args()
	switch {
	case name == overloads.Matches:
		pattern, fixed := fixedText(args)
		size, err := types.RegexProgramSize(pattern)
		return !fixed || err != nil || size > smallPattern
	case slices.Contains(timeParts, name):
		_, fixed := fixedText(args)
		return len(args) > 0 && !fixed
	case slices.Contains(unpriced, name):
		return false
	}
	return !slices.Contains(modest, name)
}

// fixedText returns the last argument of a call if this argument is a literal text.
func fixedText(args []ast.Expr) (string, bool) {
	if len(args) == 0 || args[len(args)-1].Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := args[len(args)-1].AsLiteral().(types.String)
	return string(s), ok
}

// smallPattern is the size, in steps per character, of the largest regular expression that is matched without counting.
const smallPattern = 30
