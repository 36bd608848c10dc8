package approvers

import (
	"slices"
	"time"
)

// RemarkKind is the kind of a remark. A remark is a text about a request. A remark does not decide the request.
type RemarkKind string

// The kinds of remark.
const (
	Question RemarkKind = "question" // from an approver to the requesters
	Answer   RemarkKind = "answer"   // from a requester
	Comment  RemarkKind = "comment"  // from an approver to the other approvers
)

// Remark is a text about a request. The request's card shows the text.
type Remark struct {
	Kind RemarkKind `json:"kind"`
	To   int        `json:"to,omitempty"` // for an answer: the index of the question in Request.Remarks
	By   PersonID   `json:"by"`
	Name string     `json:"name"`
	Role string     `json:"role,omitempty"` // empty for a requester
	Text string     `json:"text"`
	At   time.Time  `json:"at"`

	MessageTS   string       `json:"message_ts,omitempty"` // for an answer that was written in the thread: ts of its message; empty: the answer was written in the form
	MessageEdit *MessageEdit `json:"reworded,omitempty"`   // a later edit or deletion of the answer's message; Text does not change
}

// MaxRemarks limits the remarks of one request. A card can't show more.
const MaxRemarks = 12

// Answered reports whether the question was answered.
func (r Request) Answered(question int) bool {
	return slices.ContainsFunc(r.Remarks, func(m Remark) bool { return m.Kind == Answer && m.To == question })
}

// Say adds an approver's question or comment. Action.Reason is the text. Two groups of people can add a remark: people
// who may decide now, and people whose approval counts. A remark changes no decision and stops no clock.
func (r Request) Say(in DecisionContext, m Action, kind RemarkKind) (Request, []Event, *Denied) {
	if denied := r.waits(m); denied != nil {
		return r, nil, denied
	}
	if kind != Question && kind != Comment {
		return r, nil, &Denied{Code: DeniedNothing}
	}
	role, denied := r.speakingRole(in.Policy, m.Who)
	if denied != nil {
		return r, nil, denied
	}
	return r.remark(Remark{Kind: kind, By: m.Who.ID, Name: m.Who.Name, Role: role, Text: m.Reason, At: in.Now})
}

// speakingRole returns the role that people see beside a person's remark. Under this role, the person may decide now,
// or has approved.
func (r Request) speakingRole(p *Policy, who Identity) (string, *Denied) {
	role, denied := r.Authority(p, who)
	if denied == nil {
		return role.Name, nil
	}
	for _, d := range r.ValidApprovals() {
		if d.By == who.ID && who.trouble() == "" {
			return d.Role, nil
		}
	}
	return "", denied
}

// Reply answers a question. Only requesters can reply, and only once to each question.
func (r Request) Reply(in DecisionContext, m Action, question int) (Request, []Event, *Denied) {
	if denied := r.waits(m); denied != nil {
		return r, nil, denied
	}
	if m.Who.ID == "" || m.Who.Deleted {
		return r, nil, &Denied{Code: DeniedUnidentified}
	}
	if !asked(r, m.Who) {
		return r, nil, &Denied{Code: DeniedNotRequester}
	}
	if question < 0 || question >= len(r.Remarks) || r.Remarks[question].Kind != Question || r.Answered(question) {
		return r, nil, &Denied{Code: DeniedNothing}
	}
	return r.remark(Remark{Kind: Answer, To: question, By: m.Who.ID, Name: m.Who.Name, Text: m.Reason, At: in.Now, MessageTS: m.Written})
}

// RecordAnswerEdit records that the message with an answer was edited or deleted. The text of the answer does not
// change. RecordAnswerEdit returns false if the message is not an answer in an open request, or if the edit is
// already recorded.
func RecordAnswerEdit(r Request, ts string, w MessageEdit) (Request, []Event, bool) {
	i := slices.IndexFunc(r.Remarks, func(m Remark) bool { return m.Kind == Answer && m.MessageTS != "" && m.MessageTS == ts })
	if i < 0 || !r.State.Open() || !w.After(r.Remarks[i].MessageEdit) {
		return r, nil, false
	}
	r.Remarks = slices.Clone(r.Remarks)
	r.Remarks[i].MessageEdit = &w
	return r, []Event{AnswerEdited{Index: i}}, true
}

func (r Request) remark(m Remark) (Request, []Event, *Denied) {
	if m.Text == "" {
		return r, nil, &Denied{Code: DeniedNoReason}
	}
	open := 0 // the number of unanswered questions; each of them needs a place for its answer
	for i, o := range r.Remarks {
		if o.Kind == Question && !r.Answered(i) {
			open++
		}
	}
	switch m.Kind {
	case Question:
		open++
	case Answer:
		open--
	}
	if len(r.Remarks)+1+open > MaxRemarks {
		return r, nil, &Denied{Code: DeniedFull}
	}
	r.Remarks = append(r.Remarks[:len(r.Remarks):len(r.Remarks)], m)
	return r, []Event{RemarkMade{Index: len(r.Remarks) - 1}}, nil
}
