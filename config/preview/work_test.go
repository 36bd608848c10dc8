package preview_test

import (
	"errors"
	"fmt"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/config/preview"
	"countersign/config/yamldoc"
)

// largestArgs returns arguments, most of which are alone about as large as all arguments of a call may be. Templates
// need the longest time for arguments of these kinds.
func largestArgs() map[string]any {
	numbers := make([]any, approvers.MaxArgs/2)
	for i := range numbers {
		numbers[i] = float64(i % 10)
	}
	nested := any("x")
	for range 31 {
		nested = []any{nested, nested} // each level doubles the number of values; StrictArgs does not allow the 2^31 values of 31 levels, so the loop stops earlier
		if len(fmt.Sprint(nested)) > approvers.MaxArgs/2 {
			break
		}
	}
	huge, empty := make([]any, approvers.MaxArgs/6), make([]any, approvers.MaxArgs/3)
	for i := range huge {
		huge[i] = 1e308
	}
	for i := range empty {
		empty[i] = ""
	}
	return map[string]any{
		"huge": huge, "empty": empty, "quotes": strings.Repeat("\"<", approvers.MaxArgs/4),
		"items": numbers, "text": strings.Repeat("a b ", approvers.MaxArgs/4), "other": strings.Repeat("c d ", approvers.MaxArgs/4), "nested": nested,
		"lines": strings.Repeat("a\nb\n", approvers.MaxArgs/4), "more": strings.Repeat("c\nd\n", approvers.MaxArgs/4), "n": 1e9, "format": strings.Repeat("%99d", approvers.MaxArgs/4),
	}
}

// hostile lists templates that would take minutes or all memory if their work were not limited. Nobody writes such a
// template on purpose, but a hostile model can exploit a careless template.
var hostile = []string{
	"{{range .items}}{{range $.items}}{{end}}{{end}}",
	"{{range .items}}{{range $.items}}{{range $.items}}{{if eq . 11.0}}x{{end}}{{end}}{{end}}{{end}}",
	"{{range .items}}{{$x := join $.items \",\"}}{{end}}",
	"{{range .items}}{{$x := print $.nested}}{{end}}",
	"{{range .items}}{{$x := printf \"%v%v\" $.items $.items}}{{end}}",
	"{{range .items}}{{$x := diff $.text $.other}}{{end}}",
	"{{range .items}}{{$x := diff $.lines $.more}}{{end}}",
	"{{range .items}}{{$x := upper $.text}}{{end}}",
	"{{range .items}}{{$x := some $.items 30000}}{{end}}",
	"{{range .items}}{{$x := total $.items \"USD\"}}{{end}}",
	"{{range .items}}{{$x := html $.text}}{{$x = js $.text}}{{$x = urlquery $.text}}{{$x = println $.text}}{{end}}",
	"{{range 1000000000}}{{end}}",
	"{{range $i, $c := .items}}{{if $i}}{{range $.items}}{{end}}{{end}}{{end}}",
	"{{$x := .text}}" + strings.Repeat("{{$x = print $x $x}}", 25),
	"{{range .items}}{{with $.items}}{{range .}}{{break}}{{end}}{{range .}}{{continue}}{{end}}{{end}}{{end}}",
	"{{join .empty .text}}",
	"{{short (join .empty .text) 5}}",
	"{{short (printf \"" + strings.Repeat("%[1]q", 110) + "\" .quotes) 5}}",
	"{{short (printf \"" + strings.Repeat("%+q", 60) + "\"" + strings.Repeat(" .text", 60) + ") 5}}",
	"{{short (printf \"" + strings.Repeat("%[1]99.99f", 50) + "\" .huge) 5}}",
	"{{short (html (js (html (js .quotes)))) 5}}",
	"{{short (urlquery (urlquery (urlquery (urlquery .quotes)))) 5}}",
	"{{short (print .huge .huge .huge .huge .huge .huge) 5}}",
	"{{range .items}}{{else}}{{end}}{{range .items}}{{range $.items}}{{else}}{{end}}{{end}}",
}

