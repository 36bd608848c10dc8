package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/agent/jsonobject"
)

// readBody reads a request's body, but does not parse it. A body is refused if it is too large, arrives too slowly, has
// a Content-Encoding, or has a Content-Type other than JSON. For an empty optional body, the result is "{}".
func readBody(w http.ResponseWriter, r *http.Request, optional bool, most int64) ([]byte, error) {
	if kind := r.Header.Get("Content-Type"); !isJSON(kind) && (!optional || kind != "") || r.Header.Get("Content-Encoding") != "" {
		return nil, problem{name: "not_json", status: http.StatusUnsupportedMediaType, title: "The Content-Type must be application/json, without a Content-Encoding."}
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyWithin)) // if setting the deadline fails, the read has no deadline
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, problem{name: "too_large", status: http.StatusRequestEntityTooLarge, title: "The body is too large.", detail: fmt.Sprintf("at most %d KiB are read", most>>10)}
	case err != nil:
		return nil, malformed("the body could not be read")
	case optional && len(bytes.TrimSpace(body)) == 0:
		body = []byte("{}")
	}
	_ = control.SetReadDeadline(time.Time{}) // a deadline that passes during the answer would end the request's context
	return body, nil
}

// isJSON reports whether a Content-Type is JSON in UTF-8.
func isJSON(kind string) bool {
	media, params, err := mime.ParseMediaType(kind)
	charset, ok := params["charset"]
	return err == nil && media == "application/json" && (!ok || strings.EqualFold(charset, "utf-8"))
}

// members returns the members of a JSON object by name, with the exact bytes of the values. Unknown names, repeated
// names and invalid UTF-8 are refused.
func members(body []byte, known ...string) (map[string]jsontext.Value, error) {
	o, err := jsonobject.Read(body)
	switch {
	case errors.Is(err, jsonobject.ErrNoObject):
		return nil, malformed("the body must be one JSON object")
	case errors.Is(err, jsonobject.ErrMore):
		return nil, malformed("there is more after the JSON object")
	case err != nil:
		return nil, malformed("the body is not valid JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	out := map[string]jsontext.Value{}
	for _, m := range o {
		if !slices.Contains(known, m.Name) {
			return nil, malformed("%.100q is not a name that is known here", m.Name)
		}
		out[m.Name] = jsontext.Value(m.Value)
	}
	return out, nil
}

// fields reads the members of an object as Go values, and keeps the first error.
type fields struct {
	of  map[string]jsontext.Value
	err error
}

// text reads a text whose length in characters is between least and most.
func (f *fields) text(name string, least, most int) string {
	raw, ok := f.of[name]
	var s string
	if !ok {
		if least > 0 {
			f.wrong("%s is missing", name)
		}
		return ""
	}
	if raw.Kind() != '"' || json.Unmarshal(raw, &s) != nil {
		f.wrong("%s must be a string", name)
		return ""
	}
	if n := utf8.RuneCountInString(s); n < least || n > most {
		f.wrong("%s must have %d to %d characters", name, least, most)
	}
	return s
}

func (f *fields) wrong(format string, args ...any) {
	if f.err == nil {
		f.err = malformed(format, args...)
	}
}

// whole reads an integer between least and most. If the member is missing, whole returns the parameter least.
func (f *fields) whole(name string, least, most int) int {
	raw, ok := f.of[name]
	if !ok {
		return least
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < least || n > most {
		f.wrong("%s must be a whole number from %d to %d", name, least, most)
	}
	return n
}

// choice reads a member whose value must be one of the words. If the member is missing, choice returns the first
// word.
func (f *fields) choice(name string, words ...string) string {
	if _, ok := f.of[name]; !ok {
		return words[0]
	}
	word := f.text(name, 1, 100)
	if !slices.Contains(words, word) {
		f.wrong("%s must be %s", name, strings.Join(words, " or "))
	}
	return word
}
