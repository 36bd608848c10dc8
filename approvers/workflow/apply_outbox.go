package workflow

import (
	"errors"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// refreshMessages schedules an update of all messages that show the request. These are the request's own messages and
// the card of its bundle. If the request repeats an earlier run, the messages of the earlier run are also updated.
func (t noticesTx) refreshMessages(r approvers.Request, _ []approvers.Event) error {
	if err := t.outbox.changedRef(r.ID); err != nil {
		return err
	}
	if err := t.runs.changedEarlier(r); err != nil {
		return err
	}
	return t.cards.changedBundle(r)
}

// notifyPeople sends messages to the people whom an event concerns, in addition to the cards.
func (t noticesTx) notifyPeople(r approvers.Request, events []approvers.Event) error {
	for _, e := range events {
		var err error
		switch e := e.(type) {
		case approvers.DecisionsFell:
			err = t.tellFallen(r, e, events)
		case approvers.DecisionMade:
			if e.Decision.BreakGlass {
				err = t.tellBroken(r)
			}
		case approvers.RemarkMade:
			err = t.tellRemark(r, e.Index)
		case approvers.AnswerEdited:
			err = t.tellAnswerEdit(r, e.Index)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tellFallen notifies people whose decision has become invalid. A decision becomes invalid if another person edits the
// arguments, or if the policy becomes stricter. If a person made a new decision in the same transaction, tellFallen
// does not notify this person.
func (t noticesTx) tellFallen(r approvers.Request, fell approvers.DecisionsFell, events []approvers.Event) error {
	step := 0
	if approvers.HasEvent[approvers.ArgsEdited](events) {
		step = len(r.Edits)
	}
	for _, who := range fell.Of {
		if slices.ContainsFunc(events, func(e approvers.Event) bool {
			made, ok := e.(approvers.DecisionMade)
			return ok && made.Decision.By == who
		}) {
			continue
		}
		if err := t.outbox.notify(r.ID, who, store.NoteFallen, step); err != nil {
			return err
		}
	}
	return nil
}

// tellRemark sends an approver's question to the requesters. If the remark is an answer, tellRemark notifies the
// approver who asked the question.
func (t noticesTx) tellRemark(r approvers.Request, index int) error {
	switch m := r.Remark(index); m.Kind {
	case approvers.Question:
		return t.outbox.add(store.OutboxMessage{
			Kind: store.OutboxQuestion, Ref: r.ID, Request: r.ID, Step: index, To: store.ToConversation + r.Conversation,
		})
	case approvers.Answer:
		return t.outbox.notify(r.ID, r.Remark(m.To).By, store.NoteAnswered, m.To)
	}
	return nil
}

// tellAnswerEdit notifies the person who asked a question that the answer was edited or deleted. The person gets only
// one notice for each answer.
func (t noticesTx) tellAnswerEdit(r approvers.Request, index int) error {
	question := r.Remark(index).To
	asked := r.Remark(question).By
	if !onSlack(asked) {
		return nil
	}
	return t.outbox.wantOnce(store.OutboxMessage{
		Kind: store.OutboxNotice, Ref: r.ID, Request: r.ID, Step: question, To: store.ToUser + asked.User(), Note: store.NoteAnswerEdited,
	})
}

// showCards shows a pending request to the people to whom an event makes it new. The parameter dequeued is true if the
// request has left a card queue. showCards skips new requests, because the use case that proposes a step's requests
// shows their cards together.
func (t noticesTx) showCards(r approvers.Request, events []approvers.Event, dequeued bool) error {
	if r.State != approvers.Pending || approvers.HasEvent[approvers.RequestOpened](events) {
		return nil
	}
	if dequeued || slices.ContainsFunc(events, func(e approvers.Event) bool { return wantsCard(r, e) }) {
		if err := t.cards.wantCard(r); err != nil {
			return err
		}
		if err := t.reposts.cardsAgain(r); err != nil {
			return err
		}
	}
	for _, e := range events {
		var err error
		switch e := e.(type) {
		case approvers.Escalated:
			if err = t.reposts.cardsAgain(r); err == nil && !e.Again {
				err = t.cards.wantQueued(r, store.ToRole+e.Lead.Name)
			}
		case approvers.ReminderDue:
			err = t.remindPeople(r, e.People)
		case approvers.PersonInvited:
			err = t.showInvited(r, e.Invite)
		case approvers.RequestUnbundled:
			err = t.cards.wantInvited(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wantsCard reports whether the request needs a new card after an event. The request needs a new card if other people
// are asked, if the arguments were edited, or if the request left its bundle or was reopened.
func wantsCard(r approvers.Request, e approvers.Event) bool {
	switch e := e.(type) {
	case approvers.ArgsEdited, approvers.RequestReopened, approvers.RequestUnbundled:
		return true
	case approvers.StageStarted:
		return e.Reassigned(r)
	}
	return false
}

// remindPeople reminds people of a waiting request. Each person gets a reminder by direct message. Cards of the request
// that were lost are posted again.
func (t noticesTx) remindPeople(r approvers.Request, people []approvers.Identity) error {
	if err := t.reposts.cardsAgain(r); err != nil {
		return err
	}
	for _, who := range people {
		if err := t.outbox.notify(r.ID, who.ID, store.NoteReminder, r.Reminded+r.Told); err != nil {
			return err
		}
	}
	return nil
}

// showInvited sends the card to a person who was added to the stage, by direct message. If the person has the card
// already, showInvited sends a notice. The notice says why the person may decide the request.
func (t noticesTx) showInvited(r approvers.Request, i approvers.Invite) error {
	cards, err := t.reposts.cardsOf(r)
	if err != nil {
		return err
	}
	to := store.ToUser + i.Who.User()
	card, has := hasCard(cards, func(other string) bool { return other == to })
	switch {
	case has && card.State == store.OutboxUnreachable:
		return t.cards.askAgain(card) // the card says why the person may decide
	case i.Away && (!has || card.Kind == store.OutboxBundle): // nobody chose the stand-in for this request, so the card queue's cap applies
		return t.cards.wantQueued(r, to)
	case has:
		return errors.Join(t.cards.askAgain(card), t.reposts.repost([]store.OutboxMessage{card}, false), t.outbox.notify(r.ID, i.Who, store.NoteInvited, 0))
	}
	return t.outbox.wantAt(r, store.OutboxCard, to, "")
}
