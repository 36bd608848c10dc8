package approvers

import (
	"slices"
	"time"
)

// RemarkKind says what somebody said about a request without deciding it.
type RemarkKind string

// The kinds of remark.
const (
	Question RemarkKind = "question" // an approver's, to those who asked for the call
	Answer   RemarkKind = "answer"   // a requester's
	Comment  RemarkKind = "comment"  // an approver's, to the other approvers
)

// Remark is something that was said about a request, and is shown on its card.
type Remark struct {
	Kind RemarkKind `json:"kind"`
	To   int        `json:"to,omitempty"` // for an answer: which remark is the question
	By   PersonID   `json:"by"`
	Name string     `json:"name"`
	Role string     `json:"role,omitempty"` // empty for a requester
	Text string     `json:"text"`
	At   time.Time  `json:"at"`
}

// MaxRemarks bounds how much may be said on one request: more can't be shown on a card.
const MaxRemarks = 12

// Answered reports whether the question was answered.
func (r Request) Answered(question int) bool {
	return slices.ContainsFunc(r.Remarks, func(m Remark) bool { return m.Kind == Answer && m.To == question })
}

// Say adds an approver's question or comment, in Move.Reason. Whoever may decide can, and whose approval counts at an earlier stage. It changes
// nothing of what was decided, and stops no clock.
func (r Request) Say(in Deciding, m Move, kind RemarkKind) (Request, *Denied) {
	if denied := r.waits(m); denied != nil {
		return r, denied
	}
	if kind != Question && kind != Comment {
		return r, &Denied{Code: DeniedNothing}
	}
	role, denied := r.voice(in.Policy, m.Who)
	if denied != nil {
		return r, denied
	}
	return r.remark(Remark{Kind: kind, By: m.Who.ID, Name: m.Who.Name, Role: role, Text: m.Reason, At: in.Now})
}

// voice finds the role in which a person speaks on the request: the one by which they may decide now, or by which they approved.
func (r Request) voice(p *Policy, who Identity) (string, *Denied) {
	role, denied := r.Authority(p, who)
	if denied == nil {
		return role.Name, nil
	}
	for _, d := range r.Standing() {
		if d.By == who.ID && who.trouble() == "" {
			return d.Role, nil
		}
	}
	return "", denied
}

// Reply answers a question. Those who asked for the call can, once for each question.
func (r Request) Reply(in Deciding, m Move, question int) (Request, *Denied) {
	if denied := r.waits(m); denied != nil {
		return r, denied
	}
	if m.Who.ID == "" || m.Who.Deleted {
		return r, &Denied{Code: DeniedUnidentified}
	}
	if !slices.Contains(r.Facts.Requesters, m.Who.ID) {
		return r, &Denied{Code: DeniedNotRequester}
	}
	if question < 0 || question >= len(r.Remarks) || r.Remarks[question].Kind != Question || r.Answered(question) {
		return r, &Denied{Code: DeniedNothing}
	}
	return r.remark(Remark{Kind: Answer, To: question, By: m.Who.ID, Name: m.Who.Name, Text: m.Reason, At: in.Now})
}

func (r Request) remark(m Remark) (Request, *Denied) {
	if m.Text == "" {
		return r, &Denied{Code: DeniedNoReason}
	}
	open := 0 // the last places are kept for answers: a question that was put can always be answered
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
		return r, &Denied{Code: DeniedFull}
	}
	r.Remarks = append(r.Remarks[:len(r.Remarks):len(r.Remarks)], m)
	return r, nil
}
