package argument

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/config/preview"
)

// Text lays out arguments for people as a table of names and values. Text works on the stored bytes and omits nothing.
// Each name has its own line, and numbers look exactly as they are stored. A text that could be mistaken for another
// value, such as a number, is quoted. Each line of a multi-line text starts with a bar, so no text can look like another
// argument. Invisible characters are shown as ⟨…⟩. An edit of a file, which has the old and the new text, is shown as a
// difference by line: see pairs.
func Text(raw []byte) string { return MaskedText(raw, nil) }

// MaskedText is like Text, but shows a note in place of each secret value. No other text can look like this note,
// because the note's brackets are escaped in all other texts.
func MaskedText(raw []byte, secrets []string) string { return layout{secrets: secrets}.of(raw) }

// Table is like MaskedText, but the named arguments come first. If an argument has changed, the parameter "was" has its
// earlier value, laid out.
func Table(raw []byte, secrets, first []string, was map[string]string) string {
	return layout{secrets: secrets, first: first, was: was}.of(raw)
}

// layout lays out the arguments of a call.
type layout struct {
	secrets []string
	first   []string          // names of the top-level members that come first
	was     map[string]string // laid-out earlier values of the top-level members that changed

	dec  *jsontext.Decoder
	path []string // path of the member being laid out
}

func (l layout) of(raw []byte) string {
	l.dec = jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if l.dec.PeekKind() != '{' {
		return l.whole(raw)
	}
	list, err := l.members()
	if err != nil || !l.atEnd() {
		return l.whole(raw)
	}
	slices.SortStableFunc(list, func(a, b member) int { return l.rank(a) - l.rank(b) })
	text := strings.TrimSuffix(l.table(list), "\n")
	if text == "" {
		return NoArguments
	}
	return text
}

// NoArguments is the text about a call without arguments.
const NoArguments = "(no arguments)"

// The method "whole" lays out a value that is not an object. Stored arguments are always objects; a tool's answer may
// be any value.
func (l layout) whole(raw []byte) string {
	if len(l.secrets) > 0 {
		return Masked(nil)
	}
	return block.Visible(string(raw))
}

// OnOneLine lays out arguments on one line. Like the table, the line omits nothing. Each text that could be mistaken
// for another value or another argument is quoted.
func OnOneLine(raw []byte, secrets []string) string {
	l := layout{secrets: secrets, dec: jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))}
	if l.dec.PeekKind() != '{' {
		return block.OneLine(l.whole(raw))
	}
	text, err := l.inline()
	if err != nil || !l.atEnd() {
		return block.OneLine(l.whole(raw))
	}
	if text = text[1 : len(text)-1]; text == "" {
		return NoArguments
	}
	return text
}

// The method "inline" lays out a value on one line.
func (l *layout) inline() (string, error) {
	kind := l.dec.PeekKind()
	switch {
	case len(l.path) > 0 && l.secret():
		v, err := l.dec.ReadValue()
		return Masked(v), err
	case kind == '"':
		tok, err := l.dec.ReadToken()
		if err != nil {
			return "", err
		}
		if text := tok.String(); !needsNoQuotes(text) || inlineSigns.MatchString(text) {
			return quoted(text), nil
		}
		return tok.String(), nil
	case kind != '{' && kind != '[':
		v, err := l.dec.ReadValue()
		return block.Visible(string(v)), err
	}
	open, err := l.dec.ReadToken()
	if err != nil {
		return "", err
	}
	var parts []string
	for end := open.Kind() + 2; l.dec.PeekKind() != end; {
		name := ""
		if open.Kind() == '{' {
			tok, err := l.dec.ReadToken()
			if err != nil {
				return "", err
			}
			l.path = append(l.path, tok.String())
			name = memberName(tok.String()) + ": "
		}
		value, err := l.inline()
		if err != nil {
			return "", err
		}
		if name != "" {
			l.path = l.path[:len(l.path)-1]
		}
		parts = append(parts, name+value)
	}
	closed, err := l.dec.ReadToken()
	return open.String() + strings.Join(parts, ", ") + closed.String(), err
}

// inlineSigns matches the punctuation that separates values on one line.
var inlineSigns = regexp.MustCompile(`[{}\[\]]|[,:]( |$)`)

// rank returns a top-level member's position. The members that l.first names come before all other members.
func (l layout) rank(m member) int {
	if i := slices.Index(l.first, m.name); i >= 0 {
		return i
	}
	return len(l.first)
}

const bar = "│ "

// atEnd reports whether the input has ended.
func (l *layout) atEnd() bool {
	_, err := l.dec.ReadToken()
	return errors.Is(err, io.EOF)
}

