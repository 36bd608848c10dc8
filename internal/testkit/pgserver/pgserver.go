//go:build unix

// Package pgserver starts a PostgreSQL server for tests, in a temporary directory.
package pgserver

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/internal/testkit"
)

// Server is a running server. The superuser of the server is "postgres". Over the socket, the superuser needs no
// password.
type Server struct {
	Port     int    // port on 127.0.0.1
	Password string // password of the superuser for connections over TCP

	bin, dir string
	as       *syscall.Credential // the user that runs the server; nil: the tests' own user
	settings []string
	done     <-chan struct{} // closed when the process has ended
	pid      int
}

// Find returns the directory of PostgreSQL's programs. If there is no such directory, Find fails the test in CI, and
// skips the test elsewhere.
func Find(t testing.TB) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is valid
	if len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1])
	}
	return filepath.Dir(testkit.RequireProgram(t, "postgres", "the store over PostgreSQL", testkit.InstallPostgres))
}

// newServer makes the directory of a server.
func newServer(bin string, settings []string) (*Server, error) {
	dir, err := os.MkdirTemp("", "pgserver")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, Password: "correct horse", settings: settings}
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		if s.as, err = another(); err != nil {
			return nil, err
		}
		if err := os.Chown(dir, int(s.as.Uid), int(s.as.Gid)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// New starts a server as Start does. The server is removed when the test ends. Without PostgreSQL, New acts as Find does.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := Start(Find(t), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Remove)
	return s
}

// Start creates a new database cluster and starts a server on the cluster. Settings have the form name=value. On Linux,
// the server ends when this process ends.
func Start(bin string, settings ...string) (*Server, error) {
	s, err := newServer(bin, settings)
	if err != nil {
		return nil, err
	}
	secret := filepath.Join(s.dir, "password")
	if err := os.WriteFile(secret, []byte(s.Password), 0o644); err != nil {
		return nil, err
	}
	if out, err := s.command("initdb", "-D", s.data(), "-U", "postgres", "--pwfile", secret, "--auth-local=trust", "--auth-host=scram-sha-256",
		"-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	if s.Port, err = freePort(); err != nil {
		return nil, err
	}
	return s, s.Run()
}

// Standby creates a synchronous standby of the server, at the given port. Port 0 means any free port. When the standby
// runs, the server's commits wait for the standby. The server needs the settings wal_level=replica and max_wal_senders.
func (s *Server) Standby(port int) (*Server, error) {
	x, err := newServer(s.bin, s.settings)
	if err != nil {
		return nil, err
	}
	if x.Port = port; port == 0 {
		if x.Port, err = freePort(); err != nil {
			return nil, err
		}
	}
	from := fmt.Sprintf("host=%s port=%d user=postgres application_name=standby", s.dir, s.Port)
	if out, err := x.command("pg_basebackup", "-D", x.data(), "-d", from, "-R", "-c", "fast", "--no-sync").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	if err := x.Run(); err != nil {
		return nil, err
	}
	return x, s.SQL("postgres", "ALTER SYSTEM SET synchronous_standby_names = standby; SELECT pg_reload_conf();")
}

