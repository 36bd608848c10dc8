package approvers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// ToolPreview is a tool's own description of a call's effect. Only the operator's policy can request a tool preview.
// The model can't. A tool preview is the tool's own claim, and nobody verifies the claim.
type ToolPreview struct {
	By     string           `json:"by"`            // the tool that makes the preview
	Dry    bool             `json:"dry,omitempty"` // made by the tool itself in a dry run, which an argument requests
	Own    bool             `json:"own,omitempty"` // made by the tool's preview function in Go, not by a call to a tool
	State  ToolPreviewState `json:"state"`
	Text   string           `json:"text,omitempty"`  // the tool's text, up to MaxToolPreview, without secret values
	Cut    int              `json:"cut,omitempty"`   // how many characters of the tool's text were left out
	Fault  string           `json:"fault,omitempty"` // why the tool preview failed
	No     string           `json:"no,omitempty"`    // why the call would not succeed, according to the tool preview
	Digest string           `json:"digest"`          // the digest of the call that the tool preview describes
	Tries  int              `json:"tries,omitempty"`
	At     time.Time        `json:"at,omitzero"` // when the tool preview was ready or failed
}

// ToolPreviewState is the state of a tool preview.
type ToolPreviewState string

// The states of a tool preview.
const (
	ToolPreviewPending ToolPreviewState = "making"
	ToolPreviewReady   ToolPreviewState = "made"
	ToolPreviewFailed  ToolPreviewState = "failed"
)

// Limits of a tool preview, in characters and in tries. If the process stops during a try, the try counts, too.
const (
	MaxHeadline      = 600
	MaxToolPreview   = 4000
	ToolPreviewTries = 3
)

// PreviewSource names the tool that makes a preview, and describes how the tool is called. With the zero value, no
// preview is made.
type PreviewSource struct {
	Tool     string          // another tool, which only reads and is called with the same arguments; empty for a dry run, which calls the tool itself
	Argument string          // for a dry run: the argument that makes a call a dry run
	Value    json.RawMessage // for a dry run: the value of that argument
	Within   time.Duration   // zero: DefaultWithin
}

// The default and the maximum of the time within which a preview must be ready.
const (
	DefaultWithin = 5 * time.Second
	MaxWithin     = 30 * time.Second
)

// Enabled reports whether the source makes a preview.
func (f PreviewSource) Enabled() bool { return f.Tool != "" || f.Argument != "" }

// Making reports whether the tool preview is being made.
func (f *ToolPreview) Making() bool { return f != nil && f.State == ToolPreviewPending }

// unseen reports whether the tool preview was still being made when a person acted.
func (f *ToolPreview) unseen(at time.Time) bool {
	return f != nil && (f.State == ToolPreviewPending || f.At.After(at))
}

// PreviewAnswer is the answer to a request for a tool preview.
type PreviewAnswer struct {
	Text  string // the tool's text
	No    string // why the call would not succeed, if the caller knows; empty: RecordToolPreview looks for a reason in Text
	Fault string // why the tool gave no preview
}

// RecordToolPreview records a tool preview, or the reason why there is no tool preview. RecordToolPreview changes
// nothing if no tool preview is being made, if the preview is for other arguments, or if the request is not pending.
func (r Request) RecordToolPreview(digest string, a PreviewAnswer, now time.Time) (Request, []Event, bool) {
	if r.State != Pending || !r.ToolPreview.Making() || r.ToolPreview.Digest != digest || r.Digest != digest {
		return r, nil, false
	}
	f := *r.ToolPreview
	f.At = now
	masked := func(text string) string { return MaskText(strings.ToValidUTF8(text, "\uFFFD"), r.Args, r.Secrets) }
	text := strings.TrimSpace(masked(a.Text))
	if text == "" && a.Fault == "" {
		a.Fault = "it said nothing"
	}
	if a.Fault != "" {
		f.State, f.Fault = ToolPreviewFailed, cutTo(masked(a.Fault), MaxHeadline)
		r.ToolPreview = &f
		return r, []Event{PreviewMade{}}, true
	}
	f.State, f.Text = ToolPreviewReady, cutTo(text, MaxToolPreview)
	if n := utf8.RuneCountInString(text); n > MaxToolPreview {
		f.Cut = n - (MaxToolPreview - len([]rune("…")))
	}
	if f.No = cutTo(strings.TrimSpace(masked(a.No)), MaxHeadline); f.No == "" {
		f.No = cutTo(refusalIn(text), MaxHeadline)
	}
	r.ToolPreview = &f
	head := Headline(text)
	gains := (r.Preview == "" || r.MadePreview) && head != "" && f.No == ""
	switch {
	case gains && f.Own:
		r.Preview, r.MadePreview = head, false
	case gains:
		r.Preview, r.MadePreview = cutTo(f.By+" says: "+head, MaxHeadline), false
	case r.MadePreview:
		named := nameSubject(r.Preview, subjectOf(r.Args, r.Secrets), nameIn(text))
		gains = named != r.Preview
		r.Preview = named
	}
	return r, []Event{PreviewMade{Headline: gains}}, true
}

