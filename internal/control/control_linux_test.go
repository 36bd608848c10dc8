package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// otherUserEnv is an environment variable with the path of a socket. If the variable is set, the test binary is a
// client of that socket.
const otherUserEnv = "CONTROL_TEST_OTHER_USER"

func TestMain(m *testing.M) {
	if path := os.Getenv(otherUserEnv); path != "" {
		err := Client{Path: path, Trust: []int{0}}.Do(context.Background(), Call{Task: "echo", Out: os.Stdout})
		fmt.Println(err)
		return
	}
	os.Exit(m.Run())
}

// socketPath returns a path for a socket in a directory that other users can enter.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "control-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "s")
}

// The function "serving" starts a server at a socket. The server runs until the test ends.
func serving(t *testing.T, path string, do func(context.Context, int, Call) *Failure) *http.Server {
	t.Helper()
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	srv := Server{Do: do, Version: "v1", Log: slog.New(slog.NewTextHandler(t.Output(), nil))}.HTTP()
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	return srv
}

// echo answers with the call that it received.
func echo(_ context.Context, uid int, c Call) *Failure {
	fmt.Fprintf(c.Out, "%s %s %s %d\n", c.Task, c.Options, c.Store, uid)
	if _, err := io.Copy(c.Out, c.In); err != nil {
		return &Failure{9, err.Error()}
	}
	return nil
}

func TestTask(t *testing.T) {
	path := socketPath(t)
	serving(t, path, echo)
	var out bytes.Buffer
	input := strings.Repeat("0123456789", 1<<18) // more than any buffer
	err := Client{Path: path}.Do(t.Context(), Call{Task: "audit list", Options: []byte(`{"reason":"ein \"Grund\"\nüber zwei"}`), Store: "/a/Ort/mit ü\n", In: strings.NewReader(input), Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	want := "audit list {\"reason\":\"ein \\\"Grund\\\"\\nüber zwei\"} /a/Ort/mit ü\n " + fmt.Sprint(os.Geteuid()) + "\n" + input
	if out.String() != want {
		t.Errorf("got %.200q, %d bytes; want %.200q, %d bytes", out.String(), out.Len(), want, len(want))
	}
}

// The client gets the output, and then the outcome with its code and a text of any length.
func TestFailure(t *testing.T) {
	path := socketPath(t)
	long := strings.Repeat("line\n", 10_000)
	serving(t, path, func(_ context.Context, _ int, c Call) *Failure {
		io.WriteString(c.Out, "so far")
		return &Failure{2, long}
	})
	var out bytes.Buffer
	var failed *Failure
	err := Client{Path: path}.Do(t.Context(), Call{Task: "x", Out: &out})
	if !errors.As(err, &failed) || failed.Code != 2 || failed.Text != long || out.String() != "so far" {
		t.Errorf("got %q and %.100v", out.String(), err)
	}
}

// Only the owner can access the socket, from the moment of its creation. The protection does not depend on the
// process's umask.
func TestMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := socketPath(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var seen atomic.Int64
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if info, err := os.Lstat(path); err == nil {
				seen.Add(1)
				if info.Mode() != fs.ModeSocket|0o600 {
					t.Errorf("it has mode %s", info.Mode())
					return
				}
			}
		}
	})
	for range 200 {
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	t.Logf("looked at %d times", seen.Load())
}

func TestDeadSocketIsReplaced(t *testing.T) {
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	if err := (Client{Path: path}).Do(t.Context(), Call{Task: "x", Out: io.Discard}); !errors.Is(err, ErrNobody) {
		t.Errorf("a dead socket: %v", err)
	}
	serving(t, path, echo)
	if err := (Client{Path: path}).Do(t.Context(), Call{Task: "x", Out: io.Discard}); err != nil {
		t.Error(err)
	}
}

// If several calls of Listen try to replace a dead socket at the same time, exactly one of them succeeds. The other
// calls do not remove its socket.
func TestOneListens(t *testing.T) {
	path := socketPath(t)
	for range 20 {
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		dead.SetUnlinkOnClose(false)
		dead.Close()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var live []*Listener
		for range 8 {
			wg.Go(func() {
				l, err := Listen(path)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					live = append(live, l)
				} else if !errors.Is(err, ErrLive) {
					t.Errorf("the others are told: %v", err)
				}
			})
		}
		wg.Wait()
		if len(live) != 1 {
			t.Fatalf("%d listen simultaneously", len(live))
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatalf("the new listener can't be reached: %v", err)
		}
		c.Close()
		live[0].Close()
	}
}

// Close does not remove a newer socket at the same path.
func TestCloseLeavesWhatIsNotItsOwn(t *testing.T) {
	path := socketPath(t)
	first, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path) // an operator might do the same
	second, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	first.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the other's socket: %v", err)
	}
}

