package policycmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
	"countersign/store"
)

// stored is the value of --replay that uses the calls of the store's history as fixtures.
const stored = "stored"

// replay plans calls under a policy, and optionally under a second one. replay prints the differences.
func replay(ctx context.Context, out io.Writer, path, fixtures, against string, history StoredCalls) error {
	r := replayed{out: out, now: time.Now(), fixtures: fixtures, heldTo: asExpected}
	if fixtures == stored {
		r.heldTo = asThen
	}
	if err := r.read(path, against); err != nil {
		return err
	}
	calls, left, err := fixturesFrom(ctx, fixtures, history)
	if err != nil {
		return err
	}
	if err := r.agents(calls); err != nil {
		return err
	}
	if err := r.unknownTools(calls); err != nil {
		return err
	}
	r.unpinned(calls)
	for _, x := range calls {
		r.try(x)
	}
	return errors.Join(r.sum(), left)
}

// read reads the policy, and the policy with which it is compared, if any.
func (r *replayed) read(path, against string) (err error) {
	if against == "" {
		if r.file, r.tools, err = policyfile.ReadGiven(path); err == nil {
			r.policy = r.file.Policy
		}
		return err
	}
	r.heldTo = heldTo{"as under " + against, "planned otherwise than under " + against}
	a, b, shared, err := policyfile.ReadBoth(path, against)
	if err != nil {
		return err
	}
	if shared != "" {
		fmt.Fprintf(r.out, "Only one of the policies has a lock file, so both are read with the pins in %s.\n\n", shared)
	}
	r.file, r.tools, r.policy = a.File, a.Tools, a.File.Policy
	r.otherFile, r.otherTools, r.other = b.File, b.Tools, b.File.Policy
	return nil
}

// fixturesFrom reads the calls. If damaged records of the history were skipped, the result "left" is an error that
// names these records.
func fixturesFrom(ctx context.Context, name string, history StoredCalls) (calls []config.Fixture, left, err error) {
	if name != stored {
		calls, err = config.ReadFixtures(name)
		if p, ok := asProblems(err); ok {
			err = cli.Misused("the fixtures can't be used:\n%s", p.Excerpts())
		}
		return calls, nil, err
	}
	var found bytes.Buffer
	err = history(ctx, &found)
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

// heldTo has the formats for the counts of a comparison: "3 as expected", "1 not as expected".
type heldTo struct{ same, not string }

var (
	asExpected = heldTo{"as expected", "not as expected"}
	asThen     = heldTo{"as planned then", "not as planned then"}
)

// replayed is the state of a replay.
type replayed struct {
	out        io.Writer
	file       *config.File
	tools      *agent.Registry
	policy     *approvers.Policy
	otherFile  *config.File // nil: there is no second policy
	other      *approvers.Policy
	otherTools *agent.Registry
	now        time.Time
	fixtures   string
	heldTo     heldTo
	calls      int
	differs    int
	free       int // number of calls without an expectation
	alike      []*alike
}

// alike is a group of stored calls to one tool with the same differences and reasons. A history can have thousands of
// such calls.
type alike struct {
	tool        string
	differences []string
	why         []string
	n           int
	examples    []string
}

// The method "agents" rejects fixtures with an unknown agent or client. Without this check, a call with a misspelt name
// would only appear as refused.
func (r *replayed) agents(calls []config.Fixture) error {
	for _, x := range calls {
		has := func(p *approvers.Policy) bool {
			if p == nil {
				return false
			}
			_, ok := p.Agent(x.Agent)
			return ok
		}
		if x.Line > 0 && x.Client != "" && !hasClient(r.policy, x.Client) && !hasClient(r.other, x.Client) {
			return cli.Misused("%s:%d: the policy has no client %q", r.fixtures, x.Line, x.Client)
		}
		if x.Line > 0 && x.Agent != "" && !has(r.policy) && !has(r.other) {
			return cli.Misused("%s:%d: the policy has no agent %q; it has %s", r.fixtures, x.Line, x.Agent, r.agentNames())
		}
	}
	return nil
}

// unknownTools handles the fixtures of a file whose tool neither the policy nor a tool source has. A fixture with a
// misspelt name would test the rules for unknown tools by mistake. So if a tool has a similar name, unknownTools
// returns an error. For other names, it prints a warning. If a fixture expects the reason that only unknown tools have,
// the author of the fixture means an unknown tool, and unknownTools prints nothing.
func (r *replayed) unknownTools(calls []config.Fixture) error {
	warned := false
	for _, x := range calls {
		u := r.unknownTool(x)
		if x.Line == 0 || u == nil || expectsUnknown(x) {
			continue
		}
		if u.Severity != yamldoc.Warning {
			if u.Similar && !mayGetTools(r.file) && !mayGetTools(r.otherFile) {
				return cli.Misused("%s:%d: %w; if this fixture is about an unknown tool, give it the expectation why: %q", r.fixtures, x.Line, u.Problem, unknownReason)
			}
			u.Severity = yamldoc.Warning
		}
		fmt.Fprintf(r.out, "%s:%d: %s\n", r.fixtures, x.Line, u.Error())
		warned = true
	}
	if warned {
		fmt.Fprintln(r.out)
	}
	return nil
}

// unpinned prints a note about each tool that is not pinned.
func (r *replayed) unpinned(calls []config.Fixture) {
	var notes []string
	for _, x := range calls {
		note := unpinned(r.file, r.tools, x)
		if note == "" && r.otherFile != nil {
			note = unpinned(r.otherFile, r.otherTools, x)
		}
		if note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
			fmt.Fprintf(r.out, "Note: %s\n", note)
		}
	}
	if len(notes) > 0 {
		fmt.Fprintln(r.out)
	}
}

