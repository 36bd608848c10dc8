package httptool

import (
	"slices"
	"strings"

	"countersign/config"
	"countersign/internal/redact"
)

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

// filler fills in the environment variables of templates, and records the secret values.
type filler struct {
	lookup  Lookup // nil: the values are unknown, so the tools can't run
	missing []string
	values  []string
}

// text fills in a template without arguments.
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

// value returns a variable's value. An empty value counts as missing.
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

// pieces returns the pieces of a template, in which the variables are replaced by their values. write encodes a
// variable's value for its place.
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

// headers returns the headers of a declaration. If the header's name suggests a secret, a literal value also counts as
// a secret.
func (f *filler) headers(list []config.Header) []field {
	var out []field
	for _, h := range list {
		pieces := f.pieces(h.Value, func(s string) string { return s })
		out = append(out, field{name: h.Name, pieces: pieces})
		if !redact.Header(h.Name) {
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
