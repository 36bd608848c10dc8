package approvers

import (
	"encoding/json"
	"slices"
	"time"
)

// State is where a request stands. See docs/states.md.
type State string

// The states of a request.
const (
	Pending   State = "pending"
	Approved  State = "approved"  // every stage passed; not run yet
	Consumed  State = "consumed"  // its one run was started
	Rejected  State = "rejected"  // an approver said no
	Expired   State = "expired"   // nobody decided, or it was not run in time
	Withdrawn State = "withdrawn" // a requester took it back
	Revoked   State = "revoked"   // an approver took the approval back before it ran
	Voided    State = "voided"    // the tool or the policy changed so that it can't be allowed any more
	Refused   State = "refused"   // nobody could have allowed it
)

// Open reports whether the request can still come to a run.
func (s State) Open() bool { return s == Pending || s == Approved }

// DecisionKind is what a person did.
type DecisionKind string

// The kinds of decision.
const (
	Approve DecisionKind = "approve"
	Reject  DecisionKind = "reject"
	Modify  DecisionKind = "modify"
)

// Decision is one person's decision, bound to what was shown.
type Decision struct {
	Kind      DecisionKind `json:"kind"`
	By        PersonID     `json:"by"`
	Name      string       `json:"name"`
	Role      string       `json:"role"` // the role that gave the authority
	Stage     int          `json:"stage"`
	Digest    string       `json:"digest"`    // over the execution that was shown
	Rendering string       `json:"rendering"` // hash of the posted version of the card that was clicked
	Reason    string       `json:"reason,omitempty"`
	At        time.Time    `json:"at"`
	Fallen    bool         `json:"fallen,omitempty"` // an approval that an edit undid
}

