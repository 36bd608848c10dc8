package httptool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"countersign/agent"
	"countersign/agent/egress"
	"countersign/approvers"
	"countersign/config"
)

// run sends a call's request and says what became of it.
//
// An error that does not wrap [agent.ErrOutcomeUnknown] says that nothing was done: nothing was sent, the server refused it (400 to 499), or the request only reads.
// Where a request that writes got as far as a connection and no clear answer came back, the outcome is unknown: the connection broke, time was up, the server
// failed (500 and above), or it sent the client elsewhere.
func (o *operation) run(ctx context.Context, in agent.Invocation) (string, error) {
	if o.offline {
		return "", errUnknownEnvironment
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}
	req, err := o.request(httptrace.WithClientTrace(ctx, trace), in)
	if err != nil {
		return "", fmt.Errorf("nothing was sent: %w", err)
	}
	resp, err := o.client.Do(req)
	if err != nil {
		return "", o.failed(err, sent.Load())
	}
	defer resp.Body.Close()
	if !o.counts(resp.StatusCode) {
		return "", o.refused(resp)
	}
	return o.answer(resp, in)
}

// failed says what became of a request that got no answer.
func (o *operation) failed(err error, sent bool) error {
	sentence := o.secrets.Out(egress.Sentence(err))
	var refused *egress.Refused
	switch {
	case !sent, errors.As(err, &refused) && refused.Redirect: // a 307 or 308 says that nothing was done there
		return fmt.Errorf("nothing was done: %s", sentence)
	case o.effect == approvers.ReadOnly:
		return errors.New(sentence)
	}
	return fmt.Errorf("%w: the request was sent, and then %s", agent.ErrOutcomeUnknown, sentence)
}

// counts reports whether a status says that it was done.
func (o *operation) counts(status int) bool {
	if len(o.result.Status) == 0 {
		return status >= 200 && status <= 299
	}
	for _, s := range o.result.Status {
		if status >= s.From && status <= s.To {
			return true
		}
	}
	return false
}

// refused says what became of a request to which a status came back that does not count.
func (o *operation) refused(resp *http.Response) error {
	said := o.quoted(resp)
	status := statusText(resp.StatusCode)
	switch {
	case o.effect == approvers.ReadOnly:
		return fmt.Errorf("the server answered %s%s", status, said)
	case resp.StatusCode >= 400 && resp.StatusCode <= 499, resp.StatusCode == http.StatusNotImplemented, resp.StatusCode == http.StatusTemporaryRedirect,
		resp.StatusCode == http.StatusPermanentRedirect:
		return fmt.Errorf("nothing was done: the server answered %s%s", status, said)
	}
	return fmt.Errorf("%w: the server answered %s%s", agent.ErrOutcomeUnknown, status, said)
}

func statusText(code int) string {
	if name := http.StatusText(code); name != "" {
		return fmt.Sprintf("%d %s", code, name)
	}
	return fmt.Sprint(code)
}

// Kinds of results, as config names them.
const (
	asAuto = "auto"
	asJSON = "json"
	asText = "text"
	asFile = "file"
)

// as is how an answer is read.
func as(r config.Result) string {
	switch {
	case r.Pointer != "":
		return asJSON
	case r.As == "":
		return asAuto
	}
	return r.As
}
