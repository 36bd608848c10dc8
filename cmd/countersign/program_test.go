package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"countersign/internal/testkit"
)

// programPath returns the path of the program. Normally, the program is this test binary under the program's name (see
// TestMain). This saves a build. With the race detector, the test binary would be slow. In this case, programPath builds
// the program once for all tests, and skips the test if the flag -short is set: the race detector sees nothing of the
// program's processes.
func programPath(t testing.TB) string {
	t.Helper()
	if testkit.RaceEnabled {
		testkit.SkipIfShort(t)
	}
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "countersign")
	if !testkit.RaceEnabled {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		return path, os.Symlink(self, path)
	}
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		err = errors.New(string(out))
	}
	return path, err
})

// program is a running process of the real program.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	began time.Time
	gone  chan struct{} // closed when the process has ended and err is set
	err   error

	mu    sync.Mutex
	said  []string      // lines of both outputs
	spoke chan struct{} // closed and replaced at each line of output
}

// launch starts the program in a directory. env sets variables that the program reads. The process gets no other such
// variable from the environment of the test.
func launch(t *testing.T, dir string, env []string, args ...string) *program {
	t.Helper()
	path := programPath(t)
	p := &program{t: t, cmd: exec.Command(path, args...), gone: make(chan struct{}), spoke: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append(plainEnv(), env...)
	r, w := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = w, w
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			p.hear(lines.Text())
		}
		io.Copy(io.Discard, r)
	}()
	go func() {
		defer close(p.gone)
		p.err = p.cmd.Wait()
		w.Close()
		<-heard
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill() // no effect if the process has ended
		<-p.gone
		if t.Failed() {
			t.Logf("countersign %s said:\n%s", strings.Join(args, " "), p.text())
		}
	})
	return p
}

// plainEnv returns the environment without the variables that the program reads, except that the log has the text
// format.
func plainEnv() []string {
	var out []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "COUNTERSIGN_") && !strings.HasPrefix(pair, "SLACK_") && !strings.HasPrefix(pair, "OPENAI_") && !strings.HasPrefix(pair, "OTEL_") {
			out = append(out, pair)
		}
	}
	return append(out, "COUNTERSIGN_LOG_FORMAT=text") // tests read the log
}

func (p *program) hear(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, line)
	close(p.spoke)
	p.spoke = make(chan struct{})
}

func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.said, "\n")
}

// The method "says" waits for a line that matches a regular expression, and returns the expression's first group.
func (p *program) says(pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	end := time.After(patience)
	for n := 0; ; {
		over := false
		select {
		case <-p.gone:
			over = true
		default:
		}
		p.mu.Lock()
		fresh, spoke := p.said[n:], p.spoke
		p.mu.Unlock()
		for _, line := range fresh {
			if m := re.FindStringSubmatch(line); m != nil {
				return m[1]
			}
		}
		if over {
			p.t.Fatalf("it ended (%v) before it said %s", p.err, pattern)
		}
		n += len(fresh)
		select {
		case <-spoke:
		case <-p.gone:
		case <-end:
			p.t.Fatalf("it did not say %s", pattern)
		}
	}
}

// end sends a signal to the program, waits until the program ends, and returns the program's error.
func (p *program) end(s syscall.Signal) error {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("it had ended before it was asked to: %v", err)
	}
	select {
	case <-p.gone:
	case <-time.After(patience):
		p.t.Fatalf("it does not end on %s", s)
	}
	return p.err
}