// Promote makes a standby a primary.
func (s *Server) Promote() error { return s.SQL("postgres", "SELECT pg_promote()") }

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(program string, args ...string) *exec.Cmd {
	path := filepath.Join(s.bin, program)
	if _, err := os.Stat(path); err != nil {
		path = program // a program of the system, not of PostgreSQL
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	return cmd
}

// Run starts the server after Kill or Stop.
func (s *Server) Run() error {
	args := []string{"-D", s.data(), "-k", s.dir, "-p", strconv.Itoa(s.Port), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300",
		"-c", "shared_buffers=64MB", "-c", "dynamic_shared_memory_type=mmap", "-c", "wal_level=minimal", "-c", "max_wal_senders=0",
		"-c", "log_min_messages=fatal", "-c", "log_min_error_statement=panic"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	cmd := s.command("postgres", args...)
	var said strings.Builder
	cmd.Stderr = &said
	done, err := start(cmd)
	if err != nil {
		return err
	}
	s.pid, s.done = cmd.Process.Pid, done
	for end := time.Now().Add(time.Minute); ; {
		if s.ready() {
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("the server ended: %s", said.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("the server does not become ready: %s", said.String())
		}
	}
}

// The method "ready" reports whether the server accepts connections. The first line of the server's pid file is the
// server's process id, and the eighth line is the server's state.
func (s *Server) ready() bool {
	file, _ := os.ReadFile(filepath.Join(s.data(), "postmaster.pid")) // without the file, the server is not ready
	lines := strings.Split(string(file), "\n")
	return len(lines) > 7 && lines[0] == strconv.Itoa(s.pid) && strings.TrimSpace(lines[7]) == "ready"
}

// start starts a process that ends when this process ends. The channel is closed when the process has ended.
func start(cmd *exec.Cmd) (<-chan struct{}, error) {
	endWithParent(cmd.SysProcAttr)
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // because the kernel signals the process when the thread that started the process ends
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the exit status does not matter
		}
	}()
	return done, <-started
}

// Archive restarts the server with an archive of its WAL.
func (s *Server) Archive() error {
	archive := filepath.Join(s.dir, "archive")
	if out, err := s.command("mkdir", archive).CombinedOutput(); err != nil {
		return fmt.Errorf("mkdir: %w: %s", err, out)
	}
	s.Stop()
	s.settings = append(s.settings, "wal_level=replica", "max_wal_senders=5", "archive_mode=on",
		"archive_command=cp %p "+archive+"/%f", "restore_command=cp "+archive+"/%f %p", "recovery_target_action=promote")
	return s.Run()
}

// BaseBackup creates a base backup for RestoreTo. The server must have an archive.
func (s *Server) BaseBackup() error {
	to := filepath.Join(s.dir, "base")
	if out, err := s.Tool("pg_basebackup", "-D", to, "-c", "fast", "--no-sync").CombinedOutput(); err != nil {
		return fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	return nil
}

// RestoreTo stops the server and restores the base backup to a restore point (pg_create_restore_point).
func (s *Server) RestoreTo(point string) error {
	s.Stop() // archives the rest of the WAL
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	base := filepath.Join(s.dir, "base")
	for _, args := range [][]string{{"cp", "-a", base, s.data()}, {"touch", filepath.Join(s.data(), "recovery.signal")}} {
		if out, err := s.command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
	s.settings = append(s.settings, "recovery_target_name="+point)
	if err := s.Run(); err != nil {
		return err
	}
	return s.awaitPrimary()
}

// awaitPrimary waits until the server accepts writes.
func (s *Server) awaitPrimary() (err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = s.SQL("postgres", "DO $$ BEGIN ASSERT NOT pg_is_in_recovery(); END $$"); err == nil {
			return nil
		}
	}
	return err
}

// Demote restarts the server as a read-only standby. The server stays a standby until Promote is called. The server
// must have the setting wal_level=replica.
func (s *Server) Demote() error {
	s.Stop()
	if out, err := s.command("touch", filepath.Join(s.data(), "standby.signal")).CombinedOutput(); err != nil {
		return fmt.Errorf("touch: %w: %s", err, out)
	}
	return s.Run()
}

// Give makes the server's user the owner of a test's directory, and gives this user access to the directory.
func (s *Server) Give(dir string) error {
	if s.as == nil {
		return nil
	}
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		return err
	}
	return os.Chown(dir, int(s.as.Uid), int(s.as.Gid))
}

// Tool returns a command that runs one of PostgreSQL's programs, such as pg_dump, as the superuser.
func (s *Server) Tool(program string, args ...string) *exec.Cmd {
	return s.command(program, append([]string{"-h", s.dir, "-p", strconv.Itoa(s.Port), "-U", "postgres"}, args...)...)
}

// Kill ends the server as a crash does. Data that is not in the server's write-ahead log on disk is lost.
func (s *Server) Kill() { s.signal(syscall.SIGQUIT) }

// KillHard ends the server with SIGKILL. The server's child processes end shortly afterwards.
func (s *Server) KillHard() { s.signal(syscall.SIGKILL) }

// Stop shuts the server down cleanly, and ends its connections.
func (s *Server) Stop() { s.signal(syscall.SIGINT) }

func (s *Server) signal(sig syscall.Signal) {
	_ = syscall.Kill(s.pid, sig) // the process may have ended
	<-s.done
}

// Remove ends the server and deletes its files.
func (s *Server) Remove() {
	s.Kill()
	os.RemoveAll(s.dir)
}

// URL returns the address of a database over the server's socket. Clients wait longer than the default of five seconds
// for a connection, because the server may answer later on a busy machine.
func (s *Server) URL(database string) string {
	q := url.Values{"host": {s.dir}, "port": {strconv.Itoa(s.Port)}, "connect_timeout": {"60"}}
	return "postgres://postgres@/" + database + "?" + q.Encode()
}

// TCP returns the address of a database over TCP, with the password.
func (s *Server) TCP(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword("postgres", s.Password), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)),
		Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// SQL runs statements in a database, as the superuser.
func (s *Server) SQL(database, statements string) error {
	cmd := s.command("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--host="+s.dir, "--port="+strconv.Itoa(s.Port), "--username=postgres", database)
	cmd.Stdin = strings.NewReader(statements)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("psql: %w: %s", err, out)
	}
	return nil
}

// The function "another" returns a user other than root. The server runs as this user if the tests run as root.
func another() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// OfferTLS makes the running server offer TLS, with a certificate and its key in PEM. The server needs a moment until it
// uses the new settings.
func (s *Server) OfferTLS(cert, key []byte) error {
	for name, text := range map[string][]byte{"server.crt": cert, "server.key": key} { // the defaults of ssl_cert_file and ssl_key_file
		path := filepath.Join(s.data(), name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
		if s.as == nil {
			continue
		}
		if err := os.Chown(path, int(s.as.Uid), int(s.as.Gid)); err != nil {
			return err
		}
	}
	return s.SQL("postgres", "ALTER SYSTEM SET ssl = on; SELECT pg_reload_conf();")
}
