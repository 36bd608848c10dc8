package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent/client"
	"countersign/approvers"
	"countersign/internal/demo/workspaceclient"
	"countersign/store"
)

const killCallerToken = "cs_the-token-of-the-campaign"

// callersPolicy adds a client, and a tool of a coding agent, to a policy of the campaign. If this client does not report
// the outcome of a run, the bot soon asks people about the outcome.
func callersPolicy(policy string) string {
	return strings.Replace(policy, "tools:\n", "tools:\n  "+toolHooked+": {risk: high, confirm: true}\n", 1) + fmt.Sprintf("clients:\n  ci: {title: CI bot, token: \"sha256:%s\", agent: support, owner: U0100, tools: [\"*\"], hold: 1s, outcome_within: 2s}\n", tokenHash(killCallerToken))
}

// Another agent can make a call in these four ways.
const (
	viaDecide  = "decide"  // over HTTP; the agent runs the tool
	viaExecute = "execute" // over HTTP
	viaMCP     = "mcp"     // over MCP, without an idempotency key
	viaHook    = "hook"    // the agent is Claude Code, which asks with a hook over HTTP, and runs the tool
)

const toolHooked = "claude-code.act"

// job is a call of another agent. The agent repeats the call until it gets the outcome. The campaign also kills the
// agent and breaks its connections. After a kill, the agent has only the call's key and arguments.
type job struct {
	via, number string
	closed      bool
	disposition string // the outcome that the agent was told
	lives       int    // number of lives of the agent
	handed      int    // number of repeated calls that returned the result of an earlier call, because the earlier answer was lost
	calls       int    // how often the model made the call, for hooks
	said        string // the error or the last answer of a hook, for a failure message
}

// args returns the call's arguments as canonical JSON. Version 0.1.0 does not find a call of a newer program again if the
// call's arguments are not canonical (docs/upgrade.md).
func (j *job) args() string { return fmt.Sprintf(`{"gated":true,"n":%q}`, "caller."+j.number) }

// stored returns the arguments as the bot stores them.
func (j *job) stored() string {
	if j.via == viaHook {
		return strings.TrimSuffix(j.args(), "}") + `,"working_folder":"/w"}`
	}
	return j.args()
}

// errAgentKilled is the error of a killed agent. A life of an agent is the time from its start until the campaign kills
// it, or until it gets the outcome.
var errAgentKilled = errors.New("the agent was killed")

// callersLive makes one job after the other, until the campaign begins no new work.
func (c *killHarness) callersLive(ctx context.Context, via string, random *rand.Rand) error {
	act, err := actor(c.conf.Seen)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		j := &job{via: via, number: fmt.Sprintf("%s%d", via, 1000+n)}
		c.mu.Lock()
		if c.last {
			c.mu.Unlock()
			return nil
		}
		c.jobs = append(c.jobs, j)
		c.mu.Unlock()
		for !j.closed {
			life, kill := context.WithCancel(ctx)
			timer := time.AfterFunc(30*time.Second, kill)
			soon := random.IntN(2) == 0
			switch {
			case via == viaHook: // while the bot has not noticed that a connection broke, a repeated call counts as another call
				timer.Stop()
			case soon: // this life, or its connection, ends soon
				timer.Reset(time.Duration(random.Int64N(int64(1500 * time.Millisecond))))
			}
			j.lives++
			disposition, err := c.live1(life, j, act, random)
			if err != nil {
				c.mu.Lock()
				j.said = err.Error()
				c.mu.Unlock()
			}
			timer.Stop()
			kill()
			if ctx.Err() != nil {
				return fmt.Errorf("the job %s waited in vain: %w", j.number, errors.Join(err, ctx.Err()))
			}
			if disposition != "" {
				c.mu.Lock()
				j.closed, j.disposition = true, disposition
				c.mu.Unlock()
				continue
			}
			var problem *client.Problem
			if errors.As(err, &problem) && problem.Status < 500 && problem.Status != http.StatusTooManyRequests {
				return fmt.Errorf("the job %s: %w", j.number, err)
			}
			select {
			case <-time.After(glance):
			case <-ctx.Done():
			}
		}
	}
}

