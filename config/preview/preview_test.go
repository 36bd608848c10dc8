package preview_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/config/preview"
)

// compiled returns a template after compilation.
func compiled(t *testing.T, text string) approvers.Preview {
	t.Helper()
	render, message, hint := preview.Compile(text)
	if message != "" {
		t.Fatal(message, hint)
	}
	return approvers.Preview{Text: text, Render: render}
}

// A sentence about a patch names each file. If the sentence is too long, it first loses the lines, and then the last
// files. A text that is not a valid patch is quoted, because the agent may read it in another way.
func TestPatch(t *testing.T) {
	const path = "a/path/that/is/nearly/as/long/as/a/path/may/be/here.go"
	begin, end := "*** Begin Patch\n", "*** End Patch"
	for text, want := range map[string]string{
		begin + "*** Update File: a.go\n-x\n+y\n" + end + "\n": "a.go: 1 line added, 1 line removed: + y, − x",
		begin + "*** Update File: a.go\n" + strings.Repeat("-"+strings.Repeat("x", 70)+"\n+"+strings.Repeat("y", 70)+"\n", 3) + "*** Delete File: b.go\n" + end: "a.go: 3 lines added, 3 lines removed; deletes b.go",
		begin + strings.Repeat("*** Delete File: "+path+"\n", 9) + end:                                                                                          strings.Repeat(", deletes "+path, 4)[2:] + ", and 5 more",
		begin + "*** Add File: a.go\n+x\ny\n" + end:                                                                                                             "“*** Begin Patch ⏎ *** Add File: a.go ⏎ +x ⏎ y ⏎ *** End Patch”",
		begin + "*** Add File: a.go\n+x\n *** Delete File: b.go\n" + end:                                                                                        "“*** Begin Patch ⏎ *** Add File: a.go ⏎ +x ⏎ *** Delete File: b.go ⏎ *** End Patch”",
		begin + end: "“*** Begin Patch ⏎ *** End Patch”",
		"rm -rf /":  "“rm -rf /”",
		"":          "“”",
	} {
		if got, err := compiled(t, "{{patch .text}}").Render(map[string]any{"text": text}); err != nil || got != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", text, got, err, want)
		}
	}
}

// A long path loses its beginning, because the name of the file is at its end. Every other long value loses its end.
func TestLongPathsKeepTheName(t *testing.T) {
	deep := "/" + strings.Repeat("srv/", 14)
	short := "…/" + strings.Repeat("srv/", 12) + "etc/passwd"
	args := map[string]any{
		"patch": "*** Begin Patch\n*** Update File: " + deep + "etc/passwd\n*** Move to: a b/" + deep + "etc/passwd\n+x\n*** Delete File: a/" + strings.Repeat("x", 70) + "\n*** End Patch",
		"old":   deep + "etc/passwd", "new": deep + "etc/shadow",
		"url": "https://shop.example/" + deep, "words": "rm -rf " + deep, "none": "", "tail": strings.Repeat("x/", 1000) + "etc",
	}
	for template, want := range map[string]string{
		"{{patch .patch}}":      "moves " + short + " to " + short + ": 1 line added: + x; deletes …" + strings.Repeat("x", 59),
		"{{diff .old .new}}":    short + " → " + strings.Replace(short, "passwd", "shadow", 1),
		"{{diff .none .url}}":   "new: https://shop.example/" + deep[:38] + "…",
		"{{diff .none .words}}": "new: rm -rf " + deep[:52] + "…",
		"{{diff .none .tail}}":  "new: …" + strings.Repeat("/x", 27) + "/etc",
	} {
		if got, err := compiled(t, template).Render(args); err != nil || got != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", template, got, err, want)
		}
	}
}

