package approvers

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// ToolWords splits a tool's name into words: "crm.updateProfile" becomes "Crm update profile".
func ToolWords(name string) string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(before):
			b.WriteRune(' ')
		}
		b.WriteRune(r)
		before = r
	}
	words := strings.Fields(b.String())
	if len(words) == 0 {
		return name
	}
	for i, w := range words {
		acronym := strings.ToUpper(w) == w && len(w) < 5 && strings.ToLower(name) != name
		if !acronym {
			words[i] = strings.ToLower(w)
		}
	}
	text := []rune(strings.Join(words, " "))
	text[0] = unicode.ToUpper(text[0])
	return string(text)
}

// RequiredArguments lists the arguments that a schema requires, in the order in which it describes them.
func RequiredArguments(schema json.RawMessage) []string {
	var s struct {
		Required   []string        `json:"required"`
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	order := memberNames(s.Properties)
	slices.SortStableFunc(s.Required, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return s.Required
}

// memberNames returns the names of an object's members in order, or nil if raw is not an object.
func memberNames(raw json.RawMessage) (names []string) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil
	}
	for dec.PeekKind() != '}' {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		names = append(names, tok.String())
		if dec.SkipValue() != nil {
			return nil
		}
	}
	return names
}