const indent = "  "

// member is a laid-out member of an object: its value on the same line, or lines below it.
type member struct {
	name  string
	shown string // the name as it is shown
	laidOut
}

// laidOut is a laid-out value.
type laidOut struct {
	value string   // on the line of the name; or else:
	below []string // on lines below the name
	text  string   // the exact value, if it is a text that is not masked
}

// maxColumn is the greatest width of the column of names. Longer names don't widen the column.
const maxColumn = 20

// table writes members, with the values of short names in one column.
func (l layout) table(list []member) string {
	column := 0
	for _, m := range list {
		if n := block.Width(m.shown); m.value != "" && n <= maxColumn {
			column = max(column, n)
		}
	}
	var b strings.Builder
	for _, m := range list {
		b.WriteString(m.shown + ":")
		if m.value != "" {
			b.WriteString(strings.Repeat(" ", max(0, column-block.Width(m.shown))+1) + m.value)
		}
		b.WriteString("\n")
		for _, line := range m.below {
			b.WriteString(indent + line + "\n")
		}
	}
	return b.String()
}

// members lays out the members of an object.
func (l *layout) members() (list []member, err error) {
	if _, err := l.dec.ReadToken(); err != nil {
		return nil, err
	}
	for l.dec.PeekKind() != '}' {
		tok, err := l.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: tok.String(), shown: memberName(tok.String())}
		l.path = append(l.path, m.name)
		m.laidOut, err = l.value()
		if was, changed := l.was[m.name]; changed && len(l.path) == 1 {
			m.value, m.text = was+changedTo+m.value, ""
		}
		if l.path = l.path[:len(l.path)-1]; err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	_, err = l.dec.ReadToken()
	return pairs(list), err
}

// edits has the names of the arguments with the old and the new text of an edit, as coding agents name them.
var edits = [][]string{{"old_string", "new_string"}, {"old_str", "new_str"}}

// pairs shows the old and the new text of an edit as one difference, which has all lines of both texts. If one of the
// texts is empty, masked, given twice, or changed by an approver, or if both have only one line, they stay as they are.
// No other member can look like a difference, because a name with an arrow is quoted.
func pairs(list []member) []member {
	for _, names := range edits {
		var at []int // the positions of the members with these names
		for i, m := range list {
			if slices.Contains(names, m.name) {
				at = append(at, i)
			}
		}
		if len(at) != 2 || list[at[0]].name == list[at[1]].name {
			continue
		}
		was, is := list[at[0]], list[at[1]]
		if was.name != names[0] {
			was, is = is, was
		}
		if was.text == "" || is.text == "" || !strings.Contains(was.text+is.text, "\n") {
			continue
		}
		both := member{name: names[0], shown: was.shown + changedTo + is.shown}
		for _, line := range preview.Lines(was.text, is.text) {
			both.below = append(both.below, bar+line[:2]+block.Visible(line[2:])) // the sign and its space are not the text's
		}
		list[at[0]] = both
		list = slices.Delete(list, at[1], at[1]+1)
	}
	return list
}

// changedTo separates the earlier value of an argument from the current one. A text that contains an arrow is quoted,
// so it can't look like a changed value.
const changedTo = " → "

// SimpleName matches the name of an argument that is shown without quotes.
var SimpleName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

func memberName(s string) string {
	if SimpleName.MatchString(s) {
		return s
	}
	return quoted(s)
}

// secret reports whether the member being laid out is masked.
func (l *layout) secret() bool {
	return len(l.secrets) > 0 && approvers.IsSecret(l.secrets, strings.Join(l.path, "."))
}

// The method "value" lays out a value: on the line of its name, or on lines below it.
func (l *layout) value() (out laidOut, err error) {
	if l.secret() {
		v, err := l.dec.ReadValue()
		return laidOut{value: Masked(v)}, err
	}
	switch l.dec.PeekKind() {
	case '{':
		if l.empties('}') {
			return laidOut{value: "{}"}, l.dec.SkipValue()
		}
		list, err := l.members()
		return laidOut{below: lines(l.table(list))}, err
	case '[':
		if l.empties(']') {
			return laidOut{value: "[]"}, l.dec.SkipValue()
		}
		out.below, err = l.items()
		return out, err
	case '"':
		tok, err := l.dec.ReadToken()
		if err != nil {
			return out, err
		}
		out.text = tok.String()
		out.value, out.below = shownText(out.text)
		return out, nil
	}
	v, err := l.dec.ReadValue()
	return laidOut{value: block.Visible(string(v))}, err
}

