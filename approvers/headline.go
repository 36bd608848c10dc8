package approvers

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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

// Telling is the kind of information that an argument gives about a call, such as an id or an amount. The argument's
// name determines this kind. Lower values are more important.
type Telling int

// The kinds of arguments.
const (
	TellsAmount Telling = iota
	TellsRecipient
	TellsSubject
	TellsOther
)

var tellingWords = map[Telling][]string{
	TellsAmount:    {"amount", "total", "sum", "price", "cost", "percent", "quantity", "budget", "value"},
	TellsRecipient: {"to", "recipient", "payee", "beneficiary", "account", "iban", "customer", "user", "email", "mail", "phone", "domain", "host"},
	TellsSubject:   {"id", "number", "order", "invoice", "ref", "reference", "sku", "key", "name", "table", "path"},
}

var nameParts = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// Tells reports whether an argument's name contains one of the words for a kind.
func Tells(member string, kind Telling) bool {
	return slices.ContainsFunc(nameParts.FindAllString(member, -1), func(part string) bool { return slices.Contains(tellingWords[kind], strings.ToLower(part)) })
}

// maxMade limits the length of a headline that MadeHeadline makes, in characters. maxMadeValue limits the length of
// each value in the headline. madeArguments limits the number of arguments in the headline.
const (
	maxMade       = 150
	maxMadeValue  = 40
	madeArguments = 3
)

// MadeHeadline returns the headline of a call. MadeHeadline uses the tool's title and the call's most important
// arguments. If the tool has no title, or a title that is long or has several lines, MadeHeadline uses the words of the
// tool's name. The parameter named order lists the arguments that the tool requires. Secret values are left out.
func MadeHeadline(title, tool string, order []string, args json.RawMessage, secrets []string) string {
	head := strings.TrimRight(strings.TrimSpace(title), ".:")
	if head == "" || utf8.RuneCountInString(head) > maxMade/2 || strings.ContainsAny(head, "\n\r") {
		head = ToolWords(tool)
	}
	subject := subjectOf(args, secrets)
	var parts []string
	if subject.value != "" {
		parts = append(parts, subject.value)
	}
	list := topLevel(args)
	rank := func(m argument) int {
		switch i := slices.Index(order, m.name); {
		case Tells(m.name, TellsAmount):
			return 0
		case Tells(m.name, TellsRecipient):
			return 1
		case i >= 0:
			return 2 + i
		}
		return 2 + len(order)
	}
	slices.SortStableFunc(list, func(a, b argument) int { return rank(a) - rank(b) })
	for _, m := range list {
		if m.name == subject.name {
			continue
		}
		if len(parts) == madeArguments {
			break
		}
		part := m.words()
		if value := m.short(); value != "" && !HoldsSecret(secrets, m.name) {
			part += " " + value
		}
		parts = append(parts, part)
	}
	for n := len(parts); n > 0; n-- {
		if text := head + ": " + strings.Join(parts[:n], ", "); utf8.RuneCountInString(text) <= maxMade {
			return text
		}
	}
	return head
}

// argument is an argument of a call.
type argument struct {
	name string
	raw  json.RawMessage
}

// subjectArgument is the argument that names the subject of a call. If the call has no such argument, subjectArgument
// is empty.
type subjectArgument struct{ name, value string }

// subjectOf returns the argument that identifies the subject of a call: an id, or a name.
func subjectOf(args json.RawMessage, secrets []string) subjectArgument {
	for _, m := range topLevel(args) {
		if value := m.short(); Tells(m.name, TellsSubject) && value != "" && !HoldsSecret(secrets, m.name) {
			return subjectArgument{m.name, value}
		}
	}
	return subjectArgument{}
}

// words returns the argument's name as words.
func (m argument) words() string {
	words := strings.ToLower(ToolWords(m.name))
	if utf8.RuneCountInString(words) > maxMadeValue {
		return cutTo(words, maxMadeValue)
	}
	return words
}

// short returns a value that fits into a headline: a number, or a short text on one line. For any other value, short
// returns "".
func (m argument) short() string {
	raw := bytes.TrimSpace(m.raw)
	if len(raw) == 0 || utf8.RuneCount(raw) > maxMadeValue {
		return ""
	}
	switch {
	case raw[0] == '"':
		text, err := jsontext.AppendUnquote(nil, raw)
		switch {
		case err != nil || strings.IndexFunc(string(text), unicode.IsControl) >= 0:
			return ""
		case strings.ContainsAny(string(text), " ,:"):
			return "“" + string(text) + "”"
		}
		return string(text)
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return string(raw)
	}
	return ""
}

// topLevel returns the members of an object in order, or nil if raw is not an object.
func topLevel(raw json.RawMessage) (list []argument) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return nil
	}
	for dec.PeekKind() != '}' {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		m := argument{name: tok.String()}
		value, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		m.raw = slices.Clone(json.RawMessage(value))
		list = append(list, m)
	}
	return list
}

// nameIn returns the name of the call's subject if text is a JSON object that contains such a name.
func nameIn(text string) string {
	var object map[string]json.RawMessage
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &object) != nil {
		return ""
	}
	for _, name := range []string{"customer_name", "customer", "full_name", "display_name", "name", "title"} {
		if m := (argument{name, object[name]}); len(m.raw) > 0 && m.raw[0] == '"' {
			if said := sentenceIn(m.raw); m.short() != "" {
				return said
			}
		}
	}
	return ""
}

// nameSubject adds the subject's name to a headline that MadeHeadline made.
func nameSubject(headline string, subject subjectArgument, name string) string {
	if subject.value == "" || name == "" || name == subject.value {
		return headline
	}
	before, after, found := strings.Cut(headline, ": "+subject.value)
	if !found {
		return headline
	}
	return cutTo(before+": "+subject.value+" ("+name+")"+after, MaxHeadline)
}

// RequiredArguments lists the arguments that a schema requires, in the order of the schema's properties.
func RequiredArguments(schema json.RawMessage) []string {
	var s struct {
		Required   []string        `json:"required"`
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	list := topLevel(s.Properties)
	at := func(name string) int { return slices.IndexFunc(list, func(m argument) bool { return m.name == name }) }
	slices.SortStableFunc(s.Required, func(a, b string) int { return at(a) - at(b) })
	return s.Required
}
