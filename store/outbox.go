package store

import (
	"slices"
	"time"
)

// OutboxKind says what an outbox message shows. The kind decides which function renders the message.
type OutboxKind string

// These are the kinds of outbox messages. Each comment also gives the meaning of Ref. If a comment says "with Step",
// the field Step is also set. Step is the number of a step of the turn, if the comment does not say otherwise.
const (
	OutboxCard          OutboxKind = "card"       // a request's card for its approvers; Ref: a request
	OutboxEscalation    OutboxKind = "escalation" // the card for a lead; Ref: a request
	OutboxStep          OutboxKind = "step"       // a step's tool calls, in the requester's thread; Ref: a turn, with Step
	OutboxDraft         OutboxKind = "draft"      // the text that the model is writing; later, the step, the answer or the problem replaces the draft; Ref: a turn, with Step
	OutboxAnswer        OutboxKind = "answer"     // the agent's answer, in the thread; Ref: a turn
	OutboxFile          OutboxKind = "file"       // the full text of an answer that is too long for messages; Ref: a turn, with Step
	OutboxProblem       OutboxKind = "problem"    // a turn that stopped, with Try again; Ref: a turn
	OutboxQueued        OutboxKind = "queued"     // tells a sender that their message waits; Ref: a turn
	OutboxMessageEdit   OutboxKind = "reworded"   // tells requesters who edited or deleted a message that the request waits unchanged; Ref: a turn, with Step
	OutboxUnknown       OutboxKind = "unknown"    // asks whether a run took effect; Ref: an execution
	OutboxBundle        OutboxKind = "bundle"     // the requests of one step for the same approvers, in one card; Ref: a turn, with Step
	OutboxCardQueue     OutboxKind = "line"       // the number of requests queued behind the open cards of an address; Ref: the card queue, as named by the workflow
	OutboxNotice        OutboxKind = "notice"     // tells a person something about a request; Ref: a request. The field Note says what the notice tells, and what Step means
	OutboxQuestion      OutboxKind = "question"   // an approver's question to the requester, in the thread; Ref: a request, with Step: the remark
	OutboxStandIn       OutboxKind = "stand_in"   // tells a stand-in whom they stand in for; Ref: the person who is away, with Step: the version of the absence
	OutboxGrant         OutboxKind = "grant"      // a grant that is offered, in force, or over; Ref: a grant
	OutboxModelQuestion OutboxKind = "inquiry"    // the model's question to the person, with its choices; Ref: a call
	OutboxElicitation   OutboxKind = "elicit"     // a tool's question to the requester, during its run; Ref: an elicitation
	OutboxAttachment    OutboxKind = "attachment" // a file from a run's result, in the requester's thread; Ref: an execution, with Step: the file's index, from 0
	OutboxHead          OutboxKind = "head"       // the newest signed head of the audit; each post is a new Slack message; Step: the number of the head that was posted last
	OutboxReport        OutboxKind = "report"     // a report about the past week; each week's report is a new Slack message; Ref: as named by the workflow
	OutboxOperators     OutboxKind = "operators"  // tells the operators of problems; a later notice may use the message again; Ref: as named by the workflow
	OutboxPause         OutboxKind = "pause"      // tells the people who may resume that everything is paused; Ref: the pause, as named by the workflow
	OutboxHome          OutboxKind = "home"       // a person's Home tab: requests that wait for them, their own requests, and more; Ref: as named by the workflow
	OutboxStandstill    OutboxKind = "standstill" // tells a conversation that its messages wait for the end of a pause; Ref: a turn
	OutboxGap           OutboxKind = "was_away"   // tells a conversation that the bot got a message late, because it received nothing when the message was written; Ref: a turn
)

// Note says what a notice is about.
type Note string

// The kinds of notice.
const (
	NoteFallen       Note = "fallen"        // the person's decision no longer counts, and why; Step: the number of the edit, from 1; 0: the policy changed
	NoteTurn         Note = "turn"          // the stage in which the person may decide has begun; the person already has the card
	NoteReminder     Note = "reminder"      // the request still waits for the person's decision
	NoteInvited      Note = "invited"       // a colleague handed on the request to the person, or the person stands in for somebody who is away
	NoteAnswered     Note = "answered"      // the requester answered the person's question; Step: the remark
	NoteAnswerEdited Note = "answer_edited" // the requester edited or deleted an earlier answer; Step: the remark
	NoteBreakGlass   Note = "glass"         // an operator approved instead of the approvers; Step: the decision, from 1
)

// OutboxState says whether Slack shows the current version of an outbox message.
type OutboxState string

