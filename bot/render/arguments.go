package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/approvers"
)

// ArgumentText lays out arguments for people. It works on the stored bytes and omits nothing: one name per line, values
// as JSON, numbers exactly as they are stored. Each line of a multi-line string starts with a bar, so no text can look
// like another argument. Invisible characters are shown as ⟨…⟩.
func ArgumentText(raw []byte) string { return maskedText(raw, nil) }

// maskedText is ArgumentText with a note in place of each secret value. No other text can look like that note, because
// its brackets are escaped everywhere else.
func maskedText(raw []byte, secrets []string) string {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	l := layout{dec: dec, secrets: secrets}
	if dec.PeekKind() != '{' || l.members(0) != nil || !l.atEnd() {
		if len(secrets) > 0 {
			return masked(nil)
		}
		return Visible(string(raw)) // stored arguments are always one JSON value; a tool's answer may be anything, and is then shown unchanged
	}
	if l.b.Len() == 0 {
		return "(no arguments)"
	}
	return strings.TrimSuffix(l.b.String(), "\n")
}

type layout struct {
	dec     *jsontext.Decoder
	b       strings.Builder
	secrets []string
	path    []string // path of the member being laid out
}

const bar = "│ "

// atEnd reports whether the input has ended.
func (l *layout) atEnd() bool {
	_, err := l.dec.ReadToken()
	return errors.Is(err, io.EOF)
}

func (l *layout) indent(depth int) string { return strings.Repeat("  ", depth) }

// members lays out the members of an object, one per line.
func (l *layout) members(depth int) error {
	if _, err := l.dec.ReadToken(); err != nil {
		return err
	}
	for l.dec.PeekKind() != '}' {
		tok, err := l.dec.ReadToken()
		if err != nil {
			return err
		}
		l.b.WriteString(l.indent(depth) + memberName(tok.String()) + ":")
		l.path = append(l.path, tok.String())
		err = l.value(depth)
		if l.path = l.path[:len(l.path)-1]; err != nil {
			return err
		}
	}
	_, err := l.dec.ReadToken()
	return err
}

var simpleName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

func memberName(s string) string {
	if simpleName.MatchString(s) {
		return s
	}
	return quoted(s)
}

// value lays out the value after a name or a dash.
func (l *layout) value(depth int) error {
	if len(l.secrets) > 0 && approvers.IsSecret(l.secrets, strings.Join(l.path, ".")) {
		v, err := l.dec.ReadValue()
		l.b.WriteString(" " + masked(v) + "\n")
		return err
	}
	switch l.dec.PeekKind() {
	case '{':
		return l.object(depth)
	case '[':
		return l.array(depth)
	case '"':
		tok, err := l.dec.ReadToken()
		if err != nil {
			return err
		}
		l.text(tok.String(), depth)
		return nil
	}
	v, err := l.dec.ReadValue()
	l.b.WriteString(" " + Visible(string(v)) + "\n")
	return err
}

func (l *layout) object(depth int) error {
	if l.empties('}') {
		l.b.WriteString(" {}\n")
		return l.skip()
	}
	l.b.WriteString("\n")
	return l.members(depth + 1)
}

func (l *layout) array(depth int) error {
	if l.empties(']') {
		l.b.WriteString(" []\n")
		return l.skip()
	}
	l.b.WriteString("\n")
	if _, err := l.dec.ReadToken(); err != nil {
		return err
	}
	for l.dec.PeekKind() != ']' {
		l.b.WriteString(l.indent(depth+1) + "-")
		if err := l.value(depth + 1); err != nil {
			return err
		}
	}
	_, err := l.dec.ReadToken()
	return err
}

// empties reports whether the next object or array is empty.
func (l *layout) empties(end byte) bool {
	rest := bytes.TrimLeft(l.dec.UnreadBuffer(), " \t\r\n,:")
	return len(rest) > 0 && bytes.HasPrefix(bytes.TrimLeft(rest[1:], " \t\r\n"), []byte{end})
}

func (l *layout) skip() error { return l.dec.SkipValue() }

