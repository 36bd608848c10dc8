package mcpserver

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ownTool is a tool that this server itself provides. With such tools, a client gets the result of its request,
// answers a question, or withdraws the request.
type ownTool struct {
	title, description, schema string
	call                       func(s *Server, ctx context.Context, x *exchange, req mcp.Request, args json.RawMessage) (mcp.Result, error)
}

// ownTools returns the tools that this server itself provides. If the policy has a tool with the same name, clients
// see only the server's tool.
func ownTools() map[string]ownTool {
	return map[string]ownTool{
		"countersign.result": {
			title: "Result of a request",
			description: "Waits for the result of a call that waits for people. Give the request's id, which the answer to the call has. " +
				"Calling the tool again with the same arguments does the same.",
			schema: `{"type":"object","properties":{"request":{"type":"string","description":"such as req_06H1"}},"required":["request"],"additionalProperties":false}`,
			call:   (*Server).resultTool,
		},
		"countersign.answer": {
			title:       "Answer to an approver",
			description: "Answers a question that an approver has asked about a request. The answer to a call says when there is one.",
			schema: `{"type":"object","properties":{"request":{"type":"string"},"question":{"type":"integer","minimum":0},` +
				`"text":{"type":"string","minLength":1,"maxLength":3000}},"required":["request","question","text"],"additionalProperties":false}`,
			call: (*Server).answerTool,
		},
		"countersign.withdraw": {
			title:       "Withdraw a request",
			description: "Withdraws a call that has not begun to run, so that people need not decide it.",
			schema: `{"type":"object","properties":{"request":{"type":"string"},"reason":{"type":"string","maxLength":3000}},` +
				`"required":["request"],"additionalProperties":false}`,
			call: (*Server).withdrawTool,
		},
	}
}

// read parses the arguments of a tool of this server. The parameter known lists the allowed argument names. The
// argument "request" is required, and is the second result.
func read(args json.RawMessage, known ...string) (map[string]jsontext.Value, string, error) {
	of := object(args)
	for name := range of {
		if !slices.Contains(known, name) {
			return nil, "", invalid("an argument of this name is not known here")
		}
	}
	id := text(of["request"])
	if id == "" {
		return nil, "", invalid("request must be the id of a request, such as req_06H1")
	}
	return of, id, nil
}

// resultTool handles calls to the tool countersign.result.
func (s *Server) resultTool(ctx context.Context, x *exchange, req mcp.Request, args json.RawMessage) (mcp.Result, error) {
	_, id, err := read(args, "request")
	if err != nil {
		return nil, err
	}
	return s.hold(ctx, x, req, id, false)
}

// maxText limits texts for people, in characters.
const maxText = 3000

// answerTool handles calls to the tool countersign.answer.
func (s *Server) answerTool(ctx context.Context, x *exchange, _ mcp.Request, args json.RawMessage) (mcp.Result, error) {
	of, id, err := read(args, "request", "question", "text")
	if err != nil {
		return nil, err
	}
	var question int
	says := text(of["text"])
	if json.Unmarshal(of["question"], &question) != nil || question < 0 || says == "" || len([]rune(says)) > maxText {
		return nil, invalid("question must be the question's number, and text must have 1 to 3000 characters")
	}
	if err := s.Callers.Answer(ctx, x.client, id, question, says); err != nil {
		return s.unhandled(ctx, x, id, err)
	}
	return &mcp.CallToolResult{Content: texts("The answer is shown to the approvers. Call countersign.result to go on waiting."), Meta: mcp.Meta{requestKey: id}}, nil
}

// withdrawTool handles calls to the tool countersign.withdraw.
func (s *Server) withdrawTool(ctx context.Context, x *exchange, _ mcp.Request, args json.RawMessage) (mcp.Result, error) {
	of, id, err := read(args, "request", "reason")
	if err != nil {
		return nil, err
	}
	reason := text(of["reason"])
	if len([]rune(reason)) > maxText {
		return nil, invalid("reason must have at most 3000 characters")
	}
	if err := s.Callers.Withdraw(ctx, x.client, id, reason); err != nil {
		return s.unhandled(ctx, x, id, err)
	}
	s.answers(x, id)
	return &mcp.CallToolResult{Content: texts("The call is withdrawn, and will not run."), Meta: mcp.Meta{requestKey: id}}, nil
}
