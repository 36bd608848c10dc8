package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/config"
	"countersign/internal/shop"
	"countersign/store"
)

// stored is the value of --replay that takes the calls of the store's history for fixtures.
const stored = "stored"

// replay holds calls against a policy, and against another one where it is given. It prints what differs.
func replay(ctx context.Context, out io.Writer, path, fixtures, against string) error {
	tools, err := registry(shop.New(time.Now))
	if err != nil {
		return err
	}
	policy, err := policyFor(path, tools)
	if err != nil {
		return err
	}
	var other *approvers.Policy
	if against != "" {
		if other, err = policyFor(against, tools); err != nil {
			return err
		}
	}
	calls, err := fixturesFrom(ctx, fixtures)
	if err != nil {
		return err
	}
	r := replayed{out: out, tools: tools, policy: policy, other: other, now: time.Now()}
	for _, x := range calls {
		r.try(x)
	}
	return r.sum(against)
}

func fixturesFrom(ctx context.Context, name string) ([]config.Fixture, error) {
	if name != stored {
		calls, err := config.ReadFixtures(name)
		if p, ok := asProblems(err); ok {
			return nil, misused("the fixtures can't be used:\n%s", p.Excerpts())
		}
		return calls, err
	}
	var calls []config.Fixture
	err := withStore(func(s store.Store) (err error) {
		calls, err = storedFixtures(ctx, s)
		return err
	})
	if err == nil && len(calls) == 0 {
		err = answerNo("the store's history holds no call yet")
	}
	return calls, err
}

// replayed counts what a replay found.
type replayed struct {
	out     io.Writer
	tools   *agent.Registry
	policy  *approvers.Policy
	other   *approvers.Policy
	now     time.Time
	calls   int
	differs int
}

// try holds one call against the policies, and prints it if something differs.
func (r *replayed) try(x config.Fixture) {
	r.calls++
	now := r.plan(r.policy, x)
	differences := unmet(x.Expect, now)
	if r.other != nil {
		before := r.plan(r.other, x)
		differences = changes(before, now)
	}
	if len(differences) == 0 {
		fmt.Fprintf(r.out, "ok       %s: %s\n", fixtureName(x), now)
		return
	}
	r.differs++
	fmt.Fprintf(r.out, "differs  %s\n", fixtureName(x))
	for _, d := range differences {
		fmt.Fprintln(r.out, "         "+d)
	}
	for _, why := range now.why {
		fmt.Fprintln(r.out, "         - "+why)
	}
}

// outlook is what a policy says of a call, as fixtures write it.
type outlook struct {
	verdict string
	risk    approvers.Risk
	who     []string
	why     []string
}

func (o outlook) String() string {
	words := o.verdict
	if o.risk != 0 {
		words += ", " + o.risk.String() + " risk"
	}
	if len(o.who) > 0 {
		words += ", " + strings.Join(o.who, ", then ")
	}
	return words
}

func (r *replayed) plan(p *approvers.Policy, x config.Fixture) outlook {
	call, err := callOf(p, r.tools, x, r.now)
	if err != nil {
		return outlook{verdict: string(approvers.Refuse), why: []string{err.Error()}}
	}
	plan := p.Plan(call)
	o := outlook{verdict: string(plan.Verdict), risk: plan.Risk, why: plan.Why}
	for _, s := range plan.Stages {
		o.who = append(o.who, s.String())
	}
	return o
}

// unmet lists what is not as a fixture expects.
func unmet(e config.Expectation, o outlook) []string {
	var out []string
	if e.Verdict != "" && e.Verdict != o.verdict {
		out = append(out, fmt.Sprintf("verdict: %s, and %s was expected", o.verdict, e.Verdict))
	}
	if e.Risk != 0 && e.Risk != o.risk {
		out = append(out, fmt.Sprintf("risk: %s, and %s was expected", o.risk, e.Risk))
	}
	if e.Who != nil && !slices.Equal(e.Who, o.who) {
		out = append(out, fmt.Sprintf("who: %s, and %s was expected", people(o.who), people(e.Who)))
	}
	if e.Why != "" && !slices.ContainsFunc(o.why, func(w string) bool { return strings.Contains(w, e.Why) }) {
		out = append(out, fmt.Sprintf("why: no reason says %q", e.Why))
	}
	return out
}