func TestPreview(t *testing.T) {
	args := map[string]any{
		"order_id": "ORD-123", "amount": 49.99, "currency": "USD", "big": 1234567.5, "note": nil, "count": 1.0, "many": 12500.0, "due": "2026-03-31",
		"gap": "<no value>", "verb": "%!d(x)", "verbs": []any{"%!d(x)"}, "exact": "2026-03-31T23:59:59+05:30", "half": "2026-03-31T23:59:59.5",
		"items": []any{"a", 2.0, map[string]any{"sku": "x"}}, "to": map[string]any{"city": "Köln"}, "urgent": true, "when": "2026-03-31T14:05:00Z",
		"address": "12 Elm Street\nSpringfield", "long": strings.Repeat("ü", 601), "body": "Dear customer", "script": " set -e \r\n\n  echo \x1b\ta\n",
	}
	for _, c := range []struct{ text, want, fault string }{
		{text: "Refund of {{money .amount .currency}} for order {{.order_id}}", want: "Refund of $49.99 for order ORD-123"},
		{text: "{{.big}} and {{.count}}", want: "1234567.5 and 1"}, // never 1.2345675e+06
		{text: "{{quantity .big}} / {{quantity .many}}", want: "1,234,567.5 / 12,500"},
		{text: `{{plural .count "item" "items"}}, {{plural .many "item" "items"}}, {{plural .items "line" "lines"}}`, want: "1 item, 12,500 items, 3 lines"},
		{text: "by {{date .due}}, at {{date .when}}", want: "by 31 March 2026, at 31 March 2026, 14:05 UTC"},
		{text: `{{join .items ", "}}`, want: `a, 2, {"sku":"x"}`},
		{text: "{{.items}} to {{.to}} in {{.to.city}}", want: `["a",2,{"sku":"x"}] to {"city":"Köln"} in Köln`},
		{text: "{{upper .order_id}} {{lower .order_id}}", want: "ORD-123 ord-123"},
		{text: "{{.note}}{{if has . \"note\"}} noted{{end}}{{if has . \"memo\"}} memo{{end}}{{if has . \"due\"}} due{{end}}", want: "(nothing) due"},
		{text: "{{if .note}}noted{{else}}plain{{end}}{{with .note}}{{.}}{{end}} {{not .note}} {{or .note \"x\"}} {{and .note \"x\"}}", want: "plain true x (nothing)"},
		{text: "{{if gt .amount 40}}large{{end}} {{if eq .count 1}}one{{end}} {{if le 12500 .many}}many{{end}} {{ne .count 2}} {{lt .count 1.5}} {{ge .order_id \"ORD\"}}", want: "large one many true true true"},
		{text: "{{eq .count 2 1.0}} {{eq .note nil}} {{eq .note \"x\"}} {{eq .urgent true}} {{eq .urgent false}} {{eq .order_id \"x\" \"ORD-123\"}}", want: "true true false true false true"},
		{text: "{{gt .order_id 40}}", fault: `gt: "ORD-123" and "40" can't be compared`},
		{text: "{{lt .note 40}}", fault: `lt: "(nothing)" and "40" can't be compared`},
		{text: "{{index . \"due\"}} {{index .items 1}} {{index .items .count}} {{index .items 2 \"sku\"}}", want: "2026-03-31 2 2 x"},
		{text: "{{index .items 3}}", fault: "the preview uses something that the call does not have"},
		{text: "{{index .items 0.5}}", fault: "the preview uses something that the call does not have"},
		{text: "{{index .due 0}}", fault: `index: "2026-03-31" is neither a list nor an object`},
		{text: "{{.gap}} {{if index . \"memo\"}}memo{{end}}{{with index . \"memo\"}}{{.}}{{end}}{{or (index . \"memo\") \"none\"}} {{eq (index . \"memo\") nil}}", want: "<no value> none true"},
		{text: "{{get . \"memo\" nil}}", fault: "the preview uses something that the call does not have"},
		{text: "{{upper (index . \"memo\")}}", fault: "the preview uses something that the call does not have"},
		{text: "{{printf \"%v\" (index . \"memo\")}}", fault: "the preview uses something that the call does not have"},
		{text: "{{index . \"memo\" \"a\"}}", fault: "the preview uses something that the call does not have"},
		{text: "{{printf \"%d rows, %5.1f, %v, %s, %05d\" .many .amount .big .count .count}}", want: "12500 rows,  50.0, 1234567.5, 1, 00001"},
		{text: "{{printf \"%d\" .amount}}", fault: `printf: the format "%d" does not fit the values`},
		{text: "{{printf \"%s and %s\" .order_id}}", fault: `printf: the format "%s and %s" does not fit the values`},
		{text: "{{printf \"%s\" .order_id .due}}", fault: `printf: the format "%s" does not fit the values`},
		{text: "{{printf \"%d\" .order_id}}", fault: `printf: the format "%d" does not fit the values`},
		{text: "{{printf \"%s, %v, 5%%\" .verb .verbs}}", want: `%!d(x), ["%!d(x)"], 5%`},
		{text: "by {{date .exact}}, {{date .half}}", want: "by 31 March 2026, 23:59:59 +05:30, 31 March 2026, 23:59:59.5"},
		{text: "{{if gt .amount 40.0}}large{{else}}small{{end}} {{if .urgent}}urgent{{end}}", want: "large urgent"},
		{text: "{{short .body 4}} {{short .order_id 20}}", want: "Dear… (9 more characters) ORD-123"},
		{text: "Ship to {{quote .address}}", want: "Ship to “12 Elm Street ⏎ Springfield”"},
		{text: "{{quote .script}} {{quote .count}}", want: "“set -e ⏎ echo \\x1b⇥a” “1”"},
		{text: "{{printf \"%.2f\" .amount}}", want: "49.99"},
		{text: "{{range .items}}[{{.}}]{{end}}", want: `[a][2][{"sku":"x"}]`},
		{text: "Ship to {{.town}}", fault: "the call has no argument town"},
		{text: "Ship to {{.to.street}}", fault: "the call has no argument street"},
		{text: "{{index . \"memo\"}}!", fault: "the preview uses something that the call does not have"},
		{text: "{{money .order_id .currency}}", fault: `money: "ORD-123" is not a number`},
		{text: "{{money .amount .order_id}}", fault: `money: "ORD-123" is not a currency such as USD`},
		{text: "{{date .amount}}", fault: `date: "49.99" is not a date such as 2026-03-31`},
		{text: "{{join .amount \",\"}}", fault: `join: "49.99" is not a list`},
		{text: "Ship to {{.address}}", fault: "the preview has more than one line, because an argument contains a line break"},
		{text: "{{.long}}", fault: "the preview is longer than 600 characters"},
		{text: "{{range .items}}{{$.long}}{{$.long}}{{$.long}}{{end}}", fault: "the preview is longer than 600 characters"},
		{text: "{{if eq .order_id \"x\"}}x{{end}}", fault: "the preview is empty"},
	} {
		p := compiled(t, c.text)
		got, err := p.Render(args)
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		if got != c.want || fault != c.fault {
			t.Errorf("%s:\n got %q, fault %q\nwant %q, fault %q", c.text, got, fault, c.want, c.fault)
		}
		if p.Text != c.text {
			t.Errorf("the text is %q", p.Text)
		}
	}
}

