package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"countersign/approvers/workflow"
)

// problem is an error in the form of RFC 9457.
type problem struct {
	name   string // the last part of the problem's type
	status int
	title  string
	detail string
	id     string // id of the approval request that the problem is about
	state  string // status of this approval request
	again  time.Duration
}

func (p problem) Error() string { return fmt.Sprintf("%s: %s %s", p.name, p.title, p.detail) }

// problemType is the prefix of the types of problems.
const problemType = "urn:countersign:problem:"

func (p problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail,omitempty"`
		ID     string `json:"id,omitempty"`
		State  string `json:"request_status,omitempty"`
	}{problemType + p.name, p.title, p.status, p.detail, p.id, p.state})
	if err != nil {
		panic(err) // encoding strings and a number can't fail
	}
	w.Header().Set("Content-Type", "application/problem+json")
	if p.again > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((p.again+time.Second-1)/time.Second)))
	}
	extend(w)
	w.WriteHeader(p.status)
	_, _ = w.Write(body) // an error here can't be reported to the client
}

// held is the answer of a bot that does not work until an operator acts.
var held = problem{
	name: "held", status: http.StatusServiceUnavailable, title: "The bot is held.",
	detail: "the bot does not work until an operator has accepted the state of its store; the bot's log and /readyz say how",
}

// Held refuses a request while the bot is held.
func Held(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	held.write(w)
}

func malformed(format string, args ...any) problem {
	return problem{name: "invalid_request", status: http.StatusBadRequest, title: "The request is not valid.", detail: fmt.Sprintf(format, args...)}
}

// problems has the answer for each problem code of the workflow.
var problems = map[workflow.CallerCode]problem{
	workflow.CallerUnknown:      unauthorized,
	workflow.CallerNotFound:     {status: http.StatusNotFound, title: "There is no such request."},
	workflow.CallerTool:         {status: http.StatusForbidden, title: "The client may not ask for this tool."},
	workflow.CallerToolBlocked:  {status: http.StatusForbidden, title: "Nobody can call this tool now."},
	workflow.CallerArgs:         {status: http.StatusUnprocessableEntity, title: "The arguments are refused."},
	workflow.CallerKeyReused:    {status: http.StatusUnprocessableEntity, title: "The key was used with another body."},
	workflow.CallerPending:      {status: http.StatusTooManyRequests, title: "Too many requests of this client wait."},
	workflow.CallerOften:        {status: http.StatusTooManyRequests, title: "The client has asked people too often."},
	workflow.CallerBudget:       {status: http.StatusTooManyRequests, title: "The client has used up its calls for today."},
	workflow.CallerMode:         {status: http.StatusConflict, title: "Countersign runs this call, so it is neither claimed nor reported."},
	workflow.CallerClaimed:      {status: http.StatusConflict, title: "The approval was used up."},
	workflow.CallerNotApproved:  {status: http.StatusConflict, title: "The call is not approved now."},
	workflow.CallerOtherArgs:    {status: http.StatusConflict, title: "The approval is for other arguments."},
	workflow.CallerNotClaimed:   {status: http.StatusConflict, title: "The call was not claimed."},
	workflow.CallerOutcomeKnown: {status: http.StatusConflict, title: "The outcome can't be recorded."},
	workflow.CallerOver:         {status: http.StatusConflict, title: "The request can't be withdrawn any more."},
	workflow.CallerNoQuestion:   {status: http.StatusConflict, title: "There is no such question to answer."},
	workflow.CallerPaused:       {status: http.StatusServiceUnavailable, title: "Everything is paused."},
}

// problemOf converts an error into the problem for the caller. An internal error becomes "unavailable", and its text
// goes only to the log.
func problemOf(err error) problem {
	var known *workflow.CallerProblem
	if errors.As(err, &known) {
		p, ok := problems[known.Code]
		if ok {
			p.name, p.detail, p.id, p.again = string(known.Code), known.Detail, known.Request, known.Again
			return p
		}
	}
	return problem{name: "unavailable", status: http.StatusServiceUnavailable, title: "The request could not be handled now.", again: 5 * time.Second}
}