// Edit is one change of the arguments by an approver.
type Edit struct {
	By     PersonID        `json:"by"`
	Name   string          `json:"name"`
	Role   string          `json:"role"`
	At     time.Time       `json:"at"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	Reason string          `json:"reason,omitempty"`
}

// Request is the approval request for one gated tool call.
type Request struct {
	ID           string          `json:"id"` // random, used once
	Version      uint64          `json:"version"`
	State        State           `json:"state"`
	Conversation string          `json:"conversation"`
	Turn         string          `json:"turn"`
	Call         string          `json:"call"`
	Agent        string          `json:"agent"`
	Tool         string          `json:"tool"`
	ToolHash     string          `json:"tool_hash"`
	Effect       Effect          `json:"effect"`
	Execution    string          `json:"execution"` // the current one; edits make new ones
	Args         json.RawMessage `json:"args"`      // the execution's exact bytes
	Digest       string          `json:"digest"`
	Preview      string          `json:"preview,omitempty"`
	PreviewFault string          `json:"preview_fault,omitempty"` // why there is no preview although policy asks for one
	Facts        AskFacts        `json:"facts"`
	Plan         Plan            `json:"plan"`
	Stage        int             `json:"stage"`            // index into Plan.Stages
	Joined       []string        `json:"joined,omitempty"` // roles that escalation added to the current stage
	Decisions    []Decision      `json:"decisions,omitempty"`
	Edits        []Edit          `json:"edits,omitempty"`
	CreatedAt    time.Time       `json:"created_at"`
	ExpiresAt    time.Time       `json:"expires_at"`
	EscalateAt   time.Time       `json:"escalate_at,omitzero"` // zero: nobody is left to tell
	RunBy        time.Time       `json:"run_by,omitzero"`      // set when approved
	ClosedAt     time.Time       `json:"closed_at,omitzero"`
	ClosedBy     PersonID        `json:"closed_by,omitempty"` // empty: time or policy closed it
	ClosedName   string          `json:"closed_name,omitempty"`
	ClosedRole   string          `json:"closed_role,omitempty"`
	Reason       string          `json:"reason,omitempty"`
}

// AskFacts are the facts that were true when the call was proposed, kept to plan it again.
type AskFacts struct {
	Asker        PersonID          `json:"asker"`
	AskerName    string            `json:"asker_name"`
	Conversation ConversationFacts `json:"conversation"`
	Requesters   []PersonID        `json:"requesters"`
	Authors      []PersonID        `json:"authors"`
	Quote        string            `json:"quote"`                // the words that led to the call
	MessageTS    string            `json:"message_ts,omitempty"` // the message that holds them
}

// Move is one person's act on a request. At is when Slack delivered it.
type Move struct {
	Who       Identity
	At        time.Time
	Digest    string // of the arguments that the person was shown
	Partly    bool   // they were not shown whole
	Typed     bool   // the person typed the value that critical calls ask for
	Rendering string
	Reason    string
}

// AsCall is the request's call as the policy sees it, with the arguments as they are now.
func (r Request) AsCall(args map[string]any) Call {
	return Call{
		Tool: r.Tool, Requesters: r.Facts.Requesters, Authors: r.Facts.Authors,
		Facts: Facts{
			Args: args, Requester: r.Facts.Asker.User(), Conversation: r.Facts.Conversation, Agent: r.Agent, Now: r.CreatedAt,
		},
	}
}

// Roles names the roles whose members may decide the current stage.
func (r Request) Roles() []string {
	if r.Stage >= len(r.Plan.Stages) {
		return nil
	}
	return append([]string{r.Plan.Stages[r.Stage].Approver}, r.Joined...)
}

// Standing lists the approvals that count for the current arguments.
func (r Request) Standing() []Decision {
	var out []Decision
	for _, d := range r.Decisions {
		if d.Kind != Reject && !d.Fallen && d.Digest == r.Digest {
			out = append(out, d)
		}
	}
	return out
}

// At is how many people have approved the given stage.
func (r Request) At(stage int) int {
	n := 0
	for _, d := range r.Standing() {
		if d.Stage == stage {
			n++
		}
	}
	return n
}

// Authority finds the role by which a person may decide the current stage, under the policy as it is now.
// It does not look at whether the person was counted before.
func (r Request) Authority(p *Policy, who Identity) (Role, *Denied) {
	if code := who.trouble(); code != "" {
		return Role{}, &Denied{Code: code}
	}
	if !r.Plan.SelfOK && slices.Contains(r.Plan.Requesters, who.ID) {
		return Role{}, &Denied{Code: DeniedSelf, Role: r.title(p)}
	}
	denied := &Denied{Code: DeniedNotMember, Role: r.title(p)}
	last := r.Stage == len(r.Plan.Stages)-1
	for _, name := range r.Roles() {
		role, ok := p.Role(name)
		switch {
		case !ok || !role.Holds(who):
		case !role.Covers(r.Tool):
			denied = &Denied{Code: DeniedTool, Role: role.Title}
		case last && role.MaxRisk < r.Plan.Risk:
			denied = &Denied{Code: DeniedCeiling, Role: role.Title, Need: r.Plan.Risk}
		default:
			return role, nil
		}
	}
	return Role{}, denied
}

// title names the stage's role for people.
func (r Request) title(p *Policy) string {
	if r.Stage >= len(r.Plan.Stages) {
		return ""
	}
	name := r.Plan.Stages[r.Stage].Approver
	if role, ok := p.Role(name); ok {
		return role.Title
	}
	return name
}

// counted reports whether the person's approval stands at any stage.
func (r Request) counted(who PersonID) bool {
	return slices.ContainsFunc(r.Standing(), func(d Decision) bool { return d.By == who })
}

// Over is the answer to somebody who comes after the request was resolved.
func (r Request) Over() *Denied {
	return &Denied{Code: DeniedResolved, By: r.ClosedBy, State: r.State, At: r.ClosedAt, Role: r.ClosedRole}
}

// close ends the request.
func (r Request) close(s State, who PersonID, name, role, reason string, now time.Time) Request {
	r.State, r.ClosedBy, r.ClosedName, r.ClosedRole, r.Reason, r.ClosedAt = s, who, name, role, reason, now
	r.EscalateAt = time.Time{}
	return r
}
