package form

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/slackapi"
	"countersign/internal/visible"
)

// fieldKind is the kind of input that edits an argument.
type fieldKind int

const (
	fieldText fieldKind = iota
	fieldLong
	fieldNumber
	fieldInteger
	fieldBool
	fieldChoice
	fieldMany // a list of values from a fixed set
	fieldDate
	fieldMoment
	fieldEmail
	fieldURL
	fieldJSON   // the value as JSON, if no other input suits it
	fieldLocked // too long for an input; not editable
	fieldMasked // secret; not editable
)

// field is one argument in a form.
type field struct {
	name     string
	kind     fieldKind
	hint     string
	required bool
	present  bool
	stored   []byte            // exact bytes of the argument
	initial  string            // initial text of the input
	title    string            // title in the schema
	choices  []json.RawMessage // the values of a menu, for fieldChoice and fieldMany
	titles   []string          // titles of the choices in the schema, if it has any
	min, max string            // the limits of a number
}

// property is the part of an argument's schema that the bot reads.
type property struct {
	Type        json.RawMessage   `json:"type"`
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Minimum     *json.Number      `json:"minimum"`
	Maximum     *json.Number      `json:"maximum"`
	MaxLength   *int              `json:"maxLength"`
	AnyOf       json.RawMessage   `json:"anyOf"`
	OneOf       json.RawMessage   `json:"oneOf"`
	EnumNames   []string          `json:"enumNames"`
	Items       json.RawMessage   `json:"items"`
	Title       string            `json:"title"`
	AllOf       json.RawMessage   `json:"allOf"`
	Ref         string            `json:"$ref"`
	Const       json.RawMessage   `json:"const"`
}

// objectSchema is the part of a tool's schema that the bot reads.
type objectSchema struct {
	Properties json.RawMessage `json:"properties"`
	Required   []string        `json:"required"`
	OneOf      json.RawMessage `json:"oneOf"`
	AnyOf      json.RawMessage `json:"anyOf"`
	Ref        string          `json:"$ref"`
}

// fieldsOf returns a field for each argument: first the arguments in the schema, in the schema's order, then the call's
// other arguments. If the schema is not suitable for such fields, fieldsOf returns nil, and the arguments are edited as
// JSON.
func fieldsOf(schema json.RawMessage, args []byte, secrets []string) []field {
	var s objectSchema
	if json.Unmarshal(schema, &s) != nil || s.Ref != "" || s.OneOf != nil || s.AnyOf != nil {
		return nil
	}
	_, values := argument.Members(args)
	var out []field
	known, properties := argument.Members(s.Properties)
	for _, n := range known {
		var p property
		if json.Unmarshal(properties[n], &p) != nil {
			p = property{Ref: "unreadable"}
		}
		f := field{name: n, required: slices.Contains(s.Required, n), hint: p.Description, title: p.Title}
		f.stored, f.present = values[n]
		if approvers.HoldsSecret(secrets, n) || slices.Contains(secrets, "*") {
			f.kind = fieldMasked
			out = append(out, f)
			continue
		}
		out = append(out, f.fit(p))
	}
	names, _ := argument.Members(args)
	for _, n := range names {
		if f := (field{name: n, present: true, stored: values[n]}); !slices.Contains(known, n) {
			if approvers.HoldsSecret(secrets, n) {
				f.kind = fieldMasked
				out = append(out, f)
				continue
			}
			out = append(out, f.asJSON())
		}
	}
	if len(out) == 0 || len(out) > maxFormFields || !fitForm(out) {
		return nil
	}
	return out
}

// fitForm makes the fields fit into one view. fitForm turns long menus into text inputs, then locks the longest
// arguments. fitForm reports whether the fields fit into one view.
func fitForm(fields []field) bool {
	bytes := make([]int, len(fields))
	total := 0
	for i, f := range fields {
		bytes[i] = f.bytes()
		total += bytes[i]
	}
	for total > maxFormBytes {
		longest := -1
		for i, f := range fields {
			if (f.menued() || f.initial != "" && f.kind != fieldLocked) && (longest < 0 || bytes[i] > bytes[longest]) {
				longest = i
			}
		}
		if longest < 0 {
			return false
		}
		if fields[longest].menued() {
			fields[longest] = fields[longest].asJSON()
		} else {
			fields[longest].kind = fieldLocked
		}
		total -= bytes[longest]
		bytes[longest] = fields[longest].bytes()
		total += bytes[longest]
	}
	return true
}

