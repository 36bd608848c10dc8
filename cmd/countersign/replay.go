package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/config"
)

// stored is the value of --replay that uses the calls of the store's history as fixtures.
const stored = "stored"

// replay plans calls under a policy, and optionally under a second one. It prints the differences.
func replay(ctx context.Context, out io.Writer, path, fixtures, against string) error {
	r := replayed{out: out, now: time.Now(), fixtures: fixtures, heldTo: asExpected}
	if fixtures == stored {
		r.heldTo = asThen
	}
	var err error
	if r.policy, r.tools, err = policyFor(path); err != nil {
		return err
	}
	if against != "" {
		r.heldTo = heldTo{"as under " + against, "planned otherwise than under " + against}
		if r.other, r.otherTools, err = policyFor(against); err != nil {
			return err
		}
	}
	calls, left, err := fixturesFrom(ctx, fixtures)
	if err != nil {
		return err
	}
	if err := r.agents(calls); err != nil {
		return err
	}
	for _, x := range calls {
		r.try(x)
	}
	return errors.Join(r.sum(), left)
}

// fixturesFrom reads the calls. left says what of the history is damaged and was left out.
func fixturesFrom(ctx context.Context, name string) (calls []config.Fixture, left, err error) {
	if name != stored {
		calls, err = config.ReadFixtures(name)
		if p, ok := asProblems(err); ok {
			err = cli.Misused("the fixtures can't be used:\n%s", p.Excerpts())
		}
		return calls, nil, err
	}
	var found bytes.Buffer
	err = storedTask.do(ctx, none{}, nil, &found)
	if found.Len() > 0 && cli.Code(err) == cli.ExitNo {
		left, err = err, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(found.Bytes(), &calls); err != nil {
		return nil, nil, cli.CouldNot("the calls of the history can't be read: %w", err)
	}
	if len(calls) == 0 {
		if left != nil {
			return nil, nil, left
		}
		return nil, nil, cli.AnswerNo("the store's history holds no call yet")
	}
	return calls, left, nil
}

// heldTo names the results of the comparison: "3 as expected", "1 not as expected".
type heldTo struct{ same, not string }

var (
	asExpected = heldTo{"as expected", "not as expected"}
	asThen     = heldTo{"as planned then", "not as planned then"}
)

// replayed is the state of a replay.
type replayed struct {
	out        io.Writer
	tools      *agent.Registry
	policy     *approvers.Policy
	other      *approvers.Policy
	otherTools *agent.Registry
	now        time.Time
	fixtures   string
	heldTo     heldTo
	calls      int
	differs    int
	free       int // without an expectation
	alike      []*alike
}

// alike groups stored calls with the same differences and reasons, because a history can have thousands.
type alike struct {
	tool        string
	differences []string
	why         []string
	n           int
	examples    []string
}

// agents rejects fixtures with an unknown agent: with a misspelt name the call would merely appear refused.
func (r *replayed) agents(calls []config.Fixture) error {
	for _, x := range calls {
		has := func(p *approvers.Policy) bool {
			if p == nil {
				return false
			}
			_, ok := p.Agent(x.Agent)
			return ok
		}
		if x.Line > 0 && x.Agent != "" && !has(r.policy) && !has(r.other) {
			return cli.Misused("%s:%d: the policy has no agent %q; it has %s", r.fixtures, x.Line, x.Agent, r.names())
		}
	}
	return nil
}

// names lists the agents that a fixture can name.
func (r *replayed) names() string {
	names := make([]string, len(r.policy.Agents))
	for i, a := range r.policy.Agents {
		names[i] = a.Name
	}
	return strings.Join(names, ", ")
}

// try plans one call under the policies.
func (r *replayed) try(x config.Fixture) {
	r.calls++
	now := planOf(r.policy, r.tools, x, r.now)
	var differences []string
	switch {
	case r.other != nil:
		differences = changes(planOf(r.other, r.otherTools, x, r.now), now)
	case x.Line == 0:
		differences = changes(planSummary{verdict: x.Expect.Verdict, risk: x.Expect.Risk, who: x.Expect.Who}, now)
	default:
		differences = unmet(x.Expect, now)
	}
	switch {
	case len(differences) > 0:
		r.differs++
		r.differ(x, differences, now.why)
	case x.Line == 0: // of stored calls only differences are printed
	case r.other == nil && x.Expect.Empty():
		r.free++
		fmt.Fprintf(r.out, "planned  %s: %s\n", fixtureName(x), now)
	default:
		fmt.Fprintf(r.out, "ok       %s: %s\n", fixtureName(x), now)
	}
}

// differ prints a difference, or collects it for its group.
func (r *replayed) differ(x config.Fixture, differences, why []string) {
	if x.Line > 0 {
		fmt.Fprintf(r.out, "differs  %s (line %d)\n", fixtureName(x), x.Line)
		r.because(differences, why)
		return
	}
	i := slices.IndexFunc(r.alike, func(a *alike) bool {
		return a.tool == x.Tool && slices.Equal(a.differences, differences) && slices.Equal(a.why, why)
	})
	if i < 0 {
		r.alike = append(r.alike, &alike{tool: x.Tool, differences: differences, why: why})
		i = len(r.alike) - 1
	}
	a := r.alike[i]
	if a.n++; len(a.examples) < mostExamples {
		a.examples = append(a.examples, x.Name)
	}
}

// mostExamples is the number of example calls per group.
const mostExamples = 3

func (r *replayed) because(differences, why []string) {
	for _, d := range differences {
		fmt.Fprintln(r.out, "         "+d)
	}
	for _, w := range why {
		fmt.Fprintln(r.out, "         - "+w)
	}
}

// sum prints the summary.
func (r *replayed) sum() error {
	for _, a := range r.alike {
		fmt.Fprintf(r.out, "differs  %s of %s\n", cli.Count(a.n, "call"), a.tool)
		r.because(a.differences, a.why)
		fmt.Fprintln(r.out, "         such as "+strings.Join(a.examples, "\n                 "))
	}
	if r.fixtures != stored || len(r.alike) > 0 {
		fmt.Fprintln(r.out)
	}
	fmt.Fprintf(r.out, "%s: %d %s, %d not", cli.Count(r.calls, "call"), r.calls-r.differs-r.free, r.heldTo.same, r.differs)
	if r.free > 0 {
		fmt.Fprintf(r.out, "; %d without an expectation", r.free)
	}
	fmt.Fprintln(r.out)
	if r.differs == 0 {
		return nil
	}
	return cli.AnswerNo("%s %s", cli.Count(r.differs, "call"), r.heldTo.not)
}

func fixtureName(x config.Fixture) string {
	if x.Name != "" {
		return x.Name
	}
	return x.Tool + " " + short(string(x.Args), 100)
}