// text lays out a string: quoted if it is one line, otherwise line by line behind bars.
func (l *layout) text(s string, depth int) {
	if !strings.Contains(s, "\n") {
		l.b.WriteString(" " + quoted(s) + "\n")
		return
	}
	l.b.WriteString("\n")
	for line := range strings.SplitSeq(s, "\n") {
		l.b.WriteString(l.indent(depth+1) + bar + Visible(line) + "\n")
	}
}

// quoted returns s in JSON quotes, with invisible characters made visible.
func quoted(s string) string {
	return `"` + Visible(jsonEscapes.Replace(s)) + `"`
}

var jsonEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)

// fitsCard reports whether arguments fit on a card completely.
func fitsCard(text string) bool {
	return utf8.RuneCountInString(text) <= MaxCardArgs && strings.Count(text, "\n") < maxCardLines
}

// head returns the beginning of a text that does not fit, cut at a line end if possible, and the number of missing
// characters.
func head(text string, n, lines int) (string, int) {
	total := utf8.RuneCountInString(text)
	cut := []rune(text)[:min(n, total)]
	kept := string(cut)
	if parts := strings.SplitAfterN(kept, "\n", lines+1); len(parts) > lines {
		kept = strings.Join(parts[:lines], "")
	}
	return strings.TrimSuffix(kept, "\n"), total - utf8.RuneCountInString(kept)
}

// changes shows the difference that an edit made, argument by argument, before and after. ok is false if the text is
// too long to show.
func changes(before, after []byte, secrets []string) (text string, ok bool) {
	old, was := membersOf(before)
	now, is := membersOf(after)
	var b strings.Builder
	for _, n := range old {
		if bytes.Equal(was[n], is[n]) {
			continue
		}
		signed(&b, "- ", n, was[n], secrets)
		if v, still := is[n]; still {
			signed(&b, "+ ", n, v, secrets)
		}
	}
	for _, n := range now {
		if _, had := was[n]; !had {
			signed(&b, "+ ", n, is[n], secrets)
		}
	}
	text = strings.TrimSuffix(b.String(), "\n")
	return text, utf8.RuneCountInString(text) <= maxDiff
}

// signed writes one argument with a sign before each of its lines.
func signed(b *strings.Builder, sign, member string, raw []byte, secrets []string) {
	one := maskedText(fmt.Appendf(nil, "{%s:%s}", mustQuote(member), raw), secrets)
	for line := range strings.SplitSeq(one, "\n") {
		b.WriteString(sign + line + "\n")
	}
}

func mustQuote(s string) []byte {
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil { // only invalid UTF-8 fails, and decoded names are valid
		return []byte(`"?"`)
	}
	return q
}

// membersOf reads the top level of an object: the names in order, and the exact bytes of each value.
func membersOf(raw []byte) (names []string, values map[string][]byte) {
	values = map[string][]byte{}
	for _, m := range spans(raw) {
		names = append(names, m.name)
		values[m.name] = raw[m.start:m.end]
	}
	return names, values
}

// wordsIn returns every text in arguments, including names, with JSON escapes decoded. Escaped characters are therefore
// checked too.
func wordsIn(raw []byte) string {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	var b strings.Builder
	for {
		tok, err := dec.ReadToken()
		if err != nil { // the end
			return b.String()
		}
		if tok.Kind() == '"' {
			b.WriteString(tok.String() + "\n")
		}
	}
}

// span is the position of an object's member in its bytes: the whole member, and its value.
type span struct {
	name       string
	from       int // opening quote of the name
	start, end int // of the value
}

// spans returns the members of an object's top level, or nil if raw is not an object.
func spans(raw []byte) []span {
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
		out = append(out, span{name: string(name), from: from, start: end - len(v), end: end})
	}
	return out
}

// splice replaces, removes and adds members of an object's top level. All other bytes stay unchanged. A nil value
// removes a member. The names in added are appended in order.
func splice(raw []byte, change map[string][]byte, added []string) []byte {
	members := spans(raw)
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
		lead := raw[end:m.from] // spaces, and the comma before it
		end = m.end
		v, changed := change[m.name]
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
		out.Write(mustQuote(n))
		out.WriteByte(':')
		out.Write(change[n])
	}
	out.Write(raw[end:])
	return out.Bytes()
}
