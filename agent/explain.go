package agent

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// explain describes every fault that the validator found, in words for the model and for people. The text does not
// contain the values of arguments.
func explain(e *jsonschema.ValidationError, root any) []problem {
	path := fieldPath(e.InstanceLocation, root)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return missing(path, k.Missing, "")
	case *kind.DependentRequired:
		return missing(path, k.Missing, " (needed because "+k.Prop+" is given)")
	case *kind.Dependency:
		return missing(path, k.Missing, " (needed because "+k.Prop+" is given)")
	case *kind.AdditionalProperties:
		return nil // unknownProperties reports this fault, with the known names
	case *kind.FalseSchema:
		return []problem{{path, "is not allowed"}}
	case *kind.AnyOf, *kind.OneOf:
		return []problem{{path, alternatives(e, root)}}
	}
	if len(e.Causes) == 0 {
		return []problem{{path, fault(e.ErrorKind)}}
	}
	var out []problem
	for _, cause := range e.Causes {
		out = append(out, explain(cause, root)...)
	}
	return out
}

func missing(path string, names []string, why string) []problem {
	var out []problem
	for _, name := range names {
		out = append(out, problem{join(path, name), "is missing" + why})
	}
	return out
}

// alternatives explains why a value fits none of the schema's alternatives, or more than one.
func alternatives(e *jsonschema.ValidationError, root any) string {
	if k, ok := e.ErrorKind.(*kind.OneOf); ok && len(k.Subschemas) > 0 {
		return "fits more than one of the allowed forms; leave out what makes it ambiguous"
	}
	var forms []string
	for _, cause := range e.Causes {
		if found := explain(cause, root); len(found) > 0 {
			forms = append(forms, "("+list(found)+")")
		}
	}
	if len(forms) == 0 {
		return "fits none of the allowed forms"
	}
	return "fits none of the allowed forms: " + strings.Join(forms, " or ")
}

// fault describes a single fault.
func fault(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, but is %s", typeNames(k.Want), typeNames([]string{k.Got}))
	case *kind.Enum:
		if len(k.Want) == 1 {
			return "must be " + value(k.Want[0])
		}
		return "must be one of " + values(k.Want)
	case *kind.Const:
		return "must be " + value(k.Want)
	case *kind.Format:
		return "must be " + formatName(k.Want)
	case *kind.Pattern:
		return fmt.Sprintf("must match the pattern %s", k.Want)
	case *kind.MinLength:
		if k.Want == 1 {
			return "must not be empty"
		}
		return fmt.Sprintf("must have at least %s, but has %d", count(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s, but has %d", count(k.Want, "character"), k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s, but has %d", count(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s, but has %d", count(k.Want, "item"), k.Got)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %s too many", count(k.Count, "item"))
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %s, but has %d", count(k.Want, "field"), k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %s, but has %d", count(k.Want, "field"), k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat an item, but items %d and %d are equal", k.Duplicates[0]+1, k.Duplicates[1]+1)
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	case *kind.Not:
		return "has a form that is not allowed"
	case *kind.Contains, *kind.MinContains, *kind.MaxContains:
		return "does not contain the items that are needed"
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// number formats a bound for people. A bound with few digits is formatted exactly and without an exponent.
func number(r *big.Rat) string {
	if r.IsInt() && len(r.Num().String()) <= 20 {
		return r.Num().String()
	}
	for digits := 1; digits <= 12; digits++ {
		text := r.FloatString(digits)
		if back, ok := new(big.Rat).SetString(text); ok && back.Cmp(r) == 0 {
			return text
		}
	}
	f, _ := r.Float64()
	return fmt.Sprint(f)
}

var typePhrases = map[string]string{
	"string": "a text", "number": "a number", "integer": "a whole number", "boolean": "true or false",
	"object": "an object", "array": "a list", "null": "null",
}

func typeNames(names []string) string {
	var out []string
	for _, n := range names {
		if phrase, ok := typePhrases[n]; ok {
			n = phrase
		}
		out = append(out, n)
	}
	return strings.Join(out, " or ")
}

var formatPhrases = map[string]string{
	"email": "an e-mail address", "date": "a date such as 2026-01-31", "time": "a time such as 15:04:05Z",
	"date-time": "a date and time such as 2026-01-31T15:04:05Z", "uri": "a whole URL", "uuid": "a UUID", "ipv4": "an IPv4 address",
	"ipv6": "an IPv6 address", "hostname": "a host name", "duration": "a duration such as P3D", "regex": "a regular expression",
}

func formatName(format string) string {
	if phrase, ok := formatPhrases[format]; ok {
		return phrase
	}
	return "a valid " + format
}

// maxValues limits the number of listed values.
const maxValues = 20

func values(all []any) string {
	var out []string
	for i, v := range all {
		if i == maxValues {
			out = append(out, fmt.Sprintf("%d more", len(all)-maxValues))
			break
		}
		out = append(out, value(v))
	}
	return strings.Join(out, ", ")
}

// value formats a value from the schema as JSON.
func value(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
