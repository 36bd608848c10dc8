package scriptedmodel

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Fault makes an answer fail as real services do. The zero Fault changes nothing. Several faults can be combined.
type Fault struct {
	Status     int           // answer with this status and an error instead
	RetryAfter time.Duration // sent with Status, in whole seconds rounded up
	Message    string        // message of the error that is sent with Status

	Delay time.Duration // wait before the first byte
	Pause time.Duration // wait before every piece of a stream
	Hang  bool          // send nothing until the client goes away

	Cut         bool // break the connection in the middle of the answer
	CutAfter    int  // with Cut: the number of pieces of a stream that are sent before the break
	StreamError bool // with Cut: send an error event instead of breaking the connection
	CutQuietly  bool // with Cut: end the stream as if it were complete, as some proxies do

	Finish             string // finish reason of the answer, for any content
	MalformedArguments bool   // the arguments of every call are not JSON
	TruncatedArguments bool   // the arguments of the last call end half-way, but the finish reason does not show it
	DuplicateIDs       bool   // all calls have the id of the first one
	Interleave         bool   // stream pieces of the calls' arguments alternately, instead of one call after the other
	Tool               string // the tool that every call names
}

// apply changes the content of a finished reply. The code that sends the reply handles the other faults.
func (f Fault) apply(r Reply) Reply {
	for i := range r.Calls {
		if f.MalformedArguments {
			r.Calls[i].Arguments = strings.TrimSuffix(r.Calls[i].Arguments, "}") + `, oops`
		}
		if f.DuplicateIDs {
			r.Calls[i].ID = r.Calls[0].ID
		}
		if f.Tool != "" {
			r.Calls[i].Name = f.Tool
		}
	}
	if last := len(r.Calls) - 1; f.TruncatedArguments && last >= 0 {
		r.Calls[last].Arguments = firstBytes(r.Calls[last].Arguments, len(r.Calls[last].Arguments)/2)
	}
	if f.Finish != "" {
		r.Finish = f.Finish
	}
	return r
}

// The method "or" returns f, or the Fault other if f is the zero Fault.
func (f Fault) or(other Fault) Fault {
	if f == (Fault{}) {
		return other
	}
	return f
}

// The method "before" applies the faults that come before the answer. If done is true, no answer may follow.
func (f Fault) before(ctx context.Context, w http.ResponseWriter) (done bool) {
	if f.Hang {
		<-ctx.Done()
		return true
	}
	if !wait(ctx, f.Delay) {
		return true
	}
	if f.Status == 0 {
		return false
	}
	if f.RetryAfter > 0 {
		seconds := (f.RetryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	f.statusError().write(w)
	return true
}

func (f Fault) statusError() *apiError {
	message := f.Message
	kind, code := "server_error", ""
	switch {
	case f.Status == http.StatusTooManyRequests:
		kind, code = "requests", "rate_limit_exceeded"
		if message == "" {
			message = "Rate limit reached for requests. Please try again later."
		}
	case f.Status < http.StatusInternalServerError:
		kind = "invalid_request_error"
	}
	if message == "" {
		message = "The server had an error while processing your request."
	}
	return fail(f.Status, kind, code, "", message)
}

// wait sleeps for the duration d, or until the client disconnects. In the second case, wait returns false.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
