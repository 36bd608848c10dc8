package form

import (
	"strings"
	"testing"

	"countersign/bot/bottest"
	"countersign/bot/render/argument"
)

func TestTypedValue(t *testing.T) {
	for args, want := range map[string]string{
		`{"user_id":"C-77","amount":50.10}`: "50.10", `{"note":"two words","user_id":"C-77"}`: "C-77",
		`{}`: "issue_refund", `{"x":"\u202e"}`: "issue_refund", `{"x":{"y":1}}`: "issue_refund",
		// The typed value is the most informative value. The preference is: an amount, the recipient, the subject, a
		// value in the preview, any number, any word.
		`{"days":14,"order_id":"ORD-1","amount":9}`:                               "9",
		`{"note":"abcd","order_id":"ORD-1","email":"ann@example.com"}`:            "ann@example.com",
		`{"to":12345,"userId":"U-1","count":77}`:                                  "U-1",
		`{"note":"abcd","orderRef":"R-1"}`:                                        "R-1",
		`{"note":"abcd","x":"ORD-123"}`:                                           "ORD-123",
		`{"note":"abcd","count":77}`:                                              "77",
		`{"note":"abcd","count":1}`:                                               "abcd",
		`{"total":"49.99","id":"X-1"}`:                                            "49.99",
		`{"amount":"","account":"true","currency":"USD","id":"x"}`:                "issue_refund", // all of these values can be guessed
		`{"confirm":true,"level":"high","mode":"all","country":"DE","kind":"ok"}`: "issue_refund",
		`{"iban":"` + strings.Repeat("9", 41) + `"}`:                              "issue_refund",
	} {
		r := bottest.Request(args)
		if _, got := argument.TypedValue(r); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
		if TypedError(r, " "+want) != "" || TypedError(r, want+"1") == "" || TypedError(r, "") == "" {
			t.Errorf("%s: the typed value is not compared with it", args)
		}
	}
	for typed, ok := range map[string]bool{"49.99": true, "49.9900": true, "49,99": false, "49.98": false, "49.99 USD": false} {
		if got := TypedError(bottest.Request(bottest.RefundArgs), typed) == ""; got != ok {
			t.Errorf("%q typed for 49.990: %v", typed, got)
		}
	}
}
