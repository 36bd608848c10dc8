package postgres_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/store"
	"countersign/store/postgres"
)

// authority is a certificate authority for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // the certificate in PEM
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{file: filepath.Join(t.TempDir(), "ca.pem")}
	var pem []byte
	a.cert, a.key, pem = certify(t, authority{}, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour)})
	if err := os.WriteFile(a.file, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// certify makes a key, and a certificate that the authority signs. If the authority is empty, the certificate is signed
// by its own key.
func certify(t *testing.T, by authority, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(1), pkix.Name{CommonName: "test"}
	if by.cert == nil {
		by = authority{cert: template, key: key}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// withoutTLS starts a server that answers each request for TLS as PostgreSQL does without TLS. The result is its port.
func withoutTLS(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := io.ReadFull(conn, make([]byte, 8)); err == nil { // SSLRequest
				_, _ = conn.Write([]byte("N")) // the client may have gone
			}
			conn.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// With sslmode=verify-full, every connection of the store uses TLS, and the store refuses a server without TLS, or with
// another certificate. The error says what to do.
func TestTLS(t *testing.T) {
	t.Parallel()
	name := empty(t)
	if server.own == nil {
		t.Skip("needs a server of its own")
	}
	ca, other := newAuthority(t), newAuthority(t)
	over := func(mode string, from authority, host string) string {
		u, err := url.Parse(server.own.TCP(name))
		if err != nil {
			t.Fatal(err)
		}
		u.Host = net.JoinHostPort(host, u.Port())
		u.RawQuery = url.Values{"sslmode": {mode}, "sslrootcert": {from.file}}.Encode()
		return u.String()
	}
	offer := func(until time.Time) {
		t.Helper()
		cert, key, chain := certify(t, ca, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: until})
		raw, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.own.OfferTLS(chain, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})); err != nil {
			t.Fatal(err)
		}
		config, err := pgx.ParseConfig(over("require", authority{}, "127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		var offers bool
		config.TLSConfig.VerifyPeerCertificate = func(raw [][]byte, _ [][]*x509.Certificate) error {
			offers = string(raw[0]) == string(cert.Raw)
			return nil
		}
		await(t, "the server offers the certificate", func() bool {
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err == nil {
				conn.Close(t.Context())
			}
			return err == nil && offers
		})
	}
	plain := withoutTLS(t)
	tryOpen(t, strings.Replace(over("verify-full", ca, "127.0.0.1"), fmt.Sprint(":", server.own.Port, "/"), fmt.Sprint(":", plain, "/"), 1),
		store.ErrUnavailable, "does not offer TLS: set ssl = on")

	offer(time.Now().Add(-time.Minute))
	tryOpen(t, over("verify-full", ca, "127.0.0.1"), store.ErrUnavailable, "a certificate that is not valid: renew it")

	offer(time.Now().Add(time.Hour))
	s := open(t, over("verify-full", ca, "127.0.0.1"))
	err := errors.Join(s.Hold(t.Context(), true), s.Update(t.Context(), func(tx store.Tx) error { return tx.PutMessage(store.Message{Conversation: "c", Seq: 1}) }))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), at(name))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var connections, unprotected int
	const query = "SELECT count(*), count(*) FILTER (WHERE NOT ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND application_name = 'countersign'"
	if err := conn.QueryRow(t.Context(), query).Scan(&connections, &unprotected); err != nil || connections < 2 || unprotected > 0 {
		t.Errorf("%d connections, %d of them without TLS; error %v", connections, unprotected, err)
	}
	for _, mode := range []string{"verify-full", "verify-ca"} {
		tryOpen(t, over(mode, other, "127.0.0.1"), store.ErrUnavailable, "sslrootcert in the address must name a file with the authority that signed the server's certificate")
	}
	tryOpen(t, over("verify-full", ca, "localhost"), store.ErrUnavailable, "a certificate for another host: use a host name of the certificate in the address")
	tryOpen(t, strings.Replace(over("verify-full", ca, "127.0.0.1"), "ca.pem", "missing.pem", 1), postgres.ErrURL, "missing.pem")
}
