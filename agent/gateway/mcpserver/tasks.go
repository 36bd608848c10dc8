package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent/gateway"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
)

// MCP has two forms of tasks: a part of the protocol 2025-11-25, and an extension of the protocol 2026-07-28. In this
// package, a task is a request of the gateway. The task has the id of the request.
const (
	tasksExtension = "io.modelcontextprotocol/tasks"
	tasksVersion   = "2025-11-25"
	modernVersion  = "2026-07-28"
	relatedTaskKey = "io.modelcontextprotocol/related-task"
)

// Times of tasks.
const (
	pollOften  = 250 * time.Millisecond // interval of polls for a new task; the interval grows while the task waits
	pollSeldom = 15 * time.Second
	// A call that needs no approval is answered without a task if it ends within this time.
	quick   = 500 * time.Millisecond
	longest = time.Hour // limit of one wait for a task's result
)

func modern(version string) bool { return version >= modernVersion }

// declaresTasks reports whether a message declares that the client supports the extension for tasks.
func declaresTasks(meta mcp.Meta) bool {
	can, _ := meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	extensions, _ := can["extensions"].(map[string]any)
	_, ok := extensions[tasksExtension]
	return ok
}

// withTasks declares the tasks of the protocol 2025-11-25 in the answer to initialize.
func withTasks(of *mcp.InitializeResult) (mcp.Result, error) {
	raw, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	var out members
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	if can, ok := out["capabilities"].(map[string]any); ok && of.ProtocolVersion >= tasksVersion {
		can["tasks"] = map[string]any{"list": struct{}{}, "cancel": struct{}{}, "requests": map[string]any{"tools": map[string]any{"call": struct{}{}}}}
	}
	return &result{members: out}, nil
}

// elicits reports whether a message declares that the client can ask its user to fill in a form.
func elicits(meta mcp.Meta) bool {
	can, _ := meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	kinds, ok := can["elicitation"].(map[string]any)
	_, form := kinds["form"]
	return ok && (form || len(kinds) == 0)
}

// taskParams has the parameters of a method about a task.
type taskParams struct {
	mcp.ParamsBase
	TaskID         string                     `json:"taskId"`
	InputResponses map[string]json.RawMessage `json:"inputResponses"` // by the key of the question
}

