package condition

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/cel"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// parsed returns a policy with one tool. The tool runs without approval if no rule matches.
func parsed(t testing.TB, conditions ...string) *approvers.Policy {
	t.Helper()
	var b strings.Builder
	for _, c := range conditions {
		fmt.Fprintf(&b, "- %s\n", strconv.Quote(c))
	}
	doc, root, ok := yamldoc.Parse("test.yaml", "docs/policy.md", []byte(b.String()))
	if !ok {
		t.Fatal(doc.Problems())
	}
	pay := approvers.ToolPolicy{Name: "pay", Risk: approvers.Low}
	items, _ := root.List("conditions")
	for _, item := range items {
		when, _ := Read(item)
		pay.Rules = append(pay.Rules, approvers.Rule{When: when, Risk: approvers.High, Confirm: true})
	}
	if err := doc.Problems().Err(); err != nil {
		t.Fatal(err)
	}
	p := &approvers.Policy{
		Tools: []approvers.ToolPolicy{pay},
		Approvers: []approvers.Role{{
			Name: "lead", Title: "Lead", MaxRisk: approvers.Critical, CanApprove: []string{"*"}, Members: []approvers.Member{{Kind: approvers.MemberUser, Value: "U0001"}},
		}},
	}
	return p.Indexed()
}

// largest returns arguments of nearly the maximum size.
func largest() []map[string]any {
	texts, numbers, nested := make([]any, 16<<10), make([]any, 32<<10), make([]any, 4<<10)
	for i := range texts {
		texts[i] = ""
	}
	for i := range numbers {
		numbers[i] = 1.0
	}
	for i := range nested {
		nested[i] = map[string]any{"price": 5.0}
	}
	long := strings.Repeat("a", 60<<10)
	return []map[string]any{
		{"amount": 501.0, "to": long, "l": []any{}, "m": map[string]any{}, "other": "a"},
		{"amount": 501.0, "to": long[:30<<10], "other": long[:30<<10], "l": []any{}, "m": map[string]any{}},
		{"amount": 501.0, "to": "", "other": "", "l": texts, "m": map[string]any{}},
		{"amount": 501.0, "to": "", "other": "", "l": numbers, "m": map[string]any{}},
		{"amount": 501.0, "to": "", "other": "", "l": nested, "m": map[string]any{"l": nested[:10]}},
	}
}

// TestUntracked checks conditions whose work is not counted. Even with the largest arguments, such a condition must
// stay below the limits.
func TestUntracked(t *testing.T) {
	env, err := conditions()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text    string
		counted bool
	}{
		{text: "args.amount > 500"},
		{text: "args.amount > 500 && requester == 'U0001' && now.getHours('Europe/Berlin') >= 18"},
		{text: "has(args.to) && args.to.endsWith('@example.com')"},
		{text: "args.to in ['a', 'b', 'c'] || 'x' in args || args['odd name'] == 'x'"},
		{text: "args.to == args.other"},
		{text: "size(args.l) > 5"},
		{text: "args.to.matches('^[a-z]+@example[.]com$')"},
		{text: "'x' in args.l"},
		{text: "args.to.lowerAscii() == 'x'"},
		{text: "args.to.matches(args.other)", counted: true},
		{text: "args.to.contains(args.other)", counted: true},
		{text: "args.l.exists(i, i.price > 100)", counted: true},
		{text: "args.l.all(x, args.l.all(y, x + y >= 0.0))", counted: true},
		{text: "args.to.split('').size() > 5 && args.l.map(x, x).size() > 3", counted: true},
		{text: strings.Repeat("args.to == args.other || ", 30) + "false", counted: true},
	} {
		compiled, issues := env.Compile(c.text)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		estimate, err := env.EstimateCost(compiled, sizes{})
		if err != nil {
			t.Fatal(err)
		}
		if got := countsWork(env, compiled); got != c.counted {
			t.Errorf("%s takes up to %d steps: counted %v, want %v", c.text, estimate.Max, got, c.counted)
		}
		counting, err := env.Program(compiled, cel.CostTracking(nil), cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			t.Fatal(err)
		}
		if c.counted {
			continue
		}
		for i, args := range largest() {
			_, details, _ := counting.Eval(&facts{Facts: approvers.Facts{Args: args, Now: time.Now()}})
			if took := *details.ActualCost(); took > estimate.Max || took > conditionCost {
				t.Errorf("%s took %d steps of arguments %d, and at most %d were expected", c.text, took, i, estimate.Max)
			}
		}
	}
}

