package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"
)

// previewFuncs are what a template can call beside text/template's own. docs/policy.md documents each.
var previewFuncs = template.FuncMap{
	"money":    money,
	"quantity": func(n any) (string, error) { return quantity(n) },
	"plural":   plural,
	"date":     date,
	"join":     joined,
	"upper":    func(v any) string { return strings.ToUpper(fmt.Sprint(v)) },
	"lower":    func(v any) string { return strings.ToLower(fmt.Sprint(v)) },
	"short":    short,
	"has":      hasArg,
}

func previewFuncNames() []string {
	var names []string
	for name := range previewFuncs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// numeral is a number as it was written, in plain decimals. Text is taken where it is nothing but a number.
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

// describe shows a value in an error, cut where it is long.
func describe(v any) string { return quote(fmt.Sprint(v)) }

// quantity writes a number with separators: 12,500.5.
func quantity(v any) (string, error) {
	n, err := numeral(v)
	if err != nil {
		return "", err
	}
	return grouped(n), nil
}

// grouped puts a comma between every three digits before the point.
func grouped(n string) string {
	sign := ""
	if strings.HasPrefix(n, "-") {
		sign, n = "-", n[1:]
	}
	whole, fraction, hasFraction := strings.Cut(n, ".")
	var b strings.Builder
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	if hasFraction {
		return sign + b.String() + "." + fraction
	}
	return sign + b.String()
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

// date writes a date as people do. It reads years first only: 3/4/2026 means two different days.
func date(v any) (string, error) {
	text, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s is not a date such as 2026-03-31", describe(v))
	}
	for _, f := range dateFormats {
		if t, err := time.Parse(f.read, text); err == nil {
			return strings.Replace(t.Format(f.write), "+00:00", "UTC", 1), nil
		}
	}
	return "", fmt.Errorf("%s is not a date such as 2026-03-31", describe(v))
}

// joined writes a list's items with something between them.
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

// short cuts a text after n characters, and says so: a cut that is not seen would hide something.
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

// hasArg reports whether an argument was given, and is not null.
func hasArg(args object, name string) bool {
	v, ok := args[name]
	_, null := v.(nothing)
	return ok && !null
}
