package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/slackapi"
)

func TestFieldKinds(t *testing.T) {
	for name, c := range map[string]struct {
		schema, value string
		want          fieldKind
	}{
		"text":                 {`{"type":"string"}`, `"x"`, fieldText},
		"several lines":        {`{"type":"string"}`, `"x\ny"`, fieldLong},
		"may be long":          {`{"type":"string","maxLength":1000}`, `"x"`, fieldLong},
		"too long":             {`{"type":"string"}`, `"` + strings.Repeat("x", slackapi.MaxInput+1) + `"`, fieldLocked},
		"hidden characters":    {`{"type":"string"}`, `"x\u202e"`, fieldJSON},
		"number":               {`{"type":"number"}`, `49.990`, fieldNumber},
		"number with exponent": {`{"type":"number"}`, `1e3`, fieldJSON},
		"integer":              {`{"type":"integer"}`, `-3`, fieldInteger},
		"boolean":              {`{"type":"boolean"}`, `false`, fieldBool},
		"choice":               {`{"enum":["a","b",3]}`, `3.0`, fieldChoice},
		"choice of objects":    {`{"enum":[{}]}`, `{}`, fieldJSON},
		"date":                 {`{"type":"string","format":"date"}`, `"2026-03-02"`, fieldDate},
		"no date":              {`{"type":"string","format":"date"}`, `"tomorrow"`, fieldText},
		"e-mail":               {`{"type":"string","format":"email"}`, `"a@b.example"`, fieldEmail},
		"address":              {`{"type":"string","format":"uri"}`, `"https://x.example"`, fieldURL},
		"object":               {`{"type":"object"}`, `{"a":1}`, fieldJSON},
		"several types":        {`{"type":["string","null"]}`, `null`, fieldJSON},
		"any of":               {`{"anyOf":[{}]}`, `1`, fieldJSON},
		"reference":            {`{"$ref":"#/x"}`, `1`, fieldJSON},
		"true":                 {`true`, `1`, fieldJSON},
	} {
		fields := fieldsOf(json.RawMessage(`{"properties":{"f":`+c.schema+`}}`), []byte(`{"f":`+c.value+`}`), nil)
		if len(fields) != 1 || fields[0].kind != c.want {
			t.Errorf("%s: %+v, want kind %d", name, fields, c.want)
		}
	}
	for name, schema := range map[string]string{"choice of schemas": `{"oneOf":[{}]}`, "reference": `{"$ref":"#"}`, "not a schema": `7`, "nothing": `{}`} {
		if fields := fieldsOf(json.RawMessage(schema), []byte(`{}`), nil); fields != nil {
			t.Errorf("%s: %+v", name, fields)
		}
	}
}

// A form with the maximum number of arguments at maximum size is within Slack's limits.
func TestLargestForm(t *testing.T) {
	var properties, args []string
	for i := range maxFormFields {
		n := fmt.Sprintf("field_%d_%s", i, strings.Repeat("x", 250))
		properties = append(properties, fmt.Sprintf(`%q:{"type":"string","description":%q}`, n, strings.Repeat("界", 4000)))
		args = append(args, fmt.Sprintf(`%q:%q`, n, strings.Repeat("界", slackapi.MaxInput)))
	}
	r := bottest.Request("{" + strings.Join(args, ",") + "}")
	r.Preview = strings.Repeat("𝕏", 9000)
	schema := `{"type":"object","properties":{` + strings.Join(properties, ",") + "}}"
	viewWithin(t, modifyForm(r, bottest.Tool("issue_refund", schema, approvers.Unprotected)))
	if f := fieldsOf(json.RawMessage(schema), r.Args, nil); !slices.ContainsFunc(f, func(f field) bool { return f.kind == fieldLocked }) || f[len(f)-1].kind == fieldLocked {
		t.Error("exactly the longest arguments must be locked")
	}
	var options []string
	for i := range slackapi.MaxOptions {
		options = append(options, fmt.Sprintf("%q", fmt.Sprint(i, strings.Repeat("界", slackapi.MaxOptionText-3))))
	}
	menu := bottest.Request(`{"m":` + options[7] + `}`)
	viewWithin(t, modifyForm(menu, bottest.Tool("issue_refund", `{"properties":{"m":{"enum":[`+strings.Join(options, ",")+`]}}}`, approvers.Unprotected)))
	var menus []string
	for i := range maxFormFields {
		menus = append(menus, fmt.Sprintf(`"menu_%d":{"enum":[%s]}`, i, strings.Join(options, ",")))
	}
	menu = bottest.Request(`{"menu_0":` + options[7] + `}`)
	schema = `{"properties":{` + strings.Join(menus, ",") + `}}`
	viewWithin(t, modifyForm(menu, bottest.Tool("issue_refund", schema, approvers.Unprotected)))
	kinds := map[fieldKind]int{}
	for _, f := range fieldsOf(json.RawMessage(schema), menu.Args, nil) {
		kinds[f.kind]++
	}
	if kinds[fieldJSON] == 0 || kinds[fieldChoice] == 0 {
		t.Errorf("exactly the menus that don't fit must become text inputs: %v", kinds)
	}
}

