package httptool

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"

	"countersign/config"
	"countersign/internal/redact"
)

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

// shortest is the length from which on a value is taken out of answers. Shorter ones would take words out of texts.
const shortest = 6

// secrets are values that go to a server and must not come back from it, in every way in which it may write them; the longest first.
type secrets []string

// newSecrets keeps values out of the log too.
func newSecrets(values []string) secrets {
	redact.Secrets(values...)
	var out secrets
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
			quoted := encoded(json.Marshal(s))
			for _, written := range []string{s, url.QueryEscape(s), url.PathEscape(s), escape(s), strings.ToLower(escape(s)), html.EscapeString(s), string(quoted[1 : len(quoted)-1])} {
				if len(written) >= shortest {
					out = append(out, written)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(out)
}

// out is a text without the secrets.
func (s secrets) out(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, redact.Removed)
	}
	return text
}

// longest is how much more than a limit has to be read, so that no secret is cut in two where the text is.
func (s secrets) longest() int {
	if len(s) == 0 {
		return 0
	}
	return len(s[0])
}

// secretHeaders hold secrets even where they are written out in the policy file.
var secretHeaders = []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "api_key"}

func secretHeader(name string) bool {
	return slices.ContainsFunc(secretHeaders, func(s string) bool { return strings.Contains(strings.ToLower(name), s) })
}

// filler fills the gaps of templates that are for variables of the environment, and notes what is secret.
type filler struct {
	lookup  Lookup // nil: the values are not known, and nothing will be sent
	missing []string
	values  []string
}

// text fills a template in which no arguments stand.
func (f *filler) text(t config.Template) string {
	var b strings.Builder
	for _, p := range t {
		if p.Variable == "" {
			b.WriteString(p.Text)
			continue
		}
		b.WriteString(f.value(p.Variable))
	}
	return b.String()
}

// value is a variable's. One that is empty counts as missing.
func (f *filler) value(name string) string {
	if f.lookup == nil {
		return "unknown"
	}
	v, _ := f.lookup(name)
	if v == "" && !slices.Contains(f.missing, name) {
		f.missing = append(f.missing, name)
	}
	f.values = append(f.values, v)
	return v
}

// pieces are a template's, with variables filled in. write says how those are written in their place.
func (f *filler) pieces(t config.Template, write func(string) string) []piece {
	var out []piece
	for _, p := range t {
		switch {
		case p.Argument != "":
			out = append(out, piece{arg: p.Argument})
		case p.Variable != "":
			out = append(out, piece{text: write(f.value(p.Variable))})
		default:
			out = append(out, piece{text: p.Text})
		}
	}
	return out
}

// headers are those of a declaration. The value of one that is written out is a secret too, if it is called like one.
func (f *filler) headers(list []config.Header) []field {
	var out []field
	for _, h := range list {
		pieces := f.pieces(h.Value, func(s string) string { return s })
		out = append(out, field{name: h.Name, pieces: pieces})
		if !secretHeader(h.Name) {
			continue
		}
		var all strings.Builder
		for _, p := range pieces {
			all.WriteString(p.text)
		}
		f.values = append(f.values, all.String())
		if _, credentials, ok := strings.Cut(all.String(), " "); ok {
			f.values = append(f.values, credentials)
		}
	}
	return out
}
