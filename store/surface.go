package store

import "time"

// SurfaceKind says what a surface shows, and so which function renders it.
type SurfaceKind string

// The kinds of surface, with what Ref names.
const (
	SurfaceCard       SurfaceKind = "card"       // a request's card for its approvers; Ref: a request
	SurfaceEscalation SurfaceKind = "escalation" // the card as a lead gets it; Ref: a request
	SurfaceStep       SurfaceKind = "step"       // a step's tool calls, in the asker's thread; Ref: a turn, with Step
	SurfaceDraft      SurfaceKind = "draft"      // what the model is writing, until it is known what it becomes: the step, the answer or the problem then takes its place; Ref: a turn, with Step
	SurfaceAnswer     SurfaceKind = "answer"     // the agent's answer, in the thread; Ref: a turn
	SurfaceFile       SurfaceKind = "file"       // the whole of an answer that is too long for messages; Ref: a turn, with Step
	SurfaceProblem    SurfaceKind = "problem"    // a turn that stopped, with Try again; Ref: a turn
	SurfaceQueued     SurfaceKind = "queued"     // tells a sender that the message waits; Ref: a turn
	SurfaceReworded   SurfaceKind = "reworded"   // tells those who asked that what they edited or deleted since still waits as it was; Ref: a turn, with Step
	SurfaceUnknown    SurfaceKind = "unknown"    // asks whether a run happened; Ref: an execution
	SurfaceBundle     SurfaceKind = "bundle"     // the requests of one step for the same approvers, in one card; Ref: a turn, with Step
	SurfaceLine       SurfaceKind = "line"       // how many requests wait behind the cards that are open at an address; Ref: the line, as the desk names it
	SurfaceNotice     SurfaceKind = "notice"     // tells a person something about a request, as Note says; Ref: a request, with Step as Note says
	SurfaceQuestion   SurfaceKind = "question"   // an approver's question to the requester, in the thread; Ref: a request, with Step: which remark
	SurfaceStandIn    SurfaceKind = "stand_in"   // tells somebody that they stand in for a person who is away; Ref: the person who is away, with Step: which version of the absence
	SurfaceGrant      SurfaceKind = "grant"      // a grant that is offered, in force, or over; Ref: a grant
	SurfaceInquiry    SurfaceKind = "inquiry"    // the model's question to the person, with its choices; Ref: a call
	SurfaceElicit     SurfaceKind = "elicit"     // what a tool asks the person who asked, in the middle of its run; Ref: an elicitation
	SurfaceAttachment SurfaceKind = "attachment" // a file that a run brought back, in the asker's thread; Ref: an execution, with Step: which file, from 0
	SurfaceHead       SurfaceKind = "head"       // the newest signed head of the history, each time as another message; Ref: as the desk names it, with Step: which head was posted last
	SurfacePause      SurfaceKind = "pause"      // tells those who may end it that everything is paused; Ref: which pause, as the desk names it
	SurfaceHome       SurfaceKind = "home"       // a person's Home tab: what waits for them, what they asked for, and more; Ref: as the desk names it
	SurfaceStandstill SurfaceKind = "standstill" // tells a conversation that a pause holds up what was said there; Ref: a turn
)

// Note says what a notice tells somebody about a request.
type Note string

// The notes.
const (
	NoteFallen   Note = "fallen"   // your decision does not count any more, and why; Step: by which edit, counted from 1, or 0 for the policy
	NoteTurn     Note = "turn"     // a card that you have already is yours to decide now
	NoteReminder Note = "reminder" // this still waits for you
	NoteInvited  Note = "invited"  // a colleague handed this on to you, or you stand in for one who is away
	NoteAnswered Note = "answered" // the requester answered your question; Step: which remark it is
	NoteGlass    Note = "glass"    // an operator allowed it in place of its approvers; Step: by which decision, counted from 1
)

// SurfaceState says whether Slack shows what it should.
type SurfaceState string

// The states of a surface.
const (
	SurfaceWanted      SurfaceState = "wanted"      // Slack does not show the wanted version yet
	SurfaceShown       SurfaceState = "shown"       // Slack shows it
	SurfaceExpanded    SurfaceState = "expanded"    // stands for the surfaces of each person that it was sent to
	SurfaceUnreachable SurfaceState = "unreachable" // Slack refused for good; LastError says why
	SurfaceGone        SurfaceState = "gone"        // its time is over, and Slack does not show it any more
	SurfaceVanished    SurfaceState = "vanished"    // its message was taken away before its time: it is posted again when somebody asks, or its deadline nears
)

// Rank says what goes first where Slack does not take everything at once.
type Rank string

// The ranks. A surface keeps the one that it was made with.
const (
	RankFirst Rank = "first" // what must not wait: cards for critical calls, escalations, unknown outcomes, broken glass
	RankPlain Rank = ""      // other cards and questions
	RankLast  Rank = "last"  // what only tells people something: steps, answers, notices
)

