package bot

import (
	"regexp"
	"strings"
	"time"
	"unicode"

	"countersign/bot/render"
)

// awayPeriod is a parsed absence.
type awayPeriod struct {
	from, until time.Time
	delegate    string // a user id; empty: no stand-in
}

// personMention matches a mention of a person in a command's text, with or without the name.
var personMention = regexp.MustCompile(`<@([UW][A-Z0-9]+)(?:\|[^>]*)?>`)

// tooFarOff is the limit for plausible times. A later one is probably a typing error.
const tooFarOff = 2 * 365 * 24 * time.Hour

// wordsOf splits a text into lower-case words. Mentions keep their case and lose the name.
func wordsOf(text string) words {
	var out words
	for _, word := range strings.FieldsFunc(personMention.ReplaceAllString(text, " <@$1> "), func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == ';' }) {
		if !personMention.MatchString(word) {
			word = strings.ToLower(strings.TrimRight(word, ".!"))
		}
		if word != "" {
			out = append(out, word)
		}
	}
	return out
}

// parseAway parses the text after "away". now is in the person's time zone.
func parseAway(text string, now time.Time) (awayPeriod, error) {
	var out awayPeriod
	w := timeParser{now}
	in := wordsOf(text)
	from, exact := now, false
	var err error
	for len(in) > 0 && err == nil {
		switch word := in.next(); word {
		case "from", "starting":
			from, exact, err = w.point(&in, now)
		case "until", "till", "til", "to":
			base := from
			if midnight(from, 0).Before(midnight(now, 0)) {
				base = now
			}
			out.until, _, err = w.point(&in, base)
		case "for":
			out.until, err = w.span(&in, from, exact)
		case "delegate", "delegating", "stand-in", "standin":
			out.delegate, err = standIn(&in)
		case "and":
		default:
			err = notClear("I don't understand “%s”. Write, for example, “away until monday”, “away for 3 days”, or “away from 2026-12-24 until 2027-01-02, delegate to @colleague”.",
				render.Visible(render.Clip(word, 40)))
		}
	}
	out.from = from
	if err == nil {
		err = out.validate(now)
	}
	return out, err
}

// standIn reads a mention of the stand-in. Slack's completion of names inserts such mentions.
func standIn(in *words) (string, error) {
	in.skip("to")
	in.skip("is")
	word := in.next()
	m := personMention.FindStringSubmatch(word)
	switch {
	case m != nil:
		return m[1], nil
	case word == "":
		return "", notClear("Say who stands in: “delegate to @colleague”.")
	case strings.HasPrefix(word, "@"):
		return "", notClear("I can't tell who %s is: type @ and the first letters, and choose the person from Slack's list.", render.Visible(render.Clip(word, 40)))
	}
	return "", notClear("“%s” names nobody. Type @ and the first letters of your colleague's name, and choose them from Slack's list.", render.Visible(render.Clip(word, 40)))
}

// validate checks that the period is plausible.
func (l awayPeriod) validate(now time.Time) error {
	switch {
	case l.until.IsZero():
		return notClear("Say until when you are away: “until monday”, “until 17:00”, “until %s”, or “for 3 days”.", now.AddDate(0, 0, 7).Format(time.DateOnly))
	case !l.until.After(now):
		return notClear("That is over already: %s. It is %s now.", spoken(l.until), spoken(now))
	case !l.until.After(l.from):
		return notClear("That ends before it begins: from %s until %s.", spoken(l.from), spoken(l.until))
	case l.until.Sub(now) > tooFarOff:
		return notClear("%s is more than two years ahead. Is the year right?", spoken(l.until))
	}
	return nil
}