// TestPreviewWithoutArguments checks that a call without arguments has a preview, too.
func TestPreviewWithoutArguments(t *testing.T) {
	if got, err := compiled(t, "Restart the shop").Render(nil); err != nil || got != "Restart the shop" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestMoney(t *testing.T) {
	for _, c := range []struct {
		amount   any
		currency string
		want     string
	}{
		{49.99, "USD", "$49.99"},
		{1234.5, "EUR", "€1,234.50"},
		{500.0, "JPY", "¥500"},
		{12.5, "SEK", "12.50 SEK"},
		{0.30000000000000004, "USD", "$0.30000000000000004"}, // the exact number, not a rounded one
		{49.999, "USD", "$49.999"},                           // never rounded, because the call would send 49.999
		{500.5, "JPY", "¥500.5"},
		{1.0, "KWD", "1.000 KWD"},
		{-5.0, "USD", "-$5.00"},
		{-1234567.0, "CAD", "-1,234,567.00 CAD"}, // dollars other than US dollars are not written with a $
		{"1234.5", "gbp", "£1,234.50"},           // amounts as text are exact
		{1e21, "USD", "$1,000,000,000,000,000,000,000.00"},
		{999.0, "USD", "$999.00"},
		{0.0, "USD", "$0.00"},
	} {
		got, err := compiled(t, "{{money .a .c}}").Render(map[string]any{"a": c.amount, "c": c.currency})
		if err != nil || got != c.want {
			t.Errorf("money %v %s: got %q, %v; want %q", c.amount, c.currency, got, err, c.want)
		}
	}
	for _, bad := range []map[string]any{
		{"a": true, "c": "USD"}, {"a": nil, "c": "USD"}, {"a": "1e3", "c": "USD"}, {"a": "5 USD", "c": "USD"}, {"a": 5.0, "c": nil}, {"a": 5.0, "c": "US"}, {"a": 5.0, "c": "$"}, {"a": 5.0, "c": "uſd"}, {"a": 5.0, "c": "ınr"},
	} {
		if got, err := compiled(t, "{{money .a .c}}").Render(bad); err == nil {
			t.Errorf("%v: got %q", bad, got)
		}
	}
}

// TestMoneyKeepsCents checks amounts up to a million. Each amount is shown with exactly its cents.
func TestMoneyKeepsCents(t *testing.T) {
	p := compiled(t, "{{money .a .c}}")
	for cents := 0; cents < 100_000_000; cents += 9973 { // 9973 is a prime, so every ending occurs
		text := fmt.Sprintf("%d.%02d", cents/100, cents%100)
		amount, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Render(map[string]any{"a": amount, "c": "USD"})
		if err != nil || strings.ReplaceAll(got, ",", "") != "$"+text {
			t.Fatalf("%s: got %q, %v", text, got, err)
		}
	}
}
