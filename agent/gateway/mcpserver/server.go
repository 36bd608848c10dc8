package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent/gateway"
	"countersign/agent/jsonobject"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
)

// Callers has the methods with which the server changes a caller's requests. *workflow.Callers implements this
// interface.
type Callers interface {
	Propose(ctx context.Context, p workflow.CallerCall) (id string, again bool, err error)
	Start(ctx context.Context, client approvers.Client, id string) error
	Delivered(ctx context.Context, client approvers.Client, id string) error
	Undelivered(ctx context.Context, client approvers.Client, id string) error
	HungUp(ctx context.Context, client approvers.Client, after time.Duration) error
	Withdraw(ctx context.Context, client approvers.Client, id, reason string) error
	Answer(ctx context.Context, client approvers.Client, id string, question int, text string) error
	Hold(client approvers.Client, id string) (changed <-chan struct{}, stop func())
}

// Views reads stored data about clients and requests. *view.Reader implements this interface.
type Views interface {
	Patience(ctx context.Context, client string) (time.Duration, error)
	CallerPending(ctx context.Context, client string) ([]string, error)
}

var (
	_ Callers = (*workflow.Callers)(nil)
	_ Views   = (*view.Reader)(nil)
)

// Config configures a Server. All fields except Tell and Now are required.
type Config struct {
	Gateway  *gateway.Gateway
	Callers  Callers
	Views    Views
	Policy   func() *approvers.Policy // the policy in force
	Tools    func() []workflow.Tool   // all tools, sorted by name
	Version  string                   // the version of Countersign
	Stopping <-chan struct{}          // closed when the process is about to end
	Log      *slog.Logger
	Tell     func(what string) // sends a message to Server.Hear of the other replicas; nil: there are none
	Now      func() time.Time  // nil: time.Now
}

// Server serves MCP. Server is safe for concurrent use.
type Server struct {
	Config
	http *mcp.StreamableHTTPHandler
	own  map[string]ownTool
	held held
	ends deliveries
}

// maxBody limits the body of a request. The gateway has the same limit.
const maxBody = 192 << 10

// Attach adds a server to a gateway, at the path /mcp.
func Attach(c Config) (*Server, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Tell == nil {
		c.Tell = func(string) {}
	}
	s := &Server{Config: c, own: ownTools(), held: held{by: map[heldKey]*exchange{}}, ends: deliveries{by: map[string]*delivery{}}}
	can := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	can.AddExtension(tasksExtension, nil)
	can.AddExtension(approvalExtension, nil)
	server := mcp.NewServer(&mcp.Implementation{Name: "countersign", Title: "Countersign", Version: c.Version}, &mcp.ServerOptions{
		Capabilities: can, Instructions: instructions,
	})
	server.AddReceivingMiddleware(s.receive)
	if err := s.addTaskMethods(server); err != nil {
		return nil, err
	}
	s.http = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: maxBody,
		// The SDK's check is off, because it would refuse the requests of a proxy on this machine that keeps the public
		// host name. The server needs no such check, because a page in a browser has no token.
		DisableLocalhostProtection: true,
	})
	c.Gateway.Handle(gateway.MCPPath, "mcp", s.serve)
	return s, nil
}

// instructions is a text for the client's model.
const instructions = `Some of these tools wait until people have approved the call. A result with isError may say that a request still waits: ` +
	`then call the same tool again with the same arguments, or countersign.result with the request's id. The call is not made twice by that. ` +
	`Never say that a call has run unless its result says so.`

// exchange is one HTTP request. An HTTP request carries one message, or several messages in old versions of the
// protocol.
type exchange struct {
	client  approvers.Client
	version string         // version of the protocol, from the header
	id      string         // id of the message, in the message's notation
	task    bool           // the message requests a task as in the protocol 2025-11-25
	taskIDs jsontext.Value // ids of the tasks of a subscriptions/listen message
	out     *answer
	gone    <-chan struct{} // closed when the connection has ended
	dropped chan struct{}   // closed when the client has cancelled the call

	drop     sync.Once
	mu       sync.Mutex
	answered []string // the ids of requests whose last state is in the answer
	ended    bool
}

