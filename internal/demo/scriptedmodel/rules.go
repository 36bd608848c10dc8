package scriptedmodel

import (
	"context"
	"slices"

	"countersign/internal/demo/demomodel"
)

// Rules returns the Responder of the demo, backed by package demomodel.
func Rules() Responder {
	return ResponderFunc(func(_ context.Context, request Request) (Reply, error) {
		history := make([]demomodel.Message, len(request.Messages))
		for i, m := range request.Messages {
			history[i] = demomodel.Message{Role: m.Role, Content: m.Content, CallID: m.ToolCallID}
			for _, call := range m.ToolCalls {
				history[i].Calls = append(history[i].Calls, demomodel.Call(call))
			}
		}
		offered := request.offered()
		answer := demomodel.Reply(history, offered)
		if slices.ContainsFunc(offered, func(t demomodel.Tool) bool { return t.Name == "answer" }) { // the bot offers this tool when it tests the connection
			return Reply{Calls: []Call{{Name: "answer", Arguments: `{"ok":true}`}}}, nil
		}
		reply := Reply{Content: answer.Text}
		for _, call := range answer.Calls {
			reply.Calls = append(reply.Calls, Call(call))
		}
		if !request.ParallelToolCalls && len(reply.Calls) > 1 {
			reply.Calls = reply.Calls[:1] // the other calls follow in the next steps
		}
		return reply, nil
	})
}

// The method "offered" returns the tools that the request's tool_choice allows.
func (r Request) offered() []demomodel.Tool {
	var tools []demomodel.Tool
	for _, t := range r.Tools {
		switch r.ToolChoice {
		case "none":
		case "auto", "required", t.Name:
			tools = append(tools, demomodel.Tool{Name: t.Name, Parameters: t.Parameters})
		}
	}
	return tools
}
