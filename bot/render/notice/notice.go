package notice

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/wording"
	"countersign/store"
)

// notice is a notice to one person about a request.
type notice struct {
	wording.RequestWords
	wording.Workspace
	message  store.OutboxMessage
	cards    []store.OutboxMessage // the cards of the request
	mentions []wording.Mention
	now      time.Time
}

// Draw draws a notice to one person about a request.
func Draw(v wording.View) block.Rendered { return newNotice(v).draw(*v.Request) }

func newNotice(v wording.View) notice {
	return notice{
		RequestWords: wording.Under(v.Policy), Workspace: wording.Workspace(v.WorkspaceURL),
		message: v.Message, cards: v.Cards, mentions: v.Mentions, now: v.Now,
	}
}

// draw draws a notice about a request. If the notice comes too late, the result is marked as expired.
func (n notice) draw(r approvers.Request) block.Rendered {
	d := block.Single(n.content(r))
	d.Expired = n.late(r)
	return d
}

func (n notice) content(r approvers.Request) *block.Builder {
	p := new(block.Builder)
	user := strings.TrimPrefix(n.message.To, store.ToUser)
	now := "It waits for " + n.WaitsFor(r) + "."
	switch n.message.Note {
	case store.NoteFallen:
		n.lostDecision(p, r, user)
		now = n.askedAgain(r, user)
	case store.NoteAnswered:
		n.answerToQuestion(p, r)
	case store.NoteAnswerEdited:
		n.answerEdited(p, r)
	case store.NoteInvited:
		n.invitation(p, r, user)
	case store.NoteBreakGlass:
		n.broken(p, r, user)
		return p
	case store.NoteTurn:
		n.turn(p, r)
	case store.NoteReminder:
		n.reminder(p, r, user)
		return p
	}
	p.Para(n.whatNow(r, now, user))
	return p
}

// late reports whether a notice comes too late: the notice asks for a decision, but the request ended before the notice
// was posted. Such a notice is not needed, because the card shows how the request ended.
func (n notice) late(r approvers.Request) bool {
	asks := n.message.Note == store.NoteReminder || n.message.Note == store.NoteTurn || n.message.Note == store.NoteInvited
	return asks && n.message.TS == "" && r.State != approvers.Pending
}

// turn tells people that they can decide now. The people, or their channel, already have the card.
func (n notice) turn(p *block.Builder, r approvers.Request) {
	line := block.Say("🔔 ").Strong("This is yours to decide now: ").Say(nameRequest(r))
	switch {
	case r.State != approvers.Pending:
		line = block.Say("This was yours to decide: ").Say(nameRequest(r))
	case len(r.JoinedAt) > 0 && !n.message.CreatedAt.Before(r.JoinedAt[0]):
		why := block.Say("Not decided yet")
		if call, ok := approvers.CallOf(r, lastJoined(r, n.message.CreatedAt)); ok {
			why = n.NobodyLeft(r, call)
		}
		line = block.Say("⏫ ").Add(why).Strong(", so this is yours to decide now as well: ").Say(nameRequest(r))
	}
	for i, c := range n.mentions {
		line.Say(map[bool]string{true: ": ", false: " "}[i == 0])
		c.In(line)
	}
	p.Para(line.Say("."))
}

// lastJoined returns the last role that escalation had added by the given time.
func lastJoined(r approvers.Request, until time.Time) (role string) {
	for i, name := range r.Joined {
		if i < len(r.JoinedAt) && !r.JoinedAt[i].After(until) {
			role = name
		}
	}
	return role
}

// whatNow returns the state of a request with a link to its card. The parameter "waits" is the text for a waiting
// request.
func (n notice) whatNow(r approvers.Request, waits, user string) *block.RichText {
	line := block.Say(wording.EndSign(r) + " ")
	if r.State == approvers.Pending {
		line = block.Say("✋ " + waits + " ").Add(n.Deadline(r))
	} else {
		line.Add(n.Ending(r))
	}
	if card := n.CardFor(user, n.cards); card != "" {
		line.Say(" ").Link(card, "See the card")
	}
	return line
}

// nameRequest names a request within a sentence.
func nameRequest(r approvers.Request) string {
	return block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxNote)
}

