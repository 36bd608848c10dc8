package workspace

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// A fieldType is a JSON type as testdata/fields.txt writes it.
type fieldType struct {
	name   string               // string, number, bool, any, a shape's name after @; empty for a list or an object
	list   *fieldType           // what the list holds
	fields map[string]fieldRule // of an object
}

type fieldRule struct {
	fieldType
	must, null bool
}

// slackFields is testdata/fields.txt, by heading ("shape user", "api users.info", "event message").
type slackFields map[string]map[string]fieldRule

func readSlackFields(t *testing.T) slackFields {
	t.Helper()
	raw, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	out, heading, body := slackFields{}, "", ""
	end := func() {
		if heading != "" {
			p := fieldParser{rest: body}
			out[heading] = p.fields()
			if p.rest != "" {
				t.Fatalf("testdata/fields.txt, %s: cannot read %.40q", heading, p.rest)
			}
		}
	}
	for line := range strings.Lines(string(raw)) {
		switch {
		case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, " "):
			body += " " + strings.TrimSpace(line)
		default:
			end()
			heading, body = strings.TrimSpace(line), ""
		}
	}
	end()
	return out
}

type fieldParser struct{ rest string }

func (p *fieldParser) fields() map[string]fieldRule {
	out := map[string]fieldRule{}
	for {
		p.rest = strings.TrimLeft(p.rest, " ")
		name, rest, found := strings.Cut(p.rest, ":")
		if !found || strings.HasPrefix(p.rest, "}") {
			return out
		}
		p.rest = rest
		rule := fieldRule{fieldType: p.readType(), must: strings.Contains(name, "!"), null: strings.Contains(name, "?")}
		out[strings.TrimRight(name, "!?")] = rule
	}
}

func (p *fieldParser) readType() fieldType {
	switch {
	case strings.HasPrefix(p.rest, "["):
		p.rest = p.rest[1:]
		item := p.readType()
		p.rest = strings.TrimPrefix(p.rest, "]")
		return fieldType{list: &item}
	case strings.HasPrefix(p.rest, "{"):
		p.rest = p.rest[1:]
		fields := p.fields()
		p.rest = strings.TrimPrefix(strings.TrimLeft(p.rest, " "), "}")
		return fieldType{fields: fields}
	}
	end := strings.IndexAny(p.rest, " ]}")
	if end < 0 {
		end = len(p.rest)
	}
	name := p.rest[:end]
	p.rest = p.rest[end:]
	return fieldType{name: name}
}

// fieldReport collects where ours and Slack's differ: a place and what is wrong there.
type fieldReport map[string]string

// object compares an object of ours with the fields that Slack's has.
func (l slackFields) object(report fieldReport, at string, v map[string]any, rules map[string]fieldRule) {
	for name, value := range v {
		rule, known := rules[name]
		if !known {
			rule, known = rules["*"]
		}
		if !known {
			report[at+"."+name] = "Slack has no such field"
			continue
		}
		l.value(report, at+"."+name, value, rule.fieldType, rule.null)
	}
	for name, rule := range rules {
		if _, there := v[name]; rule.must && !there {
			report[at+"."+name] = "missing"
		}
	}
}

func (l slackFields) value(report fieldReport, at string, v any, want fieldType, null bool) {
	got := jsonType(v)
	shape, isShape := l["shape "+strings.TrimPrefix(want.name, "@")], strings.HasPrefix(want.name, "@")
	switch {
	case want.name == "any", got == "null" && null:
	case isShape && got == "object":
		l.object(report, want.name, v.(map[string]any), shape) // reported once for all the places that it is in
	case want.list != nil && got == "list":
		for _, item := range v.([]any) {
			l.value(report, at+"[]", item, *want.list, false)
		}
	case want.fields != nil && got == "object":
		l.object(report, at, v.(map[string]any), want.fields)
	case got != want.name:
		report[at] = fmt.Sprintf("is %s, in Slack %s", got, want)
	}
}

func (f fieldType) String() string {
	switch {
	case f.list != nil:
		return "a list"
	case f.fields != nil:
		return "an object"
	}
	return f.name
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case string:
		return "string"
	case float64, json.Number:
		return "number"
	case []any:
		return "list"
	}
	return "object"
}

// excepting fails for each difference that has no reason, and for each reason that is no more needed.
func (r fieldReport) excepting(t *testing.T, reasons map[string]string) {
	t.Helper()
	var lines []string
	for at, what := range r {
		if reasons[at] == "" {
			lines = append(lines, at+": "+what)
		}
	}
	for at := range reasons {
		if _, differs := r[at]; !differs {
			lines = append(lines, at+" is as in Slack now: take it off the list of differences, here and in docs/workspace.md")
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		t.Error(line)
	}
}
