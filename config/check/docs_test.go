package check_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var (
	yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	codeSpan  = regexp.MustCompile("`([^`]+)`")
)

// TestExamples checks that no policy in three pages of the documentation has an error. TestExamples checks each policy
// with the sample shop's tools, and with unknown tools.
func TestExamples(t *testing.T) {
	for _, path := range []string{"../../docs/policy.md", "../../docs/http.md", "../../README.md"} {
		blocks := yamlBlock.FindAllStringSubmatch(read(t, path), -1)
		if len(blocks) == 0 {
			t.Fatalf("%s has no example", path)
		}
		for i, block := range blocks {
			f, err := config.ParsePolicy(path, []byte(block[1]))
			if err != nil {
				t.Errorf("example %d:\n%v", i+1, err)
				continue
			}
			for _, tools := range [][]check.Tool{nil, shopToolsNamed()} {
				if errs := check.Run(f, tools).Errors(); len(errs) > 0 {
					t.Errorf("%s, example %d:\n%s", path, i+1, errs.Excerpts())
				}
			}
		}
	}
}

// TestTheExample checks that the first example has no findings, and compares the report about it with a golden file.
func TestTheExample(t *testing.T) {
	f := parse(t, yamlBlock.FindStringSubmatch(read(t, "../../docs/policy.md"))[1])
	if found := check.Run(f, shopTools); len(found) > 0 {
		t.Errorf("findings:\n%s", found.Excerpts())
	}
	golden(t, "testdata/example.yaml", reported(check.NewReport(f, shopTools)))
}

// TestTheLargeExample checks that the large example has no findings, and compares the report about it with a golden
// file.
func TestTheLargeExample(t *testing.T) {
	_, section, ok := strings.Cut(read(t, "../../docs/policy.md"), "## A large example")
	if !ok {
		t.Fatal("there is no large example")
	}
	f := parse(t, yamlBlock.FindStringSubmatch(section)[1])
	if found := check.Run(f, nil); len(found) > 0 {
		t.Errorf("findings:\n%s", found.Excerpts())
	}
	golden(t, "testdata/large_example.yaml", reported(check.NewReport(f, nil)))
}

// TestDocumentedMessages checks that countersign check prints every message in docs/check.md.
func TestDocumentedMessages(t *testing.T) {
	var said strings.Builder
	for _, path := range append(files(t, "../testdata/bad/*.golden"), files(t, "testdata/findings/*.golden")...) {
		said.WriteString(read(t, path))
	}
	_, err := config.ReadPolicy("testdata/none.yaml")
	said.WriteString(err.Error())
	_, err = config.ReadPolicy("testdata")
	said.WriteString(err.Error())
	_, err = config.ParsePolicy("large", make([]byte, yamldoc.MaxFile+1))
	said.WriteString(err.Error())

	for _, f := range previewFindings {
		said.WriteString(f.says + "\n")
	}

	checked := 0
	for _, line := range strings.Split(read(t, "../../docs/check.md"), "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) < 2 {
			continue
		}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[0], -1) {
			checked++
			if !strings.Contains(said.String(), span[1]) && span[1] != "stages" {
				t.Errorf("nothing in testdata says %q", span[1])
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d messages were found in the documentation", checked)
	}
}

// TestDocumentedFunctions checks that the examples of the preview functions give the documented results.
func TestDocumentedFunctions(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "../../docs/policy.md"), "| function | example | with | gives |\n")
	table, _, _ := strings.Cut(section, "\n\n")
	shown := map[string]bool{}
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if strings.HasPrefix(line, "| | ") {
			cells = append([]string{""}, cells...)
		}
		if len(cells) != 4 {
			t.Fatalf("%d cells: %s", len(cells), line)
		}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[0], -1) {
			name, _, _ := strings.Cut(span[1], " ")
			shown[name] = strings.Contains(table, "{{"+name) || strings.Contains(table, "{{if "+name)
		}
		args, err := approvers.StrictArgs([]byte(strings.Trim(cells[2], "`")), true)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got, err := parse(t, "version: 1\ntools: {x: {risk: low, preview: "+strconv.Quote(strings.Trim(cells[1], "`"))+"}}\n").Policy.Tools[0].Preview.Render(args)
		if want := codeSpan.FindStringSubmatch(cells[3])[1]; err != nil || got != want {
			t.Errorf("%s:\n got %q, %v\nwant %q", cells[1], got, err, want)
		}
	}
	if len(shown) < 16 {
		t.Errorf("only %d functions were found", len(shown))
	}
	for name, example := range shown {
		if !example && name != "lower" {
			t.Errorf("%s has no example", name)
		}
	}
}

// TestDocumentedKeys checks that every key of the file, every function of previews and every variable is documented.
func TestDocumentedKeys(t *testing.T) {
	doc := read(t, "../../docs/policy.md")
	_, err := config.ParsePolicy("x", []byte("version: 1\nnone: 1\ndefaults: {none: 1, unknown_tool: {none: 1}}\ncaps: {none: 1}\nbudgets: {none: 1}\nretention: {none: 1}\naudit: {none: 1}\nreport: {none: 1}\noperators: {none: 1}\nservers: {x: {none: 1, oauth: {none: 1}}}\nhttp: {x: {none: 1, result: {none: 1}}}\nopenapi: {x: {none: 1}}\ntools: {x: {none: 1, preview: {none: 1}, grants: {none: 1}, trust: {none: 1}, stages: [{none: 1}], rules: [{none: 1}]}}\napprovers: {x: {none: 1, hours: {none: 1}}}\nagents: {x: {none: 1, prompts: [{none: 1}], overrides: {x: {none: 1}}}}\nclients: {x: {none: 1, caps: {none: 1}, webhook: {none: 1}, oauth: {none: 1}}}\n"))
	if err == nil {
		t.Fatal("unknown keys were taken")
	}
	var keys []string
	for _, line := range strings.Split(err.Error(), "\n") {
		if _, list, ok := strings.Cut(line, "the keys here are "); ok {
			keys = append(keys, strings.Split(list, ", ")...)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) < 30 {
		t.Fatalf("only %d keys: %v", len(keys), keys)
	}
	for _, key := range keys {
		if !strings.Contains(doc, "`"+key) && !strings.Contains(doc, key+":") {
			t.Errorf("%s is not documented", key)
		}
	}
	_, err = config.ParsePolicy("x", []byte("version: 1\ntools: {x: {risk: low, preview: '{{nofunctionlikethis}}'}}\n"))
	_, list, _ := strings.Cut(err.Error(), "the functions are ")
	for _, name := range strings.Split(list, ", ") {
		if !strings.Contains(doc, "`"+name+" ") {
			t.Errorf("the function %s is not documented", name)
		}
	}
	environment := read(t, "../../docs/environment.md")
	for _, line := range strings.Split(strings.TrimSpace(config.Env{}.String()), "\n") {
		name, _, _ := strings.Cut(line, "=")
		if !strings.Contains(environment, "| `"+name+"` |") {
			t.Errorf("the variable %s is not documented", name)
		}
		environment = strings.Replace(environment, "\n| `"+name+"` |", "\n| read", 1)
	}
	if rest := regexp.MustCompile("\n\\| `([A-Z_]+)` \\|").FindStringSubmatch(strings.Split(environment, "\n## ")[0]); rest != nil {
		t.Errorf("no command reads the variable %s", rest[1])
	}
}