// errUndeclared is the answer to a method of the extension from a client that does not declare the extension.
var errUndeclared = &jsonrpc.Error{
	Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the request does not declare the extension " + tasksExtension,
	Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`),
}

// addTaskMethods adds the methods of both forms of tasks.
func (s *Server) addTaskMethods(server *mcp.Server) error {
	about := func(do func(context.Context, *exchange, *taskParams) (mcp.Result, error)) func(context.Context, *mcp.ServerSession, *taskParams) (mcp.Result, error) {
		return func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (mcp.Result, error) {
			x := exchangeOf(ctx)
			if p == nil {
				p = &taskParams{}
			}
			if modern(x.version) && !declaresTasks(p.Meta) {
				return nil, errUndeclared
			}
			out, err := do(ctx, x, p)
			if err != nil {
				return nil, s.taskError(ctx, x, p.TaskID, err)
			}
			return out, nil
		}
	}
	return errors.Join(
		mcp.AddReceivingCustomMethod(server, "tasks/get", about(s.getTask)),
		mcp.AddReceivingCustomMethod(server, "tasks/result", about(s.taskResult)),
		mcp.AddReceivingCustomMethod(server, "tasks/list", about(s.listTasks)),
		mcp.AddReceivingCustomMethod(server, "tasks/cancel", about(s.cancelTask)),
		mcp.AddReceivingCustomMethod(server, "tasks/update", about(s.updateTask)),
	)
}

// taskError returns the answer to a message about a task if the message could not be handled.
func (s *Server) taskError(ctx context.Context, x *exchange, id string, err error) error {
	var problem *workflow.CallerProblem
	if errors.As(err, &problem) && problem.Code == workflow.CallerNotFound {
		return invalid("There is no such task.")
	}
	var answer *jsonrpc.Error
	if errors.As(err, &answer) {
		return answer
	}
	text, _, known := gateway.Explain(err)
	if !known {
		s.Log.ErrorContext(ctx, "a caller's task could not be handled", "client", x.client.Name, "request", id, "error", err)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text}
}

// createTask answers a call with a task. The request is already stored, so the client can read the task immediately.
func (s *Server) createTask(ctx context.Context, x *exchange, id string, again bool) (mcp.Result, error) {
	state, rec, err := s.now(ctx, x, id)
	if err != nil {
		return s.unhandled(ctx, x, id, err)
	}
	if x.task {
		return &result{members: members{"task": task(x, state, rec, s.Now())}}, nil
	}
	if len(state.WaitsFor) == 0 { // the call needs no approval, so the result may come soon
		began := s.Now()
		if state, rec, _, err = s.await(ctx, x, id, quick, (*gateway.State).Settled, func(string) {}); err != nil {
			return s.unhandled(ctx, x, id, err)
		}
		if state.Settled() {
			if state.Over() {
				s.answers(x, id)
			}
			return finished(state, rec, again && rec.Call.ReturnedAt.Before(began)), nil
		}
	}
	out := task(x, state, rec, s.Now())
	out["resultType"] = "task"
	return &result{members: out}, nil
}

// The statuses of tasks.
const (
	taskWorking       = "working"
	taskInputRequired = "input_required"
	taskCompleted     = "completed"
	taskCancelled     = "cancelled"
)

// task returns a request as a task, in the form of the client's protocol version.
func task(x *exchange, s *gateway.State, rec *view.CallerRequest, now time.Time) members {
	status, says := taskWorking, ""
	switch {
	case s.Status == string(approvers.OutcomeWithdrawn):
		status, says = taskCancelled, notRun(s)
	case s.Settled():
		status = taskCompleted
	default:
		says = waits(s)
	}
	changes := []time.Time{rec.Call.CreatedAt, rec.Call.ReturnedAt}
	if r := rec.Request; r != nil {
		changes = append(changes, r.StageAt)
		for _, m := range r.Remarks {
			changes = append(changes, m.At)
		}
	}
	updated := slices.MaxFunc(changes, time.Time.Compare)
	out := members{
		"taskId": s.ID, "status": status, "createdAt": s.CreatedAt.UTC().Format(time.RFC3339Nano), "lastUpdatedAt": updated.UTC().Format(time.RFC3339Nano),
	}
	if says != "" {
		out["statusMessage"] = says
	}
	poll := min(max(now.Sub(s.CreatedAt)/20, pollOften), pollSeldom).Milliseconds()
	if modern(x.version) {
		out["ttlMs"], out["pollIntervalMs"] = nil, poll
	} else {
		out["ttl"], out["pollInterval"] = nil, poll
	}
	return out
}

// inputRequests returns the approvers' unanswered questions as requests to the client's user.
func inputRequests(s *gateway.State, rec *view.CallerRequest) members {
	out := members{}
	for _, q := range openQuestions(s) {
		out[questionKey(rec, q)] = map[string]any{"method": "elicitation/create", "params": map[string]any{
			"mode": "form", "message": fmt.Sprintf("%s asks before the call is decided: %s", q.By, q.Text),
			"requestedSchema": map[string]any{
				"type": "object", "required": []string{"answer"},
				"properties": map[string]any{"answer": map[string]any{"type": "string", "title": "Answer", "minLength": 1, "maxLength": maxText}},
			},
		}}
	}
	return out
}

// questionKey returns the key of a question in inputRequests. A task never has two questions with the same key. The key
// contains the request, because a request that was rebuilt after damage numbers its questions from 0.
func questionKey(rec *view.CallerRequest, q gateway.Question) string {
	return fmt.Sprintf("%s/%d", rec.Call.Request, q.Question)
}

// detailedTask returns a request as a task of the extension. A completed task contains its result. If the client can
// show forms, a task with open questions contains the approvers' questions.
func detailedTask(x *exchange, s *gateway.State, rec *view.CallerRequest, meta mcp.Meta, now time.Time) members {
	out := task(x, s, rec, now)
	if requests := inputRequests(s, rec); len(requests) > 0 && elicits(meta) {
		out["status"], out["inputRequests"] = taskInputRequired, requests
	}
	if out["status"] == taskCompleted {
		out["result"] = &complete{finished(s, rec, false)}
	}
	return out
}

// getTask handles tasks/get.
func (s *Server) getTask(ctx context.Context, x *exchange, p *taskParams) (mcp.Result, error) {
	state, rec, err := s.now(ctx, x, p.TaskID)
	if err != nil {
		return nil, err
	}
	if !modern(x.version) {
		return &result{members: task(x, state, rec, s.Now())}, nil
	}
	if state.Over() {
		s.answers(x, p.TaskID)
	}
	out := detailedTask(x, state, rec, p.Meta, s.Now())
	out["resultType"] = "complete"
	return &result{members: out}, nil
}

// taskResult handles tasks/result of the protocol 2025-11-25. taskResult waits for the result.
func (s *Server) taskResult(ctx context.Context, x *exchange, p *taskParams) (mcp.Result, error) {
	id := p.TaskID
	state, rec, _, err := s.await(ctx, x, id, longest, (*gateway.State).Settled, func(string) {})
	switch {
	case errors.Is(err, errHungUp):
		return nil, errLeft
	case err != nil:
		return nil, err
	case !state.Settled():
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The task is not complete. " + waits(state)}
	case state.Over():
		s.answers(x, id)
	}
	out := finished(state, rec, false)
	out.Meta[relatedTaskKey] = map[string]any{"taskId": id}
	return out, nil
}

// listTasks handles tasks/list of the protocol 2025-11-25. listTasks returns the tasks that wait for people.
func (s *Server) listTasks(ctx context.Context, x *exchange, _ *taskParams) (mcp.Result, error) {
	ids, err := s.Views.CallerPending(ctx, x.client.Name)
	if err != nil {
		return nil, err
	}
	tasks := []members{}
	for _, id := range ids {
		state, rec, err := s.now(ctx, x, id)
		var problem *workflow.CallerProblem
		if errors.As(err, &problem) {
			continue // a request in another mode, or a request whose call was repeated later
		}
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, task(x, state, rec, s.Now()))
	}
	return &result{members: members{"tasks": tasks}}, nil
}

// cancelTask handles tasks/cancel. cancelTask withdraws the request. If the call has begun or ended, the task stays
// unchanged.
func (s *Server) cancelTask(ctx context.Context, x *exchange, p *taskParams) (mcp.Result, error) {
	id := p.TaskID
	err := s.Callers.Withdraw(ctx, x.client, id, "")
	var problem *workflow.CallerProblem
	late := errors.As(err, &problem) && problem.Code == workflow.CallerOver
	if err != nil && !late {
		return nil, err
	}
	if !late {
		s.answers(x, id)
	}
	if modern(x.version) {
		return &result{members: members{"resultType": "complete"}}, nil
	}
	if late {
		return nil, invalid("The call has begun or ended, so the task can't be cancelled.")
	}
	state, rec, err := s.now(ctx, x, id)
	if err != nil {
		return nil, err
	}
	return &result{members: task(x, state, rec, s.Now())}, nil
}

// updateTask handles tasks/update: it passes the answers of the client's user to the approvers. updateTask ignores
// answers to questions that are not open.
func (s *Server) updateTask(ctx context.Context, x *exchange, p *taskParams) (mcp.Result, error) {
	state, rec, err := s.now(ctx, x, p.TaskID)
	if err != nil {
		return nil, err
	}
	for _, q := range openQuestions(state) {
		raw, given := p.InputResponses[questionKey(rec, q)]
		if !given {
			continue
		}
		says, err := elicited(raw)
		if err == nil {
			err = s.Callers.Answer(ctx, x.client, p.TaskID, q.Question, says)
		}
		var problem *workflow.CallerProblem
		if errors.As(err, &problem) && problem.Code == workflow.CallerNoQuestion {
			continue // another answer was faster, or the request was decided
		}
		if err != nil {
			return nil, err
		}
	}
	return &result{members: members{"resultType": "complete"}}, nil
}

// elicited returns what the client's user answered. If the user gave no answer, the approvers are told so.
func elicited(raw json.RawMessage) (string, error) {
	var of struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return "", invalid("a response must be an object with an action")
	}
	switch of.Action {
	case "accept":
		var content struct {
			Answer string `json:"answer"`
		}
		err := json.Unmarshal(of.Content, &content)
		if n := len([]rune(content.Answer)); err != nil || n < 1 || n > maxText {
			return "", invalid("the content must have an answer of 1 to 3000 characters")
		}
		return content.Answer, nil
	case "decline":
		return "The client declined to answer.", nil
	case "cancel":
		return "The client ended the question without an answer.", nil
	}
	return "", invalid("the action must be accept, decline or cancel")
}
