package control

import (
	"strings"
	"testing"
)

// WarnedDigest returns a digest only if exactly one block of the form has the ID of a warning.
func TestWarnedDigest(t *testing.T) {
	one, other := strings.Repeat("0a", 32), strings.Repeat("1b", 32)
	for name, c := range map[string]struct {
		ids  []string
		want string
	}{
		"a warning":        {[]string{"", "arg.note", WarningID(one), "reason"}, one},
		"no block":         {nil, ""},
		"no warning":       {[]string{"", "arg.note", one}, ""},
		"two warnings":     {[]string{WarningID(one), WarningID(other)}, ""},
		"no digest":        {[]string{WarningID("")}, ""},
		"a short digest":   {[]string{WarningID(one[:63])}, ""},
		"a long digest":    {[]string{WarningID(one + "0")}, ""},
		"other letters":    {[]string{WarningID(strings.ToUpper(one))}, ""},
		"more in it":       {[]string{WarningID(one) + "\n"}, ""},
		"another name":     {[]string{"x" + WarningID(one)}, ""},
		"an argument's ID": {[]string{"arg." + WarningID(one)}, ""},
	} {
		if got := WarnedDigest(c.ids); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The metadata of a form has exactly six parts. Other values are refused.
func TestFormToken(t *testing.T) {
	f := FormToken{ButtonToken: ButtonToken{Ref: "req_1", Message: "s_1", Post: 3, Print: "0123456789abcdef"}, Execution: "exec_1", Page: 2}
	if got, err := ParseFormToken(f.String()); err != nil || got != f {
		t.Errorf("%q is read as %+v (%v)", f, got, err)
	}
	for _, s := range []string{"", "req_1 s_1 3 0123456789abcdef exec_1", f.String() + " ", f.String() + " " + strings.Repeat("0a", 32), strings.Replace(f.String(), " 2", " -2", 1), "x" + strings.Repeat(" ", 5)} {
		if got, err := ParseFormToken(s); err == nil {
			t.Errorf("%q is read as %+v", s, got)
		}
	}
}
