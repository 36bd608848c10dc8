package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Values holds secrets that are sent to one server. Values finds them in the server's answers as they are, and escaped
// as in JSON, URLs and HTML. Values does not find encodings of a whole text, such as base64.
type Values struct {
	written []string         // the values as they are, the longest first
	escaped []*regexp.Regexp // patterns that also match the values escaped as in JSON and URLs
}

// NewValues returns Values, and also registers the values as secrets for the log.
func NewValues(values []string) Values {
	Secrets(values...)
	var out Values
	for _, v := range values {
		all := []string{v}
		if scheme, rest, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "basic") {
			all = append(all, rest)
		}
		for _, s := range slices.Clone(all) {
			if plain, err := base64.StdEncoding.DecodeString(s); err == nil && strings.Contains(string(plain), ":") {
				_, password, _ := strings.Cut(string(plain), ":")
				all = append(all, string(plain), password)
			}
		}
		for _, s := range all {
			out.add(s)
		}
	}
	slices.SortFunc(out.written, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	out.written = slices.Compact(out.written)
	slices.SortFunc(out.escaped, func(a, b *regexp.Regexp) int { return cmp.Compare(len(b.String()), len(a.String())) })
	return out
}

func (v *Values) add(s string) {
	quoted, _ := json.Marshal(s) //nolint:errchkjson // a string always has a JSON form
	for _, w := range []string{s, url.QueryEscape(s), url.PathEscape(s), percent(s), strings.ToLower(percent(s)), html.EscapeString(s), string(quoted[1 : len(quoted)-1])} {
		if len(w) >= shortest {
			v.written = append(v.written, w)
		}
	}
	if len(s) >= shortest && len(s) <= maxEscaped {
		v.escaped = append(v.escaped, escapes(s))
	}
}

// maxEscaped is the maximum length in bytes of a value that is also searched for in escaped form.
const maxEscaped = 8 << 10

// percent escapes all characters except letters, digits and the characters -._~, as some servers do.
func percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// controls holds JSON's short escapes for control characters.
var controls = map[rune]string{'\n': "n", '\r': "r", '\t': "t", '\b': "b", '\f': "f"}

// The function "escapes" returns a pattern that matches a text in which any characters may be escaped. The characters
// may be escaped as in JSON, as in JSON within a JSON string, or as in a URL.
func escapes(s string) *regexp.Regexp {
	var b strings.Builder
	for i, c := range []rune(s) {
		b.WriteString(`(?:`)
		if i > 0 && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			b.WriteString(`\\*`)
		}
		b.WriteString(regexp.QuoteMeta(string(c)) + `|`)
		for _, unit := range utf16.Encode([]rune{c}) {
			fmt.Fprintf(&b, `\\+u(?i:%04x)`, unit)
		}
		b.WriteString(`|(?i:`)
		for _, one := range []byte(string(c)) {
			fmt.Fprintf(&b, `%%%02x`, one)
		}
		b.WriteString(`)`)
		if letter := controls[c]; letter != "" {
			b.WriteString(`|\\+` + letter)
		}
		b.WriteString(`)`)
	}
	return regexp.MustCompile(b.String())
}

// Out returns the text with every value removed.
func (v Values) Out(text string) string {
	for _, secret := range v.written {
		text = strings.ReplaceAll(text, secret, Removed)
	}
	if strings.ContainsAny(text, `\%`) {
		for _, secret := range v.escaped {
			text = secret.ReplaceAllString(text, Removed)
		}
	}
	return text
}

// In reports whether a text contains one of the values.
func (v Values) In(text string) bool {
	return slices.ContainsFunc(v.written, func(secret string) bool { return strings.Contains(text, secret) }) ||
		strings.ContainsAny(text, `\%`) && slices.ContainsFunc(v.escaped, func(secret *regexp.Regexp) bool { return secret.MatchString(text) })
}

// Longest returns how many bytes a reader must read beyond a limit, so that truncation at the limit does not split a
// secret.
func (v Values) Longest() int {
	if len(v.written) == 0 {
		return 0
	}
	return len(v.written[0])
}

// secretHeaders lists parts of header names. If a header's name contains one of these parts, the header's value is
// secret, even if the value is written in the policy file and does not come from an environment variable.
var secretHeaders = []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "api_key"}

// Header reports whether a header with this name holds a secret.
func Header(name string) bool {
	return slices.ContainsFunc(secretHeaders, func(s string) bool { return strings.Contains(strings.ToLower(name), s) })
}

// Variable reports whether an environment variable with this name holds a secret.
func Variable(name string) bool { return secretName.MatchString(name) }
