package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	dir := t.TempDir()
	if err := draw(dir); err == nil || !strings.Contains(err.Error(), "growth.json is not there") {
		t.Errorf("without figures: %v", err)
	}
	for text, want := range map[string]string{"": "is empty", "{\"requests\":": "growth.json"} {
		write(t, dir, text)
		if err := draw(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %q: %v", text, err)
		}
	}
	write(t, dir, `{"requests":1000,"start_ms":56,"heap_mib":9,"decide_p50":2,"decide_p99":6}
{"requests":10000,"start_ms":60,"heap_mib":10,"decide_p50":2.1,"decide_p99":6}
`)
	if err := draw(dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range charts {
		svg, err := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil || !strings.Contains(string(svg), c.title) {
			t.Errorf("%s: %v, %.100s", c.file, err, svg)
		}
	}
}

func write(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "growth.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
