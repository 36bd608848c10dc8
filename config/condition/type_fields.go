package condition

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"

	"countersign/config/yamldoc"
)

// access is a field that a condition reads, or tests with has().
type access struct {
	of    term
	field string
	asked bool // the condition only tests the field with has()
	at    yamldoc.Mark
}

// field looks a field up in the schema.
func (t *typing) field(a access, given certain) term {
	name := a.of.part(suffix(a.field))
	if a.of.kinds&kindObject == 0 {
		t.say(yamldoc.Error, a.at, fmt.Sprintf("%s is %s, and has no field %s", a.of.called(), a.of.kinds, FieldName(a.field)), "read "+a.of.called()+" itself")
		return term{name: name, kinds: kindAnything}
	}
	shape, known := a.of.shape.Field(a.field)
	switch {
	case !known:
		t.unknownArgument(a)
	case a.asked, name == "", given[name], a.of.shape == nil, a.of.kinds != kindObject, a.of.shape.requires(a.field):
	default:
		t.optional(a, name)
	}
	if a.asked {
		return term{kinds: kindBool}
	}
	return term{name: name, kinds: shape.Kinds(), shape: shape}
}

// maxNames is how many names a hint lists.
const maxNames = 20

// unknownArgument reports a name that is not in the schema.
func (t *typing) unknownArgument(a access) {
	of, noun := a.of.called(), "field"
	if a.of.name == "args" && a.of.about == "" {
		of, noun = t.tool, "argument"
	}
	names := a.of.shape.Names()
	hint := "the schema lists none"
	switch {
	case len(names) == 1:
		hint = SuggestionOr(yamldoc.DidYouMean(a.field, names), "its only "+noun+" is "+names[0])
	case len(names) > 1:
		hint = SuggestionOr(yamldoc.DidYouMean(a.field, names), "its "+noun+"s are "+ListNames(names))
	}
	t.say(yamldoc.Error, a.at, fmt.Sprintf("%s has no %s %s", of, noun, FieldName(a.field)), hint)
}

// optional warns about an argument that a call may leave out.
func (t *typing) optional(a access, name string) {
	asks, asksNot := "has("+name+")", "!has("+name+")"
	if part := suffix(a.field); part[0] == '[' {
		asks = strconv.Quote(a.field) + " in " + a.of.name
		asksNot = "!(" + asks + ")"
	}
	t.say(yamldoc.Warning, a.at, name+" may be missing, and then the rule counts as matched",
		fmt.Sprintf("write %s && … if it should not match then, or %s || … if it should", asks, asksNot))
}

// equal reports values that can never be equal.
func (t *typing) equal(at yamldoc.Mark, left, right term) {
	if left.kinds.loose()&right.kinds.loose() != 0 {
		return
	}
	switch {
	case left.kinds == kindNull:
		t.neverNull(at, right)
	case right.kinds == kindNull:
		t.neverNull(at, left)
	default:
		t.unlike(at, left, right)
	}
}

// neverNull warns about a comparison with null that has no effect. People sometimes write such a comparison where
// has() is needed.
func (t *typing) neverNull(at yamldoc.Mark, of term) {
	hint := "remove the comparison"
	if of.name != "" {
		hint = "write has(" + of.name + ") to ask whether it was given"
	}
	t.say(yamldoc.Warning, at, of.called()+" is "+of.kinds.String()+", and never null", hint)
}

// The method reports a comparison of two values of different kinds.
func (t *typing) unlike(at yamldoc.Mark, a, b term) {
	if !a.named() && b.named() {
		a, b = b, a
	}
	switch {
	case a.kinds.loose()&b.kinds.loose() != 0:
		t.say(yamldoc.Error, at, fmt.Sprintf("%s is %s, which < and > can't compare", a.called(), a.kinds), "compare a part of it, or its size: size("+a.called()+") > 5")
	case b.named():
		t.say(yamldoc.Error, at, fmt.Sprintf("%s is %s, compared with %s, which is %s", a.called(), a.kinds, b.called(), b.kinds), "compare things of one kind")
	case a.named():
		t.say(yamldoc.Error, at, fmt.Sprintf("%s is %s, compared with %s", a.called(), a.kinds, b.kinds), unlikeHint(a, b))
	default:
		t.say(yamldoc.Error, at, fmt.Sprintf("compares %s with %s", a.kinds, b.kinds), "compare things of one kind")
	}
}

func (t term) named() bool { return t.name != "" || t.about != "" }

// unlikeHint returns the hint on how to write the literal b.
func unlikeHint(a, b term) string {
	s, isText := b.literal.(types.String)
	_, err := strconv.ParseFloat(string(s), 64)
	switch {
	case isText && a.kinds.loose() == KindNumber && err == nil, isText && a.kinds == kindBool && (s == "true" || s == "false"):
		return "write " + string(s) + " without quotation marks"
	case isText && a.kinds == kindList && a.name != "":
		return fmt.Sprintf("write %q in %s to look in the list", string(s), a.name)
	case b.literal != nil && b.kinds&KindNumber != 0 && a.kinds == kindText:
		return fmt.Sprintf(`write "%v" in quotation marks`, b.literal.Value())
	}
	return "compare it with " + a.kinds.String()
}

// neverThat reports a literal that is not among the possible values.
func (t *typing) neverThat(at yamldoc.Mark, of term, value any, values []any) {
	var shown, texts []string
	for _, v := range values {
		shown = append(shown, plainLiteral(v))
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		}
	}
	hint := "it is " + yamldoc.OneOf(shown[:min(len(shown), maxNames)])
	if s, ok := value.(string); ok {
		hint = SuggestionOr(yamldoc.DidYouMean(s, texts), hint)
	}
	t.say(yamldoc.Error, at, fmt.Sprintf("%s is never %s", of.called(), plainLiteral(value)), hint)
}

// SuggestionOr returns a hint. The hint has the suggestion, if there is one, and a list of the names that exist.
func SuggestionOr(meant, list string) string {
	if meant == "" {
		return list
	}
	return meant + " " + strings.ToUpper(list[:1]) + list[1:]
}

func plainLiteral(v any) string {
	switch v := v.(type) {
	case string:
		return yamldoc.Quote(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case nil:
		return "null"
	}
	written, err := json.Marshal(v)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(written)
}

// FieldName formats the name of a field for a message. A name that is not an identifier is quoted.
func FieldName(field string) string {
	if identifier.MatchString(field) {
		return field
	}
	return yamldoc.Quote(field)
}

// ListNames lists at most maxNames names in a hint.
func ListNames(names []string) string {
	if len(names) > maxNames {
		return strings.Join(names[:maxNames], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// containsHint returns the hint on how to write a condition with the operator in. The operator works only for a list
// or an object.
func containsHint(left, in term) string {
	if s, ok := left.literal.(types.String); ok && in.kinds == kindText && in.name != "" {
		return fmt.Sprintf("write %s.contains(%q)", in.name, string(s))
	}
	return `write a list, such as ["a", "b"]`
}
