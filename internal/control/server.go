package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// Server runs tasks for connected clients.
type Server struct {
	// Do runs a task for a user of this machine, and writes its output to c.Out. Do returns nil on success.
	Do      func(ctx context.Context, uid int, c Call) *Failure
	Version string
	Log     *slog.Logger
}

const (
	headerTime = 20 * time.Second // time that a client has to send the header of its request
	stallTime  = 10 * time.Minute // the longest time between two outputs that the client reads, or between two inputs that it sends
)

// HTTP returns the HTTP server for the listener.
func (s Server) HTTP() *http.Server {
	slots := make(chan struct{}, maxTasks)
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if a, ok := r.Context().Value(peerKey{}).(who); ok && a.asked != nil {
				a.asked()
			}
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				s.serve(w, r)
			case <-r.Context().Done(): // the client disconnected
			}
		}), ReadHeaderTimeout: headerTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			w := who{}
			w.uid, w.err = peer(c)
			if c, ok := c.(interface{ asked() }); ok {
				w.asked = c.asked
			}
			return context.WithValue(ctx, peerKey{}, w)
		},
	}
}

// peerKey is the context key of a connection's peer.
type peerKey struct{}

type who struct {
	uid   int
	err   error
	asked func() // marks the connection as having a request; nil: no mark needed
}

func (s Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(headerProtocol, protocol)
	w.Header().Set(headerVersion, s.Version)
	w.Header().Set("Content-Type", contentTypeBody)
	w.Header().Set("Connection", "close")
	rc := http.NewResponseController(w)
	out := &steady{w, rc, stallTime}
	body := bufio.NewWriterSize(out, 64<<10)
	f := s.do(r, rc, framed{body}, func(d time.Duration) { out.stall = d })
	if err := errors.Join(outcome(body, f), body.Flush()); err != nil {
		s.Log.Warn("the outcome of a task did not reach the client that asked for it", "task", taskOf(r), "error", err)
	}
}

func taskOf(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, pathPrefix) }

// codeRefused is the exit code of a command that could not run.
const codeRefused = 3

// The function "refused" returns the outcome of a task that was not started.
func refused(format string, args ...any) *Failure {
	return &Failure{Code: codeRefused, Text: fmt.Sprintf(format, args...)}
}

func (s Server) do(r *http.Request, rc *http.ResponseController, out io.Writer, hurry func(time.Duration)) *Failure {
	peer, _ := r.Context().Value(peerKey{}).(who)
	switch {
	case peer.err != nil:
		return refused("the bot can't see who you are: %v", peer.err)
	case peer.uid != 0 && peer.uid != os.Geteuid():
		s.Log.Warn("another user was turned away at the control socket", "uid", peer.uid)
		return refused("only root and the user with id %d, who runs the bot, may use this socket, and you have id %d", os.Geteuid(), peer.uid)
	case r.Header.Get(headerProtocol) != protocol:
		return refused("the bot (%s) and this program (%s) have versions that don't understand each other: use the bot's own program, or restart the bot", s.Version, r.Header.Get(headerVersion))
	case r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, pathPrefix):
		return refused("only POST %sNAME is supported here", pathPrefix)
	}
	options, err := strconv.Unquote(r.Header.Get(headerOptions))
	path, pathErr := strconv.Unquote(r.Header.Get(headerStore))
	if err != nil || pathErr != nil {
		return refused("the bot can't read the options of the request")
	}
	return s.Do(r.Context(), peer.uid, Call{
		Task: taskOf(r), Options: []byte(options), Store: path, Version: r.Header.Get(headerVersion), In: patient{r.Body, rc}, Out: out, Hurry: hurry,
	})
}

// steady writes to a client as long as the client keeps reading.
type steady struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
}

func (s *steady) Write(p []byte) (int, error) {
	if err := s.rc.SetWriteDeadline(time.Now().Add(s.stall)); err != nil {
		return 0, err
	}
	n, err := s.w.Write(p)
	if err == nil {
		err = s.rc.Flush()
	}
	return n, err
}

// patient reads from a client as long as the client keeps sending. Between two reads, no deadline is set, because a
// deadline that passes between reads looks like a disconnected client.
type patient struct {
	r  io.Reader
	rc *http.ResponseController
}

func (p patient) Read(b []byte) (int, error) {
	if err := p.rc.SetReadDeadline(time.Now().Add(stallTime)); err != nil {
		return 0, err
	}
	n, err := p.r.Read(b)
	if reset := p.rc.SetReadDeadline(time.Time{}); err == nil {
		err = reset
	}
	return n, err
}
