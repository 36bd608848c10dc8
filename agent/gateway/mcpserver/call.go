package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent/gateway"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
)

// receive is middleware that answers the MCP methods that this server handles itself. The SDK answers all other
// methods.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		x := exchangeOf(ctx)
		if !served(x.version, method) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there is no method " + strconv.Quote(method)}
		}
		switch method {
		case "tools/list":
			return s.list(x), nil
		case "tools/call":
			res, err := s.call(ctx, x, req)
			if of, ok := res.(*mcp.CallToolResult); ok && modern(x.version) {
				return &complete{of}, err
			}
			return res, err
		case "subscriptions/listen":
			if modern(x.version) && len(x.taskIDs) > 0 {
				return s.listen(ctx, x, req.GetParams().GetMeta())
			}
		case "initialize":
			res, err := next(ctx, method, req)
			if of, ok := res.(*mcp.InitializeResult); ok && err == nil {
				return withTasks(of)
			}
			return res, err
		}
		return next(ctx, method, req)
	}
}

// served reports whether this server has a method. The SDK has methods that this server does not have, for example
// for prompts.
func served(version, method string) bool {
	switch method {
	case "initialize", "ping", "server/discover", "subscriptions/listen", "tools/list", "tools/call", "tasks/get", "tasks/cancel":
		return true
	case "tasks/update":
		return modern(version)
	case "tasks/result", "tasks/list":
		return !modern(version)
	}
	return strings.HasPrefix(method, "notifications/")
}

// call makes a tool call for a client.
func (s *Server) call(ctx context.Context, x *exchange, req mcp.Request) (mcp.Result, error) {
	params, ok := req.GetParams().(*mcp.CallToolParamsRaw)
	if !ok {
		return nil, invalid("the parameters of the call are missing")
	}
	args := params.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if own, ok := s.own[params.Name]; ok {
		return own.call(s, ctx, x, req, args)
	}
	person, err := onBehalfOf(x.client, params.Meta)
	if err != nil {
		return nil, err
	}
	task := x.task || declaresTasks(params.Meta)
	id, again, err := s.propose(ctx, x, workflow.CallerCall{
		Client: x.client, Mode: approvers.ExecuteMode, Tool: params.Name, Args: args, For: person, Edits: true, Waits: !task,
	})
	var problem *workflow.CallerProblem
	if errors.As(err, &problem) && problem.Code == workflow.CallerTool {
		return nil, invalid(fmt.Sprintf("Unknown tool: %.200s", params.Name))
	}
	if err != nil {
		return s.refused(ctx, x, err)
	}
	if task {
		return s.createTask(ctx, x, id, again)
	}
	return s.hold(ctx, x, req, id, again)
}

// onBehalfOf returns the Slack user for whom a client says that it acts.
func onBehalfOf(client approvers.Client, meta mcp.Meta) (string, error) {
	v, given := meta[onBehalfOfKey]
	if !given {
		return "", nil
	}
	user, _ := v.(string)
	if err := gateway.CheckOnBehalfOf(client, user); err != nil {
		return "", invalid(onBehalfOfKey + " in _meta " + err.Error())
	}
	return user, nil
}

// propose proposes a call. If the workflow finds an earlier identical call, the answer to the earlier call may be on
// its way to the client. propose then waits until the earlier answer is sent, and proposes the call again. If the
// earlier answer was delivered, the new proposal creates a new request. If both calls are in one batch, propose does not
// wait, because the answers to a batch are sent together. A batch may get its answer to the earlier call during the
// wait. The time limit of a held call then ends the wait, and the call gets the earlier result.
func (s *Server) propose(ctx context.Context, x *exchange, call workflow.CallerCall) (id string, again bool, err error) {
	apart(func() { id, again, err = s.Callers.Propose(ctx, call) })
	if err != nil || !again {
		return id, again, err
	}
	ended := s.ends.of(id)
	if x.hasAnswer(id) { // checked after ended is taken, because the answer may be added between the two
		return id, again, nil
	}
	over := time.NewTimer(x.client.Hold)
	defer over.Stop()
	select {
	case <-ended:
	case <-over.C:
		return id, again, nil
	case <-x.gone:
		return id, again, nil
	}
	apart(func() { id, again, err = s.Callers.Propose(ctx, call) })
	return id, again, err
}