// lostDecision tells a person that their decision no longer counts, because of an edit or the policy.
func (n notice) lostDecision(p *block.Builder, r approvers.Request, user string) {
	line := block.Say("✖️ ").Strong("Your approval no longer counts")
	if last := fallenOf(r, user); last.Kind == approvers.Reject {
		line = block.Say("✖️ ").Strong("Your rejection no longer counts")
	}
	line.Say(": ").Say(nameRequest(r)).Say(". ")
	edit := n.message.Step - 1
	if edit < 0 || edit >= len(r.Edits) {
		line.Say("The policy became stricter while it waited, so its stages begin again")
		if i := slices.Index(r.Plan.Why, approvers.ChangedMeanwhile); i >= 0 && i < len(r.Plan.Why)-1 {
			line.Say(": " + wording.InWords(r.Plan.Why[i+1:]))
		}
		p.Para(line.Say("."))
		return
	}
	e := r.Edits[edit]
	line.Person(e.By, e.Name).Say(" ("+n.Title(e.Role)+") changed the arguments afterwards, ").At(e.At, block.Clock)
	if e.Reason != "" {
		line.Say(": ").Soft(block.Clip(block.OneLine(e.Reason), block.MaxNote))
	} else {
		line.Say(".")
	}
	p.Para(line)
	if diff, ok := argument.Changes(e.Before, e.After, r.Secrets); ok {
		p.Preformatted(diff)
	} else {
		p.Para(block.Say("The changes are too long to show here. The card leads to them."))
	}
}

// fallenOf returns the person's latest decision that no longer counts.
func fallenOf(r approvers.Request, user string) (last approvers.Decision) {
	for _, d := range r.Decisions {
		if d.Fallen && d.By.User() == user {
			last = d
		}
	}
	return last
}

// answerToQuestion shows the answer to the person who asked the question.
func (n notice) answerToQuestion(p *block.Builder, r approvers.Request) {
	for _, a := range r.Remarks {
		if a.Kind != approvers.Answer || a.To != n.message.Step {
			continue
		}
		p.Para(block.Say("💬 ").Person(a.By, a.Name).Say(" answered your question about ").Strong(nameRequest(r)).Say(wording.ChangedLater(a) + ":"))
		p.Quote(block.Clip(block.Visible(r.Remark(a.To).Text), block.MaxSentence/2))
		p.Quote(block.Clip(block.Visible(a.Text), block.MaxSentence/2))
	}
}

// answerEdited tells the person who asked a question that the answer was edited or deleted later.
func (n notice) answerEdited(p *block.Builder, r approvers.Request) {
	for _, a := range r.Remarks {
		if a.Kind != approvers.Answer || a.To != n.message.Step || a.MessageEdit == nil {
			continue
		}
		about := func(sign, did string) *block.RichText {
			return block.Say(sign).Person(a.By, a.Name).Say(" "+did+" the answer to your question about ").Strong(nameRequest(r)).Say(", ").At(a.MessageEdit.At, block.DayTime)
		}
		if a.MessageEdit.Deleted {
			p.Para(about("🗑️ ", "deleted").Say(". The card still shows the earlier answer."))
			continue
		}
		p.Para(about("✏️ ", "edited").Say(". The card still shows the earlier answer. The message now reads:"))
		p.Quote(block.Clip(block.Visible(argument.MaskSecrets(a.MessageEdit.Text, r.Args, r.Secrets)), block.MaxSentence/2))
	}
}

// invitation tells a person who already has the card that they can decide now.
func (n notice) invitation(p *block.Builder, r approvers.Request, user string) {
	for _, i := range r.Invited {
		if i.Who.User() == user {
			p.Para(n.HandedOnBy(i).Say(" It is about: ").Strong(nameRequest(r)))
			return
		}
	}
	p.Para(block.Say("↪️ This was handed on to you: ").Strong(nameRequest(r)))
}

// askedAgain says whether a person whose decision no longer counts must decide again, at the current stage or a later
// stage. It finds the person's roles only in the person's earlier decisions.
func (n notice) askedAgain(r approvers.Request, user string) string {
	waits := n.WaitsFor(r)
	for _, d := range r.ValidApprovals() {
		if d.By.User() == user {
			return "You have approved it in its present form. It waits for " + waits + "."
		}
	}
	switch stage := stageOf(r, user); {
	case stage < 0:
		return "It waits for " + waits + ", and does not need you again."
	case stage > r.Stage:
		return "It waits for " + waits + " first; then you are asked again."
	}
	return "You are asked again: it waits for " + waits + "."
}

