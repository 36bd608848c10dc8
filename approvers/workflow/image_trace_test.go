//go:build linux

package workflow_test

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"countersign/internal/testkit"
)

// traced is one file operation of the recorded process. The operations are in the kernel's order.
type traced struct {
	kind tracedKind
	off  int64  // where a write begins, or the length after a truncation
	data []byte // what was written
	said string // the line that the process printed
}

type tracedKind int

const (
	wrote tracedKind = iota
	truncated
	synced
	said
)

// record runs TestLoad under strace. record returns the file operations of TestLoad on the store, and the lines that
// TestLoad printed.
func record(t *testing.T, dir string, decisions int) []traced {
	t.Helper()
	strace := testkit.RequireProgram(t, "strace", "crash images", testkit.InstallStrace)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	db, lines := filepath.Join(dir, "store.db"), filepath.Join(dir, "said")
	cmd := exec.CommandContext(t.Context(), strace, "-f", "-qq", "-y", "-xx", "-s", strconv.Itoa(1<<24), "-e", "signal=none", "--seccomp-bpf",
		"-P", db, "-P", lines, "-e", "trace=pwrite64,write,writev,ftruncate,fallocate,fsync,fdatasync", "-o", "/dev/fd/3",
		os.Args[0], "-test.run=^TestLoad$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", loadEnv, decisions, dir))
	cmd.ExtraFiles = []*os.File{w}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	events, readErr := readTrace(r, db, lines)
	if err := errors.Join(cmd.Wait(), readErr); err != nil {
		t.Fatalf("the process could not be recorded (may this user trace processes here?): %v\n%s", err, out.String())
	}
	return events
}

// If a thread makes a system call while the call of another thread is still running, strace writes the running call in
// two parts, with these marks.
const (
	traceUnfinished = " <unfinished ...>"
	traceResumed    = " resumed>"
)

// readTrace parses the output of strace about calls on two files.
func readTrace(r io.Reader, db, lines string) ([]traced, error) {
	var events []traced
	begun := map[string]string{} // by thread: a call that has not ended yet
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		text, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		thread, call, ok := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
		call = strings.TrimLeft(call, " ")
		if first, ok := strings.CutSuffix(call, traceUnfinished); ok {
			begun[thread] = first
			continue
		}
		if _, rest, resumed := strings.Cut(call, traceResumed); resumed && strings.HasPrefix(call, "<... ") {
			call = begun[thread] + rest
			delete(begun, thread)
		}
		if !ok {
			return nil, fmt.Errorf("this line of strace can't be parsed: %.200q", text)
		}
		e, err := readCall(call, db, lines)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
}

// readCall parses one finished call.
func readCall(call, db, lines string) (e traced, err error) {
	name, rest, ok1 := strings.Cut(call, "(")
	_, rest, ok2 := strings.Cut(rest, "<")
	file, rest, ok3 := strings.Cut(rest, ">")
	end := strings.LastIndex(rest, ") ")
	if !ok1 || !ok2 || !ok3 || end < 0 {
		return e, fmt.Errorf("this line of strace can't be parsed: %.200q", call)
	}
	args := strings.Split(strings.TrimPrefix(rest[:end], ", "), ", ")
	result := strings.TrimLeft(rest[end+1:], " =")
	path, err := unhex(file)
	if err != nil {
		return e, err
	}
	switch {
	case string(path) == lines && name == "write":
		data, err := unhex(strings.Trim(args[0], `"`))
		return traced{kind: said, said: strings.TrimSpace(string(data))}, err
	case string(path) != db:
		return e, fmt.Errorf("unexpected operation of the process: %.200q", call)
	case (name == "fsync" || name == "fdatasync") && result == "0":
		return traced{kind: synced}, nil
	case name == "ftruncate" && result == "0":
		e.kind = truncated
		e.off, err = strconv.ParseInt(args[0], 10, 64)
		return e, err
	case name == "pwrite64" && len(args) == 3 && result == args[1]:
		e.kind = wrote
		if e.data, err = unhex(strings.Trim(args[0], `"`)); err != nil {
			return e, err
		}
		e.off, err = strconv.ParseInt(args[2], 10, 64)
		return e, err
	}
	return e, fmt.Errorf("the store called %.200q, which the images can't contain", call)
}

// unhex decodes bytes in strace's notation, such as \x68\x69.
func unhex(text string) ([]byte, error) {
	return hex.DecodeString(strings.ReplaceAll(text, `\x`, ""))
}
