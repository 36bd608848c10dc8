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
	Kind      DecisionKind  `json:"kind"`
	By        PersonID      `json:"by"`
	Name      string        `json:"name"`
	Role      string        `json:"role"` // the role that gave the authority
	Stage     int           `json:"stage"`
	Digest    string        `json:"digest"`    // over the execution that was shown
	Rendering string        `json:"rendering"` // hash of the posted version of the card that was clicked
	Reason    string        `json:"reason,omitempty"`
	At        time.Time     `json:"at"`
	Fallen    bool          `json:"fallen,omitempty"` // it counts no more: the arguments or the policy changed, or the person did the opposite since
	Typed     bool          `json:"typed,omitempty"`  // a value was typed for it
	Took      time.Duration `json:"took,omitempty"`   // since these arguments were shown there, at this stage; zero: not known

	Unforetold bool `json:"unforetold,omitempty"` // the preview that a tool makes was not there yet

	BreakGlass bool `json:"break_glass,omitempty"` // an operator allowed it, in place of everybody whom the stages that remained would have asked
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
	Secrets      []string        `json:"secrets,omitempty"` // the arguments that are masked where others than its approvers read along
	Preview      string          `json:"preview,omitempty"`
	PreviewFault string          `json:"preview_fault,omitempty"` // why there is no preview although policy asks for one
	Forecast     *Forecast       `json:"forecast,omitempty"`      // what a tool says that it would do; nil: none is asked
	Facts        AskFacts        `json:"facts"`
	Plan         Plan            `json:"plan"`
	Stage        int             `json:"stage"`               // index into Plan.Stages
	Joined       []string        `json:"joined,omitempty"`    // roles that escalation added to the current stage
	JoinedAt     []time.Time     `json:"joined_at,omitempty"` // when each of them was added
	Invited      []Invite        `json:"invited,omitempty"`   // people who were added to the current stage
	Handed       []Invite        `json:"handed,omitempty"`    // everybody to whom any stage was handed on by hand
	Decisions    []Decision      `json:"decisions,omitempty"`
	Edits        []Edit          `json:"edits,omitempty"`
	Remarks      []Remark        `json:"remarks,omitempty"`
	Again        *Again          `json:"again,omitempty"`   // it was asked for before, and nobody knows whether that run happened
	StepUp       string          `json:"step_up,omitempty"` // why approving asks for a typed value although it is not critical
	Bundle       string          `json:"bundle,omitempty"`  // names the card that shows it together with others of its step; empty: never with others
	Apart        bool            `json:"apart,omitempty"`   // it has left the bundle for a card of its own; the bundle only says so
	Lines        []string        `json:"lines,omitempty"`   // addresses whose line counts it: it is on one of the open cards there, or waits behind them
	CreatedAt    time.Time       `json:"created_at"`
	StageAt      time.Time       `json:"stage_at,omitzero"`    // when the current stage began
	ExpiresAt    time.Time       `json:"expires_at"`           // of the current stage
	EscalateAt   time.Time       `json:"escalate_at,omitzero"` // zero: nobody is left to tell
	RemindAt     time.Time       `json:"remind_at,omitzero"`   // zero: nobody is reminded any more
	Reminded     int             `json:"reminded,omitempty"`   // reminders of the current stage
	Owed         []Owed          `json:"owed,omitempty"`       // reminders that wait for the end of a do-not-disturb
	Rounds       int             `json:"rounds,omitempty"`     // how often the current stage's escalation chain was gone through again
	Told         int             `json:"told,omitempty"`       // how many of those rounds everybody was told of
	RunBy        time.Time       `json:"run_by,omitzero"`      // set when approved
	ClosedAt     time.Time       `json:"closed_at,omitzero"`
	ClosedBy     PersonID        `json:"closed_by,omitempty"` // empty: time or policy closed it
	ClosedName   string          `json:"closed_name,omitempty"`
	ClosedRole   string          `json:"closed_role,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	Lost         bool            `json:"lost,omitempty"` // it ended because the store was put back from a backup: what became of it since is not known
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
	Reworded     *Reworded         `json:"reworded,omitempty"`   // what became of them since
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
	Took      time.Duration // see Decision.Took
}

// AsCall is the request's call as the policy sees it, with the arguments as they are now.
func (r Request) AsCall(args map[string]any) Call {
	return Call{
		Tool: r.Tool, Effect: r.Effect, Requesters: r.Facts.Requesters, Authors: r.Facts.Authors,
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
	return append(r.stage().Roles(), r.Joined...)
}

// stage is the current stage; none for a plan that has none.
func (r Request) stage() Stage {
	if r.Stage >= len(r.Plan.Stages) {
		return Stage{}
	}
	return r.Plan.Stages[r.Stage]
}

// last reports whether the request is at its last stage, which the ceiling binds.
func (r Request) last() bool { return r.Stage == len(r.Plan.Stages)-1 }

// Bundled reports whether the request is decided on a card that it shares with others of its step.
func (r Request) Bundled() bool { return r.Bundle != "" && !r.Apart }

// People are those who asked for the request or had a say in it, each once: all in whose history it is.
func (r Request) People() []PersonID {
	out := slices.Clone(r.Facts.Requesters)
	for _, d := range r.Decisions {
		out = append(out, d.By)
	}
	out = append(out, r.ClosedBy)
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(p PersonID) bool { return p == "" })
}

// WantsTyping reports whether approving it asks for a typed value.
func (r Request) WantsTyping() bool { return r.Plan.Risk >= Critical || r.StepUp != "" }

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

// Against lists the rejections of a stage that count: fewer than end the request.
func (r Request) Against(stage int) []Decision {
	var out []Decision
	for _, d := range r.Decisions {
		if d.Kind == Reject && !d.Fallen && d.Digest == r.Digest && d.Stage == stage {
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
	stage := r.stage()
	for i, name := range r.Roles() {
		role, ok := p.Role(name)
		own := i <= len(stage.Or)
		switch {
		case !ok || !role.Holds(who):
		case own && stage.Group != "" && !slices.Contains(who.Groups, stage.Group):
			denied = &Denied{Code: DeniedGroup, Role: stage.Title(p)}
		case !role.Covers(r.Tool):
			denied = &Denied{Code: DeniedTool, Role: role.Title}
		case r.last() && role.MaxRisk < r.Plan.Risk:
			denied = &Denied{Code: DeniedCeiling, Role: role.Title, Need: r.Plan.Risk}
		default:
			return role, nil
		}
	}
	if r.invites(who.ID) {
		return r.Peer(p, who)
	}
	return Role{}, denied
}

// title names the current stage for people.
func (r Request) title(p *Policy) string {
	if r.Stage >= len(r.Plan.Stages) {
		return ""
	}
	return r.stage().Title(p)
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
	r.EscalateAt, r.RemindAt, r.Owed = time.Time{}, time.Time{}, nil
	return r
}
