package bot

import (
	"fmt"
	"strings"
	"time"

	"countersign/approvers"
)

// otherwise says what happens if nobody does anything, and when.
func (s scene) otherwise(r approvers.Request) []*prose {
	return []*prose{s.ifNobody(r, ""), s.standsStill(r)}
}

// ifNobody says what happens if nobody decides; what names that where a card shows several.
func (s scene) ifNobody(r approvers.Request, what string) *prose {
	line := say("⏳ If nobody decides"+what+" by ").at(r.ExpiresAt, dayTime)
	if lead, up := s.afterSilence(r); up {
		line.say(", it goes to ").strong(lead).say(".")
	} else {
		line.say(", it is rejected and will not run.")
	}
	if !r.EscalateAt.IsZero() && r.EscalateAt.Before(r.ExpiresAt) {
		line.say(" At ").at(r.EscalateAt, clock).say(" " + s.lead(r) + ".")
	}
	if n := r.Reminded + r.Told; n > 0 {
		line.say(" Reminded " + times(n) + ".")
	}
	return line
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// afterSilence names who gets a request that nobody decides in time, by going through what would happen until then. It reports false where it is
// rejected.
func (s scene) afterSilence(r approvers.Request) (lead string, up bool) {
	for range 100 { // leads and rounds are fewer
		after, _, due := r.Escalate(approvers.Deciding{Policy: s.Policy, Now: r.EscalateAt})
		if !due {
			break
		}
		r = after
	}
	after, _ := r.Expire(approvers.Deciding{Policy: s.Policy, Now: r.ExpiresAt})
	if after.State != approvers.Pending || len(after.Joined) == len(r.Joined) {
		return "", false
	}
	return s.title(after.Joined[len(after.Joined)-1]), true
}

// lead says who is told next, by asking what an escalation at that time would do.
func (s scene) lead(r approvers.Request) string {
	_, told, ok := r.Escalate(approvers.Deciding{Policy: s.Policy, Now: r.EscalateAt})
	switch {
	case !ok:
		return "the next approver up is told"
	case told.Again:
		return "everybody is told once more"
	}
	return s.title(told.Lead.Name) + " is told"
}

// standsStill says that the clock does, because nobody of those who are asked works now. It is empty while somebody does.
func (s scene) standsStill(r approvers.Request) *prose {
	var first approvers.Role
	var opens time.Time
	for _, name := range r.Roles() {
		role, ok := s.Policy.Role(name)
		if !ok {
			continue
		}
		if role.Hours.Open(s.Now) {
			return new(prose)
		}
		if at := role.Hours.After(s.Now, 0); opens.IsZero() || at.Before(opens) {
			first, opens = role, at
		}
	}
	if opens.IsZero() {
		return new(prose)
	}
	return say("🕘 Outside working hours of "+s.title(first.Name)+" ("+hours(*first.Hours)+"): the clock stands still until ").at(opens, dayTime).say(".")
}

// hours are working hours as people write them: "Mon–Fri 09:00–17:00 Europe/Berlin".
func hours(h approvers.Hours) string {
	return workdays(h.Days) + " " + wallClock(h.From) + "–" + wallClock(h.To) + " " + h.Zone.String()
}

func wallClock(since time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(since.Hours()), int(since.Minutes())%60)
}

// workdays names days from Monday on, with runs of three and more as a range.
func workdays(days [7]bool) string {
	var parts []string
	day := func(i int) time.Weekday { return time.Weekday((i + 1) % 7) }
	short := func(i int) string { return day(i).String()[:3] }
	for i := 0; i < 7; i++ {
		if !days[day(i)] {
			continue
		}
		last := i
		for last < 6 && days[day(last+1)] {
			last++
		}
		if last == i+1 {
			last = i
		}
		if part := short(i); last == i {
			parts = append(parts, part)
		} else {
			parts = append(parts, part+"–"+short(last))
		}
		i = last
	}
	if len(parts) == 1 && parts[0] == "Mon–Sun" {
		return "every day"
	}
	return strings.Join(parts, ", ")
}