// Timer is the kind of timer that makes Slack show what has the rank.
func (r Rank) Timer() TimerKind {
	switch r {
	case RankFirst:
		return TimerShowFirst
	case RankLast:
		return TimerShowLast
	}
	return TimerShow
}

// Surface is one thing that Slack must show, rendered from the stored state by one function of its kind.
type Surface struct {
	ID        string       `json:"id"` // random; also in the message's metadata, so that a lost post is found again
	Version   uint64       `json:"version"`
	Kind      SurfaceKind  `json:"kind"`
	Ref       string       `json:"ref"`
	Step      int          `json:"step,omitempty"`
	Request   string       `json:"request,omitempty"` // the request whose chain its showings are recorded in
	To        string       `json:"to"`                // "conversation:ID", "channel:NAME or id", "user:ID", "role:NAME" (expands into its members), or "group:NAME" (into those of a user group's members whom the stage is for)
	Role      string       `json:"role,omitempty"`    // for SurfaceEscalation: the role that it was escalated to
	Bundle    string       `json:"bundle,omitempty"`  // for SurfaceBundle: it shows the step's requests that name the same bundle
	Note      Note         `json:"note,omitempty"`    // for SurfaceNotice: what it tells
	Rank      Rank         `json:"rank,omitempty"`    // what it goes before, and what before it
	State     SurfaceState `json:"state"`
	Want      uint64       `json:"want"`              // raised with each change of what it shows
	Shown     uint64       `json:"shown"`             // the Want that Slack shows
	Posts     uint64       `json:"posts"`             // how many renderings were posted
	Hash      string       `json:"hash,omitempty"`    // of the rendering that Slack shows
	Channel   string       `json:"channel,omitempty"` // where Slack shows it: the real channel id
	TS        string       `json:"ts,omitempty"`      // the message; of one that vanished, where it was
	Old       string       `json:"old,omitempty"`     // a message before it that could not be changed any more: it is to be deleted
	Round     uint64       `json:"round,omitempty"`   // how often its message was lost, or another one begun; also in the metadata, so that one that was lost is not found again
	Insist    bool         `json:"insist,omitempty"`  // should it turn out to have vanished, it is posted again at once
	Drafted   bool         `json:"drafted,omitempty"` // its message may have been begun as a draft, without the metadata that names it
	Said      string       `json:"said,omitempty"`    // of a draft, and of a turn that stopped: how much of what the model wrote Slack shows
	LastError string       `json:"last_error,omitempty"`
	Home      *Home        `json:"home,omitempty"` // for SurfaceHome
	CreatedAt time.Time    `json:"created_at"`
	Maker     string       `json:"maker"`          // the process that made it: any other may find that it was posted already
	After     time.Time    `json:"after,omitzero"` // its messages are not older than that by Slack's clock; zero: nobody knows
}

// Home is how somebody looks at their Home tab.
type Home struct {
	At    time.Time  `json:"at"`              // when they looked last
	Rests bool       `json:"rests,omitempty"` // that is a while ago: it is shown without buttons, until they look again
	Pages []HomePage `json:"pages,omitempty"` // which page of each of its parts; left out: the first
	Looks string     `json:"looks,omitempty"` // hash of what Slack shows, but for what its buttons name
}

// HomePage is the page that somebody turned to in a part of their Home tab, from 0.
type HomePage struct {
	Part string `json:"part"`
	Page int    `json:"page"`
}

// Page is the page of a part.
func (h Home) Page(part string) int {
	for _, p := range h.Pages {
		if p.Part == part {
			return p.Page
		}
	}
	return 0
}

// Rendering is one posted version of a surface, kept so that anybody can see later what was shown.
type Rendering struct {
	Surface string    `json:"surface"`
	Post    uint64    `json:"post"`            // from 1, rising
	Hash    string    `json:"hash"`            // SHA-256 of Body, in hex
	Shows   []Shown   `json:"shows,omitempty"` // the requests that can be decided from it
	Body    []byte    `json:"body"`            // text and blocks as JSON, as sent
	At      time.Time `json:"at"`
}

// Shown is one request as a rendering showed it.
type Shown struct {
	Request string    `json:"request"`
	Digest  string    `json:"digest"`          // of the execution that was shown
	Whole   bool      `json:"whole,omitempty"` // its arguments were shown whole, so it can be approved from here
	Since   time.Time `json:"since,omitzero"`  // when the surface showed this digest first
}

// Of is how a rendering showed a request; zero if it did not.
func (r Rendering) Of(request string) Shown {
	for _, s := range r.Shows {
		if s.Request == request {
			return s
		}
	}
	return Shown{}
}
