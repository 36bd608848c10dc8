package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"countersign/agent"
	"countersign/agent/jsonobject"
	"countersign/config"
	"countersign/internal/redact"
)

var errNoRoom = errors.New("no room")

// TestResults checks what the model and people get for each kind of result.
func TestResults(t *testing.T) {
	picture := base64.StdEncoding.EncodeToString([]byte("\x89PNG"))
	tests := []struct {
		name, raw, want string
		files           []string
	}{
		{"texts", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "a\nb", nil},
		{"nothing", `{}`, "(the tool ran and answered nothing)", nil},
		{"null", `{"content":null,"structuredContent":null,"isError":null}`, "(the tool ran and answered nothing)", nil},
		{"a text and null", `{"content":[{"type":"text","text":"a"}],"structuredContent":null}`, "a", nil},
		{"an image", `{"content":[{"type":"image","mimeType":"image/png","data":"` + picture + `"}]}`, "[image-1.png, image/png, 4 bytes: attached for the people in the thread]", []string{"image-1.png image/png 4"}},
		{"a sound", `{"content":[{"type":"audio","mimeType":"audio/wav","data":"` + picture + `"}]}`, "[audio-1.wav, audio/wav, 4 bytes: attached for the people in the thread]", []string{"audio-1.wav audio/wav 4"}},
		{"an odd type", `{"content":[{"type":"image","mimeType":"<b>","data":"` + picture + `"}]}`, "[image-1, application/octet-stream, 4 bytes: attached for the people in the thread]", []string{"image-1 application/octet-stream 4"}},
		{"a file", `{"content":[{"type":"resource","resource":{"uri":"file:///a/report 1.pdf?x","mimeType":"application/pdf","blob":"` + picture + `"}}]}`, "[report_1.pdf, application/pdf, 4 bytes: attached for the people in the thread]", []string{"report_1.pdf application/pdf 4"}},
		{"a nameless file", `{"content":[{"type":"resource","resource":{"uri":"","mimeType":"application/pdf","blob":"` + picture + `"}}]}`, "[file-1.pdf, application/pdf, 4 bytes: attached for the people in the thread]", []string{"file-1.pdf application/pdf 4"}},
		{"a text of a resource", `{"content":[{"type":"resource","resource":{"uri":"note://1","text":"words"}}]}`, "[resource note://1]\nwords", nil},
		{"a link", `{"content":[{"type":"resource_link","uri":"note://1","name":"Note","description":"of\nmine"}]}`, "[link to a resource that was not read: Note note://1 of mine]", nil},
		{"no base64", `{"content":[{"type":"image","mimeType":"image/png","data":"***"}]}`, "[an image that is not in base64, so it was left out]", nil},
		{"no part", `{"content":[7]}`, "[a part of the result is not an object]", nil},
		{"a part of tomorrow", `{"content":[{"type":"smell"}]}`, `[a part of the result, of the unknown kind "smell"]`, nil},
		{"values", `{"structuredContent":{"n":12345678901234567890, "m":1.0}}`, `{"n":12345678901234567890, "m":1.0}`, nil},
		{"values and the same as text", `{"content":[{"type":"text","text":"{\"m\":1.0,\n\"n\":1}"}],"structuredContent":{"n":1,"m":1.0}}`, "{\"m\":1.0,\n\"n\":1}", nil},
		{"a text, and the same wrapped", `{"content":[{"type":"text","text":"Wrote a.txt"}],"structuredContent":{"content":"Wrote a.txt"}}`, "Wrote a.txt", nil},
		{"a text, and more than the same wrapped", `{"content":[{"type":"text","text":"Wrote a.txt"}],"structuredContent":{"content":"Wrote a.txt","bytes":3}}`, "Wrote a.txt\n{\"content\":\"Wrote a.txt\",\"bytes\":3}", nil},
		{"values and other text", `{"content":[{"type":"text","text":"{\"n\":2}"}],"structuredContent":{"n":1}}`, "{\"n\":2}\n{\"n\":1}", nil},
	}
	for _, tt := range tests {
		var files []string
		got, err := result(definition{name: "t"}, redact.Values{}, []byte(tt.raw), func(f agent.File) error {
			files = append(files, fmt.Sprintf("%s %s %d", f.Name, f.Type, len(f.Data)))
			return nil
		})
		if err != nil || got != tt.want || strings.Join(files, "\n") != strings.Join(tt.files, "\n") {
			t.Errorf("%s: %q, %q, %v", tt.name, got, files, err)
		}
	}
}

