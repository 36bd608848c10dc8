package policycmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
)

type explainOptions struct {
	policy    string
	tool      string
	args      string
	requester []string
	author    []string
	client    string
	mode      string
	actsFor   string
	proven    bool
	agent     string
	channel   string
	dm        bool
	at        string
	observed  bool
	since     time.Duration
}

// ObservedCalls writes a summary of the calls that the policy only observed. The summary covers a period that ends now.
// The parameter since is the length of this period.
type ObservedCalls func(ctx context.Context, since time.Duration, out io.Writer) error

// Explain returns the command "countersign explain".
func Explain(history ObservedCalls) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Who would have to approve a call, and why",
		Long: `Plans one call as the bot would, and explains the plan step by step: the tool's policy, what each rule says of these
arguments, the approvers that were considered, the stages, and what happens when nobody decides.

With --observed it instead sums up what the observe mode saw: which calls would have run, and who would have been asked.

Exit codes: 0 it would run, or be asked about · 1 it would be refused, or its arguments are not valid · 2 wrong usage or policy.`,
		Example: `  countersign explain --tool issue_refund --args '{"order_id":"ORD-123","amount":600}' --requester U0100`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.observed && o.tool != "":
				return cli.Misused("--observed sums up all calls that were seen, and --tool explains one: leave one of them out")
			case o.observed:
				return history(cmd.Context(), o.since, cmd.OutOrStdout())
			case o.since != 0:
				return cli.Misused("--since goes with --observed; --at sets the time of a call")
			}
			return explain(cmd.OutOrStdout(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.policy, "policy", "", "the policy file; default: COUNTERSIGN_POLICY")
	cli.PathFlags(f, "policy")
	f.StringVar(&o.tool, "tool", "", "the tool that is called")
	f.StringVar(&o.args, "args", "{}", "its arguments, as JSON")
	f.StringSliceVar(&o.requester, "requester", nil, "the user ids of the people who ask, such as U0100; default: nobody in particular")
	f.StringSliceVar(&o.author, "author", nil, "user ids of others who wrote in the conversation: from high risk on they can't approve either")
	f.StringVar(&o.client, "client", "", "another agent that asks, by its name in the policy's clients")
	f.StringVar(&o.mode, "mode", string(approvers.DecideMode), "with --client: decide (the client runs the tool) or execute")
	f.StringVar(&o.actsFor, "on-behalf-of", "", "with --client: the user id of the person for whom the client says that it acts")
	f.BoolVar(&o.proven, "proven", false, "with --on-behalf-of: an access token proves that the client acts for this person")
	f.StringVar(&o.agent, "agent", "", "the agent; default: the policy's first agent")
	f.StringVar(&o.channel, "channel", "", "the channel's id, as conversation.channel has it")
	f.BoolVar(&o.dm, "dm", false, "it is asked for in a direct message")
	f.StringVar(&o.at, "at", "", "the time of the call, such as 2026-12-24T18:00:00+01:00; default: now")
	f.BoolVar(&o.observed, "observed", false, "sum up what the observe mode saw, from the store (COUNTERSIGN_STORE)")
	cli.SpanFlag(f, &o.since, "since", "with --observed: only the calls of the last hours or days, such as 24h or 30d")
	return cmd
}

