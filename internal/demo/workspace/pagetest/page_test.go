// Package pagetest checks the page of the local workspace without a browser: what it
// parses and computes runs in Node.js, and its sources keep the rules that make it safe.
package pagetest

import (
	"context"
	"os"
	"os/exec"
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
		// Tells go test that its cached result depends on the file.
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

// sources reads the page's files.
func sources(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(page, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no page found: %v", err)
	}
	out := map[string]string{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(path)] = string(raw)
	}
	return out
}

// What people, models and apps wrote must never be parsed as HTML or code.
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

// The page works on a machine without a network: every file that it names is its own.
func TestNothingIsFetchedFromElsewhere(t *testing.T) {
	files := sources(t)
	imported := regexp.MustCompile(`(?m)^(?:import|export) .*from '(?:\./)?([^']+)';|(?:href|src)="([^"]+)"|url\(([^)]*)\)|@import ([^;]+);`)
	for name, text := range files {
		for _, match := range imported.FindAllStringSubmatch(text, -1) {
			target := strings.Join(match[1:], "")
			if _, ok := files[target]; !ok {
				t.Errorf("%s names %q, which is not a file of the page", name, target)
			}
		}
	}
}

// Every module is reached from index.html, so that none is left behind.
func TestNoFileIsLeftOver(t *testing.T) {
	files := sources(t)
	for name := range files {
		if name == "index.html" {
			continue
		}
		used := false
		for other, text := range files {
			if other != name && (strings.Contains(text, "'./"+name+"'") || strings.Contains(text, `"`+name+`"`)) {
				used = true
			}
		}
		if !used {
			t.Errorf("%s is used by nothing", name)
		}
	}
}
