package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"countersign/config"
	"countersign/internal/redact"
)

// session is one connection to a server.
type session struct {
	server  *server
	tap     *tap
	process *process // set for a server that is a program
	carrier *carrier // set for a server with an address
	sdk     *sdk.ClientSession
	done    chan struct{} // closed when the connection has ended
	ctx     context.Context
	cancel  context.CancelFunc

	changes atomic.Int64 // number of events that may have changed the list

	listing sync.Mutex
	page    atomic.Pointer[json.RawMessage] // the page of the list that was received last
	known   map[string]json.RawMessage
	seen    int64 // the value of the field changes when the list was read last
	readAt  time.Time
}

// legacyVersion is the newest protocol version that uses the method initialize for the handshake.
const legacyVersion = "2025-11-25"

// dial connects to the server and performs the handshake.
func (s *server) dial(ctx context.Context) (*session, error) {
	ses := &session{server: s, done: make(chan struct{})}
	change := func() {
		ses.changes.Add(1)
		s.nudge()
	}
	s.readSecrets()
	ses.tap = newTap(s.log, *s.secrets.Load(), s.MaxResult, change, func(page json.RawMessage) { ses.page.Store(&page) })
	transport, err := ses.transport(change)
	if err != nil {
		return nil, err
	}
	ses.ctx, ses.cancel = context.WithCancel(context.WithoutCancel(ctx))
	client := sdk.NewClient(&sdk.Implementation{Name: "countersign", Version: s.version}, &sdk.ClientOptions{
		Logger: slog.New(slog.DiscardHandler),
		Capabilities: &sdk.ClientCapabilities{
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}},
		},
		ElicitationHandler:     ses.elicit,
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {}, // unused, because the tap handles the notification
	})
	var options sdk.ClientSessionOptions
	if s.legacy {
		options.ProtocolVersion = legacyVersion
	}
	within, cancel := context.WithTimeout(ctx, s.limits.start)
	defer cancel()
	ses.sdk, err = client.Connect(within, transport, &options)
	if err != nil {
		err = ses.whyNot(within, err)
		ses.cancel()
		if ses.process != nil {
			ses.process.end()
		}
		return nil, err
	}
	go func() {
		_ = ses.sdk.Wait() // the error is ignored, because the tap and the process have the reason for the end
		close(ses.done)
	}()
	return ses, nil
}

// transport creates the transport to the server.
func (ses *session) transport(broken func()) (sdk.Transport, error) {
	s := ses.server
	env, err := s.expand("env", s.Env)
	if err != nil {
		return nil, err
	}
	if len(s.Command) > 0 {
		ses.process, err = start(s.Command, s.Dir, env, ses.tap, s.log, s.limits)
		if err != nil {
			return nil, err
		}
		return ses.process, nil
	}
	headers, err := s.expand("headers", s.Headers)
	if err != nil {
		return nil, err
	}
	address, err := s.expand("url", map[string]string{"url": s.URL})
	if err != nil {
		return nil, err
	}
	sent := http.Header{}
	for name, value := range headers {
		sent.Set(name, value)
	}
	if secret := s.OAuth != nil || len(headers) > 0; secret && openly(address["url"]) {
		return nil, fmt.Errorf("servers.%s.url: it would send a secret without encryption; it must begin with https://", s.Name)
	}
	carrier, client, plain, err := newCarrier(s.Server, address["url"], sent, ses.tap, s.limits)
	if err != nil {
		return nil, err
	}
	carrier.broken = broken
	ses.carrier = carrier
	out := &sdk.StreamableClientTransport{Endpoint: address["url"], HTTPClient: client, MaxRetries: 3, MaxEventSize: s.limits.message}
	if s.OAuth == nil {
		return out, nil
	}
	o, err := s.expand("oauth", map[string]string{"issuer": s.OAuth.Issuer, "id": s.OAuth.ClientID, "secret": s.OAuth.ClientSecret})
	if err != nil {
		return nil, err
	}
	out.OAuthHandler, err = extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		HTTPClient: plain,
		Credentials: &oauthex.ClientCredentials{
			Issuer: o["issuer"], ClientID: o["id"], ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: o["secret"]},
		},
	})
	return out, err
}