func explain(out io.Writer, o explainOptions) error {
	if o.tool == "" {
		return cli.Misused("say which call: --tool NAME, and its arguments with --args '{…}'")
	}
	file, tools, err := policyfile.ReadGiven(o.policy)
	if err != nil {
		return err
	}
	policy := file.Policy
	at := time.Now()
	if o.at != "" {
		if at, err = time.Parse(time.RFC3339, o.at); err != nil {
			return cli.Misused("--at %s is not a time; write it as 2026-12-24T18:00:00Z, or with its zone: 2026-12-24T18:00:00+01:00", o.at)
		}
	}
	if o.channel != "" && !config.IsChannelID(o.channel) {
		return cli.Misused("%q is not a channel id; write one such as C0123ABCD: Slack shows it in the channel's details", o.channel)
	}
	for _, id := range append(slices.Clone(o.requester), o.author...) {
		if !config.IsUserID(id) {
			return cli.Misused("%q is not a user id; write one such as U0123ABCD: Slack shows it in a person's profile", id)
		}
	}
	if err := o.checkClient(); err != nil {
		return err
	}
	x := config.Fixture{
		Tool: o.tool, Args: json.RawMessage(o.args), Requesters: o.requester, Authors: o.author, Agent: o.agent, Channel: o.channel, DM: o.dm, At: at,
		Client: o.client, Mode: approvers.CallerMode(o.mode), For: o.actsFor, Proven: o.proven,
	}
	if u := unknownTool(file, tools, x); u != nil {
		fmt.Fprintf(out, "Note: %s\n\n", u.Error())
	}
	if note := unpinned(file, tools, x); note != "" {
		fmt.Fprintf(out, "Note: %s\n\n", note)
	}
	call, err := callOf(policy, tools, x, at)
	if err != nil {
		return err
	}
	plan, steps := policy.Explain(call)
	for i, s := range steps {
		fmt.Fprintf(out, "%2d. %s\n", i+1, onOneLine(s))
	}
	fmt.Fprintln(out)
	known, _ := tools.Tool(call.Tool)
	printPlan(out, policy, known.Schema, call, plan)
	if plan.Verdict == approvers.Refuse {
		return cli.AnswerNo("nobody can approve this call")
	}
	return nil
}

// checkClient checks the flags that describe a client's call.
func (o explainOptions) checkClient() error {
	switch {
	case o.proven && o.actsFor == "":
		return cli.Misused("--proven goes with --on-behalf-of")
	case o.client == "" && (o.actsFor != "" || o.mode != string(approvers.DecideMode)):
		return cli.Misused("--mode and --on-behalf-of go with --client")
	case o.client == "":
		return nil
	case len(o.requester)+len(o.author) > 0 || o.agent != "" || o.channel != "" || o.dm:
		return cli.Misused("--client goes without --requester, --author, --agent, --channel and --dm: the client is the requester, and its agent is in the policy")
	case o.mode != string(approvers.DecideMode) && o.mode != string(approvers.ExecuteMode):
		return cli.Misused("--mode %s: write decide or execute", o.mode)
	case o.actsFor != "" && !config.IsUserID(o.actsFor):
		return cli.Misused("%q is not a user id; write one such as U0123ABCD: Slack shows it in a person's profile", o.actsFor)
	}
	return nil
}

// unknownTool reports a fixture's tool that neither the policy nor a tool source has. For any other tool, unknownTool
// returns nil. A client may also ask for its own tools, which the policy need not name. So the tool of a client's call
// is never reported.
func unknownTool(file *config.File, tools *agent.Registry, x config.Fixture) *check.Unknown {
	if x.Client != "" {
		return nil
	}
	return check.UnknownTool(file, catalog.Described(tools), x.Tool)
}

// unpinned returns a note if a fixture's tool is not as pinned, and the plan does not say so. For any other tool,
// unpinned returns "". The tool of a client's call may be the client's own, which needs no pin.
func unpinned(file *config.File, tools *agent.Registry, x config.Fixture) string {
	t, known := tools.Tool(x.Tool)
	why := t.Blocked
	if !known && slices.ContainsFunc(file.Servers, func(s config.Server) bool { return !s.Bare && strings.HasPrefix(x.Tool, s.Name+".") }) {
		why = "the lock file has no pin for it"
	}
	countsAsUnknown := file.Policy.Defaults.UnpinnedTools == approvers.UnpinnedUnknown
	switch _, named := file.Policy.Tool(x.Tool, ""); {
	case why == "", x.Client != "", known && countsAsUnknown, !known && !named:
		return ""
	case countsAsUnknown:
		return fmt.Sprintf("%s: %s, so the bot treats its calls as calls of an unknown tool, other than this plan. Pin it: countersign tools pin", x.Tool, why)
	}
	return fmt.Sprintf("%s: %s, so the bot refuses its calls. Pin it: countersign tools pin", x.Tool, why)
}

