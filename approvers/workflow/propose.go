package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// ModelCall is one tool call as the model requested it.
type ModelCall struct {
	ID    string
	Tool  string
	Args  string // the model's argument text, unchanged
	Fault string // why package agent found the call invalid; empty: the call is valid
}

// Proposal is one step of the model: its text and its tool calls.
type Proposal struct {
	Turn    string
	Step    int // the value of Brief.Turn.Step
	Text    string
	Calls   []ModelCall
	Authors []approvers.PersonID // the authors of all messages in the prompt
	Tokens  int                  // how many tokens the model call used
	// Reasoning is stored with the step. Reasoning may be nil.
	Reasoning *store.Reasoning
}

// Propose stores a step and its calls. For each call, Propose determines whether the call runs, waits for approval, or
// is refused.
func (w *Turns) Propose(ctx context.Context, p Proposal) error {
	if len(p.Calls) == 0 {
		return errors.New("propose: a step without tool calls would wait for ever; call Answer instead")
	}
	return w.onStep(ctx, "propose", p.Turn, p.Step, func(t *tx, turn approvers.Turn, conv store.Conversation) error {
		turn, err := turn.Wait()
		if err != nil {
			return err
		}
		if err := t.PutTurn(turn); err != nil {
			return err
		}
		turn.Version++
		conv.Messages++
		m := store.Message{
			Conversation: conv.ID, Seq: conv.Messages, Turn: turn.ID, Step: turn.Step, Role: store.RoleAssistant,
			State: store.MessageTaken, Text: p.Text, Calls: len(p.Calls), At: t.now, Reasoning: p.Reasoning,
		}
		if err := t.PutMessage(m); err != nil {
			return err
		}
		if err := t.PutConversation(conv); err != nil {
			return err
		}
		if err := t.ClearTimer(store.TimerThink, turn.ID); err != nil {
			return err
		}
		if err := t.proposals.spend(turn, p.Tokens); err != nil {
			return err
		}
		step := store.OutboxMessage{Kind: store.OutboxStep, Ref: turn.ID, Step: turn.Step, To: store.ToConversation + conv.ID}
		if err := t.outbox.wantDrafted(step); err != nil {
			return err
		}
		return t.proposals.proposeAll(turn, conv, p)
	})
}

func (t proposalsTx) proposeAll(turn approvers.Turn, conv store.Conversation, p Proposal) error {
	facts, err := t.askFacts(turn, conv, p.Authors, "")
	if err != nil {
		return err
	}
	asked := &store.Asked{MessageTS: facts.MessageTS, Requesters: facts.Requesters, Authors: facts.Authors}
	used := map[string]bool{}
	calls := make([]store.Call, len(p.Calls))
	for i, c := range p.Calls {
		calls[i] = store.Call{
			ID: t.newID("call"), Conversation: conv.ID, Turn: turn.ID, Step: turn.Step, Index: i,
			ModelID: t.uniqueID(c.ID, used), Tool: c.Tool, Args: c.Args, Asked: asked, CreatedAt: t.now,
		}
	}
	// All calls are stored before the first call is proposed, because giveResult can recognize the step's last result
	// only if all calls exist.
	for i := range calls {
		if err := t.PutCall(calls[i]); err != nil {
			return err
		}
		calls[i].Version++
	}
	waits := false
	var opened []string // shown after all calls are planned, because requests to the same people share a card
	for i, c := range p.Calls {
		request, asked, err := t.propose(turn, calls[i], c.Fault, facts)
		if err != nil {
			return fmt.Errorf("call %d (%s): %w", i+1, c.Tool, err)
		}
		if request != "" {
			opened = append(opened, request)
		}
		waits = waits || asked
	}
	if err := t.cards.showStep(opened); err != nil {
		return err
	}
	if !waits {
		return nil
	}
	if facts.MessageEdit != nil {
		if err := t.turns.tellMessageEdit(turn); err != nil {
			return err
		}
	}
	return t.turns.tellIfQueued(turn)
}

// uniqueID returns the call id that the model chose. If the id is empty, or another call of the step has it, uniqueID
// returns a new id. If two calls of a step had the same id, the next prompt would be invalid.
func (t proposalsTx) uniqueID(id string, used map[string]bool) string {
	if id == "" || used[id] {
		id = t.newID("call")
	}
	used[id] = true
	return id
}

// askFactsOf collects the facts about a call that was proposed before. If the call does not say who asked for it, the
// facts come from the turn's current state.
func (t proposalsTx) askFactsOf(call store.Call, turn approvers.Turn, conv store.Conversation) (approvers.AskFacts, error) {
	if a := call.Asked; a != nil {
		turn.Requesters = a.Requesters
		return t.askFacts(turn, conv, a.Authors, a.MessageTS)
	}
	authors, err := t.authors(conv.ID)
	if err != nil {
		return approvers.AskFacts{}, err
	}
	return t.askFacts(turn, conv, authors, "")
}

