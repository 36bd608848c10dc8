package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/agent"
	"countersign/config"
)

// recorded returns a scripted server that records its input, and a function that reads the record.
func recorded(t *testing.T, role string) (config.Server, func() []string) {
	t.Helper()
	s := program(t, "bad", role)
	s.Env[recordKey] = filepath.Join(t.TempDir(), "record")
	return s, func() []string {
		raw, err := os.ReadFile(s.Env[recordKey])
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	}
}

// recordedLine waits for a line that contains the words.
func recordedLine(t *testing.T, read func() []string, words string) string {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		for _, one := range read() {
			if strings.Contains(one, words) {
				return one
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing with %s was sent:\n%s", words, strings.Join(read(), "\n"))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// oddArguments has bytes that a JSON library would change. Examples are an unusual order, spaces, escapes, numbers,
// and characters with a meaning in HTML.
const oddArguments = `{ "z":1.0,  "a":1e2,"big":12345678901234567890, "html":"<script>&\u0026","u":"\u00fc ü \/", "n":null, "z2":-0.0 , "é":[ ] }`

// TestExactArguments checks that the approved arguments are sent byte for byte.
func TestExactArguments(t *testing.T) {
	s, read := recorded(t, "plain")
	_, o := running(t, quick(), s)
	tool := o.tool(t, "bad.act")
	if _, err := call(t, tool, oddArguments); err != nil {
		t.Fatal(err)
	}
	sent := recordedLine(t, read, `"tools/call"`)
	if !strings.Contains(sent, `"arguments":`+oddArguments) {
		t.Errorf("what went out differs:\n%s", sent)
	}
	var m struct {
		Params struct {
			Name string
			Meta map[string]any `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(sent), &m); err != nil {
		t.Fatal(err)
	}
	if m.Params.Name != "act" || m.Params.Meta["countersign/execution"] != "exec-1" {
		t.Errorf("the name or the key is missing: %s", sent)
	}
}

// TestArgumentsOnALine checks the arguments over pipes, where a message is a line. A line break between JSON tokens
// is sent as a space. All other bytes stay unchanged.
func TestArgumentsOnALine(t *testing.T) {
	s, read := recorded(t, "plain")
	_, o := running(t, quick(), s)
	if _, err := call(t, o.tool(t, "bad.act"), "{\r\n\t\"a\": \"x\\ny\",\n\t\"b\": 2\n}"); err != nil {
		t.Fatal(err)
	}
	if sent := recordedLine(t, read, `"tools/call"`); !strings.Contains(sent, "\"arguments\":{  \t\"a\": \"x\\ny\", \t\"b\": 2 }") {
		t.Errorf("%q", sent)
	}
}

// TestNoArguments checks that a call without arguments sends an empty object, because servers refuse null.
func TestNoArguments(t *testing.T) {
	s, read := recorded(t, "plain")
	_, o := running(t, quick(), s)
	if _, err := o.tool(t, "bad.act").Run(t.Context(), agent.Invocation{}); err != nil {
		t.Fatal(err)
	}
	if sent := recordedLine(t, read, `"tools/call"`); !strings.Contains(sent, `"arguments":{}`) {
		t.Errorf("%q", sent)
	}
}

// TestCancelled checks a run that ends before the server answers. The client cancels the call on the server, and the
// outcome is unknown.
func TestCancelled(t *testing.T) {
	s, read := recorded(t, "hangs at a call")
	_, o := running(t, quick(), s)
	tool := o.tool(t, "bad.act")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := tool.Run(ctx, agent.Invocation{Key: "exec-1", Args: []byte(`{}`)})
		ended <- err
	}()
	sent := recordedLine(t, read, `"tools/call"`)
	cancel()
	if err := <-ended; !errors.Is(err, agent.ErrOutcomeUnknown) {
		t.Errorf("%v", err)
	}
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(sent), &m); err != nil {
		t.Fatal(err)
	}
	if note := recordedLine(t, read, "notifications/cancelled"); !strings.Contains(note, `"requestId":`+string(m.ID)) {
		t.Errorf("%s was cancelled by %s", sent, note)
	}
}

// TestNotSent checks a run that ends before its call is sent. The error says that the call was not run.
func TestNotSent(t *testing.T) {
	l := quick()
	l.start = 300 * time.Millisecond
	c, _ := running(t, l, program(t, "bad", "hangs at the handshake"))
	tool, err := c.Tool("bad", []byte(aTool))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("it was withdrawn"))
	_, err = tool.Run(ctx, agent.Invocation{})
	if !errors.Is(err, agent.ErrNotRun) || !strings.HasSuffix(err.Error(), "the call was ended before it was sent: it was withdrawn") {
		t.Errorf("%v", err)
	}
}

// TestDrift checks that a tool with a changed definition is not called, and that the client offers the new list.
func TestDrift(t *testing.T) {
	s, read := recorded(t, "changes its tool")
	_, o := running(t, quick(), s)
	registered := o.tool(t, "bad.act")
	if _, err := call(t, registered, `{"n":1}`); err != nil {
		t.Fatal(err)
	}
	_, err := call(t, registered, `{"n":2}`)
	if err == nil || errors.Is(err, agent.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "differs from the pinned one") {
		t.Errorf("%v", err)
	}
	for _, one := range read() {
		if strings.Contains(one, `{"n":2}`) {
			t.Errorf("it was called all the same: %s", one)
		}
	}
	deadline := time.Now().Add(patience)
	for {
		now := o.tool(t, "bad.act")
		if strings.Contains(string(now.Definition), "sends everything to me") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the new definition was not offered: %s", now.Definition)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestEveryVisibleChange checks that every change on the wire is noticed, because two definitions are equal only if
// their bytes are equal.
func TestEveryVisibleChange(t *testing.T) {
	base := `{"name":"act","title":"Act","description":"Acts.","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}},"annotations":{"readOnlyHint":true}}`
	c := Open(Config{Servers: []config.Server{{Name: "s"}}})
	registered, err := c.Tool("s", []byte(base))
	if err != nil {
		t.Fatal(err)
	}
	for what, changed := range map[string]string{
		"a word":               strings.Replace(base, "Acts.", "Acts!", 1),
		"the title":            strings.Replace(base, `"Act"`, `"act"`, 1),
		"a type":               strings.Replace(base, "string", "number", 1),
		"an annotation":        strings.Replace(base, "true", "false", 1),
		"an unknown member":    strings.Replace(base, `"annotations"`, `"x":1,"annotations"`, 1),
		"one within":           strings.Replace(base, `"type":"string"`, `"type":"string","x":1`, 1),
		"_meta":                strings.Replace(base, `"annotations"`, `"_meta":{"a":1},"annotations"`, 1),
		"icons":                strings.Replace(base, `"annotations"`, `"icons":[],"annotations"`, 1),
		"the output's schema":  strings.Replace(base, `"annotations"`, `"outputSchema":{"type":"object"},"annotations"`, 1),
		"the order":            strings.Replace(base, `"title":"Act","description":"Acts."`, `"description":"Acts.","title":"Act"`, 1),
		"a space":              strings.Replace(base, ":", ": ", 1),
		"an escape":            strings.Replace(base, "Acts.", `Act\u0073.`, 1),
		"a character not seen": strings.Replace(base, "Acts.", "Acts.\u200b", 1),
	} {
		other, err := c.Tool("s", []byte(changed))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if string(other.Definition) != changed || string(other.Definition) == string(registered.Definition) {
			t.Errorf("%s is not seen", what)
		}
	}
}
