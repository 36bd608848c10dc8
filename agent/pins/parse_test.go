package pins_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"countersign/agent/pins"
)

// A lock file in another format is refused. The error says what is wrong.
func TestParseRefuses(t *testing.T) {
	good := string(pins.Lock{}.With(pin(t, "a", `{"v":"a"}`)).With(pin(t, "b", `{"v":"b"}`)).Format())
	change := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("there is no %s in it", from)
		}
		return strings.Replace(good, from, to, 1)
	}
	swapped := regexp.MustCompile(`"tool": "(a|b)"`).ReplaceAllStringFunc(good, func(s string) string {
		return map[string]string{`"tool": "a"`: `"tool": "b"`, `"tool": "b"`: `"tool": "a"`}[s]
	})
	for name, c := range map[string]struct{ text, says string }{
		"empty":                  {"", "x.lock:1: the file is cut short; take the file from version control"},
		"cut short":              {good[:len(good)/2], "cut short"},
		"no JSON":                {"tools:\n- a\n", "not valid JSON"},
		"a list":                 {"[]", "the file is not an object"},
		"more after it":          {good + "{}", "there is more after the end"},
		"a merge":                {change(`"tools": [`, "<<<<<<< HEAD\n\"tools\": ["), "both sides of a merge"},
		"a later version":        {change(`"version": 1`, `"version": 2`), "x.lock:3: the version is 2, and this countersign reads version 1; use the countersign that wrote"},
		"a version in words":     {change(`"version": 1`, `"version": "1"`), `the version is "1"`},
		"no version":             {change("  \"version\": 1,\n", ""), `the file has no "version"`},
		"no header":              {strings.Replace(good, "countersign", "lock", 1), `the file has the name "lock", which is not known`},
		"another name":           {change(`"source"`, `"sauce"`), `a tool has the name "sauce"`},
		"a name twice":           {change(`"source": "files",`, `"source": "files", "source": "files",`), `x.lock:7: a tool has "source" twice`},
		"a name missing":         {change("      \"source\": \"files\",\n", ""), `x.lock:5: a tool has no "source"`},
		"no source":              {change(`"source": "files"`, `"source": ""`), "no name or no source"},
		"a source in numbers":    {change(`"source": "files"`, `"source": 5`), `"source" is not text`},
		"a time in words":        {change(`"2026-12-24T18:00:00Z"`, `"yesterday"`), `"first_seen" is "yesterday", which is not a time`},
		"a time in numbers":      {change(`"2026-12-24T18:00:00Z"`, `5`), `"first_seen" is not text`},
		"tools in an object":     {change(`"tools": [`, `"tools": {}, "x": [`), `"tools" is not a list`},
		"a tool in words":        {`{"countersign":"","version":1,"tools":["a"]}`, "x.lock:1: "},
		"a pin by hand":          {change(`"v": "a"`, `"v": "c"`), "x.lock:5: the hash of a does not fit its definition"},
		"another hash":           {change(`sha256:`, `sha256:0`), "the hash of a does not fit"},
		"a tool twice":           {change(`"tool": "b"`, `"tool": "a"`), "a is pinned twice"},
		"not by name":            {swapped, "a comes after b"},
		"a definition of a list": {change("\"definition\": {\n        \"v\": \"a\"\n      }", `"definition": []`), "it is not a JSON object"},
		"broken text":            {change(`"files"`, "\"\xff\""), "not valid JSON"},
		"a broken definition":    {change(`"v": "a"`, `"v": `), "not valid JSON"},
	} {
		_, err := pins.Parse("x.lock", []byte(c.text))
		if !errors.Is(err, pins.ErrLock) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", name, err, c.says)
		}
	}
	if _, err := pins.Parse("x.lock", []byte(good)); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"countersign":"","version":1,"tools":[]}`))
	f.Add(pins.Lock{}.Format())
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := pins.Parse("x", data)
		if err != nil {
			if !errors.Is(err, pins.ErrLock) {
				t.Fatal(err)
			}
			return
		}
		again, err := pins.Parse("x", l.Format())
		if err != nil || string(again.Format()) != string(l.Format()) {
			t.Fatalf("%v: %q", err, data)
		}
	})
}
