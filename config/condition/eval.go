package condition

import (
	"fmt"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"

	"countersign/approvers"
)

// conditionCost bounds one evaluation, in steps as CEL counts them. A comparison costs a few steps. A long text costs
// one step per ten bytes. Above the limit, the evaluation fails and the condition counts as matched. conditionWork
// bounds the sizes of values.
const conditionCost = 100_000

// program prepares a condition for evaluation. Counting the work takes longer than evaluating most conditions. So the
// work is counted only if some arguments could make the condition reach the limits.
func program(env *cel.Env, compiled *cel.Ast) (cel.Program, error) {
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize), zones}
	if countsWork(env, compiled) {
		limits, err := paid(env)
		if err != nil {
			return nil, err
		}
		options = append(options, limits...)
	}
	return env.Program(compiled, options...)
}

// countsWork reports whether a condition could reach the limits with the largest arguments.
func countsWork(env *cel.Env, compiled *cel.Ast) bool {
	estimate, err := env.EstimateCost(compiled, sizes{})
	return err != nil || estimate.Max > conditionCost || mayGrow(compiled.NativeRep().Expr())
}

// sizes tells CEL's cost estimator the largest sizes of the values that a condition reads. The arguments of a call have
// at most approvers.MaxArgs bytes, and all other facts are names and ids.
type sizes struct{}

func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	if len(n.Path()) == 0 {
		return nil // the value is computed, so the estimator knows its size, or treats the size as unlimited
	}
	return &cost.SizeEstimate{Max: approvers.MaxArgs}
}

func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// facts maps the names in a condition to the facts of a call.
type facts struct {
	approvers.Facts
	work budget
}

// reused holds values of the type facts from finished evaluations. Later evaluations reuse these values.
var reused = sync.Pool{New: func() any { return new(facts) }}

// Parent returns nil, because the facts are the only names.
func (*facts) Parent() cel.Activation { return nil }

// ResolveName finds a fact.
func (f *facts) ResolveName(name string) (any, bool) {
	switch name {
	case "args":
		return f.Args, true
	case "preview":
		return f.Preview, true
	case "requester":
		return f.Requester, true
	case "agent":
		return f.Agent, true
	case "now":
		return f.Now, true
	case "conversation.id":
		return f.Conversation.ID, true
	case "conversation.channel":
		return f.Conversation.Channel, true
	case "conversation.dm":
		return f.Conversation.DM, true
	case "caller.name":
		return f.caller().Name, true
	case "caller.owner":
		return f.caller().Owner.User(), true
	case "caller.acting_for":
		return f.caller().For.User(), true
	case "caller.proven":
		return f.caller().Proven, true
	case "caller.mode":
		return string(f.caller().Mode), true
	case workName:
		return &f.work, true
	}
	return nil, false
}

// caller returns the caller of a call. For a call of Countersign's own agent, the function returns the zero caller.
func (f *facts) caller() approvers.Caller {
	if f.Caller == nil {
		return approvers.Caller{}
	}
	return *f.Caller
}

// evaluate computes a condition. A missing argument, a wrong type and too much work are errors. After an error, the
// condition counts as matched.
func evaluate(p cel.Program, given approvers.Facts) (bool, error) {
	f, ok := reused.Get().(*facts)
	if !ok {
		f = new(facts)
	}
	f.Facts, f.work = given, budget{conditionWork}
	out, _, err := p.Eval(f)
	f.Facts = approvers.Facts{}
	reused.Put(f)
	if err != nil {
		return false, err
	}
	matched, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("neither true nor false, but %s", out.Type().TypeName())
	}
	return bool(matched), nil
}
