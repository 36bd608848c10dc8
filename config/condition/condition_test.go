package condition_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/config"
)

// compiled returns a condition after compilation as part of a policy.
func compiled(t *testing.T, text string) approvers.Condition {
	t.Helper()
	f, err := config.ParsePolicy("test.yaml", []byte("version: 1\ntools: {x: {risk: low, rules: [{when: "+strconv.Quote(text)+", confirm: true}]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return f.Policy.Tools[0].Rules[0].When
}

func TestConditions(t *testing.T) {
	facts := approvers.Facts{
		Args: map[string]any{
			"amount": 501.0, "to": "Jo@Example.COM", "items": []any{map[string]any{"price": 101.0}, map[string]any{"price": 1.0}}, "note": nil, "soft": true,
		},
		Requester: "U0001", Agent: "support", Now: time.Date(2026, 3, 31, 17, 30, 0, 0, time.UTC),
		Conversation: approvers.ConversationFacts{ID: "c1", Channel: "C0001", DM: false},
	}
	for _, c := range []struct {
		text  string
		want  bool
		fails bool // the evaluation fails, so the rule counts as matched
	}{
		{text: "args.amount > 500", want: true},
		{text: "args.amount == 501", want: true}, // a decimal number with a whole value
		{text: "args.amount * 2.0 > 1002.0"},
		{text: "has(args.soft) && args.soft == true", want: true},
		{text: "has(args.reason) && args.reason != ''"},
		{text: "args.reason == ''", fails: true},
		{text: "args.amount > 500 || args.reason == ''", want: true}, // decided before the missing argument matters
		{text: "args.to > 5", fails: true},
		{text: "args.to.lowerAscii().endsWith('@example.com')", want: true},
		{text: "!args.to.matches('(?i)@example\\\\.com$')"},
		{text: "args.items.exists(i, i.price > 100)", want: true},
		{text: "size(args.items) > 5"},
		{text: "args['amount'] in [500.0, 501.0]", want: true},
		{text: "args.note == null", want: true},
		{text: "requester == 'U0001' && agent == 'support'", want: true},
		{text: "conversation.dm || conversation.channel == 'C0001' || conversation.id == ''", want: true},
		{text: "now.getHours() >= 17 && now.getDayOfWeek() == 2", want: true},
		{text: "now.getHours('Europe/Berlin') == 19", want: true},
		{text: "now.getHours() == 17 && now.getHours('+02:00') == 19 && now.getHours('') == 17", want: true},
		{text: "now.getFullYear('Asia/Tokyo') == 2026 && now.getMonth('Asia/Tokyo') == 3 && now.getDate('Asia/Tokyo') == 1 && now.getDayOfWeek('Asia/Tokyo') == 3", want: true},
		{text: "now.getMinutes('Asia/Kathmandu') == 15 && now.getSeconds('Asia/Kathmandu') == 0 && now.getMilliseconds('Asia/Kathmandu') == 0", want: true},
		{text: "now.getDayOfMonth('Asia/Tokyo') == 0 && now.getDayOfYear('Asia/Tokyo') == 90", want: true},
		{text: "timestamp('2026-01-01T23:30:00Z').getHours('Europe/Berlin') == 0", want: true},
		{text: "now.getHours(args.to) == 19", fails: true},
		{text: "now > timestamp('2026-01-01T00:00:00Z')", want: true},
		{text: "true", want: true},
		{text: " args.amount > 500 ", want: true},
	} {
		cond := compiled(t, c.text)
		got, err := cond.Eval(facts)
		if (err != nil) != c.fails || (err == nil && got != c.want) {
			t.Errorf("%s: got %v, %v; want %v, failing %v", c.text, got, err, c.want, c.fails)
		}
		if cond.Text != strings.TrimSpace(c.text) {
			t.Errorf("the text is %q", cond.Text)
		}
	}
	if _, err := compiled(t, "args.amount > 500").Eval(approvers.Facts{}); err == nil {
		t.Error("a call without arguments must fail the condition that reads one")
	}
}

// A condition reads each fact of the caller. For a call of Countersign's own agent, these facts are empty.
func TestConditionsOnTheCaller(t *testing.T) {
	desk := approvers.Caller{Name: "desk", Title: "Help desk", Owner: "T0001/U0007", For: "T0001/U0100", Proven: true, Mode: approvers.DecideMode}
	facts := approvers.Facts{Args: map[string]any{}, Requester: "caller:desk", Caller: &desk}
	for with, without := range map[string]string{
		"caller.name == 'desk'": "caller.name == ''", "caller.owner == 'U0007'": "caller.owner == ''", "caller.acting_for == 'U0100'": "caller.acting_for == ''",
		"caller.proven": "!caller.proven", "caller.mode == 'decide'": "caller.mode == ''", "requester == 'caller:desk'": "requester != 'caller:desk'",
	} {
		for _, c := range []struct {
			text       string
			of, ofSelf bool // the values for the client's call, and for a call of Countersign's own agent
		}{{with, true, false}, {without, false, true}} {
			cond := compiled(t, c.text)
			if got, err := cond.Eval(facts); err != nil || got != c.of {
				t.Errorf("for the client, %s is %t (%v)", c.text, got, err)
			}
			if got, err := cond.Eval(approvers.Facts{}); err != nil || got != c.ofSelf {
				t.Errorf("without a client, %s is %t (%v)", c.text, got, err)
			}
		}
	}
	desk.Proven, desk.Mode = false, approvers.ExecuteMode
	if got, err := compiled(t, "caller.acting_for != '' && !caller.proven && caller.mode == 'execute'").Eval(facts); err != nil || !got {
		t.Errorf("for a claimed person, the condition is %t (%v)", got, err)
	}
}

// TestConditionCost checks a condition that needs too much work. The evaluation of this condition fails, so the
// condition counts as matched. Such a condition must not block other work.
func TestConditionCost(t *testing.T) {
	many := make([]any, 2000)
	for i := range many {
		many[i] = float64(i)
	}
	cond := compiled(t, "args.l.all(x, args.l.all(y, x + y >= 0.0))")
	if _, err := cond.Eval(approvers.Facts{Args: map[string]any{"l": many}}); err == nil || !strings.Contains(err.Error(), "cost") {
		t.Errorf("four million steps were taken: %v", err)
	}
	if ok, err := cond.Eval(approvers.Facts{Args: map[string]any{"l": many[:20]}}); err != nil || !ok {
		t.Errorf("a short list: %v, %v", ok, err)
	}
}

// TestZones checks that a time zone that does not exist is an error, also if it has a colon.
func TestZones(t *testing.T) {
	for zone, known := range map[string]bool{
		"Europe/Berlin": true, "UTC": true, "+02:00": true, "-8:30": true, "05:00": true, "+23:59": true,
		"Europe:Berlin": false, "+99:99": false, "+24:00": false, "+02:60": false, "Mars/Base": false, "Local": false, ":": false,
	} {
		_, err := config.ParsePolicy("p.yaml", []byte("version: 1\ntools: {a: {risk: low, rules: [{when: 'now.getHours(\""+zone+"\") > 5', confirm: true}]}}\n"))
		if known != (err == nil) || err != nil && !strings.Contains(err.Error(), "there is no time zone") {
			t.Errorf("%s: %v", zone, err)
		}
	}
}