// apart runs a function in a separate goroutine, and waits for it. Transactions need a deep stack, and a goroutine
// keeps the memory of its stack. A held call waits for a long time, so its goroutine must not run transactions
// itself.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func invalid(text string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text}
}

// Time limits and intervals of held calls.
const (
	progressEvery = 15 * time.Second
	shortestHold  = 2 * time.Second
)

// errLeft is the answer to a call whose client has stopped waiting.
var errLeft = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the caller no longer waits"}

// hold waits for a request's result and returns it. If the result comes too late for the client, or if an approver
// asks a question, hold returns an answer that explains how to continue.
func (s *Server) hold(ctx context.Context, x *exchange, req mcp.Request, id string, again bool) (mcp.Result, error) {
	limit := x.client.Hold
	var known time.Duration
	var err error
	apart(func() { known, err = s.Views.Patience(ctx, x.client.Name) })
	if err != nil {
		return s.unhandled(ctx, x, id, err)
	}
	if known > 0 {
		limit = min(limit, max(shortestHold, known))
	}
	began := s.Now()
	progress := s.progress(ctx, req)
	release(req)
	state, rec, why, err := s.await(ctx, x, id, limit, func(s *gateway.State) bool { return s.Settled() || asks(s) }, progress)
	switch {
	case errors.Is(err, errHungUp):
		if err := s.Callers.HungUp(context.WithoutCancel(ctx), x.client, s.Now().Sub(began)); err != nil {
			s.Log.ErrorContext(ctx, "the end of a caller's connection could not be recorded", "client", x.client.Name, "request", id, "error", err)
		}
		return nil, errLeft
	case err != nil:
		return s.unhandled(ctx, x, id, err)
	case !state.Settled():
		return pending(state, why), nil
	}
	earlier := again && rec.Call.ReturnedAt.Before(began)
	if state.Over() {
		s.answers(x, id)
	}
	return finished(state, rec, earlier), nil
}

// release drops the parameters of a call. A call that waits does not need them any more, and the decoded _meta takes
// several KiB.
func release(req mcp.Request) {
	if params, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
		params.Arguments, params.Meta = nil, nil
	}
}

// errHungUp means that the client has disconnected or has cancelled the call.
var errHungUp = errors.New("the caller hung up")

// The reasons why a wait ended.
const (
	whyWanted   = "wanted"
	whyLimit    = "limit"
	whyStopping = "stopping"
)

// await waits until wanted returns true for a request, the time limit passes, or the process stops. The result why
// says what ended the wait. If the client disconnects or cancels the call, the error is errHungUp. Some calls run
// only while their caller waits. When a call of this kind is approved, await starts the call. await calls the
// function progress immediately, and then from time to time.
func (s *Server) await(ctx context.Context, x *exchange, id string, limit time.Duration, wanted func(*gateway.State) bool, progress func(message string)) (
	state *gateway.State, rec *view.CallerRequest, why string, err error,
) {
	state, rec, err = s.now(ctx, x, id)
	if err != nil || wanted(state) {
		return state, rec, whyWanted, err
	}
	end, err := s.Gateway.Wait(x.client.Name)
	if err != nil {
		return state, rec, "", err
	}
	defer end()
	changed, stop := s.Callers.Hold(x.client, id)
	defer stop()
	over := time.NewTimer(limit)
	defer over.Stop()
	beat := time.NewTicker(min(progressEvery, max(limit/3, time.Second)))
	defer beat.Stop()
	for told := false; ; {
		// The request may have changed before Hold began to watch it.
		if state, rec, err = s.now(ctx, x, id); err != nil || wanted(state) {
			return state, rec, whyWanted, err
		}
		message := state.ID + ": " + waits(state)
		state, rec = nil, nil // both are large, so their memory is released during the wait
		if !told {
			apart(func() { progress(message) })
			told = true
		}
		select {
		case <-changed:
		case <-beat.C:
			apart(func() { progress(message) })
		case <-over.C:
			state, rec, err = s.now(ctx, x, id)
			return state, rec, whyLimit, err
		case <-s.Stopping:
			state, rec, err = s.now(ctx, x, id)
			return state, rec, whyStopping, err
		case <-x.gone:
			return nil, nil, "", errHungUp
		case <-x.dropped:
			return nil, nil, "", errHungUp
		}
	}
}

