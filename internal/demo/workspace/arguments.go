package workspace

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// maxBody limits the size of one call. Slack's largest legal call is far smaller.
const maxBody = 4 << 20

// arguments are the arguments of a method. Slack accepts form values, JSON, and JSON text in form values.
type arguments struct {
	values object
	token  string
}

// readArguments decodes a call. readArguments reads the token from the Authorization header or a form body, and not
// from a JSON body. Slack does not accept a token in the query from apps that were created after February 24, 2021.
func readArguments(r *http.Request) (arguments, *apiError) {
	args := arguments{values: object{}}
	for key, vals := range r.URL.Query() {
		args.values[key] = vals[0]
	}
	delete(args.values, "token")
	contentType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && r.Header.Get("Content-Type") != "" {
		return args, refuse("invalid_post_type")
	}
	switch {
	case r.Method == http.MethodGet:
	case r.Method != http.MethodPost:
		return args, refuse("invalid_post_type")
	case contentType == "application/json":
		if failed := args.readJSON(r.Body); failed != nil {
			return args, failed
		}
		delete(args.values, "token")
	case contentType == "multipart/form-data":
		if err := r.ParseMultipartForm(maxBody); err != nil {
			return args, refuse("invalid_form_data")
		}
		args.addForm(r.MultipartForm.Value)
	default: // also for a missing content type: apps.connections.open has neither a body nor a content type
		if err := r.ParseForm(); err != nil {
			return args, refuse("invalid_form_data")
		}
		args.addForm(r.PostForm)
	}
	args.token = args.text("token")
	delete(args.values, "token")
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
		args.token = strings.TrimSpace(token)
	}
	return args, nil
}

func (a arguments) addForm(form map[string][]string) {
	for key, vals := range form {
		a.values[key] = vals[0]
	}
}

func (a arguments) readJSON(body io.Reader) *apiError {
	raw, err := io.ReadAll(body)
	if err != nil {
		return refuse("request_timeout")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	decoded, err := wire.Decode(raw)
	if err != nil {
		return refuse("invalid_json")
	}
	fields, ok := decoded.(object)
	if !ok {
		return refuse("json_not_object")
	}
	for key, value := range fields {
		a.values[key] = value
	}
	return nil
}

func (a arguments) has(name string) bool {
	v, ok := a.values[name]
	return ok && v != nil
}

func (a arguments) text(name string) string {
	switch v := a.values[name].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

func (a arguments) flag(name string) bool {
	switch strings.ToLower(a.text(name)) {
	case "true", "1":
		return true
	}
	return false
}

func (a arguments) number(name string, otherwise int) int {
	if n, err := strconv.Atoi(a.text(name)); err == nil {
		return n
	}
	return otherwise
}

// The method "whole" returns an argument that is a JSON number without a fraction.
func (a arguments) whole(name string) (int, bool) { return wire.Whole(a.values[name]) }

// The method "nested" returns an argument that is JSON, or JSON text in a form value.
func (a arguments) nested(name string) (any, bool) {
	v, ok := a.values[name]
	if !ok || v == nil {
		return nil, false
	}
	text, isText := v.(string)
	if !isText {
		return v, true
	}
	if strings.TrimSpace(text) == "" {
		return nil, false
	}
	decoded, err := wire.Decode([]byte(text))
	if err != nil {
		return badJSON{}, true
	}
	return decoded, true
}

// badJSON replaces a nested argument that cannot be parsed. The checks refuse badJSON, because it is neither an array
// nor an object.
type badJSON struct{}

// The method "words" splits a comma-separated or JSON list of ids.
func (a arguments) words(name string) []string {
	var out []string
	switch v := a.values[name].(type) {
	case []any:
		for _, item := range v {
			if text, ok := item.(string); ok && text != "" {
				out = append(out, text)
			}
		}
	case string:
		if strings.HasPrefix(strings.TrimSpace(v), "[") {
			if list, err := wire.Decode([]byte(v)); err == nil {
				return arguments{values: object{name: list}}.words(name)
			}
		}
		for item := range strings.SplitSeq(v, ",") {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
	}
	return out
}
