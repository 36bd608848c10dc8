package httptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"countersign/agent"
	"countersign/agent/egress"
	"countersign/approvers"
	"countersign/internal/redact"
)

// Limits on responses, in bytes.
const (
	maxParsed  = 8 << 20  // maximum size of a response that the policy declares as JSON
	maxFile    = 10 << 20 // maximum size of a response that is attached as a file
	maxQuoted  = 2 << 10  // maximum length of the quotation from an error response
	tooFarOpen = "the response is larger than the %d MB that are read"
)

// answer returns the result of a run whose response has a success status.
func (o *operation) answer(resp *http.Response, in agent.Invocation) (string, error) {
	text, err := o.read(resp, in)
	switch {
	case err == nil:
		return text, nil
	case o.effect == approvers.ReadOnly:
		return "", fmt.Errorf("the server answered %s, but %s", statusText(resp.StatusCode), o.secrets.Out(err.Error()))
	}
	// The status means success, so this is not an error: after an error, the model would repeat the request.
	return fmt.Sprintf("It was done: the server answered %s. But %s.", statusText(resp.StatusCode), o.secrets.Out(err.Error())), nil
}

func (o *operation) read(resp *http.Response, in agent.Invocation) (string, error) {
	kind, media, charset := as(o.result), "", ""
	if t, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil {
		media, charset = t, strings.ToLower(params["charset"])
	}
	limit := maxFile
	switch {
	case kind == asText, kind == asAuto && textual(media):
		limit = o.limit + o.secrets.Longest()
	case kind == asJSON:
		limit = maxParsed
	}
	data, whole, err := readBounded(resp.Body, limit)
	switch {
	case err != nil:
		return "", errors.New(egress.Sentence(err))
	case len(data) == 0:
		return o.empty(resp), nil
	case kind == asJSON && !whole:
		return "", fmt.Errorf(tooFarOpen, limit>>20)
	case kind == asJSON:
		return o.json(data)
	case kind == asText, kind == asAuto && (textual(media) || media == "" && utf8.Valid(data) && !bytes.ContainsRune(data, 0)):
		total := resp.ContentLength
		if whole {
			total = int64(len(data))
		}
		return o.text(decode(data, charset, whole), whole, total), nil
	case !whole:
		return "", fmt.Errorf(tooFarOpen, limit>>20)
	}
	return o.file(resp, media, data, in)
}

// readBounded reads at most limit bytes. If r has more bytes, whole is false.
func readBounded(r io.Reader, limit int) (data []byte, whole bool, err error) {
	data, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if len(data) > limit {
		return data[:limit], false, nil
	}
	return data, err == nil, err
}

// empty returns the result for a response without a body. The result includes the header Location, if there is one.
// Location is the address of the created resource.
func (o *operation) empty(resp *http.Response) string {
	text := "The server answered " + statusText(resp.StatusCode) + ", with no body."
	if at := resp.Header.Get("Location"); at != "" {
		text = fmt.Sprintf("The server answered %s, with no body. Location: %s", statusText(resp.StatusCode), redact.Text(o.secrets.Out(cut(strings.ToValidUTF8(at, "�"), 500))))
	}
	return text
}

// text returns a text for the model. A text that is too long is shortened. total is the full length, or negative if
// unknown.
func (o *operation) text(text string, whole bool, total int64) string {
	text = o.secrets.Out(text)
	if whole && len(text) <= o.limit {
		return text
	}
	if !whole { // the text is cut, and a secret may begin before the cut and end after it
		text = cut(text, max(len(text)-o.secrets.Longest(), 0))
	}
	all := "a longer answer"
	if total > 0 {
		all = fmt.Sprintf("an answer of %d bytes", total)
	}
	return cut(text, o.limit) + fmt.Sprintf("\n[cut: this is the beginning of %s; ask for less at once]", all)
}

