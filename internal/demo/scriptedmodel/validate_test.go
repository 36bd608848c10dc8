package scriptedmodel_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"countersign/internal/demo/scriptedmodel"
)

const (
	asksTwo  = `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"b","arguments":"{}"}}]}`
	asksOne  = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"}}]}`
	answers1 = `{"role":"tool","tool_call_id":"c1","content":"1"}`
	answers2 = `{"role":"tool","tool_call_id":"c2","content":"2"}`
	hello    = `{"role":"user","content":"hi"}`
)

// TestWhatIsRefused sends one bad request for each row of the table.
func TestWhatIsRefused(t *testing.T) {
	messages := func(list ...string) string {
		return `{"model":"countersign-scripted","messages":[` + strings.Join(list, ",") + `]}`
	}
	with := func(more string) string {
		return `{"model":"countersign-scripted","messages":[` + hello + `],` + more + `}`
	}
	function := func(function string) string { return with(`"tools":[{"type":"function","function":` + function + `}]`) }
	schema := func(schema string) string { return function(`{"name":"a","parameters":` + schema + `}`) }
	for _, row := range []struct{ name, body, param, code, says string }{
		{"not JSON", `{"model":`, "", "", "could not parse"},
		{"two values", with(`"stream":false`) + `{}`, "", "", "something follows"},
		{"an array", `[]`, "", "invalid_type", "expected an object"},
		{"no model", `{"messages":[` + hello + `]}`, "model", "missing_required_parameter", "'model'"},
		{"model of wrong type", `{"model":7,"messages":[` + hello + `]}`, "model", "invalid_type", "expected a string, but got number"},
		{"unknown parameter", with(`"colour":"red"`), "colour", "unknown_parameter", "'colour'"},
		{"temperature", with(`"temperature":3`), "temperature", "decimal_out_of_range", "between 0 and 2"},
		{"max_tokens", with(`"max_tokens":0`), "max_tokens", "integer_below_min_value", "at least 1"},
		{"both limits", with(`"max_tokens":5,"max_completion_tokens":5`), "max_tokens", "invalid_parameter_combination", "same time"},
		{"two answers", with(`"n":2`), "n", "unsupported_value", "one answer"},
		{"stream options without stream", with(`"stream_options":{"include_usage":true}`), "stream_options", "", "only allowed when 'stream'"},

		{"no messages", `{"model":"countersign-scripted"}`, "messages", "missing_required_parameter", "'messages'"},
		{"empty messages", messages(), "messages", "empty_array", "empty array"},
		{"unknown role", messages(`{"role":"robot","content":"x"}`), "messages[0].role", "invalid_value", "'robot'"},
		{"function role", messages(`{"role":"function","name":"a","content":"x"}`), "messages[0].role", "invalid_value", "'function'"},
		{"no content", messages(`{"role":"user"}`), "messages[0].content", "", "not empty"},
		{"empty content", messages(`{"role":"user","content":""}`), "messages[0].content", "", "not empty"},
		{"null content without calls", messages(hello, `{"role":"assistant","content":null}`), "messages[1].content", "", "not empty"},
		{"content of wrong type", messages(`{"role":"user","content":7}`), "messages[0].content", "invalid_type", "string or array"},
		{"empty part", messages(`{"role":"user","content":[{"type":"text","text":""}]}`), "messages[0].content[0]", "invalid_value", "'text'"},
		{"image from the assistant", messages(`{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"x"}}]}`), "messages[0].content[0]", "invalid_value", "'image_url'"},
		{"name with a space", messages(`{"role":"user","name":"Sam Doe","content":"x"}`), "messages[0].name", "invalid_value", "pattern"},
		{"unknown field in a message", messages(`{"role":"user","content":"x","mood":"good"}`), "messages[0].mood", "unknown_parameter", "mood"},

		{"calls from a user", messages(`{"role":"user","content":"x","tool_calls":[]}`), "messages[0].tool_calls", "", "only allowed in messages with role 'assistant'"},
		{"no calls in the list", messages(hello, `{"role":"assistant","tool_calls":[]}`), "messages[1].tool_calls", "empty_array", "empty array"},
		{"call without an id", messages(hello, strings.Replace(asksOne, `"id":"c1",`, "", 1), answers1), "messages[1].tool_calls[0].id", "missing_required_parameter", "id"},
		{"call with a long id", messages(hello, strings.Replace(asksOne, "c1", strings.Repeat("c", 41), 1)), "messages[1].tool_calls[0].id", "string_above_max_length", "maximum length 40"},
		{"two calls with one id", messages(hello, strings.Replace(asksTwo, "c2", "c1", 1), answers1), "messages[1].tool_calls[1].id", "", "Duplicate"},
		{"call of another type", messages(hello, strings.Replace(asksOne, `"type":"function"`, `"type":"magic"`, 1)), "messages[1].tool_calls[0].type", "invalid_value", "'magic'"},
		{"call without a type", messages(hello, strings.Replace(asksOne, `"type":"function",`, ``, 1)), "messages[1].tool_calls[0].type", "invalid_value", "''"},
		{"call without a function", messages(hello, `{"role":"assistant","tool_calls":[{"id":"c1","type":"function"}]}`), "messages[1].tool_calls[0].function", "missing_required_parameter", "function"},
		{"call with a bad name", messages(hello, strings.Replace(asksOne, `"name":"a"`, `"name":"a b"`, 1)), "messages[1].tool_calls[0].function.name", "invalid_value", "pattern"},
		{"call with the stream's index", messages(hello, strings.Replace(asksOne, `"id":"c1"`, `"index":0,"id":"c1"`, 1), answers1), "messages[1].tool_calls[0].index", "unknown_parameter", "index"},
		{"arguments as an object", messages(hello, strings.Replace(asksOne, `"arguments":"{}"`, `"arguments":{}`, 1), answers1), "messages[1].tool_calls[0].function.arguments", "invalid_type", "expected a string, but got object"},
		{"no arguments", messages(hello, strings.Replace(asksOne, `,"arguments":"{}"`, ``, 1), answers1), "messages[1].tool_calls[0].function.arguments", "missing_required_parameter", "arguments"},

		{"result without a call", messages(hello, answers1), "messages[1].role", "", "must be a response to a preceding message"},
		{"result first", messages(answers1), "messages[0].role", "", "must be a response to a preceding message"},
		{"result of no call", messages(hello, asksOne, answers1, answers2), "messages[3].tool_call_id", "", "'c2' not found"},
		{"result without an id", messages(hello, asksOne, `{"role":"tool","content":"1"}`), "messages[2].tool_call_id", "missing_required_parameter", "tool_call_id"},
		{"result without content", messages(hello, asksOne, `{"role":"tool","tool_call_id":"c1"}`), "messages[2].content", "", "not empty"},
		{"two results of one call", messages(hello, asksTwo, answers1, answers1, answers2), "messages[3].tool_call_id", "", "Duplicate"},
		{"call without its result at the end", messages(hello, asksTwo, answers1), "messages[1].role", "", "did not have response messages: c2"},
		{"call without any result", messages(hello, asksTwo), "messages[1].role", "", "did not have response messages: c1, c2"},
		{"user between call and result", messages(hello, asksTwo, answers1, hello, answers2), "messages[1].role", "", "did not have response messages: c2"},
		{"result after the answer", messages(hello, asksOne, answers1, `{"role":"assistant","content":"done"}`, answers1), "messages[4].role", "", "must be a response"},
		{"id on a user's message", messages(`{"role":"user","content":"x","tool_call_id":"c1"}`), "messages[0].tool_call_id", "", "only allowed in messages with role 'tool'"},

		{"empty tools", with(`"tools":[]`), "tools", "empty_array", "empty array"},
		{"tool of another type", with(`"tools":[{"type":"magic"}]`), "tools[0].type", "invalid_value", "'magic'"},
		{"tool without a function", with(`"tools":[{"type":"function"}]`), "tools[0].function", "missing_required_parameter", "function"},
		{"tool with a dot", function(`{"name":"shop.refund"}`), "tools[0].function.name", "invalid_value", "pattern"},
		{"tool without a name", function(`{}`), "tools[0].function.name", "invalid_value", "pattern"},
		{"tool with a long name", function(`{"name":"` + strings.Repeat("a", 65) + `"}`), "tools[0].function.name", "invalid_value", "pattern"},
		{"tool with a long description", function(`{"name":"a","description":"` + strings.Repeat("a", 1025) + `"}`), "tools[0].function.description", "string_above_max_length", "1024"},
		{"two tools of one name", with(`"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]`), "tools[1].function.name", "", "two tools"},
		{"schema that is no object", schema(`"object"`), "tools[0].function.parameters", "invalid_function_parameters", "not of type 'object'"},
		{"schema of no type", schema(`{}`), "tools[0].function.parameters", "invalid_function_parameters", `type: "object"`},
		{"schema of an array", schema(`{"type":"array"}`), "tools[0].function.parameters", "invalid_function_parameters", `type: "object"`},
		{"property that is a string", schema(`{"type":"object","properties":{"x":"string"}}`), "tools[0].function.parameters", "invalid_function_parameters", "().properties.x"},
		{"property of unknown type", schema(`{"type":"object","properties":{"x":{"type":"text"}}}`), "tools[0].function.parameters", "invalid_function_parameters", `"text"`},
		{"array without items", schema(`{"type":"object","properties":{"x":{"type":"array"}}}`), "tools[0].function.parameters", "invalid_function_parameters", "array schema missing items"},
		{"array deep down", schema(`{"type":"object","properties":{"x":{"anyOf":[{"type":"null"},{"type":"array"}]}}}`), "tools[0].function.parameters", "invalid_function_parameters", "().properties.x.anyOf[1]"},
		{"empty enum", schema(`{"type":"object","properties":{"x":{"enum":[]}}}`), "tools[0].function.parameters", "invalid_function_parameters", "'enum'"},
		{"required that is no list", schema(`{"type":"object","required":"x"}`), "tools[0].function.parameters", "invalid_function_parameters", "'required'"},
		{"properties that are a list", schema(`{"type":"object","properties":[]}`), "tools[0].function.parameters", "invalid_function_parameters", "'properties'"},
		{"schema without end", schema(strings.Repeat(`{"type":"object","properties":{"x":`, 40) + `true` + strings.Repeat(`}}`, 40)), "tools[0].function.parameters", "invalid_function_parameters", "too deeply"},
		{"choice without tools", with(`"tool_choice":"auto"`), "tool_choice", "", "only allowed when 'tools'"},
		{"parallel without tools", with(`"parallel_tool_calls":true`), "parallel_tool_calls", "", "only allowed when 'tools'"},
		{"choice of nothing known", with(`"tools":[{"type":"function","function":{"name":"a"}}],"tool_choice":"maybe"`), "tool_choice", "invalid_value", "'maybe'"},
		{"choice of another tool", with(`"tools":[{"type":"function","function":{"name":"a"}}],"tool_choice":{"type":"function","function":{"name":"b"}}`), "tool_choice", "", "'b' not found"},

		{"too long", messages(`{"role":"user","content":"` + strings.Repeat("long ", 30000) + `"}`), "messages", "context_length_exceeded", "maximum context length is 32768"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.NewScript(scriptedmodel.Reply{Content: "fine"})})
			w := post(t, s, row.body)
			message, code, param := errorOf(t, w)
			if w.Code != http.StatusBadRequest || code != row.code || param != row.param || !strings.Contains(message, row.says) {
				t.Errorf("got %d code %q param %q: %s\nwant 400 code %q param %q: …%s…", w.Code, code, param, message, row.code, row.param, row.says)
			}
		})
	}
}