// askFacts collects facts for a request: the people who asked for the call, the channel, and the text that they wrote.
// The text is the message with the given ts. If ts is empty, the text is the last message of the turn that the model
// has received.
func (t proposalsTx) askFacts(turn approvers.Turn, conv store.Conversation, authors []approvers.PersonID, ts string) (approvers.AskFacts, error) {
	f := approvers.AskFacts{
		Requesters: turn.Requesters, Authors: authors,
		Conversation: approvers.ConversationFacts{ID: conv.ID, Channel: conv.Channel, DM: conv.DM},
	}
	if conv.Caller != nil {
		caller := conv.Caller.Caller
		f.Caller, f.Asker, f.AskerName, f.Quote = &caller, caller.Identity().ID, caller.Title, conv.Caller.Summary
		f.Conversation.ID = caller.Scope()
		return f, nil
	}
	messages, err := t.Messages(conv.ID, 0)
	if err != nil {
		return f, err
	}
	for _, m := range messages {
		if m.Role == store.RoleUser && m.State == store.MessageTaken && m.Turn == turn.ID && (ts == "" || ts == m.TS) {
			f.Asker, f.AskerName, f.Quote, f.MessageTS, f.MessageEdit = m.Author, m.AuthorName, m.Text, m.TS, m.MessageEdit
		}
	}
	return f, nil
}

// propose determines whether a call runs, waits for approval, or is refused. If the call waits for approval, request is
// the id of the call's new request. If propose has opened a request or asked people a question, asked is true.
func (t proposalsTx) propose(turn approvers.Turn, call store.Call, fault string, facts approvers.AskFacts) (request string, asked bool, err error) {
	tool, args, problem := t.admissible(turn.Agent, call, fault)
	if problem == "" {
		if problem, err = t.spendCall(turn, call, facts.Asker); err != nil {
			return "", false, err
		}
	}
	if problem != "" {
		res := approvers.NewResult(approvers.OutcomeError, call.Tool, problem, "")
		if err := t.audit(call.ID, approvers.AuditProposed, "", map[string]string{"tool": call.Tool, "verdict": "error"}, []byte(call.Args)); err != nil {
			return "", false, err
		}
		return "", false, t.turns.giveResult(call, approvers.OutcomeError, res.Text())
	}
	return t.proposeAdmissible(turn, call, tool, args, facts)
}

// proposeAdmissible does the same as propose, for a call whose tool exists and accepts the arguments.
func (t proposalsTx) proposeAdmissible(turn approvers.Turn, call store.Call, tool Tool, args map[string]any, facts approvers.AskFacts) (request string, asked bool, err error) {
	e := t.newExecution(call, tool, json.RawMessage(call.Args))
	ask := approvers.Call{
		Tool: call.Tool, Effect: tool.Effect, Requesters: facts.Requesters, Authors: facts.Authors,
		Facts: approvers.Facts{
			Args: args, Requester: facts.Asker.User(), Conversation: facts.Conversation, Agent: turn.Agent, Now: t.now,
			Caller: facts.Caller,
		},
	}
	e.Asker = facts.Asker
	if facts.Caller.Decides() {
		e.Caller = facts.Caller.Name
	}
	if tool.Asks {
		return "", true, t.questions.askPeople(call, args)
	}
	plan := t.policy.Plan(ask)
	call.Secrets = t.secrets(tool, turn.Agent)
	says := t.preview(tool, turn.Agent, e.Args, args, call.Secrets)
	call.Execution, call.Preview = e.ID, says.text
	if plan.Verdict == approvers.Ask {
		if e.Grant, err = t.grants.expectGrant(ask, e, plan); err != nil {
			return "", false, err
		}
	}
	if plan.Verdict == approvers.Auto || e.Grant != "" {
		if err := t.PutCall(call); err != nil {
			return "", false, err
		}
		if err := t.PutExecution(e); err != nil {
			return "", false, err
		}
		if err := t.records.auditProposed(e.ID, e, plan, facts); err != nil {
			return "", false, err
		}
		if e.Caller != "" {
			return "", false, t.callers.wait(e)
		}
		return "", false, t.runNow(e)
	}
	if plan.Verdict == approvers.Observed {
		return "", false, t.observe(call, e, plan, facts)
	}
	r := approvers.Request{Preview: says.text, MadePreview: says.made, PreviewFault: says.fault, Facts: facts, Plan: plan, Agent: turn.Agent}
	r, err = t.open(call, e, r)
	if err != nil || r.State != approvers.Pending {
		return "", true, err
	}
	return r.ID, true, nil
}