// changes lists what another policy said.
func changes(before, now outlook) []string {
	var out []string
	if before.verdict != now.verdict {
		out = append(out, fmt.Sprintf("verdict: %s → %s", before.verdict, now.verdict))
	}
	if before.risk != now.risk {
		out = append(out, fmt.Sprintf("risk: %s → %s", before.risk, now.risk))
	}
	if !slices.Equal(before.who, now.who) {
		out = append(out, fmt.Sprintf("who: %s → %s", people(before.who), people(now.who)))
	}
	return out
}

func people(who []string) string {
	if len(who) == 0 {
		return "nobody"
	}
	return strings.Join(who, ", then ")
}

func fixtureName(x config.Fixture) string {
	if x.Name != "" {
		return x.Name
	}
	args := string(x.Args)
	const longest = 100
	if r := []rune(args); len(r) > longest {
		args = string(r[:longest]) + "…"
	}
	return x.Tool + " " + args
}

// sum says how it went.
func (r *replayed) sum(against string) error {
	fmt.Fprintf(r.out, "\n%s: %d as before, %d differ\n", count(r.calls, "call"), r.calls-r.differs, r.differs)
	switch {
	case r.differs == 0:
		return nil
	case against != "":
		return answerNo("%s would be decided otherwise than under %s", count(r.differs, "call"), against)
	}
	return answerNo("%s not as expected", count(r.differs, "call"))
}

// storedFixtures makes a fixture of each call that the history holds, with what was planned for it then.
func storedFixtures(ctx context.Context, s store.Store) ([]config.Fixture, error) {
	var out []config.Fixture
	err := eachChain(ctx, s, func(records []approvers.AuditRecord) error {
		first := records[0]
		if first.Kind != approvers.AuditProposed || first.Facts["verdict"] == "error" || first.Facts["call"] == "" {
			return nil
		}
		x, err := storedFixture(ctx, s, first)
		if errors.Is(err, store.ErrNotFound) {
			return nil // its conversation was erased; the record stays
		}
		if err == nil {
			out = append(out, x)
		}
		return err
	})
	if err != nil {
		return nil, couldNot("the history can't be read: %w", err)
	}
	slices.SortStableFunc(out, func(a, b config.Fixture) int { return a.At.Compare(b.At) })
	return out, nil
}

func storedFixture(ctx context.Context, s store.Store, proposed approvers.AuditRecord) (config.Fixture, error) {
	var x config.Fixture
	err := s.View(ctx, func(r store.Reader) error {
		call, err := r.Call(proposed.Facts["call"])
		if err != nil {
			return err
		}
		turn, err := r.Turn(call.Turn)
		if err != nil {
			return err
		}
		conv, err := r.Conversation(call.Conversation)
		if err != nil {
			return err
		}
		x = config.Fixture{
			Name: proposed.At.UTC().Format(time.DateTime) + " " + call.Tool + " " + short(call.Args, 80),
			Tool: call.Tool, Args: []byte(call.Args), Agent: turn.Agent, Channel: conv.Channel, DM: conv.DM, At: proposed.At,
		}
		if n := len(turn.Requesters); n > 0 {
			x.Requester = turn.Requesters[n-1].User()
		}
		return nil
	})
	x.Expect = planned(proposed.Facts)
	return x, err
}

// planned is what a proposed record says was planned.
func planned(facts map[string]string) config.Expectation {
	e := config.Expectation{Verdict: facts["verdict"], Who: []string{}}
	if risk, err := approvers.ParseRisk(facts["risk"]); err == nil {
		e.Risk = risk
	}
	for _, stage := range strings.Split(facts["stages"], ",") {
		if stage != "" {
			e.Who = append(e.Who, stage)
		}
	}
	return e
}

// short cuts a text for one line.
func short(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