// bytes returns the size of the field in the view.
func (f field) bytes() int {
	var shown any = f.block()
	if f.kind == fieldLocked {
		shown = block.Visible(f.name)
	}
	raw, err := json.Marshal(shown)
	if err != nil {
		return slackapi.MaxViewBytes // the block can't be encoded, so it counts as too large
	}
	return len(raw)
}

// fit chooses the kind of input that suits the schema and the stored value.
func (f field) fit(p property) field {
	if p.OneOf != nil && p.AnyOf == nil {
		values, titles := consts(p.OneOf)
		if values == nil || p.Ref != "" || p.AllOf != nil || p.Const != nil {
			return f.asJSON()
		}
		return f.asChoice(values, titles)
	}
	if p.Ref != "" || p.AnyOf != nil || p.AllOf != nil || p.Const != nil {
		return f.asJSON()
	}
	if len(p.Enum) > 0 {
		return f.asChoice(p.Enum, p.EnumNames)
	}
	var kind string
	if json.Unmarshal(p.Type, &kind) != nil { // the schema names several types for the argument, or no type
		return f.asJSON()
	}
	switch kind {
	case "string":
		return f.asText(p)
	case "integer", "number":
		return f.asNumber(p, kind)
	case "array":
		return f.asMany(p.Items)
	case "boolean":
		f.kind = fieldBool
		f.initial = string(f.stored)
		if f.present && f.initial != "true" && f.initial != "false" {
			return f.asJSON()
		}
		return f
	}
	return f.asJSON()
}

func (f field) asNumber(p property, kind string) field {
	f.kind = fieldNumber
	if kind == "integer" {
		f.kind = fieldInteger
	}
	if f.initial = string(f.stored); f.present && !argument.PlainNumber.MatchString(f.initial) {
		return f.asJSON()
	}
	if p.Minimum != nil && argument.PlainNumber.MatchString(p.Minimum.String()) {
		f.min = p.Minimum.String()
	}
	if p.Maximum != nil && argument.PlainNumber.MatchString(p.Maximum.String()) {
		f.max = p.Maximum.String()
	}
	return f
}

func (f field) asText(p property) field {
	if f.present {
		text, err := jsontext.AppendUnquote(nil, f.stored)
		if err != nil || block.CountHidden(string(text)) > 0 || bytes.ContainsAny(text, "\r\t") {
			return f.asJSON() // a text input would hide or change some of the characters
		}
		f.initial = string(text)
	}
	if block.Width(f.initial) > slackapi.MaxInput {
		f.kind = fieldLocked
		return f
	}
	_, notDate := time.Parse(time.DateOnly, f.initial)
	switch {
	case p.Format == "date" && (notDate == nil || f.initial == ""):
		f.kind = fieldDate
	case p.Format == "date-time" && f.initial == "":
		f.kind = fieldMoment
	case p.Format == "email" || p.Format == "idn-email":
		f.kind = fieldEmail
	case p.Format == "uri" || p.Format == "url":
		f.kind = fieldURL
	case strings.Contains(f.initial, "\n") || block.Width(f.initial) > 100 || p.MaxLength != nil && *p.MaxLength > 200:
		f.kind = fieldLong
	}
	return f
}

// asJSON edits the value as JSON, with invisible characters escaped.
func (f field) asJSON() field {
	f.kind, f.initial = fieldJSON, ""
	if !f.present {
		return f
	}
	f.initial = escapedJSON(f.stored)
	if block.Width(f.initial) > slackapi.MaxInput {
		f.kind = fieldLocked
	}
	return f
}

