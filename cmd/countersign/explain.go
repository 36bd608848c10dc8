package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"countersign/agent"
	"countersign/approvers"
	"countersign/config"
	"countersign/internal/shop"
)

// explainOptions are the flags of countersign explain.
type explainOptions struct {
	policy    string
	tool      string
	args      string
	requester string
	agent     string
	channel   string
	dm        bool
	at        string
	observed  bool
	since     time.Duration
}

func explainCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Who would have to approve a call, and why",
		Long: `Plans one call as the bot would, and prints step by step how it came to that: the tool's policy, the rules with what each says
of these arguments, the approvers that were looked at, the stages, and what happens when nobody decides.

With --observed it sums up what the observe mode saw instead: which calls would have run, and who would have been asked.

Exit codes: 0 it would run, or be asked about · 1 it would be refused, or its arguments are not valid · 2 wrong usage or policy.`,
		Example: `  countersign explain --tool issue_refund --args '{"order_id":"ORD-123","amount":600}' --requester U0100`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.observed {
				return explainObserved(cmd.Context(), cmd.OutOrStdout(), o.since)
			}
			return explain(cmd.OutOrStdout(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.policy, "policy", "", "the policy file; COUNTERSIGN_POLICY without it")
	f.StringVar(&o.tool, "tool", "", "the tool that is called")
	f.StringVar(&o.args, "args", "{}", "its arguments, as JSON")
	f.StringVar(&o.requester, "requester", "", "the user id of who asks, such as U0100; nobody in particular without it")
	f.StringVar(&o.agent, "agent", "", "the agent; the policy's first without it")
	f.StringVar(&o.channel, "channel", "", "the channel's id, as conversation.channel has it")
	f.BoolVar(&o.dm, "dm", false, "it is asked for in a direct message")
	f.StringVar(&o.at, "at", "", "when, such as 2026-12-24T18:00:00+01:00; now without it")
	f.BoolVar(&o.observed, "observed", false, "sum up what the observe mode saw, from the store (COUNTERSIGN_STORE)")
	f.DurationVar(&o.since, "since", 0, "with --observed: only what was seen in this time until now, such as 168h")
	return cmd
}

func explain(out io.Writer, o explainOptions) error {
	if o.tool == "" {
		return misused("say which call: --tool NAME, and its arguments with --args '{…}'")
	}
	tools, err := registry(shop.New(time.Now))
	if err != nil {
		return err
	}
	policy, err := policyFor(o.policy, tools)
	if err != nil {
		return err
	}
	at := time.Now()
	if o.at != "" {
		if at, err = time.Parse(time.RFC3339, o.at); err != nil {
			return misused("--at %s is no time; write it as 2026-12-24T18:00:00Z, or with its zone: 2026-12-24T18:00:00+01:00", o.at)
		}
	}
	x := config.Fixture{
		Tool: o.tool, Args: json.RawMessage(o.args), Requester: o.requester, Agent: o.agent, Channel: o.channel, DM: o.dm, At: at,
	}
	call, err := callOf(policy, tools, x, at)
	if err != nil {
		return err
	}
	plan, steps := policy.Explain(call)
	for i, s := range steps {
		fmt.Fprintf(out, "%2d. %s\n", i+1, s)
	}
	fmt.Fprintln(out)
	printPlan(out, policy, call, plan)
	if plan.Verdict == approvers.Refuse {
		return answerNo("nobody can approve this call")
	}
	return nil
}

// policyFor reads the policy that a command is to look at, and refuses one with errors.
func policyFor(path string, tools *agent.Registry) (*approvers.Policy, error) {
	if path == "" {
		env, err := config.ReadEnv(config.Offline)
		if err != nil {
			return nil, misused("the environment can't be used:\n%w", err)
		}
		path = env.Policy
	}
	file, err := config.ReadPolicy(path)
	if err != nil {
		return nil, misused("the policy can't be used:\n%w", err)
	}
	if errs := file.Check(described(tools)).Errors(); len(errs) > 0 {
		return nil, misused("the policy can't be used:\n%w", errs)
	}
	return file.Policy, nil
}