// TestNoPromise checks an outputSchema that is null: the tool promises nothing. A result of null does not keep a promise.
func TestNoPromise(t *testing.T) {
	d, _, err := define(config.Server{Name: "s"}, []byte(`{"name":"act","description":null,"inputSchema":{"type":"object"},"outputSchema":null}`))
	if err != nil || d.output != nil {
		t.Errorf("%v, %v", d.output, err)
	}
	if d, _, err = define(config.Server{Name: "s"}, []byte(`{"name":"act","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`)); err != nil {
		t.Fatal(err)
	}
	if text, err := result(d, redact.Values{}, []byte(`{"content":[],"structuredContent":null}`), nil); !strings.Contains(said(err), "no structuredContent") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestPatternInAPromise checks an outputSchema with a pattern that Go's regular expressions don't support. The rest of
// the schema is checked.
func TestPatternInAPromise(t *testing.T) {
	d, _, err := define(config.Server{Name: "s"}, []byte(`{"name":"act","description":"x","inputSchema":{"type":"object"},`+
		`"outputSchema":{"type":"object","properties":{"mail":{"type":"string","pattern":"^(?!\\.)a"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]bool{`{"structuredContent":{"mail":"b"}}`: true, `{"structuredContent":{"mail":1}}`: false} {
		if text, err := result(d, redact.Values{}, []byte(raw), nil); (err == nil) != want {
			t.Errorf("%s: %q, %v", raw, text, err)
		}
	}
}

// TestFilesThatDoNotFit checks that the text for the model mentions each file that can't be attached.
func TestFilesThatDoNotFit(t *testing.T) {
	one := `{"type":"image","mimeType":"image/png","data":"AAAA"}`
	got, err := result(definition{}, redact.Values{}, []byte(`{"content":[`+strings.Repeat(one+",", maxFiles)+one+`]}`), func(agent.File) error { return nil })
	if err != nil || !strings.Contains(got, "left out, because a result may have at most 20 files") {
		t.Errorf("%q, %v", got, err)
	}
	got, err = result(definition{}, redact.Values{}, []byte(`{"content":[`+one+`]}`), func(agent.File) error { return errNoRoom })
	if err != nil || !strings.Contains(got, "could not be attached: no room") {
		t.Errorf("%q, %v", got, err)
	}
	got, err = result(definition{}, redact.Values{}, []byte(`{"content":[`+one+`]}`), nil)
	if err != nil || !strings.Contains(got, "nobody could see it here") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := result(definition{}, redact.Values{}, []byte(`{"content":[`+strings.Repeat("1,", maxParts)+`1]}`), nil); err == nil {
		t.Error("a result of too many parts is taken")
	}
	if _, err := result(definition{}, redact.Values{}, []byte(`{`), nil); err == nil {
		t.Error("a value that is not an object is accepted")
	}
}

// TestPromises checks a result that violates the outputSchema of the tool. The model must not get the result. The
// error must not claim that nothing was done.
func TestPromises(t *testing.T) {
	_, o := running(t, quick(), program(t, "bad", "promises"))
	tool := o.tool(t, "bad.act")
	for _, want := range []string{"violates its own outputSchema", "no structuredContent, which its outputSchema requires"} {
		_, err := call(t, tool, `{}`)
		if outcomeOf(err) != fails || !strings.Contains(said(err), want) || !strings.Contains(said(err), "act ran, but") || strings.Contains(said(err), "nothing was done") {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if text, err := call(t, tool, `{}`); err != nil || text != `{"n": 12345678901234567890}` {
		t.Errorf("%q, %v", text, err)
	}
}

// TestOddErrors checks errors with an invalid code or a long text, and invalid numbers.
func TestOddErrors(t *testing.T) {
	a := readError(jsonobject.Object{{Name: "code", Value: []byte(`"x"`)}})
	if outcomeOf(rejected(a, 200)) != unclear {
		t.Error("an error without a code claims that nothing was done")
	}
	long := rejected(&answer{code: codeInvalidParams, message: strings.Repeat("é", 5000)}, 200).Error()
	if len(long) > maxError+100 || !strings.HasSuffix(long, "é…") {
		t.Errorf("%d bytes", len(long))
	}
	for raw, want := range map[string]float64{"1.5": 1.5, "-1": 0, `"1"`: 0, "1e999": 0, "": 0} {
		if got := number([]byte(raw)); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`, `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"x"}]}}`, `{"id":2,"result":{"inputRequests":{"a":{"method":"elicitation/create","params":{}}},"resultType":"input_required"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"call-1","progress":1}}`, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`,
		`{"id":2,"error":{"code":-32042,"data":{"elicitations":[{"url":"https://example.com"}]}}}`, `[]`, `{"id":2`, "{\"id\":2,\"result\":{\"a\":\"\xff\"}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := newTap(discard, redact.Values{}, 1000, func() {}, func(json.RawMessage) {})
		call := &flight{token: "call-1", progress: func(agent.Progress) {}}
		p.begin(call)
		p.pending["1"], p.pending["2"] = &outgoing{method: "tools/list"}, &outgoing{method: "tools/call", flight: call}
		seen := p.in(raw, nil)
		if seen != nil {
			if _, err := jsonobject.Read(seen); err != nil {
				t.Errorf("the SDK is given %q: %v", seen, err)
			}
			if len(seen) > 4*len(raw)+500 {
				t.Errorf("%d bytes became %d", len(raw), len(seen))
			}
		}
		if a := call.answer.Load(); a != nil && a.result != nil {
			_, _ = result(definition{name: "t"}, redact.Values{}, a.result, nil)
		}
		_, _, _ = define(config.Server{Name: "s"}, raw)
	})
}
