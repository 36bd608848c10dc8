package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/cmd/countersign/cli"
	"countersign/internal/redact"
	"countersign/internal/visible"
)

// probe checks whether one part of the bot works. /readyz shows the error of a failed probe.
type probe struct {
	name   string
	ready  func(context.Context) error
	notice bool // true: /readyz shows an error, but the bot stays ready, because it still accepts deliveries and requests
}

const (
	// probeTimeout limits one run of a probe.
	probeTimeout = 5 * time.Second
	// answerTime is how long a request to /readyz waits for the probes. It is shorter than one second, the default
	// timeout of Kubernetes' probes. A client that can wait longer sends the query wait, in seconds.
	answerTime = 800 * time.Millisecond
	// resultAge is how long /readyz uses the last result of a probe while the next run of the probe takes long.
	resultAge = time.Minute
)

// keptProbe is a probe with its last result.
type keptProbe struct {
	probe
	mu    sync.Mutex
	runs  chan struct{} // closed at the end of the current run; nil: the probe does not run
	err   error
	ended time.Time // end of the last run; zero: there is no result
}

// run runs the probe, unless it runs already. The returned channel is closed at the end of the run.
func (k *keptProbe) run(ctx context.Context) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs != nil {
		return k.runs
	}
	runs := make(chan struct{})
	k.runs = runs
	go func() {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		err := k.ready(ctx)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.runs, k.err, k.ended = nil, err, time.Now()
		close(runs)
	}()
	return runs
}

// state returns the state of the bot's part for a request that began at a time. ok is false if the part does not work.
func (k *keptProbe) state(began time.Time) (text string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := time.Since(k.ended)
	if k.ended.IsZero() || age > resultAge {
		return "the check takes long, and has no recent result", false
	}
	text = "ok"
	if k.err != nil {
		text = visible.Line(redact.Error(k.err)) // model endpoints, servers and Slack write parts of these texts
	}
	if k.ended.Before(began) {
		text += fmt.Sprintf(" (%s ago; the next check takes long)", age.Round(time.Second))
	}
	return text, k.err == nil
}

// admin returns the handler of the admin address. /healthz reports whether the process runs, /readyz reports whether
// the process can accept deliveries, and /metrics has the metrics.
func admin(probes []probe, metrics http.Handler) http.Handler {
	kept := make([]*keptProbe, len(probes))
	for i, p := range probes {
		kept[i] = &keptProbe{probe: p}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { serveReadiness(w, r, kept) })
	mux.Handle("GET /metrics", metrics)
	return mux
}

// serveReadiness runs all probes at the same time, and waits for their results. For a probe that takes too long, the
// answer has the last result. The probe continues, so that a later answer has its new result.
func serveReadiness(w http.ResponseWriter, r *http.Request, probes []*keptProbe) {
	began, patience := time.Now(), answerTime
	if seconds, err := strconv.ParseUint(r.URL.Query().Get("wait"), 10, 8); err == nil {
		patience = max(patience, time.Duration(seconds)*time.Second)
	}
	ends := make([]<-chan struct{}, len(probes))
	for i, p := range probes {
		ends[i] = p.run(context.WithoutCancel(r.Context()))
	}
	waitForAll(r.Context(), ends, patience)
	var report strings.Builder
	status := http.StatusOK
	for _, p := range probes {
		text, ok := p.state(began)
		if !ok && !p.notice {
			status = http.StatusServiceUnavailable
		}
		fmt.Fprintf(&report, "%s: %s\n", p.name, text)
	}
	w.WriteHeader(status)
	fmt.Fprint(w, report.String())
}

// waitForAll waits until all channels are closed, ctx ends, or the time is over.
func waitForAll(ctx context.Context, all []<-chan struct{}, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for _, one := range all {
		select {
		case <-one:
		case <-ctx.Done():
			return
		}
	}
}

// reportPause returns the check that reports a pause on /readyz. The bot stays ready, because it still receives
// messages and decisions.
func reportPause(wf *workflow.Workflow) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := wf.Views.Paused(ctx)
		if err != nil || !p.On {
			return err
		}
		why := ""
		if p.Reason != "" {
			why = ": " + visible.Line(p.Reason)
		}
		return fmt.Errorf("everything has been paused by %s since %s%s", p.By, p.At.Format(time.RFC3339), why)
	}
}

// refusedBySlack returns the check that reports on /readyz which features Slack refuses in the workspace. The bot stays
// ready, because it works without the refused features.
func refusedBySlack(wf *workflow.Workflow) func(context.Context) error {
	return func(ctx context.Context) error {
		list, err := wf.Views.Refusals(ctx)
		if err != nil || len(list) == 0 {
			return err
		}
		var lines []string
		for _, r := range list {
			lines = append(lines, refusalLine(r))
		}
		return errors.New(strings.Join(lines, "; "))
	}
}

// refusalLine returns one line about a feature that Slack refuses. The line says when the bot tries the feature next.
func refusalLine(r settings.Refusal) string {
	return visible.Line(fmt.Sprintf("%s since %s (%s), not tried before %s", r.What, r.Since.Format(time.RFC3339), r.Cause, r.Until.Format(time.RFC3339)))
}