// answers records that the answer of exchange x contains the last state of a request.
func (s *Server) answers(x *exchange, id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return
	}
	s.ends.begin(id)
	x.answered = append(x.answered, id)
}

// hasAnswer reports whether the answer of the exchange contains the last state of a request.
func (x *exchange) hasAnswer(id string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Contains(x.answered, id)
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// Headers of the protocol.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
)

// serve serves one HTTP request of a client.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, client *approvers.Client) error {
	x := &exchange{client: *client, version: r.Header.Get(versionHeader), gone: r.Context().Done(), dropped: make(chan struct{})}
	x.out = &answer{ResponseWriter: w, gone: x.gone}
	if origin := r.Header.Get("Origin"); origin != "" && (!local(origin) || !local("http://"+r.Host)) {
		// Without this check, a page from another machine could call this server with DNS rebinding.
		http.Error(w, "pages of other machines can't call", http.StatusForbidden)
		return nil
	}
	if r.Method == http.MethodPost {
		end, refused, err := s.begin(x, r)
		defer end()
		if refused || err != nil {
			return err
		}
	}
	x.out.Header().Set("X-Accel-Buffering", "no") // for proxies that would buffer the answer
	s.http.ServeHTTP(x.out, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
	s.delivered(r.Context(), x)
	return nil
}

// begin reads the message of a POST request before the SDK reads it. If begin has answered the message, refused is true.
// The caller must call end after the answer. begin is not a part of serve, because the stack of a connection that waits
// should be small.
func (s *Server) begin(x *exchange, r *http.Request) (end func(), refused bool, err error) {
	var body []byte
	var m message
	end = func() {}
	apart(func() {
		if body, err = gateway.ReadBody(x.out.ResponseWriter, r); err == nil {
			m = peek(body)
		}
	})
	if err != nil {
		return end, false, err
	}
	batch, err := s.batch(r.Context(), x, body)
	if err != nil {
		return end, false, err
	}
	r.Body = io.NopCloser(bytes.NewReader(x.out.keepIDs(body, batch, m)))
	if name := r.Header.Get("Mcp-Name"); modern(x.version) && strings.HasPrefix(m.method, "tasks/") && name != "" && name != m.about {
		return end, true, mismatch(x.out, m)
	}
	session := r.Header.Get(sessionHeader)
	switch {
	case m.method == "initialize":
		// The server has no sessions. The session id distinguishes the processes of one client, so that a
		// cancellation finds the right call.
		x.out.Header().Set(sessionHeader, rand.Text())
	case m.method == "notifications/cancelled":
		if key := (heldKey{x.client.Name, session, m.cancels}); !s.dropped(r.Context(), key) {
			s.tell(key)
		}
	case m.id != "" && session != "":
		end = s.held.add(heldKey{x.client.Name, session, m.id}, x)
	}
	x.id, x.taskIDs, x.task = m.id, m.listens, m.task && !modern(x.version)
	return end, false, nil
}

// maxBatch limits the messages of a batch.
const maxBatch = 100

// batch returns the messages of a batch, which only the oldest version of the protocol has. If the body is not a batch,
// batch returns nil. Each message of a batch counts as a request of the client.
func (s *Server) batch(ctx context.Context, x *exchange, body []byte) (messages []json.RawMessage, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte{'['}) {
		return nil, nil
	}
	if err := json.Unmarshal(body, &messages); err != nil {
		return nil, gateway.Malformed("the batch is not valid JSON: %s", err)
	}
	if len(messages) > maxBatch {
		return nil, gateway.Malformed("a batch may have at most %d messages", maxBatch)
	}
	for n := 1; n < len(messages) && err == nil; n++ {
		err = s.Gateway.Pace(ctx, x.client.Name)
	}
	return messages, err
}