// allocated returns the total number of bytes that the process has allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// TestPreviewEnds checks that rendering a preview ends, for hostile templates and large arguments. Rendering takes less
// than 50 ms on an otherwise idle machine. The test allows more time.
func TestPreviewEnds(t *testing.T) {
	args, largest := largestArgs(), uint64(0)
	defer func() { t.Logf("largest %.1f MiB", float64(largest)/(1<<20)) }()
	for _, text := range hostile {
		p, before, begun := compiled(t, text), allocated(), time.Now()
		got, err := p.Render(args)
		took, made := time.Since(begun), allocated()-before
		largest = max(largest, made)
		if made > 64<<20 {
			t.Errorf("%.80s took %d MiB", text, made>>20)
		}
		t.Logf("%6.1f ms %s: %.40q %v", float64(took.Microseconds())/1000, text, got, err)
		if err == nil || err.Error() != "the template would take too long with these arguments" {
			t.Errorf("%s: got %.80q, %v", text, got, err)
		}
		if took > 5*time.Second {
			t.Errorf("%s took %s", text, took)
		}
	}
	for text, fault := range map[string]string{
		"{{printf .format 1}}":                "the template would take too long with these arguments",
		"{{printf \"%999999d\" 1}}":           "printf: a width or precision has at most two digits",
		"{{printf \"%-0999d\" 1}}":            "printf: a width or precision has at most two digits",
		"{{printf \"%*d\" 100 1}}":            "printf: a width or precision has at most two digits",
		"{{printf \"%.100f\" .n}}":            "printf: a width or precision has at most two digits",
		"{{.text}}":                           "the preview is longer than 600 characters",
		"{{range .items}}{{$.nested}}{{end}}": "the preview is longer than 600 characters",
		"{{range .text}}{{end}}":              "range can't iterate over " + strings.Repeat("a b ", 43) + "a …",
	} {
		if got, err := compiled(t, text).Render(args); err == nil || err.Error() != fault {
			t.Errorf("%s: got %.80q, %v", text, got, err)
		}
	}
	if got, err := compiled(t, "{{printf \"%05.2f|%-4s|%d%%\" .n \"a\" 5}}").Render(map[string]any{"n": 1.5}); err != nil || got != "01.50|a   |5%" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestPreviewWorkIsEnough checks that ordinary templates stay below the limit. Some of these templates read every item
// of a long list, or compare a long text.
func TestPreviewWorkIsEnough(t *testing.T) {
	args := map[string]any{"text": strings.Repeat("word ", 4000) + "a", "other": strings.Repeat("word ", 4000) + "b"}
	var items []any
	for i := range 2000 {
		items = append(items, map[string]any{"sku": strconv.Itoa(i), "price": 0.01, "gift": i == 1999})
	}
	args["items"] = items
	for text, want := range map[string]string{
		`{{range .items}}{{if .gift}}{{.sku}} is a gift{{end}}{{end}}`:        "1999 is a gift",
		`{{plural .items "item" "items"}} for {{total .items "price" "USD"}}`: "2,000 items for $20.00",
		`{{diff .text .other}}`: "a → b",
		`{{range $i, $x := .items}}{{if lt $i 3}}{{$x.sku}} {{end}}{{end}}etc.`: "0 1 2 etc.",
	} {
		if got, err := compiled(t, text).Render(args); err != nil || got != want {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
}

// TestPreviewRunsAlone checks that the work of one run does not count in the next run.
func TestPreviewRunsAlone(t *testing.T) {
	p := compiled(t, "{{range .items}}{{if eq . 10.0}}x{{end}}{{end}}done")
	args := map[string]any{"items": make([]any, 1000)}
	for i := range args["items"].([]any) {
		args["items"].([]any)[i] = float64(i)
	}
	for range 50 {
		if got, err := p.Render(args); err != nil || got != "xdone" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

// TestPreviewIsOneTemplate checks that templates can't call each other. A template that can call itself could run
// forever.
func TestPreviewIsOneTemplate(t *testing.T) {
	for _, text := range []string{`{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}`, `{{template "preview" .}}`, `{{block "a" .}}{{end}}`, `x{{define "a"}}y{{end}}`} {
		if _, message, _ := preview.Compile(text); !strings.Contains(message, "define, block and template can't be used in a preview") {
			t.Errorf("%s: %q", text, message)
		}
	}
}

// TestPreviewRefusesMethods checks that templates can't call methods of values, because the work of methods is not
// counted.
func TestPreviewRefusesMethods(t *testing.T) {
	for _, text := range []string{"{{.items.String}}", "{{.String}}", "{{$x := .items}}{{$x.MarshalJSON}}", "{{(index .items 0).String}}", "{{spend_work 1}}", "{{range .items}}{{with .a}}{{.String}}{{end}}{{end}}"} {
		if _, message, _ := preview.Compile(text); !strings.Contains(message, "can't be used in a preview") {
			t.Errorf("%s: %q", text, message)
		}
	}
}

// TestDiff checks that a change of any kind of value is described in a few words.
func TestDiff(t *testing.T) {
	long := "Dear customer, your parcel left our house on Monday and will be with you by Wednesday at noon, as we promised you on the telephone."
	for _, c := range []struct {
		was, is any
		want    string
	}{
		{"a", "a", "no change"},
		{1.0, "1", "no change"}, // people read both values as 1
		{"", "a", "new: a"},
		{nil, 5.0, "new: 5"},
		{"a", nil, "removed: a"},
		{"a", "b", "a → b"},
		{true, false, "true → false"},
		{49.99, 50.0, "49.99 → 50 (+0.01)"},
		{0.3, 0.1, "0.3 → 0.1 (−0.2)"},
		{"5", 6.0, "5 → 6"},
		{long, strings.Replace(strings.Replace(long, "Monday", "Tuesday", 1), "by Wednesday at noon", "on Friday", 1), "Monday → Tuesday, by Wednesday at noon, → on Friday,"},
		{long, long + " Yours, Sam", "+ Yours, Sam"},
		{long, strings.Replace(long, "Dear customer, ", "", 1), "− Dear customer,"},
		{long, strings.Replace(long, " ", "  ", 1), "only spaces change"},
		{"a\nb", "a\nb\nc", "1 line added: + c"},
		{"a\nb\nc", "a\nc", "1 line removed: − b"},
		{"a\nb", "a\r\nb\n", "only line ends change"},
		{"1\n2\n3\n4\n5", "6\n7", "2 lines added, 5 lines removed: + 6, + 7, − 1, − 2, and 3 more"},
		{[]any{"a", "b"}, []any{"b", "a"}, "the same items in another order"},
		{[]any{"a", "a"}, []any{"a"}, "− a"},
		{[]any{}, []any{"a", 2.0}, "+ a, + 2"},
		{map[string]any{"city": "Köln", "zip": 5.0, "a": 1.0}, map[string]any{"city": "Bonn", "zip": 5.0, "b": nil}, "− a: 1, city: Köln → Bonn, + b: (nothing)"},
		{true, "true", `true → "true"`},
		{nil, "", `(nothing) → ""`},
		{"", " ", `new: " "`},
		{"(nothing)", nil, "removed: (nothing)"},
		{"x", "x ", `"x" → "x "`},
		{"rm  x", "rm x", `"rm  x" → "rm x"`},
		{[]any{"1"}, []any{1.0}, "no change"},
		{[]any{"1", "2"}, []any{2.0, 1.0}, "the same items in another order"},
		{[]any{"true"}, []any{true}, "+ true, − true"},
		{map[string]any{"k": 1.0}, map[string]any{"k": "1"}, "no change"},
		{map[string]any{"k": true}, map[string]any{"k": "true"}, `k: true → "true"`},
		{map[string]any{"k": []any{1.0}}, `{"k":[1]}`, `{"k":[1]} → "{\"k\":[1]}"`},
		{map[string]any{"k": long + "a"}, map[string]any{"k": long + "b"}, `k: "Dear customer, your parcel left our house on Monday and will…" → a value with the same beginning`},
		{[]any{1.0}, map[string]any{"a": 1.0}, `[1] → {"a":1}`},
	} {
		got, err := compiled(t, "{{diff .was .is}}").Render(map[string]any{"was": c.was, "is": c.is})
		if err != nil || got != c.want {
			t.Errorf("%v, %v:\n got %q, %v\nwant %q", c.was, c.is, got, err, c.want)
		}
	}
	for _, n := range []int{1, 2, 10, 100, 1000, 20000} {
		var was, is []any
		for i := range n {
			was, is = append(was, fmt.Sprintf("ü%d", i)), append(is, fmt.Sprintf("é%d", i*7))
		}
		for _, pair := range [][2]any{{was, is}, {fmt.Sprint(was...), fmt.Sprint(is...)}, {strings.ReplaceAll(fmt.Sprintln(was...), " ", "\n"), fmt.Sprintln(is...)}} {
			got, err := compiled(t, "{{diff .was .is}}").Render(map[string]any{"was": pair[0], "is": pair[1]})
			if err != nil && err.Error() != "the template would take too long with these arguments" {
				t.Errorf("%d: %v", n, err)
			}
			if utf8.RuneCountInString(got) > 330 || strings.ContainsAny(got, "\r\n") {
				t.Errorf("%d: %q", n, got)
			}
		}
	}
}

// TestPreviewFunctionsRefuse checks that a function refuses arguments for which it has no correct result. The error
// says why.
func TestPreviewFunctionsRefuse(t *testing.T) {
	args := map[string]any{"list": []any{1.0, "x"}, "lines": []any{map[string]any{"price": 1.0}, map[string]any{}}, "n": 5.0, "zero": 0.0, "d": "2026-03-31", "e": "31.3.2026", "at": "2026-03-31T12:30", "to": "2026-03-31T14:00", "ever": "9999-09-09", "late": "9999-09-09T00:00:00.5", "half": "2026-03-31T14:00:00.5"}
	for text, want := range map[string]string{
		`{{amounts .n "USD"}}`:             `amounts: "5" is not a list`,
		`{{amounts .list "USD"}}`:          `amounts: "x" is not a number`,
		`{{total .n "USD"}}`:               `total: "5" is not a list`,
		`{{total .list}}`:                  `total: it takes a list and a currency, or a list, a name and a currency`,
		`{{total .list "USD"}}`:            `total: "x" is not a number`,
		`{{total .lines "price" "USD"}}`:   `total: "{}" has no "price"`,
		`{{total .list "price" "USD"}}`:    `total: "1" has no "price"`,
		`{{percent .d}}`:                   `percent: "2026-03-31" is not a number`,
		`{{percent .n .zero}}`:             `percent: "0" has no parts`,
		`{{percent .n .n .n}}`:             `percent: it takes a number of percent, or a part and a whole`,
		`{{between .d .e}}`:                `between: "31.3.2026" is not a date such as 2026-03-31`,
		`{{between .n .d}}`:                `between: "5" is not a date such as 2026-03-31`,
		`{{some .n 3}}`:                    `some: "5" is not a list`,
		`{{some .list 0}}`:                 `some: the number must be 1 or more`,
		`{{between .at .to}}`:              `90 minutes`,
		`{{between .to .at}}`:              `minus 90 minutes`,
		`{{between .d .d}}`:                `0 days`,
		`{{between .d .ever}}`:             `2912240 days`,
		`{{between .ever .d}}`:             `minus 2912240 days`,
		`{{between .at .late}}`:            `2912239 days 11h30m0.5s`,
		`{{between .late .at}}`:            `minus 2912239 days 11h30m0.5s`,
		`{{between .to .half}}`:            `500ms`,
		`{{percent .n 40}}`:                `12.5%`,
		`{{percent .n 5}}`:                 `100%`,
		`{{some .list 5}}`:                 `1 and x`,
		`{{get . "n" 1}} {{get . "m" 1}}!`: `5 1!`,
	} {
		got, err := compiled(t, text).Render(args)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
	}
}

// FuzzPreview checks that rendering a preview ends for any template and any arguments. The result is one line of at
// most 600 characters, or an error.
func FuzzPreview(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, `{"items":[1,2,3],"text":"a","other":"b","nested":[[1]]}`)
	}
	f.Add("Refund of {{money .amount .currency}} for {{diff .a .b}}", `{"amount":1e308,"currency":"usd","a":"x\ny","b":["<no value>"]}`)
	f.Add("{{range $k, $v := .}}{{$k}}{{some $v 2}}{{between $k $v}}{{end}}", `{"a":[null,true]}`)
	f.Fuzz(func(t *testing.T, text, raw string) {
		if len(raw) > approvers.MaxArgs {
			return
		}
		args, err := approvers.StrictArgs([]byte(raw), false)
		if err != nil {
			return
		}
		render, message, hint := preview.Compile(text)
		if (render == nil) == (message == "") || (message == "") != (hint == "") {
			t.Errorf("%q: render %t, %q; %q", text, render != nil, message, hint)
		}
		if render == nil {
			return
		}
		got, err := render(args)
		if utf8.RuneCountInString(got) > 600 || strings.ContainsAny(got, "\r\n") || (err == nil) == (got == "") {
			t.Errorf("%q of %q gives %q, %v", text, raw, got, err)
		}
		var problems yamldoc.Problems
		if errors.As(err, &problems) {
			t.Errorf("the fault of a preview is a fault of the file: %v", err)
		}
	})
}