// live1 runs one life of an agent. In this life, the agent makes the call. live1 returns how the call ended, or "" if
// the agent does not know this yet.
func (c *killHarness) live1(ctx context.Context, j *job, act func(tool, key string) error, random *rand.Rand) (string, error) {
	switch j.via {
	case viaMCP:
		return c.callOverMCP(ctx, j)
	case viaHook:
		return c.callWithHook(ctx, j, act, random)
	}
	gate, err := client.New("http://"+c.conf.Gateway, killCallerToken)
	if err != nil {
		return "", err
	}
	gate.Patience = 5 * time.Second
	r, err := gate.Ask(ctx, "key-"+j.number, j.via, client.Call{Tool: toolAct, Args: json.RawMessage(j.args())})
	if err == nil {
		r, err = gate.Wait(ctx, r, nil)
	}
	if err != nil {
		return "", err
	}
	if r.Disposition != "" && r.Disposition != "outcome-unknown" {
		return r.Disposition, nil
	}
	if j.via == viaExecute || r.Status != client.Approved {
		return "", nil // the bot asks people what happened
	}
	execution, err := executionOf(r.Receipt)
	if err != nil {
		return "", err
	}
	if _, err := gate.Claim(ctx, r); err != nil {
		if errors.Is(err, client.ErrClaimLost) {
			return "", errors.Join(err, c.report(j, gate, r, client.Failed, "it did not run, because the answer to the claim was lost"))
		}
		return "", err
	}
	if random.IntN(6) == 0 {
		return "", errAgentKilled // before the run
	}
	c.wake("tool")
	work(c.conf.Slow)
	if err := act(toolAct, execution); err != nil {
		return "", err
	}
	work(c.conf.Slow)
	if random.IntN(6) == 0 {
		return "", errAgentKilled // after the run
	}
	return "", c.report(j, gate, r, client.Succeeded, `{"done":true}`)
}

// report reports an outcome to the gateway. If the bot restarts, report repeats the report.
func (c *killHarness) report(j *job, gate *client.Client, r *client.Request, status client.Status, text string) error {
	ctx, cancel := context.WithTimeout(c.Context(), settleTime)
	defer cancel()
	gate.Patience = settleTime
	_, err := gate.Report(ctx, r.ID, r.Run, status, text)
	if client.Is(err, client.OutcomeKnown) || client.Is(err, client.NotClaimed) {
		return nil // people reported the outcome first, or the bot never got the agent's claim
	}
	return err
}

// executionOf returns the id of the run for which a receipt was issued.
func executionOf(receipt string) (string, error) {
	parts := strings.Split(receipt, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("%q is not a receipt", receipt)
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		ID string `json:"jti"`
	}
	return claims.ID, errors.Join(err, json.Unmarshal(body, &claims))
}

// lifelong sends the HTTP requests of one life of an agent. When the life ends, the agent's connections break.
type lifelong struct {
	life context.Context //nolint:containedctx // of the agent
	next http.RoundTripper
}

func (l lifelong) RoundTrip(r *http.Request) (*http.Response, error) {
	return l.next.RoundTrip(r.WithContext(l.life))
}

// callOverMCP calls the tool once over a new session.
func (c *killHarness) callOverMCP(ctx context.Context, j *job) (string, error) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	agent := mcp.NewClient(&mcp.Implementation{Name: "campaign", Version: "1"}, nil)
	web := &http.Client{Transport: lifelong{ctx, withToken{transport}}}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	session, err := agent.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: "http://" + c.conf.Gateway + "/mcp", HTTPClient: web, DisableStandaloneSSE: true, MaxRetries: -1}, nil)
	if err != nil {
		return "", err
	}
	defer session.Close()
	answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: toolAct, Arguments: json.RawMessage(j.args())})
	if err != nil {
		return "", err
	}
	disposition, _ := answer.Meta[dispositionKey].(string)
	if disposition == "outcome-unknown" {
		return "", nil
	}
	if _, late := answer.Meta[ranAtKey]; late && disposition != "" {
		j.handed++
	}
	return disposition, nil
}

