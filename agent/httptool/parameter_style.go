package httptool

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"countersign/agent/jsonobject"
)

// This file encodes arguments for each part of a request. If a value can't be encoded, the model gets an error that
// names the argument and says what to change.

// style is the notation of a list or object in a text, in the terms of OpenAPI.
type style struct {
	kind    string // a style of OpenAPI, "json", or "list" (name=a&name=b); empty: lists and objects are refused
	explode bool
	name    string // the parameter's name, if it differs from the argument's name
}

// piece is a part of a path, query value or header.
type piece struct {
	text  string // literal text from the operator
	arg   string // the name of an argument, whose value replaces the piece; empty: the piece is literal text
	style style
}

// field is a query parameter, header or cookie.
type field struct {
	name   string
	pieces []piece
}

// whole returns the argument that is the entire value of the field. If the field has other text, the second result is
// false.
func (f field) whole() (piece, bool) {
	if len(f.pieces) == 1 && f.pieces[0].arg != "" {
		return f.pieces[0], true
	}
	return piece{}, false
}

// call holds a call's arguments by name.
type call map[string]json.RawMessage

// text returns an argument that must be a single text, number or boolean.
func (c call) text(name, place string) (string, error) {
	s, ok := plain(c[name])
	if !ok {
		return "", fmt.Errorf("%s must be a text, a number, true or false, because it is part of the %s", name, place)
	}
	return s, nil
}

// lacks reports whether an argument in the pieces is missing.
func (c call) lacks(pieces []piece) bool {
	for _, p := range pieces {
		if p.arg != "" && absent(c[p.arg]) {
			return true
		}
	}
	return false
}

const unreserved = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"