// local reports whether the host of a URL is this machine.
func local(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// mismatch refuses a message whose header and body name different tasks. For tools, the SDK makes this check.
func mismatch(w http.ResponseWriter, m message) error {
	id := jsontext.Value(m.id)
	if id == nil {
		id = jsontext.Value("null")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"the header Mcp-Name is not the id of the task"}}`, id, mcp.CodeHeaderMismatch)
	return nil
}

// delivered is called after the answer of an exchange. If the answer was written to the connection, and the client
// has not cancelled the call, delivered records the delivery of all last states in the answer.
func (s *Server) delivered(ctx context.Context, x *exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer func() { x.ended = true }()
	defer s.ends.end(x.answered)
	select {
	case <-x.dropped:
		return
	default:
	}
	if x.out.failed {
		return
	}
	for _, id := range x.answered {
		s.recordDelivery(ctx, x, id)
	}
}

// recordDelivery records that the client has the last state of a request.
func (s *Server) recordDelivery(ctx context.Context, x *exchange, id string) {
	if err := s.Callers.Delivered(context.WithoutCancel(ctx), x.client, id); err != nil {
		s.Log.ErrorContext(ctx, "the delivery of a result to a caller could not be recorded; the caller may get the result again", "client", x.client.Name, "request", id, "error", err)
	}
}

// answer writes an answer in parts. Sending a part has the same time limit as sending a whole answer.
type answer struct {
	http.ResponseWriter
	gone   <-chan struct{} // closed when the connection has ended. A client may end the connection as soon as it has the answer
	failed bool            // a part of the answer could not be sent
	ids    []keptID        // see keepIDs
}

// keptID is a message's id in the notation of the message, and the id that the SDK gets instead.
type keptID struct{ id, inSDK []byte }

// plainID matches the numbers that the SDK returns as they are.
var plainID = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,14})$`)

// keepIDs makes sure that the answer has the ids of the messages in the notation of the messages. The SDK decodes some
// numbers as floating-point numbers. keepIDs returns the body with other ids in place of such ids, and Write changes the
// ids back. If the body is not a batch, m is its message.
func (a *answer) keepIDs(body []byte, batch []json.RawMessage, m message) []byte {
	if batch == nil {
		return a.keepID(body, m.id)
	}
	parts := make([][]byte, len(batch))
	for i, one := range batch {
		parts[i] = a.keepID(one, string(object(one)["id"]))
	}
	if a.ids == nil {
		return body
	}
	return slices.Concat([]byte{'['}, bytes.Join(parts, []byte{','}), []byte{']'})
}

func (a *answer) keepID(raw []byte, id string) []byte {
	if id == "" || !strings.Contains("-0123456789", id[:1]) || plainID.MatchString(id) {
		return raw
	}
	o, err := jsonobject.Read(raw)
	if err != nil {
		return raw
	}
	kept := keptID{[]byte(id), strconv.AppendQuote(nil, rand.Text())}
	a.ids = append(a.ids, kept)
	return o.With("id", kept.inSDK).Bytes()
}

func (a *answer) Write(b []byte) (int, error) {
	select {
	case <-a.gone:
		a.failed = true
	default:
	}
	gateway.Extend(a.ResponseWriter)
	sent := b
	for _, kept := range a.ids {
		sent = bytes.ReplaceAll(sent, kept.inSDK, kept.id)
	}
	if _, err := a.ResponseWriter.Write(sent); err != nil {
		a.failed = true
		return 0, err
	}
	return len(b), nil
}

// FlushError lets http.ResponseController flush the answer.
func (a *answer) FlushError() error {
	err := http.NewResponseController(a.ResponseWriter).Flush()
	a.failed = a.failed || err != nil && !errors.Is(err, http.ErrNotSupported)
	return err
}

// message has the fields of an MCP message that the server reads before the SDK reads it.
type message struct {
	id, method string         // id in the notation of the message
	cancels    string         // id of the request that the message cancels
	about      string         // id of the task that the message is about
	task       bool           // the message requests a task as in the protocol 2025-11-25
	listens    jsontext.Value // ids of the tasks about which the client asks for notifications
}

// peek reads a body with a single message. For any other body, peek returns the zero value.
func peek(body []byte) (m message) {
	of := object(body)
	m.id, m.method = string(of["id"]), text(of["method"])
	params := object(of["params"])
	m.cancels, m.about, m.task = string(params["requestId"]), text(params["taskId"]), params["task"].Kind() == '{'
	m.listens = object(params["notifications"])["taskIds"]
	return m
}

