package httptool_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"countersign/agent"
)

// answering returns a handler that answers every request with this body.
func answering(media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil // no type; without this line, net/http would guess one
		if media != "" {
			w.Header().Set("Content-Type", media)
		}
		fmt.Fprint(w, body)
	}
}

func TestAnswers(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\n\x00\x00"
	for _, tt := range []struct {
		name, media, body, result string
		want                      string // the text, or its beginning followed by …
		file                      string // name and media type of the attached file
		err                       string // a part of the error
	}{
		{name: "JSON as it is", media: "application/json", body: `{"n": 1.10, "big": 12345678901234567890}`, want: `{"n": 1.10, "big": 12345678901234567890}`},
		{name: "JSON of another kind", media: "application/hal+json", body: `[1]`, want: `[1]`},
		{name: "text", media: "text/plain; charset=utf-8", body: "Grüße", want: "Grüße"},
		{name: "text in Latin-1", media: "text/plain; charset=ISO-8859-1", body: "Gr\xfc\xdfe", want: "Grüße"},
		{name: "text with invalid characters", media: "text/plain", body: "a\xff\xfeb", want: "a�b\n[invalid characters are shown as �]"},
		{name: "JSON with invalid characters", media: "application/json", body: "{\"a\": \"\xff\"}", want: "{\"a\": \"�\"}\n[invalid characters are shown as �]"},
		{name: "a byte order mark", media: "application/json", body: "\xef\xbb\xbf{}", want: "{}"},
		{name: "HTML", media: "text/html", body: "<p>x</p>", want: "<p>x</p>"},
		{name: "XML", media: "application/atom+xml", body: "<a/>", want: "<a/>"},
		{name: "no type, text", body: "plain", want: "plain"},
		{name: "no type, no text", body: png, want: "The server answered 200 OK with a file: it.bin, application/octet-stream, 10 bytes.", file: "it.bin application/octet-stream"},
		{name: "an image", media: "image/png", body: png, want: "The server answered 200 OK with a file: it.png, image/png, 10 bytes.", file: "it.png image/png"},
		{name: "an invalid type", media: "nonsense/;;", body: "x", want: "x"},
		{name: "an image as text", media: "image/svg+xml", body: "<svg/>", want: "<svg/>"},
		{name: "nothing", media: "application/json", body: "", want: "The server answered 200 OK, with no body."},

		{name: "a member", media: "application/json", body: `{"a": {"b": [1, {"c": 2.50}]}}`, result: "{pointer: /a/b/1}", want: `{"c": 2.50}`},
		{name: "a text member", media: "application/json", body: `{"a": "x\ny"}`, result: "{pointer: /a}", want: "x\ny"},
		{name: "null", media: "application/json", body: `{"a": null}`, result: "{pointer: /a}", want: "null"},
		{name: "escapes", media: "application/json", body: `{"a/b": {"~": 1}}`, result: "{pointer: /a~1b/~0}", want: "1"},
		{name: "an empty name", media: "application/json", body: `{"": 1}`, result: "{pointer: /}", want: "1"},
		{name: "the first of two", media: "application/json", body: `{"a": 1, "a": 2}`, result: "{pointer: /a}", want: "1"},
		{name: "JSON called text", media: "text/plain", body: `{"a": 1}`, result: "{pointer: /a}", want: "1"},
		{name: "not there", media: "application/json", body: `{"a": 1}`, result: "{pointer: /b}", err: "nothing at /b"},
		{name: "behind the end", media: "application/json", body: `[1]`, result: "{pointer: /1}", err: "nothing at /1"},
		{name: "a leading zero", media: "application/json", body: `[1, 2]`, result: "{pointer: /01}", err: "nothing at /01"},
		{name: "the end's sign", media: "application/json", body: `[1]`, result: "{pointer: /-}", err: "nothing at /-"},
		{name: "within a number", media: "application/json", body: `{"a": 1}`, result: "{pointer: /a/b}", err: "nothing at /a/b"},
		{name: "no JSON for a pointer", media: "text/html", body: `<p>`, result: "{pointer: /a}", err: "not valid JSON"},
		{name: "no JSON", media: "text/html", body: `<p>`, result: "{as: json}", err: "not valid JSON"},
		{name: "JSON", media: "", body: ` {"a": 1} `, result: "{as: json}", want: ` {"a": 1} `},
		{name: "as text", media: "application/octet-stream", body: "a\x00b", result: "{as: text}", want: "a\x00b"},
		{name: "as a file", media: "application/json", body: "{}", result: "{as: file}", want: "The server answered 200 OK with a file: it.bin, application/json, 2 bytes.", file: "it.bin application/json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, yaml := range []string{reads, writes} {
				s := serve(t, answering(tt.media, tt.body))
				if tt.result != "" {
					yaml += "result: " + tt.result + "\n"
				}
				text, files, err := run(t, declared(t, s, yaml), `{}`)
				if !utf8.ValidString(text) {
					t.Errorf("no text: %q", text)
				}
				var attached string
				for _, f := range files {
					attached = f.Name + " " + f.Type
					if string(f.Data) != tt.body {
						t.Errorf("the file holds %q", f.Data)
					}
				}
				if attached != tt.file {
					t.Errorf("attached %q, want %q", attached, tt.file)
				}
				switch {
				case tt.err == "":
					if err != nil || text != tt.want {
						t.Errorf("%q, %v; want %q", text, err, tt.want)
					}
				case strings.HasPrefix(yaml, writes): // the write succeeded, and after an error the model would repeat it
					if err != nil || !strings.HasPrefix(text, "It was done: the server answered 200 OK. But ") || !strings.Contains(text, tt.err) {
						t.Errorf("%q, %v; want %q", text, err, tt.err)
					}
				default:
					if err == nil || !strings.Contains(err.Error(), tt.err) {
						t.Errorf("%q, %v; want an error with %q", text, err, tt.err)
					}
				}
			}
		})
	}
}

