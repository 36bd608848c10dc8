package bot

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"countersign/bot/render/block"
)

// awayPeriod is a parsed absence.
type awayPeriod struct {
	from, until time.Time
	delegate    string // a user id; empty: no stand-in
}

// personMention matches a mention of a person in a command's text. The mention may include the person's name.
var personMention = regexp.MustCompile(`<@([UW][A-Z0-9]+)(?:\|[^>]*)?>`)

// tooFarOff limits how far in the future a time may be. A later time is probably a typing error.
const tooFarOff = 2 * 365 * 24 * time.Hour

// wordsOf splits a text into lower-case words. A mention keeps its case. If a mention includes the person's name,
// wordsOf removes the name.
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

// parseAway parses the text after "away". The parameter "now" is in the person's time zone.
func parseAway(text string, now time.Time) (awayPeriod, error) {
	var out awayPeriod
	w := timeParser{now}
	in := wordsOf(text)
	from := now
	var err error
	for len(in) > 0 && err == nil {
		switch word := in.next(); word {
		case "from", "starting":
			from, err = w.parseMoment(&in, now)
		case "until", "till", "til", "to":
			base := from
			if midnight(from, 0).Before(midnight(now, 0)) {
				base = now
			}
			out.until, err = w.parseMoment(&in, base)
		case "for":
			out.until, err = w.span(&in, from)
		case "delegate", "delegating", "stand-in", "standin":
			out.delegate, err = parseStandIn(&in)
		case "and":
		default:
			err = notClear("I don't understand “%s”. Write, for example, “away until monday”, “away for 3 days”, or “away from 2026-12-24 until 2027-01-02, delegate to @colleague”.",
				block.Visible(block.Clip(word, 40)))
		}
	}
	out.from = from
	if err == nil {
		err = out.validate(now)
	}
	return out, err
}

// parseStandIn reads a mention of the stand-in. Slack's completion of names inserts such mentions.
func parseStandIn(in *words) (string, error) {
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
		return "", notClear("I can't tell who %s is: type @ and the first letters, and choose the person from Slack's list.", block.Visible(block.Clip(word, 40)))
	}
	return "", notClear("“%s” names nobody. Type @ and the first letters of your colleague's name, and choose them from Slack's list.", block.Visible(block.Clip(word, 40)))
}

// validate checks that the period is plausible.
func (l awayPeriod) validate(now time.Time) error {
	switch {
	case l.until.IsZero():
		return notClear("Say until when you are away: “until monday”, “until 17:00”, “until %s”, or “for 3 days”.", now.AddDate(0, 0, 7).Format(time.DateOnly))
	case !l.until.After(now):
		return notClear("That is over already: %s. It is %s now.", formatZoned(l.until), formatZoned(now))
	case !l.until.After(l.from):
		return notClear("That ends before it begins: from %s until %s.", formatZoned(l.from), formatZoned(l.until))
	case l.until.Sub(now) > tooFarOff:
		return notClear("%s is more than two years ahead. Is the year right?", formatZoned(l.until))
	}
	return nil
}

// unclear is the error for a text that the parser does not understand. The error quotes the text and suggests another
// text.
type unclear string

func (u unclear) Error() string { return string(u) }

func notClear(format string, args ...any) error { return unclear(fmt.Sprintf(format, args...)) }

// words is the rest of a text that is not yet parsed.
type words []string

func (w *words) next() string {
	if len(*w) == 0 {
		return ""
	}
	first := (*w)[0]
	*w = (*w)[1:]
	return first
}

func (w words) peek() string {
	if len(w) == 0 {
		return ""
	}
	return w[0]
}

// skip consumes the next word if it is the given one.
func (w *words) skip(one string) {
	if w.peek() == one {
		w.next()
	}
}

// timeParser parses times as people write them. now is in the person's time zone.
type timeParser struct{ now time.Time }

// midnight returns the start of the day that is the given number of days after t's day.
func midnight(t time.Time, days int) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d+days, 0, 0, 0, 0, t.Location())
}

var weekdays = map[string]time.Weekday{
	"sunday": 0, "sun": 0, "monday": 1, "mon": 1, "tuesday": 2, "tue": 2, "tues": 2, "wednesday": 3, "wed": 3,
	"thursday": 4, "thu": 4, "thur": 4, "thurs": 4, "friday": 5, "fri": 5, "saturday": 6, "sat": 6,
}

