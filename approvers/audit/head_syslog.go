package audit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/leodido/go-syslog/v4/rfc5424"

	"countersign/approvers"
	"countersign/config"
	"countersign/store"
)

// Syslog sends each head to a syslog server, as an RFC 5424 message. Syslog serves one HeadShipper.
type Syslog struct {
	Network, Address string      // udp, tcp, tls or unix, and the address; empty: no server
	TLS              *tls.Config // nil: the system's certificate authorities
	Now              func() time.Time

	conn net.Conn // nil: not connected
}

// auditNotice is the priority: facility log audit (13), severity notice (5).
const auditNotice = 13*8 + 5

// syslogTimeout limits the time for connecting and sending.
const syslogTimeout = 5 * time.Second

func (s *Syslog) String() string {
	return config.Syslog{Network: s.Network, Address: s.Address}.String()
}

// Last returns the number of the head before the newest head. Therefore a new process sends the newest head once
// more. One head is enough, because the newest head covers all records that the earlier heads cover.
func (s *Syslog) Last(ctx context.Context, db store.Store) (number uint64, err error) {
	err = db.View(ctx, func(r store.Reader) error {
		number = 0
		head, err := r.LastHead()
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		number = max(head.Number, 1) - 1
		return err
	})
	return number, err
}

func (s *Syslog) Ship(ctx context.Context, heads []store.Head) error {
	for _, h := range heads {
		text, err := s.message(h)
		if err != nil {
			return err
		}
		if err := s.send(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// message formats a head as a syslog message.
func (s *Syslog) message(h store.Head) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "-"
	}
	m := &rfc5424.SyslogMessage{}
	m.SetPriority(auditNotice).SetVersion(1).SetTimestamp(s.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")).
		SetHostname(host).SetAppname("countersign").SetProcID(strconv.Itoa(os.Getpid())).SetMsgID("head").
		SetMessage(fmt.Sprintf("head %d over %s %s", h.Number, count(int(h.Size), "record"), approvers.InLine(h.Note)))
	return m.String()
}

// send sends one message. After an error, the next call of send opens a new connection.
func (s *Syslog) send(ctx context.Context, text string) (err error) {
	if s.conn == nil {
		if s.conn, err = s.dial(ctx); err != nil {
			return err
		}
	}
	switch s.conn.RemoteAddr().Network() {
	case "tcp", "unix":
		text = strconv.Itoa(len(text)) + " " + text // RFC 6587: a stream needs message boundaries
	}
	err = s.conn.SetWriteDeadline(time.Now().Add(syslogTimeout))
	if err == nil {
		_, err = s.conn.Write([]byte(text))
	}
	if err != nil {
		s.conn.Close()
		s.conn = nil
	}
	return err
}

// Reach connects to the server, and sends nothing.
func (s *Syslog) Reach(ctx context.Context) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (s *Syslog) dial(ctx context.Context) (net.Conn, error) {
	d := &net.Dialer{Timeout: syslogTimeout}
	switch s.Network {
	case "tls":
		return (&tls.Dialer{NetDialer: d, Config: s.TLS}).DialContext(ctx, "tcp", s.Address)
	case "unix": // the system's socket usually takes datagrams; other unix sockets are streams
		conn, err := d.DialContext(ctx, "unixgram", s.Address)
		if err == nil {
			return conn, nil
		}
	}
	return d.DialContext(ctx, s.Network, s.Address)
}
