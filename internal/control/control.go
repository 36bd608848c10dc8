// Package control lets a command run tasks in another process, over a Unix socket.
//
//   - The server serves only root and the user that runs the server. The socket is created with mode 0600, and the
//     server asks the kernel which user connected. The client also asks the kernel which user runs the server. The
//     client sends no data to a user that it does not trust.
//   - The server and the client refuse a socket in a directory in which other users could replace the socket.
//   - A new server replaces a socket on which no process listens. A server never replaces a socket in use.
//   - The server streams a task's output, and then sends its outcome. If the connection ends without an outcome, the
//     client gets ErrLost. In this case, the client can't find out whether the task is done.
//   - When the client disconnects, the task's context ends.
//   - A client is disconnected if it sends no request, a header that is too large, or invalid data. A client of this
//     kind does not delay other clients.
//
// The protocol is HTTP. The task's name is in the path, its options are in a header, and its input is in the body. The
// body of the answer is a sequence of frames (see frame.go).
package control

import (
	"encoding/json"
	"errors"
	"io"
	"time"
)

// The errors that a client returns.
var (
	// ErrNobody means that no process listens on the socket.
	ErrNobody = errors.New("control: no process listens on the socket")
	// ErrLost means that the connection ended without an outcome. If the client's context ended first, the error also is
	// the error of the context.
	ErrLost = errors.New("control: the connection ended before the outcome")
	// ErrOutput means that the client could not write the task's output.
	ErrOutput = errors.New("control: the output can't be written")
	// ErrUntrusted means that the socket belongs to an untrusted user.
	ErrUntrusted = errors.New("control: the socket belongs to an untrusted user")
	// ErrForeign means that another program listens on the socket.
	ErrForeign = errors.New("control: another program listens")
)

// The errors that Listen returns. A client also returns ErrPath and ErrUnsupported.
var (
	// ErrLive means that another process already listens on the socket.
	ErrLive = errors.New("control: another process already listens on the socket")
	// ErrPath means that the path can't be used for a socket.
	ErrPath = errors.New("control: this path can't be used for a socket")
	// ErrUnsupported means that this system can't say which user connects to a socket.
	ErrUnsupported = errors.New("control: this system does not say who connects to a Unix socket")
)

// Call is one requested task.
type Call struct {
	Task    string
	Options json.RawMessage
	Store   string    // path of the store that the client expects
	Version string    // version of the client
	In      io.Reader // the task's input; nil: no input
	Out     io.Writer
	Hurry   func(time.Duration) // set by the server: limits the time that the client has to take each piece of output
}

// Failure is the outcome of a task that failed.
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
	maxHeader       = 64 << 10 // maximum size of a request's header in bytes, with the options
	maxTasks        = 128      // maximum number of tasks at the same time; further tasks wait
	maxWaiting      = 512      // maximum number of connections that have sent no request yet
	maxPath         = 107      // a Unix socket's address has 108 bytes on Linux, including the final zero
	contentTypeBody = "application/octet-stream"
)