// unknownTool returns nil if one of the policies has the tool. If one of the policies may have the tool, the severity
// is Warning.
func (r *replayed) unknownTool(x config.Fixture) *check.Unknown {
	u := unknownTool(r.file, r.tools, x)
	if u == nil || r.otherFile == nil {
		return u
	}
	other := unknownTool(r.otherFile, r.otherTools, x)
	if other != nil && other.Severity != yamldoc.Warning {
		return u
	}
	return other
}

// unknownReason is a part of the first reason in the plan of a call to an unknown tool. The plans of other tools have
// no such reason.
const unknownReason = "the policy does not know"

// expectsUnknown reports whether a fixture expects the reason that only unknown tools have.
func expectsUnknown(x config.Fixture) bool { return strings.Contains(x.Expect.Why, unknownReason) }

// mayGetTools reports whether agents may call new tools of the policy's sources before an operator pins the tools.
func mayGetTools(f *config.File) bool {
	return f != nil && f.Policy.Defaults.UnpinnedTools == approvers.UnpinnedUnknown && len(f.Servers)+len(f.OpenAPI) > 0
}

func hasClient(p *approvers.Policy, name string) bool {
	if p == nil {
		return false
	}
	_, ok := p.Client(name)
	return ok
}

// agentNames lists the agents of both policies.
func (r *replayed) agentNames() string {
	var names []string
	for _, p := range []*approvers.Policy{r.policy, r.other} {
		if p == nil {
			continue
		}
		for _, a := range p.Agents {
			if !slices.Contains(names, a.Name) {
				names = append(names, a.Name)
			}
		}
	}
	return strings.Join(names, ", ")
}

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
	case x.Line == 0: // for stored calls, only differences are printed
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

// mostExamples is the maximum number of example calls per group.
const mostExamples = 3

func (r *replayed) because(differences, why []string) {
	for _, d := range differences {
		fmt.Fprintln(r.out, "         "+d)
	}
	for _, w := range why {
		fmt.Fprintln(r.out, "         - "+w)
	}
}

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
		return onOneLine(x.Name)
	}
	return x.Tool + " " + short(string(x.Args), 100)
}