func TestLongAnswers(t *testing.T) {
	long := strings.Repeat("Ünï", 20<<10) // 100 KB
	s := serve(t, answering("text/plain", long))
	text, _, err := run(t, declared(t, s, reads+"max_result: 1KB\n"), `{}`)
	beginning, rest, _ := strings.Cut(text, "\n")
	if err != nil || len(beginning) > 1024 || len(beginning) < 1020 || !strings.HasPrefix(long, beginning) || !strings.HasPrefix(rest, "[cut: this is the beginning of a") {
		t.Errorf("%d bytes, %q, %v", len(beginning), rest, err)
	}
	text, _, err = run(t, declared(t, s, reads+"max_result: 1MB\n"), `{}`)
	if err != nil || text != long {
		t.Errorf("%d bytes, %v", len(text), err)
	}

	known := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(long)))
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, long)
	})
	text, _, err = run(t, declared(t, known, reads+"max_result: 1KB\n"), `{}`)
	if err != nil || !strings.HasSuffix(text, fmt.Sprintf("\n[cut: this is the beginning of an answer of %d bytes; ask for less at once]", len(long))) {
		t.Errorf("%q, %v", text[len(text)-100:], err)
	}

	// The pointer is applied to the whole response, and not only to the first max_result bytes.
	s = serve(t, answering("application/json", `{"pad": "`+long+`", "a": 1}`))
	if text, _, err := run(t, declared(t, s, reads+"max_result: 1KB\nresult: {pointer: /a}\n"), `{}`); err != nil || text != "1" {
		t.Errorf("%q, %v", text, err)
	}
	if text, _, err := run(t, declared(t, s, reads+"max_result: 1KB\nresult: {pointer: /pad}\n"), `{}`); err != nil || !strings.HasPrefix(text, "ÜnïÜnï") || len(text) > 1200 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	endless := func(media string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", media)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
	}
	for media, yaml := range map[string]string{"image/png": reads, "application/json": reads + "result: {pointer: /a}\n"} {
		if _, files, err := run(t, declared(t, serve(t, endless(media)), yaml), `{}`); err == nil || !strings.Contains(err.Error(), "larger than the ") || len(files) != 0 {
			t.Errorf("%s: %v", media, err)
		}
	}
}

