package demomodel_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"countersign/internal/demo/demomodel"
)

// The function "messages" returns all messages of people in the file of conversations.
func messages(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile(conversations)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(data)) {
		if said, ok := strings.CutPrefix(line, "> "); ok {
			list = append(list, strings.TrimSpace(strings.ReplaceAll(said, `\n`, "\n")))
		}
	}
	return list
}

// TestAnyConversationEnds plays random conversations: any messages in any order, any outcomes of calls and any offered
// tools. Each turn ends within a few steps, calls only offered tools, repeats no call, and says something.
func TestAnyConversationEnds(t *testing.T) {
	said := messages(t)
	all := newChat(t).offered
	kinds := []string{"", "rejected", "expired", "withdrawn", "revoked", "voided", "refused", "unknown", "error", "garbage", "null"}
	rapid.Check(t, func(t *rapid.T) {
		var tools []demomodel.Tool
		for _, tool := range all {
			if rapid.IntRange(0, 9).Draw(t, tool.Name) > 0 {
				tools = append(tools, tool)
			}
		}
		var c fates
		var history []demomodel.Message
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			history = append(history, demomodel.Message{Role: "user", Content: rapid.SampledFrom(said).Draw(t, "said")})
			made := map[string]bool{}
			for step := 0; ; step++ {
				if step > 4 {
					t.Fatalf("no answer to %q after %d steps", history[len(history)-1].Content, step)
				}
				reply := demomodel.Reply(history, tools)
				if len(reply.Calls) == 0 {
					if strings.TrimSpace(reply.Text) == "" {
						t.Fatalf("nothing was answered to %q", history)
					}
					history = append(history, demomodel.Message{Role: "assistant", Content: reply.Text})
					break
				}
				history = append(history, c.results(t, reply.Calls, tools, made, kinds)...)
			}
		}
	})
}

// fates draws the outcomes of calls at random.
type fates struct{ calls int }

func (f *fates) results(t *rapid.T, calls []demomodel.Call, tools []demomodel.Tool, made map[string]bool, kinds []string) []demomodel.Message {
	step := demomodel.Message{Role: "assistant"}
	var results []demomodel.Message
	for _, call := range calls {
		if !offers(tools, call.Name) {
			t.Fatalf("%s was called and is not offered", call.Name)
		}
		if key := call.Name + call.Arguments; made[key] {
			t.Fatalf("%s was called twice in one turn", key)
		} else {
			made[key] = true
		}
		if !json.Valid([]byte(call.Arguments)) {
			t.Fatalf("%s%s is not JSON", call.Name, call.Arguments)
		}
		f.calls++
		call.ID = string(rune('a'+f.calls%26)) + strings.Repeat("x", f.calls)
		step.Calls = append(step.Calls, call)
		results = append(results, demomodel.Message{Role: "tool", CallID: call.ID, Content: f.result(t, call, rapid.SampledFrom(kinds).Draw(t, "fate"))})
	}
	return append([]demomodel.Message{step}, results...)
}

func (f *fates) result(t *rapid.T, call demomodel.Call, kind string) string {
	switch kind {
	case "":
		if call.Name == "search_orders" {
			return rapid.SampledFrom([]string{
				`{"found":0,"orders":[]}`,
				`{"found":1,"orders":[{"order_id":"ORD-123","user_id":"USR-456","customer_name":"Jane Doe","customer_email":"jane@example.com","status":"delivered","total":49.99,"currency":"USD","paid":49.99,"refundable":49.99,"items":[{"name":"Teapot","quantity":1}]}]}`,
				`{"found":2,"orders":[{"order_id":"ORD-1"},{"order_id":"ORD-2","total":"many","items":[7,null]}]}`,
			}).Draw(t, "orders")
		}
		return `{"message":"It is done.","order_id":"ORD-123","amount":1,"currency":"USD","refundable":2}`
	case "garbage":
		return "Error: \x00 <html>"
	case "null":
		return "null"
	}
	return `{"status":"` + kind + `","tool":"` + call.Name + `","reason":"10 % or $5 at most","decided_by":"Team Lead"}`
}

func offers(tools []demomodel.Tool, name string) bool {
	for _, tool := range tools {
		if tool.Name == name {
			return true
		}
	}
	return false
}

// FuzzReply checks that no text of a person or a tool crashes the demo model.
func FuzzReply(f *testing.F) {
	for _, said := range messages(f) {
		f.Add(said, "yes", `{"found":1,"orders":[{"order_id":"ORD-1","total":5}]}`)
	}
	f.Add("Refund ORD-1 to \xff\xfe", "half", `{"status":"rejected","tool":"x","reason":"\u0000","modified":7}`)
	tools := []demomodel.Tool{{Name: "search_orders"}, {Name: "shop_issue_refund"}, {Name: "send_email", Parameters: json.RawMessage(`{"properties":{"recipient":{}}}`)}, {Name: "update_shipping_address"}, {Name: "apply_discount", Parameters: json.RawMessage(`7`)}}
	f.Fuzz(func(t *testing.T, first, second, result string) {
		history := []demomodel.Message{{Role: "user", Content: first}}
		for _, then := range []string{second, first} {
			for range 6 {
				reply := demomodel.Reply(history, tools)
				if len(reply.Calls) == 0 {
					history = append(history, demomodel.Message{Role: "assistant", Content: reply.Text})
					break
				}
				step := demomodel.Message{Role: "assistant", Calls: reply.Calls}
				history = append(history, step)
				for i := range step.Calls {
					step.Calls[i].ID = string(rune('a' + i))
					history = append(history, demomodel.Message{Role: "tool", CallID: step.Calls[i].ID, Content: result})
				}
			}
			history = append(history, demomodel.Message{Role: "user", Content: then})
		}
	})
}