// The states of an outbox message.
const (
	OutboxWanted      OutboxState = "wanted"      // Slack does not show the wanted version yet
	OutboxShown       OutboxState = "shown"       // Slack shows the current version
	OutboxExpanded    OutboxState = "expanded"    // replaced by one outbox message for each recipient
	OutboxUnreachable OutboxState = "unreachable" // Slack refused the message permanently; LastError says why
	OutboxRemoved     OutboxState = "gone"        // expired and removed from Slack
	OutboxLost        OutboxState = "vanished"    // somebody deleted the Slack message too early; the bot posts it again on request, or before its deadline
)

// Rank is the priority with which an outbox message is delivered when Slack limits the rate of calls.
type Rank string

// The ranks, highest priority first. The rank of an outbox message never changes.
const (
	RankFirst  Rank = "first"  // urgent: cards for critical calls, escalations, unknown outcomes, break-glass notices
	RankPlain  Rank = ""       // other cards and questions
	RankAnswer Rank = "answer" // messages for which a requester waits: answers, and messages about stopped turns
	RankLast   Rank = "last"   // information only: steps, notices
)

// Ranks are all ranks.
var Ranks = []Rank{RankFirst, RankPlain, RankAnswer, RankLast}

// Timer returns the kind of the timers that deliver messages of the rank.
func (r Rank) Timer() TimerKind {
	switch r {
	case RankFirst:
		return TimerShowFirst
	case RankAnswer:
		return TimerShowAnswer
	case RankLast:
		return TimerShowLast
	}
	return TimerShow
}

// OutboxMessage is one message, or another item such as a Home tab, that Slack must show. Each kind of outbox message
// has a function that renders the content from the stored state.
type OutboxMessage struct {
	ID            string      `json:"id"` // random; also in the Slack message's metadata, so that a post whose delivery is unconfirmed can be found
	Version       uint64      `json:"version"`
	Kind          OutboxKind  `json:"kind"`
	Ref           string      `json:"ref"`
	Step          int         `json:"step,omitempty"`
	Request       string      `json:"request,omitempty"` // the request whose audit chain records its deliveries
	To            string      `json:"to"`                // the address: one of the prefixes ToConversation, ToChannel, …, followed by a name or id
	Role          string      `json:"role,omitempty"`    // for OutboxEscalation: the role that the request was escalated to
	Bundle        string      `json:"bundle,omitempty"`  // for OutboxBundle: the card shows the step's requests with this bundle
	Note          Note        `json:"note,omitempty"`    // for OutboxNotice
	Rank          Rank        `json:"rank,omitempty"`
	State         OutboxState `json:"state"`
	Revision      uint64      `json:"want"`                // incremented with each change of the content
	ShownRevision uint64      `json:"shown"`               // the Revision that Slack shows; for an expanded message, the Revision of the recipients' messages
	KeepFrom      uint64      `json:"keep_from,omitempty"` // the store keeps no renderings of earlier Revisions, because they may contain texts that were erased since
	Posts         uint64      `json:"posts"`               // how many renderings were posted
	Hash          string      `json:"hash,omitempty"`      // hash of the rendering that Slack shows
	Channel       string      `json:"channel,omitempty"`   // id of the channel in which Slack shows the message
	TS            string      `json:"ts,omitempty"`        // ts of the Slack message; kept after the message was lost
	Parts         []string    `json:"parts,omitempty"`     // ts of the further Slack messages of a long answer, in order; empty: there are none, or an earlier program posted them
	ReplacedTS    string      `json:"old,omitempty"`       // ts of an earlier Slack message, which can no longer be edited and must be deleted
	Round         uint64      `json:"round,omitempty"`     // how often the message was lost or replaced. The metadata has this number, so that a search skips lost messages
	RepostIfLost  bool        `json:"insist,omitempty"`    // if the bot finds that the message is lost, the bot posts it again immediately
	Drafted       bool        `json:"drafted,omitempty"`   // the Slack message may have begun as a draft, which has no metadata that identifies it
	DraftText     string      `json:"said,omitempty"`      // for a draft or a stopped turn: the part of the model's text that Slack shows
	Steps         []int       `json:"steps,omitempty"`     // for OutboxAnswer: steps that have no message of their own, so the answer describes them
	LastError     string      `json:"last_error,omitempty"`
	Refusals      int         `json:"refused,omitempty"`      // for an answer or a question: how often Slack refused it, without early retries; the next delay depends on this number
	RefusedSince  time.Time   `json:"refused_since,omitzero"` // for an answer or a question: when Slack first refused it; zero: Slack has not refused it
	Leftovers     []Leftover  `json:"leftovers,omitempty"`    // earlier messages whose deletion Slack refused; TimerLeftover repeats the deletion
	Home          *Home       `json:"home,omitempty"`         // for OutboxHome
	CreatedAt     time.Time   `json:"created_at"`
	AskedAt       time.Time   `json:"asked,omitzero"` // for a card: when it last asked its person again, for example for a later stage; zero: never
	Process       string      `json:"maker"`          // the process that created the outbox message; another process must check whether the message was already posted
	After         time.Time   `json:"after,omitzero"` // a time on Slack's clock, before the first post of the current attempt; zero: unknown
}