// callOf makes the call that a fixture describes. Arguments that the bot would not take are an error, as the model would read it.
func callOf(p *approvers.Policy, tools *agent.Registry, x config.Fixture, now time.Time) (approvers.Call, error) {
	if x.Agent == "" && len(p.Agents) > 0 {
		x.Agent = p.Agents[0].Name
	}
	if a, ok := p.Agent(x.Agent); x.Agent != "" && !ok {
		return approvers.Call{}, misused("the policy has no agent %q", x.Agent)
	} else if ok && !a.Offers(x.Tool) {
		return approvers.Call{}, answerNo("the agent %s is not offered %s, so a call of it is refused", a.Name, x.Tool)
	}
	t, _ := p.Tool(x.Tool, x.Agent)
	args, err := approvers.StrictArgs(x.Args, t.ReadsNumbers())
	tool, known := tools.Tool(x.Tool)
	if err == nil && known {
		err = tool.Check(x.Args)
	}
	if err != nil {
		return approvers.Call{}, answerNo("the call never reaches an approver: %w", err)
	}
	if x.At.IsZero() {
		x.At = now
	}
	c := approvers.Call{
		Tool: x.Tool, Effect: tool.Effect,
		Facts: approvers.Facts{
			Args: args, Requester: x.Requester, Agent: x.Agent, Now: x.At,
			Conversation: approvers.ConversationFacts{ID: "explain", Channel: x.Channel, DM: x.DM},
		},
	}
	if x.Requester != "" {
		who := approvers.Who("", x.Requester)
		c.Requesters, c.Authors = []approvers.PersonID{who}, []approvers.PersonID{who}
	}
	return c, nil
}

// printPlan says what would happen to the call, and when.
func printPlan(out io.Writer, p *approvers.Policy, c approvers.Call, plan approvers.Plan) {
	fmt.Fprintf(out, "%s: %s, %s risk\n", c.Tool, verdictWords[plan.Verdict], plan.Risk)
	if len(plan.Stages) == 0 {
		return
	}
	in := approvers.Deciding{Policy: p, Now: c.Facts.Now}
	r := approvers.Open(in, approvers.Request{Tool: c.Tool, Agent: c.Facts.Agent, Plan: waiting(plan), Facts: approvers.AskFacts{Requesters: c.Requesters}})
	for i, s := range plan.Stages {
		fmt.Fprintf(out, "  stage %d of %d  %s\n", i+1, len(plan.Stages), stageWords(p, s))
	}
	fmt.Fprintf(out, "  first stage   until %s", r.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC"))
	for up := r; ; {
		if up.EscalateAt.IsZero() {
			break
		}
		next, told, due := up.Escalate(approvers.Deciding{Policy: p, Now: up.EscalateAt})
		if !due || told.Again || !up.EscalateAt.Before(r.ExpiresAt) {
			break
		}
		fmt.Fprintf(out, "; %s joins at %s", told.Lead.Name, up.EscalateAt.UTC().Format("15:04"))
		up = next
	}
	fmt.Fprintln(out)
	t, _ := p.Tool(c.Tool, c.Facts.Agent)
	silence := "it is rejected"
	if t.OnExpiry == approvers.ExpiryEscalates {
		silence = "it goes to the next lead; when there is none, it is rejected"
	}
	fmt.Fprintf(out, "  silence       %s\n", silence)
	if len(c.Requesters) > 0 && !plan.SelfOK {
		fmt.Fprintf(out, "  barred        %s, who asked\n", c.Requesters[0].User())
	}
}

// waiting is a plan as if the policy did not only observe.
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

// stageWords names a stage with its people.
func stageWords(p *approvers.Policy, s approvers.Stage) string {
	words := s.String()
	var members []string
	for _, name := range s.Roles() {
		role, _ := p.Role(name)
		for _, m := range role.Members {
			who := m.Value
			if m.Kind == approvers.MemberGroup {
				who = "@" + who
			}
			members = append(members, who)
		}
	}
	if s.Group != "" {
		return words + " (its people who hold the role)"
	}
	return words + " (" + strings.Join(members, ", ") + ")"
}

// asProblems are the problems that an error holds, if it holds some.
func asProblems(err error) (config.Problems, bool) {
	var p config.Problems
	return p, errors.As(err, &p)
}
