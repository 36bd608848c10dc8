package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/internal/demo/scriptedmodel"
	"countersign/store"
)

const good = `{"order_id":"A","amount":5}`

// malformed is a test case with one answer of an endpoint. Most of the answers come from real servers. runs lists the
// calls that may run, with exactly the bytes that the model wrote. fails says that the whole answer is discarded, and
// failed is the reason. text is the text for people.
type malformed struct {
	name   string
	body   string
	broken error // the connection breaks after the body with this error
	header http.Header
	status int

	runs    []string
	refused int
	text    string
	failed  cause
	fails   bool
	worth   bool
}

func one(index int, id, name, args string) string {
	return delta(calls(piece(index, id, name, args)), "")
}

func end(finish string) string { return delta("{}", finish) }

var malformedAnswers = []malformed{
	// Valid answers.
	{name: "text", body: stream(delta(says("Hel"), ""), delta(says("lo"), ""), end("stop"), "[DONE]"), text: "Hello"},
	{name: "one call", body: stream(one(0, "c1", "issue_refund", good), end("tool_calls"), "[DONE]"), runs: []string{"issue_refund " + good}},
	{name: "arguments in pieces", body: stream(one(0, "c1", "issue_refund", ""), one(0, "", "", good[:7]), one(0, "", "", good[7:]), end("tool_calls"), "[DONE]"), runs: []string{"issue_refund " + good}},
	{name: "two calls, one after the other", body: stream(one(0, "c1", "issue_refund", good), one(1, "c2", "set_price", `{"price":1}`), end("tool_calls"), "[DONE]"), runs: []string{"issue_refund " + good, `set_price {"price":1}`}},
	{name: "two calls, their pieces in turns", body: stream(one(0, "c1", "issue_refund", good[:5]), one(1, "c2", "set_price", `{"pr`), one(0, "", "", good[5:]), one(1, "", "", `ice":1}`), end("tool_calls"), "[DONE]"), runs: []string{"issue_refund " + good, `set_price {"price":1}`}},
	{name: "two calls in one chunk", body: stream(delta(calls(piece(0, "c1", "issue_refund", good), piece(1, "c2", "set_price", `{"price":1}`)), "tool_calls"), "[DONE]"), runs: []string{"issue_refund " + good, `set_price {"price":1}`}},
	{name: "the name on the wire", body: stream(one(0, "c1", "shop_look_up", `{}`), end("tool_calls"), "[DONE]"), runs: []string{"shop.look_up {}"}},
	{name: "spaces and order stay", body: stream(one(0, "c1", "issue_refund", "{ \"amount\" : 5.00,\n\"order_id\":\"A\" }"), end("tool_calls"), "[DONE]"), runs: []string{"issue_refund { \"amount\" : 5.00,\n\"order_id\":\"A\" }"}},
	{name: "escapes stay", body: stream(one(0, "c1", "issue_refund", `{"order_id":"\u0041","amount":5}`), end("tool_calls"), "[DONE]"), runs: []string{`issue_refund {"order_id":"\u0041","amount":5}`}},

	// Answers with wrong finish reasons.
	{name: "calls with finish reason stop", body: stream(one(0, "c1", "issue_refund", good), end("stop"), "[DONE]"), runs: []string{"issue_refund " + good}},
	{name: "calls with an unknown finish reason", body: stream(one(0, "c1", "issue_refund", good), end("eos"), "[DONE]"), runs: []string{"issue_refund " + good}},
	{name: "tool_calls without calls", body: stream(delta(says("Hello"), ""), end("tool_calls"), "[DONE]"), text: "Hello"},
	{name: "tool_calls and nothing", body: stream(end("tool_calls"), "[DONE]"), fails: true, failed: causeEmpty, worth: true},
	{name: "cut arguments with tool_calls", body: stream(one(0, "c1", "issue_refund", good[:12]), end("tool_calls"), "[DONE]"), refused: 1},
	{name: "cut arguments of the second call", body: stream(one(0, "c1", "issue_refund", good), one(1, "c2", "issue_refund", good[:12]), end("tool_calls"), "[DONE]"), runs: []string{"issue_refund " + good}, refused: 1},
	{name: "cut inside a string", body: stream(one(0, "c1", "issue_refund", `{"amount":5,"order_id":"A`), end("stop"), "[DONE]"), refused: 1},
	{name: "cut inside a number", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A","amount":50`), end("stop"), "[DONE]"), refused: 1},
	{name: "length, whole arguments", body: stream(one(0, "c1", "issue_refund", good), end("length"), "[DONE]"), refused: 1},
	{name: "length, cut arguments", body: stream(one(0, "c1", "issue_refund", good[:9]), end("length"), "[DONE]"), refused: 1},
	{name: "length under another name", body: stream(one(0, "c1", "issue_refund", good), end("max_tokens"), "[DONE]"), refused: 1},
	{name: "length, text", body: stream(delta(says("Once upon"), ""), end("length"), "[DONE]"), text: "Once upon"},
	{name: "length, nothing", body: stream(end("length"), "[DONE]"), fails: true, failed: causeRoom},
	{name: "length, only reasoning", body: stream(delta(`{"reasoning_content":"hm"}`, ""), end("length"), "[DONE]"), fails: true, failed: causeRoom},
	{name: "content filter, call", body: stream(one(0, "c1", "issue_refund", good), end("content_filter"), "[DONE]"), refused: 1},
	{name: "content filter, text", body: stream(delta(says("I"), ""), end("content_filter"), "[DONE]"), fails: true, failed: causeFilter},
	{name: "finish reason error", body: stream(one(0, "c1", "issue_refund", good), end("error"), "[DONE]"), fails: true, failed: causeDown, worth: true},
	{name: "finish reason null as a word", body: stream(one(0, "c1", "issue_refund", good), end("null"), "[DONE]"), fails: true, failed: causeCut, worth: true},

	// Streams that end too early.
	{name: "nothing at all", body: "", fails: true, failed: causeCut, worth: true},
	{name: "only the end", body: stream("[DONE]"), fails: true, failed: causeCut, worth: true},
	{name: "no finish reason, with the end", body: stream(one(0, "c1", "issue_refund", good), "[DONE]"), fails: true, failed: causeCut, worth: true},
	{name: "no finish reason, without the end", body: stream(one(0, "c1", "issue_refund", good)), fails: true, failed: causeCut, worth: true},
	{name: "text that is cut off", body: stream(delta(says("I have refunded"), "")), fails: true, failed: causeCut, worth: true},
	{name: "broken connection after a call", body: stream(one(0, "c1", "issue_refund", good)), broken: errReset, fails: true, failed: causeCut, worth: true},
	{name: "broken connection after text", body: stream(delta(says("I have"), "")), broken: io.ErrUnexpectedEOF, fails: true, failed: causeCut, worth: true},
	{name: "broken connection before anything", body: "", broken: errReset, fails: true, failed: causeCut, worth: true},
	{name: "broken connection after the finish reason", body: stream(delta(says("Hello"), ""), end("stop")), broken: errReset, text: "Hello"},
	{name: "finish reason without the end", body: stream(one(0, "c1", "issue_refund", good), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "an event cut in the middle", body: stream(one(0, "c1", "issue_refund", good)) + `data: {"choices":[{"index":0,"de`, fails: true, failed: causeCut, worth: true},
	{name: "the last event without a line end", body: stream(delta(says("Hello"), "")) + "data: " + end("stop"), text: "Hello", fails: true, failed: causeCut, worth: true},

	// Data that is not an event.
	{name: "not JSON", body: stream(one(0, "c1", "issue_refund", good), "oops", end("stop")), fails: true, failed: causeCut, worth: true},
	{name: "a list", body: stream("[]", end("stop")), fails: true, failed: causeEndpoint},
	{name: "a number as content", body: stream(delta(`{"content":5}`, ""), end("stop")), fails: true, failed: causeEndpoint},
	{name: "an object as arguments", body: stream(delta(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"issue_refund","arguments":{"order_id":"A","amount":5}}}]}`, "tool_calls"), "[DONE]"), fails: true, failed: causeEndpoint},
	{name: "a text as index", body: stream(delta(`{"tool_calls":[{"index":"0","id":"c1","function":{"name":"shop_look_up","arguments":"{}"}}]}`, "tool_calls"), "[DONE]"), fails: true, failed: causeEndpoint},
	{name: "a fraction as usage", body: stream(delta(says("Hello"), "stop"), `{"choices":[],"usage":{"prompt_tokens":1.5,"total_tokens":3}}`, "[DONE]"), text: "Hello"},
	{name: "a fraction as time", body: stream(`{"id":"x","created":1758093959.25,"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}`, "[DONE]"), text: "Hello"},
	{name: "content in parts", body: stream(delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]},{"type":"text","text":"Hel"},{"type":"text","text":"l"}]}`, ""), delta(says("o"), "stop"), "[DONE]"), text: "Hello"},
	{name: "content in parts, without text", body: stream(delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}`, ""), one(0, "c1", "shop_look_up", `{}`), end("tool_calls"), "[DONE]"), runs: []string{"shop.look_up {}"}},
	{name: "bytes that are not UTF-8", body: stream(one(0, "c1", "issue_refund", good[:17]), "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\xff5}\"}}]}}]}", end("tool_calls")), fails: true, failed: causeCut, worth: true},
	{name: "half a surrogate pair in the arguments", body: stream(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"issue_refund","arguments":"{\"amount\":5,\"order_id\":\"\ud83d\"}"}}]},"finish_reason":"tool_calls"}]}`), refused: 1},
	{name: "a surrogate pair in two events", body: stream(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"issue_refund","arguments":"{\"amount\":5,\"order_id\":\"\ud83d"}}]}}]}`, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\"}"}}]},"finish_reason":"tool_calls"}]}`), refused: 1},
	{name: "empty choices", body: stream(`{"choices":[]}`, `{}`, delta(says("Hello"), ""), `{"choices":null,"usage":{"total_tokens":3}}`, end("stop"), "[DONE]"), text: "Hello"},
	{name: "a second choice", body: stream(`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, delta(says("Hello"), ""), end("stop"), "[DONE]"), text: "Hello"},
	{name: "null delta fields", body: stream(delta(`{"role":"assistant","content":null,"tool_calls":null,"refusal":null}`, ""), delta(says("Hello"), "stop"), "[DONE]"), text: "Hello"},
	{name: "comments and other fields", body: ": keep alive\n\n: keep alive\n\nevent: message\nid: 7\nretry: 10\n" + stream(delta(says("Hello"), ""), end("stop"), "[DONE]"), text: "Hello"},
	{name: "many comments", body: strings.Repeat(": processing\n\n", 1000) + stream(delta(says("Hello"), ""), end("stop"), "[DONE]"), text: "Hello"},
	{name: "carriage returns", body: strings.ReplaceAll(stream(delta(says("Hello"), ""), end("stop"), "[DONE]"), "\n", "\r\n"), text: "Hello"},
	{name: "no space after data", body: strings.ReplaceAll(stream(delta(says("Hello"), ""), end("stop"), "[DONE]"), "data: ", "data:"), text: "Hello"},

	// Errors in the middle of a stream.
	{name: "an error event", body: stream(delta(says("I"), ""), `{"error":{"message":"The server had an error","type":"server_error"}}`), fails: true, failed: causeDown, worth: true},
	{name: "an error event after comments", body: ": processing\n\n" + stream(`{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`), fails: true, failed: causeBusy, worth: true},
	{name: "an error beside choices", body: stream(`{"id":"x","error":{"message":"upstream failed","code":502},"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`), fails: true, failed: causeDown, worth: true},
	{name: "an error without a message", body: stream(`{"id":"x","error":{"code":500}}`, end("stop")), fails: true, failed: causeDown, worth: true},
	{name: "an error that is only a text", body: stream(delta(says("I"), ""), `{"error":"model is overloaded"}`, "[DONE]"), fails: true, failed: causeDown, worth: true},
	{name: "an error that is only a text: too long", body: stream(`{"error": "the prompt is too long: 9000 tokens"}`, "[DONE]"), fails: true, failed: causeLong},
	{name: "an error that is a text instead of a stream", header: http.Header{"Content-Type": {"application/json"}}, body: `{"error":"model is overloaded"}`, fails: true, failed: causeDown, worth: true},
	{name: "an error that is a word", body: stream(`{"id":"x","error":"overloaded"}`, end("stop")), fails: true, failed: causeDown, worth: true},
	{name: "an error event: too long", body: stream(`{"error":{"message":"This model's maximum context length is 8192 tokens","type":"invalid_request_error","code":"context_length_exceeded"}}`), fails: true, failed: causeLong},

	// Streams in which it is hard to tell to which call a piece belongs.
	{name: "no index, ids", body: stream(one(-1, "c1", "issue_refund", good), one(-1, "c2", "set_price", `{"price":1}`), end("tool_calls")), runs: []string{"issue_refund " + good, `set_price {"price":1}`}},
	{name: "no index, id in the first piece only", body: stream(one(-1, "c1", "issue_refund", ""), one(-1, "", "", good[:9]), one(-1, "", "", good[9:]), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "no index, no id", body: stream(one(-1, "", "issue_refund", good), one(-1, "", "set_price", `{"price":1}`), end("tool_calls")), runs: []string{"issue_refund " + good, `set_price {"price":1}`}},
	{name: "no index, no id, the same tool twice", body: stream(one(-1, "", "set_price", `{"price":1}`), one(-1, "", "set_price", `{"price":2}`), end("tool_calls")), runs: []string{`set_price {"price":1}`, `set_price {"price":2}`}},
	{name: "index 0 for all, ids", body: stream(one(0, "c1", "issue_refund", good), one(0, "c2", "set_price", `{"price":1}`), end("tool_calls")), runs: []string{"issue_refund " + good, `set_price {"price":1}`}},
	{name: "index 0 for all, no ids", body: stream(one(0, "", "issue_refund", good), one(0, "", "set_price", `{"price":1}`), end("tool_calls")), runs: []string{"issue_refund " + good, `set_price {"price":1}`}},
	{name: "the same id for two indexes", body: stream(one(0, "c1", "issue_refund", good), one(1, "c1", "set_price", `{"price":1}`), end("tool_calls")), runs: []string{"issue_refund " + good, `set_price {"price":1}`}},
	{name: "the same id without indexes", body: stream(one(-1, "c1", "set_price", `{"price":1}`), one(-1, "c1", "set_price", `{"price":2}`), end("tool_calls")), runs: []string{`set_price {"price":1}`, `set_price {"price":2}`}},
	{name: "a call in pieces, and then the whole call at the next index", body: stream(one(0, "c1", "issue_refund", ""), one(0, "", "", good[:9]), one(0, "", "", good[9:]), one(1, "c1", "issue_refund", good), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "a whole call twice at one index", body: stream(one(0, "c1", "issue_refund", good), one(0, "c1", "issue_refund", good), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "a whole call twice without indexes", body: stream(one(-1, "c1", "issue_refund", good), one(-1, "c1", "issue_refund", good), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "a whole call twice, with another call between", body: stream(one(0, "c1", "issue_refund", good), one(1, "c2", "set_price", `{"price":1}`), one(2, "c1", "issue_refund", good), end("tool_calls")), runs: []string{"issue_refund " + good, `set_price {"price":1}`}},
	{name: "the same call with two ids", body: stream(one(0, "c1", "issue_refund", good), one(1, "c2", "issue_refund", good), end("tool_calls")), runs: repeat("issue_refund "+good, 2)},
	{name: "the same call without ids", body: stream(one(0, "", "issue_refund", good), one(1, "", "issue_refund", good), end("tool_calls")), runs: repeat("issue_refund "+good, 2)},
	{name: "the same call with one id that is too long", body: stream(one(0, strings.Repeat("c", 5000), "issue_refund", good), one(1, strings.Repeat("c", 5000), "issue_refund", good), end("tool_calls")), runs: repeat("issue_refund "+good, 2)},
	{name: "forty calls, each one twice", body: stream(append(slices.Concat(hundred()[:40], hundred()[:40]), end("tool_calls"))...), runs: repeat(`set_price {"price":1}`, 40), refused: 1},
	{name: "id and name with each piece", body: stream(one(0, "c1", "issue_refund", good[:9]), one(0, "c1", "issue_refund", good[9:]), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "a new id with each piece", body: stream(one(0, "c1", "issue_refund", good[:9]), one(0, "c2", "", good[9:]), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "a new id with each piece, no index", body: stream(one(-1, "c1", "issue_refund", good[:9]), one(-1, "c2", "", good[9:]), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "the name in parts", body: stream(one(0, "c1", "issue_", ""), one(0, "", "refund", ""), one(0, "", "", good), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "an empty piece after a whole call", body: stream(one(0, "c1", "issue_refund", good), one(0, "c1", "issue_refund", ""), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "indexes with a gap", body: stream(one(3, "c1", "issue_refund", good), one(7, "c2", "set_price", `{"price":1}`), end("tool_calls")), runs: []string{"issue_refund " + good, `set_price {"price":1}`}},
	{name: "a negative index", body: stream(delta(`{"tool_calls":[{"index":-1,"id":"c1","function":{"name":"issue_refund","arguments":"{\"order_id\":\"A\",\"amount\":5}"}}]}`, "tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "more after whole arguments", body: stream(one(0, "c1", "issue_refund", good), one(0, "", "", good), end("tool_calls")), refused: 1},
	{name: "the older form of a call", body: stream(delta(`{"function_call":{"name":"issue_refund","arguments":"{\"order_id\":\"A\","}}`, ""), delta(`{"function_call":{"arguments":"\"amount\":5}"}}`, "function_call")), runs: []string{`issue_refund {"order_id":"A","amount":5}`}},
	{name: "text and a call", body: stream(delta(says("I look."), ""), one(0, "c1", "shop_look_up", `{}`), end("tool_calls")), runs: []string{"shop.look_up {}"}, text: "I look."},

	// Calls that must be refused.
	{name: "no name", body: stream(one(0, "c1", "", good), end("tool_calls")), refused: 1},
	{name: "an unknown tool", body: stream(one(0, "c1", "delete_everything", good), end("tool_calls")), refused: 1},
	{name: "a tool in other case", body: stream(one(0, "c1", "Issue_Refund", good), end("tool_calls")), refused: 1},
	{name: "a tool with a space", body: stream(one(0, "c1", "issue_refund ", good), end("tool_calls")), refused: 1},
	{name: "a name of a thousand letters", body: stream(one(0, "c1", strings.Repeat("issue_refund", 100), good), end("tool_calls")), refused: 1},
	{name: "a name that is JSON", body: stream(one(0, "c1", `{"name":"issue_refund"}`, good), end("tool_calls")), refused: 1},
	{name: "a very long id", body: stream(one(0, strings.Repeat("c", 5000), "issue_refund", good), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "an id with line ends", body: stream(one(0, "c\n1", "issue_refund", good), end("tool_calls")), runs: []string{"issue_refund " + good}},
	{name: "no arguments", body: stream(one(0, "c1", "shop_look_up", ""), end("tool_calls")), refused: 1},
	{name: "only space", body: stream(one(0, "c1", "shop_look_up", "  "), end("tool_calls")), refused: 1},
	{name: "null", body: stream(one(0, "c1", "shop_look_up", "null"), end("tool_calls")), refused: 1},
	{name: "a list of arguments", body: stream(one(0, "c1", "issue_refund", "["+good+"]"), end("tool_calls")), refused: 1},
	{name: "a text of JSON", body: stream(one(0, "c1", "issue_refund", string(must(json.Marshal(good)))), end("tool_calls")), refused: 1},
	{name: "a fence around it", body: stream(one(0, "c1", "issue_refund", "```json\n"+good+"\n```"), end("tool_calls")), refused: 1},
	{name: "words before it", body: stream(one(0, "c1", "issue_refund", "Here: "+good), end("tool_calls")), refused: 1},
	{name: "a trailing comma", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A","amount":5,}`), end("tool_calls")), refused: 1},
	{name: "single quotes", body: stream(one(0, "c1", "issue_refund", `{'order_id':'A','amount':5}`), end("tool_calls")), refused: 1},
	{name: "bare names", body: stream(one(0, "c1", "issue_refund", `{order_id:"A",amount:5}`), end("tool_calls")), refused: 1},
	{name: "a comment", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A",/* all of it */"amount":5}`), end("tool_calls")), refused: 1},
	{name: "a name twice", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A","amount":5,"amount":5000}`), end("tool_calls")), refused: 1},
	{name: "a name twice in other case", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A","amount":5,"Amount":5000}`), end("tool_calls")), refused: 1},
	{name: "a name twice by an escape", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A","amount":5,"\u0061mount":5000}`), end("tool_calls")), refused: 1},
	{name: "an unknown name", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A","amount":5,"silent":true}`), end("tool_calls")), refused: 1},
	{name: "a missing name", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A"}`), end("tool_calls")), refused: 1},
	{name: "a number as text", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A","amount":"5"}`), end("tool_calls")), refused: 1},
	{name: "not a number", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A","amount":NaN}`), end("tool_calls")), refused: 1},
	{name: "a number out of range", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A","amount":1e999}`), end("tool_calls")), refused: 1},
	{name: "a number that takes for ever", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A","amount":1e-99999999}`), end("tool_calls")), refused: 1},
	{name: "a leading zero", body: stream(one(0, "c1", "issue_refund", `{"order_id":"A","amount":05}`), end("tool_calls")), refused: 1},
	{name: "a thousand levels", body: stream(one(0, "c1", "issue_refund", strings.Repeat(`{"a":`, 1000)+"1"+strings.Repeat("}", 1000)), end("tool_calls")), refused: 1},
	{name: "half a surrogate pair as an escape", body: stream(one(0, "c1", "issue_refund", `{"order_id":"\ud800","amount":5}`), end("tool_calls")), refused: 1},
	{name: "the replacement character", body: stream(one(0, "c1", "issue_refund", `{"order_id":"�","amount":5}`), end("tool_calls")), refused: 1},
	{name: "too large", body: stream(one(0, "c1", "issue_refund", `{"order_id":"`), one(0, "", "", strings.Repeat("A", approvers.MaxArgs)), one(0, "", "", `","amount":5}`), end("tool_calls")), refused: 1},
	{name: "a hundred calls", body: stream(append(hundred(), end("tool_calls"))...), runs: repeat(`set_price {"price":1}`, maxCalls), refused: 1},
	{name: "a hundred calls without indexes", body: stream(append(hundredPlain(), end("tool_calls"))...), runs: repeat(`set_price {"price":1}`, maxCalls), refused: 1},

	// Empty answers.
	{name: "empty text", body: stream(delta(says(""), ""), end("stop"), "[DONE]"), fails: true, failed: causeEmpty, worth: true},
	{name: "only space as text", body: stream(delta(says(" \n "), ""), end("stop"), "[DONE]"), fails: true, failed: causeEmpty, worth: true},
	{name: "only reasoning", body: stream(delta(`{"reasoning_content":"hm"}`, ""), end("stop"), "[DONE]"), fails: true, failed: causeEmpty, worth: true},
	{name: "a refusal", body: stream(delta(`{"refusal":"I can't help with that."}`, ""), end("stop"), "[DONE]"), text: "I can't help with that."},

	// Endless answers.
	{name: "an event without an end", body: "data: " + strings.Repeat("x", maxStreamLine+10), fails: true, failed: causeCut, worth: true},
	{name: "a comment without an end", body: ":" + strings.Repeat("x", maxStreamLine+10), fails: true, failed: causeCut, worth: true},

	// Responses that are not a stream, or not from a model.
	{name: "a whole answer instead of a stream", header: http.Header{"Content-Type": {"application/json"}}, body: `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}`, fails: true, failed: causeEndpoint},
	{name: "an error with status 200 instead of a stream", header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}, body: "{\n  \"error\": {\"message\": \"Provider returned error\", \"code\": 502}\n}\n", fails: true, failed: causeDown, worth: true},
	{name: "a full account with status 200 instead of a stream", header: http.Header{"Content-Type": {"application/json"}}, body: `{"error":{"message":"no credit","type":"insufficient_quota"}}`, fails: true, failed: causeQuota},
	{name: "a whole answer with an empty error", header: http.Header{"Content-Type": {"application/json"}}, body: `{"error":null,"choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}`, fails: true, failed: causeEndpoint},
	{name: "a page", header: http.Header{"Content-Type": {"text/html"}}, body: "<html>data: nothing</html>\n", fails: true, failed: causeEndpoint},
	{name: "status 500", status: 500, body: `{"error":{"message":"boom","type":"server_error"}}`, fails: true, failed: causeDown, worth: true},
	{name: "status 502, a page", status: 502, body: "<html>Bad Gateway</html>", fails: true, failed: causeDown, worth: true},
	{name: "status 529", status: 529, body: `{"error":{"message":"Overloaded","type":"overloaded_error"}}`, fails: true, failed: causeBusy, worth: true},
	{name: "status 429", status: 429, body: `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`, fails: true, failed: causeBusy, worth: true},
	{name: "status 429, no credit", status: 429, body: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, fails: true, failed: causeQuota},
	{name: "status 402", status: 402, body: `{"error":{"message":"Insufficient credits","code":402}}`, fails: true, failed: causeQuota},
	{name: "status 401", status: 401, body: `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`, fails: true, failed: causeKey},
	{name: "status 403, empty", status: 403, body: ``, fails: true, failed: causeKey},
	{name: "status 404", status: 404, body: `{"error":{"message":"The model does not exist","code":"model_not_found"}}`, fails: true, failed: causeModel},
	{name: "status 404, a page", status: 404, body: `404 page not found`, fails: true, failed: causeModel},
	{name: "status 400", status: 400, body: `{"error":{"message":"messages[1].role: no such role","type":"invalid_request_error"}}`, fails: true, failed: causeRequest},
	{name: "status 400, a list as message", status: 400, body: `{"error":{"message":["one","two"]}}`, fails: true, failed: causeRequest},
	{name: "status 400, filter", status: 400, body: `{"error":{"message":"filtered","code":"content_filter"}}`, fails: true, failed: causeFilter},
	{name: "status 400, too long", status: 400, body: `{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}`, fails: true, failed: causeLong},
	{name: "status 400, too long, without a code", status: 400, body: `{"error":{"message":"the request exceeds the available context size","type":"invalid_request_error"}}`, fails: true, failed: causeLong},
	{name: "status 429, larger than the limit for a minute", status: 429, body: `{"error":{"message":"Request too large for gpt-x in organization org-x on tokens per min (TPM): Limit 30000, Requested 45123. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}`, fails: true, failed: causeLong},
	{name: "status 413", status: 413, body: `{"error":{"message":"too large"}}`, fails: true, failed: causeLong},
	{name: "status 408", status: 408, body: ``, fails: true, failed: causeDown, worth: true},
	{name: "a redirect to nowhere", status: 304, body: ``, fails: true, failed: causeEndpoint},
}

func hundred() (out []string) {
	for i := range 100 {
		out = append(out, one(i, fmt.Sprint("c", i), "set_price", `{"price":1}`))
	}
	return out
}

func hundredPlain() (out []string) {
	for range 100 {
		out = append(out, one(-1, "", "set_price", `{"price":1}`))
	}
	return out
}

func repeat(s string, n int) (out []string) {
	for range n {
		out = append(out, s)
	}
	return out
}

// For every answer of the table, the agent does not crash and repairs nothing. The history afterwards is valid.
func TestMalformedAnswers(t *testing.T) {
	t.Logf("%d answers", len(malformedAnswers))
	strict := strictModel()
	for _, c := range malformedAnswers {
		t.Run(c.name, func(t *testing.T) {
			var body io.Reader = strings.NewReader(c.body)
			if c.broken != nil {
				body = io.MultiReader(body, brokenOff{c.broken})
			}
			if c.status == 0 {
				c.status = http.StatusOK
			} else {
				c.header = http.Header{"Content-Type": {"application/json"}}
			}
			d := &fakeWorkflow{brief: asked("Refund order A")}
			a := newAgent(d, answers(c.status, c.header, body))
			offered := a.Tools.Offered(d.brief.Agent, d.brief.Policy)
			r, err := a.model.ask(t.Context(), request("m", compose(d.brief, offered, 1<<20, a.Now(), false), offered, false), a.Tools.named, noWords)
			if c.fails {
				var f *failure
				if !errors.As(err, &f) {
					t.Fatalf("got %+v, %v; want a failure", r, err)
				}
				if f.cause != c.failed || f.worth != c.worth {
					t.Errorf("cause %d (worth another try: %t): %v; want %d (%t)", f.cause, f.worth, f, c.failed, c.worth)
				}
				if sentences[f.cause] == "" {
					t.Error("people are told nothing")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.text != c.text {
				t.Errorf("text %q, want %q", r.text, c.text)
			}
			step, runs, refused := propose(a, r.calls)
			if strings.Join(runs, "\n") != strings.Join(c.runs, "\n") || refused != c.refused {
				t.Errorf("runs %q and %d refused, want %q and %d", runs, refused, c.runs, c.refused)
			}
			if len(step) > 0 {
				validAfter(t, strict, d.brief, r.text, step)
			}
		})
	}
}

// propose treats calls as the workflow does, and returns the calls that would run.
func propose(a *Agent, asks []workflow.ModelCall) (step []store.Call, runs []string, refused int) {
	used := map[string]bool{}
	for i, c := range asks {
		problem := c.Fault
		tool, known := a.Tools.Tool(c.Tool)
		if problem == "" && !known {
			problem = "unknown"
		}
		if problem == "" {
			if _, err := approvers.StrictArgs([]byte(c.Args), false); err != nil {
				problem = err.Error()
			}
		}
		if problem == "" {
			if err := tool.Check(json.RawMessage(c.Args)); err != nil {
				problem = err.Error()
			}
		}
		if used[c.ID] || c.ID == "" {
			c.ID = fmt.Sprint("made_", i)
		}
		used[c.ID] = true
		call := store.Call{
			ID: fmt.Sprint("call_", i), Turn: "turn_1", Step: 1, Index: i, ModelID: c.ID, Tool: c.Tool, Args: c.Args,
			Outcome: approvers.OutcomeExecuted, Result: "ok",
		}
		if problem != "" {
			refused++
			call.Outcome, call.Result = approvers.OutcomeError, approvers.NewResult(approvers.OutcomeError, c.Tool, problem, "").Text()
		} else {
			runs = append(runs, c.Tool+" "+c.Args)
		}
		step = append(step, call)
	}
	return step, runs, refused
}

// strictModel is an endpoint that refuses invalid requests and answers every valid request with the same text.
func strictModel() *scriptedmodel.Server {
	return scriptedmodel.New(scriptedmodel.Config{
		Models: []string{"m"}, ContextTokens: 1 << 20, Record: true,
		Responder: scriptedmodel.ResponderFunc(func(context.Context, scriptedmodel.Request) (scriptedmodel.Reply, error) {
			return scriptedmodel.Reply{Content: "All right."}, nil
		}),
	})
}

// validAfter checks whether a strict endpoint accepts the history after a step.
func validAfter(t *testing.T, strict *scriptedmodel.Server, b workflow.Brief, text string, step []store.Call) {
	t.Helper()
	b.Messages = append(b.Messages, store.Message{
		Conversation: "conv_1", Seq: 2, Turn: "turn_1", Step: 1, Role: store.RoleAssistant, State: store.MessageTaken, Text: text, Calls: len(step),
	})
	b.Calls = map[string][]store.Call{"turn_1": step}
	b.Turn.Step = 1
	a := newAgent(&fakeWorkflow{brief: b}, strict.Transport())
	if _, _, err := a.answer(context.WithoutCancel(t.Context()), b, false, noWords); err != nil {
		t.Errorf("the history after it is refused: %v", err)
	}
}
