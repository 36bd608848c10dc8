package form

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/bot/bottest"
)

// Every denial code has its own text.
func TestEveryDenialHasWords(t *testing.T) {
	source, err := os.ReadFile("../../../approvers/denied.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`Code = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(codes) < 20 {
		t.Fatalf("%d codes found", len(codes))
	}
	r := bottest.Request(bottest.RefundArgs)
	seen := map[string]string{}
	for _, c := range codes {
		d := &approvers.Denied{Code: approvers.Code(c[1]), Role: "team-lead", Need: approvers.High, By: "T0001/U0002", State: approvers.Rejected, At: bottest.Noon, Detail: "det<ai>l"}
		words := DeniedText(d, &r, bottest.Policy()).Mrkdwn()
		if strings.Contains(words, "("+c[1]+")") {
			t.Errorf("%s has no words of its own", c[1])
		}
		if other, twice := seen[words]; twice {
			t.Errorf("%s and %s are told the same", c[1], other)
		}
		if strings.Contains(words, "det<ai>l") {
			t.Errorf("%s: other people's text is not escaped: %s", c[1], words)
		}
		seen[words] = c[1]
	}
	for _, s := range []approvers.State{approvers.Approved, approvers.Consumed, approvers.Rejected, approvers.Expired, approvers.Withdrawn, approvers.Revoked, approvers.Voided, approvers.Refused} {
		for _, by := range []approvers.PersonID{"", "T0001/U0002"} {
			words := DeniedText(&approvers.Denied{Code: approvers.DeniedResolved, By: by, State: s, At: bottest.Noon}, &r, nil).Mrkdwn()
			if !strings.HasPrefix(words, "Too late: ") || strings.Contains(words, "  ") {
				t.Errorf("%s by %q: %s", s, by, words)
			}
		}
	}
}

// Every denial of a report about a run has a fitting text.
func TestDeniedReports(t *testing.T) {
	lost := bottest.ViewModel(bottest.Closed(bottest.Request(bottest.RefundArgs), approvers.Consumed, "U0002", "team-lead", ""))
	lost.Execution.State = approvers.ExecutionUnknown
	s := ClickTarget{Model: lost}
	for _, code := range []approvers.Code{approvers.DeniedNotMember, approvers.DeniedGuest, approvers.DeniedNothing, approvers.DeniedResolved, approvers.DeniedReturned, approvers.DeniedUnidentified} {
		words := DeniedReportText(&approvers.Denied{Code: code, By: "T0001/U0002", At: bottest.Noon}, s).Mrkdwn()
		if slices.ContainsFunc([]string{"waits for", "decide"}, func(w string) bool { return strings.Contains(words, w) && code != approvers.DeniedUnidentified }) {
			t.Errorf("%s: %s", code, words)
		}
	}
	s.Request = nil
	if words := DeniedReportText(&approvers.Denied{Code: approvers.DeniedNotRequester}, s).Mrkdwn(); words != "Nothing was changed: only those who asked for this can say what happened." {
		t.Error(words)
	}
}
