package agent

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tags are the parsed struct tags of a field.
type tags struct {
	name     string // from the json tag
	left     bool   // the tag json:"-" leaves the field out
	optional bool
	said     map[string]string // the other tags that this package reads, by key
}

// known lists the tags that this package reads. foreign lists tags that other packages read to describe arguments.
// Here, foreign tags would have no effect, so readTag refuses them. For each foreign tag, the map has the tag to use
// instead.
var (
	known   = []string{"doc", "min", "max", "above", "below", "places", "enum", "pattern", "format", "unique", "secret", "each_min", "each_max", "type"}
	foreign = map[string]string{
		"description": "doc", "jsonschema": "doc, min, max and the others", "jsonschema_description": "doc", "minimum": "min", "maximum": "max", "minLength": "min",
		"maxLength": "max", "minItems": "min", "maxItems": "max", "exclusiveMinimum": "above", "exclusiveMaximum": "below", "multipleOf": "places", "uniqueItems": "unique",
		"enums": "enum", "regexp": "pattern", "required": "no omitempty in the json tag", "optional": "omitempty in the json tag", "default": "the default into the function",
	}
)

// readTag parses a field's tags. readTag returns an error for a foreign tag, and for a tag that can't be read.
func readTag(f reflect.StructField) (tags, error) {
	all, ok := splitTags(string(f.Tag))
	if !ok {
		return tags{}, fmt.Errorf("the tags `%s` can't be read: write key:\"value\" pairs with one space between them, each key once", f.Tag)
	}
	t := tags{said: map[string]string{}}
	for key, text := range all {
		switch instead, is := foreign[key]; {
		case is:
			return t, fmt.Errorf("the tag %s is not read here; write %s", key, instead)
		case slices.Contains(known, key):
			t.said[key] = text
		}
	}
	text, tagged := all["json"]
	t.left = text == "-"
	name, options, _ := strings.Cut(text, ",")
	if tagged && !t.left {
		t.name = name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitempty", "omitzero":
			t.optional = true
		default:
			return t, fmt.Errorf("the json tag's option %q is not possible here; omitempty and omitzero are", option)
		}
	}
	return t, nil
}

// splitTags parses a struct tag as package reflect does. If a part of the tag is unreadable, splitTags returns false.
func splitTags(tag string) (map[string]string, bool) {
	all := map[string]string{}
	for tag = strings.TrimLeft(tag, " "); tag != ""; tag = strings.TrimLeft(tag, " ") {
		key, rest, ok := strings.Cut(tag, ":")
		if !ok || key == "" || strings.ContainsAny(key, " ,\"") {
			return nil, false
		}
		text, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, false
		}
		if _, twice := all[key]; twice {
			return nil, false
		}
		if all[key], err = strconv.Unquote(text); err != nil {
			return nil, false
		}
		tag = rest[len(text):]
	}
	return all, true
}

// limit adds the limits in the tags to the field's shape.
func (t tags) limit(s *shape) error {
	if s.own || (s.item != nil && s.item.own) {
		if err := t.kind(s); err != nil {
			return err
		}
	} else if t.said["type"] != "" {
		return errors.New("the tag type is only for types that read JSON themselves; all other types have a fixed JSON type")
	}
	each := s
	if s.kind == "array" || (s.kind == "object" && s.item != nil) {
		each = s.item
	}
	for _, key := range known { // the order is fixed, so that the first error is always the same
		text, is := t.said[key]
		if !is {
			continue
		}
		if err := setLimit(s, each, key, text); err != nil {
			return fmt.Errorf("%s:%q: %w", key, text, err)
		}
	}
	if !inOrder(s) || !inOrder(each) {
		return errors.New("the lower bound is above the upper one")
	}
	return nil
}

// kind sets the JSON type from the type tag, for a type with its own decoder.
func (t tags) kind(s *shape) error {
	if !s.own {
		s = s.item
	}
	s.kind = t.said["type"]
	if !slices.Contains([]string{"string", "number", "integer", "boolean"}, s.kind) {
		return errors.New(`the type reads its JSON itself (UnmarshalJSON), so say what it reads: type:"string", "number", "integer" or "boolean"`)
	}
	s.own = false
	return nil
}

var errNotOfThis = errors.New("a field of this type has no such limit")

