package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// Client requests tasks over a socket.
type Client struct {
	Path  string
	Trust []int // additional users whose server is trusted, besides root and the client's own user
}

// dialTime is the time limit for a server to accept a connection.
const dialTime = 20 * time.Second

// Do requests a task, copies its output to c.Out, and returns its outcome. If the task failed, the error is a *Failure.
func (c Client) Do(ctx context.Context, call Call) error {
	if len(c.Path) > maxPath {
		return fmt.Errorf("%w: %s is %d bytes long, and a Unix socket's path may have %d", ErrPath, c.Path, len(c.Path), maxPath)
	}
	if err := checkDir(filepath.Dir(c.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var sent atomic.Bool // true: the server may have received the request
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodPost, "http://control"+pathPrefix+url.PathEscape(call.Task), call.In)
	if err != nil {
		return err
	}
	request.Header.Set(headerProtocol, protocol)
	request.Header.Set(headerVersion, call.Version)
	request.Header.Set(headerStore, strconv.QuoteToASCII(call.Store))
	request.Header.Set(headerOptions, strconv.QuoteToASCII(string(call.Options)))
	request.Header.Set("Content-Type", contentTypeBody)
	transport := &http.Transport{DialContext: c.dial, DisableKeepAlives: true, DisableCompression: true, ReadBufferSize: 64 << 10}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	switch {
	case err != nil && ctx.Err() != nil && sent.Load():
		return fmt.Errorf("%w (%w)", ErrLost, ctx.Err())
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return plain(err)
	}
	defer response.Body.Close()
	if response.Header.Get(headerProtocol) != protocol {
		return fmt.Errorf("%w on %s (HTTP status %s)", ErrForeign, c.Path, response.Status)
	}
	err = follow(response.Body, call.Out)
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxFrame)) // read the body to its end, so that the server can finish sending
	if errors.Is(err, ErrLost) && ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", ErrLost, ctx.Err())
	}
	return err
}

// The function "plain" converts an error to one of this package's errors. It is for errors that occur before the answer
// arrives.
func plain(err error) error {
	for _, ours := range []error{ErrNobody, ErrUntrusted, ErrUnsupported} {
		if errors.Is(err, ours) {
			return err
		}
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("control: %w", err)
	}
	return fmt.Errorf("%w (%w)", ErrLost, err)
}

func (c Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTime}
	to, err := d.DialContext(ctx, "unix", c.Path)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w on %s", ErrNobody, c.Path)
	}
	if err != nil {
		return nil, err
	}
	uid, err := peer(to)
	if err == nil && uid != 0 && uid != os.Geteuid() && !slices.Contains(c.Trust, uid) {
		err = fmt.Errorf("%w: the user with id %d listens on %s, and is neither root, nor you, nor the store's owner", ErrUntrusted, uid, c.Path)
	}
	if err != nil {
		to.Close()
		return nil, err
	}
	return to, nil
}
