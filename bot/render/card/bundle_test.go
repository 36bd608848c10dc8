package card

import (
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/block"
)

// Arguments that are the same in all calls are shown once. If a call has no other arguments, each call shows all of its
// arguments.
func TestSameArguments(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		same string
	}{
		"some":             {[]string{`{"a":1,"b":2,"c":"x"}`, `{"a":2,"b":2,"c":"x"}`}, "b c"},
		"none":             {[]string{`{"a":1}`, `{"a":2}`}, ""},
		"other bytes":      {[]string{`{"a":1,"b":2.0}`, `{"a":2,"b":2}`}, ""},
		"all of one":       {[]string{`{"a":1}`, `{"a":1,"b":2}`}, ""},
		"two alike":        {[]string{`{"a":1}`, `{"a":1}`}, ""},
		"no arguments":     {[]string{`{}`, `{}`}, ""},
		"a name twice":     {[]string{`{"a":1,"a":2,"b":3}`, `{"a":2,"b":3}`}, ""},
		"only in one":      {[]string{`{"a":1,"b":2}`, `{"a":2,"c":2}`}, ""},
		"one that is long": {[]string{`{"a":1,"b":"` + strings.Repeat("x", block.MaxBundleCall) + `"}`, `{"a":2,"b":"` + strings.Repeat("x", block.MaxBundleCall) + `"}`}, ""},
	} {
		var rs []approvers.Request
		for _, args := range c.args {
			rs = append(rs, bottest.Request(args))
		}
		if _, same := sameArguments(rs); strings.Join(same, " ") != c.same {
			t.Errorf("%s: %q are the same, want %q", name, same, c.same)
		}
	}
	rs := []approvers.Request{bottest.Request(`{"a":1,"b":2}`), bottest.Request(`{"a":2,"b":2}`)}
	rs[1].Secrets = []string{"b.c"}
	if _, same := sameArguments(rs); same != nil {
		t.Errorf("%q are the same, and one of them is secret", same)
	}
	rs[1].Secrets, rs[1].Tool = nil, "send_email"
	if _, same := sameArguments(rs); same != nil {
		t.Errorf("%q are the same in calls to different tools", same)
	}
}
