package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"countersign/agent"
	"countersign/agent/jsonobject"
	"countersign/internal/redact"
)

const (
	// maxError is the maximum length of a server's error for people and the model, in bytes.
	maxError = 2000
	// maxFiles is the maximum number of files in a result.
	maxFiles = 20
	// maxParts is the maximum number of parts in a result.
	maxParts = 1000
)

// errBadResult returns the error for a result that can't be read, or does not match the outputSchema in the tool's
// definition.
func errBadResult(d definition, format string, args ...any) error {
	return fmt.Errorf("%s ran, but %s, so its result was withheld; check whether it succeeded before you continue", d.name, fmt.Sprintf(format, args...))
}

// result converts a call's result to text for the model. Files in the result are attached for people.
func result(d definition, secrets redact.Values, raw json.RawMessage, attach func(agent.File) error) (string, error) {
	r, err := jsonobject.Read(raw)
	if err != nil {
		return "", errBadResult(d, "its result is not an object")
	}
	w := writer{attach: attach, secrets: secrets}
	if content := r.Given("content"); content != nil {
		parts, err := jsonobject.ReadList(content)
		if err != nil || len(parts) > maxParts {
			return "", errBadResult(d, "its content is not a list of at most %d parts", maxParts)
		}
		for _, part := range parts {
			w.part(part)
		}
	}
	if failed := r.Flag("isError"); failed != nil && *failed {
		return "", agent.Refused(or(cut(w.text(), maxError), "the tool failed without saying why"))
	}
	structured := r.Given("structuredContent")
	if d.output != nil {
		if structured == nil {
			return "", errBadResult(d, "it returned no structuredContent, which its outputSchema requires")
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(structured))
		if err == nil {
			err = d.output.Validate(value)
		}
		if err != nil {
			return "", errBadResult(d, "its result violates its own outputSchema (%s)", line(err.Error()))
		}
	}
	if structured != nil && !w.holds(structured) {
		w.parts = append(w.parts, string(structured))
	}
	return or(w.text(), "(the tool ran and answered nothing)"), nil
}

func or(s, otherwise string) string {
	if strings.TrimSpace(s) == "" {
		return otherwise
	}
	return s
}

// writer converts the parts of a result to text, and attaches files.
type writer struct {
	attach  func(agent.File) error
	secrets redact.Values
	parts   []string
	files   int
}

func (w *writer) text() string { return strings.Join(w.parts, "\n") }

// holds reports whether one of the text parts has the same value as the parameter structured. Servers repeat a
// structured value as text for older clients.
func (w *writer) holds(structured json.RawMessage) bool {
	want := plainValue(structured)
	for _, p := range w.parts {
		if text := strings.TrimSpace(p); strings.HasPrefix(text, "{") && reflect.DeepEqual(plainValue([]byte(text)), want) {
			return true
		}
	}
	only, _ := want.(map[string]any)
	for _, v := range only { // some servers wrap their text in an object with one member
		if text, ok := v.(string); ok && len(only) == 1 && slices.Contains(w.parts, text) {
			return true
		}
	}
	return false
}

// plainValue decodes JSON. Numbers keep their notation.
func plainValue(raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return err
	}
	return v
}

func (w *writer) say(format string, args ...any) {
	w.parts = append(w.parts, fmt.Sprintf(format, args...))
}

// part adds one part of the result to the text.
func (w *writer) part(raw json.RawMessage) {
	o, err := jsonobject.Read(raw)
	if err != nil {
		w.say("[a part of the result is not an object]")
		return
	}
	switch kind := o.Text("type"); kind {
	case "text":
		w.parts = append(w.parts, o.Text("text"))
	case "image", "audio":
		w.file(kind, "", o.Text("mimeType"), o.Text("data"))
	case "resource":
		r := o.Object("resource")
		if r.Has("blob") {
			w.file("file", fileName(r.Text("uri")), r.Text("mimeType"), r.Text("blob"))
			return
		}
		w.say("[resource %s]\n%s", r.Text("uri"), r.Text("text"))
	case "resource_link":
		w.say("[link to a resource that was not read: %s]", strings.Join(strings.Fields(o.Text("name")+" "+o.Text("uri")+" "+o.Text("description")), " "))
	default:
		w.say("[a part of the result, of the unknown kind %s]", strconv.Quote(cut(kind, 40)))
	}
}

// fileName returns the last part of a URI as the name of a file: at most 80 bytes, with unusual characters replaced.
func fileName(uri string) string {
	name := path.Base(strings.SplitN(uri, "?", 2)[0])
	if name == "." || name == "/" {
		return ""
	}
	return oddPart.ReplaceAllString(cut(name, 80), "_")
}

// file attaches a part that is not text, and adds a note about the file to the text.
func (w *writer) file(kind, name, mediaType, encoded string) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		w.say("[an %s that is not in base64, so it was left out]", kind)
		return
	}
	if _, _, err := mime.ParseMediaType(mediaType); err != nil || len(mediaType) > 100 {
		mediaType = "application/octet-stream"
	}
	if w.secrets.In(string(data)) {
		w.say("[%s, %s, %d bytes: left out, because it contains a secret]", kind, mediaType, len(data))
		return
	}
	if w.files++; w.files > maxFiles {
		w.say("[%s, %s, %d bytes: left out, because a result may have at most %d files]", kind, mediaType, len(data), maxFiles)
		return
	}
	if name == "" {
		name = kind + "-" + strconv.Itoa(w.files) + extension(mediaType)
	}
	if w.attach == nil {
		w.say("[%s, %s, %d bytes: not attached, because nobody could see it here]", name, mediaType, len(data))
		return
	}
	if err := w.attach(agent.File{Name: name, Type: mediaType, Data: data}); err != nil {
		w.say("[%s, %s, %d bytes: it could not be attached: %s]", name, mediaType, len(data), line(err.Error()))
		return
	}
	w.say("[%s, %s, %d bytes: attached for the people in the thread]", name, mediaType, len(data))
}

// extension returns the usual file extension of a media type.
func extension(mediaType string) string {
	kind, _, _ := mime.ParseMediaType(mediaType)
	switch kind {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	case "image/svg+xml":
		return ".svg"
	case "audio/wav", "audio/x-wav":
		return ".wav"
	case "audio/mpeg":
		return ".mp3"
	case "application/pdf":
		return ".pdf"
	}
	return ""
}