// stageOf returns the first stage with a role in which the person has acted before. The search begins at the current
// stage. If there is no such stage, stageOf returns -1.
func stageOf(r approvers.Request, user string) int {
	for i := r.Stage; i < len(r.Plan.Stages); i++ {
		roles := r.Plan.Stages[i].Roles()
		if i == r.Stage {
			roles = r.Roles()
		}
		if slices.ContainsFunc(r.Decisions, func(d approvers.Decision) bool { return d.By.User() == user && slices.Contains(roles, d.Role) }) {
			return i
		}
	}
	return -1
}

// reminder tells a person whether a request waits for them. A reminder has no decision buttons.
func (n notice) reminder(p *block.Builder, r approvers.Request, user string) {
	about := block.Clip(wording.WhatHappens(r.Preview, r.Tool), block.MaxNote)
	had := func(d approvers.Decision) bool { return d.By.User() == user && !d.Fallen && d.Digest == r.Digest }
	var line *block.RichText
	switch {
	case r.State != approvers.Pending:
		line = block.Say(wording.EndSign(r) + " ").Strong(about).Say(": ").Add(n.Ending(r))
	case slices.ContainsFunc(r.Decisions, had):
		line = block.Say("☑️ You have decided: ").Strong(about).Say(". Others are still needed.")
	case n.message.CreatedAt.Before(r.StageAt):
		line = block.Say("☑️ This moved to the next stage: ").Strong(about).Say(". It waits for " + n.WaitsFor(r) + " now.")
	default:
		p.Para(block.Say("⏰ ").Strong("Still waits for you: " + about))
		if g := r.Gap; g != nil && g.Reminder == n.message.Step {
			p.Para(away(g.Gap).Say(" If you clicked a button in that time, it did not reach me."))
		}
		line = block.Say("Asked by ").Person(r.Facts.Asker, r.Facts.AskerName).Say("; waits since ").At(began(r), block.DayTime).Say(" for " + n.WaitsFor(r) + ".")
		defer func() { p.Para(n.IfNobodyActs(r, n.now)...) }()
	}
	if card := n.CardFor(user, n.cards); card != "" {
		line.Say(" ").Link(card, "See the card")
	}
	p.Para(line)
}

// began returns the start of the current stage. Older records have no such time. For such records, began returns the
// request's creation time.
func began(r approvers.Request) time.Time {
	if r.StageAt.IsZero() {
		return r.CreatedAt
	}
	return r.StageAt
}

// broken draws the notice that an operator allowed a call in place of its approvers, and why. The notice goes to the
// approvers and their leads.
func (n notice) broken(p *block.Builder, r approvers.Request, user string) {
	i := n.message.Step - 1
	if i < 0 || i >= len(r.Decisions) {
		return
	}
	d := r.Decisions[i]
	p.Para(block.Say("🚨 ").Strong("Approved at the command line, in place of its approvers (break glass): ").Say(nameRequest(r)).Say(". ").
		Person(d.By, d.Name).Say(" did it, ").At(d.At, block.DayTime).Say("."))
	p.Para(block.Say("Reason: ").Soft(block.Clip(block.OneLine(d.Reason), block.MaxReason)))
	p.Para(n.passedOver(r, d))
	line := block.Say("▶️ ")
	switch r.State {
	case approvers.Approved:
		line.Say("It has not run yet. Until it runs, those who may decide its last stage can take the approval back on the card.")
	case approvers.Consumed:
		line.Say("It was started.")
	default:
		line = block.Say(wording.EndSign(r) + " ").Add(n.Ending(r))
	}
	if card := n.CardFor(user, n.cards); card != "" {
		line.Say(" ").Link(card, "See the card")
	}
	p.Para(line)
}

// passedOver names the stages that the operator skipped.
func (n notice) passedOver(r approvers.Request, d approvers.Decision) *block.RichText {
	line := block.Say("👥 Skipped approvers: ")
	left := r.Plan.Stages[min(d.Stage, len(r.Plan.Stages)):]
	for i, st := range left {
		switch {
		case i == block.MaxStagesTold:
			return line.Say(", and " + block.Plural(len(left)-i, "more stage") + ".")
		case i > 0:
			line.Say(", then ")
		}
		if st.Quorum > 1 {
			line.Say(fmt.Sprintf("%d × ", st.Quorum))
		}
		line.Strong(n.StageTitle(st))
	}
	return line.Say(".")
}
