package bot

import (
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// notice tells one person something about a request.
func (s scene) notice() *page {
	r := *s.Request
	p := new(page)
	user := strings.TrimPrefix(s.Surface.To, "user:")
	now := "It waits for " + s.waitsFor(r) + "."
	switch s.Surface.Note {
	case store.NoteFallen:
		s.fallen(p, r, user)
		now = s.askedAgain(r, user)
	case store.NoteAnswered:
		s.answered(p, r)
	case store.NoteInvited:
		s.invitation(p, r, user)
	case store.NoteGlass:
		s.broken(p, r, user)
		return p
	case store.NoteTurn:
		s.turn(p, r)
	case store.NoteReminder:
		s.reminder(p, r, user)
		return p
	}
	p.para(s.whatNow(r, now, user))
	return p
}

// late reports whether a notice that asks somebody to decide has not come to them until there was nothing left to decide. The card says what became of it.
func (s scene) late() bool {
	asks := s.Surface.Note == store.NoteReminder || s.Surface.Note == store.NoteTurn || s.Surface.Note == store.NoteInvited
	return asks && s.Surface.TS == "" && s.Request.State != approvers.Pending
}

// turn tells whoever has the card already, or the channel where it is, that it is theirs to decide now.
func (s scene) turn(p *page, r approvers.Request) {
	line := say("🔔 ").strong("This is yours to decide now: ").say(what(r))
	switch {
	case r.State != approvers.Pending:
		line = say("This was yours to decide: ").say(what(r))
	case len(r.JoinedAt) > 0 && !s.Surface.CreatedAt.Before(r.JoinedAt[0]):
		line = say("⏫ ").strong("Nobody has decided yet, so this is yours to decide now: ").say(what(r))
	}
	for i, c := range s.calls {
		line.say(map[bool]string{true: ": ", false: " "}[i == 0])
		c.in(line)
	}
	p.para(line.say("."))
}

// whatNow says where a request stands, in the given words while it waits, and leads to the card.
func (s scene) whatNow(r approvers.Request, waits, user string) *prose {
	line := say(endSign[r.State] + " ")
	if r.State == approvers.Pending {
		line = say("✋ "+waits+" If nobody decides by ").at(r.ExpiresAt, dayTime).say(", it will not run.")
	} else {
		line.also(s.ending(r))
	}
	if card := s.cardFor(user); card != "" {
		line.say(" ").link(card, "See the card")
	}
	return line
}

// waitsFor names whom a pending request waits for.
func (s scene) waitsFor(r approvers.Request) string {
	if r.State != approvers.Pending {
		return ""
	}
	return s.stageTitle(r.Plan.Stages[r.Stage]) + s.joined(r)
}

// what names a request within a sentence.
func what(r approvers.Request) string { return clip(whatHappens(r.Preview, r.Tool), maxNote) }

// fallen tells somebody that their decision counts no more: by whose edit, or because of the policy.
func (s scene) fallen(p *page, r approvers.Request, user string) {
	line := say("✖️ ").strong("Your approval no longer counts")
	if last := fallenOf(r, user); last.Kind == approvers.Reject {
		line = say("✖️ ").strong("Your rejection no longer counts")
	}
	line.say(": ").say(what(r)).say(". ")
	edit := s.Surface.Step - 1
	if edit < 0 || edit >= len(r.Edits) {
		line.say("The policy became stricter while it waited, so its stages begin again")
		if i := slices.Index(r.Plan.Why, approvers.ChangedMeanwhile); i >= 0 && i < len(r.Plan.Why)-1 {
			line.say(": " + inWords(r.Plan.Why[i+1:]))
		}
		p.para(line.say("."))
		return
	}
	e := r.Edits[edit]
	line.person(e.By, e.Name).say(" ("+s.title(e.Role)+") changed the arguments afterwards, ").at(e.At, clock)
	if e.Reason != "" {
		line.say(": ").soft(clip(oneLine(e.Reason), maxNote))
	} else {
		line.say(".")
	}
	p.para(line)
	if diff, ok := changes(e.Before, e.After, r.Secrets); ok {
		p.exact(diff)
	} else {
		p.para(say("What was changed is too long to show here; the card leads to all of it."))
	}
}

// fallenOf is a person's latest decision that counts no more.
func fallenOf(r approvers.Request, user string) (last approvers.Decision) {
	for _, d := range r.Decisions {
		if d.Fallen && d.By.User() == user {
			last = d
		}
	}
	return last
}

// answered tells whoever put a question what was answered.
func (s scene) answered(p *page, r approvers.Request) {
	for _, a := range r.Remarks {
		if a.Kind != approvers.Answer || a.To != s.Surface.Step {
			continue
		}
		p.para(say("💬 ").person(a.By, a.Name).say(" answered your question about ").strong(what(r)).say(":"))
		p.quoted(clip(Visible(r.Remarks[a.To].Text), maxSentence/2))
		p.quoted(clip(Visible(a.Text), maxSentence/2))
	}
}

// invitation tells somebody whose card is there already that it is theirs to decide now.
func (s scene) invitation(p *page, r approvers.Request, user string) {
	for _, i := range r.Invited {
		if i.Who.User() == user {
			p.para(s.handed(i).say(" It is about: ").strong(what(r)))
			return
		}
	}
	p.para(say("↪️ This was handed on to you: ").strong(what(r)))
}

// askedAgain says whether somebody whose decision fell is asked at this stage or a later one, as far as the roles say in which they acted.
func (s scene) askedAgain(r approvers.Request, user string) string {
	waits := s.waitsFor(r)
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

// stageOf is the stage, from the current one on, at which a person is asked by a role in which they acted before; -1: none.
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
