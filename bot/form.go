package bot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/approvers"
	"countersign/internal/visible"
)

// fieldKind says with which input an argument is edited.
type fieldKind int

const (
	fieldText fieldKind = iota
	fieldLong
	fieldNumber
	fieldInteger
	fieldBool
	fieldChoice
	fieldMany // several of given values
	fieldDate
	fieldMoment
	fieldEmail
	fieldURL
	fieldJSON   // the value as JSON: for what has no input of its own
	fieldLocked // too long for an input: stays as it is
	fieldMasked // secret: stays as it is
)

// field is one argument of a form.
type field struct {
	name     string
	kind     fieldKind
	hint     string
	required bool
	present  bool
	stored   []byte            // the argument's exact bytes
	initial  string            // what the input shows at first
	title    string            // what the schema calls it
	choices  []json.RawMessage // for fieldChoice and fieldMany
	titles   []string          // what the schema calls them, where it does
	min, max string            // for numbers
}

// property is what the bot reads of an argument's schema.
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

// objectSchema is what the bot reads of a tool's schema.
type objectSchema struct {
	Properties json.RawMessage `json:"properties"`
	Required   []string        `json:"required"`
	OneOf      json.RawMessage `json:"oneOf"`
	AnyOf      json.RawMessage `json:"anyOf"`
	Ref        string          `json:"$ref"`
}

// fieldsOf makes a field of each argument: those of the schema in its order, then what the call has beside them. It is
// nil where a form would not do; then the arguments are edited as JSON.
func fieldsOf(schema json.RawMessage, args []byte, secrets []string) []field {
	var s objectSchema
	if json.Unmarshal(schema, &s) != nil || s.Ref != "" || s.OneOf != nil || s.AnyOf != nil {
		return nil
	}
	_, values := membersOf(args)
	var out []field
	known, properties := membersOf(s.Properties)
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
	names, _ := membersOf(args)
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

// fitForm makes the fields fit into one view: long menus become texts, and then the longest arguments stay as they are. It reports whether that did.
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

// bytes is how much of the view the field takes.
func (f field) bytes() int {
	var shown any = f.block()
	if f.kind == fieldLocked {
		shown = Visible(f.name)
	}
	raw, err := json.Marshal(shown)
	if err != nil {
		return maxViewBytes // it can't be shown at all
	}
	return len(raw)
}

// fit picks the input that suits the schema and the stored value.
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
	if json.Unmarshal(p.Type, &kind) != nil { // several types, or none
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

var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,10})?$`)

func (f field) asNumber(p property, kind string) field {
	f.kind = fieldNumber
	if kind == "integer" {
		f.kind = fieldInteger
	}
	if f.initial = string(f.stored); f.present && !plainNumber.MatchString(f.initial) {
		return f.asJSON()
	}
	if p.Minimum != nil && plainNumber.MatchString(p.Minimum.String()) {
		f.min = p.Minimum.String()
	}
	if p.Maximum != nil && plainNumber.MatchString(p.Maximum.String()) {
		f.max = p.Maximum.String()
	}
	return f
}

func (f field) asText(p property) field {
	if f.present {
		text, err := jsontext.AppendUnquote(nil, f.stored)
		if err != nil || countHidden(string(text)) > 0 || bytes.ContainsAny(text, "\r\t") {
			return f.asJSON() // an input would hide or change some of its characters
		}
		f.initial = string(text)
	}
	if width(f.initial) > maxInput {
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
	case strings.Contains(f.initial, "\n") || width(f.initial) > 100 || p.MaxLength != nil && *p.MaxLength > 200:
		f.kind = fieldLong
	}
	return f
}

// asJSON edits the value as JSON, with what can't be seen escaped.
func (f field) asJSON() field {
	f.kind, f.initial = fieldJSON, ""
	if !f.present {
		return f
	}
	f.initial = escapedJSON(f.stored)
	if width(f.initial) > maxInput {
		f.kind = fieldLocked
	}
	return f
}

// escapedJSON writes hidden characters of a JSON text as \u escapes, which mean the same.
func escapedJSON(raw []byte) string {
	var b strings.Builder
	var prev rune
	text := []rune(string(raw))
	for i, r := range text {
		next := rune(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case r > 0xFFFF && visible.Hidden(r, prev, next):
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		case r > 0x7F && visible.Hidden(r, prev, next):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		prev = r
	}
	return b.String()
}

// blockID names a field's block. Slack answers with it, and faults are keyed by it.
func (f field) blockID() string {
	if simpleName.MatchString(f.name) && len(f.name) <= 200 {
		return "arg." + f.name
	}
	sum := sha256.Sum256([]byte(f.name))
	return "arg:" + hex.EncodeToString(sum[:12])
}