// Leftover is a Slack message that the bot must still delete, usually because Slack refused the deletion.
type Leftover struct {
	Channel string    `json:"channel"`
	TS      string    `json:"ts"`
	Since   time.Time `json:"since"`           // when Slack first refused the deletion; for a late post, when it was posted
	Next    time.Time `json:"next"`            // when the bot repeats the deletion
	Late    bool      `json:"late,omitempty"`  // the replica that posted the message had already lost the outbox message to another replica
	Cause   string    `json:"cause"`           // Slack's last reason for the refusal; for a late post, the reason for the deletion
	Parts   []string  `json:"parts,omitempty"` // ts of further Slack messages of the same answer
}

// IsAt reports whether another leftover is the same Slack message.
func (l Leftover) IsAt(other Leftover) bool { return l.Channel == other.Channel && l.TS == other.TS }

// MayUse reports whether a leftover may still become the Slack message of the outbox message. This is possible for a
// late post: another replica took over the outbox message. If that replica has posted nothing yet, it may find the late
// post and use it.
func (s OutboxMessage) MayUse(l Leftover) bool {
	return l.Late && s.State == OutboxWanted && s.TS == ""
}

// ToDelete returns the ts of those Slack messages of a leftover that must be deleted. These are the messages that the
// outbox message does not use. If the outbox message has no record of its further Slack messages, it may use those of a
// late post.
func (s OutboxMessage) ToDelete(l Leftover) []string {
	all := append([]string{l.TS}, l.Parts...)
	switch {
	case s.MayUse(l):
		return nil
	case s.TS == "" || s.Channel != l.Channel:
		return all
	case l.Late && len(s.Parts) == 0:
		all = all[:1]
	}
	return slices.DeleteFunc(all, func(ts string) bool { return ts == s.TS || slices.Contains(s.Parts, ts) })
}

// KeepFromNow returns an outbox message whose texts are being erased. In the state OutboxWanted, the bot may be sending
// a version that still contains the texts. KeepFromNow then sets KeepFrom, so the store does not keep this version.
func (s OutboxMessage) KeepFromNow() OutboxMessage {
	if s.State == OutboxWanted {
		s.Revision++
		s.KeepFrom = s.Revision
	}
	return s
}

// HomeRef returns the Ref of the outbox message of a person's Home tab.
func HomeRef(user string) string { return SettingHomes + "/" + user }

// Home is the state of the Home tab of one person.
type Home struct {
	At       time.Time  `json:"at"`              // when the owner last opened the tab
	Idle     bool       `json:"rests,omitempty"` // the owner has not opened the tab for a while, so it shows no requests until the owner opens it
	Pages    []HomePage `json:"pages,omitempty"` // the current page of each part; a part that is not listed shows its first page
	ViewHash string     `json:"looks,omitempty"` // hash of the content that Slack shows, without the references in its buttons, and of the stages of its requests
}

// HomePage is the current page of a part of a Home tab. Pages are numbered from 0.
type HomePage struct {
	Part string `json:"part"`
	Page int    `json:"page"`
}

// Page returns the page of a part.
func (h Home) Page(part string) int {
	for _, p := range h.Pages {
		if p.Part == part {
			return p.Page
		}
	}
	return 0
}

// Rendering is one posted version of an outbox message. Renderings are kept, so people can later read what Slack
// showed.
type Rendering struct {
	OutboxMessage string    `json:"surface"`
	Post          uint64    `json:"post"`            // from 1, rising
	Hash          string    `json:"hash"`            // SHA-256 of Body, in hex
	Shows         []Shown   `json:"shows,omitempty"` // the requests that people can decide from this rendering
	Body          []byte    `json:"body"`            // text and blocks as JSON, as sent to Slack
	At            time.Time `json:"at"`
}

// Shown says how a rendering showed one request.
type Shown struct {
	Request string    `json:"request"`
	Digest  string    `json:"digest"`          // the digest of the execution that was shown
	Stage   string    `json:"stage,omitempty"` // approvers.StageDigest of the request that was shown; empty: an earlier program made the rendering, or it shows a run
	Whole   bool      `json:"whole,omitempty"` // the rendering shows all arguments, so people can approve the request from it
	Since   time.Time `json:"since,omitzero"`  // when the outbox message first showed this digest
}

// Of returns how a rendering showed a request. If the rendering did not show the request, Of returns the zero Shown.
func (r Rendering) Of(request string) Shown {
	for _, s := range r.Shows {
		if s.Request == request {
			return s
		}
	}
	return Shown{}
}