// reportLostChannels returns the check that reports on /readyz the channels of the policy in which the bot can't write.
// The bot stays ready, because it works in all other channels.
func reportLostChannels(wf *workflow.Workflow) func(context.Context) error {
	return func(ctx context.Context) error {
		lost, err := wf.Views.LostChannels(ctx)
		if err != nil || len(lost) == 0 {
			return err
		}
		var lines []string
		for _, c := range lost {
			lines = append(lines, visible.Line(fmt.Sprintf("the bot can't write in %s since %s: %s", c.Name, c.Since.UTC().Format(time.RFC3339), c.Cause)))
		}
		return errors.New(strings.Join(lines, "; ") + ". Invite the bot there again, or change the policy")
	}
}

// reportUnreached returns the check that reports on /readyz the requests whose cards nobody can see, and the requests
// with too few people who may decide. The bot stays ready, and tries again to post the cards.
func reportUnreached(wf *workflow.Workflow) func(context.Context) error {
	return func(ctx context.Context) error {
		unreached, err := wf.Views.Unreached(ctx)
		if err != nil {
			return err
		}
		var unseen, few []approvers.Request
		for _, r := range unreached {
			if approvers.HasTooFew(r) {
				few = append(few, r)
			} else {
				unseen = append(unseen, r)
			}
		}
		var lines []string
		if n := len(unseen); n > 0 {
			what := "1 request waits with a card that nobody who may decide can see"
			if n > 1 {
				what = fmt.Sprintf("%d requests wait with cards that nobody who may decide can see", n)
			}
			lines = append(lines, what+", since "+unseen[0].Unreached.Since.UTC().Format(time.RFC3339)+": "+visible.Line(unseen[0].Unreached.Cause))
		}
		if n := len(few); n > 0 {
			what := "1 request needs more people than may decide it"
			if n > 1 {
				what = fmt.Sprintf("%d requests need more people than may decide them", n)
			}
			lines = append(lines, what+", since "+few[0].Unreached.Since.UTC().Format(time.RFC3339))
		}
		if len(lines) == 0 {
			return nil
		}
		return errors.New(strings.Join(lines, "; ") + ". countersign pending lists them")
	}
}

// reportWebhooks returns the check that reports on /readyz the clients' webhooks that don't work.
func reportWebhooks(wf *workflow.Workflow) func(context.Context) error {
	return func(ctx context.Context) error {
		broken, err := wf.Views.BrokenWebhooks(ctx)
		if err != nil || len(broken) == 0 {
			return err
		}
		var all []string
		for _, b := range broken {
			what := fmt.Sprintf("the webhook of %s has failed since %s", b.Client, b.Since.UTC().Format(time.RFC3339))
			if !b.Off.IsZero() {
				what = fmt.Sprintf("the webhook of %s is off since %s (countersign client resume %s switches it on)", b.Client, b.Off.UTC().Format(time.RFC3339), b.Client)
			}
			all = append(all, what+": "+visible.Line(b.Why))
		}
		return errors.New(strings.Join(all, "; "))
	}
}

// serveHTTP serves until ctx ends, and then waits at most three seconds for the current requests.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	return serveOn(ctx, &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}, l)
}

// serveOn is like serveHTTP, but uses the caller's server.
func serveOn(ctx context.Context, srv *http.Server, l net.Listener) error {
	unused := &unusedConnections{open: map[string][]net.Conn{}}
	noted := srv.ConnState
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		if noted != nil {
			noted(c, state)
		}
		unused.note(c, state)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	unused.close()
	if err := srv.Shutdown(ctx); err != nil {
		srv.Close() // event streams never end by themselves, so their connections are closed
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// mostUnused is the limit for the unused connections of one client address.
const mostUnused = 1024

// unusedConnections tracks those connections of a server that have not received a request yet. http.Server.Shutdown
// treats such connections as busy, and waits until they end. If a client address has more than mostUnused such
// connections, the server closes the oldest one. Without this limit, a client could block other clients: it could open
// many connections and send nothing.
type unusedConnections struct {
	mu     sync.Mutex
	open   map[string][]net.Conn // by address without port, the oldest first
	closed bool                  // true: new connections are closed immediately
}

func (u *unusedConnections) note(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	from := c.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(from); err == nil {
		from = host
	}
	switch all := u.open[from]; {
	case state != http.StateNew:
		if all = slices.DeleteFunc(all, func(o net.Conn) bool { return o == c }); len(all) == 0 {
			delete(u.open, from)
		} else {
			u.open[from] = all
		}
	case u.closed:
		c.Close()
	case len(all) == mostUnused:
		all[0].Close()
		u.open[from] = append(all[1:], c)
	default:
		u.open[from] = append(all, c)
	}
}

func (u *unusedConnections) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for _, all := range u.open {
		for _, c := range all {
			c.Close()
		}
	}
}

// listen opens a listener at an address. The error names the purpose of the address, and the setting that changes the
// address.
func listen(what, setting, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	var malformed *net.AddrError
	var unknown *net.DNSError
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, cli.CouldNot("%s can't listen on %s: another process uses that port. Stop it, or choose another address with %s", what, addr, setting)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &unknown) && !strings.HasPrefix(unknown.Err, "unknown port"): // soon after the machine's start, a network may not be up
		return nil, cli.CouldNot("%s can't listen on %q: it is not an address of this machine now (%w). Start it again when the network is up, or choose another address with %s", what, addr, err, setting)
	case errors.As(err, &malformed), errors.As(err, &unknown):
		return nil, cli.Misused("%s can't listen on %q: it is not an address of this machine (%w). Write HOST:PORT with %s, such as 127.0.0.1:8484", what, addr, err, setting)
	}
	return nil, cli.CouldNot("%s can't listen on %s: %w. Choose another address with %s", what, addr, err, setting)
}
