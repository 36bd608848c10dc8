package settings

import (
	"slices"
	"time"

	"countersign/store"
)

// Operators is the setting with the notices for the operators. Each notice is a message in the operators' channel.
type Operators struct {
	Notices []OperatorNotice `json:"notices"`       // the oldest first
	Last    time.Time        `json:"last,omitzero"` // the time for which the last post was scheduled
}

// OperatorNotice is a message about problems. The message is posted once, and edited when a problem ends.
type OperatorNotice struct {
	Message  string    `json:"message"`         // the outbox message; a later notice may use it again
	At       time.Time `json:"at"`              // the time for which the post was scheduled
	Posts    uint64    `json:"posts,omitempty"` // how often the outbox message had been posted before this notice
	Problems []Problem `json:"problems"`
}

// Problem is a problem that an operator has to fix.
type Problem struct {
	Kind     ProblemKind `json:"kind"`
	Of       string      `json:"of"` // the client, the tool, the addresses of the cards, or the roles, one per line
	Since    time.Time   `json:"since"`
	Until    time.Time   `json:"until,omitzero"`     // when the problem ended; zero: the problem lasts
	Why      string      `json:"why,omitempty"`      // for ProblemWebhook: the last failure; otherwise: the first reason
	Source   string      `json:"source,omitempty"`   // for ProblemTool: the tool's source
	How      string      `json:"how,omitempty"`      // for ProblemTool: how the tool differs from its pin (workflow.DriftKind)
	Tool     string      `json:"tool,omitempty"`     // for ProblemCards, ProblemPeople and ProblemQuorum: the tool of the first request
	First    string      `json:"first,omitempty"`    // for these three kinds: the id of the first request. Also for ProblemRecord and ProblemDelivery
	Requests []string    `json:"requests,omitempty"` // for these three kinds: the ids of the requests that have the problem now. For ProblemRecord and ProblemDelivery: all records or deliveries
	More     bool        `json:"more,omitempty"`     // some requests with the problem are not in Requests, because there were too many
}

// ProblemKind is the kind of a problem.
type ProblemKind string

// The kinds of problems.
const (
	ProblemWebhook ProblemKind = "webhook" // a client's webhook is switched off
	ProblemTool    ProblemKind = "tool"    // a tool's source does not offer the pinned definition
	ProblemCards   ProblemKind = "cards"   // cards for some addresses reach nobody, because Slack refuses them
	ProblemPeople  ProblemKind = "people"  // some roles have nobody left who may decide
	ProblemQuorum  ProblemKind = "quorum"  // some roles have too few people left who may decide

	ProblemCheck    ProblemKind = "check"    // a check of /readyz has failed for a while; Of is its name
	ProblemRecord   ProblemKind = "record"   // damaged records were set aside; Of is empty, First is the first record
	ProblemDelivery ProblemKind = "delivery" // deliveries were set aside; Of is empty, First is the id of the first delivery
)

// Once reports whether problems of the kind have happened, and can't end. Such a problem counts as lasting for a while,
// so that more of its kind join it.
func (k ProblemKind) Once() bool { return k == ProblemRecord || k == ProblemDelivery }

// Lasts reports whether the problem has not ended.
func (p Problem) Lasts() bool { return p.Until.IsZero() }

// Lasts reports whether a problem of the notice lasts.
func (n OperatorNotice) Lasts() bool { return slices.ContainsFunc(n.Problems, Problem.Lasts) }

// Posted reports whether the outbox message has shown the notice in Slack.
func (n OperatorNotice) Posted(s store.OutboxMessage) bool { return s.Posts > n.Posts }

// Find returns the newest entry about a problem. If there is none, the result is nil.
func (o *Operators) Find(kind ProblemKind, of string) (*OperatorNotice, *Problem) {
	for i := len(o.Notices) - 1; i >= 0; i-- {
		n := &o.Notices[i]
		for j := len(n.Problems) - 1; j >= 0; j-- {
			if p := &n.Problems[j]; p.Kind == kind && p.Of == of {
				return n, p
			}
		}
	}
	return nil, nil
}

// Notice returns the notice that an outbox message shows. If there is none, the result is nil.
func (o Operators) Notice(message string) *OperatorNotice {
	for i := range o.Notices {
		if o.Notices[i].Message == message {
			return &o.Notices[i]
		}
	}
	return nil
}

// ReadOperators reads the notices for the operators.
func ReadOperators(r store.Reader) (o Operators, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingOperators, &o)
	return o, s, err
}
