package condition

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// CostProblems warns if the condition would exceed the cost limit with the largest arguments that the schema allows. In
// that case, the condition counts as matched.
func (c *Compiled) CostProblems(arguments Shape) yamldoc.Problems {
	if !countsWork(c.env, c.compiled) {
		return nil
	}
	estimate, err := c.env.EstimateCost(c.compiled, shapeSizes{arguments})
	if err == nil && estimate.Max <= conditionCost {
		return nil
	}
	limit := fmt.Sprintf("the limit of %s steps", yamldoc.GroupDigits(fmt.Sprint(conditionCost)))
	if err == nil && estimate.Max < 1<<40 {
		limit += fmt.Sprintf(", to %s", yamldoc.GroupDigits(fmt.Sprint(estimate.Max)))
	}
	at := c.checked.SourceInfo().GetStartLocation(heaviest(c.checked.Expr()).ID())
	return yamldoc.Problems{c.value.ProblemAt(c.marks.At(c.text, at.Line(), at.Column()), yamldoc.Warning,
		"the largest arguments that are accepted take it over "+limit+". It can't be evaluated then, and counts as matched",
		"limit what the condition reads, with maxLength or maxItems in the tool's schema, or keep it if it should match then")}
}

// heaviest returns the part of a condition that a cost warning points at. The result is the first part that iterates
// over a list, or that can make a large value from small values.
func heaviest(root ast.Expr) ast.Expr {
	var found ast.Expr
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if found == nil && (e.Kind() == ast.ComprehensionKind || (e.Kind() == ast.CallKind && growing(e.AsCall()))) {
			found = e
		}
	}))
	if found == nil {
		return root
	}
	return found
}

// Amplifies reports whether the condition calls a function that makes a long text from short texts.
func (c *Compiled) Amplifies() bool {
	found := false
	ast.PreOrderVisit(c.checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || (e.Kind() == ast.CallKind && slices.Contains([]string{"format", "join", "replace"}, e.AsCall().FunctionName()))
	}))
	return found
}

// shapeSizes derives limits for the sizes of the values that a condition reads. shapeSizes derives these limits from
// the tool's schema.
type shapeSizes struct{ arguments Shape }

func (s shapeSizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	path := n.Path()
	if len(path) == 0 {
		return nil
	}
	if path[0] != "args" {
		return sizes{}.EstimateSize(n)
	}
	of := s.arguments
	for _, step := range path[1:] {
		switch step {
		case "@items":
			of = of.items()
		case "@keys", "@values":
			of = nil
		default:
			of, _ = of.Field(step)
		}
	}
	return &cost.SizeEstimate{Max: of.most()}
}

func (s shapeSizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// The method returns the maximum size of a value as CEL counts it: bytes of a text, items of a list, fields of
// an object.
func (s Shape) most() uint64 {
	if len(s) == 0 {
		return approvers.MaxArgs
	}
	var most uint64
	for _, v := range s {
		most = max(most, v.most())
	}
	return most
}

func (v variant) most() uint64 {
	kinds := v.kinds()
	if kinds&(kindText|kindList|kindObject) == 0 {
		return 1
	}
	most := uint64(1)
	if kinds&kindText != 0 {
		most = max(most, v.longest())
	}
	if kinds&kindList != 0 {
		most = max(most, v.mostItems())
	}
	if kinds&kindObject != 0 {
		most = max(most, approvers.MaxArgs/uint64(len(`"":0,`)))
	}
	return most
}

// longest returns how many bytes a text can have.
func (v variant) longest() uint64 {
	most := uint64(approvers.MaxArgs)
	for _, s := range v {
		if s.MaxLength != nil {
			most = min(most, uint64(*s.MaxLength)*utf8.UTFMax)
		}
		if values := listedValues(s); values != nil {
			longest := uint64(1)
			for _, value := range values {
				text, _ := value.(string)
				longest = max(longest, uint64(len(text)))
			}
			most = min(most, longest)
		}
	}
	return most
}

// mostItems returns the maximum number of items of a list. The schema determines this number. But a list can't have
// more items than fit into the arguments.
func (v variant) mostItems() uint64 {
	most := approvers.MaxArgs / (Shape{v}.items().least() + 1) // with a comma
	for _, s := range v {
		if s.MaxItems != nil {
			most = min(most, uint64(*s.MaxItems))
		}
	}
	return most
}

// least returns the minimum size of a value as JSON, in bytes.
func (s Shape) least() uint64 {
	if len(s) == 0 {
		return 1
	}
	least := uint64(approvers.MaxArgs)
	for _, v := range s {
		least = min(least, v.least())
	}
	return least
}

func (v variant) least() uint64 {
	if values := (Shape{v}).values(v.kinds()); len(values) > 0 {
		least := approvers.MaxArgs
		for _, value := range values {
			if written, err := json.Marshal(value); err == nil {
				least = min(least, len(written))
			}
		}
		return uint64(least)
	}
	switch v.kinds() {
	case kindText, kindList:
		return uint64(len(`""`))
	case kindBool:
		return uint64(len("true"))
	case kindObject:
		names := map[string]bool{}
		for _, s := range v {
			for _, name := range s.Required {
				names[name] = true
			}
		}
		n := len(`{}`)
		for name := range names {
			n += len(name) + len(`"":0,`)
		}
		return uint64(n)
	}
	return 1
}