// A menu shows each value that is sent, together with the value's title in the schema.
func TestMenusShowTheValue(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"size":{"type":"string","oneOf":[{"const":"DELETE","title":"Small"},{"const":"big"}]}}}`)
	for _, f := range fieldsOf(schema, []byte(`{}`), nil) {
		menu := f.input().(*slack.SelectBlockElement)
		if menu.Options[0].Text.Text != "Small (DELETE)" || menu.Options[1].Text.Text != "big" {
			t.Errorf("it offers %q and %q", menu.Options[0].Text.Text, menu.Options[1].Text.Text)
		}
	}
}

func TestEdit(t *testing.T) {
	raw := `{ "order_id": "ORD-\u0031", "amount": 49.990, "currency": "USD", "reason": "a\nb", "lines": [ {"sku":"A"} ] }`
	r := bottest.Request(raw)
	tool := bottest.Tool("issue_refund", bottest.RefundSchema, approvers.Unprotected)
	same := map[string]string{"arg.order_id": "ORD-1", "arg.amount": "49.99", "arg.currency": "0", "arg.reason": "a\r\nb", "arg.lines": ` [ {"sku":"A"} ]`[1:], "arg.notify": "", "arg.count": ""}
	for name, c := range map[string]struct {
		fill   map[string]string
		want   string
		faults map[string]string
	}{
		"one":          {map[string]string{"arg.amount": "39.99"}, `{ "order_id": "ORD-\u0031", "amount": 39.99, "currency": "USD", "reason": "a\nb", "lines": [ {"sku":"A"} ] }`, nil},
		"a choice":     {map[string]string{"arg.currency": "1"}, `{ "order_id": "ORD-\u0031", "amount": 49.990, "currency": "EUR", "reason": "a\nb", "lines": [ {"sku":"A"} ] }`, nil},
		"removed":      {map[string]string{"arg.reason": ""}, `{ "order_id": "ORD-\u0031", "amount": 49.990, "currency": "USD", "lines": [ {"sku":"A"} ] }`, nil},
		"added":        {map[string]string{"arg.notify": "false", "arg.count": "7"}, `{ "order_id": "ORD-\u0031", "amount": 49.990, "currency": "USD", "reason": "a\nb", "lines": [ {"sku":"A"} ],"notify":false,"count":7 }`, nil},
		"raw":          {map[string]string{"arg.lines": `[]`}, `{ "order_id": "ORD-\u0031", "amount": 49.990, "currency": "USD", "reason": "a\nb", "lines": [] }`, nil},
		"nothing":      {nil, "", map[string]string{"arg.order_id": "Nothing was changed. Change a value, or close this and use Approve."}},
		"no number":    {map[string]string{"arg.amount": "1,50"}, "", map[string]string{"arg.amount": "Write a number with a point, for example 49.99."}},
		"no integer":   {map[string]string{"arg.count": "1.5"}, "", map[string]string{"arg.count": "Write a whole number, for example 3."}},
		"needed":       {map[string]string{"arg.amount": ""}, "", map[string]string{"arg.amount": "This is needed."}},
		"empty text":   {map[string]string{"arg.order_id": ""}, `{ "order_id": "", "amount": 49.990, "currency": "USD", "reason": "a\nb", "lines": [ {"sku":"A"} ] }`, nil},
		"equal names":  {map[string]string{"arg.lines": `[{"a":1,"A":2}]`}, "", map[string]string{"arg.order_id": `the names "a" and "A" are the same or differ only in case`}},
		"two values":   {map[string]string{"arg.lines": `[] []`}, "", map[string]string{"arg.lines": `This is not valid JSON (write text in "quotes"): there is more after the value`}},
		"wrong choice": {map[string]string{"arg.currency": "9"}, "", map[string]string{"arg.currency": "Choose one of the values."}},
		"the schema":   {map[string]string{"arg.amount": "9999"}, "", map[string]string{"arg.amount": "must be between 0.01 and 5000", "arg.order_id": "is odd"}},
	} {
		t.Run(name, func(t *testing.T) {
			fill := map[string]string{}
			for k, v := range same {
				fill[k] = v
			}
			for k, v := range c.fill {
				fill[k] = v
			}
			got, faults := EditArgs(r, tool, filledIn(fill))
			if len(faults) == 0 {
				faults = nil
			}
			if diff := cmp.Diff(c.faults, faults); diff != "" {
				t.Error(diff)
			}
			if string(got) != c.want {
				t.Errorf("got\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// If the form can't change any argument, it has no button, and says why. If the tool's schema changes while a form is
// open, an error belongs to a field of this form.
func TestEditOfFixedArguments(t *testing.T) {
	tool := bottest.Tool("cancel_account", `{"type":"object","properties":{"user_id":{"type":"string"}}}`, approvers.Unprotected)
	long := bottest.Request(`{"user_id":"` + strings.Repeat("x", 3100) + `"}`)
	secret := bottest.Request(`{"user_id":"U1"}`)
	secret.Secrets = []string{"user_id"}
	for words, r := range map[string]approvers.Request{"too long to change": long, "hidden, so they can't be changed": secret} {
		v := Modify(r, control.FormToken{}, tool, EditEffect{Submit: "Send"}, nil)
		raw, err := json.Marshal(v)
		if err != nil || v.Submit != nil || !strings.Contains(string(raw), words) {
			t.Errorf("the form should have no button, and say %q: %s %v", words, raw, err)
		}
		_, faults := EditArgs(r, tool, filledIn(map[string]string{control.FieldReason: "no"}))
		if len(faults) != 1 || faults[control.FieldReason] == "" {
			t.Errorf("%s: %v", words, faults)
		}
	}
}

// An error about a value inside of a field keeps the value's path, and the whole error belongs to this field.
func TestEditNested(t *testing.T) {
	schema := `{"type":"object","properties":{"ref":{"type":"string"},"patient":{"type":"object","properties":{"id":{"type":"string"},"weight":{"type":"number","maximum":300}},"additionalProperties":false}},"additionalProperties":false}`
	r := bottest.Request(`{"ref":"R1","patient":{"id":"P1","weight":70}}`)
	tool := bottest.Tool("adjust_dose", schema, approvers.Unprotected)
	const said = "patient.weight: must be at most 300; patient.x: is not known; the fields are id, weight"
	tool.Check = func(json.RawMessage) error { return errors.New(said) }
	_, faults := EditArgs(r, tool, filledIn(map[string]string{"arg.ref": "R1", "arg.patient": `{"id":"P1","weight":900,"x":1}`}))
	want := map[string]string{"arg.patient": said}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Error(diff)
	}
}

// Arguments whose schema is too complex for a form are edited as one text.
func TestEditWhole(t *testing.T) {
	r := bottest.Request(`{"a":"x\u202e","b":1}`)
	tool := bottest.Tool("issue_refund", `{"oneOf":[{}]}`, approvers.Unprotected)
	shown := escapedJSON(r.Args)
	if _, faults := EditArgs(r, tool, filledIn(map[string]string{control.FieldRaw: shown})); faults[control.FieldRaw] == "" {
		t.Error("an unchanged text was accepted as a change")
	}
	got, faults := EditArgs(r, tool, filledIn(map[string]string{control.FieldRaw: ` {"a":"y","b":1} `}))
	if len(faults) > 0 || string(got) != `{"a":"y","b":1}` {
		t.Errorf("%s, %v", got, faults)
	}
	if _, faults := EditArgs(r, tool, filledIn(map[string]string{control.FieldRaw: `{"a":`})); faults[control.FieldRaw] == "" {
		t.Error("broken JSON was accepted")
	}
	if _, faults := EditArgs(r, tool, filledIn(map[string]string{control.FieldRaw: `[1]`})); faults[control.FieldRaw] == "" {
		t.Error("a list was accepted")
	}
}

// Any input is either rejected, or results in arguments that are strict JSON and valid for the tool.
func FuzzEdit(f *testing.F) {
	f.Add("49.99", "x", `[{"a":1}]`, "0")
	f.Add("", "\x00\xff", `"`, "-1")
	tool := bottest.Tool("issue_refund", bottest.RefundSchema, approvers.Unprotected)
	r := bottest.Request(`{ "order_id": "ORD-1", "amount": 1, "currency": "USD", "lines": [] }`)
	f.Fuzz(func(t *testing.T, amount, order, lines, currency string) {
		got, faults := EditArgs(r, tool, filledIn(map[string]string{"arg.amount": amount, "arg.order_id": order, "arg.lines": lines, "arg.currency": currency}))
		if len(faults) > 0 {
			return
		}
		if _, err := approvers.StrictArgs(got, false); err != nil || tool.Check(got) != nil {
			t.Fatalf("%s: %v", got, err)
		}
	})
}

