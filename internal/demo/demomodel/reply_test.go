package demomodel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/internal/demo/demomodel"
	"countersign/internal/demo/shop"
)

// chat is a conversation with the real sample shop behind it.
type chat struct {
	t       *testing.T
	tools   map[string]shop.Tool
	offered []demomodel.Tool
	history []demomodel.Message
	fates   map[string]string // by tool: the outcome that replaces a run
	calls   int
}

func newChat(t *testing.T, without ...string) *chat {
	now := time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)
	c := &chat{t: t, tools: map[string]shop.Tool{}, fates: map[string]string{}, history: []demomodel.Message{{Role: "system", Content: "You are the support agent."}}}
	for _, tool := range shop.New(func() time.Time { return now }).Tools() {
		if strings.Contains(" "+strings.Join(without, " ")+" ", " "+tool.Name+" ") {
			continue
		}
		c.tools[tool.Name] = tool
		c.offered = append(c.offered, demomodel.Tool{Name: tool.Name, Parameters: tool.Schema})
	}
	return c
}

// say runs a whole turn for a message: first the calls of all steps, then the answer.
func (c *chat) say(text string) (steps []string, answer string) {
	c.t.Helper()
	c.history = append(c.history, demomodel.Message{Role: "user", Content: text})
	for range 10 {
		reply := demomodel.Reply(c.history, c.offered)
		if len(reply.Calls) == 0 {
			c.history = append(c.history, demomodel.Message{Role: "assistant", Content: reply.Text})
			return steps, reply.Text
		}
		var step []string
		var results []demomodel.Message
		for i := range reply.Calls {
			call := &reply.Calls[i]
			c.calls++
			call.ID = fmt.Sprintf("call_%d", c.calls)
			step = append(step, call.Name+call.Arguments)
			results = append(results, demomodel.Message{Role: "tool", CallID: call.ID, Content: c.run(*call)})
		}
		steps = append(steps, strings.Join(step, " & "))
		c.history = append(append(c.history, demomodel.Message{Role: "assistant", Calls: reply.Calls}), results...)
	}
	c.t.Fatalf("%q: no answer after 10 steps: %v", text, steps)
	return nil, ""
}

// run runs a call as the agent does. If the test prepared an outcome for the call, run returns this outcome and does
// not run the call.
func (c *chat) run(call demomodel.Call) string {
	tool, ok := c.tools[call.Name]
	if !ok {
		c.t.Fatalf("%s is not offered", call.Name)
	}
	if fate := c.fates[call.Name]; fate != "" {
		delete(c.fates, call.Name)
		if !strings.HasPrefix(fate, "run ") {
			return fate
		}
		// "run" with arguments means that the approver changed the arguments.
		args := strings.TrimPrefix(fate, "run ")
		result, err := tool.Run(c.t.Context(), call.ID, json.RawMessage(args))
		if err != nil {
			c.t.Fatal(err)
		}
		return fmt.Sprintf(`{"status":"executed","tool":%q,"reason":"Team Lead changed the arguments before approving","guidance":"It ran.","modified":{"by":"Team Lead","args":%s},"result":%s}`, call.Name, args, result)
	}
	result, err := tool.Run(c.t.Context(), call.ID, json.RawMessage(call.Arguments))
	if err != nil && strings.Contains(err.Error(), "are not right") {
		c.t.Errorf("%s%s does not fit the tool's schema: %v", call.Name, call.Arguments, err)
	}
	if err != nil {
		reason, _ := json.Marshal(err.Error())
		return fmt.Sprintf(`{"status":"error","tool":%q,"reason":%s,"guidance":"It did not succeed."}`, call.Name, reason)
	}
	return string(result)
}