// callOf builds the call of a fixture. For a call that the bot would refuse before it makes a plan, callOf returns an
// error with the reason.
func callOf(p *approvers.Policy, tools *agent.Registry, x config.Fixture, now time.Time) (approvers.Call, error) {
	if x.Client != "" {
		return callOfClient(p, tools, x, now)
	}
	if x.Agent == "" && len(p.Agents) > 0 {
		x.Agent = p.Agents[0].Name
	}
	if a, ok := p.Agent(x.Agent); x.Agent != "" && !ok {
		return approvers.Call{}, cli.Misused("the policy has no agent %q", x.Agent)
	} else if ok && !a.Offers(x.Tool) {
		return approvers.Call{}, cli.AnswerNo("the agent %s is not offered %s, so the call is refused", a.Name, x.Tool)
	}
	c, err := plainCall(p, tools, x, now)
	if err != nil {
		return c, err
	}
	c.Facts.Conversation = approvers.ConversationFacts{ID: "explain", Channel: x.Channel, DM: x.DM}
	c.Requesters, c.Authors = persons(x.Requesters), persons(slices.Concat(x.Requesters, x.Authors))
	if n := len(x.Requesters); n > 0 {
		c.Facts.Requester = x.Requesters[n-1]
	}
	return c, nil
}

// plainCall builds a call without its requesters.
func plainCall(p *approvers.Policy, tools *agent.Registry, x config.Fixture, now time.Time) (approvers.Call, error) {
	t, _ := p.Tool(x.Tool, x.Agent)
	args, err := approvers.StrictArgs(x.Args, t.ReadsNumbers())
	tool, known := tools.Tool(x.Tool)
	if err == nil && known {
		err = tool.Check(x.Args)
	}
	if err != nil {
		return approvers.Call{}, cli.AnswerNo("the call never reaches an approver: %w", err)
	}
	if x.At.IsZero() {
		x.At = now
	}
	return approvers.Call{Tool: x.Tool, Effect: tool.Effect, Facts: approvers.Facts{Args: args, Agent: x.Agent, Now: x.At}}, nil
}

// callOfClient builds a client's call from a fixture, as the gateway does.
func callOfClient(p *approvers.Policy, tools *agent.Registry, x config.Fixture, now time.Time) (approvers.Call, error) {
	client, ok := p.Client(x.Client)
	if !ok {
		return approvers.Call{}, cli.Misused("the policy has no client %q", x.Client)
	}
	tool, known := tools.Tool(x.Tool)
	switch {
	case !client.MayUse(p, x.Tool) || known && tool.Asks:
		return approvers.Call{}, cli.AnswerNo("the policy does not let the client %s ask for %s, so the call is refused", client.Name, x.Tool)
	case x.Proven && (client.OAuth == nil || client.OAuth.Person == ""):
		return approvers.Call{}, cli.AnswerNo("the client %s has no oauth with person in the policy, so a token that names a person is refused", client.Name)
	case !known && x.Mode == approvers.ExecuteMode:
		return approvers.Call{}, cli.AnswerNo("there is no tool %s that Countersign could run, so the call is refused", x.Tool)
	}
	x.Agent = client.Agent
	c, err := plainCall(p, tools, x, now)
	if err != nil {
		return c, err
	}
	caller := approvers.Caller{Name: client.Name, Title: client.Title, Owner: approvers.Who("", client.Owner), Mode: cmp.Or(x.Mode, approvers.DecideMode)}
	if x.For != "" {
		caller.For, caller.Proven = approvers.Who("", x.For), x.Proven
	}
	c.Requesters = caller.Requesters()
	c.Facts.Caller, c.Facts.Requester = &caller, caller.Identity().ID.User()
	c.Facts.Conversation.ID = caller.Scope()
	return c, nil
}

// The function "persons" converts user ids to person ids. The person ids have no workspace.
func persons(users []string) []approvers.PersonID {
	out := make([]approvers.PersonID, len(users))
	for i, u := range users {
		out[i] = approvers.Who("", u)
	}
	return out
}

// asProblems returns the problems in an error, if the error contains problems.
func asProblems(err error) (yamldoc.Problems, bool) {
	var p yamldoc.Problems
	return p, errors.As(err, &p)
}