func TestSpansUpTo(t *testing.T) {
	for most, want := range map[time.Duration]string{
		5 * time.Minute:  "5 minutes",
		time.Hour:        "10 minutes, 30 minutes, 1 hour",
		90 * time.Minute: "10 minutes, 30 minutes, 1 hour, 1 hour 30 minutes",
		30 * time.Second: "30 seconds",
	} {
		var got []string
		for _, d := range spansUpTo(most) {
			got = append(got, block.Period(d))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s; want %s", most, text, want)
		}
	}
}

// A tool may return any text. The layout contains the whole text, or the text is shown unchanged.
func TestResultTextDropsNothing(t *testing.T) {
	for in, want := range map[string]string{
		`{"refund_id":"RFD-9","ok":true}`:          "refund_id: RFD-9\nok:        true",
		`{"refund_id":"RFD-9","ok":true} all good`: `{"refund_id":"RFD-9","ok":true} all good`,
		`{"a":1}{"b":2}`:                           `{"a":1}{"b":2}`,
		`{"a":1}]`:                                 `{"a":1}]`,
		`{"a":1`:                                   `{"a":1`,
		"{\"a\":1} \n":                             "a: 1",
		`[1,2]`:                                    `[1,2]`,
		"{}":                                       "{}",
		"":                                         "(an empty result)",
		"{\"a\":1} \u202eevil":                     "{\"a\":1} ⟨U+202E⟩evil",
	} {
		if got := resultText(in); got != want {
			t.Errorf("resultText(%q) = %q, want %q", in, got, want)
		}
	}
}

// filledIn returns the answers of a submitted form, by block.
func filledIn(values map[string]string) func(block string) (text string, present bool) {
	return func(block string) (string, bool) {
		text, present := values[block]
		return text, present
	}
}