// admissible checks whether a call can be proposed: the tool must exist, must not be blocked, and must accept the
// arguments. If the call can't be proposed, the last result is a sentence for the model.
func (t proposalsTx) admissible(agent string, call store.Call, fault string) (Tool, map[string]any, string) {
	if fault != "" {
		return Tool{}, nil, fault
	}
	tool, ok := t.tool(call.Tool)
	if a, has := t.policy.Agent(agent); !ok || !has || !a.Offers(call.Tool) {
		return Tool{}, nil, fmt.Sprintf("there is no tool named %q; call only the tools that are offered", call.Tool)
	}
	if tool.Blocked != "" {
		return Tool{}, nil, tool.look()
	}
	p, _ := t.policy.Tool(call.Tool, agent)
	args, err := approvers.StrictArgs([]byte(call.Args), p.ReadsNumbers())
	if err == nil {
		err = tool.Check(json.RawMessage(call.Args))
	}
	if err != nil {
		return Tool{}, nil, plainFault(err)
	}
	return tool, args, ""
}

// plainFault returns the text of an error in arguments. The model and people read this text.
func plainFault(err error) string {
	return strings.TrimPrefix(err.Error(), approvers.ErrArgs.Error()+": ")
}

// t.secrets returns which arguments of a tool must be masked. The tool's schema and the policy name these arguments.
func (t proposalsTx) secrets(tool Tool, agent string) []string {
	p, _ := t.policy.Tool(tool.Name, agent)
	return approvers.Secrets(approvers.SecretPaths(tool.Schema), p.Secrets)
}

// preview is the sentence that describes the effect of a call.
type preview struct {
	text  string
	made  bool   // the text was made from the tool's title and the arguments
	fault string // why the policy's own sentence could not be rendered
}

// preview renders the template by which the policy describes a call's effect. If the policy has no template for the
// tool, or the template can't be rendered, preview makes the sentence from the tool's title and the arguments.
func (t proposalsTx) preview(tool Tool, agent string, args json.RawMessage, values map[string]any, secrets []string) (says preview) {
	p, _ := t.policy.Tool(tool.Name, agent)
	if p.Preview.Render != nil {
		var err error
		if says.text, err = p.Preview.Render(approvers.MaskValues(values, secrets)); err != nil {
			says.text, says.fault = "", err.Error()
		}
	}
	if strings.TrimSpace(says.text) == "" {
		says.text, says.made = approvers.MadeHeadline(tool.Claims.Title, tool.Name, approvers.RequiredArguments(tool.Schema), args, secrets), true
	}
	return says
}

func (t proposalsTx) newExecution(call store.Call, tool Tool, args json.RawMessage) approvers.Execution {
	e := approvers.Execution{
		ID: t.newID("exec"), State: approvers.ExecutionNone, Conversation: call.Conversation, Turn: call.Turn, Call: call.ID,
		Request: call.Request, Tool: call.Tool, ToolHash: tool.Hash, Effect: tool.Effect, Args: args, CreatedAt: t.now,
	}
	e.Digest = approvers.Digest(e.ID, e.Tool, e.ToolHash, e.Args)
	return e
}

// runNow schedules the run of an execution.
func (t proposalsTx) runNow(e approvers.Execution) error {
	return t.SetTimer(store.Timer{Kind: store.TimerRun, Ref: e.ID, Due: t.now, Affinity: store.ToConversation + e.Conversation})
}

// ask opens a request for a call and shows its card.
func (t proposalsTx) ask(call store.Call, e approvers.Execution, r approvers.Request) error {
	r, err := t.open(call, e, r)
	if err != nil || r.State != approvers.Pending {
		return err
	}
	return t.cards.wantCard(r)
}

// open opens a request for a call. open fills in r from the call and its execution. The call runs only after the
// request is approved.
func (t proposalsTx) open(call store.Call, e approvers.Execution, r approvers.Request) (approvers.Request, error) {
	r.ID = t.newID("req")
	if r.Facts.Caller != nil && r.Retry == nil {
		r.ID = call.ID // the caller already has this id
	}
	call.Request, e.Request = r.ID, r.ID
	r.Conversation, r.Turn, r.Call = call.Conversation, call.Turn, call.ID
	r.Tool, r.ToolHash, r.Effect = e.Tool, e.ToolHash, e.Effect
	r.Execution, r.Args, r.Digest, r.Secrets = e.ID, e.Args, e.Digest, call.Secrets
	r.ToolPreview = t.previews.requestToolPreview(r.Tool, r.Agent, r.Digest)
	r, events := approvers.Open(t.deciding(), r)
	r, err := t.countAsked(r)
	if err != nil {
		return r, err
	}
	if err := t.callers.countRequest(r); err != nil {
		return r, err
	}
	if err := t.PutCall(call); err != nil {
		return r, err
	}
	if err := t.PutExecution(e); err != nil {
		return r, err
	}
	if err := t.records.auditProposed(r.ID, e, r.Plan, r.Facts); err != nil {
		return r, err
	}
	if r.State == approvers.Refused {
		t.note(slog.LevelError, "nobody can approve this call, so it was refused: correct the policy",
			"request", r.ID, "conversation", r.Conversation, "execution", r.Execution, "tool", r.Tool, "why", r.Reason)
	} else {
		t.noteRequest("a request waits for people", r, "execution", r.Execution, "risk", r.Plan.Risk.String(), "stages", r.Plan.StageFacts())
	}
	return r, t.apply(r, events)
}