// printPlan prints the plan of a call with its times. schema is the schema of the tool's arguments.
func printPlan(out io.Writer, p *approvers.Policy, schema json.RawMessage, c approvers.Call, plan approvers.Plan) {
	words := verdictWords[plan.Verdict]
	if plan.Verdict == approvers.Auto && c.Facts.Caller.Decides() {
		words = "needs nobody"
	}
	fmt.Fprintf(out, "%s: %s, %s risk\n", c.Tool, words, plan.Risk)
	if caller := c.Facts.Caller; caller != nil {
		runs := "Countersign runs the tool"
		if caller.Decides() {
			runs = "it runs the tool itself, after it has claimed the call"
		}
		fmt.Fprintf(out, "  client        %s (%s): %s\n", caller.Title, caller.Name, runs)
	}
	if len(plan.Stages) == 0 {
		return
	}
	in := approvers.DecisionContext{Policy: p, Now: c.Facts.Now}
	r, _ := approvers.Open(in, approvers.Request{Tool: c.Tool, Agent: c.Facts.Agent, Plan: waiting(plan), Facts: approvers.AskFacts{Requesters: c.Requesters, Caller: c.Facts.Caller}})
	for i, s := range plan.Stages {
		fmt.Fprintf(out, "  stage %d of %d  %s\n", i+1, len(plan.Stages), cli.StageWords(p, s))
	}
	fmt.Fprintf(out, "  first stage   until %s", r.ExpiresAt.UTC().Format("2006-01-02 15:04")+" UTC")
	for up := r; ; {
		if up.EscalateAt.IsZero() {
			break
		}
		next, events, due := up.Escalate(approvers.DecisionContext{Policy: p, Now: up.EscalateAt})
		told, _ := approvers.FindEvent[approvers.Escalated](events)
		if !due || told.Again || !up.EscalateAt.Before(r.ExpiresAt) {
			break
		}
		fmt.Fprintf(out, "; %s joins at %s", told.Lead.Name, clockText(up.EscalateAt, c.Facts.Now))
		up = next
	}
	fmt.Fprintln(out)
	t, _ := p.Tool(c.Tool, c.Facts.Agent)
	silence := "it is rejected"
	if t.OnExpiry == approvers.ExpiryEscalates {
		silence = "it goes to the next lead; when there is none, it is rejected"
	}
	fmt.Fprintf(out, "  silence       %s\n", silence)
	if masked := maskedWords(t, schema); masked != "" {
		fmt.Fprintf(out, "  masked        %s\n", masked)
	}
	if barred := barredWords(c, plan); barred != "" {
		fmt.Fprintf(out, "  barred        %s\n", barred)
	}
}

// maskedWords describes which arguments the policy or the tool's schema masks, and who must still see their values.
func maskedWords(t approvers.ToolPolicy, schema json.RawMessage) string {
	masked := strings.Join(approvers.Secrets(t.Secrets, approvers.SecretPaths(schema)), ", ")
	switch {
	case masked == "":
		return ""
	case t.Blind:
		return masked + "; approved blind"
	}
	return masked + "; revealed to each approver before they approve"
}

// clockText formats a time in UTC. If the time is not on the given day, the text includes the date.
func clockText(t, day time.Time) string {
	t, day = t.UTC().Truncate(time.Second), day.UTC()
	form := "15:04"
	if t.Second() != 0 {
		form = time.TimeOnly
	}
	if t.YearDay() != day.YearDay() || t.Year() != day.Year() {
		form = time.DateOnly + " " + form
	}
	return t.Format(form)
}

// barredWords lists the people who can't approve the call because they asked for it, with the reasons.
func barredWords(c approvers.Call, plan approvers.Plan) string {
	if plan.SelfOK {
		return ""
	}
	var parts []string
	for _, p := range plan.Requesters {
		why := "who asked"
		caller := c.Facts.Caller
		switch {
		case p.Caller() != "":
			continue // a client can't decide anything
		case caller != nil && p == caller.Owner:
			why = "who owns the client"
		case caller != nil && caller.Proven:
			why = "for whom the client acts, as its token proves"
		case caller != nil:
			why = "for whom the client says that it acts"
		case !slices.Contains(c.Requesters, p):
			why = "whose words the model was given"
		}
		parts = append(parts, p.User()+", "+why)
	}
	return strings.Join(parts, "; ")
}

// The function "waiting" returns the plan that would apply if the mode were not observe.
func waiting(plan approvers.Plan) approvers.Plan {
	if plan.Verdict == approvers.Observed {
		plan.Verdict = plan.Would
	}
	return plan
}

var verdictWords = map[approvers.Verdict]string{
	approvers.Auto: "runs without asking", approvers.Ask: "waits for people", approvers.Refuse: "is refused",
	approvers.Observed: "is not run, because the policy only observes",
}