func TestNamesOfFiles(t *testing.T) {
	for disposition, want := range map[string]string{
		`attachment; filename="report.pdf"`:                "report.pdf",
		`attachment; filename="../../etc/passwd"`:          "passwd",
		`attachment; filename="C:\\Users\\me\\report.pdf"`: "report.pdf",
		`attachment; filename=".."`:                        "it.pdf",
		`attachment; filename=".bashrc"`:                   "bashrc",
		`attachment; filename*=UTF-8''Gr%C3%BC%C3%9Fe.pdf`: "Grüße.pdf",
		`attachment; filename*=UTF-8''a%0Ab.pdf`:           "ab.pdf",
		`inline`:                                           "it.pdf",
		``:                                                 "it.pdf",
		`attachment; filename="` + strings.Repeat("x", 300) + `.pdf"`: strings.Repeat("x", 100),
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/pdf")
			w.Header().Set("Content-Disposition", disposition)
			fmt.Fprint(w, "%PDF")
		})
		_, files, err := run(t, declared(t, s, reads), `{}`)
		if err != nil || len(files) != 1 || files[0].Name != want {
			t.Errorf("%s: %+v, %v; want %s", disposition, files, err, want)
		}
	}
}

func TestFileThatCannotBeKept(t *testing.T) {
	for yaml, want := range map[string]string{reads: "failed", writes: "done"} {
		tool := declared(t, serve(t, answering("image/png", "x\x00")), yaml)
		text, err := tool.Run(t.Context(), agent.Invocation{Args: []byte(`{}`), Attach: func(agent.File) error { return errors.New("there is no room") }})
		if outcome(err) != want || !strings.Contains(text+fmt.Sprint(err), "there is no room") {
			t.Errorf("%s: %q, %v", yaml, text, err)
		}
	}
}

func TestCreated(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/bookings/17?key="+environment["API_TOKEN"])
		w.WriteHeader(http.StatusCreated)
	})
	text, _, err := run(t, declared(t, s, writes+"headers: {X-Key: '${API_TOKEN}'}\n"), `{}`)
	if err != nil || text != "The server answered 201 Created, with no body. Location: /bookings/17?key=(removed)" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestHead(t *testing.T) {
	s := serve(t, status(200))
	text, _, err := run(t, declared(t, s, "url: SITE/it\nmethod: HEAD\n"), `{}`)
	if err != nil || text != "The server answered 200 OK, with no body." {
		t.Errorf("%q, %v", text, err)
	}
}

// If a server's error response is text, the error quotes the beginning of the text on one line.
func TestErrorsAreQuoted(t *testing.T) {
	for _, tt := range []struct{ media, body, want string }{
		{"application/problem+json", "{\"title\":\n \"Out of credit\"}", `the server answered 402 Payment Required: {"title": "Out of credit"}`},
		{"text/plain", "no\n\n\tsuch  place", "the server answered 402 Payment Required: no such place"},
		{"text/html", "<h1>Oops</h1>", "the server answered 402 Payment Required"},
		{"image/png", "x", "the server answered 402 Payment Required"},
		{"nonsense/;;", "x", "the server answered 402 Payment Required"},
		{"", "plain", "the server answered 402 Payment Required: plain"},
		{"text/plain", "a\x00b", "the server answered 402 Payment Required"},
		{"text/plain", " \n", "the server answered 402 Payment Required"},
		{"text/plain", "a\xffb", "the server answered 402 Payment Required: a�b"},
		{"text/plain", strings.Repeat("y ", 100<<10), "the server answered 402 Payment Required: " + strings.Repeat("y ", 1<<10) + "…"},
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			if tt.media != "" {
				w.Header().Set("Content-Type", tt.media)
			}
			w.WriteHeader(http.StatusPaymentRequired)
			fmt.Fprint(w, tt.body)
		})
		if _, _, err := run(t, declared(t, s, reads), `{}`); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %.200v; want %.200s", tt.media, err, tt.want)
		}
	}
}