func TestWhatIsTaken(t *testing.T) {
	for name, body := range map[string]string{
		"two steps":            `"messages":[` + hello + `,` + asksTwo + `,` + answers2 + `,` + answers1 + `,` + asksOne + `,` + answers1 + `]`,
		"results in any order": `"messages":[` + hello + `,` + asksTwo + `,` + answers2 + `,` + answers1 + `,` + hello + `]`,
		"parts":                `"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:,"}}]}]`,
		"broken arguments":     `"messages":[` + hello + `,` + strings.Replace(asksOne, `"{}"`, `"{\"x"`, 1) + `,` + answers1 + `]`,
		"tools":                `"messages":[` + hello + `],"tools":[{"type":"function","function":{"name":"a-b_C9","description":"x","strict":false,"parameters":{"type":"object","properties":{"x":{"type":["string","null"]},"y":{"type":"array","items":{"$ref":"#/$defs/z"}}},"$defs":{"z":true},"additionalProperties":false}}}],"tool_choice":"required","parallel_tool_calls":false`,
		"settings":             `"messages":[{"role":"developer","content":"x"}],"temperature":0,"seed":1,"stop":["x"],"user":"u","max_completion_tokens":100`,
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.NewScript(scriptedmodel.Reply{Content: "fine"})})
			if w := post(t, s, `{"model":"countersign-scripted",`+body+`}`); w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