// cut returns the beginning of a text. cut keeps characters whole.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// json returns a JSON response. If the declaration has a pointer, json returns the part that the pointer selects.
func (o *operation) json(data []byte) (string, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !json.Valid(data) {
		return "", errors.New("the response is not valid JSON")
	}
	if o.result.Pointer == "" {
		return o.text(decode(data, "", true), true, int64(len(data))), nil
	}
	found, ok := point(data, o.result.Pointer)
	if !ok {
		return "", fmt.Errorf("the response has nothing at %s", o.result.Pointer)
	}
	text := string(found)
	if found[0] == '"' {
		if s, err := unquote(found); err == nil {
			text = s
		}
	}
	return o.text(decode([]byte(text), "", true), true, int64(len(text))), nil
}

// file attaches a response that is not text, and returns a note about the file.
func (o *operation) file(resp *http.Response, media string, data []byte, in agent.Invocation) (string, error) {
	if o.secrets.In(string(data)) {
		return "", errors.New("the file in the response repeats a secret, so it was left out")
	}
	if media == "" {
		media = "application/octet-stream"
	}
	name := fileName(o.tool, media, resp.Header.Get("Content-Disposition"))
	if err := in.Attach(agent.File{Name: name, Type: media, Data: data}); err != nil {
		return "", fmt.Errorf("the file in the response could not be kept: %w", err)
	}
	return fmt.Sprintf("The server answered %s with a file: %s, %s, %d bytes.", statusText(resp.StatusCode), name, media, len(data)), nil
}

// fileName returns the file name from the server's response. If the response has no plain name, fileName returns a
// generated name.
func fileName(tool, media, disposition string) string {
	if _, params, err := mime.ParseMediaType(disposition); err == nil {
		name := params["filename"]
		if i := strings.LastIndexAny(name, `/\`); i >= 0 {
			name = name[i+1:]
		}
		name = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f || r == utf8.RuneError {
				return -1
			}
			return r
		}, name)
		if name = strings.Trim(cut(name, 100), ". "); name != "" {
			return name
		}
	}
	known := map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "application/pdf": ".pdf", "application/zip": ".zip"}
	if known[media] == "" {
		return tool + ".bin"
	}
	return tool + known[media]
}

// textual reports whether a media type is text.
func textual(media string) bool {
	switch media {
	case "application/json", "application/xml", "application/javascript", "application/yaml", "application/x-yaml", "application/x-ndjson", "application/x-www-form-urlencoded",
		"application/graphql", "application/toml", "application/sql", "application/problem+json":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") || strings.HasSuffix(media, "+yaml")
}

// decode converts a text to UTF-8. Invalid characters are replaced. If a character was replaced, the result has a
// note.
func decode(data []byte, charset string, whole bool) string {
	switch charset {
	case "iso-8859-1", "latin1", "windows-1252":
		if out, err := charmap.Windows1252.NewDecoder().Bytes(data); err == nil {
			return string(out)
		}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !whole { // the last character may be incomplete, so it is removed
		for n := 1; n < utf8.UTFMax && n < len(data); n++ {
			if last := data[len(data)-n:]; utf8.RuneStart(last[0]) {
				if !utf8.FullRune(last) {
					data = data[:len(data)-n]
				}
				break
			}
		}
	}
	text := string(data)
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "�") + "\n[invalid characters are shown as �]"
}

// quoted returns the beginning of the server's error response, after a colon. The model and people see this text. It
// has one line and no secrets. If the response is HTML or has no readable text, quoted returns "".
func (o *operation) quoted(resp *http.Response) string {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil && resp.Header.Get("Content-Type") != "" || media != "" && !textual(media) || media == "text/html" {
		return ""
	}
	extra := o.secrets.Longest() + maxQuoted // read more than maxQuoted, so that redact.Text recognizes secrets at the cut
	data, whole, err := readBounded(resp.Body, maxQuoted+extra)
	if err != nil || len(data) == 0 || bytes.ContainsRune(data, 0) {
		return ""
	}
	text := redact.Text(o.secrets.Out(strings.ToValidUTF8(string(data), "�")))
	if !whole {
		text = cut(text, max(len(text)-extra, 0))
	}
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return ""
	}
	if short := cut(text, maxQuoted); short != text || !whole {
		text = short + " …"
	}
	return ": " + text
}
