package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// cause is the reason why a model call failed. cause selects the sentence that people read.
type cause int

const (
	causeDown     cause = iota // the endpoint failed or is unreachable
	causeBusy                  // too many requests
	causeQuota                 // the account has no credit
	causeCut                   // the answer was truncated
	causeEmpty                 // the answer was empty
	causeKey                   // the key was refused
	causeModel                 // the model or the address does not exist, or the model can't use tools over this API
	causeRequest               // the request was rejected
	causeEndpoint              // the address is not a chat-completions endpoint, or its answers have another form
	causeFilter                // a content filter withheld the answer
	causeRoom                  // the answer reached its length limit before it had any text
	causeLong                  // the history is too long for the model
	causeSteps                 // the turn used all its steps and got no answer
)

// ofConversation reports whether a failure concerns only one conversation. The operator has nothing to repair.
func (c cause) ofConversation() bool {
	return c == causeFilter || c == causeRoom || c == causeLong || c == causeSteps
}

// sentences has the texts that people in Slack read when a turn stops. Each text says what to do next.
var sentences = map[cause]string{
	causeDown:     "The language model did not answer, although I tried several times. What was done so far is kept: press \"Try again\" in a minute.",
	causeBusy:     "The language model is answering too many requests at the moment. What was done so far is kept: press \"Try again\" in a few minutes.",
	causeQuota:    "The language model's account has used up its credit. The operator of this bot has to top it up; then press \"Try again\".",
	causeCut:      "The language model's answer was cut off several times. Nothing of it was used: press \"Try again\".",
	causeEmpty:    "The language model gave me an empty answer several times. Press \"Try again\", or ask in other words.",
	causeKey:      "The language model refused my access key. The operator of this bot has to correct OPENAI_API_KEY; then press \"Try again\".",
	causeModel:    "The language model that I am set up to use was not found, or can't use tools over this API. The operator of this bot has to check OPENAI_MODEL and OPENAI_BASE_URL; then press \"Try again\".",
	causeRequest:  "The language model refused my request as it is. The operator of this bot finds the reason in the log. Press \"Try again\", or begin a new conversation.",
	causeEndpoint: "The endpoint in OPENAI_BASE_URL does not work like OpenAI's API. The operator of this bot finds the reason in the log, and has to correct the URL; then press \"Try again\".",
	causeFilter:   "The language model's provider held its answer back (content filter). Press \"Try again\", or ask in other words.",
	causeRoom:     "The language model reached its length limit without an answer. Press \"Try again\", or ask for less at once.",
	causeSteps:    "I stopped after %d steps, the most that I take for one message, without coming to an answer. What was done is listed above. Write to me if I should continue.",
	causeLong:     "This conversation has become longer than the language model can read. Begin a new one, and repeat what is needed.",
}

// failure says why a model call gave no usable answer.
type failure struct {
	cause  cause
	worth  bool          // a repetition of the call may succeed
	slow   bool          // the call took the whole time of an answer, so only one more call is worth the wait
	after  time.Duration // the delay that the server asks for
	detail error         // the error for the log
}

func (f *failure) Error() string { return f.detail.Error() }
func (f *failure) Unwrap() error { return f.detail }

func again(c cause, detail string) *failure {
	return &failure{cause: c, worth: true, detail: errors.New(detail)}
}
func never(c cause, detail string) *failure { return &failure{cause: c, detail: errors.New(detail)} }