// TestCostMatches checks that a rule whose condition takes too many steps counts as matched, so that the call waits.
// With smaller arguments, the call does not wait.
func TestCostMatches(t *testing.T) {
	p := parsed(t, "args.l.exists(x, args.l.exists(y, x + y < 0.0))")
	many := make([]any, 2000)
	for i := range many {
		many[i] = 1.0
	}
	plan := p.Plan(approvers.Call{Tool: "pay", Facts: approvers.Facts{Args: map[string]any{"l": many}}})
	if plan.Verdict != approvers.Ask || plan.Risk != approvers.High || !strings.Contains(strings.Join(plan.Why, "\n"), "could not be evaluated, so it counts as matched") {
		t.Errorf("%+v", plan)
	}
	if plan := p.Plan(approvers.Call{Tool: "pay", Facts: approvers.Facts{Args: map[string]any{"l": many[:5]}}}); plan.Verdict != approvers.Auto {
		t.Errorf("%+v", plan)
	}
}

// TestFactsAreNotShared checks that each of several concurrent evaluations uses the facts of its own call.
func TestFactsAreNotShared(t *testing.T) {
	eval := parsed(t, "args.amount == 1 && requester == 'U1' || args.amount == 2 && requester == 'U2'").Tools[0].Rules[0].When.Eval
	done := make(chan error)
	for n := range 4 {
		go func() {
			who := n%2 + 1
			f := approvers.Facts{Args: map[string]any{"amount": float64(who)}, Requester: fmt.Sprintf("U%d", who)}
			for range 2000 {
				if matched, err := eval(f); err != nil || !matched {
					done <- fmt.Errorf("matched %t: %w", matched, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

var benchFacts = approvers.Facts{
	Args: map[string]any{
		"amount": 250.0, "to": "jo@example.com", "order_id": "ORD-123", "currency": "USD", "l": []any{map[string]any{"price": 1.0}, map[string]any{"price": 2.0}, map[string]any{"price": 3.0}},
	},
	Requester: "U0001", Agent: "support", Now: time.Date(2026, 3, 31, 17, 30, 0, 0, time.UTC), Conversation: approvers.ConversationFacts{ID: "c1", Channel: "C0001"},
}

// BenchmarkCondition measures one evaluation. The goal for a simple comparison is well below 400 ns.
func BenchmarkCondition(b *testing.B) {
	for _, text := range []string{
		"args.amount > 500", "requester == 'U0002'", "!args.to.endsWith('@example.com')", "args.currency in ['EUR', 'GBP', 'CHF']", "args.to.matches('^[a-z]+@other[.]com$')",
		"has(args.note) && args.note != '' || args.amount > 500", "now.getHours('Europe/Berlin') < 8", "args.reason == 'x'", "args.l.exists(i, i.price > 100)",
	} {
		b.Run(text, func(b *testing.B) {
			eval := parsed(b, text).Tools[0].Rules[0].When.Eval
			b.ReportAllocs()
			for b.Loop() {
				if matched, _ := eval(benchFacts); matched {
					b.Fatal("matches")
				}
			}
		})
	}
}

// BenchmarkHundredRules measures the plan of a call whose tool has 100 rules. The goal is below 100 µs.
func BenchmarkHundredRules(b *testing.B) {
	for _, bench := range []struct {
		name string
		rule func(i int) string
	}{
		{"simple", func(i int) string { return fmt.Sprintf("args.amount > %d", 500+i) }},
		{"mixed", func(i int) string {
			return []string{
				fmt.Sprintf("args.amount > %d", 500+i), fmt.Sprintf("args.to.endsWith('@example%d.com')", i), fmt.Sprintf("requester == 'U%d'", 1000+i),
				fmt.Sprintf("has(args.note) && args.note == 'x%d'", i), fmt.Sprintf("args.currency in ['EUR', 'GBP'] && args.amount > %d", i),
			}[i%5]
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var rules []string
			for i := range 100 {
				rules = append(rules, bench.rule(i))
			}
			p := parsed(b, rules...)
			b.ReportAllocs()
			for b.Loop() {
				if p.Plan(approvers.Call{Tool: "pay", Facts: benchFacts}).Verdict != approvers.Auto {
					b.Fatal("a rule matched")
				}
			}
		})
	}
}
