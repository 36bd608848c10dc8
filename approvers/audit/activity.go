package audit

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// ActivityOptions selects the period of a report, and the texts in the report.
type ActivityOptions struct {
	Since, Until time.Time // a zero Until is now
	Reasons      bool      // the reasons that people wrote
}

// Activity has the figures of a report on a period. A record counts if its own time is in the period. A request that
// was proposed before Since and rejected after Since counts only as a rejected request. Waiting requests are counted
// at the end of the period.
type Activity struct {
	Since, Until time.Time
	Policy       string // the hash of the policy in force; empty: the policy can't be read, so Rules is empty
	Roles        []*RoleFigures
	People       []*PersonFigures
	Tools        []*ToolFigures // at most MostTools, and OtherTools for the calls to further tools
	Rules        []RuleFigures
	Rejections   []Rejection // the newest, at most MostRejections
	Rejected     int         // how many rejections there were in total
	BreakGlass   int         // operators' approvals in place of the approvers
	Pruned       int         // chains that retention removed in the period
}

// RoleFigures has the figures of a role.
type RoleFigures struct {
	DecisionStats
	Asked      int       // stages that waited for the role, also if escalation had added the role
	Waited     Durations // how long the role's stages waited until they ended, whatever the outcome
	Unanswered int       // stages that ended because nobody decided in time
	Escalated  int       // how often the lead was added to a stage of the role
	Open       Waiting
}

// PersonFigures has the figures of a person.
type PersonFigures struct {
	DecisionStats
	ID    string  // the Slack user id, or operator:LOGIN
	Asked int     // requests whose card the person got as a direct message, or to which the person was invited
	Open  Waiting // those of the Asked requests that wait for the person, who has not decided their stage
}

// Waiting counts open requests.
type Waiting struct {
	N     int
	Since time.Time // when the oldest of them began to wait
}

func (w *Waiting) add(since time.Time) {
	if w.N++; w.N == 1 || since.Before(w.Since) {
		w.Since = since
	}
}

// ToolFigures has the figures of a tool's calls. One request may be counted in several figures.
type ToolFigures struct {
	Name      string
	Risk      string // in the policy in force; empty: the policy does not name the tool
	Grants    bool   // the policy in force allows grants for the tool
	Asked     int    // requests
	Approved  int
	Timed     int // people's approvals whose decision time is recorded
	Quick     int // those of the Timed approvals that came too soon for the person to have read the card
	Changed   int // requests whose arguments an approver changed
	Opposed   int // requests that somebody rejected, even if others allowed it
	Rejected  int // requests that ended as rejected
	Expired   int
	Withdrawn int
	Revoked   int
	Voided    int
	Refused   int // calls that nobody could have approved
	Open      int
	Observed  int // calls that did not run because of observe mode
	Automatic int // runs for which nobody was asked
	Granted   int // those of the Automatic runs that ran under a grant
	Failed    int // runs that failed, with or without approval
	Unknown   int // runs whose outcome became unknown
}

// Unopposed reports whether people approved calls to the tool, and nobody rejected, changed or revoked such a call.
func (t *ToolFigures) Unopposed() bool {
	return t.Approved > 0 && t.Opposed+t.Changed+t.Revoked == 0
}

// OtherTools is the name under which an Activity counts the calls to the tools beyond MostTools.
const OtherTools = "(other tools)"

// MostTools limits the number of tools in an Activity. The limit is needed because the names of unknown tools come
// from models and clients.
const MostTools = 2000

// RuleFigures has the figures of a rule of the policy in force.
type RuleFigures struct {
	Tool    string
	Number  int // the rule's position in the tool's list, from 1
	When    string
	Calls   int // calls to the tool whose records say which rules matched
	Matched int // those of the Calls that matched a rule with this condition
	Last    time.Time
}

// Rejection is one person's decision against a call.
type Rejection struct {
	At            time.Time
	Request, Tool string
	By, Role      string
	Reason        string
	Lost          string // why the reason can't be shown: erased, changed or damaged; empty: the reason can be shown
	seq           uint64
	hash          string
}

// MostRejections limits the number of rejections that an Activity lists.
const MostRejections = 100

// ReadActivity computes the figures from the history, the names in the stored requests, and the policy in force. If the
// history has damaged records, ReadActivity returns the figures of all other records, and an *Unread error.
func ReadActivity(ctx context.Context, s store.Store, p *approvers.Policy, o ActivityOptions) (*Activity, error) {
	if o.Until.IsZero() {
		o.Until = time.Now()
	}
	f := newActivityReader(o.Since, o.Until)
	var left Unread
	err := left.Take(eachChain(ctx, s, func(chain []approvers.AuditRecord, cut bool) error {
		var names map[approvers.PersonID]string
		if slices.ContainsFunc(chain, func(a approvers.AuditRecord) bool { return a.Kind == approvers.AuditDecided && f.counts(a) }) {
			var err error
			if names, err = namesIn(ctx, s, chain[0].Chain); err != nil {
				return err
			}
		}
		f.add(chain, cut, names)
		return nil
	}))
	if err != nil {
		return nil, err
	}
	out := f.activity(p)
	if o.Reasons {
		err = s.View(ctx, func(r store.Reader) error {
			for i := range out.Rejections {
				if err := left.Add(out.Rejections[i].read(r)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	return out, left.Err()
}

// read fills in the reason. A text that does not match the hash in the record is left out.
func (x *Rejection) read(r store.Reader) error {
	p, there, err := payloadOf(r, approvers.AuditRecord{Chain: x.Request, Seq: x.seq})
	var body struct {
		Reason string `json:"reason"`
	}
	switch {
	case errors.Is(err, store.ErrDamaged):
		x.Lost = "damaged"
		return err
	case err != nil || x.hash == "":
		return err
	case !there:
		x.Lost = "erased"
	case p.Hash() != x.hash || json.Unmarshal(p.Body, &body) != nil:
		x.Lost = "changed"
	}
	if x.Lost == "" {
		x.Reason = strings.Join(strings.Fields(body.Reason), " ")
	}
	return nil
}