// object returns the values of a JSON object by name, with their exact bytes. As in the SDK, the last value counts if a
// name occurs twice, and text after the object makes no difference. For invalid JSON, object returns nil.
func object(raw []byte) map[string]jsontext.Value {
	o, err := jsonobject.Read(raw, jsontext.AllowDuplicateNames(true))
	if err != nil && !errors.Is(err, jsonobject.ErrMore) {
		return nil
	}
	out := map[string]jsontext.Value{}
	for _, m := range o {
		out[m.Name] = jsontext.Value(m.Value)
	}
	return out
}

// text returns the value of a JSON string, or "".
func text(raw jsontext.Value) string {
	if raw.Kind() != '"' {
		return ""
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ""
	}
	return string(s)
}

// held has the calls that are currently held, so that a client can cancel its call. (In the protocol since
// 2026-07-28, a client cancels a call by ending the connection.)
type held struct {
	mu sync.Mutex
	by map[heldKey]*exchange
}

type heldKey struct{ Client, Session, ID string }

// remember is the time after an answer during which the server accepts a cancellation of the call. The client may
// have sent the cancellation before it received the answer.
const remember = time.Minute

func (h *held) add(key heldKey, x *exchange) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by[key] = x
	remove := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.by[key] == x {
			delete(h.by, key)
		}
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if len(x.answered) == 0 {
			remove()
		} else {
			time.AfterFunc(remember, remove)
		}
	}
}

// dropped handles the cancellation of a call by the client. If the answer was already sent, the workflow must treat
// the answer as not delivered, so dropped records this. If this process does not hold the call, dropped returns false.
func (s *Server) dropped(ctx context.Context, key heldKey) bool {
	s.held.mu.Lock()
	x := s.held.by[key]
	s.held.mu.Unlock()
	if x == nil {
		return false
	}
	x.drop.Do(func() { close(x.dropped) })
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended {
		return true
	}
	for _, id := range x.answered {
		if err := s.Callers.Undelivered(context.WithoutCancel(ctx), x.client, id); err != nil {
			s.Log.ErrorContext(ctx, "a failed delivery of a result to a caller could not be recorded; if the caller repeats the call, the call becomes a new request", "client", x.client.Name, "request", id, "error", err)
		}
	}
	return true
}

const (
	cancelledElsewhere = "cancelled " // the beginning of a message to other replicas about a cancellation
	longestKey         = 1000         // limit of such a message, in bytes
)

// tell tells the other replicas that a client has cancelled a call that this process does not hold.
func (s *Server) tell(key heldKey) {
	raw, err := json.Marshal(key)
	if err == nil && key.Session != "" && len(raw) <= longestKey {
		s.Tell(cancelledElsewhere + string(raw))
	}
}

// Hear handles a message from the server of another replica. For any other message, Hear returns false.
func (s *Server) Hear(what string) bool {
	raw, ok := strings.CutPrefix(what, cancelledElsewhere)
	if !ok {
		return false
	}
	var key heldKey
	if err := json.Unmarshal([]byte(raw), &key); err != nil {
		s.Log.Debug("a message from another replica can't be read", "error", err)
		return true
	}
	go s.dropped(context.Background(), key) // the messages of other replicas must not wait for the store
	return true
}

// deliveries has the requests whose last state is being sent to their callers. A caller may repeat its call as soon
// as it has the answer. The repetition waits until the answer is recorded as delivered, so that the workflow treats
// the repetition as a new request.
type deliveries struct {
	mu sync.Mutex
	by map[string]*delivery // by request
}

type delivery struct {
	answers int           // number of answers that are being sent
	ended   chan struct{} // closed when no answer is being sent
}

func (d *deliveries) begin(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by[id] == nil {
		d.by[id] = &delivery{ended: make(chan struct{})}
	}
	d.by[id].answers++
}

func (d *deliveries) end(ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if one := d.by[id]; one != nil {
			if one.answers--; one.answers == 0 {
				delete(d.by, id)
				close(one.ended)
			}
		}
	}
}

// of returns a channel that is closed when no answer about the request is being sent.
func (d *deliveries) of(id string) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one := d.by[id]; one != nil {
		return one.ended
	}
	none := make(chan struct{})
	close(none)
	return none
}
