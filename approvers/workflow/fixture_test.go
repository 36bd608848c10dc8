package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

// The people of the tests.
var (
	support = person("U0001")
	lead    = person("U0002")
	fin1    = person("U0003")
	fin2    = person("U0004")
	alice   = person("U0100") // the requester
	bob     = person("U0200") // also writes messages
)

func person(user string) approvers.Identity {
	return approvers.Identity{ID: approvers.Who("T0001", user), Name: user}
}

// persons returns the people with the given user ids.
func persons(users ...string) (out []approvers.Identity) {
	for _, user := range users {
		out = append(out, person(user))
	}
	return out
}

func users(ids ...string) []approvers.Member {
	var out []approvers.Member
	for _, id := range ids {
		out = append(out, approvers.Member{Kind: approvers.MemberUser, Value: id})
	}
	return out
}

// These constants are the times in the policy of the tests.
const (
	expiresAfter  = 30 * time.Minute
	escalateAfter = 10 * time.Minute
	runWithin     = 15 * time.Minute
)

// policy returns a policy that is similar to the first policy of docs/policy.md. The given functions then change the
// policy.
func policy(hash string, change ...func(*approvers.Policy)) *approvers.Policy {
	above := func(f approvers.Facts) (bool, error) {
		amount, ok := f.Args["amount"].(float64)
		return ok && amount > 500, nil
	}
	p := &approvers.Policy{
		Hash: hash,
		Defaults: approvers.Defaults{
			ExpiresAfter: expiresAfter, EscalateAfter: escalateAfter, RunWithin: runWithin,
			UnknownTool: approvers.ToolPolicy{Risk: approvers.Critical, Confirm: true},
		},
		Tools: []approvers.ToolPolicy{
			{Name: "search_orders", Risk: approvers.Low},
			{Name: "update_address", Risk: approvers.Medium, MaxAuto: approvers.Limit{Count: 2, Per: time.Hour}},
			{Name: "apply_discount", Risk: approvers.Medium, Confirm: true},
			{Name: "issue_refund", Risk: approvers.High, Confirm: true,
				Preview: approvers.Preview{Text: "Refund", Render: func(args map[string]any) (string, error) {
					if _, ok := args["amount"]; !ok {
						return "", errors.New("the preview needs an amount")
					}
					return fmt.Sprintf("Refund of %v", args["amount"]), nil
				}},
				Rules: []approvers.Rule{{
					When: approvers.Condition{Text: "args.amount > 500", Eval: above}, Risk: approvers.Critical,
					Stages: []approvers.Stage{{Approver: "team-lead", Quorum: 1}, {Approver: "finance-director", Quorum: 2}},
				}}},
			{Name: "cancel_account", Risk: approvers.Critical, Confirm: true},
		},
		Approvers: []approvers.Role{
			{Name: "support-agent", Title: "Support Agent", Members: users("U0001"), MaxRisk: approvers.Medium,
				CanApprove: []string{"update_address", "apply_discount"}, Cards: "#support-approvals", Lead: "team-lead"},
			{Name: "team-lead", Title: "Team Lead", Members: users("U0002"), MaxRisk: approvers.High,
				CanApprove: []string{"update_address", "apply_discount", "issue_refund"}, Cards: "dm", Lead: "finance-director"},
			{Name: "finance-director", Title: "Finance Director", Members: users("U0003", "U0004"), MaxRisk: approvers.Critical,
				CanApprove: []string{"*"}},
		},
		Agents: []approvers.Agent{{Name: "support", Channels: []string{"#support"}, Tools: []string{"*"}, MaxSteps: 10}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// toolbox is a fake of workflow.Tools. It has only definitions of tools.
type toolbox struct {
	mu    sync.Mutex
	tools map[string]workflow.Tool
	drift map[string]workflow.DriftKind // by tool
}

func newToolbox() *toolbox {
	b := &toolbox{tools: map[string]workflow.Tool{}}
	for name, effect := range map[string]approvers.Effect{
		"search_orders": approvers.ReadOnly, "update_address": approvers.Idempotent, "apply_discount": approvers.Unprotected,
		"issue_refund": approvers.Unprotected, "cancel_account": approvers.Unprotected, "format_disk": approvers.Unprotected,
	} {
		b.tools[name] = workflow.Tool{Name: name, Hash: "hash of " + name, Effect: effect, Timeout: 30 * time.Second, Check: checkArgs}
	}
	return b
}

func checkArgs(args json.RawMessage) error {
	if strings.Contains(string(args), `"nonsense"`) {
		return errors.New(`unknown name "nonsense"; known are: amount, order_id`)
	}
	return nil
}

func (b *toolbox) Tool(name string) (workflow.Tool, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.tools[name]
	return t, ok
}

// Fingerprint returns a text of the names, the hashes and the blocks of all tools.
func (b *toolbox) Fingerprint() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for name, t := range b.tools {
		lines = append(lines, name+" "+t.Hash+" "+t.Blocked)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Drift lists the tools that differ from their pins.
func (b *toolbox) Drift() (all []workflow.Drift) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.drift)) {
		all = append(all, workflow.Drift{Tool: name, Source: "shop", How: b.drift[name]})
	}
	return all
}

// drifts makes a tool differ from its pin. With an empty kind, the tool is as pinned again.
func (b *toolbox) drifts(name string, how workflow.DriftKind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drift == nil {
		b.drift = map[string]workflow.DriftKind{}
	}
	b.drift[name] = how
	if how == "" {
		delete(b.drift, name)
	}
}

// b.asks adds a tool with which the model asks people a question.
func (b *toolbox) asks(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tools[name] = workflow.Tool{Name: name, Hash: "hash of " + name, Effect: approvers.ReadOnly, Asks: true, Check: checkArgs}
}

func (b *toolbox) effect(name string, effect approvers.Effect) {
	b.change(name, func(t *workflow.Tool) { t.Effect = effect })
}

func (b *toolbox) change(name string, change func(*workflow.Tool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tools[name]
	change(&t)
	b.tools[name] = t
}

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