// callWithHook makes the call once as Claude Code does: a hook asks before the call, and another hook reports that the
// call ran. If the model makes the call again, the call has a new id.
func (c *killHarness) callWithHook(ctx context.Context, j *job, act func(tool, key string) error, random *rand.Rand) (string, error) {
	id := fmt.Sprint("toolu_", j.calls)
	j.calls++
	out, err := c.hook(ctx, j, "PreToolUse", id, 2+random.IntN(20))
	c.mu.Lock()
	j.said = out
	c.mu.Unlock()
	if err != nil {
		return "", err
	}
	gate, err := client.New("http://"+c.conf.Gateway, killCallerToken)
	if err != nil {
		return "", err
	}
	switch {
	case strings.Contains(out, "It did not run (request"):
		return "denied-not-executed", c.awaitOver(j, gate)
	case !allowed(out):
		return "", nil // the request waits, or the bot asks people what happened to the earlier call
	}
	gate.Patience = 0
	r, err := gate.Get(ctx, requestIn.FindString(out), 0)
	if err != nil || r.Status != client.Running {
		return "", err
	}
	execution, err := executionOf(r.Receipt)
	if err != nil {
		return "", err
	}
	if random.IntN(6) == 0 {
		return "", errAgentKilled // before the run
	}
	c.wake("tool")
	if err := act(toolHooked, execution); err != nil {
		return "", err
	}
	work(c.conf.Slow)
	if random.IntN(6) == 0 {
		return "", errAgentKilled // after the run
	}
	if _, err := c.hook(ctx, j, "PostToolUse", id, 20); err != nil {
		c.Logf("the report of the job %s is lost, so people are asked: %v", j.number, err)
	}
	return "approved-executed", c.awaitOver(j, gate)
}

// hook sends an event with a time limit in seconds, and returns the answer.
func (c *killHarness) hook(ctx context.Context, j *job, event, id string, timeout int) (string, error) {
	body := fmt.Sprintf(`{"session_id":"s-%s","cwd":"/w","hook_event_name":%q,"tool_name":"act","tool_input":%s,"tool_use_id":%q}`, j.number, event, j.args(), id)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/v1/hooks/claude-code?timeout=%d", c.conf.Gateway, timeout), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := withToken{transport}.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	out, err := io.ReadAll(answer.Body)
	return string(out), err
}

// awaitOver waits until all requests of a job are over. If the outcome of a run is unknown, the request is over only
// when people have reported the outcome. awaitOver finds the ids of the requests on the job's cards.
func (c *killHarness) awaitOver(j *job, gate *client.Client) error {
	ctx, cancel := context.WithTimeout(c.Context(), settleTime)
	defer cancel()
	gate.Patience = settleTime
	messages, err := workspaceclient.Client{Base: c.conf.Base, User: "teo"}.Messages(ctx, "#support-approvals", "")
	if err != nil {
		return err
	}
	for _, m := range messages {
		for _, e := range workspaceclient.Elements(m.Blocks) {
			if e.ActionID != "arguments" || !strings.Contains(m.Text+string(m.Blocks), "caller."+j.number) {
				continue
			}
			id, _, _ := strings.Cut(e.Value, " ")
			for {
				r, err := gate.Get(ctx, id, 0)
				if err != nil {
					return fmt.Errorf("the request %s of the job %s is not over: %w", id, j.number, err)
				}
				if r.Disposition != "" && r.Disposition != "outcome-unknown" {
					break
				}
				select {
				case <-time.After(glance):
				case <-ctx.Done():
					return fmt.Errorf("the request %s of the job %s is still %s", id, j.number, r.Status)
				}
			}
		}
	}
	return nil
}

type withToken struct{ next http.RoundTripper }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+killCallerToken)
	return w.next.RoundTrip(r)
}

