package pins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/internal/visible"
)

// Limits of a displayed diff. The diff marks omitted parts.
const (
	maxLines = 60  // changes
	maxText  = 240 // characters of one side of a change
	context  = 60  // how many of the maxText characters are before the first difference
)

// Diff describes the differences between two definitions. Each change has one or more lines, with the old value after
// "-" and the new value after "+". An invisible or misleading character is written as its code point. A change of the
// order or of the notation of names is shown only if there is no other change. If only white space differs, the result
// is empty.
func Diff(before, after json.RawMessage) []string {
	was, err := parts(before)
	is, err2 := parts(after)
	if err != nil || err2 != nil {
		if bytes.Equal(before, after) {
			return nil
		}
		return change("the definition", string(before), string(after))
	}
	var out []string
	changes := 0
	for _, d := range compare(was, is) {
		if changes++; changes > maxLines {
			continue
		}
		out = append(out, d.lines()...)
	}
	if changes > maxLines {
		out = append(out, fmt.Sprintf("… and %d more changes", changes-maxLines))
	}
	if was, is := compact(before), compact(after); len(out) == 0 && !bytes.Equal(was, is) {
		return append([]string{"  only the notation changed"}, change("the definition", string(was), string(is))...)
	}
	return out
}

// compact removes the white space of a definition. The definition must be valid JSON.
func compact(definition json.RawMessage) jsontext.Value {
	v := jsontext.Value(bytes.Clone(definition))
	_ = v.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) // the definition is valid
	return v
}

// part is one scalar value of a definition, or an empty list or object.
type part struct{ path, value string }

// parts lists the parts of a definition in order. A duplicate name gives two parts with the same path.
func parts(definition json.RawMessage) ([]part, error) {
	d := jsontext.NewDecoder(bytes.NewReader(definition), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var out []part
	if err := collect(d, "", &out); err != nil {
		return nil, err
	}
	return out, nil
}

func collect(d *jsontext.Decoder, path string, out *[]part) error {
	switch d.PeekKind() {
	case '{':
		return members(d, path, out)
	case '[':
		return elements(d, path, out)
	}
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	*out = append(*out, part{path, string(v)})
	return nil
}

func members(d *jsontext.Decoder, path string, out *[]part) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	empty := true
	for d.PeekKind() != '}' {
		empty = false
		tok, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := collect(d, join(path, tok.String()), out); err != nil {
			return err
		}
	}
	if empty {
		*out = append(*out, part{path, "{}"})
	}
	_, err := d.ReadToken()
	return err
}

func elements(d *jsontext.Decoder, path string, out *[]part) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	n := 0
	for ; d.PeekKind() != ']'; n++ {
		if err := collect(d, path+"["+strconv.Itoa(n)+"]", out); err != nil {
			return err
		}
	}
	if n == 0 {
		*out = append(*out, part{path, "[]"})
	}
	_, err := d.ReadToken()
	return err
}

// join adds a name to a path. An ambiguous name is quoted.
func join(path, name string) string {
	if name == "" || strings.ContainsAny(name, ".[]: \"") {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// difference is one place in which two definitions differ. A nil side means that the place is missing in this
// definition.
type difference struct {
	path       string
	before, is *string
}

// compare lists the changes in the order of the new definition. Removed places come last.
func compare(was, is []part) []difference {
	before := map[string][]string{}
	for _, p := range was {
		before[p.path] = append(before[p.path], p.value)
	}
	var out []difference
	for _, p := range is {
		switch left := before[p.path]; {
		case len(left) == 0:
			out = append(out, difference{p.path, nil, &p.value})
		default:
			if left[0] != p.value {
				out = append(out, difference{p.path, &left[0], &p.value})
			}
			before[p.path] = left[1:]
		}
	}
	for _, p := range was {
		for _, v := range before[p.path] {
			out = append(out, difference{p.path, &v, nil})
		}
		delete(before, p.path)
	}
	if len(out) == 0 && !slices.Equal(was, is) {
		return []difference{{path: "only the order of the names changed"}}
	}
	return out
}

func (d difference) lines() []string {
	path := visible.Text(d.path)
	if path == "" {
		path = "the definition"
	}
	switch {
	case d.before == nil && d.is == nil:
		return []string{"  " + path}
	case d.before == nil:
		text := unquote(*d.is)
		return []string{"+ " + path + ": " + excerpt(text, 0)}
	case d.is == nil:
		text := unquote(*d.before)
		return []string{"- " + path + ": " + excerpt(text, 0)}
	}
	a, b := unquote(*d.before), unquote(*d.is)
	if a == b { // two notations of the same text
		a, b = *d.before, *d.is
	}
	return change(path, a, b)
}

// change shows both sides around the first character that differs.
func change(path, a, b string) []string {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	for at > 0 && (at < len(a) && !utf8.RuneStart(a[at]) || at < len(b) && !utf8.RuneStart(b[at])) {
		at--
	}
	out := []string{"- " + path + ": " + excerpt(a, at), "+ " + path + ": " + excerpt(b, at)}
	from, _ := utf8.DecodeRuneInString(a[at:])
	to, _ := utf8.DecodeRuneInString(b[at:])
	if from > 0x7F && at < len(a) || to > 0x7F && at < len(b) {
		out = append(out, fmt.Sprintf("  the first difference: %s became %s", point(a[at:], from), point(b[at:], to)))
	}
	return out
}

func point(rest string, r rune) string {
	if rest == "" {
		return "the end"
	}
	return fmt.Sprintf("U+%04X", r)
}

// excerpt returns the part of s around a byte. The parameter at is the index of this byte. The part is on one line, and
// its invisible characters are escaped. The excerpt marks omitted parts.
func excerpt(s string, at int) string {
	start := 0
	if utf8.RuneCountInString(s) > maxText && at > context {
		for start = at - context; start > 0 && start < len(s) && !utf8.RuneStart(s[start]); start-- {
		}
	}
	cut := []rune(s[start:])
	after := max(0, len(cut)-maxText)
	text := strings.ReplaceAll(visible.Text(string(cut[:len(cut)-after])), "\n", " ⏎ ")
	if start > 0 {
		text = fmt.Sprintf("(%d characters before) … %s", utf8.RuneCountInString(s[:start]), text)
	}
	if after > 0 {
		text = fmt.Sprintf("%s … (%d more characters)", text, after)
	}
	return text
}

// unquote returns a JSON value in a form for people. For a JSON string, unquote returns the text in quotes, but without
// escapes.
func unquote(v string) string {
	if !strings.HasPrefix(v, `"`) {
		return v
	}
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return v
	}
	return `"` + string(text) + `"`
}
