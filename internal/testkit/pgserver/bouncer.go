//go:build unix

package pgserver

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/internal/testkit"
)

// Bouncer is a running PgBouncer in front of a server.
type Bouncer struct {
	port     int
	password string
}

// NewBouncer starts a PgBouncer with settings of the form name=value. The PgBouncer runs until the test ends. It
// accepts the server's superuser, and the given users with their passwords. If PgBouncer is not installed, NewBouncer
// fails the test in CI, and skips the test elsewhere.
func NewBouncer(t testing.TB, s *Server, users map[string]string, settings ...string) *Bouncer {
	t.Helper()
	program := "/usr/sbin/pgbouncer" // Debian's, which is not in every user's PATH
	if _, err := os.Stat(program); err != nil {
		program = testkit.RequireProgram(t, "pgbouncer", "the store behind a PgBouncer", testkit.InstallBouncer)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	b := &Bouncer{port: port, password: s.Password}
	dir, err := os.MkdirTemp(s.dir, "bouncer")
	if err != nil {
		t.Fatal(err)
	}
	list := fmt.Sprintf("\"postgres\" \"%s\"\n", s.Password)
	for name, password := range users {
		list += fmt.Sprintf("\"%s\" \"%s\"\n", name, password)
	}
	conf := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = %s\n%s\n",
		s.Port, port, filepath.Join(dir, "users"), strings.Join(settings, "\n"))
	for name, text := range map[string]string{"users": list, "pgbouncer.ini": conf} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := s.command("postgres")
	cmd.Path, cmd.Args = program, []string{"pgbouncer", "-q", filepath.Join(dir, "pgbouncer.ini")}
	var said strings.Builder
	cmd.Stderr = &said
	done, err := start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(cmd.Process.Pid, syscall.SIGTERM) // the process may have ended
		<-done
		os.RemoveAll(dir)
	})
	for end := time.Now().Add(time.Minute); ; {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			conn.Close()
			return b
		}
		select {
		case <-done:
			t.Fatalf("PgBouncer ended: %s", said.String())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatal("PgBouncer does not become ready")
		}
	}
}

// URL returns the address of a database through the PgBouncer. If user is nil, the address is for the superuser.
func (b *Bouncer) URL(database string, user *url.Userinfo) string {
	if user == nil {
		user = url.UserPassword("postgres", b.password)
	}
	u := url.URL{Scheme: "postgres", User: user, Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)), Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}
