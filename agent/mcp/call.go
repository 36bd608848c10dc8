package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent"
	"countersign/internal/tracing"
)

// Error codes of JSON-RPC and MCP for requests that were not executed.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeHeaders        = -32020
	codeCapabilities   = -32021
	codeVersion        = -32022
	codeVisitURL       = -32042 // a person must visit an address first
)

// run calls a tool.
func (s *server) run(ctx context.Context, d definition, in agent.Invocation) (string, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return "", agent.NotSent(ctx, d.effect, fmt.Errorf("the server %s has %d calls under way already", s.Name, cap(s.slots)))
	}
	ses, err := s.ready(ctx)
	if err == nil {
		err = s.verify(ctx, ses, d)
	}
	if err != nil && ses.forgotten() { // the server has lost the session, for example after a restart
		if ses, err = s.ready(ctx); err == nil {
			err = s.verify(ctx, ses, d)
		}
	}
	if err != nil {
		return "", agent.NotSent(ctx, d.effect, unsent(ctx, err))
	}
	if len(in.Args) == 0 {
		in.Args = json.RawMessage("{}")
	}
	text, visit, err := s.call(ctx, ses, d, in)
	if visit != nil {
		if err := s.visit(ctx, in, visit); err != nil {
			return "", err
		}
		text, visit, err = s.call(ctx, ses, d, in)
		if visit != nil {
			return "", errors.New("the server asks again to open a URL that was opened already; nothing was done")
		}
	}
	return text, err
}

// call sends one call to the server. If the server requires that a person visits addresses first, call returns the
// addresses as forms instead of a result.
func (s *server) call(ctx context.Context, ses *session, d definition, in agent.Invocation) (string, []agent.Form, error) {
	outer := ctx // outer ends with the run; ctx also ends when the connection breaks
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the call's streams
	defer context.AfterFunc(ses.ctx, cancel)()
	f := &flight{token: "call-" + strconv.FormatInt(s.tokens.Add(1), 10), args: in.Args, progress: throttled(in.Progress)}
	if in.Ask != nil {
		f.ask = func(also context.Context, form agent.Form) (agent.Reply, error) {
			asking, stop := context.WithCancel(ctx)
			defer stop()
			defer context.AfterFunc(also, stop)()
			return in.Ask(asking, form)
		}
	}
	ses.tap.begin(f)
	defer ses.tap.end(f)
	params := &sdk.CallToolParams{Name: d.name, Arguments: in.Args, Meta: meta(ctx, in)}
	params.SetProgressToken(f.token)
	_, err := ses.sdk.CallTool(ctx, params)
	a := f.answer.Load()
	switch {
	case a == nil:
		if !f.sent.Load() {
			return "", nil, agent.NotSent(outer, d.effect, unsent(outer, fmt.Errorf("the call could not be sent: %s", line(errorText(err)))))
		}
		return "", nil, s.unanswered(outer, ses, f)
	case a.refused != "":
		return "", nil, fmt.Errorf("%s ran, but %s: %w", d.name, a.refused, agent.ErrOutcomeUnknown)
	case a.result != nil:
		text, err := result(d, ses.tap.secrets, a.result, in.Attach)
		return text, nil, err
	case a.code == codeVisitURL:
		if forms := addresses(s.Name, a.data); len(forms) > 0 {
			return "", forms, nil
		}
	}
	return "", nil, rejected(a, f.status.Load())
}

// meta returns the metadata of a call. As the MCP proposal SEP-414 says, the metadata contains the trace context,
// because a server over pipes gets no headers.
func meta(ctx context.Context, in agent.Invocation) sdk.Meta {
	context := tracing.Map{}
	tracing.Inject(ctx, context)
	m := sdk.Meta{executionKey: in.Key}
	for name, value := range context {
		m[name] = value
	}
	return m
}

// rejected converts a server's error response. The returned error says that the server refused the call, or that the
// outcome is unknown. A server over HTTP can also refuse the call with the status.
func rejected(a *answer, status int64) error {
	said := cut(a.message, maxError)
	switch a.code {
	case codeParse, codeInvalidRequest, codeNoMethod, codeInvalidParams, codeHeaders, codeCapabilities, codeVersion, codeVisitURL:
		return fmt.Errorf("the server refused the call: %s", said)
	}
	if status >= 400 && status < 500 {
		return fmt.Errorf("the server refused the call: %s", said)
	}
	return fmt.Errorf("the server failed: %s: %w", said, agent.ErrOutcomeUnknown)
}

// unsent returns the reason why a call was not sent. If the call's context has ended, this is the reason. Otherwise, it
// is err.
func unsent(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("the call was ended before it was sent: %w", context.Cause(ctx))
	}
	return err
}

// unanswered returns the error of a call that was sent and has no answer. If the server certainly did not execute the
// call, the error says that nothing was done. Otherwise, the error wraps agent.ErrOutcomeUnknown.
func (s *server) unanswered(ctx context.Context, ses *session, f *flight) error {
	status := f.status.Load()
	hint := statusHint(status, s.Server)
	switch {
	case hint != "":
		return errors.New(hint + "; nothing was done")
	case status == http.StatusNotFound:
		ses.probeLater()
		return errors.New("the server answers 404: it does not know the connection any more, or there is no server at this address; nothing was done")
	case status == http.StatusMovedPermanently, status == http.StatusFound, status == http.StatusTemporaryRedirect, status == http.StatusPermanentRedirect:
		return fmt.Errorf("%w; nothing was done", errElsewhere)
	case status >= 400 && status < 500:
		return fmt.Errorf("the server answers %d %s; nothing was done", status, http.StatusText(int(status)))
	case status >= 300:
		return fmt.Errorf("the server answers %d %s: %w", status, http.StatusText(int(status)), agent.ErrOutcomeUnknown)
	case ctx.Err() != nil:
		ses.probeLater()
		return fmt.Errorf("the server had not answered when the call was ended: %w", agent.ErrOutcomeUnknown)
	}
	return fmt.Errorf("the connection with the server broke before it answered: %w", agent.ErrOutcomeUnknown)
}

func errorText(err error) string {
	if err == nil {
		return "the connection has ended"
	}
	return err.Error()
}

// probeLater runs probe in the background.
func (ses *session) probeLater() { go ses.probe() }

// progressEvery is the minimum interval between progress reports of a run.
const progressEvery = 200 * time.Millisecond

// throttled limits the rate of progress reports.
func throttled(tell func(agent.Progress)) func(agent.Progress) {
	if tell == nil {
		return nil
	}
	var mu sync.Mutex
	var last time.Time
	return func(p agent.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			tell(p)
		}
	}
}
