package scenario

import (
	"errors"
	"strings"
	"testing"

	"countersign/cmd/countersign/cli"
)

func TestScenarioErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "# only words\n", "nobody does anything"},
		{"no place", "Sam: hello\n", "must name the place"},
		{"expectation first", "  hello\n", "before anybody did anything"},
		{"no reason", "Sam in #support: hi\nTeo rejects issue_refund\n", "incomplete line; write \"Teo rejects issue_refund: too much\""},
		{"no change", "Sam in #support: hi\nTeo modifies issue_refund: less\n", "name the field"},
		{"no sense", "Sam in #support: hi\nTeo dances\n", "is none of"},
		{"no policy", "Sam in #support: hi\nPolicy: other.yaml\n", "the policy comes first"},
		{"another day", "It is Monday 2026-12-25 09:00 Europe/Berlin\nSam in #support: hi\n", "that day is a Friday"},
		{"no such zone", "It is Friday 2026-12-25 09:00 Berlin\nSam in #support: hi\n", "is not a time such as"},
		{"no such time", "Sam in #support: hi\nIt is late\n", "is not a time such as"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("s.txt", c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) || cli.Code(err) != cli.ExitUsage {
				t.Errorf("error %v (code %d), want one with %q and code %d", err, cli.Code(err), c.want, cli.ExitUsage)
			}
		})
	}
}

// If a line matches several forms, the parser chooses the intended form.
func TestPressLines(t *testing.T) {
	for text, want := range map[string]click{
		"Teo approves all":                                     {who: "Teo", label: "Approve all"},
		"Teo approves issue_refund: 700":                       {who: "Teo", label: "Approve", tool: "issue_refund", text: "700"},
		"Teo approves issue_refund (ORD-131)":                  {who: "Teo", label: "Approve", tool: "issue_refund", like: "ORD-131"},
		"Teo tries to modify issue_refund: a=1, b=x: y":        {who: "Teo", label: "Modify", tool: "issue_refund", text: "a=1, b=x: y", tries: true},
		"Sam tries to withdraw all":                            {who: "Sam", label: "Withdraw and continue with this", tries: true},
		"Teo hands issue_refund on to Kenji":                   {who: "Teo", label: "Hand on", tool: "issue_refund", person: "Kenji"},
		"Sam chooses The blue one":                             {who: "Sam", label: "The blue one"},
		"Sam answers: yes: both":                               {who: "Sam", label: "Answer", text: "yes: both"},
		"Teo takes back shop.issue-refund: the wrong order":    {who: "Teo", label: "Take back", tool: "shop.issue-refund", text: "the wrong order"},
		"Sam reports that issue_refund did not happen":         {who: "Sam", label: "It did not", tool: "issue_refund"},
		"Teo allows more issue_refund: uses=5, within=an hour": {who: "Teo", label: "Allow more", tool: "issue_refund", text: "uses=5, within=an hour"},
	} {
		got, err := readPress(text)
		if got.verb = (verb{}); err != nil || got != want {
			t.Errorf("%s: %+v (%v), want %+v", text, got, err, want)
		}
	}
}

func readPress(text string) (click, error) {
	for _, f := range clickForms {
		if f.match.MatchString(text) {
			return f.read(text)
		}
	}
	return click{}, errors.New("no verb")
}
