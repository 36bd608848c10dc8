package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
)

// Refused is the error for a connection or redirect that the guard refused. Refused contains only the host of the
// URL, because the other parts may contain secrets.
type Refused struct {
	Host   string // as requested
	Reason string // the reason, as the rest of a sentence
	Permit string // the allow entry that would permit the destination; empty: no entry would permit it, or the error must not suggest one
	// Redirect means that the refused destination came from a redirect. In this case, the redirecting server has
	// received the request.
	Redirect bool
}

func (r *Refused) Error() string {
	s := fmt.Sprintf("%.120q %s", r.Host, r.Reason)
	if r.Redirect {
		s = "a redirect was not followed: " + s
	}
	if r.Permit != "" {
		s += fmt.Sprintf(", which an entry %q in allow would permit", r.Permit)
	}
	return s
}

// Sentence describes a failed request in one sentence. The errors of net/http quote the URL. Sentence omits the URL,
// because a URL may contain secrets.
func Sentence(err error) string {
	var (
		refused  *Refused
		lookup   *net.DNSError
		unknown  x509.UnknownAuthorityError
		name     x509.HostnameError
		invalid  x509.CertificateInvalidError
		verify   *tls.CertificateVerificationError
		record   tls.RecordHeaderError
		asked    *url.Error
		exchange *net.OpError
		timeout  net.Error
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return refused.Error()
	case errors.Is(err, ErrTooLarge):
		return ErrTooLarge.Error()
	case errors.Is(err, ErrPacked):
		return ErrPacked.Error()
	case errors.Is(err, context.Canceled):
		return "it was stopped"
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return fmt.Sprintf("there is no host named %.120q", lookup.Name)
	case errors.As(err, &lookup):
		return fmt.Sprintf("the name %.120q could not be resolved", lookup.Name)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "there was no response in time"
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid), errors.As(err, &verify):
		return "the server's certificate is not trusted"
	case errors.As(err, &record):
		return "the server does not speak TLS there"
	case errors.As(err, &exchange) && exchange.Op == "dial":
		return "no connection could be made"
	case errors.As(err, &asked) && strings.Contains(asked.Err.Error(), "server response headers exceeded"):
		return "the response's header is too large"
	}
	return "the connection broke"
}
