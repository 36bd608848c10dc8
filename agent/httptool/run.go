package httptool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"

	"countersign/agent"
	"countersign/agent/egress"
	"countersign/approvers"
	"countersign/config"
)

// run sends a call's request and reports the outcome.
//
// If a request that writes was sent and there is no clear response, the error wraps [agent.ErrOutcomeUnknown]. A
// response is missing or not clear if the connection broke, the time was up, or the status means neither success nor
// refusal. The statuses 400 to 499, 501, 307 and 308 mean refusal. If no connection was made, the error is of
// [agent.NotSent]. After any other error, nothing was done: the arguments were not valid, the server refused the
// request, or the request only reads.
func (o *operation) run(ctx context.Context, in agent.Invocation) (string, error) {
	if o.offline {
		return "", errUnknownEnvironment
	}
	within, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}
	req, err := o.request(httptrace.WithClientTrace(within, trace), in)
	if err != nil {
		return "", fmt.Errorf("nothing was sent: %w", err)
	}
	resp, err := o.client.Do(req)
	switch {
	case err != nil && !sent.Load():
		return "", agent.NotSent(ctx, o.effect, errors.New(o.secrets.Out(egress.Sentence(err))))
	case err != nil:
		return "", o.failed(err)
	}
	defer resp.Body.Close()
	if !o.counts(resp.StatusCode) {
		return "", o.refused(resp)
	}
	return o.answer(resp, in)
}

// failed returns the outcome of a request that was sent and has no response.
func (o *operation) failed(err error) error {
	sentence := o.secrets.Out(egress.Sentence(err))
	var refused *egress.Refused
	switch {
	case errors.As(err, &refused) && refused.Redirect: // a server that answers 307 or 308 did nothing
		return fmt.Errorf("nothing was done: %s", sentence)
	case o.effect == approvers.ReadOnly:
		return errors.New(sentence)
	}
	return fmt.Errorf("%w: the request was sent, and then %s", agent.ErrOutcomeUnknown, sentence)
}

// counts reports whether a status counts as success.
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

// refused returns the outcome of a request whose status does not mean success.
func (o *operation) refused(resp *http.Response) error {
	said := o.quoted(resp)
	status := statusText(resp.StatusCode)
	switch {
	case o.effect == approvers.ReadOnly && slices.Contains(saysNo, resp.StatusCode):
		return agent.Refused("the server answered " + status + said)
	case o.effect == approvers.ReadOnly:
		return fmt.Errorf("the server answered %s%s", status, said)
	case slices.Contains(saysNo, resp.StatusCode):
		return agent.Refused("nothing was done: the server answered " + status + said)
	case resp.StatusCode >= 400 && resp.StatusCode <= 499, resp.StatusCode == http.StatusNotImplemented, resp.StatusCode == http.StatusTemporaryRedirect,
		resp.StatusCode == http.StatusPermanentRedirect:
		return fmt.Errorf("nothing was done: the server answered %s%s", status, said)
	}
	return fmt.Errorf("%w: the server answered %s%s", agent.ErrOutcomeUnknown, status, said)
}

// saysNo lists the statuses with which a server refuses a call because of the content of the call. Other statuses are
// about the client's identity, the number of calls, or the server.
var saysNo = []int{
	http.StatusBadRequest, http.StatusPaymentRequired, http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed,
	http.StatusUnprocessableEntity, http.StatusLocked, http.StatusUnavailableForLegalReasons,
}

func statusText(code int) string {
	if name := http.StatusText(code); name != "" {
		return fmt.Sprintf("%d %s", code, name)
	}
	return fmt.Sprint(code)
}

// Kinds of results. The values are the names in the policy file.
const (
	asAuto = "auto"
	asJSON = "json"
	asText = "text"
	asFile = "file"
)

// as returns the format in which a response is read.
func as(r config.Result) string {
	switch {
	case r.Pointer != "":
		return asJSON
	case r.As == "":
		return asAuto
	}
	return r.As
}
