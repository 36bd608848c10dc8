package pins_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"countersign/agent/pins"
)

var at = time.Date(2026, 12, 24, 18, 0, 0, 999, time.UTC)

func pin(t *testing.T, tool, definition string) pins.Pin {
	t.Helper()
	p, err := pins.Make(tool, "files", json.RawMessage(definition), "anna", at)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const readFile = `{"name":"read_file","description":"Reads <a> file & its name","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}},"n":[1,1.0,1e0],"n":"\u00e9é","e":{},"l":[]}`

func TestRoundTrip(t *testing.T) {
	l := pins.Lock{}.With(pin(t, "files.write", `{ "name": "write" }`)).With(pin(t, "files.read", readFile))
	path := filepath.Join(t.TempDir(), pins.FileName)
	if err := l.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := pins.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(l, got); d != "" {
		t.Error(d)
	}
	if p, ok := got.Tool("files.read"); !ok || string(p.Definition) != readFile {
		t.Errorf("the definition came back as %s", p.Definition)
	}
	data, _ := os.ReadFile(path)
	const want = `{
  "countersign": "pinned tool definitions, written by \"countersign tools pin\"; keep this file in version control, beside the policy",
  "version": 1,
  "tools": [
    {
      "tool": "files.read",
      "source": "files",
      "hash": "sha256:`
	if !strings.HasPrefix(string(data), want) {
		t.Errorf("the file does not begin as wanted:\n%s", data)
	}
	if !strings.Contains(string(data), "\n        \"n\": [\n          1,\n          1.0,\n          1e0\n        ],\n        \"n\": \"\\u00e9é\",\n        \"e\": {},") {
		t.Errorf("the definition is not laid out as wanted:\n%s", data)
	}
}

func TestWithKeepsWhenItWasSeenFirst(t *testing.T) {
	l := pins.Lock{}.With(pin(t, "a", `{"v":1}`)).With(pin(t, "b", `{}`))
	later, _ := pins.Make("a", "files", json.RawMessage(`{"v":2}`), "ben", at.Add(time.Hour))
	got, _ := l.With(later).Tool("a")
	if !got.FirstSeen.Equal(at.Truncate(time.Second)) || !got.PinnedAt.Equal(later.PinnedAt) || got.By != "ben" || string(got.Definition) != `{"v":2}` {
		t.Errorf("%+v", got)
	}
	if was, _ := l.Tool("a"); was.By != "anna" {
		t.Error("the lock that it was made from changed too")
	}
	if l := l.Without("a").Without("none"); len(l.Pins) != 1 || l.Pins[0].Tool != "b" {
		t.Errorf("%+v", l)
	}
	if of := l.Of("files"); len(of) != 2 || len(l.Of("others")) != 0 {
		t.Errorf("%+v", of)
	}
}

// For any definition, a lock file that is written and read has the same definition, byte for byte. If the lock is
// written a second time, the file is the same.
func TestAnyDefinition(t *testing.T) {
	value := func(t *rapid.T) string { return jsonValue(t, 0) }
	rapid.Check(t, func(t *rapid.T) {
		var l pins.Lock
		for _, tool := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}`), 0, 4, rapid.ID).Draw(t, "tools") {
			p, err := pins.Make(tool, "s", json.RawMessage(`{"a": `+value(t)+`}`), rapid.String().Draw(t, "by"), at)
			if err != nil {
				t.Fatal(err)
			}
			l = l.With(p)
		}
		text := l.Format()
		got, err := pins.Parse("x", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if d := cmp.Diff(l.Pins, got.Pins); d != "" || string(got.Format()) != string(text) {
			t.Fatalf("%s\n%s\n%s", d, text, got.Format())
		}
	})
}

// jsonValue draws JSON as another program might write it.
func jsonValue(t *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth > 3 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"1", "-0.0", "1e3", "1E+3", "123456789012345678901234567890", "true", "null"}).Draw(t, "token")
	case 1:
		return rapid.SampledFrom([]string{`"\u003c"`, `"<"`, `"\/"`, `"/"`, `"é"`, `"\u00e9"`, `"\ud83d\ude00"`, `""`, `"\n"`}).Draw(t, "text")
	case 2, 3:
		b, _ := json.Marshal(rapid.String().Draw(t, "string"))
		return string(b)
	case 4, 5:
		var parts []string
		for range rapid.IntRange(0, 3).Draw(t, "members") { // an object may have duplicate names
			parts = append(parts, rapid.SampledFrom([]string{`"a"`, `"b"`, `"\u0061"`}).Draw(t, "name")+space+":"+jsonValue(t, depth+1))
		}
		return "{" + space + strings.Join(parts, ","+space) + "}"
	}
	var parts []string
	for range rapid.IntRange(0, 3).Draw(t, "elements") {
		parts = append(parts, jsonValue(t, depth+1))
	}
	return "[" + strings.Join(parts, space+",") + "]"
}

func TestHashIsOverEverythingButSpaces(t *testing.T) {
	hash := func(s string) string {
		h, err := pins.Hash(json.RawMessage(s))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	base := hash(`{"a":1,"b":"é"}`)
	if hash("{ \"a\" : 1,\n\"b\":\t\"é\" }") != base {
		t.Error("spaces between tokens change the hash")
	}
	for _, other := range []string{`{"b":"é","a":1}`, `{"a":1.0,"b":"é"}`, `{"a":1,"b":"\u00e9"}`, `{"a":1,"b":"é "}`, `{"a":1,"b":"é","a":1}`, `{"a":1,"b":"e\u0301"}`} {
		if hash(other) == base {
			t.Errorf("%s has the same hash", other)
		}
	}
	if s := pins.Short(base); len(s) != 12 || !strings.HasPrefix(base, "sha256:"+s) || pins.Short("sha256:ab") != "ab" {
		t.Errorf("%s is short for %s", s, base)
	}
}

func TestWhatCanNotBePinned(t *testing.T) {
	for _, s := range []string{``, `{`, `[]`, `"x"`, `{} {}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{"a":01}`} {
		if _, err := pins.Make("files.read", "files", json.RawMessage(s), "anna", at); !errors.Is(err, pins.ErrDefinition) || !strings.Contains(err.Error(), "files.read") {
			t.Errorf("%q: %v", s, err)
		}
		if _, err := pins.Hash(json.RawMessage(s)); !errors.Is(err, pins.ErrDefinition) {
			t.Errorf("%q has a hash: %v", s, err)
		}
	}
}

func TestNoLockIsNoPins(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "countersign.yaml")
	l, err := pins.Read(pins.Beside(policy))
	if err != nil || len(l.Pins) != 0 {
		t.Errorf("%v, %v", l, err)
	}
	if got := filepath.Base(pins.Beside("countersign.yaml")); got != "countersign.lock" {
		t.Error(got)
	}
}

func TestWriteKeepsModeAndLink(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "real.lock"), filepath.Join(dir, "countersign.lock")
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := (pins.Lock{}).With(pin(t, "a", `{}`)).Write(link); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info.Mode(), err)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 2 {
		t.Errorf("%v lies around", left)
	}
	if l, err := pins.Read(link); err != nil || len(l.Pins) != 1 {
		t.Errorf("%v, %v", l, err)
	}
	fresh := filepath.Join(dir, "new.lock")
	if err := (pins.Lock{}).Write(fresh); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(fresh); info.Mode().Perm() != 0o644 {
		t.Errorf("a new file has the mode %v", info.Mode())
	}
}

func TestWriteThatFails(t *testing.T) {
	dir := t.TempDir()
	if err := (pins.Lock{}).Write(filepath.Join(dir, "none", "x.lock")); err == nil {
		t.Error("it was written into a directory that is not there")
	}
	at := filepath.Join(dir, "countersign.lock")
	// A file can't be renamed over a directory that is not empty.
	if err := os.MkdirAll(filepath.Join(at, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := (pins.Lock{}).Write(at)
	if err == nil || !strings.Contains(err.Error(), "is unchanged") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%v lies around", left)
	}
	if _, err := pins.Read(at); !errors.Is(err, pins.ErrLock) {
		t.Errorf("a directory was read: %v", err)
	}
}

// A dangling link is an error, and the program never writes to the target of the link. A path that is not a regular
// file is not opened.
func TestOnlyAFileIsALock(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, pins.FileName)
	if err := os.Symlink("gone", link); err != nil {
		t.Fatal(err)
	}
	if _, err := pins.Read(link); !errors.Is(err, pins.ErrLock) || !strings.Contains(err.Error(), "is a link to gone, which is not there") {
		t.Errorf("read: %v", err)
	}
	if err := (pins.Lock{}).Write(link); !errors.Is(err, pins.ErrLock) {
		t.Errorf("written: %v", err)
	}
	if to, err := os.Readlink(link); to != "gone" {
		t.Errorf("the link is %q, %v", to, err)
	}
	if _, err := pins.Read(dir); !errors.Is(err, pins.ErrLock) || !strings.Contains(err.Error(), "is not a regular file; move it away") {
		t.Errorf("a directory: %v", err)
	}
	if data, err := pins.Bytes(filepath.Join(dir, "none")); data != nil || err != nil {
		t.Errorf("nothing: %q, %v", data, err)
	}
}

func TestReadBoundsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(65 << 20); err != nil { // a sparse file, which uses no disk space
		t.Fatal(err)
	}
	if _, err := pins.Read(path); !errors.Is(err, pins.ErrLock) || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
}
