package approvers

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// State is the state of a request. See docs/states.md.
type State string

// The states of a request.
const (
	Pending   State = "pending"
	Approved  State = "approved"  // every stage passed, or an operator allowed the call; the call has not run yet
	Consumed  State = "consumed"  // the call's only run was started
	Rejected  State = "rejected"  // rejected by approvers or an operator
	Expired   State = "expired"   // not decided in time, or approved and not run in time
	Withdrawn State = "withdrawn" // withdrawn by a requester, or by a person whose message waited for the request's end
	Revoked   State = "revoked"   // an approver revoked the approval before the call ran
	Voided    State = "voided"    // the call may no longer run: the tool or the policy changed, or a restore ended the request
	Refused   State = "refused"   // under the policy, nobody may allow the call (a refused action of a person is a Denied)
)

// Open reports whether a run of the request's call is possible.
func (s State) Open() bool { return s == Pending || s == Approved }

// DecisionKind is the kind of a person's decision.
type DecisionKind string

// The kinds of decision.
const (
	Approve DecisionKind = "approve"
	Reject  DecisionKind = "reject"
	Modify  DecisionKind = "modify"
)

// Decision is one person's decision, with the version of the request that the person saw.
type Decision struct {
	Kind      DecisionKind  `json:"kind"`
	By        PersonID      `json:"by"`
	Local     string        `json:"local,omitempty"` // see Identity.Local
	Name      string        `json:"name"`
	Role      string        `json:"role"` // the role that gave the authority
	Stage     int           `json:"stage"`
	Digest    string        `json:"digest"`    // digest of the execution that was shown
	Rendering string        `json:"rendering"` // hash of the posted version of the card that was clicked
	Reason    string        `json:"reason,omitempty"`
	At        time.Time     `json:"at"`
	Fallen    bool          `json:"fallen,omitempty"` // the decision no longer counts: the arguments or the policy changed, or the person made another decision
	Typed     bool          `json:"typed,omitempty"`  // the person confirmed the decision by typing a value
	Took      time.Duration `json:"took,omitempty"`   // time since the clicked message first showed these arguments or, if later, since the stage began. Zero: not known

	WithoutToolPreview bool `json:"unforetold,omitempty"` // the tool preview was not ready when the person decided

	BreakGlass bool `json:"break_glass,omitempty"` // an operator allowed the call in place of all remaining stages
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

// Request is the approval request for one tool call.
type Request struct {
	ID                string             `json:"id"` // random, used once
	Version           uint64             `json:"version"`
	State             State              `json:"state"`
	Conversation      string             `json:"conversation"`
	Turn              string             `json:"turn"`
	Call              string             `json:"call"`
	Agent             string             `json:"agent"`
	Tool              string             `json:"tool"`
	ToolHash          string             `json:"tool_hash"`
	Effect            Effect             `json:"effect"`
	Execution         string             `json:"execution"` // the current execution's id; an edit makes a new execution
	Args              json.RawMessage    `json:"args"`      // the execution's exact bytes
	Digest            string             `json:"digest"`
	Secrets           []string           `json:"secrets,omitempty"`  // the arguments whose values are masked; an approver sees the values in a reveal
	Revealed          []Reveal           `json:"revealed,omitempty"` // to whom the masked values of the current arguments were shown
	Preview           string             `json:"preview,omitempty"`
	MadePreview       bool               `json:"preview_made,omitempty"`  // the policy and the tool give no preview, so Preview is made from the tool's title and the arguments
	PreviewFault      string             `json:"preview_fault,omitempty"` // why there is no preview although the policy asks for one
	ToolPreview       *ToolPreview       `json:"forecast,omitempty"`      // a tool's own preview of the call; nil: none is made
	Facts             AskFacts           `json:"facts"`
	Plan              Plan               `json:"plan"`
	Stage             int                `json:"stage"`               // index into Plan.Stages
	Joined            []string           `json:"joined,omitempty"`    // roles that escalation added to the current stage, in this order
	JoinedAt          []time.Time        `json:"joined_at,omitempty"` // when each role in Joined was added
	Calls             []LeadCall         `json:"calls,omitempty"`     // why roles in Joined were added before the escalation was due
	Invited           []Invite           `json:"invited,omitempty"`   // people who were added to the current stage
	Handed            []Invite           `json:"handed,omitempty"`    // everybody to whom a stage was handed on by a colleague
	Decisions         []Decision         `json:"decisions,omitempty"`
	Edits             []Edit             `json:"edits,omitempty"`
	Remarks           []Remark           `json:"remarks,omitempty"`
	Retry             *Retry             `json:"again,omitempty"`   // set if the request repeats a call whose earlier outcome is unknown
	StepUp            string             `json:"step_up,omitempty"` // why approval needs a typed value although the risk is not critical
	Bundle            string             `json:"bundle,omitempty"`  // the card shared with other requests of the step; empty: none
	Apart             bool               `json:"apart,omitempty"`   // the request has its own card, although it belongs to a bundle; the bundle's card only mentions it
	QueuedAt          []string           `json:"lines,omitempty"`   // addresses whose card queue counts this request, as an open card or as a waiting request
	CreatedAt         time.Time          `json:"created_at"`
	StageAt           time.Time          `json:"stage_at,omitzero"`    // when the current stage began
	ExpiresAt         time.Time          `json:"expires_at"`           // the deadline of the current stage
	EscalateAt        time.Time          `json:"escalate_at,omitzero"` // zero: nobody is left to notify
	RemindAt          time.Time          `json:"remind_at,omitzero"`   // when people are reminded next; zero: never
	Reminded          int                `json:"reminded,omitempty"`   // reminders of the current stage
	DeferredReminders []DeferredReminder `json:"owed,omitempty"`       // reminders that one person gets later; see DeferredReminder
	Rounds            int                `json:"rounds,omitempty"`     // how many further rounds of notifications the current stage has begun after the last lead (repeat)
	Told              int                `json:"told,omitempty"`       // how many of the Rounds have already been announced
	Gap               *RequestGap        `json:"gap,omitempty"`        // the last gap after which people were reminded; nil: none
	Unreached         *Unreached         `json:"unreached,omitempty"`  // whether people who may decide the current stage can see a card, if there is or was a problem; nil: no problem
	RunBy             time.Time          `json:"run_by,omitzero"`      // when the approval expires; zero: not approved
	ClosedAt          time.Time          `json:"closed_at,omitzero"`
	ClosedBy          PersonID           `json:"closed_by,omitempty"` // the person who ended the request or gave the last approval; empty: a deadline or the policy ended it
	ClosedName        string             `json:"closed_name,omitempty"`
	ClosedRole        string             `json:"closed_role,omitempty"`
	Reason            string             `json:"reason,omitempty"`
	Damaged           bool               `json:"damaged,omitempty"` // the request ended because its record was damaged; the fields were restored from its history and its call
	Lost              bool               `json:"lost,omitempty"`    // the store was restored from a backup, so nobody knows what happened to the request after the backup
}

// AskFacts are the facts at the time when the model proposed the call. They are stored, so the call can be planned
// again after a policy change.
type AskFacts struct {
	Asker        PersonID          `json:"asker"`
	AskerName    string            `json:"asker_name"`
	Conversation ConversationFacts `json:"conversation"`
	Requesters   []PersonID        `json:"requesters"`
	Authors      []PersonID        `json:"authors"`
	Quote        string            `json:"quote"`                // the text that led to the call
	MessageTS    string            `json:"message_ts,omitempty"` // ts of the message that contains Quote
	MessageEdit  *MessageEdit      `json:"reworded,omitempty"`   // a later edit or deletion of the message that contains Quote
	Caller       *Caller           `json:"caller,omitempty"`     // nil: Countersign's own agent asked
}

// Action is one person's click on a request, or a message about the request. At is the time at which Slack delivered
// the action.
type Action struct {
	Who       Identity
	At        time.Time
	Digest    string // digest of the arguments that the person was shown
	Stage     string // StageDigest of the request that the person was shown; empty: unknown, for example because an earlier program made the card
	Partly    bool   // the person was shown only some of the arguments
	Typed     bool   // the person typed the value that critical calls ask for
	Rendering string
	Reason    string
	Took      time.Duration // see Decision.Took
	Written   string        // ts of the message in which the action was written; empty: it was a click
}

// AsCall returns the request's call with the given arguments, as input for [Policy.Plan].
func (r Request) AsCall(args map[string]any) Call {
	return Call{
		Tool: r.Tool, Effect: r.Effect, Requesters: r.Facts.Requesters, Authors: r.Facts.Authors,
		Facts: Facts{
			Args: args, Requester: r.Facts.Asker.User(), Conversation: r.Facts.Conversation, Agent: r.Agent, Now: r.CreatedAt,
			Caller: r.Facts.Caller,
		},
	}
}

// Roles returns the roles whose members may decide the current stage.
func (r Request) Roles() []string {
	if r.Stage < 0 || r.Stage >= len(r.Plan.Stages) {
		return nil
	}
	return append(r.stage().Roles(), r.Joined...)
}

// CurrentStage returns the request's current stage, or a zero stage if its plan has no such stage.
func (r Request) CurrentStage() Stage { return r.stage() }

func (r Request) stage() Stage {
	if r.Stage < 0 || r.Stage >= len(r.Plan.Stages) {
		return Stage{}
	}
	return r.Plan.Stages[r.Stage]
}

// Remark returns the remark with index i, or the zero Remark if there is no such remark.
func (r Request) Remark(i int) Remark {
	if i < 0 || i >= len(r.Remarks) {
		return Remark{}
	}
	return r.Remarks[i]
}

// last reports whether the request is at its last stage. A role's ceiling applies only at the last stage.
func (r Request) last() bool { return r.Stage == len(r.Plan.Stages)-1 }

// Bundled reports whether the request shares a card with other requests of its step.
func (r Request) Bundled() bool { return r.Bundle != "" && !r.Apart }

// People returns the requesters of the request, the people who decided it, and the person who ended it. No person
// occurs twice. These people see the request in their history.
func (r Request) People() []PersonID {
	out := slices.Clone(r.Facts.Requesters)
	for _, d := range r.Decisions {
		out = append(out, d.By)
	}
	out = append(out, r.ClosedBy)
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(p PersonID) bool { return p == "" })
}