// openly reports whether requests to an address go over the network without encryption.
func openly(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback())
}

// expand replaces ${NAME} in the policy's values by environment variables. It also registers the values of the
// variables as secrets, which are masked in all output of this process. See also secretsOf.
func (s *server) expand(key string, values map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for name, text := range values {
		value, err := config.Expand(text, s.lookup)
		if err != nil {
			return nil, fmt.Errorf("servers.%s.%s: %w; set it where this program is started", s.Name, key, err)
		}
		for _, variable := range config.Variables(text) {
			if secret, ok := s.lookup(variable); ok {
				redact.Secrets(secret)
			}
		}
		out[name] = value
	}
	return out, nil
}

// whyNot returns an error that explains a failed handshake to the operator.
func (ses *session) whyNot(ctx context.Context, err error) error {
	var left bool
	if ses.process != nil {
		select {
		case <-ses.process.ended:
			left = true
		default:
		}
	}
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the server did not finish the handshake within %s", ses.server.limits.start)
	case left:
		return errors.New("the program ended before the handshake; what it wrote to its standard error is in the log")
	}
	if why := ses.refused(); why != "" {
		return errors.New(why)
	}
	return errors.New("there was no handshake: " + line(err.Error()))
}

// refused returns advice for the operator if the server has refused a request. Otherwise, refused returns "".
func (ses *session) refused() string {
	if ses.carrier == nil {
		return ""
	}
	return statusHint(ses.carrier.refused.Load(), ses.server.Server)
}

func statusHint(status int64, s config.Server) string {
	switch {
	case status == http.StatusUnauthorized && s.OAuth != nil:
		return "the server answers 401: it rejects the token from its issuer; check oauth in the policy, and the scopes of the client at the issuer"
	case status == http.StatusUnauthorized && len(s.Headers) == 0:
		return "the server answers 401: it requires authentication; set oauth or the header Authorization in the policy"
	case status == http.StatusUnauthorized:
		return "the server answers 401: it rejects the token; set the variable that headers names to a valid one"
	case status == http.StatusForbidden:
		return "the server answers 403: the token may not do this; give it the permission, or name another one in headers"
	}
	return ""
}

// end ends the connection, and also the server's program.
func (ses *session) end() {
	ses.cancel()
	if ses.process != nil {
		ses.process.end()
	}
	go func() { _ = ses.sdk.Close() }() // the call also causes done to be closed
	t := time.NewTimer(3 * ses.server.limits.soft)
	defer t.Stop()
	select {
	case <-ses.done:
	case <-t.C:
	}
}

func (ses *session) alive() bool {
	select {
	case <-ses.done:
		return false
	default:
		return ses.ctx.Err() == nil && !ses.forgotten()
	}
}

// forgotten reports whether the server does not know the session any more.
func (ses *session) forgotten() bool {
	return ses != nil && ses.carrier != nil && ses.carrier.lost.Load()
}

// lost returns the error for a connection that ended, but not by the client.
func (ses *session) lost() error {
	if why := ses.refused(); why != "" {
		return errors.New(why)
	}
	if ses.process != nil {
		return errors.New("the program ended or closed the connection")
	}
	return errors.New("the connection ended")
}

func (ses *session) protocol() string {
	return line(ses.sdk.InitializeResult().ProtocolVersion)
}

// stale reports whether the server's list may have changed since the client last read it.
func (ses *session) stale() bool {
	ses.listing.Lock()
	defer ses.listing.Unlock()
	return ses.changes.Load() != ses.seen
}

// probe sends a ping. If the server does not answer the ping, probe ends the connection.
func (ses *session) probe() {
	ctx, cancel := context.WithTimeout(ses.ctx, ses.server.limits.probe)
	defer cancel()
	if err := ses.sdk.Ping(ctx, nil); err != nil && ctx.Err() != nil && ses.ctx.Err() == nil {
		ses.server.log.WarnContext(ctx, "an MCP server does not answer; the bot connects again")
		ses.end()
	}
}