// StoredFixtures returns a fixture for each call in the history, with the call's recorded plan. Calls that were erased,
// or that failed before they were planned, have no fixture. StoredFixtures skips calls with damaged rows. If it skipped
// such calls, StoredFixtures returns the fixtures of all other calls and an *audit.Unread as the error.
func StoredFixtures(ctx context.Context, s store.Store) ([]config.Fixture, error) {
	firsts := map[string]approvers.AuditRecord{} // the first record of each call's proposal; a call over its automatic limit has two such records
	var left audit.Unread
	err := left.Take(audit.EachChain(ctx, s, func(records []approvers.AuditRecord) error {
		first := records[0]
		call := first.Facts["call"]
		if first.Kind != approvers.AuditProposed || first.Facts["verdict"] == "error" || call == "" {
			return nil
		}
		if other, again := firsts[call]; !again || first.At.Before(other.At) {
			firsts[call] = first
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	out := []config.Fixture{}
	for _, first := range firsts {
		x, err := storedFixture(ctx, s, first)
		if errors.Is(err, store.ErrNotFound) {
			continue // the call or its conversation was erased; the record stays
		}
		if errors.Is(err, store.ErrDamaged) {
			if err := left.Add(err); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b config.Fixture) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, left.Err()
}

func storedFixture(ctx context.Context, s store.Store, proposed approvers.AuditRecord) (config.Fixture, error) {
	var x config.Fixture
	err := s.View(ctx, func(r store.Reader) error {
		call, err := r.Call(proposed.Facts["call"])
		if err != nil {
			return err
		}
		if f := proposed.Facts; call.Args == "{}" && approvers.Digest(f["execution"], call.Tool, f["tool_hash"], []byte(call.Args)) != f["digest"] {
			return store.ErrNotFound // the call was erased, so its arguments are unknown
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
			Tool: call.Tool, Args: []byte(call.Args), Agent: turn.Agent, Channel: conv.Channel, DM: conv.DM, At: proposed.At,
			Expect: planned(proposed.Facts),
		}
		if conv.Caller != nil {
			caller := conv.Caller.Caller
			x.Client, x.Mode, x.For, x.Proven, x.Agent = caller.Name, caller.Mode, caller.For.User(), caller.Proven, ""
			return nil
		}
		x.Requesters, x.Authors, err = spoke(r, call, turn)
		return err
	})
	asker := "nobody"
	if x.Client != "" {
		asker = x.Client
	}
	if n := len(x.Requesters); n > 0 {
		asker = x.Requesters[n-1]
	}
	x.Name = proposed.At.UTC().Format(time.DateTime) + " for " + asker + ": " + short(string(x.Args), 80)
	return x, err
}

// The function "spoke" returns the requesters of a call, the most recent one last, and the authors of the model's
// input. If a call of 0.1.0 has no request, the store does not have the authors. In this case, everybody who wrote in
// the conversation before the turn counts as an author.
func spoke(r store.Reader, call store.Call, turn approvers.Turn) (requesters, authors []string, err error) {
	messages, err := r.Messages(call.Conversation, 0)
	if err != nil {
		return nil, nil, err
	}
	var asker string
	for _, m := range messages {
		switch {
		case m.Author == "":
		case m.Turn == turn.ID && (call.Asked == nil || m.TS == call.Asked.MessageTS):
			asker = m.Author.User()
		case m.At.Before(turn.CreatedAt):
			authors = append(authors, m.Author.User())
		}
	}
	people := turn.Requesters
	if call.Asked != nil {
		people = call.Asked.Requesters
	}
	for _, p := range people {
		if u := p.User(); u != asker {
			requesters = append(requesters, u)
		}
	}
	if asker != "" {
		requesters = append(requesters, asker)
	}
	switch {
	case call.Asked != nil:
		people = call.Asked.Authors
	case call.Request != "":
		req, err := r.Request(call.Request)
		if err != nil {
			return nil, nil, err
		}
		people = req.Facts.Authors
	default:
		return requesters, authors, nil
	}
	authors = nil
	for _, p := range people {
		authors = append(authors, p.User())
	}
	return requesters, authors, nil
}

// The function "planned" parses the plan in the facts of an audit record about a proposed call.
func planned(facts map[string]string) config.Expectation {
	e := config.Expectation{Verdict: facts["verdict"]}
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

// lineBreaks matches line breaks with the blanks around them.
var lineBreaks = regexp.MustCompile(`\s*[\r\n]\s*`)

// onOneLine writes a text of the policy or of a fixture on one line. It escapes tabs and other control characters.
func onOneLine(text string) string {
	return yamldoc.OnOneLine(lineBreaks.ReplaceAllString(strings.TrimSpace(text), " "))
}

func short(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// planSummary is the plan of a call in the notation of fixtures.
type planSummary struct {
	verdict string
	risk    approvers.Risk
	who     []string
	why     []string
}

func (o planSummary) String() string {
	words := o.verdict
	if o.risk != 0 {
		words += ", " + o.risk.String() + " risk"
	}
	if len(o.who) > 0 {
		words += ", " + strings.Join(o.who, ", then ")
	}
	if o.verdict == string(approvers.Refuse) && len(o.why) > 0 {
		words += ": " + o.why[len(o.why)-1]
	}
	return words
}

// planOf plans a fixture's call under a policy. A call that the bot would reject has the verdict refused.
func planOf(p *approvers.Policy, tools *agent.Registry, x config.Fixture, now time.Time) planSummary {
	call, err := callOf(p, tools, x, now)
	if err != nil {
		return planSummary{verdict: string(approvers.Refuse), why: []string{err.Error()}}
	}
	plan := p.Plan(call)
	o := planSummary{verdict: string(plan.Verdict), risk: plan.Risk, why: plan.Why}
	for _, s := range plan.Stages {
		o.who = append(o.who, s.String())
	}
	return o
}

// The function "unmet" lists the differences from a fixture's expectation.
func unmet(e config.Expectation, o planSummary) []string {
	var out []string
	if e.Verdict != "" && e.Verdict != o.verdict {
		out = append(out, fmt.Sprintf("verdict: %s, and %s was expected", o.verdict, e.Verdict))
	}
	if e.Risk != 0 && e.Risk != o.risk {
		out = append(out, fmt.Sprintf("risk: %s, and %s was expected", riskName(o.risk), e.Risk))
	}
	if e.Who != nil && !slices.Equal(e.Who, o.who) {
		out = append(out, fmt.Sprintf("who: %s, and %s was expected", people(o.who), people(e.Who)))
	}
	if e.Why != "" && !slices.ContainsFunc(o.why, func(w string) bool { return strings.Contains(w, e.Why) }) {
		out = append(out, fmt.Sprintf("why: no reason says %q", e.Why))
	}
	return out
}

// The function "changes" lists the differences between two plans.
func changes(before, now planSummary) []string {
	var out []string
	if before.verdict != now.verdict {
		out = append(out, fmt.Sprintf("verdict: %s → %s", before.verdict, now.verdict))
	}
	if before.risk != now.risk {
		out = append(out, fmt.Sprintf("risk: %s → %s", riskName(before.risk), riskName(now.risk)))
	}
	if !slices.Equal(before.who, now.who) {
		out = append(out, fmt.Sprintf("who: %s → %s", people(before.who), people(now.who)))
	}
	return out
}

// riskName returns the name of a risk, or "none" for a call without a risk.
func riskName(r approvers.Risk) string {
	if r == 0 {
		return "none"
	}
	return r.String()
}

func people(who []string) string {
	if len(who) == 0 {
		return "nobody"
	}
	return strings.Join(who, ", then ")
}