// items lays out the values of a list, each behind a dash.
func (l *layout) items() (out []string, err error) {
	if _, err := l.dec.ReadToken(); err != nil {
		return nil, err
	}
	for l.dec.PeekKind() != ']' {
		item, err := l.value()
		if err != nil {
			return nil, err
		}
		out = append(out, strings.TrimSuffix("- "+item.value, " "))
		for _, one := range item.below {
			out = append(out, indent+one)
		}
	}
	_, err = l.dec.ReadToken()
	return out, err
}

func lines(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// empties reports whether the object or array that was just opened is empty.
func (l *layout) empties(end byte) bool {
	rest := bytes.TrimLeft(l.dec.UnreadBuffer(), " \t\r\n,:")
	return len(rest) > 0 && bytes.HasPrefix(bytes.TrimLeft(rest[1:], " \t\r\n"), []byte{end})
}

// shownText lays out a text. A text of one line is quoted only if it could be mistaken for another value. A text of
// several lines is shown line by line, each behind a bar.
func shownText(s string) (line string, below []string) {
	switch {
	case needsNoQuotes(s):
		return s, nil
	case !strings.Contains(s, "\n"):
		return quoted(s), nil
	}
	for line := range strings.SplitSeq(s, "\n") {
		below = append(below, bar+block.Visible(line))
	}
	return "", below
}

// needsNoQuotes reports whether a text needs no quotes. Such a text begins with a letter, a digit or a sign that is
// common in names. It does not look like a number or another JSON value. It has only single spaces, and needs no
// escapes.
func needsNoQuotes(s string) bool {
	return plainStart.MatchString(s) && !likeValue.MatchString(s) && !strings.ContainsAny(s, "→\"\\") &&
		!strings.Contains(s, "  ") && !strings.HasSuffix(s, " ") && block.Visible(s) == s && strings.IndexFunc(s, otherSpace) < 0
}

var (
	plainStart = regexp.MustCompile(`^[\pL\pN+/@#$€£&.~]`)
	likeValue  = regexp.MustCompile(`^(?i:true|false|null|[-+]?[0-9]*[.,]?[0-9]*(e[-+]?[0-9]*)?)$`)
)

// otherSpace reports whether a rune is a space other than U+0020.
func otherSpace(r rune) bool { return r != ' ' && unicode.IsSpace(r) }

// quoted returns s in JSON quotes, with invisible characters made visible.
func quoted(s string) string {
	return `"` + block.Visible(jsonEscapes.Replace(s)) + `"`
}

var jsonEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)

// FitsCard reports whether arguments fit on a card completely.
func FitsCard(text string) bool {
	return utf8.RuneCountInString(text) <= MaxCardArgs && strings.Count(text, "\n") < maxCardLines
}

// Head returns the beginning of a text: at most n characters, and at most the given number of lines. The second result
// is the number of characters that are missing.
func Head(text string, n, lines int) (string, int) {
	total := utf8.RuneCountInString(text)
	cut := []rune(text)[:min(n, total)]
	kept := string(cut)
	if parts := strings.SplitAfterN(kept, "\n", lines+1); len(parts) > lines {
		kept = strings.Join(parts[:lines], "")
	}
	return strings.TrimSuffix(kept, "\n"), total - utf8.RuneCountInString(kept)
}

// Changes shows the effect of an edit, argument by argument, before and after. ok is false if the text is too
// long to show.
func Changes(before, after []byte, secrets []string) (text string, ok bool) {
	return changesOf(before, after, secrets, nil)
}

// LongChanges shows the changes that ChangedFrom leaves out because they are long.
func LongChanges(before, after []byte, secrets []string) (text string, ok bool) {
	return changesOf(before, after, secrets, ChangedFrom(before, after, secrets))
}

func changesOf(before, after []byte, secrets []string, except map[string]string) (text string, ok bool) {
	old, was := Members(before)
	now, is := Members(after)
	var b strings.Builder
	for _, n := range old {
		if _, told := except[n]; told || bytes.Equal(was[n], is[n]) {
			continue
		}
		writeSigned(&b, "- ", n, was[n], secrets)
		if v, still := is[n]; still {
			writeSigned(&b, "+ ", n, v, secrets)
		}
	}
	for _, n := range now {
		if _, had := was[n]; !had && except[n] == "" {
			writeSigned(&b, "+ ", n, is[n], secrets)
		}
	}
	text = strings.TrimSuffix(b.String(), "\n")
	return text, utf8.RuneCountInString(text) <= MaxDiff
}

// noValue is shown as the earlier value of an argument that was added. No text argument can look like noValue.
const noValue = "⟨none⟩"

