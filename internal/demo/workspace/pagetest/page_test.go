// Package pagetest checks the page of the local workspace. One test runs the pure modules in Node.js. Other tests check
// the sources for the rules that make the page safe. The remaining tests run the whole page in headless Chromium.
package pagetest

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/internal/testkit"
)

const page = "../page"

func TestNode(t *testing.T) {
	node := testkit.RequireProgram(t, "node", "the page's scripts", testkit.InstallNode)
	files, err := filepath.Glob("*.test.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("no *.test.js found: %v", err)
	}
	for _, file := range files {
		// Because of this call, go test does not use a cached result after a change of the file.
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, node, append([]string{"--test"}, files...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("node --test: %v\n%s", err, out)
	}
}

// The function "sources" reads the page's files, by path.
func sources(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(page), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, ".go") {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(page, name))
		out[name] = string(raw)
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("the page's files: %v", err)
	}
	return out
}

// Text from people, models and apps must never be parsed as HTML or code.
func TestNothingIsParsedAsHTML(t *testing.T) {
	dangerous := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|setHTMLUnsafe|srcdoc|\beval\(|new Function|setAttribute\('on|javascript:(?:[^a-z]|$)`)
	for name, text := range sources(t) {
		for i, line := range strings.Split(text, "\n") {
			if strings.HasSuffix(name, ".js") && !strings.HasPrefix(strings.TrimSpace(line), "//") && dangerous.MatchString(line) {
				t.Errorf("%s:%d: %s", name, i+1, strings.TrimSpace(line))
			}
		}
	}
}

// named matches a reference to another file.
var named = regexp.MustCompile(`(?m)^(?:import|export) .*from '([^']+)';|(?:href|src)="([^"]+)"|url\(([^)]*)\)|@import ([^;]+);`)

// The page works on a machine without a network, because the page refers only to its own files. Every file is reachable
// from index.html, so there are no unused files.
func TestThePageIsComplete(t *testing.T) {
	files, reached := sources(t), map[string]bool{"index.html": true}
	for next := []string{"index.html"}; len(next) > 0; next = next[1:] {
		for _, match := range named.FindAllStringSubmatch(files[next[0]], -1) {
			target := path.Join(path.Dir(next[0]), strings.Join(match[1:], ""))
			if _, ok := files[target]; !ok {
				t.Errorf("%s names %q, which is not a file of the page", next[0], target)
			}
			if !reached[target] {
				reached[target] = true
				next = append(next, target)
			}
		}
	}
	for name := range files {
		if !reached[name] {
			t.Errorf("%s is used by nothing", name)
		}
	}
}