// parseMoment parses one moment: a day, a time, or both. A weekday means the next day of this name after base. A time
// without a day is on the day of base.
func (w timeParser) parseMoment(in *words, base time.Time) (at time.Time, err error) {
	word := in.peek()
	if word == "" {
		return at, notClear("A day or a time is missing at the end. Write, for example, “until monday” or “until 2026-12-01 12:00”.")
	}
	if word == "now" {
		in.next()
		return w.now, nil
	}
	day := midnight(base, 0)
	if _, isTime := timeOfDay(word); !isTime {
		if day, err = w.day(in, base); err != nil {
			return at, err
		}
	}
	in.skip("at")
	since, isTime := timeOfDay(in.peek())
	if !isTime {
		return day, nil
	}
	in.next()
	y, m, d := day.Date()
	return time.Date(y, m, d, 0, int(since/time.Minute), 0, 0, day.Location()), nil
}

func (w timeParser) day(in *words, base time.Time) (time.Time, error) {
	word := in.next()
	if weekday, ok := weekdays[word]; ok {
		return midnight(base, daysTo(base, weekday)), nil
	}
	switch word {
	case "today":
		return midnight(w.now, 0), nil
	case "tomorrow":
		return midnight(w.now, 1), nil
	case "next":
		return w.nextWeek(in.next())
	}
	date, err := time.ParseInLocation(time.DateOnly, word, w.now.Location())
	if err != nil {
		return time.Time{}, notClear("“%s” is not a day or time that I know. Write a date as %s, a weekday, “tomorrow”, “next week”, or a time as 17:00.",
			block.Visible(block.Clip(word, 40)), w.now.AddDate(0, 0, 7).Format(time.DateOnly))
	}
	return date, nil
}

// daysTo returns the number of days from t to the next given weekday: one to seven.
func daysTo(t time.Time, day time.Weekday) int { return (int(day)-int(t.Weekday())+6)%7 + 1 }

// nextWeek returns a day of next week: Monday, or the weekday that the parameter word names.
func (w timeParser) nextWeek(word string) (time.Time, error) {
	monday := midnight(w.now, daysTo(w.now, time.Monday))
	if word == "week" {
		return monday, nil
	}
	if weekday, ok := weekdays[word]; ok {
		return midnight(monday, (int(weekday)+6)%7), nil // weeks begin on Monday
	}
	return time.Time{}, notClear("“next %s” is not clear. Write “next week”, “next friday”, or a date such as %s.", block.Visible(block.Clip(word, 40)), monday.Format(time.DateOnly))
}

// timeOfDay parses 17:00, 9:30, 5pm and 5:30pm. timeOfDay returns the time since midnight.
func timeOfDay(s string) (time.Duration, bool) {
	for _, layout := range []string{"15:04", "3pm", "3:04pm"} {
		if t, err := time.Parse(layout, s); err == nil {
			return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, true
		}
	}
	return 0, false
}

// span parses a duration such as "3 days", and returns the sum of from and the duration. If the duration is in days,
// the sum has the same time of day as from, even if the clocks change in between. If the person gave a day without a
// time as the start, from is the midnight at which this day begins.
func (w timeParser) span(in *words, from time.Time) (time.Time, error) {
	count, word := in.next(), in.next()
	unit := strings.TrimSuffix(word, "s")
	n, err := strconv.Atoi(count)
	if count == "a" || count == "an" || count == "one" {
		n, err = 1, nil
	}
	if err == nil && n > 0 && n < 10_000 {
		switch unit {
		case "minute", "min":
			return from.Add(time.Duration(n) * time.Minute), nil
		case "hour", "h":
			return from.Add(time.Duration(n) * time.Hour), nil
		case "week":
			n, unit = 7*n, "day"
		}
		if unit == "day" {
			return from.AddDate(0, 0, n), nil
		}
	}
	return time.Time{}, notClear("I don't understand how long “for %s” is. Write “for 3 days”, “for 2 weeks” or “for 4 hours”.",
		block.Visible(block.Clip(strings.TrimSpace(count+" "+word), 40)))
}

// formatZoned formats a time in its own zone.
func formatZoned(t time.Time) string { return block.Reader{Zone: t.Location()}.Spoken(t) }
