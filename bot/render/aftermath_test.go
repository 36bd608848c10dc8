package render

import "testing"

// A tool may answer anything. The layout contains all of it, or the answer is shown unchanged.
func TestResultTextDropsNothing(t *testing.T) {
	for in, want := range map[string]string{
		`{"refund_id":"RFD-9","ok":true}`:          "refund_id: \"RFD-9\"\nok: true",
		`{"refund_id":"RFD-9","ok":true} all good`: `{"refund_id":"RFD-9","ok":true} all good`,
		`{"a":1}{"b":2}`:                           `{"a":1}{"b":2}`,
		`{"a":1}]`:                                 `{"a":1}]`,
		`{"a":1`:                                   `{"a":1`,
		"{\"a\":1} \n":                             "a: 1",
		`[1,2]`:                                    `[1,2]`,
		"{}":                                       "{}",
		"":                                         "(an empty answer)",
		"{\"a\":1} \u202eevil":                     "{\"a\":1} ⟨U+202E⟩evil",
	} {
		if got := resultText(in); got != want {
			t.Errorf("resultText(%q) = %q, want %q", in, got, want)
		}
	}
}