// offerGateway gives the bot an address for other agents, which make their calls in the given ways. The address stays the
// same for all processes of the bot.
func (c *killHarness) offerGateway(ways ...string) {
	c.Helper()
	c.conf.Gateway, c.ways = c.freeAddress(), ways
}

// callerPoints are the points at which a bot is killed while it handles calls of other agents.
var callerPoints = func() (points []string) {
	for _, transaction := range []string{"PublishReceiptKey", "Propose", "Claim", "Report", "Start", "HungUp", "Delivered", "Overdue", "Finish", "Name"} {
		points = append(points, transaction+", before its commit", transaction+", behind its commit")
	}
	return append(points, toolCalled, toolActed)
}()

// The method "callers" checks the calls of other agents. Each answer that an agent got must match the actual outcome.
func (v *findings) callers(r store.Reader) error {
	all, err := r.ConversationsSince(time.Time{}, 1<<20)
	if err != nil {
		return err
	}
	calls := map[string][]store.Conversation{} // the conversations of each call, by its arguments
	for _, conv := range all {
		if conv.Caller == nil {
			continue
		}
		call, err := r.Call(conv.Caller.Request)
		if err != nil {
			return err
		}
		if call.Conversation != conv.ID { // this conversation belongs to another idempotency key for the same call
			continue
		}
		v.calls++
		v.call(r, call)
		calls[call.Args] = append(calls[call.Args], conv)
	}
	for _, j := range v.jobs {
		v.jobsDone++
		v.lives += j.lives
		v.handed += j.handed
		made := calls[j.stored()]
		slices.SortFunc(made, func(a, b store.Conversation) int { return a.CreatedAt.Compare(b.CreatedAt) })
		if len(made) == 0 {
			v.Errorf("nothing is stored of the job %s", j.number)
			continue
		}
		if (j.via == viaDecide || j.via == viaExecute) && len(made) != 1 {
			v.double++
			v.Errorf("the job %s became %d requests", j.number, len(made))
		}
		for i, earlier := range made[:len(made)-1] {
			v.crossed++
			if !v.mayFollow(r, j, earlier, made[i+1]) {
				v.double++
				v.Errorf("the job %s was asked about again, although the request %s was not used", j.number, earlier.Caller.Request)
			}
		}
		v.ended(r, j, made[len(made)-1])
	}
	return nil
}

// mayFollow reports whether a repeated call may be a new request. Over MCP, the answer to the earlier request must have
// been sent. With a hook, the earlier approval must be claimed, or the earlier request must have ended.
func (v *findings) mayFollow(r store.Reader, j *job, earlier, later store.Conversation) bool {
	if j.via == viaMCP {
		return !earlier.Caller.Delivered.IsZero()
	}
	call, err := r.Call(earlier.Caller.Request)
	if err != nil {
		v.Error(err)
		return false
	}
	e, err := r.Execution(call.Execution)
	if err != nil {
		v.Error(err)
		return false
	}
	return e.State != approvers.ExecutionNone || !call.ReturnedAt.IsZero() && !call.ReturnedAt.After(later.CreatedAt)
}

// The method "ended" compares an agent's answer with the actual outcome.
func (v *findings) ended(r store.Reader, j *job, conv store.Conversation) {
	call, err := r.Call(conv.Caller.Request)
	if err != nil {
		v.Error(err)
		return
	}
	ran := v.seen[call.Tool+" "+call.Execution] > 0
	if told := j.disposition == "approved-executed"; told != ran {
		v.Errorf("the job %s ended as %s, and its tool ran: %t", j.number, j.disposition, ran)
	}
	if call.Request == "" {
		return
	}
	req, err := r.Request(call.Request)
	if err != nil {
		v.Error(err)
		return
	}
	if len(req.ValidApprovals()) > 0 && req.State != approvers.Consumed && req.State != approvers.Rejected && req.State != approvers.Withdrawn {
		v.lost++
		v.Errorf("the approval of the job %s is lost: its request is %s", j.number, req.State)
	}
}