// refusalIn returns the reason why the call would fail, according to a preview. If the preview gives no such reason,
// refusalIn returns "". refusalIn looks only at the members of a JSON object that tools commonly use for a refusal.
func refusalIn(text string) string {
	var object map[string]json.RawMessage
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &object) != nil {
		return ""
	}
	no := ""
	for _, name := range []string{"ok", "allowed", "possible", "valid", "would_succeed", "success"} {
		if string(bytes.TrimSpace(object[name])) == "false" {
			no = name + " is false"
			break
		}
	}
	for _, name := range []string{"refused", "error"} {
		if no == "" && given(object[name]) {
			no = name + " is given"
		}
	}
	if no == "" {
		return ""
	}
	for _, name := range []string{"refused", "error", "reason", "message", "summary", "preview"} {
		if said := sentenceIn(object[name]); said != "" {
			return said
		}
	}
	return no
}

// given reports whether a member exists and is not empty.
func given(raw json.RawMessage) bool {
	return !slices.Contains([]string{"", "null", "false", `""`, "0", "[]", "{}"}, string(bytes.TrimSpace(raw)))
}

// sentenceIn returns the text of a member. If the member is an object, sentenceIn returns the text of the object's
// message.
func sentenceIn(raw json.RawMessage) string {
	var text string
	var object struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &object) == nil {
		text = object.Message
	}
	return strings.TrimSpace(text)
}

// cutTo shortens a text to n characters. A shortened text ends with "…".
func cutTo(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Headline returns the first line of a tool's text. If the text is a JSON object, Headline returns the first line of
// the object's member preview, summary or message. If the text is a JSON list, or the line is longer than MaxHeadline,
// Headline returns "".
func Headline(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &object) != nil {
			return ""
		}
		text = ""
		for _, name := range []string{"preview", "summary", "message"} {
			if json.Unmarshal(object[name], &text) == nil && text != "" {
				break
			}
		}
	}
	if strings.HasPrefix(text, "[") {
		return ""
	}
	text = strings.TrimSpace(text)
	if end := strings.IndexFunc(text, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }); end >= 0 {
		text = strings.TrimSpace(text[:end])
	}
	if utf8.RuneCountInString(text) > MaxHeadline {
		return ""
	}
	return text
}

// MaskText masks the secret values of arguments in a text, in plain form and in JSON-escaped form. MaskText masks a
// value of one or two characters only if the value is a separate word. If the arguments can't be parsed, MaskText
// replaces the whole text.
func MaskText(text string, args json.RawMessage, secrets []string) string {
	if len(secrets) == 0 || text == "" {
		return text
	}
	if _, err := StrictArgs(args, false); err != nil {
		return MaskedValue // the arguments can't be parsed, so nobody knows which parts of the text are secret
	}
	found := secretTexts(args, secrets)
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range found {
		text = maskOne(text, secret)
	}
	return text
}

// secretTexts returns the values at secret paths: texts, and numbers in their written form.
func secretTexts(args json.RawMessage, secrets []string) (found []string) {
	var walk func(dec *jsontext.Decoder, path string, secret bool) error
	walk = func(dec *jsontext.Decoder, path string, secret bool) error {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		secret = secret || (path != "" && IsSecret(secrets, path))
		switch tok.Kind() {
		case '{':
			for dec.PeekKind() != '}' {
				name, err := dec.ReadToken()
				if err != nil {
					return err
				}
				if err := walk(dec, strings.TrimPrefix(path+"."+name.String(), "."), secret); err != nil {
					return err
				}
			}
			_, err = dec.ReadToken()
		case '[':
			for dec.PeekKind() != ']' {
				if err := walk(dec, path, secret); err != nil {
					return err
				}
			}
			_, err = dec.ReadToken()
		case '"', '0':
			if text := tok.String(); secret && text != "" {
				found = append(found, text)
				if quoted, err := jsontext.AppendQuote(nil, text); err == nil && tok.Kind() == '"' {
					found = append(found, string(quoted[1:len(quoted)-1]))
				}
			}
		}
		return err
	}
	_ = walk(jsontext.NewDecoder(bytes.NewReader(args)), "", false) // no error: StrictArgs has parsed the arguments
	slices.Sort(found)
	return slices.Compact(found)
}

// maskOne masks a value in a text.
func maskOne(text, secret string) string {
	if utf8.RuneCountInString(secret) > 2 {
		return strings.ReplaceAll(text, secret, MaskedValue)
	}
	var b strings.Builder
	for {
		i := strings.Index(text, secret)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(secret):])
		b.WriteString(text[:i])
		if alone(before) && alone(after) {
			b.WriteString(MaskedValue)
		} else {
			b.WriteString(secret)
		}
		text = text[i+len(secret):]
	}
}

// alone reports whether a rune is neither a letter nor a digit. A value between two such runes is a separate word.
func alone(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// SetMember sets one member of a JSON object, and changes no other byte.
func SetMember(object json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil, errors.Join(fmt.Errorf("%w: a JSON object is needed", ErrArgs), err)
	}
	members := 0
	for ; dec.PeekKind() != '}'; members++ {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		here := tok.String() == name // must be before the next read, which invalidates tok
		raw, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if end := dec.InputOffset(); here {
			return slices.Concat(object[:end-int64(len(raw))], value, object[end:]), nil
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	end := dec.InputOffset() - 1 // offset of the closing brace
	quoted, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		return nil, err
	}
	comma := ","
	if members == 0 {
		comma = ""
	}
	return slices.Concat(object[:end], []byte(comma), quoted, []byte(":"), value, object[end:]), nil
}
