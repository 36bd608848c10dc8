package approvers_test

import (
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

	"countersign/approvers"
)

func TestMadeHeadline(t *testing.T) {
	long := `"` + string(make([]byte, 0, 60)) + "0123456789012345678901234567890123456789012345" + `"`
	for _, c := range []struct {
		title, tool, args string
		order, secrets    []string
		want              string
	}{
		{tool: "update_profile", args: `{"user_id":"USR-456","phone":"555-0199"}`, want: "Update profile: USR-456, phone 555-0199"},
		{tool: "update_profile", args: `{"user_id":"USR-456","phone":"555-0199"}`, secrets: []string{"phone"}, want: "Update profile: USR-456, phone"},
		{tool: "update_profile", args: `{"user_id":"USR-456","phone":"555-0199"}`, secrets: []string{"user_id"}, want: "Update profile: user id, phone 555-0199"},
		{title: "Change a customer's profile.", tool: "update_profile", args: `{"language":"de","user_id":"USR-456"}`, want: "Change a customer's profile: USR-456, language de"},
		{title: "Give money back", tool: "issue_refund", args: `{"order_id":"ORD-1","reason":"arrived broken","amount":49.990}`, want: "Give money back: ORD-1, amount 49.990, reason “arrived broken”"},
		{tool: "crm.sendEmail", args: `{"body":` + long + `,"to":"ann@example.com","subject":"Hello"}`, order: []string{"to", "subject", "body"}, want: "Crm send email: to ann@example.com, subject Hello, body"},
		{tool: "exportCSV", args: `{"tables":["a"],"all":true}`, want: "Export CSV: tables, all"},
		{tool: "deploy", args: `{}`, want: "Deploy"},
		{tool: "deploy", args: `not JSON`, want: "Deploy"},
		{tool: "___", args: `{}`, want: "___"},
		{tool: "t", args: `{"id":"a\nb","name":"x"}`, want: "T: x, id"},
	} {
		if got := approvers.MadeHeadline(c.title, c.tool, c.order, json.RawMessage(c.args), c.secrets); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.tool, c.args, got, c.want)
		}
	}
	many := `{"` + "0123456789012345678901234567890123456789" + `":"` + "0123456789012345678901234567890123456" + `","a234567890123456789012345678901234567890":"` + "b123456789012345678901234567890123456" + `"}`
	if got := approvers.MadeHeadline("", "a_tool_with_a_name_that_is_nearly_as_long_as_names_can_be_at_all", nil, json.RawMessage(many), nil); utf8.RuneCountInString(got) > 150 {
		t.Errorf("%d characters: %s", utf8.RuneCountInString(got), got)
	}
}

func TestRequiredArguments(t *testing.T) {
	schema := `{"type":"object","required":["c","a","gone"],"properties":{"a":{"type":"string"},"b":{},"c":{"enum":[1]}}}`
	if got := approvers.RequiredArguments(json.RawMessage(schema)); !slices.Equal(got, []string{"gone", "a", "c"}) {
		t.Errorf("got %v", got)
	}
	if got := approvers.RequiredArguments(json.RawMessage(`[`)); got != nil {
		t.Errorf("got %v", got)
	}
}
