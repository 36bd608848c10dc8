package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// process is a started server program. It implements the transport of the SDK, and also the only connection of this
// transport.
type process struct {
	tap    *tap
	log    *slog.Logger
	limits limits

	cmd     *exec.Cmd
	stdin   *os.File
	stdout  *os.File
	reader  *bufio.Reader
	limiter messageLimiter

	writing sync.Mutex
	closing sync.Once
	ended   chan struct{} // closed when the program has ended and its exit status was read
	workers sync.WaitGroup
}

var _ sdk.Transport = (*process)(nil)

// inherited lists the environment variables that every program receives, in addition to the policy's variables.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// start starts a server's program.
func start(command []string, dir string, env map[string]string, t *tap, log *slog.Logger, l limits) (*process, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, notFound(command[0], err)
	}
	p := &process{tap: t, log: log, limits: l, limiter: messageLimiter{most: l.perSecond}, ended: make(chan struct{})}
	p.cmd = exec.Command(path, command[1:]...)
	p.cmd.Args[0] = command[0]
	p.cmd.Dir, p.cmd.Env = dir, environment(env)
	p.cmd.SysProcAttr = ownGroup()
	theirs, err := p.pipes()
	if err != nil {
		return nil, err
	}
	err = p.cmd.Start()
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		p.stdin.Close()
		p.stdout.Close()
		return nil, fmt.Errorf("the command %q can't be started: %w", command[0], plainly(err))
	}
	p.workers.Go(func() {
		_ = p.cmd.Wait() // the exit status is not needed
		p.killGroup(syscall.SIGKILL)
		close(p.ended)
	})
	return p, nil
}

func notFound(command string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the command %q is not found; install it, or write its whole path", command)
	}
	return fmt.Errorf("the command %q can't be started: %w", command, plainly(err))
}

// plainly removes the path from an error, because the caller adds the path to the error.
func plainly(err error) error {
	var at *os.PathError
	var look *exec.Error
	switch {
	case errors.As(err, &at):
		return at.Err
	case errors.As(err, &look):
		return look.Err
	}
	return err
}

// environment returns a program's environment: the inherited variables of this process, and the named variables.
func environment(named map[string]string) []string {
	var out []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok && named[name] == "" {
			out = append(out, name+"="+value)
		}
	}
	for name, value := range named {
		out = append(out, name+"="+value)
	}
	return out
}

// pipes connects the program's standard streams to pipes, and returns the program's ends of the pipes.
func (p *process) pipes() (theirs []*os.File, err error) {
	var files []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, fmt.Errorf("create a pipe for the command: %w", err)
		}
		files = append(files, r, w)
	}
	p.cmd.Stdin, p.stdin = files[0], files[1]
	p.stdout, p.cmd.Stdout = files[2], files[3]
	p.cmd.Stderr = files[5]
	p.reader = bufio.NewReaderSize(p.stdout, 64<<10)
	p.workers.Go(func() { logLines(files[4], p.log) })
	return []*os.File{files[0], files[3], files[5]}, nil
}

// Connect implements the SDK's transport.
func (p *process) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID returns "", because a pipe has only one session.
func (p *process) SessionID() string { return "" }

// Read returns the next message for the SDK.
func (p *process) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if err := p.limiter.wait(ctx); err != nil {
			return nil, err
		}
		raw, err := readLine(p.reader, p.limits.message)
		if err != nil {
			return nil, err
		}
		if len(raw) == 0 {
			continue
		}
		seen := p.tap.in(raw, nil)
		if seen == nil {
			continue
		}
		m, err := jsonrpc.DecodeMessage(seen)
		if err != nil {
			p.tap.drop("it is not a message of JSON-RPC")
			continue
		}
		return m, nil
	}
}

// errTooLong is the error for a message that exceeds the limit. It ends the connection, because the start of the next
// message is unknown.
var errTooLong = errors.New("the server sent a message that is too large")

// readLine reads one line, and returns the line without its end. The parameter most is the maximum length of a line in
// bytes.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var out []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(out)+len(part) > most {
			return nil, fmt.Errorf("%w: more than %d bytes", errTooLong, most)
		}
		if err == nil && out == nil {
			return trimEnd(part), nil
		}
		out = append(out, part...)
		switch {
		case err == nil:
			return trimEnd(out), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func trimEnd(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line
}

// Write sends a message on one line. If the program takes too long to read the message, Write ends the program.
func (p *process) Write(ctx context.Context, m jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	raw, f, err := p.tap.out(raw)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if f != nil {
		f.sent.Store(true)
	}
	if err := p.stdin.SetWriteDeadline(time.Now().Add(p.limits.write)); err != nil {
		return err
	}
	if _, err := p.stdin.Write(append(oneLine(raw), '\n')); err != nil {
		go p.end() // the message may be incomplete, so no further message can be sent
		return fmt.Errorf("the server does not accept input: %w", err)
	}
	return nil
}

// Close ends the program, as the SDK requires.
func (p *process) Close() error {
	p.end()
	return nil
}

// end ends the program and its process group. It first closes the program's input. If the program does not exit, end
// sends SIGTERM, and finally SIGKILL.
func (p *process) end() {
	p.closing.Do(func() {
		p.stdin.Close()
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			timer := time.NewTimer(p.limits.soft)
			select {
			case <-p.ended:
			case <-timer.C:
				p.killGroup(signal)
			}
			timer.Stop()
		}
		<-p.ended
		p.stdout.Close()
		p.workers.Wait()
	})
}

// killGroup signals all processes of the program's group.
func (p *process) killGroup(s syscall.Signal) { signalGroup(p.cmd.Process, s) }

// messageLimiter limits the number of messages per second. While the limiter waits, the server blocks on its pipe.
type messageLimiter struct {
	most  int
	since time.Time
	n     int
}

func (p *messageLimiter) wait(ctx context.Context) error {
	const slice = 100 * time.Millisecond
	if p.n++; p.n < p.most/10 {
		return nil
	}
	left := slice - time.Since(p.since)
	p.n, p.since = 0, time.Now()
	if left <= 0 {
		return nil
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
		p.since = time.Now()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	// logBurst and logEvery limit a program's log lines. The first logBurst lines are logged at any rate. After that, at
	// most one line is logged in each interval of this length.
	logBurst = 50
	logEvery = time.Second
)

// logLines writes a program's standard error to the log, line by line. It reads all lines until the end, including
// lines that it does not log, so that the program does not block.
func logLines(r *os.File, log *slog.Logger) {
	defer r.Close()
	b := bufio.NewReaderSize(r, 4*maxLine)
	left, since, skipped := logBurst, time.Now(), 0
	for {
		part, isPrefix, err := b.ReadLine()
		if err != nil {
			return
		}
		text := line(string(part))
		for isPrefix && err == nil {
			_, isPrefix, err = b.ReadLine()
		}
		if text == "" {
			continue
		}
		if n := int(time.Since(since) / logEvery); n > 0 {
			left, since = min(left+n, logBurst), time.Now()
		}
		if left == 0 {
			skipped++
			continue
		}
		left--
		if skipped > 0 {
			log.Info("output of an MCP server was dropped", "lines", skipped)
			skipped = 0
		}
		log.Info("output of an MCP server", "line", text)
		if errors.Is(err, io.EOF) {
			return
		}
	}
}