// auditProposed records a call with its digest, its plan, and the people whose messages led to the call. For a caller's
// call, it also records the person for whom the caller acts.
func (t recordsTx) auditProposed(chain string, e approvers.Execution, plan approvers.Plan, asked approvers.AskFacts) error {
	facts := map[string]string{
		"tool": e.Tool, "execution": e.ID, "digest": e.Digest, "verdict": string(plan.Verdict), "would": string(plan.Would), "risk": plan.Risk.String(),
		"stages": plan.StageFacts(), "policy": plan.PolicyHash, "call": e.Call, "conversation": e.Conversation,
		"tool_hash": e.ToolHash, "asker": string(e.Asker), "requesters": personFacts(asked.Requesters),
	}
	if id := t.w.Trace(e.Turn); id != "" {
		facts["trace"] = id
	}
	plan.NoteRules(facts)
	if e.Grant != "" {
		facts["grant"] = e.Grant
	}
	if e.After != "" {
		facts["after"] = e.After
	}
	if e.Caller != "" {
		facts["runs"] = e.Caller
	}
	if c := asked.Caller; c != nil {
		facts["for"] = cmp.Or(string(c.For), forNobody)
		if c.Proven {
			facts["proven"] = "true"
		}
	}
	return t.audit(chain, approvers.AuditProposed, "", facts, []byte(e.Args))
}

// forNobody is the fact "for" of a call whose caller names no person.
const forNobody = "nobody"

// personFacts returns a list of people in the form of an audit fact.
func personFacts(people []approvers.PersonID) string {
	ids := make([]string, len(people))
	for i, p := range people {
		ids[i] = string(p)
	}
	return strings.Join(ids, ",")
}

// tool finds a tool by its name. A tool that differs from its pinned definition is normally blocked. If the policy
// treats the changed tool as an unknown tool, the returned tool is not blocked.
func (t *tx) tool(name string) (Tool, bool) {
	tool, ok := t.w.Tools.Tool(name)
	if _, distrusted := t.policy.Distrusts(name); distrusted {
		tool.Blocked = ""
	}
	return tool, ok
}

// t.unlike returns why a call can't run with the tool's current definition, or "" if the call can run. hash is the hash
// of the tool's definition at the time of the proposal.
func (t *tx) unlike(name, hash string) string {
	tool, ok := t.tool(name)
	switch {
	case !ok && hash == approvers.UndeclaredHash(name):
		return "" // the tool has no definition here, because its caller runs it
	case !ok:
		return "the tool " + name + " is not there any more"
	case tool.Blocked != "":
		return tool.look()
	case tool.Hash != hash:
		return "the definition of the tool changed"
	}
	return ""
}

// t.forbidden returns why the current policy does not allow a call of an agent or of a client, or "" if the policy
// allows the call. c is nil for calls of Countersign's own agent.
func (t *tx) forbidden(c *approvers.Caller, agent, tool string) string {
	if c == nil {
		if a, ok := t.policy.Agent(agent); !ok || !a.Offers(tool) {
			return "the policy does not let the agent " + agent + " call " + tool + " any more"
		}
		return ""
	}
	client, ok := t.policy.Client(c.Name)
	switch {
	case !ok:
		return "the policy does not name the client " + c.Name + " any more"
	case !client.MayUse(t.policy, tool):
		return "the policy does not let the client " + c.Name + " call " + tool + " any more"
	}
	return ""
}

// look returns why a blocked tool can't be called, and who can unblock the tool.
func (t Tool) look() string {
	return t.Name + " can't be called now, because " + t.Blocked + ": the operator has to look at it"
}

// Callable reports whether the tool can be called under the policy p. A blocked tool can be called only if the policy
// treats the changed tool as an unknown tool.
func (t Tool) Callable(p *approvers.Policy) bool {
	if t.Blocked == "" {
		return true
	}
	_, distrusted := p.Distrusts(t.Name)
	return distrusted
}
