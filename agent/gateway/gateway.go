package gateway

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/approvers/workflow/view"
)

// Callers changes the requests of callers. *workflow.Callers implements this interface.
type Callers interface {
	Propose(ctx context.Context, p workflow.CallerCall) (id string, again bool, err error)
	Claim(ctx context.Context, client approvers.Client, id, hash string) error
	Report(ctx context.Context, client approvers.Client, id, run string, state approvers.ExecutionState, text string) error
	Withdraw(ctx context.Context, client approvers.Client, id, reason string) error
	Answer(ctx context.Context, client approvers.Client, id string, question int, text string) error
	Watch(id string) (changed <-chan struct{}, stop func())
	PublishReceiptKey(ctx context.Context, id string, public []byte) error
	Mend(ctx context.Context, err error) bool
}

// Views reads the state of requests. *view.Reader implements this interface.
type Views interface {
	Caller(ctx context.Context, client, id string) (view.CallerRequest, error)
	ReceiptKeys(ctx context.Context) ([]settings.ReceiptKey, error)
}

var (
	_ Callers = (*workflow.Callers)(nil)
	_ Views   = (*view.Reader)(nil)
)

// Config configures a Gateway. All fields except Resource, Count and Now are required.
type Config struct {
	Callers Callers
	Views   Views
	Policy  func() *approvers.Policy // the policy in force
	Key     ReceiptKey               // signs receipts
	Log     *slog.Logger
	// Resource is the public address of the gateway. An OAuth access token must have this address, or the address of the
	// MCP endpoint below it, as its audience. If Resource is empty, the gateway refuses all access tokens.
	Resource string
	Now      func() time.Time                               // nil: time.Now
	Count    func(client, operation string, statusCode int) // counts answers; client may be ""; nil: answers are not counted
}

// Gateway is the HTTP handler of the API. Gateway is safe for concurrent use.
type Gateway struct {
	Config
	mux    *http.ServeMux
	flight flights
	wait   waits
	pace   paces
	tokens tokens
}

// New returns a gateway. New stores the public key for receipts, so that callers can verify receipts from the first
// request on.
func New(ctx context.Context, c Config) (*Gateway, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Count == nil {
		c.Count = func(string, string, int) {}
	}
	g := &Gateway{
		Config: c, mux: http.NewServeMux(), flight: flights{by: map[string]*flight{}}, wait: waits{of: map[string]int{}},
		pace: paces{next: map[string]time.Time{}}, tokens: tokens{resource: c.Resource, now: c.Now, issuers: map[string]*issuerKeys{}},
	}
	if err := c.Callers.PublishReceiptKey(ctx, c.Key.ID(), c.Key.Public()); err != nil {
		return nil, err
	}
	g.mux.HandleFunc("POST /v1/requests", g.client("create", g.create))
	g.mux.HandleFunc("GET /v1/requests/{id}", g.client("read", g.read))
	g.mux.HandleFunc("POST /v1/requests/{id}/claim", g.client("claim", g.claim))
	g.mux.HandleFunc("POST /v1/requests/{id}/outcome", g.client("outcome", g.outcome))
	g.mux.HandleFunc("POST /v1/requests/{id}/withdraw", g.client("withdraw", g.withdraw))
	g.mux.HandleFunc("POST /v1/requests/{id}/answer", g.client("answer", g.answer))
	g.mux.HandleFunc("GET /v1/openapi.json", g.open("description", g.description))
	g.mux.HandleFunc("GET /.well-known/jwks.json", g.open("keys", g.keys))
	g.mux.HandleFunc("GET "+resourcePath, g.open("metadata", g.metadata))
	g.mux.HandleFunc("GET "+resourcePath+"/{path...}", g.open("metadata", g.metadata))
	g.mux.HandleFunc("/", g.open("other", func(http.ResponseWriter, *http.Request) error {
		return notFound
	}))
	return g, nil
}

// ServeHTTP serves one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

// Waiting returns how many connections wait for a change.
func (g *Gateway) Waiting() int { return g.wait.all() }

// Limits that openapi.json does not state.
const (
	maxHeader  = 16 << 10
	maxBody    = 192 << 10        // arguments, summary and state, with escapes
	bodyWithin = 15 * time.Second // for reading a body
	sendWithin = 15 * time.Second // for sending an answer or an event
	idleWithin = 2 * time.Minute
)

// MaxConnections limits the open connections of all callers in total.
const MaxConnections = 8192

// Server returns the server for a gateway, without its listener. The server disconnects clients that send or read
// slowly. While more than half of MaxConnections are open, the gateway closes each connection after its next answer. So
// a client with many open connections does not keep other clients from connecting.
func Server(g *Gateway) *http.Server { return server(g, MaxConnections/2) }

func server(g *Gateway, crowded int64) *http.Server {
	var open atomic.Int64
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if open.Load() > crowded {
				w.Header().Set("Connection", "close")
			}
			if r.ContentLength != 0 {
				// If a handler does not read the body, for example because the token is wrong, package http reads the rest of
				// it before the answer. If setting the deadline fails, this has no time limit.
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin))
			}
			g.ServeHTTP(w, r)
		}),
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed, http.StateHijacked:
				open.Add(-1)
			}
		},
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleWithin, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(g.Log.Handler(), slog.LevelDebug),
	}
}

//go:embed openapi.json
var openAPI []byte

// Description returns the gateway's OpenAPI description.
func Description() []byte { return openAPI }

func (g *Gateway) description(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(openAPI)
	return sent(err)
}

// errSent means that an answer was not sent completely, so the connection is unusable.
var errSent = errors.New("the response could not be sent")

