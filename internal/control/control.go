// Package control carries tasks over a Unix socket, from a command to the process that can do them.
//
// It promises:
//
//   - Only the user that runs the server, and root, are heard. The socket has mode 0600 from the moment at which it exists, and the kernel
//     is asked who connected. A client, too, asks the kernel who answers, and tells nothing to anybody whom it does not trust.
//   - A socket that nobody listens on any more is replaced, one that somebody listens on never is.
//   - A task's output is streamed, and its outcome follows. Where the connection ends without an outcome the client gets ErrLost: it
//     may have been done or not.
//   - A task's context ends with its client.
//   - Whoever connects and then says nothing, too much, or nonsense is cut off, and takes nothing from others.
//
// What goes over the socket is HTTP: the task's name in the path, its options in a header, its input as the body. The answer's body is a row
// of frames (see frame.go).
package control

import (
	"encoding/json"
	"errors"
	"io"
	"time"
)

// Errors of a client.
var (
	// ErrNobody says that nobody listens on the socket.
	ErrNobody = errors.New("control: nobody listens")
	// ErrLost says that the server went away without an outcome.
	ErrLost = errors.New("control: the connection ended before the outcome")
	// ErrOutput says that the client could not pass on what the server sent.
	ErrOutput = errors.New("control: the output can't be written")
	// ErrUntrusted says that the socket belongs to a user who has no business there.
	ErrUntrusted = errors.New("control: the socket is in wrong hands")
	// ErrForeign says that something else than this protocol's server listens.
	ErrForeign = errors.New("control: another program listens")
)

// Errors of a socket.
var (
	// ErrLive says that another process listens on the socket already.
	ErrLive = errors.New("control: somebody listens already")
	// ErrPath says that there can't be a socket at the path.
	ErrPath = errors.New("control: no path for a socket")
	// ErrUnsupported says that this system can't tell who connects to a socket.
	ErrUnsupported = errors.New("control: this system does not say who connects to a Unix socket")
)

// Call is one task that is asked for.
type Call struct {
	Task    string
	Options json.RawMessage
	Store   string    // path of the store that the client means
	Version string    // of the client
	In      io.Reader // nil: none
	Out     io.Writer
	Hurry   func(time.Duration) // set by the server: has the client take each piece of output within that time
}

// Failure is how a task ended that did not end well.
type Failure struct {
	Code int    `json:"code"` // the exit code of the command
	Text string `json:"error"`
}

func (f *Failure) Error() string { return f.Text }

// The headers and the version of the protocol.
const (
	protocol        = "1"
	headerProtocol  = "Countersign-Protocol"
	headerVersion   = "Countersign-Version"
	headerStore     = "Countersign-Store"
	headerOptions   = "Countersign-Options"
	pathPrefix      = "/tasks/"
	maxHeader       = 64 << 10 // options and all
	maxConnections  = 128
	maxPath         = 107 // a Unix socket's address has 108 bytes on Linux, with the zero at the end
	contentTypeBody = "application/octet-stream"
)