// classify maps a failed request to a failure. If there was a response, n has notes on the response.
func classify(ctx context.Context, err error, n notes, now time.Time) *failure {
	if why := context.Cause(ctx); errors.Is(why, errIdle) || errors.Is(why, errSlow) {
		return &failure{cause: causeDown, worth: true, slow: errors.Is(why, errSlow), detail: why}
	}
	status, code, text := n.status, "", err.Error()
	var api *openai.APIError
	var request *openai.RequestError
	switch {
	case errors.As(err, &api):
		code = fmt.Sprint(api.Code) + " " + api.Type
		text = api.Message
		if api.HTTPStatusCode != 0 {
			status = api.HTTPStatusCode
		}
	case errors.As(err, &request):
		status, text = request.HTTPStatusCode, string(request.Body)
	case errors.Is(err, openai.ErrReasoningToolsRequireResponses), errors.Is(err, openai.ErrReasoningEffortUnsupported), errors.Is(err, openai.ErrChatCompletionInvalidModel):
		return &failure{cause: causeModel, detail: err}
	}
	if api == nil && request == nil { // the connection failed, so there is no response
		if status == http.StatusOK {
			return &failure{cause: causeCut, worth: true, detail: err}
		}
		return &failure{cause: causeDown, worth: true, detail: err}
	}
	f := &failure{detail: fmt.Errorf("HTTP %d: %s", status, cutText(text, 300))}
	f.cause, f.worth = meaning(status, strings.ToLower(code), strings.ToLower(text))
	if f.worth {
		f.after = retryAfter(n, now)
	}
	return f
}

// refusesUsage reports whether an error says that the endpoint does not accept the field stream_options. The endpoint
// then accepts the same request without the field. Status 200 means that the error was sent in the stream, and a is the
// part of the answer that arrived before the error. Errors with other statuses, or in the middle of an answer, have
// other causes, even if they mention the field: their messages may quote the conversation.
func refusesUsage(status int, a *assembly, err error) bool {
	var api *openai.APIError
	var request *openai.RequestError
	text := ""
	switch {
	case status == http.StatusOK && a.begun():
		return false
	case status != http.StatusOK && status != http.StatusBadRequest && status != http.StatusUnprocessableEntity:
		return false
	case errors.As(err, &api):
		text = api.Message
		if api.Param != nil {
			text += " " + *api.Param
		}
	case errors.As(err, &request):
		text = string(request.Body)
	}
	return strings.Contains(text, "stream_options") || strings.Contains(text, "include_usage")
}

// meaning interprets a status, an error code and its message. Status 200 means that the error was sent in the middle of
// a stream.
func meaning(status int, code, text string) (c cause, worth bool) {
	switch {
	case isTooLong(status, code, text):
		return causeLong, false
	case strings.Contains(code, "insufficient_quota") || strings.Contains(code, "billing") || status == http.StatusPaymentRequired:
		return causeQuota, false
	case status == http.StatusTooManyRequests || strings.Contains(code, "rate_limit") || strings.Contains(code, "overloaded"):
		return causeBusy, true
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return causeKey, false
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, strings.Contains(code, "model_not_found"):
		return causeModel, false
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
		return causeDown, true
	case strings.Contains(code, "content_filter") || strings.Contains(code, "content_policy"):
		return causeFilter, false
	case status >= 300 && status < 500:
		return causeRequest, false
	}
	return causeDown, true
}

// longPhrases are phrases in error messages about a history that is too long. Some endpoints have no error code for a
// history that is too long.
var longPhrases = []string{
	"maximum context length", "context length", "context window", "context size", "prompt is too long", "input is too long",
	"too many tokens", "exceeds the maximum number of tokens", "reduce the length of the messages",
}

func isTooLong(status int, code, text string) bool {
	if strings.Contains(code, "context_length_exceeded") || status == http.StatusRequestEntityTooLarge {
		return true
	}
	if status == http.StatusTooManyRequests { // a request that exceeds the limit for a minute never succeeds
		return strings.Contains(text, "request too large")
	}
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity && status != http.StatusOK {
		return false
	}
	for _, phrase := range longPhrases {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// retryAfter returns the delay that the server asks for. The Retry-After header has a number of seconds, or a date
// according to the server's clock.
func retryAfter(n notes, now time.Time) time.Duration {
	if n.retryAfter == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(strings.TrimSpace(n.retryAfter), 64); err == nil {
		if !(s > 0) {
			return 0
		}
		return time.Duration(min(s, 86400) * float64(time.Second))
	}
	at, err := http.ParseTime(n.retryAfter)
	if err != nil {
		return 0
	}
	if theirs, err := http.ParseTime(n.date); err == nil {
		now = theirs
	}
	return max(0, at.Sub(now))
}
