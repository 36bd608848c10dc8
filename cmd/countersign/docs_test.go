package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"countersign/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the outputs in docs/explain.md, or the picture docs/card.png")

var (
	codeBlock = regexp.MustCompile("(?s)```(yaml|text|console)\n(.*?)```\n")
	blockFile = regexp.MustCompile(`^# ([\w-]+\.(?:yaml|txt))\n`)
	exits1    = regexp.MustCompile(` # exits (\d)$`)
	clockTime = regexp.MustCompile(`\d\d:\d\d:\d\d`)
)

// page is the documentation page about trying policies. The tests use the page's files and run the page's commands.
const page = "../../docs/explain.md"

// pageFiles writes the files that the page shows into a new directory.
func pageFiles(t *testing.T) (dir string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, m := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "console" {
			continue
		}
		name := blockFile.FindStringSubmatch(m[2])
		if name == nil {
			t.Fatalf("this has no name:\n%s", m[0])
		}
		if err := os.WriteFile(filepath.Join(dir, name[1]), []byte(m[2]), 0o600); err != nil {
			t.Fatal(err)
		}
		pinShop(t, filepath.Join(dir, name[1]))
	}
	return dir
}

// docShell runs the commands of a page in its directory.
type docShell struct {
	*testing.T
	dir string
	env []string
}

// run runs one command line as a reader would, and returns its output.
func (s *docShell) run(line string) string {
	s.Helper()
	if set, ok := strings.CutPrefix(line, "export "); ok {
		s.env = append(s.env, set)
		return ""
	}
	want := "0"
	if m := exits1.FindStringSubmatch(line); m != nil {
		want = m[1]
	}
	cmd := exec.CommandContext(s.Context(), "sh", "-c", line+"\necho \"exit $?\"")
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%s: %v", line, err)
	}
	text, ended := bytes.CutSuffix(out, []byte("exit "+want+"\n"))
	if !ended {
		s.Errorf("%s\nprinted\n%s\nand has to exit with %s", line, out, want)
	}
	return string(text)
}

// Every command in docs/explain.md prints the documented output, with the files that the page shows.
func TestDocumentedCommands(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	program := programPath(t)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	s := &docShell{T: t, dir: pageFiles(t)}
	s.env = append(plainEnv(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "COUNTERSIGN_POLICY=countersign.yaml")
	commands := 0
	written := codeBlock.ReplaceAllStringFunc(string(text), func(b string) string {
		m := codeBlock.FindStringSubmatch(b)
		if m[1] != "console" {
			return b
		}
		var shown strings.Builder
		for _, line := range strings.Split(m[2], "\n") {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				commands++
				shown.WriteString(line + "\n" + s.run(command))
			}
		}
		return "```console\n" + shown.String() + "```\n"
	})
	if commands < 10 {
		t.Errorf("only %d commands were found", commands)
	}
	if *update {
		// Times differ in each run. Therefore the page always shows the time at which the scenarios begin.
		written = clockTime.ReplaceAllString(written, "09:00:00")
		if err := os.WriteFile(page, []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, want := timeless(written), timeless(string(text)); got != want {
		t.Errorf("the page differs from the commands' output (go test -run DocumentedCommands -update rewrites it):\n%s", firstDifference(got, want))
	}
}

// The function "timeless" returns a text without its times of day. The times differ slightly from run to run, because
// playing a scenario takes time.
func timeless(text string) string { return clockTime.ReplaceAllString(text, "") }

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "it prints  " + a[i] + "\nthe page has  " + b[i]
		}
	}
	return "one of them is longer"
}

// The last row of the table in docs/upgrade.md has the versions of the formats that this program writes.
func TestDocumentedFormats(t *testing.T) {
	text, err := os.ReadFile("../../docs/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (?:\d+\.\d+\.\d+|not released yet) \| (\d+)\..*? \| (\d+)\..*? \| (\d+) \| (\d+) \|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) == 0 {
		t.Fatal("docs/upgrade.md has no table of versions")
	}
	var out bytes.Buffer
	cmd := versionCommand()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--json"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	var v struct{ Formats map[string]int }
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	last := rows[len(rows)-1]
	for i, format := range []string{"bolt", "postgres", "policy", "lock"} {
		if v.Formats[format] == 0 || last[i+1] != strconv.Itoa(v.Formats[format]) {
			t.Errorf("docs/upgrade.md says version %s of %s, and countersign version --json says %v", last[i+1], format, v.Formats)
		}
	}
}

var (
	// pageCode matches the code of a page: a block in a language, or code in a sentence.
	pageCode = regexp.MustCompile("(?s)```(\\w*)\n(.*?)```|`([^`]+)`")
	// pageCommand matches a command of the program, up to the end of its arguments. Before it, there may be another
	// command, a variable, or a program that runs it in a container.
	pageCommand = regexp.MustCompile(`(?m)(?:^|[|;&($] ?|[A-Z_]=\S* |-- |exec \S+ )countersign ([a-z][^|;&<>#)\n…]*)`)
	quotedText  = regexp.MustCompile(`"[^"]*"|'[^']*'`)
)

// commandsIn returns the arguments of the program's commands in the code of a text.
func commandsIn(text string) (all [][]string) {
	text = strings.ReplaceAll(text, "\\\n", "") // a command of several lines
	for _, code := range pageCode.FindAllStringSubmatch(text, -1) {
		lines := strings.ReplaceAll(code[3], "\n", " ") // code in a sentence may be broken anywhere
		if code[1] == "sh" || code[1] == "console" {
			lines = code[2]
		}
		for _, m := range pageCommand.FindAllStringSubmatch(quotedText.ReplaceAllString(lines, "TEXT"), -1) {
			all = append(all, strings.Fields(m[1]))
		}
	}
	return all
}

// unknownIn returns an error if a command or one of its flags does not exist. If complete is true, the command must also
// have the arguments and the values that it needs.
func unknownIn(words []string, complete bool) error {
	cmd, rest, err := root().Find(words)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if noValue := new(pflag.ValueRequiredError); !complete && errors.As(err, &noValue) {
		return nil
	}
	placeholder := func(arg string) bool { return arg == strings.ToUpper(arg) }
	if err == nil && (complete || cmd.HasSubCommands() && !slices.ContainsFunc(cmd.Flags().Args(), placeholder)) {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	return err
}

// Each command that a page names exists, with its flags.
func TestNamedCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../../README.md", "../../SECURITY.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range commandsIn(string(text)) {
			found++
			if err := unknownIn(words, false); err != nil {
				t.Errorf("%s: countersign %s: %v", filepath.Base(page), strings.Join(words, " "), err)
			}
		}
	}
	if found < 250 {
		t.Errorf("only %d commands were found", found)
	}
}

// Each command in the guide for security incidents exists, and has its arguments.
func TestIncidentCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, guide, _ := strings.Cut(string(text), "\n## Security incidents\n")
	guide, _, _ = strings.Cut(guide, "\n## ")
	commands := commandsIn(guide)
	if len(commands) < 15 {
		t.Fatalf("only %d commands were found", len(commands))
	}
	for _, words := range commands {
		if err := unknownIn(words, true); err != nil {
			t.Errorf("countersign %s: %v", strings.Join(words, " "), err)
		}
	}
}