// now reads a request, which must have the mode execute. Some calls run only while their caller waits. When a call of
// this kind is approved, now starts the call. now returns pointers, because copies of these large values would double
// the stack of a held call's goroutine.
func (s *Server) now(ctx context.Context, x *exchange, id string) (state *gateway.State, rec *view.CallerRequest, err error) {
	apart(func() { state, rec, err = s.readOrStart(ctx, x, id) })
	return state, rec, err
}

func (s *Server) readOrStart(ctx context.Context, x *exchange, id string) (*gateway.State, *view.CallerRequest, error) {
	state, rec, err := s.Gateway.Request(ctx, x.client, id)
	if err == nil && state.Mode != string(approvers.ExecuteMode) {
		err = &workflow.CallerProblem{Code: workflow.CallerNotFound}
	}
	if err == nil && state.Status == gateway.StatusApproved && rec.Conversation.Caller.Caller.Starts {
		err = s.Callers.Start(ctx, x.client, id)
	}
	return &state, &rec, err
}

// asks reports whether an approver's question waits for the caller's answer.
func asks(s *gateway.State) bool { return len(openQuestions(s)) > 0 }

// open returns the first of the open questions.
func open(s *gateway.State) (q gateway.Question, ok bool) {
	if all := openQuestions(s); len(all) > 0 {
		return all[0], true
	}
	return q, false
}

// openQuestions returns the unanswered questions of a request that waits for a decision.
func openQuestions(s *gateway.State) []gateway.Question {
	if len(s.WaitsFor) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Questions), func(q gateway.Question) bool { return q.Answer != "" })
}

// progress returns a function that sends the client a progress message about the waiting call. If the client did not
// request progress messages, the function does nothing.
func (s *Server) progress(ctx context.Context, req mcp.Request) func(message string) {
	p, ok := req.GetParams().(interface{ GetProgressToken() any })
	session, is := req.GetSession().(*mcp.ServerSession)
	if !ok || !is || p.GetProgressToken() == nil {
		return func(string) {}
	}
	token, n := p.GetProgressToken(), 0
	return func(message string) {
		n++
		err := session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: message})
		if err != nil {
			s.Log.DebugContext(ctx, "a caller's progress could not be sent", "error", err)
		}
	}
}

// list returns the tools that a client may call. The last tools in the list are this server's own tools.
func (s *Server) list(x *exchange) mcp.Result {
	policy := s.Policy()
	tools := []map[string]any{}
	for _, t := range s.Tools() {
		if _, hidden := s.own[t.Name]; hidden || t.Blocked != "" || t.Asks || !x.client.MayUse(policy, t.Name) {
			continue
		}
		tools = append(tools, s.describe(x, t.Name, t.Claims.Title, t.Description, t.Schema))
	}
	for _, name := range slices.Sorted(maps.Keys(s.own)) {
		t := s.own[name]
		tools = append(tools, s.describe(x, name, t.title, t.description, json.RawMessage(t.schema)))
	}
	out := members{"tools": tools}
	if modern(x.version) {
		out["resultType"], out["ttlMs"], out["cacheScope"] = "complete", 0, "private"
	}
	return &result{members: out}
}

func (s *Server) describe(x *exchange, name, title, description string, schema json.RawMessage) map[string]any {
	t := map[string]any{"name": name, "description": description, "inputSchema": schema}
	if title != "" {
		t["title"] = title
	}
	if _, own := s.own[name]; !own && x.version >= tasksVersion && !modern(x.version) {
		t["execution"] = map[string]any{"taskSupport": "optional"}
	}
	return t
}
