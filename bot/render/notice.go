package render

import (
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// notice draws a notice to one person about a request.
func (v View) notice() *BlockBuilder {
	r := *v.Request
	p := new(BlockBuilder)
	user := strings.TrimPrefix(v.Message.To, "user:")
	now := "It waits for " + v.waitsFor(r) + "."
	switch v.Message.Note {
	case store.NoteFallen:
		v.fallen(p, r, user)
		now = v.askedAgain(r, user)
	case store.NoteAnswered:
		v.answered(p, r)
	case store.NoteInvited:
		v.invitation(p, r, user)
	case store.NoteBreakGlass:
		v.broken(p, r, user)
		return p
	case store.NoteTurn:
		v.turn(p, r)
	case store.NoteReminder:
		v.reminder(p, r, user)
		return p
	}
	p.Para(v.whatNow(r, now, user))
	return p
}

// late reports whether a notice that asks for a decision has not been posted before the request ended. The card shows
// how it ended.
func (v View) late() bool {
	asks := v.Message.Note == store.NoteReminder || v.Message.Note == store.NoteTurn || v.Message.Note == store.NoteInvited
	return asks && v.Message.TS == "" && v.Request.State != approvers.Pending
}

// turn tells people who already have the card, or the channel that has it, that they can decide now.
func (v View) turn(p *BlockBuilder, r approvers.Request) {
	line := Say("🔔 ").Strong("This is yours to decide now: ").Say(what(r))
	switch {
	case r.State != approvers.Pending:
		line = Say("This was yours to decide: ").Say(what(r))
	case len(r.JoinedAt) > 0 && !v.Message.CreatedAt.Before(r.JoinedAt[0]):
		line = Say("⏫ ").Strong("Nobody has decided yet, so this is yours to decide now: ").Say(what(r))
	}
	for i, c := range v.Mentions {
		line.Say(map[bool]string{true: ": ", false: " "}[i == 0])
		c.in(line)
	}
	p.Para(line.Say("."))
}

// whatNow returns the state of a request with a link to its card. waits is the text for a waiting request.
func (v View) whatNow(r approvers.Request, waits, user string) *RichText {
	line := Say(endSign[r.State] + " ")
	if r.State == approvers.Pending {
		line = Say("✋ "+waits+" If nobody decides by ").At(r.ExpiresAt, DayTime).Say(", it will not run.")
	} else {
		line.also(v.ending(r))
	}
	if card := v.cardFor(user); card != "" {
		line.Say(" ").link(card, "See the card")
	}
	return line
}

// waitsFor names the people that a pending request waits for.
func (v View) waitsFor(r approvers.Request) string {
	if r.State != approvers.Pending {
		return ""
	}
	return v.stageTitle(r.CurrentStage()) + v.joined(r)
}

// what names a request within a sentence.
func what(r approvers.Request) string { return Clip(whatHappens(r.Preview, r.Tool), MaxNote) }

// fallen tells a person that their decision no longer counts, because of an edit or the policy.
func (v View) fallen(p *BlockBuilder, r approvers.Request, user string) {
	line := Say("✖️ ").Strong("Your approval no longer counts")
	if last := fallenOf(r, user); last.Kind == approvers.Reject {
		line = Say("✖️ ").Strong("Your rejection no longer counts")
	}
	line.Say(": ").Say(what(r)).Say(". ")
	edit := v.Message.Step - 1
	if edit < 0 || edit >= len(r.Edits) {
		line.Say("The policy became stricter while it waited, so its stages begin again")
		if i := slices.Index(r.Plan.Why, approvers.ChangedMeanwhile); i >= 0 && i < len(r.Plan.Why)-1 {
			line.Say(": " + inWords(r.Plan.Why[i+1:]))
		}
		p.Para(line.Say("."))
		return
	}
	e := r.Edits[edit]
	line.Person(e.By, e.Name).Say(" ("+v.title(e.Role)+") changed the arguments afterwards, ").At(e.At, clock)
	if e.Reason != "" {
		line.Say(": ").soft(Clip(OneLine(e.Reason), MaxNote))
	} else {
		line.Say(".")
	}
	p.Para(line)
	if diff, ok := changes(e.Before, e.After, r.Secrets); ok {
		p.exact(diff)
	} else {
		p.Para(Say("What was changed is too long to show here; the card leads to all of it."))
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

// answered tells the person who asked a question the answer.
func (v View) answered(p *BlockBuilder, r approvers.Request) {
	for _, a := range r.Remarks {
		if a.Kind != approvers.Answer || a.To != v.Message.Step {
			continue
		}
		p.Para(Say("💬 ").Person(a.By, a.Name).Say(" answered your question about ").Strong(what(r)).Say(":"))
		p.quoted(Clip(Visible(r.Remark(a.To).Text), MaxSentence/2))
		p.quoted(Clip(Visible(a.Text), MaxSentence/2))
	}
}

// invitation tells a person who already has the card that they can decide now.
func (v View) invitation(p *BlockBuilder, r approvers.Request, user string) {
	for _, i := range r.Invited {
		if i.Who.User() == user {
			p.Para(v.handed(i).Say(" It is about: ").Strong(what(r)))
			return
		}
	}
	p.Para(Say("↪️ This was handed on to you: ").Strong(what(r)))
}

// askedAgain says whether a person whose decision no longer counts is asked again, at this stage or a later one. It
// knows a person's roles only from their decisions.
func (v View) askedAgain(r approvers.Request, user string) string {
	waits := v.waitsFor(r)
	for _, d := range r.Standing() {
		if d.By.User() == user {
			return "You have agreed to it as it is now. It waits for " + waits + "."
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

// stageOf returns the first stage, from the current one on, with a role in which the person has acted before. It
// returns -1 if there is none.
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