func TestUnknownModelAndPath(t *testing.T) {
	s := scriptedmodel.New(scriptedmodel.Config{})
	w := post(t, s, `{"model":"gpt-99","messages":[`+hello+`]}`)
	if message, code, _ := errorOf(t, w); w.Code != http.StatusNotFound || code != "model_not_found" || !strings.Contains(message, "`gpt-99` does not exist") {
		t.Errorf("%d %s %s", w.Code, code, message)
	}
}

// FuzzParse checks that no request crashes the service, and that every answer is JSON or a stream.
func FuzzParse(f *testing.F) {
	f.Add(`{"model":"countersign-scripted","messages":[` + hello + `,` + asksTwo + `,` + answers1 + `]}`)
	f.Add(`{"model":"countersign-scripted","messages":[` + hello + `],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"type":"array"}}}}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		s := scriptedmodel.New(scriptedmodel.Config{Responder: scriptedmodel.NewScript(scriptedmodel.Reply{Content: "fine"})})
		w := post(t, s, body)
		if !json.Valid(w.Body.Bytes()) && !strings.HasPrefix(w.Body.String(), "data: ") {
			t.Errorf("%q was answered with %d %s", body, w.Code, w.Body)
		}
	})
}

// TestGoOpenAIsOwnHistoryPasses adds a streamed reply and the results of its calls to the history, as an agent does.
// The scripted model must accept this history in the next request.
func TestGoOpenAIsOwnHistoryPasses(t *testing.T) {
	script := scriptedmodel.NewScript(
		scriptedmodel.Reply{Calls: []scriptedmodel.Call{{Name: "a", Arguments: `{"x":1}`}, {Name: "b", Arguments: `{}`}}},
		scriptedmodel.Reply{Content: "Both are done."},
	)
	s, c := serve(t, scriptedmodel.Config{Responder: script, Record: true})
	request := ask(system("x"), user("do both"))
	step, err := read(t.Context(), c, request)
	if err != nil {
		t.Fatal(err)
	}
	request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: "assistant", ToolCalls: step.calls})
	for _, call := range step.calls {
		request.Messages = append(request.Messages, openai.ChatCompletionMessage{Role: "tool", ToolCallID: call.ID, Content: `{"ok":true}`})
	}
	last, err := read(t.Context(), c, request)
	if err != nil || last.content != "Both are done." || last.finish != openai.FinishReasonStop {
		t.Errorf("%+v, %v", last, err)
	}
	seen := s.Requests()
	if len(seen) != 2 || len(seen[1].Messages) != 5 || seen[1].Last().ToolCallID != step.calls[1].ID || !seen[0].Stream || script.Left() != 0 {
		t.Errorf("recorded %+v", seen)
	}
}