// ChangedFrom lays out the earlier values of the arguments that changed. It leaves out an argument if its earlier or
// its current value does not take one short line.
func ChangedFrom(before, after []byte, secrets []string) map[string]string {
	_, was := Members(before)
	now, is := Members(after)
	out := map[string]string{}
	for _, n := range now {
		if bytes.Equal(was[n], is[n]) {
			continue
		}
		old, short := noValue, true
		if v, had := was[n]; had {
			old, short = ShortValue(n, v, secrets)
		}
		if _, short2 := ShortValue(n, is[n], secrets); short && short2 {
			out[n] = old
		}
	}
	return out
}

// The earlier value of an argument is shown beside the current one only if neither is longer than maxChanged.
const maxChanged = 60

// ShortValue lays out a top-level value, and reports whether it takes one short line.
func ShortValue(name string, raw []byte, secrets []string) (string, bool) {
	l := layout{secrets: secrets, dec: jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true)), path: []string{name}}
	v, err := l.value()
	return v.value, err == nil && len(v.below) == 0 && block.Width(v.value) <= maxChanged
}

// writeSigned writes one argument, with a sign such as + before each of its lines.
func writeSigned(b *strings.Builder, sign, member string, raw []byte, secrets []string) {
	one := MaskedText(fmt.Appendf(nil, "{%s:%s}", MustQuote(member), raw), secrets)
	for line := range strings.SplitSeq(one, "\n") {
		b.WriteString(sign + line + "\n")
	}
}

// MustQuote returns a text as a JSON string.
func MustQuote(s string) []byte {
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil { // only invalid UTF-8 fails, and decoded names are valid
		return []byte(`"?"`)
	}
	return q
}

// Members reads the top level of an object: the names in order, and the exact bytes of each value.
func Members(raw []byte) (names []string, values map[string][]byte) {
	values = map[string][]byte{}
	for _, m := range Spans(raw) {
		names = append(names, m.Name)
		values[m.Name] = raw[m.start:m.end]
	}
	return names, values
}

// WordsIn returns every text in arguments, including names, with JSON escapes decoded. So a check of these texts also
// finds characters that are escaped in the JSON.
func WordsIn(raw []byte) string {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	var b strings.Builder
	for {
		tok, err := dec.ReadToken()
		if err != nil { // the arguments have ended
			return b.String()
		}
		if tok.Kind() == '"' {
			b.WriteString(tok.String() + "\n")
		}
	}
}

// span has the position of a member in an object's bytes, and the position of the member's value.
type span struct {
	Name       string
	from       int // position of the opening quote of the name
	start, end int // position of the value
}

// Spans returns the members of an object's top level, or nil if raw is not an object.
func Spans(raw []byte) []span {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' {
		return nil
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	out := []span{}
	for dec.PeekKind() != '}' {
		value, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		from := int(dec.InputOffset()) - len(value)
		name, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return nil
		}
		v, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		end := int(dec.InputOffset())
		out = append(out, span{Name: string(name), from: from, start: end - len(v), end: end})
	}
	return out
}

// Splice replaces, removes and adds members of an object's top level. All other bytes stay unchanged. A nil value
// removes a member. The names in added are appended in order.
func Splice(raw []byte, change map[string][]byte, added []string) []byte {
	members := Spans(raw)
	var out bytes.Buffer
	open := bytes.IndexByte(raw, '{')
	out.Write(raw[:open+1])
	first := true
	sep := func() {
		if !first {
			out.WriteByte(',')
		}
		first = false
	}
	end := open + 1
	for i, m := range members {
		lead := raw[end:m.from] // the spaces and the comma before the member
		end = m.end
		v, changed := change[m.Name]
		if changed && v == nil {
			continue
		}
		sep()
		if i > 0 {
			if comma := bytes.IndexByte(lead, ','); comma >= 0 {
				lead = append(bytes.Clone(lead[:comma]), lead[comma+1:]...)
			}
		}
		out.Write(lead)
		out.Write(raw[m.from:m.start])
		if !changed {
			v = raw[m.start:m.end]
		}
		out.Write(v)
	}
	for _, n := range added {
		sep()
		out.Write(MustQuote(n))
		out.WriteByte(':')
		out.Write(change[n])
	}
	out.Write(raw[end:])
	return out.Bytes()
}

// List names arguments up to a limit, and counts the rest.
func List(args []string) string {
	shown := args[:min(len(args), block.MaxBoundsTold)]
	text := make([]string, len(shown))
	for i, a := range shown {
		text[i] = block.Name(a)
	}
	if rest := len(args) - len(shown); rest > 0 {
		text = append(text, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(text, ", ")
}

// PlainNumber matches a JSON number without an exponent that people can read and type.
var PlainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,10})?$`)
