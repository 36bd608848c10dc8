package form

import (
	"countersign/bot/render/block"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Slack accepts the response for any number of form errors, and the response says how many errors it omits.
func TestFaultsFitIntoAnAcknowledgement(t *testing.T) {
	for fields := range maxFormFields + 1 {
		for _, text := range []string{"x", strings.Repeat("界", 299), strings.Repeat("界", 5000), strings.Repeat("<", 4000), strings.Repeat("\u2028", 4000)} {
			faults := map[string]string{}
			for i := range fields {
				faults[fmt.Sprintf("arg.field_%02d_%s", i, strings.Repeat("x", 190))] = text
			}
			told := FitErrors(faults)
			raw, err := json.Marshal(map[string]any{"response_action": "errors", "errors": told})
			if err != nil {
				t.Fatal(err)
			}
			if len(raw) >= 20<<10 {
				t.Fatalf("%d faults of %.10q make %d bytes", fields, text, len(raw))
			}
			if left := fields - len(told); left > 0 != strings.Contains(string(raw), fmt.Sprintf("(Also wrong: %s.)", block.Plural(left, "more field"))) {
				t.Fatalf("%d of %d errors are omitted without a note: %.300s", left, fields, raw)
			}
			if fields > 0 && len(told) == 0 {
				t.Fatal("no errors are left")
			}
		}
	}
}