// setLimit applies one tag. s is the shape of the field. each is the shape of the field's items, or s for a field
// without items.
func setLimit(s, each *shape, key, text string) (err error) { //nolint:cyclop // one case for each tag
	switch key {
	case "doc":
		if s.doc = text; text == "" || !utf8.ValidString(text) {
			return errors.New("a text is needed")
		}
	case "min":
		return bound(s, &s.least, text)
	case "max":
		return bound(s, &s.most, text)
	case "above":
		return numberBound(s, &s.above, text)
	case "below":
		return numberBound(s, &s.below, text)
	case "places":
		return places(s, text)
	case "each_min", "each_max":
		if each == s {
			return errors.New("only a list or a map has items")
		}
		if key == "each_min" {
			return bound(each, &each.least, text)
		}
		return bound(each, &each.most, text)
	case "enum":
		each.enum, err = enum(each, text)
	case "pattern":
		if _, err := regexp.Compile(text); each.kind != "string" || each.encoding != "" || text == "" || err != nil {
			return errors.New("a regular expression is needed, and the field must be a text")
		}
		each.pattern = text
	case "format":
		if each.kind != "string" || each.format != "" || each.encoding != "" || !slices.Contains(formats, text) {
			return errors.New("the field must be a text, and the format one of " + strings.Join(formats, ", "))
		}
		each.format = text
	case "unique":
		s.unique, err = yes(text, s.kind == "array")
	case "secret":
		s.secret, err = yes(text, true)
	}
	return err
}

// formats lists the accepted values of the format tag. Other formats are refused, because the validator does not
// check them. A password is masked like a secret.
var formats = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "password", "time", "uri", "uri-reference", "uuid",
}

func yes(text string, possible bool) (bool, error) {
	if text != "true" {
		return false, errors.New("write true, or leave the tag out")
	}
	if !possible {
		return false, errNotOfThis
	}
	return true, nil
}

var (
	plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?$`)
	wholeNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)
)

// bound sets a minimum or maximum of a value or of its length.
func bound(s *shape, at *string, text string) error {
	switch {
	case s.kind == "number" || s.kind == "integer":
		return numberBound(s, at, text)
	case s.encoding != "" || s.format == "date-time" || s.closed || bounds[s.kind][0] == "":
		return errNotOfThis
	case !wholeNumber.MatchString(text):
		return errors.New("a whole number is needed")
	}
	*at = text
	return nil
}

func numberBound(s *shape, at *string, text string) error {
	if s.kind != "number" && s.kind != "integer" {
		return errNotOfThis
	}
	if !plainNumber.MatchString(text) || (s.kind == "integer" && strings.Contains(text, ".")) {
		return errors.New("a number that the field can hold is needed, without an exponent")
	}
	*at = text
	return nil
}

func places(s *shape, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 12 || s.kind != "number" {
		return errors.New("a whole number from 0 to 12 is needed, and the field must be a number that is not whole")
	}
	s.step = "1"
	if n > 0 {
		s.step = "0." + strings.Repeat("0", n-1) + "1"
	}
	return nil
}

// enum parses the allowed values, separated by commas.
func enum(s *shape, text string) ([]string, error) {
	var out []string
	for one := range strings.SplitSeq(text, ",") {
		switch {
		case s.kind == "string" && one != "" && one == strings.TrimSpace(one) && utf8.ValidString(one):
			one = string(quoted(one))
		case (s.kind == "number" || s.kind == "integer") && numberBound(s, new(string), one) == nil:
		default:
			return nil, errors.New("values that the field can hold are needed, separated by commas without spaces")
		}
		if slices.Contains(out, one) {
			return nil, fmt.Errorf("%s is listed twice", one)
		}
		out = append(out, one)
	}
	return out, nil
}

// inOrder reports whether each lower bound is at most its upper bound.
func inOrder(s *shape) bool {
	for _, low := range []string{s.least, s.above} {
		for _, high := range []string{s.most, s.below} {
			if low == "" || high == "" {
				continue
			}
			l, _ := new(big.Rat).SetString(low) // low and high are valid numbers
			h, _ := new(big.Rat).SetString(high)
			if c := l.Cmp(h); c > 0 || (c == 0 && (low != s.least || high != s.most)) {
				return false
			}
		}
	}
	return true
}
