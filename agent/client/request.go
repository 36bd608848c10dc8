package client

import (
	"encoding/json"
	"time"
)

// Call is a tool call that needs an approval.
type Call struct {
	Tool       string
	Args       json.RawMessage // a JSON object; sent byte for byte
	Accepts    []string        // the decisions that the caller can handle: Approve, Edit, Reject; nil: the gateway's default
	OnBehalfOf string          // the Slack user for whom the caller acts; this person must not decide
	Summary    string          // the purpose of the call, in words for approvers
	State      string          // a text that the gateway returns unchanged with the request
}

// The decisions that a caller can handle; see Call.Accepts.
const (
	Approve = "approve"
	Edit    = "edit"
	Reject  = "reject"
)

// All lists all decisions that a caller can handle.
var All = []string{Approve, Edit, Reject}

// Status is the state of a request.
type Status string

// The statuses.
const (
	Pending   Status = "pending"   // the request waits for people
	Approved  Status = "approved"  // the call may be claimed, or is about to run
	Running   Status = "running"   // the call was claimed, or runs at the gateway
	Succeeded Status = "succeeded" // the call ran without an error
	Failed    Status = "failed"    // the call ran with an error
	Unknown   Status = "unknown"   // nobody knows whether the call ran
	Rejected  Status = "rejected"  // like all following statuses: the call was not run, unless Request.Lost returns true
	Expired   Status = "expired"
	Withdrawn Status = "withdrawn"
	Revoked   Status = "revoked"  // an approver withdrew the approval
	Voided    Status = "voided"   // the tool or the policy changed
	Denied    Status = "refused"  // nobody could approve the call
	Observed  Status = "observed" // the call was not run, because the policy only observes
)

// Request is the gateway's record of a call.
type Request struct {
	ID          string     `json:"id"`
	Status      Status     `json:"status"`
	Mode        string     `json:"mode"`
	Tool        string     `json:"tool"`
	ArgsSHA256  string     `json:"args_sha256"` // hash of the current arguments: the caller's, or those of an approver's edit
	CreatedAt   time.Time  `json:"created_at"`
	WaitsFor    []string   `json:"waits_for"` // titles of the roles that may decide now
	ExpiresAt   time.Time  `json:"expires_at"`
	Decision    *Decision  `json:"decision"`
	Reason      string     `json:"reason"` // why the call was not run
	Receipt     string     `json:"receipt"`
	Run         string     `json:"run"` // id of the run in the mode decide; it changes with an edit, and if people ask for the call again
	RunBefore   time.Time  `json:"run_before"`
	ReportBy    time.Time  `json:"report_by"`
	Result      string     `json:"result"`
	Disposition string     `json:"disposition"`
	Questions   []Question `json:"questions"`
	State       string     `json:"state"`

	etag string
}

// Decision is the decision of people, or of the policy.
type Decision struct {
	Type      string          `json:"type"`      // Approve, Edit or Reject
	Automatic bool            `json:"automatic"` // decided by the policy, without people
	Args      json.RawMessage `json:"args"`      // for an edit: the arguments to run
	Changed   []string        `json:"changed"`   // for an edit: JSON pointers to the changed values
	By        []struct {
		Role string `json:"role"`
	} `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Question is an approver's question to the caller.
type Question struct {
	Number int    `json:"question"`
	Text   string `json:"text"`
	By     string `json:"by"` // the role that asks
	Answer string `json:"answer"`
}

// Lost reports whether the gateway has lost what happened to the call. So the call may have been decided and run, even
// if the caller did not claim it. There are two reasons: the bot's data was restored from a backup while the request was
// open (the status is Voided), or the records of the call's approval are lost (the status is Unknown). If a caller
// claimed a call and did not report the outcome, the status is Unknown too. But then the decision is known, and the
// request is not lost.
func (r *Request) Lost() bool {
	return r.Disposition == "outcome-unknown" && (r.Status == Voided || r.Status == Unknown && r.Decision == nil)
}

// Open returns the first question without an answer.
func (r *Request) Open() (Question, bool) {
	for _, q := range r.Questions {
		if q.Answer == "" {
			return q, true
		}
	}
	return Question{}, false
}