func TestPathsThatAreNone(t *testing.T) {
	dir := filepath.Dir(socketPath(t))
	file := filepath.Join(dir, "file")
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.WriteFile(file, []byte("kept"), 0o600), os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	for path, words := range map[string]string{
		filepath.Join(dir, strings.Repeat("x", 108)): "a Unix socket's path may have 107",
		filepath.Join(dir, "nowhere", "else", "s"):   "does not exist; make it first",
		filepath.Join(file, "s"):                     "not a directory",
		filepath.Join(open, "s"):                     "everybody can write to the directory",
		file:                                         "exists and is not a socket",
	} {
		if _, err := Listen(path); !errors.Is(err, ErrPath) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "kept" {
		t.Errorf("the file: %q, %v", content, err)
	}
	sticky := filepath.Join(open, "..", "sticky")
	if err := errors.Join(os.Mkdir(sticky, 0o700), os.Chmod(sticky, 0o777|fs.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(filepath.Join(sticky, "s"))
	if err != nil {
		t.Fatalf("where others can't replace it: %v", err)
	}
	l.Close()
}

// The server and the client refuse a directory in which others could replace the socket. The
// primary group of the directory's owner and the group of root may write to it.
func TestWritableDirectories(t *testing.T) {
	const group = 54321 // nobody's primary group
	path := socketPath(t)
	dir := filepath.Dir(path)
	serving(t, path, echo)
	for _, c := range []struct {
		mode  fs.FileMode
		gid   int
		words string
	}{
		{0o755, group, ""},
		{0o775, os.Getegid(), ""},
		{0o775, 0, ""},
		{0o777 | fs.ModeSticky, group, ""},
		{0o770, group, "the members of the group 54321 can write to the directory " + dir},
		{0o775 | fs.ModeSetgid, group, "remove that permission (chmod g-w)"},
		{0o757, os.Getegid(), "everybody can write to the directory " + dir},
	} {
		if c.gid != os.Getegid() && os.Geteuid() != 0 {
			t.Log("not tried, because only root can give a directory to another group:", c.mode, c.gid)
			continue
		}
		if err := errors.Join(os.Chown(dir, -1, c.gid), os.Chmod(dir, c.mode)); err != nil {
			t.Fatal(err)
		}
		l, err := Listen(path + "2")
		if err == nil {
			l.Close()
		}
		asked := Client{Path: path}.Do(t.Context(), Call{Task: "x", Out: io.Discard})
		for side, err := range map[string]error{"the server": err, "the client": asked} {
			if (err != nil) != (c.words != "") || err != nil && (!errors.Is(err, ErrPath) || !strings.Contains(err.Error(), c.words)) {
				t.Errorf("%s with mode %s and group %d: %v", side, c.mode, c.gid, err)
			}
		}
	}
}

// Another user can't connect. Even if the socket's mode lets every user connect, the server rejects another user, and
// tells the client that user's id.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	path := socketPath(t)
	var done atomic.Int64
	serving(t, path, func(ctx context.Context, uid int, c Call) *Failure {
		done.Add(1)
		return echo(ctx, uid, c)
	})
	binary := filepath.Join(filepath.Dir(path), "client")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, content, 0o755); err != nil {
		t.Fatal(err)
	}
	otherUser := func() string {
		cmd := exec.Command(binary)
		cmd.Env = []string{otherUserEnv + "=" + path}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if said := otherUser(); !strings.Contains(said, "permission denied") {
		t.Errorf("another user is told %q", said)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if said := otherUser(); !strings.Contains(said, "only root and the user with id 0") || !strings.Contains(said, "you have id 65534") {
		t.Errorf("another user is told %q", said)
	}
	if n := done.Load(); n != 0 {
		t.Errorf("%d tasks were done for another user", n)
	}
}

// A client refuses a server that an untrusted user runs.
func TestImpostor(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	path := socketPath(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	// The kernel records the listening user when listen is called.
	heard := make(chan error)
	go func() {
		// After this call, the thread runs as another user. The thread ends together with its goroutine.
		runtime.LockOSThread()
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			heard <- errno
			return
		}
		heard <- unix.Listen(fd, 1)
	}()
	if err := <-heard; err != nil {
		t.Fatal(err)
	}
	if err := (Client{Path: path}).Do(t.Context(), Call{Task: "x", Out: io.Discard}); !errors.Is(err, ErrUntrusted) {
		t.Errorf("the client did not refuse the server: %v", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond) // nobody answers
	defer stop()
	if err := (Client{Path: path, Trust: []int{65534}}).Do(ctx, Call{Task: "x", Out: io.Discard}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the client trusts that user, but does not wait for the answer: %v", err)
	}
}