func sent(err error) error {
	if err != nil {
		return errSent
	}
	return nil
}

// recorder records the status code of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the wrapped writer.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// open serves a path for which a client needs no token.
func (g *Gateway) open(operation string, serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, "", operation, serve) }
}

// client serves a path for authenticated clients.
func (g *Gateway) client(operation string, serve func(http.ResponseWriter, *http.Request, *approvers.Client) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := g.admit(r)
		if err != nil {
			g.serve(w, r, c.Name, operation, func(http.ResponseWriter, *http.Request) error { return err })
			return
		}
		g.serve(w, r, c.Name, operation, func(w http.ResponseWriter, r *http.Request) error { return serve(w, r, c) })
	}
}

// admit is like Authenticate, but waits if the client sends its requests too fast.
func (g *Gateway) admit(r *http.Request) (*approvers.Client, error) {
	c, err := g.Authenticate(r)
	if err == nil {
		err = g.pace.pass(r.Context(), c.Name)
	}
	return c, err
}

// Authenticate returns the client to which a request's token belongs. If the token proves that the client acts for a
// person, the field ActsFor has the person's id. The error can be sent to the client as it is. The client is not nil, even
// if there is an error. The client is a pointer, because a connection that waits keeps copies of this large value on its
// stack.
func (g *Gateway) Authenticate(r *http.Request) (*approvers.Client, error) {
	policy, token := g.Policy(), tokenOf(r)
	if c, ok := policy.ClientOf(token); ok {
		return &c, nil
	}
	if strings.Count(token, ".") != 2 { // not a JWT
		return &approvers.Client{}, unauthorized
	}
	c, err := g.tokens.clientOf(r.Context(), policy, token)
	if errors.Is(err, errToken) {
		g.Log.Debug("a token was refused", "client", c.Name, "why", err)
		return &c, unauthorized
	}
	return &c, err
}

var notFound = problem{name: "not_found", status: http.StatusNotFound, title: "There is nothing at this address."}

var unauthorized = problem{name: "unauthorized", status: http.StatusUnauthorized, title: "The token is missing, or belongs to no client."}

// tokenOf returns the token of a request, or "". If a request has several tokens, tokenOf returns "".
func tokenOf(r *http.Request) string {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return ""
	}
	scheme, token, ok := strings.Cut(given[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Trim(token, " ")
}

// serve calls the handler of a request, and sends the handler's error as a problem.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, client, operation string, serve func(http.ResponseWriter, *http.Request) error) {
	out := &recorder{ResponseWriter: w}
	control := http.NewResponseController(w)
	// A handler that waits sets the deadline again. If setting the deadline fails, the write has no deadline.
	_ = control.SetWriteDeadline(time.Now().Add(sendWithin))
	out.Header().Set("Cache-Control", "no-store")
	out.Header().Set("X-Content-Type-Options", "nosniff")
	g.ended(out, r, client, operation, serve(out, r))
}

// ended sends the error of a handler as a problem, and counts the answer. This is not a part of serve, because the stack
// of a connection that waits should be small.
func (g *Gateway) ended(out *recorder, r *http.Request, client, operation string, err error) {
	var p problem
	switch {
	case err == nil, errors.Is(err, errSent), out.status != 0:
	case r.Context().Err() != nil:
		out.status = 499 // the client has disconnected; 499 is the usual code for this in logs and metrics
	default:
		if !errors.As(err, &p) {
			p = problemOf(err)
			if p.status >= http.StatusInternalServerError && p.name != "paused" {
				g.Log.Error("a caller's request could not be handled",
					"client", client, "request", r.PathValue("id"), "operation", operation, "error", err)
			}
		}
		if p.status == http.StatusUnauthorized {
			out.Header().Set("WWW-Authenticate", g.challenge(r))
		}
		p.write(out)
	}
	g.Count(client, operation, out.status)
	g.Log.Debug("answered a caller", "client", client, "request", r.PathValue("id"), "operation", operation, "status", out.status)
}

// challenge returns the header that says how to authenticate, and where to get a token (RFC 6750, RFC 9728).
func (g *Gateway) challenge(r *http.Request) string {
	c := `Bearer realm="countersign"`
	if r.Header.Get("Authorization") != "" {
		c += `, error="invalid_token"`
	}
	if at := resourceMetadata(g.resource(r.URL.Path)); at != "" {
		c += `, resource_metadata="` + at + `"`
	}
	return c
}

// flights has the requests that are currently being stored, by client and key.
type flights struct {
	mu sync.Mutex
	by map[string]*flight
}

// flight is one request that is being stored. The channel landed is closed when the request is stored or has failed.
type flight struct{ landed chan struct{} }

// inFlightFor is how long a request waits while another request with the same key is being stored.
const inFlightFor = 5 * time.Second

// begin waits until no other request with the same key is being stored, and registers the request. The caller must
// call end when the request is stored or has failed.
func (f *flights) begin(ctx context.Context, key string) (end func(), err error) {
	patience := time.NewTimer(inFlightFor)
	defer patience.Stop()
	for {
		f.mu.Lock()
		other, taken := f.by[key]
		if !taken {
			own := &flight{landed: make(chan struct{})}
			f.by[key] = own
			f.mu.Unlock()
			return func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				delete(f.by, key)
				close(own.landed)
			}, nil
		}
		f.mu.Unlock()
		select {
		case <-other.landed:
		case <-patience.C:
			return nil, problem{name: "key_in_flight", status: http.StatusConflict, title: "Another request with this key is being stored.", again: time.Second}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