// escape percent-encodes all bytes except ASCII letters, digits, "-", ".", "_" and "~".
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte(unreserved, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// path returns the path of the URL. An argument can't add or remove a segment.
func (c call) path(pieces []piece) (string, error) {
	var b strings.Builder
	for _, p := range pieces {
		if p.arg == "" {
			b.WriteString(p.text)
			continue
		}
		if absent(c[p.arg]) {
			return "", fmt.Errorf("%s is missing; the URL's path needs a value for it", p.arg)
		}
		parts, err := c.parts(p, "address's path")
		if err != nil {
			return "", err
		}
		for _, part := range parts {
			for _, s := range []string{part.key, part.value} {
				if err := segmentFault(p.arg, s); err != nil {
					return "", err
				}
			}
		}
		text := pathStyle(p, parts)
		if text == "" {
			return "", fmt.Errorf("%s is empty; the URL's path needs a value for it", p.arg)
		}
		b.WriteString(text)
	}
	for segment := range strings.SplitSeq(strings.TrimPrefix(b.String(), "/"), "/") {
		if name, _, _ := strings.Cut(decoded(segment), ";"); name == "." || name == ".." {
			return "", fmt.Errorf("the URL's path would contain the segment %q, which leads to another path", name)
		}
	}
	return b.String(), nil
}

// segmentFault returns an error if a value is not safe in a path segment, even if the server decodes it more than once.
func segmentFault(arg, value string) error {
	for _, s := range []string{value, decoded(value)} {
		if strings.ContainsAny(s, `/\`) {
			return fmt.Errorf("%s is put into the URL's path, so it can't contain a slash or a backslash", arg)
		}
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%s is put into the URL's path, so it can't contain a control character", arg)
		}
	}
	return nil
}

// decoded returns a text after repeated percent-decoding.
func decoded(s string) string {
	for range 4 {
		d, err := url.PathUnescape(s)
		if err != nil || d == s {
			break
		}
		s = d
	}
	return s
}

// part is one value of an argument, with its key if it comes from an object.
type part struct {
	key, value string
	keyed      bool
}

// parts returns the values of an argument. For a list or object, parts returns the contained values.
func (c call) parts(p piece, place string) ([]part, error) {
	raw := c[p.arg]
	if p.style.kind == "json" {
		return []part{{value: string(raw)}}, nil
	}
	if s, ok := plain(raw); ok {
		return []part{{value: s}}, nil
	}
	flat := fmt.Errorf("%s must hold only texts, numbers, true or false, because it is part of the %s", p.arg, place)
	var out []part
	switch {
	case p.style.kind == "":
		_, err := c.text(p.arg, place)
		return nil, err
	case raw[0] == '[':
		items, err := jsonobject.ReadList(raw)
		if err != nil {
			return nil, flat
		}
		for _, item := range items {
			s, ok := plain(item)
			if !ok {
				return nil, flat
			}
			out = append(out, part{value: s})
		}
	case p.style.kind == "list": // a server could mistake an object's keys for parameters
		return nil, flat
	default:
		fields, err := members(raw)
		if err != nil {
			return nil, flat
		}
		for _, f := range fields {
			s, ok := plain(f.Value)
			if !ok {
				return nil, flat
			}
			out = append(out, part{key: f.Name, value: s, keyed: true})
		}
	}
	return out, nil
}

// pathStyle encodes an argument for a path, by OpenAPI's rules.
func pathStyle(p piece, parts []part) string {
	prefix, separator := "", ","
	switch p.style.kind {
	case "label":
		prefix = "."
		if p.style.explode {
			separator = "."
		}
	case "matrix":
		prefix = ";" + escape(p.style.name) + "="
		if p.style.explode {
			separator = prefix
		}
		if p.style.explode && len(parts) > 0 && parts[0].keyed {
			prefix, separator = ";", ";"
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return prefix + joined(parts, separator, p.style.explode, escape)
}

// joined joins values with a separator. In an object, each key comes before its value. If explode is set, "=" stands
// between the key and the value. If explode is not set, the separator stands between the key and the value.
func joined(parts []part, separator string, explode bool, write func(string) string) string {
	var out []string
	for _, p := range parts {
		switch {
		case p.keyed && explode:
			out = append(out, write(p.key)+"="+write(p.value))
		case p.keyed:
			out = append(out, write(p.key), write(p.value))
		default:
			out = append(out, write(p.value))
		}
	}
	return strings.Join(out, separator)
}

// query encodes the query parameters. Parameters without a value are omitted.
func (c call) query(fields []field) ([]string, error) {
	var out []string
	for _, f := range fields {
		if c.lacks(f.pieces) {
			continue
		}
		if p, ok := f.whole(); ok {
			parts, err := c.parts(p, "address's query")
			if err != nil {
				return nil, err
			}
			out = append(out, queryStyle(f.name, p, parts)...)
			continue
		}
		var b strings.Builder
		for _, p := range f.pieces {
			if p.arg == "" {
				b.WriteString(p.text)
				continue
			}
			s, err := c.text(p.arg, "address's query")
			if err != nil {
				return nil, err
			}
			b.WriteString(escape(s))
		}
		out = append(out, f.name+"="+b.String())
	}
	return out, nil
}

// queryStyle encodes an argument for a query, by OpenAPI's rules. The name is already encoded.
func queryStyle(name string, p piece, parts []part) []string {
	separator := map[string]string{"spaceDelimited": "%20", "pipeDelimited": "%7C"}[p.style.kind]
	var out []string
	switch {
	case p.style.kind == "deepObject":
		for _, x := range parts {
			out = append(out, name+"%5B"+escape(x.key)+"%5D="+escape(x.value))
		}
	case p.style.explode:
		for _, x := range parts {
			if x.keyed {
				out = append(out, escape(x.key)+"="+escape(x.value))
			} else {
				out = append(out, name+"="+escape(x.value))
			}
		}
	case len(parts) > 0:
		if separator == "" {
			separator = ","
		}
		out = append(out, name+"="+joined(parts, separator, false, escape))
	}
	return out
}

// header returns the value of a header or cookie. If one of the arguments is missing, the second result is false.
func (c call) header(f field) (string, bool, error) {
	if c.lacks(f.pieces) {
		return "", false, nil
	}
	var b strings.Builder
	for _, p := range f.pieces {
		if p.arg == "" {
			b.WriteString(p.text)
			continue
		}
		parts, err := c.parts(p, "header "+f.name)
		if err != nil {
			return "", false, err
		}
		text := joined(parts, ",", p.style.explode, func(s string) string { return s })
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
			return "", false, fmt.Errorf("%s has a character that is not allowed in the header %s; use only printable ASCII characters", p.arg, f.name)
		}
		b.WriteString(text)
	}
	text := b.String()
	if text != strings.TrimSpace(text) {
		return "", false, fmt.Errorf("the header %s would begin or end with a space, which gets lost on the way", f.name)
	}
	return text, true, nil
}

// cookie returns a cookie as name and value. If one of the arguments is missing, the second result is false.
func (c call) cookie(f field) (string, bool, error) {
	text, ok, err := c.header(f)
	if err == nil && strings.ContainsAny(text, "\" ,;\\") {
		err = fmt.Errorf("%s has a character that is not allowed in a cookie", f.pieces[0].arg)
	}
	return f.name + "=" + text, ok, err
}
