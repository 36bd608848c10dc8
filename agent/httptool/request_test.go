package httptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"countersign/agent"
	"countersign/internal/tracing"
	"countersign/internal/tracing/tracingtest"
)

// placed is a declaration with an argument in every place.
const placed = `
method: POST
url: "SITE/v1/{segment}/x-{part}.json?q={q}&all={list}&both={left}-{right}&fixed=a%20b&key=${API_KEY}"
headers: {X-Note: "note {note}", X-Region: "${REGION}"}
arguments:
  type: object
  properties: {segment: {type: string}, part: {}, q: {}, list: {type: array}, left: {}, right: {}, note: {}, amount: {type: number}, more: {}}
  required: [segment, part]
  additionalProperties: true
`

// The test compares requests with the expected bytes.
func TestRequests(t *testing.T) {
	key := "key=k3y%26with%3Dodd%20chars"
	for _, tt := range []struct {
		name, args   string
		target, body string
		note         string
	}{
		{"all", `{"segment":"a","part":"b","q":"c","list":["x","y"],"left":1,"right":true,"note":"n","amount":1.10,"more":{"k":[1.0,12345678901234567890]}}`,
			"/v1/a/x-b.json?q=c&all=x&all=y&both=1-true&fixed=a%20b&" + key, `{"amount":1.10,"more":{"k":[1.0,12345678901234567890]}}`, "note n"},
		{"the least", `{"segment":"a","part":"b"}`, "/v1/a/x-b.json?fixed=a%20b&" + key, `{}`, ""},
		{"nulls", `{"segment":"a","part":"b","q":null,"list":null,"left":null,"note":null,"more":null}`, "/v1/a/x-b.json?fixed=a%20b&" + key, `{"more":null}`, ""},
		{"half of two", `{"segment":"a","part":"b","left":"x"}`, "/v1/a/x-b.json?fixed=a%20b&" + key, `{}`, ""},
		{"an empty list", `{"segment":"a","part":"b","list":[]}`, "/v1/a/x-b.json?fixed=a%20b&" + key, `{}`, ""},
		{"empty text", `{"segment":"a","part":"b","q":""}`, "/v1/a/x-b.json?q=&fixed=a%20b&" + key, `{}`, ""},
		{"numbers keep their digits", `{"segment":"a","part":1.10,"q":12345678901234567890,"amount":1e3}`, "/v1/a/x-1.10.json?q=12345678901234567890&fixed=a%20b&" + key, `{"amount":1e3}`, ""},
		{"what could mean something", `{"segment":"a?b#c&d=e%f;g+h:i@j","part":"k l","q":"m&n=o#p+q%r/s?t;u"}`,
			"/v1/a%3Fb%23c%26d%3De%25f%3Bg%2Bh%3Ai%40j/x-k%20l.json?q=m%26n%3Do%23p%2Bq%25r%2Fs%3Ft%3Bu&fixed=a%20b&" + key, `{}`, ""},
		{"other letters", `{"segment":"Köln","part":"東京","q":"\ud83d\ude00"}`, "/v1/K%C3%B6ln/x-%E6%9D%B1%E4%BA%AC.json?q=%F0%9F%98%80&fixed=a%20b&" + key, `{}`, ""},
		{"a line break in a query", `{"segment":"a","part":"b","q":"x\r\nHost: y"}`, "/v1/a/x-b.json?q=x%0D%0AHost%3A%20y&fixed=a%20b&" + key, `{}`, ""},
		{"the body as it is written", `{ "segment":"a", "more": { "z" : 1 , "a":"\u00fc\/" }, "part":"b" }`, "/v1/a/x-b.json?fixed=a%20b&" + key, `{"more":{ "z" : 1 , "a":"\u00fc\/" }}`, ""},
		{"escaped names", `{"s\u0065gment":"a","part":"b","m\u006fre":1}`, "/v1/a/x-b.json?fixed=a%20b&" + key, `{"m\u006fre":1}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, status(200))
			if _, _, err := run(t, declared(t, s, placed), tt.args); err != nil {
				t.Fatal(err)
			}
			got, _ := s.last()
			if got.Target != tt.target || got.Body != tt.body || got.Header.Get("X-Note") != tt.note {
				t.Errorf("sent %s %s, %q\nwant %s %s, %q", got.Target, got.Body, got.Header.Get("X-Note"), tt.target, tt.body, tt.note)
			}
			if got.Header.Get("Content-Type") != "application/json" || got.Header.Get("X-Region") != "eu-1" || got.Method != http.MethodPost {
				t.Errorf("sent %+v", got)
			}
		})
	}
}

// If a value is not allowed in its place, the call is refused with an error that names the argument. No request is
// sent.
func TestRefusedArguments(t *testing.T) {
	s := serve(t, status(200))
	tool := declared(t, s, placed)
	refused := map[string]string{
		`{"part":"b"}`:                                        "segment is missing",
		`{"segment":null,"part":"b"}`:                         "segment is missing",
		`{"segment":"","part":"b"}`:                           "segment is empty",
		`{"segment":{},"part":"b"}`:                           "segment must be a text",
		`{"segment":["a"],"part":"b"}`:                        "segment must be a text",
		`{"segment":"a","part":"b","q":{"x":1}}`:              "q must hold only texts",
		`{"segment":"a","part":"b","q":[[1]]}`:                "q must hold only texts",
		`{"segment":"a","part":"b","q":[null]}`:               "q must hold only texts",
		`{"segment":"a","part":"b","left":[1],"right":2}`:     "left must be a text",
		`{"segment":"a","part":"b","note":"x\r\nX-Admin: 1"}`: "note has a character that is not allowed in the header X-Note",
		`{"segment":"a","part":"b","note":"\u0000"}`:          "note has a character",
		`{"segment":"a","part":"b","note":"ü"}`:               "note has a character",
		`{"segment":"a","part":"b","note":"x "}`:              "X-Note would begin or end with a space",
		`{"segment":"a","part":"b","note":["x"]}`:             "note must be a text",
		`[]`:             "the arguments are not a JSON object",
		`{"segment":"a"`: "the arguments are not a JSON object",
		`{"segment":"a","segment":"b","part":"c"}`: "the arguments are not a JSON object",
		`{"segment":"a"} {}`:                       "the arguments are not a JSON object",
	}
	for _, way := range []string{
		"..", ".", "/", `\`, "../admin", "a/b", "%2e%2e", "%252e%252e", "%2F", "%252F", "..%2fadmin", `..\\admin`, "%5c", "..;x", "%2e%2e;x", "a\x00", "a\n", "%00", "..%3bx",
	} {
		args, err := json.Marshal(map[string]string{"segment": way, "part": "b"})
		if err != nil {
			t.Fatal(err)
		}
		refused[string(args)] = "path"
	}
	for args, want := range refused {
		_, _, err := run(t, tool, args)
		if err == nil || !strings.HasPrefix(err.Error(), "nothing was sent: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", args, err, want)
		}
	}
	// A call is also refused if two adjacent arguments together form a dot segment.
	two := declared(t, s, "url: 'SITE/a/{x}{y}/b'\narguments: {type: object, properties: {x: {}, y: {}}, required: [x, y]}\n")
	for _, args := range []string{`{"x":".","y":"."}`, `{"x":"%2e","y":"."}`, `{"x":"%2","y":"e"}`} {
		if _, _, err := run(t, two, args); err == nil {
			t.Errorf("%s was sent", args)
		}
	}
	if got, n := s.last(); n != 0 {
		t.Errorf("%d requests were sent, such as %+v", n, got)
	}
}

func TestForms(t *testing.T) {
	s := serve(t, status(200))
	tool := declared(t, s, "url: SITE/it\nmethod: POST\nbody: form\narguments: {type: object, properties: {a: {}, b: {}, c: {}}}\n")
	if _, _, err := run(t, tool, `{"a":"x y&z=1","b":[1.10,true],"c":null}`); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.last(); got.Body != "a=x+y%26z%3D1&b=1.10&b=true" || got.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		t.Errorf("%+v", got)
	}
	for _, args := range []string{`{"a":{"b":1}}`, `{"a":[[1]]}`} {
		if _, _, err := run(t, tool, args); err == nil || !strings.HasPrefix(err.Error(), "nothing was sent: a must ") {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestNoBody(t *testing.T) {
	s := serve(t, status(200))
	for method, yaml := range map[string]string{
		"GET": "url: SITE/it\n", "DELETE": "url: SITE/it\nmethod: DELETE\n", "POST": "url: SITE/it\nmethod: POST\nbody: none\n",
	} {
		if _, _, err := run(t, declared(t, s, yaml), `{}`); err != nil {
			t.Fatal(err)
		}
		got, _ := s.last()
		if got.Method != method || got.Body != "" || got.Header.Get("Content-Type") != "" || got.Header.Get("User-Agent") != "countersign" {
			t.Errorf("%+v", got)
		}
	}
	if _, _, err := run(t, declared(t, s, "url: SITE/it\nmethod: DELETE\nbody: json\narguments: {type: object, properties: {a: {}}}\n"), `{"a":1}`); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.last(); got.Body != `{"a":1}` {
		t.Errorf("%+v", got)
	}
}

func TestKeys(t *testing.T) {
	s := serve(t, status(200))
	if _, _, err := run(t, declared(t, s, repeated), `{}`); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.last(); got.Header.Get("Idempotency-Key") != "exec_1" {
		t.Errorf("%+v", got.Header)
	}
}

// If the address comes from the environment, requests go only to that address.
func TestAddressFromTheEnvironment(t *testing.T) {
	s := serve(t, status(200))
	environment["BASE"] = s.URL + "/base"
	defer delete(environment, "BASE")
	const yaml = "url: '${BASE}/v1/{id}?all={id}'\narguments: {type: object, properties: {id: {type: string}}, required: [id]}\n"
	if _, _, err := run(t, declared(t, s, yaml), `{"id":"7"}`); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.last(); got.Target != "/base/v1/7?all=7" {
		t.Errorf("%+v", got)
	}
	for value, want := range map[string]string{
		"":                       "BASE is not set in the environment",
		"api.example.com":        "not a URL of a server",
		"https://":               "not a URL of a server",
		"https://me@example.com": "comes after a user name",
		"http://0x7f.1":          "unusual notation",
		"ftp://example.com":      "neither http nor https",
		"https://exa mple.com":   "not a URL of a server",
	} {
		environment["BASE"] = value
		tools, errs := declare(t, s, yaml)
		if len(tools) != 0 || len(errs) != 1 || !strings.Contains(errs[0].Error(), want) || !strings.HasPrefix(errs[0].Error(), "http.it") {
			t.Errorf("%s: %d tools, %v", value, len(tools), errs)
		}
	}
	environment["BASE"] = s.URL
	environment["API_TOKEN_2"] = "a\nb"
	defer delete(environment, "API_TOKEN_2")
	if tools, errs := declare(t, s, "url: SITE/it\nheaders: {X-Token: '${API_TOKEN_2}'}\n"); len(tools) != 0 || len(errs) != 1 || !strings.Contains(errs[0].Error(), "line break") || strings.Contains(errs[0].Error(), "a\nb") {
		t.Errorf("%d tools, %v", len(tools), errs)
	}
}

// Tools can be listed without the values of environment variables.
func TestWithoutEnvironment(t *testing.T) {
	s := serve(t, status(200))
	tool := declared(t, s, placed)
	looked := declaredWithout(t, s, placed)
	if cmp.Diff(string(tool.Definition), string(looked.Definition)) != "" || looked.Name != "it" || strings.Contains(string(tool.Definition), "k3y") {
		t.Errorf("%s\n%s", tool.Definition, looked.Definition)
	}
	if _, _, err := run(t, looked, `{"segment":"a","part":"b"}`); outcome(err) != "failed" {
		t.Errorf("%v", err)
	}
	if _, n := s.last(); n != 0 {
		t.Error("a request was sent")
	}
}

// Different declarations give different definitions, and the tool's hash covers the definition. So an approval of the
// previous tool is not valid for the changed tool.
func TestDefinitions(t *testing.T) {
	s := serve(t, status(200))
	seen := map[string]string{}
	for _, yaml := range []string{
		reads, writes, repeated, "url: SITE/there\n", "url: 'SITE/it?a=b'\n", reads + "headers: {A: b}\n", reads + "headers: {A: '${REGION}'}\n", reads + "result: {pointer: /a}\n",
		reads + "result: {status: [404]}\n", writes + "body: none\n",
	} {
		d := string(declared(t, s, yaml).Definition)
		if other, ok := seen[d]; ok || !json.Valid([]byte(d)) {
			t.Errorf("the same definition for\n%s and\n%s", yaml, other)
		}
		seen[d] = yaml
	}
}

// For every request that is sent, the server decodes exactly the original value of each argument.
func TestServerDecodesWhatWasGiven(t *testing.T) {
	s := serve(t, status(200))
	tool := declared(t, s, strings.Replace(placed, "&fixed=a%20b&key=${API_KEY}", "", 1))
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c/\\.%2eF?#&=+;:@ "'<>{}|^\x00-\x1f\x7f]{0,8}`), rapid.SampledFrom([]string{"..", ".", "%2e%2e", "", "ü/é", "a&b=c", "\r\n"}))
	tame := rapid.StringMatching(`[a-zA-Z0-9ü东?#&=+;:@ "'<>{}|^$,!*()~_-]{1,8}`)
	ascii := rapid.StringMatching(`[!-~]([ -~]{0,6}[!-~])?`)
	sent, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		segment, part := rapid.OneOf(tame, tame, tame, text).Draw(rt, "segment"), rapid.OneOf(tame, tame, tame, text).Draw(rt, "part")
		q, note := text.Draw(rt, "q"), rapid.OneOf(ascii, ascii, ascii, text).Draw(rt, "note")
		list := rapid.SliceOfN(text, 0, 3).Draw(rt, "list")
		amount := rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,9})?`).Draw(rt, "amount")
		args := fmt.Sprintf(`{"segment":%s,"part":%s,"q":%s,"list":%s,"note":%s,"amount":%s}`, quoted(segment), quoted(part), quoted(q), quoted(list), quoted(note), amount)
		_, before := s.last()
		_, err := tool.Run(t.Context(), agent.Invocation{Args: []byte(args)})
		got, after := s.last()
		if err != nil {
			refused++
			if after != before || !strings.HasPrefix(err.Error(), "nothing was sent: ") {
				rt.Fatalf("%s: %v", args, err)
			}
			return
		}
		sent++
		if after != before+1 {
			rt.Fatalf("%s was sent %d times", args, after-before)
		}
		want := url.Values{"q": {q}}
		if len(list) > 0 {
			want["all"] = list
		}
		if got.Path != "/v1/"+segment+"/x-"+part+".json" || strings.Count(got.Target, "/") != 3 || !cmp.Equal(got.Query, want) || got.Body != `{"amount":`+amount+`}` || got.Header.Get("X-Note") != strings.TrimRight("note "+note, " ") {
			rt.Fatalf("%s was decoded as %+v", args, got)
		}
		for name := range got.Header {
			if !slices.Contains([]string{"Accept", "Content-Length", "Content-Type", "User-Agent", "X-Note", "X-Region", "Accept-Encoding"}, name) {
				rt.Fatalf("%s brought in the header %s", args, name)
			}
		}
	})
	t.Logf("sent=%d refused=%d wrong=0", sent, refused)
	if sent == 0 || refused == 0 {
		t.Error("either no arguments were sent or none were refused, so the test shows nothing")
	}
}

func quoted(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// A traced call has the header traceparent, and other calls do not have it. The header contains only the ids of the
// trace.
func TestTraceparent(t *testing.T) {
	s := serve(t, status(200))
	tool := declared(t, s, repeated)
	ctx, traceparent, _ := tracingtest.Within(t, tracing.Options{})
	for _, tt := range []struct {
		ctx  context.Context
		want string
	}{{ctx, traceparent}, {t.Context(), ""}} {
		if _, err := tool.Run(tt.ctx, agent.Invocation{Key: "exec_1", Args: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
		got, _ := s.last()
		if h := got.Header; h.Get("Traceparent") != tt.want || h.Get("Tracestate") != "" || h.Get("Baggage") != "" {
			t.Errorf("%v, want %q", h, tt.want)
		}
	}
}