// WantsTyping reports whether an approval of the request needs a typed value.
func (r Request) WantsTyping() bool { return r.Plan.Risk >= Critical || r.StepUp != "" }

// ValidApprovals lists the approvals that count for the current arguments.
func (r Request) ValidApprovals() []Decision {
	var out []Decision
	for _, d := range r.Decisions {
		if d.Kind != Reject && !d.Fallen && d.Digest == r.Digest {
			out = append(out, d)
		}
	}
	return out
}

// Against returns the rejections that count at a stage. The request ends when the number of rejections reaches the
// stage's limit.
func (r Request) Against(stage int) []Decision {
	var out []Decision
	for _, d := range r.Decisions {
		if d.Kind == Reject && !d.Fallen && d.Digest == r.Digest && d.Stage == stage {
			out = append(out, d)
		}
	}
	return out
}

// At returns how many people have approved the given stage.
func (r Request) At(stage int) int {
	n := 0
	for _, d := range r.ValidApprovals() {
		if d.Stage == stage {
			n++
		}
	}
	return n
}

// Authority returns the role under which a person may decide the current stage, according to the current policy.
// Authority does not check whether a decision of this person already counts.
func (r Request) Authority(p *Policy, who Identity) (Role, *Denied) {
	if code := who.trouble(); code != "" {
		return Role{}, &Denied{Code: code}
	}
	if !r.Plan.SelfOK && bars(r, who) {
		return Role{}, &Denied{Code: DeniedSelf, Role: r.title(p)}
	}
	denied := &Denied{Code: DeniedNotMember, Role: r.title(p)}
	stage := r.stage()
	for i, name := range r.Roles() {
		role, ok := p.Role(name)
		own := i <= len(stage.Or)
		switch {
		case !ok:
		case !role.Holds(who):
			denied = role.denyMember(who, denied)
		case own && stage.Group != "" && !slices.Contains(who.Groups, stage.Group):
			denied = stage.denyGroup(who, stage.Title(p))
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

// title returns a readable name of the current stage, with the leads that escalation added.
func (r Request) title(p *Policy) string {
	if r.Stage < 0 || r.Stage >= len(r.Plan.Stages) {
		return ""
	}
	titles := []string{r.stage().Title(p)}
	for _, lead := range r.Joined {
		titles = append(titles, Stage{Approver: lead}.Title(p))
	}
	return strings.Join(titles, " or ")
}

// counted reports whether the person has an approval that counts, at any stage.
func (r Request) counted(who PersonID) bool {
	return slices.ContainsFunc(r.ValidApprovals(), func(d Decision) bool { return d.By == who })
}

// Over returns the denial for an action on a request that has ended.
func (r Request) Over() *Denied {
	if r.Damaged {
		return &Denied{Code: DeniedDamaged, State: r.State, At: r.ClosedAt}
	}
	return &Denied{Code: DeniedResolved, By: r.ClosedBy, State: r.State, At: r.ClosedAt, Role: r.ClosedRole}
}

// close sets the state of a request that is approved or ends. Nobody can decide the request after that. close clears
// the escalation and the reminders.
func (r Request) close(s State, who PersonID, name, role, reason string, now time.Time) Request {
	r.State, r.ClosedBy, r.ClosedName, r.ClosedRole, r.Reason, r.ClosedAt = s, who, name, role, reason, now
	r.EscalateAt, r.RemindAt, r.DeferredReminders = time.Time{}, time.Time{}, nil
	return r
}

// end ends a request without a run. The last result of end, the denial, is always nil.
func (r Request) end(s State, who PersonID, name, role, reason string, now time.Time) (Request, []Event, *Denied) {
	return r.close(s, who, name, role, reason, now), []Event{RequestClosed{State: s}}, nil
}

// MessageEdit records that a message was edited or deleted after the bot had read the message. The message led to a
// call, or answered a question about a request. The model's input, the call and the answer stay unchanged. The people
// who decide see the edit.
type MessageEdit struct {
	At      time.Time `json:"at"`
	Edit    string    `json:"edit,omitempty"` // Slack's ts of the edit; the latest edit counts
	Deleted bool      `json:"deleted,omitempty"`
	Text    string    `json:"text,omitempty"` // the current text; empty for a deleted message
}

// After reports whether the edit w replaces the edit that is already recorded. The parameter named was is the
// recorded edit, or nil. Slack may report edits out of order, and a deletion is final.
func (w MessageEdit) After(was *MessageEdit) bool {
	return was == nil || !was.Deleted && (w.Deleted || w.Edit > was.Edit)
}

// RecordMessageEdit records an edit or deletion of the message that led to an open request. RecordMessageEdit returns
// false if the request is not open, or if w does not replace the recorded edit.
func (r Request) RecordMessageEdit(w MessageEdit) (Request, []Event, bool) {
	if !r.State.Open() || !w.After(r.Facts.MessageEdit) {
		return r, nil, false
	}
	r.Facts.MessageEdit = &w
	return r, []Event{SourceEdited{}}, true
}