// escapedJSON writes hidden characters of a JSON text as equivalent \u escapes.
func escapedJSON(raw []byte) string {
	var b strings.Builder
	text := string(raw)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r > 0xFFFF && visible.Hidden(text[:i], r, text[i+n:]):
			surrogates := r - 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+surrogates>>10, 0xDC00+surrogates&0x3FF)
		case r > 0x7F && visible.Hidden(text[:i], r, text[i+n:]):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// blockID returns the ID of the field's block. Submitted values and faults are found by this ID.
func (f field) blockID() string {
	if argument.SimpleName.MatchString(f.name) && len(f.name) <= 200 {
		return "arg." + f.name
	}
	sum := sha256.Sum256([]byte(f.name))
	return "arg:" + hex.EncodeToString(sum[:12])
}

// asChoice makes the field a menu. If one of the values does not fit in a menu, or if the stored value is none of them,
// the value is edited as JSON instead.
func (f field) asChoice(values []json.RawMessage, titles []string) field {
	f.kind = fieldChoice
	if !f.offer(values, titles) {
		return f.asJSON()
	}
	for i, v := range values {
		if f.present && sameValue(v, f.stored) {
			f.initial = strconv.Itoa(i)
		}
	}
	if f.present && f.initial == "" {
		return f.asJSON()
	}
	return f
}

// menued reports whether the field is a menu.
func (f field) menued() bool { return f.kind == fieldChoice || f.kind == fieldMany }

// offer sets the options of a menu. offer returns true only if every value is a word or a number, and all values fit in
// a menu.
func (f *field) offer(values []json.RawMessage, titles []string) bool {
	if len(values) == 0 || len(values) > slackapi.MaxOptions {
		return false
	}
	f.choices = values
	if len(titles) == len(values) {
		f.titles = titles
	}
	for i, v := range values {
		if c := f.choice(i); choiceText(v) == "" || block.Width(c) > slackapi.MaxOptionText || v[0] == '{' || v[0] == '[' {
			return false
		}
	}
	return true
}

// choice returns the label of an option: its title in the schema, and the value that is sent.
func (f field) choice(i int) string {
	value := choiceText(f.choices[i])
	if f.titles == nil || f.titles[i] == "" || block.OneLine(f.titles[i]) == value {
		return value
	}
	return block.OneLine(f.titles[i]) + " (" + value + ")"
}

// consts returns the values of a schema's list of alternatives. If an alternative admits more than one value, consts
// returns nil.
func consts(alternatives json.RawMessage) (values []json.RawMessage, titles []string) {
	var list []struct {
		Const json.RawMessage `json:"const"`
		Title string          `json:"title"`
	}
	if json.Unmarshal(alternatives, &list) != nil {
		return nil, nil
	}
	for _, one := range list {
		if one.Const == nil {
			return nil, nil
		}
		values, titles = append(values, one.Const), append(titles, one.Title)
	}
	return values, titles
}

// asMany makes the field a menu with several choices. If a value that the list may contain does not fit in a menu, the
// list is edited as JSON instead.
func (f field) asMany(items json.RawMessage) field {
	var p property
	if json.Unmarshal(items, &p) != nil {
		return f.asJSON()
	}
	values, titles := p.Enum, p.EnumNames
	if values == nil && p.OneOf != nil {
		values, titles = consts(p.OneOf)
	} else if values == nil && p.AnyOf != nil {
		values, titles = consts(p.AnyOf)
	}
	f.kind = fieldMany
	if !f.offer(values, titles) {
		return f.asJSON()
	}
	var stored []json.RawMessage
	if f.present && json.Unmarshal(f.stored, &stored) != nil {
		return f.asJSON()
	}
	var chosen []string
	for i, v := range values {
		if slices.ContainsFunc(stored, func(s json.RawMessage) bool { return sameValue(s, v) }) {
			chosen = append(chosen, strconv.Itoa(i))
		}
	}
	if len(chosen) != len(stored) {
		return f.asJSON() // the stored list has another value, or a duplicate
	}
	f.initial = strings.Join(chosen, ",")
	return f
}

func sameValue(a, b []byte) bool {
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	return x.Canonicalize() == nil && y.Canonicalize() == nil && bytes.Equal(x, y)
}

// choiceText returns a menu value as text.
func choiceText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return block.Visible(s)
	}
	return block.Visible(string(v))
}
