package scriptedmodel_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"countersign/internal/demo/scriptedmodel"
	"countersign/internal/demo/shop"
	"countersign/internal/testkit"
)

// The function "offered" returns the sample shop's tools as an agent offers them.
func offered(s *shop.Shop) []openai.Tool {
	var tools []openai.Tool
	for _, tool := range s.Tools() {
		tools = append(tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: tool.Name, Description: tool.Description, Parameters: tool.Schema}})
	}
	return tools
}

func newShop() *shop.Shop {
	return shop.New(func() time.Time { return time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC) })
}

// TestEveryAnswerParses sends every message of the demo model's conversations through a real client, with and without
// streaming, and compares the two answers.
func TestEveryAnswerParses(t *testing.T) {
	testkit.SkipIfShort(t)
	data, err := os.ReadFile("../demomodel/testdata/conversations.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := scriptedmodel.New(scriptedmodel.Config{APIKey: "sk-test"})
	c := client("http://model.invalid", s.Transport(), "sk-test")
	tools := offered(newShop())
	tried := 0
	for line := range strings.Lines(string(data)) {
		said, ok := strings.CutPrefix(strings.TrimSpace(line), "> ")
		if !ok {
			continue
		}
		tried++
		request := ask(system("You are the support agent."), user(said))
		request.Tools = tools
		whole, err := c.CreateChatCompletion(t.Context(), request)
		if err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
		stream, err := read(t.Context(), c, request)
		if err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		message := whole.Choices[0].Message
		if message.Content != stream.content || whole.Choices[0].FinishReason != stream.finish || *stream.usage != whole.Usage || fmt.Sprint(functions(message.ToolCalls)) != fmt.Sprint(functions(stream.calls)) {
			t.Errorf("%q: whole %+v\nstreamed %+v", said, message, stream)
		}
		if (stream.content == "") == (len(stream.calls) == 0) {
			t.Errorf("%q: neither or both of a text and calls: %+v", said, stream)
		}
	}
	if tried < 150 {
		t.Errorf("only %d messages were tried", tried)
	}
}

func functions(calls []openai.ToolCall) []openai.FunctionCall {
	list := make([]openai.FunctionCall, len(calls))
	for i, call := range calls {
		list[i] = call.Function
	}
	return list
}

// TestTheExerciseOverHTTP plays the first conversation of the demo model's conversations.txt over HTTP. The client
// keeps the history as an agent does.
func TestTheExerciseOverHTTP(t *testing.T) {
	_, c := serve(t, scriptedmodel.Config{})
	store := newShop()
	tools := map[string]shop.Tool{}
	for _, tool := range store.Tools() {
		tools[tool.Name] = tool
	}
	request := ask(system("You are the support agent."))
	request.Tools = offered(store)
	turn := func(said string) (calls []string, answer string) {
		request.Messages = append(request.Messages, user(said))
		for {
			step, err := read(t.Context(), c, request)
			if err != nil {
				t.Fatal(err)
			}
			if len(step.calls) == 0 {
				request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: "assistant", Content: step.content})
				return calls, step.content
			}
			request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: "assistant", ToolCalls: step.calls})
			for _, call := range step.calls {
				calls = append(calls, call.Function.Name+call.Function.Arguments)
				content := `{"status":"rejected","tool":"cancel_account","reason":"Not without a second request","decided_by":"Finance Director","guidance":"Offer an alternative."}`
				if call.Function.Name != "cancel_account" {
					result, err := tools[call.Function.Name].Run(t.Context(), call.ID, json.RawMessage(call.Function.Arguments))
					if err != nil {
						t.Fatal(err)
					}
					content = string(result)
				}
				request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: "tool", ToolCallID: call.ID, Content: content})
			}
		}
	}
	for _, l := range []struct {
		says   string
		calls  []string
		answer string
	}{
		{"Find the orders of customer jane@example.com", []string{`search_orders{"customer_email":"jane@example.com"}`}, "ORD-123"},
		{"Change the shipping address of ORD-123 to 12 Elm St, Springfield", []string{`update_shipping_address{"order_id":"ORD-123","address":"12 Elm St, Springfield"}`}, "12 Elm St"},
		{"Refund ORD-123, it arrived broken", []string{`issue_refund{"order_id":"ORD-123","amount":49.99,"currency":"USD","reason":"It arrived broken"}`}, "refunded $49.99 for order ORD-123"},
		{"Cancel account USR-456", []string{`cancel_account{"user_id":"USR-456"}`}, "deactivat"},
	} {
		calls, answer := turn(l.says)
		if !reflect.DeepEqual(calls, l.calls) || !strings.Contains(answer, l.answer) {
			t.Errorf("%q: %v, %q; want %v, %q", l.says, calls, answer, l.calls, l.answer)
		}
	}
	if ledger := store.Ledger(); len(ledger) != 2 {
		t.Errorf("ledger %+v, want the address and the refund", ledger)
	}
}

func TestToolChoice(t *testing.T) {
	_, c := serve(t, scriptedmodel.Config{})
	request := ask(user("Refund $5 of ORD-123 and $7 of ORD-131"))
	request.Tools = offered(newShop())
	got, err := read(t.Context(), c, request)
	if err != nil || len(got.calls) != 2 {
		t.Errorf("auto: %+v, %v; want two calls", got, err)
	}
	request.ParallelToolCalls = false
	if got, err = read(t.Context(), c, request); err != nil || len(got.calls) != 1 {
		t.Errorf("not in parallel: %+v, %v; want one call", got, err)
	}
	request.ToolChoice = "none"
	if got, err = read(t.Context(), c, request); err != nil || len(got.calls) != 0 || got.content == "" {
		t.Errorf("none: %+v, %v; want a text", got, err)
	}
	request.ToolChoice = openai.ToolChoice{Type: openai.ToolTypeFunction, Function: openai.ToolFunction{Name: "search_orders"}}
	if got, err = read(t.Context(), c, request); err != nil || len(got.calls) != 0 {
		t.Errorf("only search_orders: %+v, %v; want no refund", got, err)
	}
}
