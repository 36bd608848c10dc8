package preview

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"

	"countersign/config/yamldoc"
)

// previewFuncs has the functions that templates can use in addition to the functions of text/template. docs/policy.md
// documents each function.
var previewFuncs = template.FuncMap{
	"money":    money,
	"amounts":  amounts,
	"total":    total,
	"percent":  percent,
	"quantity": quantity,
	"plural":   plural,
	"date":     date,
	"between":  between,
	"diff":     diff,
	"patch":    patch,
	"join":     joined,
	"some":     some,
	"upper":    func(v any) (string, error) { return strings.ToUpper(fmt.Sprint(v)), nil },
	"lower":    func(v any) (string, error) { return strings.ToLower(fmt.Sprint(v)), nil },
	"short":    short,
	"quote":    quote,
	"has":      func(args object, name string) (bool, error) { return hasArg(args, name), nil },
	"get":      get,
}

func previewFuncNames() []string {
	var names []string
	for name := range previewFuncs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// numeral writes a number in plain decimal digits. A text that consists only of a number stays unchanged.
func numeral(v any) (string, error) {
	switch n := v.(type) {
	case decimal:
		return n.String(), nil
	case float64:
		return decimal(n).String(), nil
	case int:
		return strconv.Itoa(n), nil
	case string:
		if plainNumber.MatchString(n) {
			return n, nil
		}
	}
	return "", fmt.Errorf("%s is not a number", describe(v))
}

// describe formats a value for an error. A long value is cut.
func describe(v any) string { return yamldoc.Quote(fmt.Sprint(v)) }

// quantity writes a number with separators: 12,500.5.
func quantity(v any) (string, error) {
	n, err := numeral(v)
	if err != nil {
		return "", err
	}
	return yamldoc.GroupDigits(n), nil
}

// plural writes a count with the right word: 1 item, 3 items.
func plural(count any, one, many string) (string, error) {
	if l, ok := count.(list); ok {
		count = len(l)
	}
	n, err := quantity(count)
	if err != nil {
		return "", err
	}
	if n == "1" {
		return n + " " + one, nil
	}
	return n + " " + many, nil
}

var dateFormats = []struct{ read, write string }{
	{time.RFC3339, "2 January 2006, 15:04 -07:00"},
	{"2006-01-02T15:04:05", "2 January 2006, 15:04"},
	{"2006-01-02T15:04", "2 January 2006, 15:04"},
	{"2006-01-02 15:04:05", "2 January 2006, 15:04"},
	{"2006-01-02 15:04", "2 January 2006, 15:04"},
	{"2006-01-02", "2 January 2006"},
}

// date writes a date the way people write it. The function accepts a date only if the date begins with the year,
// because 3/4/2026 is ambiguous.
func date(v any) (string, error) {
	t, write, err := readDate(v)
	if err != nil {
		return "", err
	}
	if t.Second() != 0 || t.Nanosecond() != 0 {
		write = strings.Replace(write, "15:04", "15:04:05.999999999", 1)
	}
	return strings.Replace(t.Format(write), "+00:00", "UTC", 1), nil
}

// readDate reads a date, and returns the layout in which people write a date of the same precision.
func readDate(v any) (t time.Time, write string, err error) {
	text, ok := v.(string)
	if ok {
		for _, f := range dateFormats {
			if t, err := time.Parse(f.read, text); err == nil {
				return t, f.write, nil
			}
		}
	}
	return t, "", fmt.Errorf("%s is not a date such as 2026-03-31", describe(v))
}

// The function writes the time between two dates: 14 days, 3 hours. No function counts from the present time, because
// people may read a card hours after the bot made the card.
func between(from, to any) (string, error) {
	a, _, err := readDate(from)
	if err != nil {
		return "", err
	}
	b, _, err := readDate(to)
	if err != nil {
		return "", err
	}
	before := ""
	if b.Before(a) {
		a, b, before = b, a, "minus "
	}
	// A time.Duration can't hold more than 292 years.
	seconds, rest := b.Unix()-a.Unix(), time.Duration(b.Nanosecond()-a.Nanosecond())
	if rest < 0 {
		seconds, rest = seconds-1, rest+time.Second
	}
	for _, unit := range []struct {
		name string
		of   int64
	}{{"day", 24 * 60 * 60}, {"hour", 60 * 60}, {"minute", 60}, {"second", 1}} {
		if rest == 0 && seconds%unit.of == 0 && (seconds > 0 || unit.name == "day") {
			return before + many(int(seconds/unit.of), unit.name), nil
		}
	}
	const day = 24 * 60 * 60
	rest += time.Duration(seconds%day) * time.Second
	if days := seconds / day; days > 0 {
		return before + many(int(days), "day") + " " + rest.String(), nil
	}
	return before + rest.String(), nil
}

// joined writes a list's items with the given text between them.
func joined(v any, between string) (string, error) {
	items, ok := v.(list)
	if !ok {
		return "", fmt.Errorf("%s is not a list", describe(v))
	}
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = fmt.Sprint(item)
	}
	return strings.Join(parts, between), nil
}

// The function writes the first items of a list in a sentence and counts the others: Jo, Sam and 5 more.
func some(v any, most int) (string, error) {
	items, ok := v.(list)
	if !ok {
		return "", fmt.Errorf("%s is not a list", describe(v))
	}
	if most < 1 {
		return "", errors.New("the number must be 1 or more")
	}
	var parts []string
	for i, item := range items {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d more", len(items)-most))
			break
		}
		parts = append(parts, fmt.Sprint(item))
	}
	switch len(parts) {
	case 0:
		return "nothing", nil
	case 1:
		return parts[0], nil
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last], nil
}

// get returns an argument. If the call does not have the argument, get returns the value of the parameter named
// otherwise.
func get(args object, name string, otherwise any) (any, error) {
	switch {
	case hasArg(args, name):
		return args[name], nil
	case otherwise == nil:
		return absent(false), nil
	}
	return otherwise, nil
}

// The function shortens a text to n characters. The result says how many characters were cut, because a silent
// cut would hide a part of the text.
func short(v any, n int) (string, error) {
	if n < 1 {
		return "", errors.New("the length must be 1 or more")
	}
	text := fmt.Sprint(v)
	count := utf8.RuneCountInString(text)
	if count <= n {
		return text, nil
	}
	return fmt.Sprintf("%s… (%d more characters)", string([]rune(text)[:n]), count-n), nil
}

var lineBreaks = regexp.MustCompile(`[ \t]*([\n\r\v\f\x{85}\x{2028}\x{2029}][ \t]*)+`)

// quote writes a text on one line, in quotation marks. Successive line breaks become one ⏎, because a preview has one
// line.
func quote(v any) (string, error) {
	var b strings.Builder
	for _, r := range lineBreaks.ReplaceAllString(strings.TrimSpace(fmt.Sprint(v)), " ⏎ ") {
		switch {
		case r == '\t':
			b.WriteRune('⇥')
		case unicode.IsControl(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return "“" + b.String() + "”", nil
}

// hasArg reports whether an argument was given, and is not null.
func hasArg(args object, name string) bool {
	return !isNull(args[name])
}
