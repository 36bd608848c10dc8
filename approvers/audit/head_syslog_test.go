package audit

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leodido/go-syslog/v4"
	"github.com/leodido/go-syslog/v4/octetcounting"
	"github.com/leodido/go-syslog/v4/rfc5424"

	"countersign/config"
	"countersign/internal/testkit"
)

// received lists the heads in the received messages. The heads must be in order.
func received(t *testing.T, messages []syslog.Message) string {
	t.Helper()
	var text strings.Builder
	for _, m := range messages {
		r, ok := m.(*rfc5424.SyslogMessage)
		if !ok || *r.Priority != 109 || *r.Appname != "countersign" || *r.MsgID != "head" || r.Timestamp == nil {
			t.Fatalf("the message is %+v", m)
		}
		fmt.Fprintln(&text, *r.Message)
	}
	return fmt.Sprint(headNumbers(t, text.String()))
}

// Over a datagram connection, each datagram is one message.
func TestHeadsToSyslogInDatagrams(t *testing.T) {
	s := newSealedStore(t)
	s.head(3)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	path := filepath.Join(t.TempDir(), "log")
	unix, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	for _, c := range []struct {
		to config.Syslog
		at net.PacketConn
	}{{config.Syslog{Network: "udp", Address: udp.LocalAddr().String()}, udp}, {config.Syslog{Network: "unix", Address: path}, unix}} {
		to := NewHeadShipper(&Syslog{Network: c.to.Network, Address: c.to.Address, Now: time.Now}, s.db, s.log)
		to.Ship(t.Context())
		s.head(2)
		to.Ship(t.Context())
		if err := to.Err(); err != nil {
			t.Fatal(err)
		}
		var messages []syslog.Message
		for range 3 {
			b := make([]byte, 4096)
			if err := c.at.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
				t.Fatal(err)
			}
			n, _, err := c.at.ReadFrom(b)
			if err != nil {
				t.Fatal(err)
			}
			m, err := rfc5424.NewParser().Parse(b[:n])
			if err != nil {
				t.Fatalf("%q: %v", b[:n], err)
			}
			messages = append(messages, m)
		}
		if got, want := received(t, messages), fmt.Sprintf("[%d %d %d]", s.n-2, s.n-1, s.n); got != want {
			t.Errorf("%s: the heads %s came, want the newest at the start and the new ones: %s", c.to, got, want)
		}
	}
}

// Over a stream, each message is preceded by its length. If the connection breaks and nobody listens, the shipper
// reports an error, and the head waits.
func TestHeadsToSyslogInStreams(t *testing.T) {
	s := newSealedStore(t)
	s.head(1)
	web := httptest.NewTLSServer(nil) // only its certificate is used
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	trust := &tls.Config{RootCAs: roots, ServerName: "example.com"}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	safe, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log")
	local, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	for network, l := range map[string]net.Listener{"tcp": plain, "tls": safe, "unix": local} {
		to := &Syslog{Network: network, Address: l.Addr().String(), TLS: trust, Now: time.Now}
		c := NewHeadShipper(to, s.db, s.log)
		came := make(chan []byte, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			var b bytes.Buffer
			_, _ = b.ReadFrom(conn)
			came <- b.Bytes()
		}()
		c.Ship(t.Context())
		s.head(2)
		c.Ship(t.Context())
		if err := c.Err(); err != nil {
			t.Fatalf("%s: %v", network, err)
		}
		to.conn.Close() // the connection breaks
		l.Close()
		var messages []syslog.Message
		octetcounting.NewParser(syslog.WithListener(func(r *syslog.Result) {
			if r.Error != nil {
				t.Errorf("%s: %v", network, r.Error)
				return
			}
			messages = append(messages, r.Message)
		})).Parse(bytes.NewReader(<-came))
		if got, want := received(t, messages), fmt.Sprintf("[%d %d %d]", s.n-2, s.n-1, s.n); got != want {
			t.Errorf("%s: the heads %s came, want %s", network, got, want)
		}
		s.head(1)
		c.Ship(t.Context())
		c.Ship(t.Context())
		if c.Err() == nil {
			t.Errorf("%s: nobody listens, and no error is reported", network)
		}
		if n, err := c.Waiting(t.Context()); n != 1 || err != nil {
			t.Errorf("%s: %d heads wait (%v)", network, n, err)
		}
	}
}
